"""Partitions above the budget are cut into whole users, whatever their ids are, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.engine import buckets
from rankeval_spark.engine.buckets import N_BUCKETS, hash_to_buckets, split_by_user
from rankeval_spark.engine.failures import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

IDS = st.one_of(st.lists(st.text(max_size=5), min_size=1), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))


def batches_of(users: list[str] | list[int], at_once: int) -> list[pa.RecordBatch]:
    """Make rows of users with a number each, so many in a batch."""
    column = pa.array(users, pa.string() if isinstance(users[0], str) else pa.int64())
    whole = pa.RecordBatch.from_pydict({"user_id": column, "row": pa.array(range(len(users)))})
    return [whole.slice(start, at_once) for start in range(0, len(users), at_once)]


@given(IDS, st.integers(1, 7))
def test_all_rows_of_a_user_are_in_one_table_and_no_row_is_lost(users: list[str] | list[int], at_once: int) -> None:
    tables = list(split_by_user(batches_of(users, at_once), budget=1))
    assert sorted(row for table in tables for row in table["row"].to_pylist()) == list(range(len(users)))
    seen = [set(table["user_id"].to_pylist()) for table in tables]
    assert sum(map(len, seen)) == len(set(users))


@given(IDS)
def test_rows_below_the_budget_are_one_table_in_their_order(users: list[str] | list[int]) -> None:
    (table,) = split_by_user([*batches_of(users, 3), *batches_of(users, 3)[:0]], budget=1 << 20)
    assert table["row"].to_pylist() == list(range(len(users)))


def test_empty_batches_are_left_out() -> None:
    empty = batches_of(["a"], 1)[0].slice(0, 0)
    assert list(split_by_user([empty, empty])) == []
    (table,) = split_by_user([empty, *batches_of(["a"], 1), empty])
    assert table.num_rows == 1


@pytest.mark.parametrize("users", [list(range(20_000)), [f"user-{number:09}" for number in range(20_000)]])
def test_users_are_spread_over_the_buckets_and_by_another_hash_the_next_time(users: list[str] | list[int]) -> None:
    column = pa.array(users)
    first, second = (hash_to_buckets(column, level=level) for level in (0, 1))
    sizes = [int((first == bucket).sum()) for bucket in range(N_BUCKETS)]
    assert max(sizes) < 2 * len(users) / N_BUCKETS
    assert len(set(second[first == 0].tolist())) == N_BUCKETS


def test_a_bucket_does_not_depend_on_the_batch_it_is_found_in() -> None:
    users = pa.array(["x", "", "longer than others", "x", "ä"])
    whole = hash_to_buckets(users, level=0).tolist()
    assert [hash_to_buckets(users.slice(place, 1), level=0)[0] for place in range(5)] == whole
    assert whole[0] == whole[3]


def test_rows_of_one_user_above_the_budget_are_not_cut_for_ever() -> None:
    (table,) = split_by_user(batches_of(["one"] * 50, 5), budget=1)
    assert table.num_rows == 50
    assert buckets.MAX_LEVELS < 10


def test_bucket_that_is_mostly_one_user_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = buckets._write_buckets

    def counted(batch: pa.RecordBatch, writers: list[pa.RecordBatchStreamWriter], level: int) -> None:
        written.append(batch.num_rows)
        write(batch, writers, level)

    monkeypatch.setattr(buckets, "_write_buckets", counted)
    users = ["robot"] * 900 + [f"user-{number}" for number in range(100)]
    tables = list(split_by_user(batches_of(users, 50), budget=4_000))
    assert sum(table.num_rows for table in tables) == len(users)
    assert sum(written) == len(users)


def test_partition_of_many_times_the_budget_is_held_a_budget_at_a_time() -> None:
    """Rows as a reader gives them: each batch is gone once it was cut."""
    budget, n_batches, n_rows = 4 << 20, 200, 16_384

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(n_batches):
            rows = np.arange(n_rows)
            yield pa.RecordBatch.from_pydict({"user_id": pa.array(number + 7 * rows), "row": pa.array(rows)})

    before, most, total = pa.total_allocated_bytes(), 0, 0
    for table in split_by_user(batches(), budget=budget):
        total += table.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
        del table
    assert total == n_batches * n_rows
    assert most < 3 * budget < 16 * total / 4


def test_rows_are_written_where_spark_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv(buckets.FOLDERS_OF_SPARK, f"{tmp_path / 'gone'},{kept}")
    tables = split_by_user(batches_of(list(range(100)), 10), budget=800)
    n_rows, names = next(tables).num_rows, [path.name for path in kept.iterdir()]
    n_rows += sum(table.num_rows for table in tables)
    assert [name.startswith("rankeval-") for name in names] == [True]
    assert n_rows == 100
    assert list(kept.iterdir()) == []


@pytest.mark.parametrize("budget", [1, 1 << 20])
def test_user_with_too_many_rows_is_refused_by_name(budget: int) -> None:
    users = ["robot"] * 9 + ["ann"] * 3
    fault = r"\[rankeval:max_rows_per_user\] user 'robot' with \d+ rows or more .* expected at most 5; fix: "
    with pytest.raises(RefusedError, match=fault):
        list(split_by_user(batches_of(users, 2), most_rows=5, budget=budget))
    assert sum(table.num_rows for table in split_by_user(batches_of(users, 2), most_rows=9, budget=budget)) == len(
        users
    )
