"""Counts of the log and the judgements, partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.batch import to_batch
from rankeval_spark.engine.checks import PartitionTallies, Tally
from rankeval_spark.engine.ranking.matching import to_judgements
from rankeval_spark.sums import check_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

UNUSABLE = row_kinds.FIRST_UNUSABLE
INPUTS = [
    [
        (row_kinds.LOG, "u", "a", 0.5),
        (row_kinds.LOG, "u", "b", 0.5),
        (row_kinds.HELD_OUT, "u", "z", 1.0),
        (row_kinds.HELD_OUT, "u", "z", 2.0),
    ],
    [
        (row_kinds.LOG, "v", "b", 0.5),
        (UNUSABLE, "w", "y", 0.5),
        (row_kinds.HELD_OUT, "v", "a", 0.25),
        (row_kinds.HELD_OUT, "x", "a", -1.0),
    ],
]


def seen(*parts: list[tuple[int, str, str, float]]) -> PartitionTallies:
    """Let rows of kind, user, item and score or gain pass, some users at a time."""
    facts = PartitionTallies(is_enabled=True)
    for part in parts:
        kinds, users, items, scores = zip(*part, strict=True)
        columns = {row_kinds.KIND: pa.array(kinds, pa.int8()), C.USER_ID: users, C.ITEM_ID: items, C.SCORE: scores}
        usable = pa.Table.from_batches(facts.counts.usable(pa.table(columns).to_batches()))
        batch = to_batch(usable, models=["m"])
        facts.add(batch, to_judgements(batch.held_out, n_items=batch.n_items, duplicates="max"))
    return facts


def together(make: Callable[[PartitionTallies], Iterable[pa.RecordBatch]], *partitions: PartitionTallies) -> pa.Table:
    """Put the partial rows of partitions below one another."""
    return pa.Table.from_batches(batch for one in partitions for batch in make(one))


def test_rows_are_counted_by_kind_over_partitions() -> None:
    counts = check_counts.to_row_counts(together(check_counts.row_counts, *map(seen, INPUTS)))
    assert [int(counts.by_kind[kind]) for kind in (row_kinds.LOG, row_kinds.HELD_OUT, UNUSABLE)] == [3, 4, 1]
    assert counts.has_unusable(row_kinds.LOG)
    assert not counts.has_unusable(row_kinds.HELD_OUT)


def test_each_item_of_a_partition_is_sent_once_with_its_use() -> None:
    found = together(check_counts.used_items, seen(*INPUTS)).to_pylist()
    assert sorted(tuple(item.values()) for item in found) == [("a", 2, True), ("b", 0, True), ("z", 2, False)]


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_judgements_are_counted_with_their_keys_however_they_are_parted(n_partitions: int) -> None:
    partitions = [seen(*INPUTS)] if n_partitions == 1 else [seen(part) for part in INPUTS]
    found = check_counts.to_tallies(together(check_counts.judgement_tallies, *partitions))
    assert found == {
        "duplicates": Tally("duplicates", 1, 4, "u", "u"),
        "zero_relevant": Tally("zero_relevant", 2, 3, "v", "x"),
        "negative_gains": Tally("negative_gains", 1, 4, "x a", "x a"),
        "low_gains": Tally("low_gains", 1, 4, "v a", "v a"),
    }
    assert found["zero_relevant"].sample_keys == ["v", "x"]


def test_a_partition_without_rows_counts_nothing() -> None:
    nothing = PartitionTallies(is_enabled=True)
    assert list(check_counts.used_items(nothing)) == []
    assert check_counts.to_tallies(together(check_counts.judgement_tallies, nothing)) == {}
    assert not check_counts.to_row_counts(together(check_counts.row_counts, nothing)).by_kind.any()


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
    assert facts.tallies == {
        "duplicates": Tally("duplicates", 1, 5, "v", "v"),
        "zero_relevant": Tally("zero_relevant", 1, 3, "v", "v"),
        "negative_gains": Tally("negative_gains", 2, 5, "v 2 a", "v 2 a"),
        "low_gains": Tally("low_gains", 0, 5),
        "unmatched_lists": Tally("unmatched_lists", 2, 5, "u 2", "w 2"),
    }
