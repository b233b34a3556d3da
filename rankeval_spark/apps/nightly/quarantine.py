"""Rows of the inputs that could not be used, unchanged, for whoever fixes the inputs."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from rankeval_spark import columns as C
from rankeval_spark.hosts.spark_checks import unreadable_of
from rankeval_spark.hosts.spark_inputs import inputs_of
from rankeval_spark.inputs.spark import RAW
from rankeval_spark.result_rows import check_rows
from rankeval_spark.spark.plans import usable_rows

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.spark import Sources


def to_refused_rows(sources: Sources, request: Request, *, sample_share: float = 1.0) -> DataFrame:
    """Plan the rows that a check of single rows found, of the expected models and the sampled users.

    One more pass over each input. What a check finds in a list or in a join, as a repeated item, is no row of them.

    Returns
    -------
    DataFrame
        As :func:`rankeval_spark.spark.plans.usable_rows.to_refused` makes them.
    """
    marked = sources.with_raw
    inputs = inputs_of(marked, request, sample_share=sample_share)
    log, judged, items = inputs.recommendations, inputs.held_out, inputs.items
    found = [
        usable_rows.to_refused(log, check_rows.RECOMMENDATIONS, usable_rows.flag_recommendations(log), row=RAW),
        usable_rows.to_refused(judged, check_rows.HELD_OUT, usable_rows.flag_held_out(judged), row=RAW),
    ]
    if marked.segments is not None:
        found.append(
            usable_rows.to_refused(
                marked.segments.frame, check_rows.SEGMENTS, usable_rows.flag_keys(C.SEGMENT_KEY), row=RAW
            )
        )
    if inputs.train is not None:
        found.append(usable_rows.to_refused(inputs.train, check_rows.TRAIN, usable_rows.flag_train(), row=RAW))
    if items is not None:
        rules = usable_rows.flag_items(unreadable=unreadable_of(items))
        found.append(usable_rows.to_refused(items, check_rows.ITEMS, rules, row=RAW))
    return reduce(DataFrame.unionByName, found)
