"""Published users in parts: however they are cut, the same is made of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rankeval_spark.config.inference import Comparisons
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import ReportedSlices, Slicing
from rankeval_spark.engine.buckets import split_by_user
from rankeval_spark.engine.planning import build_outputs
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows.night_change_rows import NightChanges
from rankeval_spark.sums import published
from rankeval_spark.sums.published import NIGHT_CHANGES, NightDifferences, UserTotals, pack_segments, sum_users
from rankeval_spark.sums.sums import COMPARISONS, Differences, Sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MEASURES = MeasureSet.parse(["nDCG@5", "P(agg='micro')@5", "nDCG@10"])
MEANS = MeasureSet.parse(["nDCG@5", "nDCG@10"])
SLICES = [(), ("country",), ("country", "device")]


def user_metrics(seed: int, first: int) -> pa.Table:
    """Make rows of one to three lists for each of 200 users, some values of them undefined."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for user in range(first, first + 200):
        segments = {"device": "tv" if user % 3 else "web", "country": [None, "AT", "DE"][(user + seed) % 3]}
        for model in ("als", "pop"):
            for number in range(rng.integers(1, 4)):
                values = rng.random(2).tolist()
                rows += [
                    {
                        **{"model_id": model, "user_id": f"u{user}", "list_id": str(number), "k": k},
                        **{
                            "segments": segments,
                            "n_judged": 3,
                            "n_relevant": 2,
                            "n_recommended": 10,
                            "has_ties": False,
                        },
                        **{"ndcg": None if rng.random() < 0.1 else values[0], "p_agg_micro": values[1]},
                        "p_agg_micro__denominator": 5.0,
                    }
                    for k in (5, 10, 20)
                ]
    names = {one.column: pa.float64() for one in MEASURES.measures} | {
        name: pa.float64() for name in MEASURES.denominator_columns.values()
    }
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("model_id", "user_id", "list_id")),
            ("k", pa.int32()),
            ("segments", pa.map_(pa.string(), pa.string())),
            *((name, pa.int32()) for name in ("n_judged", "n_relevant", "n_recommended")),
            ("has_ties", pa.bool_()),
            *names.items(),
        ]
    )
    given = {"ndcg": "ndcg", "p_agg_micro": MEASURES.measures[1].column}
    weight = next(iter(MEASURES.denominator_columns.values()))
    renamed = [
        {**row, **{new: row[old] for old, new in given.items()}, weight: row["p_agg_micro__denominator"]}
        for row in rows
    ]
    return pa.Table.from_pylist(renamed, schema=schema)


@pytest.fixture(scope="module")
def nights() -> tuple[ds.Dataset, ds.Dataset]:
    return ds.dataset(user_metrics(1, 50)), ds.dataset(user_metrics(2, 0))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "split_by_user", partial(split_by_user, budget=20_000))


def changes(nights: tuple[ds.Dataset, ds.Dataset]) -> list[dict[str, Any]]:
    differences = NightDifferences(NightChanges(MEANS, ReportedSlices(SLICES, 5, 0.95)))
    totals = UserTotals(MEANS, {NIGHT_CHANGES: differences}, differences.segments, n_nights=2)
    return in_order(sum_users(nights, totals)[NIGHT_CHANGES].to_pylist())


def comparisons(night: ds.Dataset) -> list[dict[str, Any]]:
    asked = Comparisons(baseline="pop", tests=("t", "sign", "wilcoxon", "bootstrap"), replicates=100)
    request = Request(
        measures=tuple(map(str, MEASURES.measures)),
        slices=tuple(SLICES[1:]),
        slicing=Slicing(min_slice_size=5),
        comparisons=asked,
    )
    differences = Differences(request, build_outputs(request, averages_lists=True))
    totals = UserTotals(MEASURES, {COMPARISONS: differences}, tuple(request.segments))
    return in_order(sum_users([night], totals)[COMPARISONS].to_pylist())


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        rows,
        key=lambda row: str([row[name] for name in ("model_id", "slice_values", "measure", "k")] + [row.get("test")]),
    )


def assert_equal(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert {name: value for name, value in one.items() if not isinstance(value, float)} == {
            name: value for name, value in other.items() if not isinstance(value, float)
        }
        floats = [name for name, value in other.items() if isinstance(value, float)]
        np.testing.assert_allclose([one[name] for name in floats], [other[name] for name in floats], rtol=0, atol=1e-12)


def whole(of: str, nights: tuple[ds.Dataset, ds.Dataset]) -> list[dict[str, Any]]:
    return changes(nights) if of == "changes" else comparisons(nights[0])


@pytest.mark.parametrize("of", ["changes", "comparisons"])
def test_small_parts_give_the_same_rows(
    nights: tuple[ds.Dataset, ds.Dataset], of: str, request: pytest.FixtureRequest
) -> None:
    expected = whole(of, nights)
    request.getfixturevalue("small_parts")
    assert_equal(whole(of, nights), expected)


@pytest.mark.usefixtures("small_parts")
def test_a_part_has_all_rows_of_its_users_on_both_nights(nights: tuple[ds.Dataset, ds.Dataset]) -> None:
    seen: set[str] = set()
    n_rows = [0, 0]
    for part in parts_of(nights):
        users = set().union(*(table["user_id"].to_pylist() for table in part))
        assert seen.isdisjoint(users)
        seen |= users
        n_rows = [n + table.num_rows for n, table in zip(n_rows, part, strict=True)]
    assert len(seen) == 250
    assert n_rows == [200 * 2 * 2] * 2  # a row per model, user and wanted cutoff, whatever the lists


def parts_of(nights: tuple[ds.Dataset, ds.Dataset]) -> Iterator[list[pa.Table]]:
    class Parts(Sum):
        schema = pa.schema([])

        def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> tuple[()]:  # noqa: ARG002 - as the others
            seen.append([*nights])
            return ()

    seen: list[list[pa.Table]] = []
    sum_users(nights, UserTotals(MEANS, {"parts": Parts()}, ("country",), n_nights=2))
    return iter(seen)


def test_a_night_without_rows_has_no_changes(nights: tuple[ds.Dataset, ds.Dataset]) -> None:
    nothing = ds.dataset(nights[0].to_table().slice(0, 0))
    assert changes((nothing, nothing)) == []
    assert {row["n_users"] for row in changes((nothing, nights[1]))} == {0}


def test_segments_are_taken_by_name_whatever_their_order() -> None:
    maps = pa.array([[("a", "1"), ("b", "2")], [("b", None), ("c", "3")], []], pa.map_(pa.string(), pa.string()))
    assert pack_segments(maps, ["b", "a"]).to_pylist() == [["2", "1"], [None, None], [None, None]]
    assert pack_segments(maps.slice(1), ["c"]).to_pylist() == [["3"], [None]]
    assert pack_segments(maps.slice(0, 0), ["c"]).to_pylist() == []
