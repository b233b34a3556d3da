"""Unusable rows are counted while they pass, and an input of nothing else is refused with the counts of all workers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import PartitionTallies, RowCounts, refuse_unusable, refuse_without_usable
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.sums.check_counts import row_counts, to_row_counts


def number(name: int, check: str) -> int:
    """Return the kind of the rows of an input that fail a check."""
    return row_kinds.FIRST_UNUSABLE + row_kinds.UNUSABLE_KINDS.index((name, check))


NO_KEY, NO_SCORE = number(row_kinds.LOG, "null_keys"), number(row_kinds.LOG, "invalid_scores")
NO_GAIN = number(row_kinds.HELD_OUT, "invalid_gains")


def counted(*kinds: int) -> tuple[list[int], RowCounts]:
    """Hand rows of these kinds on in batches of two; return the kinds of those that are left."""
    counts = RowCounts()
    batches = (
        pa.RecordBatch.from_pydict({row_kinds.KIND: pa.array(kinds[start : start + 2], pa.int8())})
        for start in range(0, len(kinds), 2)
    )
    left = [kind for batch in counts.usable(batches) for kind in batch[row_kinds.KIND].to_pylist()]
    return left, counts


def refuse(*partitions: tuple[int, ...]) -> None:
    """Judge the rows of several partitions, added up as the workers send them."""
    tallies = [PartitionTallies(counts=counted(*kinds)[1]) for kinds in partitions]
    refuse_without_usable(to_row_counts(pa.Table.from_batches([rows for one in tallies for rows in row_counts(one)])))


def test_rows_that_can_be_used_are_handed_on_and_all_are_counted() -> None:
    left, counts = counted(row_kinds.LOG, NO_KEY, row_kinds.HELD_OUT, NO_SCORE, row_kinds.LOG, NO_KEY)
    assert left == [row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.LOG]
    found = {kind: int(counts.by_kind[kind]) for kind in (row_kinds.LOG, row_kinds.HELD_OUT, NO_KEY, NO_SCORE)}
    assert found == {row_kinds.LOG: 2, row_kinds.HELD_OUT: 1, NO_KEY: 2, NO_SCORE: 1}


def test_input_without_a_usable_row_in_any_partition_is_refused_with_the_counts_of_all() -> None:
    with pytest.raises(
        RefusedError, match=r"recommendations\] 4 rows and none that can be used \(1 null_keys, 3 inval"
    ):
        refuse((NO_KEY, NO_SCORE, row_kinds.HELD_OUT), (NO_SCORE, NO_SCORE), ())
    with pytest.raises(RefusedError, match=r"held_out\] 1 rows and none that can be used \(1 invalid_gains\)"):
        refuse((row_kinds.LOG, NO_GAIN))


def test_one_usable_row_in_another_partition_or_no_row_at_all_is_enough() -> None:
    refuse((NO_KEY, NO_SCORE), (row_kinds.LOG,))
    refuse((), ())


@pytest.mark.parametrize(
    ("n_unusable", "words"), [(9_999, "9999 rows and none"), (row_kinds.MOST_COUNTED, "10000 rows or more and none")]
)
def test_of_a_long_input_only_the_first_rows_are_counted(n_unusable: int, words: str) -> None:
    counts = [{"input": "recommendations", "check": "null_keys", "count": n_unusable}]
    with pytest.raises(RefusedError, match=words):
        refuse_unusable(pa.array([counts]))
    refuse_unusable(pa.array([[*counts, {"input": "recommendations", "check": None, "count": 1}]]))
