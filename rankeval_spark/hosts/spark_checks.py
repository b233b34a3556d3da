"""Facts that the checks judge: counted in the inputs, in what the workers saw of them, and in the scored lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import Tally
from rankeval_spark.inputs.spark import IS_UNPARSABLE
from rankeval_spark.measures import required_facts
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.spark.plans import input_checks, usable_rows
from rankeval_spark.sums import sums
from rankeval_spark.sums.check_counts import to_row_counts, to_tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.checks import RowCounts
    from rankeval_spark.spark.plans import InputFrames


@dataclass(frozen=True)
class TalliedInputs:
    """Counts of the log and the judgements that workers made while they evaluated them."""

    counts: RowCounts  # rows by kind
    tallies: Mapping[str, Tally]  # what they counted of the judgements, by check
    unmatched: Tally  # judgements whose item is in no list
    items: DataFrame | None = None  # items of the log, some of them several times, where they are kept


def tallied_inputs(totals: Mapping[str, pa.Table], items: DataFrame | None = None) -> TalliedInputs:
    """Read what workers tallied out of the sums."""
    unmatched = to_tallies(totals[sums.ITEMS]).get(check_rows.UNMATCHED_ITEMS, Tally(check_rows.UNMATCHED_ITEMS, 0, 0))
    return TalliedInputs(to_row_counts(totals[sums.ROWS]), to_tallies(totals[sums.JUDGEMENTS]), unmatched, items)


def computed_facts(*frames: DataFrame) -> list[CheckCount]:
    """Compute facts of the checks: some thirty rows, by a job if there is any."""
    if not frames:
        return []
    return [check_rows.joined_fact(CheckCount(*row)) for row in input_checks.union(*frames).collect()]


def row_facts(inputs: InputFrames, request: Request, tallied: TalliedInputs | None = None) -> list[DataFrame]:
    """Count what can be seen in the rows of the inputs, but for :func:`counted_facts`.

    ``tallied``: what is known of the log and the judgements; where it is left out, they are read.
    """
    listed = usable_rows.keep_usable_recommendations(inputs.recommendations, invalid_scores="drop")
    of_both = _read_facts(inputs, request, listed) if tallied is None else _reread_facts(inputs, tallied)
    items = listed if tallied is None or tallied.items is None else tallied.items
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
        *(
            [input_checks.to_unmatched_list_facts(usable, usable_recommendations=listed)]
            if inputs.has_judged_lists
            else []
        ),
    ]


def _reread_facts(inputs: InputFrames, tallied: TalliedInputs) -> list[DataFrame]:
    """Read the inputs that have unusable rows, to name some of them."""
    log, held_out, counts = inputs.recommendations, inputs.held_out, tallied.counts
    return [
        *([input_checks.to_recommendation_facts(log)] if counts.has_unusable(row_kinds.LOG) else []),
        *([input_checks.to_held_out_facts(held_out)] if counts.has_unusable(row_kinds.HELD_OUT) else []),
    ]


def counted_facts(inputs: InputFrames, tallied: TalliedInputs) -> list[CheckCount]:
    """Return what workers counted of inputs of which each row can be used, and of all usable judgements."""
    n_log, n_judged = (int(tallied.counts.by_kind[kind]) for kind in (row_kinds.LOG, row_kinds.HELD_OUT))
    found = []
    if not tallied.counts.has_unusable(row_kinds.LOG):
        checks = usable_rows.flag_recommendations(inputs.recommendations)
        found += _without_fault(check_rows.RECOMMENDATIONS, checks, n_log)
    if not tallied.counts.has_unusable(row_kinds.HELD_OUT):
        found += _of_usable_judgements(usable_rows.flag_held_out(inputs.held_out), tallied.tallies, n_judged)
    of_users = (check_rows.DUPLICATES, check_rows.ZERO_RELEVANT)
    of_lists = [row_kinds.UNMATCHED_LISTS] if inputs.has_judged_lists else []
    found += _counted(tallied.tallies.get(name, Tally(name, 0, 0)) for name in (*of_users, *of_lists))
    return [*found, *_counted([tallied.unmatched])]


def _of_usable_judgements(checks: Iterable[str], tallies: Mapping[str, Tally], n_rows: int) -> list[CheckCount]:
    """Return what workers counted of judgements of which each can be used.

    Raises ValueError at a check that no worker makes: its count would be 0, whatever the judgements are.
    """
    names = set(checks)
    if unknown := names.difference(row_kinds.UNUSABLE, row_kinds.OF_USABLE_JUDGEMENTS):
        message = f"workers do not count {', '.join(sorted(unknown))} of the judgements"
        raise ValueError(message)
    of_unusable = [name for name in row_kinds.UNUSABLE if name in names]
    of_usable = [name for name in row_kinds.OF_USABLE_JUDGEMENTS if name in names]
    counted = _counted(tallies.get(name, Tally(name, 0, n_rows)) for name in of_usable)
    return [*_without_fault(check_rows.HELD_OUT, of_unusable, n_rows), *counted]


def _without_fault(name: str, checks: Iterable[str], n_rows: int) -> list[CheckCount]:
    """Return the number of rows of an input, and that all of them pass these checks."""
    return [CheckCount(name, check_rows.ROWS, n_rows, n_rows), *(CheckCount(name, one, 0, n_rows) for one in checks)]


def _counted(tallies: Iterable[Tally]) -> list[CheckCount]:
    return [CheckCount(check_rows.HELD_OUT, one.check, one.count, one.total, one.sample_keys) for one in tallies]


def unreadable_of(items: DataFrame) -> str | None:
    """Return the column that is true where a cell of the row could not be read; None where every one could."""
    return IS_UNPARSABLE if IS_UNPARSABLE in items.columns else None


def _item_facts(items: DataFrame, request: Request) -> list[DataFrame]:
    has_vectors = required_facts.VECTOR in request.measure_set.requiring()
    of_rows = input_checks.to_item_row_facts(items, unreadable=unreadable_of(items))
    return [of_rows, *([input_checks.to_vector_facts(items)] if has_vectors else [])]


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
    """Check for values that are alike among the segments that are text in the table."""
    names = [name for name in request.segments if name not in request.bands]
    return [input_checks.to_alike_facts(inputs.segments, names=names)] if names and inputs.segments is not None else []


def _dropped_facts(inputs: InputFrames, request: Request, listed: DataFrame) -> list[DataFrame]:
    """Count the rows of the log that are dropped; where they are kept, the lists are looked at, and on demand."""
    if request.policies.seen_in_train == "keep" or inputs.train is None:
        return []
    return [input_checks.to_seen_facts(listed, train=inputs.train)]
