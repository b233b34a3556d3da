"""The inputs of an evaluation as the stages take them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.slicing import segments_from_train
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.planning import judgement_facts
from rankeval_spark.inputs.input_columns import refuse_missing
from rankeval_spark.inputs.spark import IS_UNPARSABLE, Sources, cached_partitions, estimated_bytes
from rankeval_spark.result_rows import check_rows
from rankeval_spark.spark.plans import InputFrames, bands, usable_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from rankeval_spark.config.request import Request
    from rankeval_spark.config.slicing import Band
    from rankeval_spark.inputs.spark import Source


SMALL_CATALOGUE: Final = 32 << 20
"""Bytes up to which the catalogue is sent to every task: some 100,000 items with 32 numbers each."""


def inputs_of(
    sources: Sources, request: Request, *, sample_share: float = 1.0, are_checked: bool = True
) -> InputFrames:
    """Return what the stages need of the sources; ``are_checked`` is that of :class:`plans.InputFrames`.

    Raises InputError if a policy or the expected models need a column that the log does not have, or a measure an input
    or a column of one; all faults at once.
    """
    refuse_missing(sources.all(), request)
    ordered = _ordered(sources.recommendations, request)
    return InputFrames(
        usable_rows.keep_sample(usable_rows.keep_models(ordered, names=request.models), share=sample_share),
        usable_rows.keep_sample(_judged(sources.held_out, request), share=sample_share),
        _segments_of(sources, request),
        not sources.recommendations.has_list_id,
        # All of it, whatever the sample: the popularity of an item does not depend on who is evaluated.
        _trained(sources.train) if sources.train else None,
        sources.items.frame if sources.items else None,
        sources.items is not None and estimated_bytes(sources.items) <= SMALL_CATALOGUE,
        tuple(bands.to_facts(frame, bands=rules, name=name) for name, frame, rules in _numbers(sources, request)),
        sources.recommendations.has_model_id,
        are_checked,
        cached_partitions(sources.recommendations, sources.held_out),
        lists=_lists_of(sources.recommendations, request, sample_share=sample_share),
        segment_table=sources.segments.frame if sources.segments else None,
        unreadable=IS_UNPARSABLE if sources.items and IS_UNPARSABLE in sources.items.frame.columns else None,
    )


def _lists_of(log: Source, request: Request, *, sample_share: float) -> DataFrame | None:
    """Return the log with one row per list, where it is one; without scores where the policy keeps the ranks."""
    if log.lists is None:
        return None
    lists = log.lists.drop(row_kinds.LISTED_SCORES) if request.policies.ignores_scores else log.lists
    return usable_rows.keep_sample(usable_rows.keep_models(lists, names=request.models), share=sample_share)


def _segments_of(sources: Sources, request: Request) -> DataFrame | None:
    """Return the segments of the users, numbers in bands, and how active they were where that is requested."""
    frames = {name: bands.with_bands(frame, bands=rules) for name, frame, rules in _numbers(sources, request)}
    plain = sources.segments.frame if sources.segments else None
    return bands.with_activity(frames.get(check_rows.SEGMENTS, plain), activity=frames.get(check_rows.TRAIN))


def _numbers(sources: Sources, request: Request) -> list[tuple[str, DataFrame, Mapping[str, Band]]]:
    """List the inputs whose numbers become segments: name, users with their numbers, and the bands."""
    counted = segments_from_train(request.slicing.bands)
    rules = {name: band for name, band in request.slicing.bands.items() if name not in counted}
    found: list[tuple[str, DataFrame, Mapping[str, Band]]] = []
    if rules and sources.segments:
        found.append((check_rows.SEGMENTS, sources.segments.frame, rules))
    if counted and sources.train:
        activity = bands.to_activity(sources.train.frame, names=counted)
        found.append((check_rows.TRAIN, activity, {name: request.slicing.bands[name] for name in counted}))
    return found


def with_model_names(inputs: InputFrames, request: Request) -> InputFrames:
    """Add the names of the models of the log, where none are expected: one job that reads one column.

    A model none of whose rows can be used is one of them: it has no list, and all of its users are missing.
    """
    if request.models is not None or not inputs.has_model_id:
        return inputs
    log = inputs.recommendations if inputs.lists is None else inputs.lists
    names = log.select(C.MODEL_ID).where(F.col(C.MODEL_ID).isNotNull()).distinct().collect()  # few
    return replace(inputs, model_names=tuple(sorted(row[0] for row in names)))


def _judged(source: Source, request: Request) -> DataFrame:
    """Drop values, propensities and weights where no measure reads them, and lists that judgements do not name."""
    unread = {C.VALUE, C.PROPENSITY, C.WEIGHT} - {*judgement_facts(request)}
    unread |= set() if source.has_list_id else {C.LIST_ID}
    return source.frame.drop(*unread)


def _trained(source: Source) -> DataFrame:
    """Drop the times that the table does not have, so that nothing is said about them."""
    return source.frame if source.has_interacted_at else source.frame.drop(C.INTERACTED_AT)


def _ordered(source: Source, request: Request) -> DataFrame:
    """Drop the columns that decide nothing, so that the order of a list is known from its columns.

    They are those that the table does not have, and the scores where ranks order the lists.
    """
    has_order = {
        C.SCORE: C.SCORE in source.given and not request.policies.ignores_scores,
        C.RANK: C.RANK in source.given,
    }
    return source.frame.drop(*(name for name, is_there in has_order.items() if not is_there))
