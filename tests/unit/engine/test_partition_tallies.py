"""Counts of the log and the judgements, partition by partition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import to_batch
from rankeval_spark.engine.checks import PartitionTallies, Tally, held_out_checks, log_checks
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.matching import to_judgements
from rankeval_spark.sums.input_checks import ItemTallies, RowTallies, rows_to_tallies

if TYPE_CHECKING:
    from rankeval_spark.sums.sums import Sum

CHECKS = {row_kinds.LOG: log_checks([C.SCORE]), row_kinds.HELD_OUT: held_out_checks([C.USER_ID, C.ITEM_ID])}
INPUTS: list[list[tuple[int, str | None, str, float]]] = [
    [
        (row_kinds.LOG, "u", "a", 0.5),
        (row_kinds.LOG, "u", "b", 0.5),
        (row_kinds.HELD_OUT, "u", "z", 1.0),
        (row_kinds.HELD_OUT, "u", "z", 2.0),
    ],
    [
        (row_kinds.LOG, "v", "b", 0.5),
        (row_kinds.LOG, None, "y", 0.5),
        (row_kinds.HELD_OUT, "v", "a", 0.25),
        (row_kinds.HELD_OUT, "x", "a", -1.0),
    ],
]


def seen(*parts: list[tuple[int, str | None, str, float]]) -> PartitionTallies:
    """Let rows of kind, user, item and score or gain pass, some users at a time."""
    facts = PartitionTallies(is_enabled=True)
    for part in parts:
        kinds, users, items, scores = zip(*part, strict=True)
        columns = {row_kinds.KIND: pa.array(kinds, pa.int8()), C.USER_ID: users, C.ITEM_ID: items, C.SCORE: scores}
        usable = pa.Table.from_batches(facts.usable(pa.table(columns).to_batches(), CHECKS))
        batch = to_batch(usable, models=["m"])
        facts.add(batch, to_judgements(batch.held_out, n_items=batch.n_items, duplicates="max"))
    return facts


ROWS, ITEMS = RowTallies(), ItemTallies(has_items=False, has_catalogue=False, drops_unknown=False)


def together(of: Sum, *partitions: PartitionTallies) -> pa.Table:
    """Put the partial rows of partitions below one another."""
    return pa.Table.from_batches(batch for one in partitions for batch in of.rest(one))


def test_each_item_of_a_partition_is_sent_once_with_its_use() -> None:
    found = together(ITEMS, seen(*INPUTS)).to_pylist()
    assert sorted(tuple(item.values()) for item in found) == [("a", 2, 1, 0), ("b", 0, 2, 0), ("z", 2, 0, 0)]
    unmatched = rows_to_tallies(ITEMS.finish(together(ITEMS, *(seen(part) for part in INPUTS))))
    assert [*unmatched.values()] == [Tally("held_out", "unmatched_items", 2, 4, "z", "z")]


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_inputs_are_counted_with_their_keys_however_they_are_parted(n_partitions: int) -> None:
    partitions = [seen(*INPUTS)] if n_partitions == 1 else [seen(part) for part in INPUTS]
    found = rows_to_tallies(ROWS.finish(together(ROWS, *partitions)))
    assert {*found.values()} == {
        Tally("recommendations", "rows", 4, 4),
        Tally("recommendations", "null_keys", 1, 4, "model NULL  y", "model NULL  y"),
        Tally("recommendations", "zero_ranks", 0, 4),
        Tally("recommendations", "invalid_scores", 0, 4),
        Tally("held_out", "rows", 4, 4),
        Tally("held_out", "null_keys", 0, 4),
        Tally("held_out", "invalid_gains", 0, 4),
        Tally("held_out", "duplicates", 1, 4, "u", "u"),
        Tally("held_out", "zero_relevant", 2, 3, "v", "x"),
        Tally("held_out", "negative_gains", 1, 4, "x a", "x a"),
        Tally("held_out", "low_gains", 1, 4, "v a", "v a"),
    }
    assert found["held_out", "zero_relevant"].sample_keys == ["v", "x"]


def test_a_partition_without_rows_counts_nothing() -> None:
    nothing = PartitionTallies(is_enabled=True)
    assert list(ITEMS.rest(nothing)) == []
    assert rows_to_tallies(ROWS.finish(together(ROWS, nothing))) == {}


def counted(*rows: tuple[int, str | None, float | None]) -> PartitionTallies:
    """Count rows of kind, user and item, and score or gain."""
    kinds, users, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    cells = {row_kinds.KIND: pa.array(kinds, pa.int8()), C.USER_ID: pa.array(users, pa.string())}
    cells |= {C.ITEM_ID: pa.array(users, pa.string()), C.SCORE: pa.array(numbers, pa.float64())}
    facts = PartitionTallies()
    list(facts.usable(pa.table(cells).to_batches(), CHECKS))
    return facts


LOG_ROW, NO_KEY, NO_SCORE = (row_kinds.LOG, "u", 1.0), (row_kinds.LOG, None, 1.0), (row_kinds.LOG, "u", None)
NO_GAIN = (row_kinds.HELD_OUT, "u", math.nan)
REFUSING = RowTallies((CHECKS[row_kinds.LOG], CHECKS[row_kinds.HELD_OUT]))


def test_input_without_a_usable_row_anywhere_is_refused_with_the_counts_of_all() -> None:
    partitions = [counted(NO_KEY, NO_SCORE, (row_kinds.HELD_OUT, "u", 1.0)), counted(NO_SCORE, NO_SCORE), counted()]
    with pytest.raises(
        RefusedError, match=r"recommendations\] 4 rows and none that can be used \(1 null_keys, 3 inval"
    ):
        REFUSING.finish(together(REFUSING, *partitions))
    with pytest.raises(RefusedError, match=r"held_out\] 1 rows and none that can be used \(1 invalid_gains\)"):
        REFUSING.finish(together(REFUSING, counted(LOG_ROW, NO_GAIN)))


def test_one_usable_row_in_another_partition_or_no_row_at_all_is_enough() -> None:
    REFUSING.finish(together(REFUSING, counted(NO_KEY, NO_SCORE), counted(LOG_ROW)))
    REFUSING.finish(together(REFUSING, counted(), counted()))


def test_judgements_that_name_lists_are_counted_by_list() -> None:
    """One of two copies, one of two lists that the log lacks; the gain of u is relevant in one of its lists alone."""
    rows = [
        (row_kinds.LOG, "u", "1", "a", 0.5),
        (row_kinds.LOG, "v", "2", "a", 0.5),
        (row_kinds.HELD_OUT, "u", "1", "a", 0.0),
        (row_kinds.HELD_OUT, "u", "2", "a", 1.0),
        (row_kinds.HELD_OUT, "v", "2", "a", -1.0),
        (row_kinds.HELD_OUT, "v", "2", "a", -1.0),
        (row_kinds.HELD_OUT, "w", "2", "a", 1.0),
    ]
    names = (row_kinds.KIND, C.USER_ID, C.LIST_ID, C.ITEM_ID, C.SCORE)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    table = pa.table({**columns, row_kinds.KIND: pa.array(columns[row_kinds.KIND], pa.int8())})
    batch, facts = to_batch(table, models=["m"], has_judged_lists=True), PartitionTallies(is_enabled=True)
    facts.add(batch, to_judgements(batch.judged, n_items=batch.n_items, duplicates="max"))
    assert {*facts.tallies.values()} == {
        Tally("held_out", "duplicates", 1, 5, "v", "v"),
        Tally("held_out", "zero_relevant", 1, 3, "v", "v"),
        Tally("held_out", "unmatched_lists", 2, 5, "u 2", "w 2"),
    }
    gains = table.rename_columns([C.GAIN if name == C.SCORE else name for name in table.column_names])
    judged = gains.filter(pc.equal(gains[row_kinds.KIND], row_kinds.HELD_OUT))
    checks = held_out_checks(judged.column_names)
    assert [
        one for one in checks.tallies(judged, checks.flag_failures(judged)) if one.count and one.check != "rows"
    ] == [Tally("held_out", "negative_gains", 2, 5, "v 2 a", "v 2 a")]
