"""Rows of the inputs that could not be used, as they stand there, for somebody who mends them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from rankeval_spark.app.inputs import inputs_of, unreadable_of
from rankeval_spark.result_rows import check_rows
from rankeval_spark.sources import RAW
from rankeval_spark.stages import flags
from rankeval_spark.stages.clean import SEGMENT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rankeval_spark.config.request import Request
    from rankeval_spark.result_rows.check_rows import Fact
    from rankeval_spark.sources import Sources


def is_needed(facts: Iterable[Fact]) -> bool:
    """Whether there is such a row, by what the checks counted: where there is none, none is looked for."""
    return any(fact.count and fact.check in check_rows.REFUSALS for fact in facts)


def to_rows(sources: Sources, request: Request, *, sample_share: float = 1.0) -> DataFrame:
    """Plan the rows that a check of single rows found, of the expected models and the sampled users.

    One more pass over each input. What a check finds in a list or in a join, as a repeated item, is no row of them.

    Returns
    -------
    DataFrame
        As :func:`rankeval_spark.stages.flags.to_refused` makes them.
    """
    marked = sources.with_raw
    inputs = inputs_of(marked, request, sample_share=sample_share)
    log, judged, items = inputs.recommendations, inputs.held_out, inputs.items
    found = [
        flags.to_refused(log, check_rows.RECOMMENDATIONS, flags.of_recommendations(log), row=RAW),
        flags.to_refused(judged, check_rows.HELD_OUT, flags.of_held_out(judged), row=RAW),
    ]
    if marked.segments is not None:
        found.append(flags.to_refused(marked.segments.frame, check_rows.SEGMENTS, flags.of_keys(SEGMENT_KEYS), row=RAW))
    if inputs.train is not None:
        found.append(flags.to_refused(inputs.train, check_rows.TRAIN, flags.of_train(), row=RAW))
    if items is not None:
        rules = flags.of_items(unreadable=unreadable_of(items))
        found.append(flags.to_refused(items, check_rows.ITEMS, rules, row=RAW))
    return reduce(DataFrame.unionByName, found)
