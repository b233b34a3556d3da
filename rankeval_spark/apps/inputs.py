"""The inputs of an evaluation as the stages take them, and the facts that the checks judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.sections.bands import segments_from_train
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import partition_tallies
from rankeval_spark.engine.checks.partition_tallies import Tally
from rankeval_spark.inputs.input_columns import refuse_missing
from rankeval_spark.inputs.spark import IS_UNPARSABLE, Sources, cached_partitions, estimated_bytes
from rankeval_spark.measures import required_facts
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import Fact
from rankeval_spark.spark import plans
from rankeval_spark.spark.checks import input_checks, row_flags, unusable_rows
from rankeval_spark.spark.plans import InputFrames
from rankeval_spark.spark.rows import bands, usable_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from rankeval_spark.config.request import Request
    from rankeval_spark.config.sections.bands import Band
    from rankeval_spark.engine.checks.unusable_rows import RowCounts
    from rankeval_spark.inputs.spark import Source


SMALL_CATALOGUE: Final = 32 << 20
"""Bytes up to which the catalogue is sent to every task: some 100,000 items with 32 numbers each."""


def inputs_of(
    sources: Sources, request: Request, *, sample_share: float = 1.0, are_checked: bool = True
) -> InputFrames:
    """Take from the sources what the stages need; ``are_checked`` is that of :class:`plans.InputFrames`.

    Raises
    ------
    InputError
        If a policy or the expected models need a column that the log does not have, or a measure an input or a column
        of one; all faults at once.
    """
    refuse_missing({one.name: one.given for one in sources.all()}, request)
    ordered = _ordered(sources.recommendations, rank_gaps=request.policies.rank_gaps)
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
    )


def _lists_of(log: Source, request: Request, *, sample_share: float) -> DataFrame | None:
    """Take the log with one row per list, where it is one; without scores where the policy keeps the ranks."""
    if log.lists is None:
        return None
    lists = log.lists.drop(row_kinds.LISTED_SCORES) if request.policies.rank_gaps == "keep" else log.lists
    return usable_rows.keep_sample(usable_rows.keep_models(lists, names=request.models), share=sample_share)


def or_failing_at_zero_rank(sources: Sources, request: Request) -> Sources:
    """Let the jobs of a notebook, which has no checks, fail at a log that counts its ranks from 0."""
    log = usable_rows.keep_models(sources.recommendations.frame, names=request.models)
    columns = _ordered(replace(sources.recommendations, frame=log), rank_gaps=request.policies.rank_gaps)
    failing = unusable_rows.or_fail_at_zero_rank(log, has_zero_rank=usable_rows.has_zero_rank(columns))
    return replace(sources, recommendations=replace(sources.recommendations, frame=failing))


def _segments_of(sources: Sources, request: Request) -> DataFrame | None:
    """Take the segments of the users, numbers in bands, and how active they were where that is requested."""
    frames = {name: bands.with_bands(frame, bands=rules) for name, frame, rules in _numbers(sources, request)}
    plain = sources.segments.frame if sources.segments else None
    return bands.with_activity(frames.get(check_rows.SEGMENTS, plain), activity=frames.get(check_rows.TRAIN))


def _numbers(sources: Sources, request: Request) -> list[tuple[str, DataFrame, Mapping[str, Band]]]:
    """List the inputs whose numbers become segments: name, users with their numbers, and the bands."""
    counted = segments_from_train(request.bands)
    rules = {name: band for name, band in request.bands.items() if name not in counted}
    found: list[tuple[str, DataFrame, Mapping[str, Band]]] = []
    if rules and sources.segments:
        found.append((check_rows.SEGMENTS, sources.segments.frame, rules))
    if counted and sources.train:
        activity = bands.to_activity(sources.train.frame, names=counted)
        found.append((check_rows.TRAIN, activity, {name: request.bands[name] for name in counted}))
    return found


@dataclass(frozen=True)
class SeenInputs:
    """What the workers saw of the log and the judgements while they evaluated them.

    Attributes
    ----------
    counts : RowCounts
        Rows by kind.
    tallies : mapping of str to Tally
        What they counted of the judgements, by check.
    items : DataFrame
        Items of both, some of them several times: the fields of :data:`partition_tallies.ITEM_FIELDS`.
    """

    counts: RowCounts
    tallies: Mapping[str, Tally]
    items: DataFrame


def seen_inputs(computed: DataFrame) -> SeenInputs:
    """Take what was seen out of computed rows: those without a model, see :mod:`engine.checks.partition_tallies`."""
    facts = computed.where(F.col(C.MODEL_ID).isNull())
    cells = facts.select(partition_tallies.ROWS_BY_KIND, partition_tallies.TALLIES).collect()  # one a partition
    counts, tallies = (
        partition_tallies.counts_of(row[0] for row in cells),
        partition_tallies.tallies_of(row[1] for row in cells),
    )
    return SeenInputs(counts, tallies, facts.select(F.inline(partition_tallies.USED_ITEMS)))


def without_facts(computed: DataFrame) -> DataFrame:
    """Leave the rows and columns of :func:`seen_inputs` out."""
    names = (partition_tallies.ROWS_BY_KIND, partition_tallies.TALLIES, partition_tallies.USED_ITEMS)
    if partition_tallies.TALLIES not in computed.columns:
        return computed
    return computed.where(F.col(C.MODEL_ID).isNotNull()).drop(*names)


def can_be_seen(request: Request) -> bool:
    """Return True if the workers see the whole log: not where items are left out before."""
    return plans.can_mark_unusable(request)


def with_model_names(inputs: InputFrames, request: Request) -> InputFrames:
    """Look up which models the log names, where none are expected: one job that reads one column.

    A model none of whose rows can be used is one of them: it has no list, and all of its users are missing.
    """
    if request.models is not None or not inputs.has_model_id:
        return inputs
    log = inputs.recommendations if inputs.lists is None else inputs.lists
    names = log.select(C.MODEL_ID).where(F.col(C.MODEL_ID).isNotNull()).distinct().collect()  # few
    return replace(inputs, model_names=tuple(sorted(row[0] for row in names)))


def computed_facts(*frames: DataFrame) -> list[Fact]:
    """Compute facts of the checks: some thirty rows."""
    return [check_rows.joined_fact(Fact(*row)) for row in input_checks.union(*frames).collect()]


def row_facts(inputs: InputFrames, request: Request, seen: SeenInputs | None = None) -> list[DataFrame]:
    """Count what can be seen in the rows of the inputs.

    Parameters
    ----------
    seen : SeenInputs, optional
        What is known of the log and the judgements; where it is left out, they are read.
    """
    listed = usable_rows.keep_usable_recommendations(inputs.recommendations, invalid_scores="drop")
    of_both = _read_facts(inputs, request, listed) if seen is None else _seen_facts(inputs, seen)
    items = listed if seen is None else seen.items.where(F.col("is_listed"))
    return [
        *of_both,
        *(
            []
            if inputs.train is None
            else [input_checks.to_train_facts(inputs.train, evaluation_date=request.evaluation_date)]
        ),
        *([] if inputs.items is None else _item_facts(inputs.items, request)),
        *_catalogue_facts(inputs, request, items),
        *_dropped_facts(inputs, request, listed),
        *inputs.band_facts,
        *_segment_facts(inputs, request),
    ]


def _read_facts(inputs: InputFrames, request: Request, listed: DataFrame) -> list[DataFrame]:
    """Count what is in the log and the judgements by reading them."""
    usable = usable_rows.keep_usable_held_out(inputs.held_out)
    return [
        input_checks.to_recommendation_facts(inputs.recommendations),
        input_checks.to_held_out_facts(inputs.held_out),
        input_checks.to_judgement_facts(usable, duplicates=request.policies.held_out_duplicates),
        input_checks.to_join_facts(usable, usable_recommendations=listed),
    ]


def _seen_facts(inputs: InputFrames, seen: SeenInputs) -> list[DataFrame]:
    """Take the same from what was seen; an input with unusable rows is read, to name some of them."""
    log, held_out, of_users = inputs.recommendations, inputs.held_out, ("duplicates", "zero_relevant")
    has_bad_log, has_bad_held_out = (seen.counts.has_unusable(kind) for kind in (row_kinds.LOG, row_kinds.HELD_OUT))
    n_log, n_judged = (int(seen.counts.by_kind[kind]) for kind in (row_kinds.LOG, row_kinds.HELD_OUT))
    counted = (
        [] if has_bad_log else _without_fault(check_rows.RECOMMENDATIONS, row_flags.flag_recommendations(log), n_log)
    )
    if not has_bad_held_out:
        found = {name: seen.tallies[name] for name in row_flags.flag_held_out(held_out) if name in seen.tallies}
        absent = [name for name in row_flags.flag_held_out(held_out) if name not in found]
        counted += [*_without_fault(check_rows.HELD_OUT, absent, n_judged), *_counted(found.values())]
    counted += _counted(seen.tallies.get(name, Tally(name, 0, 0)) for name in of_users)
    return [
        *([input_checks.to_recommendation_facts(log)] if has_bad_log else []),
        *([input_checks.to_held_out_facts(held_out)] if has_bad_held_out else []),
        input_checks.to_unmatched_facts(seen.items),
        log.sparkSession.createDataFrame([vars(fact) for fact in counted], input_checks.FACT_TYPES),
    ]


def _without_fault(name: str, checks: Iterable[str], n_rows: int) -> list[Fact]:
    """Say how many rows an input has, and that all of them pass these checks."""
    return [Fact(name, check_rows.ROWS, n_rows, n_rows), *(Fact(name, one, 0, n_rows) for one in checks)]


def _counted(tallies: Iterable[Tally]) -> list[Fact]:
    return [Fact(check_rows.HELD_OUT, one.check, one.count, one.total, one.sample_keys) for one in tallies]


def unreadable_of(items: DataFrame) -> str | None:
    """Name the column that is true where a cell of the row could not be read; None where every one could."""
    return IS_UNPARSABLE if IS_UNPARSABLE in items.columns else None


def _item_facts(items: DataFrame, request: Request) -> list[DataFrame]:
    of_rows = input_checks.to_item_row_facts(items, unreadable=unreadable_of(items))
    return (
        [of_rows, input_checks.to_vector_facts(items)]
        if required_facts.VECTOR in request.measures.requiring()
        else [of_rows]
    )


def _catalogue_facts(inputs: InputFrames, request: Request, listed: DataFrame) -> list[DataFrame]:
    """Count unknown items and, where they are dropped, their rows; `train` is a catalogue only then."""
    is_dropped = request.policies.unknown_items == "drop"
    catalogue = inputs.catalogue if is_dropped else inputs.items
    if catalogue is None:
        return []
    of_items = input_checks.to_unknown_item_facts(catalogue, usable_recommendations=listed)
    if not is_dropped:
        return [of_items]
    return [of_items, input_checks.to_unknown_row_facts(catalogue, usable_recommendations=listed)]


def _segment_facts(inputs: InputFrames, request: Request) -> list[DataFrame]:
    """Look for values that are alike among the segments that are text in the table."""
    names = [name for name in request.segments if name not in request.bands]
    return [input_checks.to_alike_facts(inputs.segments, names=names)] if names and inputs.segments is not None else []


def _dropped_facts(inputs: InputFrames, request: Request, listed: DataFrame) -> list[DataFrame]:
    """Count the rows of the log that are dropped; where they are kept, the lists are looked at, and on demand."""
    if request.policies.seen_in_train == "keep" or inputs.train is None:
        return []
    return [input_checks.to_seen_facts(listed, train=inputs.train)]


def list_facts(scored: DataFrame, request: Request) -> DataFrame:
    """Count what can be seen in the scored lists: at the largest cutoff, or the whole list where there is none."""
    cutoffs = [k for k in request.measures.ks if k != C.WHOLE_LIST]
    baseline = request.comparisons.baseline if request.comparisons else None
    if request.policies.seen_in_train == "drop":  # what was in the log is counted there; of the lists they are gone
        scored = scored.drop(C.SEEN)
    return input_checks.to_list_facts(scored, k=max(cutoffs, default=C.WHOLE_LIST), baseline=baseline)


def exposures_of(inputs: InputFrames, request: Request) -> DataFrame | None:
    """Plan the rows of ``metrics`` of the measures of all lists together; None where there is none."""
    return plans.to_exposures(inputs, request=request)


def _judged(source: Source, request: Request) -> DataFrame:
    """Drop the values where no measure reads them."""
    return source.frame if required_facts.VALUES in request.measures.needs else source.frame.drop(C.VALUE)


def _trained(source: Source) -> DataFrame:
    """Drop the times that the table does not have, so that nothing is said about them."""
    return source.frame if source.has_interacted_at else source.frame.drop(C.INTERACTED_AT)


def _ordered(source: Source, *, rank_gaps: str) -> DataFrame:
    """Drop the columns that the table does not have, so that the order of a list is known from its columns.

    Where the ranks of the log are kept as they are, they order the lists too, whatever the scores say.
    """
    has_order = {C.SCORE: C.SCORE in source.given and rank_gaps != "keep", C.RANK: C.RANK in source.given}
    return source.frame.drop(*(name for name, is_there in has_order.items() if not is_there))
