"""Moments of every slice, without a session: what each partition passes on, and what they are together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine import aggregates
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.engine.slices import ROWS_AT_ONCE, Key, find_groups
from rankeval_spark.statistics import value_counts
from rankeval_spark.statistics.moments import Columns, Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

KS: Final = (5, 1)
COUNTRIES: Final = ("AT", "DE", None)
DEVICES: Final = ("tv", "a,b", "", None)
SLICES: Final = ((), ("_country",), ("_device", "_country"), ("_country",))

Row = dict[str, Any]

COUNTED: Final[Mapping[str, Callable[[Row], bool]]] = {
    "n_population": lambda row: row[IS_EVALUATED],
    "n_missing": lambda row: row[C.N_JUDGED] > 0 and row[C.N_RECOMMENDED] == 0,
    "n_zero_relevant": lambda row: row[C.N_JUDGED] > 0 and row[C.N_RELEVANT] == 0,
    "n_extra_users": lambda row: row[C.N_JUDGED] == 0,
    "n_with_list": lambda row: row[C.N_JUDGED] > 0 and row[C.N_RECOMMENDED] > 0,
    "n_tied": lambda row: row[C.N_JUDGED] > 0 and row[C.N_RECOMMENDED] > 0 and row[C.HAS_TIES] is True,
}


def rows(n_users: int = 200) -> list[Row]:
    """Users of two models; a measure undefined for some, a constant one, and a ratio of sums."""
    draw = np.random.default_rng(1)
    return [
        {
            **{C.MODEL_ID: model, C.K: k, "_country": COUNTRIES[user % 3], "_device": DEVICES[user % 4]},
            **{name: int(draw.integers(0, 2)) for name in (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)},
            **{IS_EVALUATED: bool(draw.integers(0, 2)), C.HAS_TIES: (None, False, True)[draw.integers(0, 3)]},
            **{"p": None if user % 7 == 0 else float(draw.random()), "same": 0.1},
            **{"r": float(draw.random()), "r__weight": float(draw.integers(1, 5))},
            **{"p__lists": None if user % 7 == 0 else user % 3 + 1.0, "r__lists": 2.0, "same__lists": 1.0},
        }
        for user, model, k in itertools.product(range(n_users), ("als", "popular"), KS)
    ]


def summariser(slices: Sequence[tuple[str, ...]] = SLICES) -> aggregates.PartialAggregator:
    lists = ("p__lists", "r__lists", "same__lists")
    return aggregates.PartialAggregator(("p", "r", "same"), {"r": "r__weight"}, tuple(slices), KS, None, lists)


def passed_on(parts: Sequence[list[Row]], slices: Sequence[tuple[str, ...]] = SLICES) -> list[pa.RecordBatch]:
    """Return what the workers make of some partitions."""
    schema = pa.Table.from_pylist(rows(8)).schema
    tables = [pa.Table.from_pylist(part, schema=schema) for part in parts]
    return [batch for table in tables for batch in summariser(slices).summarise(iter(table.to_batches()))]


def together(batches: list[pa.RecordBatch]) -> dict[tuple[object, ...], Row]:
    """Unite them: a row by model, slice, values, cutoff and measure."""
    found = summariser().state.pool(pa.Table.from_batches(batches)).to_pylist()
    keys = ("slice_index", C.MODEL_ID, C.K, "measure_index")
    return {(*(row[key] for key in keys), *row[C.SLICE_VALUES]): row for row in found}


def naive(data: list[Row]) -> dict[tuple[object, ...], Row]:
    """Do the same by a loop over groups and users."""
    found: dict[tuple[object, ...], Row] = {}
    for index, names in enumerate(SLICES):
        groups: dict[tuple[object, ...], list[Row]] = {}
        for row in data:
            groups.setdefault((row[C.MODEL_ID], row[C.K], *(row[name] for name in names)), []).append(row)
        for (model, k, *values), own in groups.items():
            counts: Row = {name: sum(map(is_counted, own)) for name, is_counted in COUNTED.items()}
            for measure, name in enumerate(("p", "r", "same")):
                defined = [row for row in own if row[name] is not None]
                below = numbers(defined, "r__weight") if name == "r" else np.zeros(len(defined))
                above = numbers(defined, name) * (below if name == "r" else 1.0)
                found[(index, model, k, measure, *values)] = _moments(above, below) | counts
                lists = np.nansum(numbers(own, f"{name}__lists"))
                found[(index, model, k, measure, *values)][C.N_LISTS] = lists
    return found


def numbers(data: list[Row], name: str) -> np.ndarray:
    return np.array([row[name] for row in data], dtype=np.float64)


def _moments(above: np.ndarray, below: np.ndarray) -> Row:
    if not len(above):
        return {"n": 0, "n_nonzero": 0, "mean": None, "m2": 0.0, "m3": 0.0}
    apart, below_apart = above - above.mean(), below - below.mean()
    return {
        **{"n": len(above), "n_nonzero": np.count_nonzero(above), "mean": above.mean()},
        **{"m2": float(apart @ apart), "m3": float(apart**3 @ np.ones_like(apart))},
        **{"weight_mean": below.mean(), "weight_m2": float(below_apart @ below_apart)},
        **{"cross": float(apart @ below_apart), "weight_m3": float(below_apart**2 @ below_apart)},
        **{"cross_21": float(apart**2 @ below_apart), "cross_12": float(apart @ below_apart**2)},
    }


@pytest.mark.parametrize("n_partitions", [1, 3, 50])
def test_moments_and_counts_are_those_of_a_loop_on_any_partitioning(n_partitions: int) -> None:
    data = rows()
    found = together(passed_on([data[part::n_partitions] for part in range(n_partitions)]))
    wanted = naive(data)
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        for name, value in row.items():
            assert found[key][name] == pytest.approx(value, rel=0, abs=1e-11), (key, name)


def test_union_is_the_same_in_any_order_of_arrival() -> None:
    data = rows()
    batches = passed_on([data[part::5] for part in range(5)])
    assert together(batches[::-1]) == together(batches)


def test_union_of_equal_means_is_that_mean_and_has_no_spread() -> None:
    """Sums of them would be off by a rounding: (0.1 + 0.1 + 0.1) / 3 is not 0.1."""
    parts = Moments(np.array([[1], [3], [7]]), np.full((3, 1), 0.1), np.zeros((3, 1)))
    united = parts.merge_rows(np.array([0, 0, 0]), 1)
    assert (united.mean.item(), united.m2.item()) == (0.1, 0.0)


def test_slice_that_is_part_of_a_crossing_is_made_of_its_groups() -> None:
    assert summariser().rolled_up_from == (2, 2, 2, 2)
    assert summariser([("_country",), (), ("_device",), ("_country",)]).rolled_up_from == (0, 0, 2, 0)
    data = rows()
    alone = together(passed_on([data], SLICES[:2]))
    within = together(passed_on([data]))
    for key, row in alone.items():
        assert within[key]["n"] == row["n"]
        assert within[key]["mean"] == pytest.approx(row["mean"], rel=0, abs=1e-14)


def test_values_that_look_alike_in_a_list_stay_apart() -> None:
    """Of the crossing ("a,b", "c") and ("a", "b,c"), whatever joins the texts."""
    table = pa.table(
        {
            **{C.MODEL_ID: ["m"] * 4, C.K: pa.array([1] * 4, pa.int32())},
            **{"_one": ["a,b", "a", None, "null"], "_two": ["c", "b,c", "", ""]},
        }
    )
    keys, group = find_groups(table, ("_one", "_two"), (1,))
    state = aggregates.AggregateLayout(1)
    moments = Columns.from_values(np.ones((4, 1))).by_group(group, 4, has_cubes=True)
    counts = np.ones((4, len(aggregates.COUNTS) + 1))
    (batch,) = state.to_batches(0, keys, moments, counts)
    assert [row["n"] for row in state.pool(pa.Table.from_batches([batch, batch])).to_pylist()] == [2, 2, 2, 2]


def test_many_counted_values_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Key] = [("m", (str(name),), 1) for name in range(9)]
    group = np.repeat(np.arange(9), 10)
    values = np.random.default_rng(1).random((90, 2))
    counted = value_counts.EncodedColumns.from_columns(values).by_group(group, 9)
    found, counts = (
        Columns.from_values(values).by_group(group, 9, has_cubes=True),
        np.ones((9, len(aggregates.COUNTS) + 2)),
    )
    sums = found, counts, None, counted
    state = aggregates.AggregateLayout(2)
    (whole,) = state.to_batches(0, keys, *sums)
    monkeypatch.setattr(aggregates, "BATCH_BYTES", 1000)
    parts = list(state.to_batches(0, keys, *sums))
    assert [len(part) for part in parts] == [3, 3, 3]
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([whole]))
    pooled = state.pool(pa.Table.from_batches(parts), quantiles=[0.5])
    exact = [np.quantile(values[group == one], 0.5, axis=0, method="inverted_cdf") for one in range(9)]
    assert np.concatenate(exact).tolist() == [cell[0] for cell in pooled["quantiles"].to_pylist()]


def test_group_without_a_value_is_united_with_one_that_has_some() -> None:
    parts = Moments(
        np.array([[0], [2], [0]]), np.array([[math.nan], [1.5], [math.nan]]), np.array([[0.0], [0.5], [0.0]])
    )
    united = parts.merge_rows(np.array([0, 0, 1]), 2)
    assert united.n.tolist() == [[2], [0]]
    assert united.mean[0].item() == 1.5
    assert math.isnan(united.mean[1].item())
    assert united.m2.tolist() == [[0.5], [0.0]]


def test_denominators_stay_with_their_measures_whatever_their_order() -> None:
    data = [{**row, "q": row["r"], "q__weight": 2.0} for row in rows()]
    table = pa.Table.from_pylist(data)
    found = []
    for weights in ({"q": "q__weight", "r": "r__weight"}, {"r": "r__weight", "q": "q__weight"}):
        own = aggregates.PartialAggregator(("q", "r"), weights, ((),), KS, None)
        found.append(own.state.pool(pa.Table.from_batches(own.summarise(iter(table.to_batches())))).to_pylist())
    assert found[0] == found[1]
    assert {row["weight_mean"] for row in found[0] if row["measure_index"] == 0} == {2.0}


SCORED: Final = {C.MODEL_ID: "m", C.K: 1, IS_EVALUATED: True, C.N_JUDGED: 1, C.N_RELEVANT: 1, C.N_RECOMMENDED: 1}
"""A judged user with a list of one item."""


def pooled(table: pa.Table, slices: Sequence[tuple[str, ...]] = ((),)) -> list[Row]:
    """Summarise rows with the measure p; in the order of slices and values."""
    of_p = aggregates.PartialAggregator(("p",), {}, tuple(slices), (1,), None)
    found = of_p.state.pool(pa.Table.from_batches(of_p.summarise(iter(table.to_batches(max_chunksize=10_000)))))
    return sorted(found.to_pylist(), key=lambda row: (row["slice_index"], row[C.SLICE_VALUES]))


def test_a_group_without_a_defined_value_stays_with_its_counts() -> None:
    table = pa.Table.from_pylist([{**SCORED, C.N_RELEVANT: 0, C.HAS_TIES: False}])
    (row,) = pooled(table.append_column("p", pa.nulls(1, pa.float64())))
    assert [row[name] for name in ("n", "mean", "m2", "n_population", "n_zero_relevant")] == [0, None, 0.0, 1.0, 1.0]


def test_every_kind_of_user_is_counted_once() -> None:
    users: list[Row] = [
        {C.HAS_TIES: True},
        {C.N_JUDGED: 0, C.N_RELEVANT: 0, C.HAS_TIES: True, IS_EVALUATED: False},
        {C.N_RECOMMENDED: 0, C.HAS_TIES: None},
        {C.N_RELEVANT: 0, C.HAS_TIES: False},
    ]
    (row,) = pooled(pa.Table.from_pylist([{**SCORED, "p": 0.5, **user} for user in users]))
    assert [row[name] for name in aggregates.COUNTS] == [3.0, 1.0, 1.0, 1.0, 2.0, 1.0]


def test_chunks_are_merged_within_a_partition() -> None:
    """More rows than are summarised in one go; groups appear in the second chunk that the first did not have."""
    n_rows = 2 * ROWS_AT_ONCE + 10
    late = n_rows - ROWS_AT_ONCE - 7
    tiers = pa.array(["early"] * (n_rows - late) + ["late"] * late)
    table = pa.table({name: [value] * n_rows for name, value in SCORED.items()}).append_column("tier", tiers)
    table = table.append_column("p", pa.array(np.arange(n_rows) % 2.0))
    rows = pooled(table.append_column(C.HAS_TIES, pa.repeat(False, n_rows)), [(), ("tier",)])
    assert [(row["slice_index"], row[C.SLICE_VALUES], row["n"], row["n_population"]) for row in rows] == [
        (0, [], n_rows, n_rows),
        (1, ["early"], n_rows - late, n_rows - late),
        (1, ["late"], late, late),
    ]
    assert (rows[0]["mean"], rows[0]["m2"]) == (1 / 2, pytest.approx(n_rows / 4, abs=1e-6))
