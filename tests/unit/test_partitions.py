"""What many partitions add up, merged in buckets as on Spark; no Spark here."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.partitions import Partition, merge
from rankeval_spark.spark.plans.result_frames import read_totals
from rankeval_spark.sums import grouping

if TYPE_CHECKING:
    from rankeval_spark.sums.sums import ListTotals

N_DIFFERENT: Final = 20
FEW: Final = Partition(n_users=5, list_length=5, items=20, measures=("nDCG@3", "RR"), slices=("tier",))


@pytest.fixture(scope="module")
def totals() -> ListTotals:
    """Give the work on a partition."""
    return FEW.work()


def merged(totals: ListTotals, n_times: int, n_buckets: int) -> dict[str, pa.Table]:
    """Merge what twenty partitions pass on, each so many times."""
    each = [list(replace(FEW, place=place).packed(totals, n_buckets)) for place in range(N_DIFFERENT)]
    table, _, _ = merge(chain(*(each * n_times)), totals.sums, n_buckets)
    return read_totals(table, totals.sums)


def numbers_of(table: pa.Table, name: str) -> dict[tuple[object, ...], float]:
    """Return a column of ``metrics`` by the key."""
    key = ("model_id", "slice", "slice_value", "measure", "k")
    return dict(zip(zip(*(table[each].to_pylist() for each in key), strict=True), table[name].to_pylist(), strict=True))


def test_two_thousand_partitions_merge_to_the_means_of_twenty(totals: ListTotals) -> None:
    once, found = (merged(totals, n_times, grouping.N_BUCKETS)["metrics"] for n_times in (1, 100))

    assert numbers_of(found, "value") == pytest.approx(numbers_of(once, "value"), rel=0, abs=1e-12)
    users = numbers_of(once, "n_users")
    assert max(users.values()) > N_DIFFERENT  # of 100 users, those with a relevant item
    assert numbers_of(found, "n_users") == {key: 100 * n for key, n in users.items()}


def test_number_of_buckets_changes_no_result(totals: ListTotals) -> None:
    few, many = (merged(totals, 1, n_buckets) for n_buckets in (grouping.N_BUCKETS, grouping.MAX_BUCKETS))

    for name in few.keys() - {"items"}:
        assert sorted(few[name].to_pylist(), key=str) == sorted(many[name].to_pylist(), key=str), name
    (of_few,), (of_many,) = (added_up(found["items"]) for found in (few, many))
    assert of_few == of_many
    assert of_few["total_sum"] > 0


def added_up(tallies: pa.Table) -> list[dict[str, Any]]:
    """Add up the tallies that each bucket has."""
    found = tallies.group_by(["input", "check"]).aggregate([("count", "sum"), ("total", "sum")])
    return list(found.to_pylist())


@pytest.mark.parametrize(("n_partitions", "n_buckets"), [(1, 64), (200, 64), (2000, 250), (4000, 500), (10**6, 1024)])
def test_many_partitions_have_more_buckets(n_partitions: int, n_buckets: int) -> None:
    assert grouping.n_buckets_of(n_partitions) == n_buckets


def test_a_thousand_buckets_share_the_items_evenly() -> None:
    items = pa.RecordBatch.from_pydict({"item_id": np.arange(200_000), "n": np.ones(200_000)})
    sizes = {bucket: rows.num_rows for bucket, rows in grouping.split_by_key_bucket(items, ("item_id",), 1000)}

    assert sorted(sizes) == list(range(1000))
    assert sum(sizes.values()) == 200_000
    assert max(sizes.values()) < 1.5 * 200
