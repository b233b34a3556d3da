"""Groups of users: rows of ``group_metrics``, and gaps joined into one row each, without a session."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.result_rows import gap_rows, group_rows
from rankeval_spark.statistics.group_gaps import GroupMeans, compare_groups, ratio_interval, worst_interval

# ---- what the rows of ``metrics`` say about groups of users, without a session -------------------------------------


TYPES: Final = pa.schema(
    [
        *((name, pa.string()) for name in (C.MODEL_ID, C.SLICE, C.MEASURE, "ci_method")),
        (C.SLICE_VALUES, pa.list_(pa.string())),
        (C.K, pa.int32()),
        *((name, pa.int64()) for name in ("n_users", C.N_LISTS)),
        ("is_small", pa.bool_()),
        *((name, pa.float64()) for name in (C.VALUE, "std_error", "ci_level")),
    ]
)


def row(
    group: list[str | None], value: float | None, std_error: float | None, n: int, **other: str | int | None
) -> dict[str, Any]:
    """Give a row of ``metrics`` of a group of users with three lists each."""
    named = {C.MODEL_ID: "als", C.SLICE: "country", C.MEASURE: "RR", C.K: 10, "ci_level": 0.9, "ci_method": "t"}
    numbers = {C.VALUE: value, "std_error": std_error, "n_users": n, C.N_LISTS: 3 * n, "is_small": n < 30}
    return {**named, C.SLICE_VALUES: group, **numbers, **other}


def said_of(*rows: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Compare the groups; what is said, by slice and measure."""
    table = pa.Table.from_pylist(list(rows), schema=TYPES)
    found = [each for batch in group_rows.to_group_rows(table) for each in batch.to_pylist()]
    return {(each[C.SLICE], each[C.MEASURE]): each for each in found}


def estimate(row_: dict[str, Any]) -> tuple[float, float, float]:
    return row_[C.VALUE], row_["ci_low"], row_["ci_high"]


def test_gap_ratio_and_worst_group_are_those_of_the_groups_that_can_be_compared() -> None:
    """AT 1/2, DE 1/4 and FR 3/8 are compared; IT is small, NL has no value, and of some users nobody knows."""
    left_out = (row(["IT"], 0.9, 0.1, 20), row(["NL"], None, None, 0), row([None], 0.1, 0.1, 50))
    found = said_of(row(["FR"], 3 / 8, 0.03, 60), *left_out, row(["DE"], 1 / 4, 0.02, 40), row(["AT"], 1 / 2, 0.02, 80))
    values, errors = np.array([1 / 2, 1 / 4, 3 / 8]), np.array([0.02, 0.02, 0.03])
    groups = GroupMeans(values, errors, np.array([79.0, 39.0, 59.0]), 0.9, bounds=(0.0, 1.0))
    gap = compare_groups(groups)
    gap_row, ratio, mad, worst = (
        found["country", f"{kind}(RR)"] for kind in ("GroupGap", "GroupRatio", "UserMAD", "WorstGroup")
    )
    assert estimate(gap_row) == pytest.approx((1 / 4, gap.low, gap.high), rel=0, abs=1e-12)
    assert estimate(ratio) == pytest.approx((1 / 2, *ratio_interval(groups)), rel=0, abs=1e-12)
    assert (mad[C.VALUE], mad["ci_low"]) == (pytest.approx((1 / 4 + 1 / 8 + 1 / 8) / 3, rel=0, abs=1e-12), None)
    assert estimate(worst) == pytest.approx((1 / 4, *worst_interval(groups)), rel=0, abs=1e-12)
    methods = [each["ci_method"] for each in (gap_row, ratio, mad, worst)]
    assert methods == ["games-howell", "simultaneous", "none", "simultaneous"]
    assert [(each[C.SLICE_VALUES], each[C.SLICE_VALUE]) for each in (gap_row, worst)] == [([], ""), (["DE"], "DE")]
    counts = [(each["n_users"], each["n_left_out"], each["is_small"]) for each in (gap_row, worst)]
    assert counts == [(180, 70, False), (40, 70, False)]
    assert [each[C.N_LISTS] for each in (gap_row, worst)] == [3 * 180, 3 * 40]


def test_lists_of_groups_of_a_version_that_did_not_count_them_are_unknown() -> None:
    found = said_of(row(["AT"], 1 / 2, 0.02, 80, n_lists=None), row(["DE"], 1 / 4, 0.02, 40))
    kinds = ("GroupGap", "WorstGroup")
    assert [found["country", f"{kind}(RR)"][C.N_LISTS] for kind in kinds] == [None, 3 * 40]


def test_one_group_alone_is_not_compared() -> None:
    found = said_of(row(["AT"], 1 / 2, 0.02, 80), row(["IT"], 0.9, 0.1, 20))
    assert {(each[C.VALUE], each["ci_low"], each["ci_method"], each["is_small"]) for each in found.values()} == {
        (None, None, "none", True)
    }
    assert found["country", "WorstGroup(RR)"][C.SLICE_VALUES] == []
    assert found["country", "GroupGap(RR)"]["n_users"] == 80


def test_the_worst_group_of_an_error_has_the_greatest_value_and_its_unit() -> None:
    """A root of a mean of squares has the standard error of that mean over twice the root."""
    rmse: dict[str, str | int] = {C.MEASURE: "RMSE(agg='micro')", C.K: 0}
    found = said_of(row(["AT"], 1.0, 0.2, 100, **rmse), row(["DE"], 2.0, 0.4, 100, **rmse))
    worst, gap = (found["country", f"{kind}(RMSE(agg='micro'))"] for kind in ("WorstGroup", "GroupGap"))
    groups = GroupMeans(np.array([1.0, 2.0]), np.array([0.1, 0.1]), np.array([99.0, 99.0]), 0.9)
    assert worst[C.SLICE_VALUES] == ["DE"]
    assert estimate(worst) == pytest.approx((2.0, *worst_interval(groups, is_greatest=True)), rel=0, abs=1e-12)
    assert estimate(gap) == pytest.approx(tuple(compare_groups(groups)[:3]), rel=0, abs=1e-12)


def test_of_two_groups_that_are_as_bad_the_first_by_name_is_the_worst() -> None:
    rows = [row(["b", "x"], 0.1, 0.01, 50), row(["a", "z"], 0.1, 0.01, 50), row(["c", "x"], 0.2, 0.01, 50)]
    for order in (rows, rows[::-1]):
        found = said_of(*(each | {C.SLICE: "one*other"} for each in order))
        assert found["one*other", "WorstGroup(RR)"][C.SLICE_VALUE] == "a*z"


def test_values_of_all_lists_have_the_freedom_of_the_groups_left_out_in_turn() -> None:
    shares = {C.MEASURE: "ItemCoverage", "ci_method": "jackknife"}
    found = said_of(row(["AT"], 0.5, 0.05, 900, **shares), row(["DE"], 0.3, 0.05, 900, **shares))
    expected = compare_groups(GroupMeans(np.array([0.5, 0.3]), np.full(2, 0.05), np.full(2, 19.0), 0.9))
    assert estimate(found["country", "GroupGap(ItemCoverage)"]) == pytest.approx(tuple(expected[:3]), rel=0, abs=1e-12)


def test_groups_of_items_are_compared_within_each_slice_and_small_ones_left_out() -> None:
    """In all: |1/2 - 1/4|, |1/2 - 1/8| and |1/4 - 1/8| have the mean 1/4; in DE the tail is small."""
    everyone = {C.SLICE: "all"}
    rows = [
        row([], 1 / 2, 0.01, 90, **{C.MEASURE: "R(group='head')"}, **everyone),
        row([], 1 / 4, 0.01, 80, **{C.MEASURE: "R(group='middle')"}, **everyone),
        row([], 1 / 8, 0.01, 70, **{C.MEASURE: "R(group='tail')"}, **everyone),
        row([], 0.9, 0.01, 90, **{C.MEASURE: "R"}, **everyone),
        row(["DE"], 1 / 2, 0.01, 40, **{C.MEASURE: "R(group='head')"}),
        row(["DE"], 1 / 8, 0.01, 30, **{C.MEASURE: "R(group='middle')"}),
        row(["DE"], 0.9, 0.01, 10, **{C.MEASURE: "R(group='tail')"}),
        row(["AT"], 1 / 2, 0.01, 40, **{C.MEASURE: "R(group='head')"}),
    ]
    table = pa.Table.from_pylist(rows, schema=TYPES)
    found = [each for batch in group_rows.to_item_rows(table) for each in batch.to_pylist()]
    facts = (C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, C.VALUE, "n_users", "n_left_out", "is_small", "ci_method")
    assert sorted([tuple(each[name] for name in facts) for each in found], key=str) == [
        ("all", [], "ItemMAD(R)", 10, 0.25, 70, 0, False, "none"),
        ("country", ["AT"], "ItemMAD(R)", 10, None, 0, 0, True, "none"),
        ("country", ["DE"], "ItemMAD(R)", 10, 0.375, 30, 10, False, "none"),
    ]


def test_one_group_of_items_is_compared_with_nothing() -> None:
    table = pa.Table.from_pylist([row([], 0.5, 0.1, 90, **{C.MEASURE: "R(group='head')"})], schema=TYPES)
    assert list(group_rows.to_item_rows(table)) == []


def test_groups_of_equal_users_have_bounds_by_the_range_of_their_measure() -> None:
    at, de = row(["AT"], 0.0, 0.0, 40), row(["DE"], 1 / 2, 0.02, 80)
    groups = np.array([0.0, 1 / 2]), np.array([0.0, 0.02]), np.array([39.0, 79.0]), 0.9
    worst = said_of(at, de)["country", "WorstGroup(RR)"]
    assert estimate(worst) == pytest.approx((0.0, *worst_interval(GroupMeans(*groups, bounds=(0, 1)))), abs=1e-12)
    assert worst["ci_high"] > 0
    of_gains = said_of(*({**each, C.MEASURE: "DCG"} for each in (at, de)))["country", "WorstGroup(DCG)"]
    assert [of_gains[name] for name in (C.VALUE, "ci_low", "ci_high", "ci_method")] == [0.0, None, None, "none"]
    together = {C.MEASURE: "CatalogCoverage", "ci_method": "jackknife"}
    coverage = said_of(*({**each, **together} for each in (at, de)))["country", "WorstGroup(CatalogCoverage)"]
    assert estimate(coverage) == (0.0, 0.0, 0.0)


# ---- how far the groups of a slicing lie apart, from rows of metrics and of their groups, without a session --------


METRICS: Final = {
    **dict.fromkeys((C.EVALUATION, C.MODEL_ID, C.SLICE, C.MEASURE, C.SLICE_VALUE), pa.string()),
    C.EVALUATION_DATE: pa.date32(),
    C.SLICE_VALUES: pa.list_(pa.string()),
    C.K: pa.int32(),
    "is_small": pa.bool_(),
    **dict.fromkeys((C.VALUE, "ci_low", "ci_high", "ci_level"), pa.float64()),
}
NAMED: Final = {C.MODEL_ID: "als", C.SLICE: "country", C.MEASURE: "RR", C.K: 10, "is_small": False, "ci_level": 0.9}


def table(*rows: dict[str, Any], night: bool = False) -> pa.Table:
    """Make rows of metrics, or of their groups."""
    names = [name for name in METRICS if night or name not in gap_rows.NIGHT]
    return pa.Table.from_pylist(
        [{**NAMED, **row} for row in rows], schema=pa.schema([(name, METRICS[name]) for name in names])
    )


def group(name: str | None, value: float | None, **other: object) -> dict[str, Any]:
    """Give a row of the metrics of a group."""
    return {C.SLICE_VALUES: [name], C.SLICE_VALUE: name or C.UNKNOWN, C.VALUE: value, **other}


def said(kind: str, value: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    """Give a row of what is said of the groups."""
    numbers = {C.VALUE: value, "ci_low": low, "ci_high": high}
    return {C.SLICE_VALUES: [], C.SLICE_VALUE: "", C.MEASURE: f"{kind}(RR)", **numbers}


def test_groups_that_are_compared_are_known_not_small_and_have_a_value() -> None:
    rows = table(
        group("DE", 0.5),
        group(None, 0.5),
        group("FR", None),
        group("AT", 0.0, is_small=True),
        group("", 0.0),
        {C.SLICE_VALUES: ["DE", None], C.VALUE: 1.0},
        {C.SLICE_VALUES: [], C.VALUE: 1.0},
    )
    assert group_rows.is_compared(rows).tolist() == [True, False, False, False, True, False, True]
    assert group_rows.is_compared(rows.slice(1, 4)).tolist() == [False, False, False, True]


def test_what_is_said_of_groups_and_the_extremes_are_put_into_one_row() -> None:
    """Of two groups that are equal, the one whose name comes first is named."""
    values = {"FR": 1 / 2, "DE": 1 / 2, "CH": 1 / 4, "BE": 1 / 4}
    metrics = table(
        *(group(name, value) for name, value in values.items()),
        *(group(None, 0.0), group("AT", 1.0, is_small=True), group("US", None)),
        {C.SLICE: "all", C.SLICE_VALUES: [], C.SLICE_VALUE: "", C.VALUE: 1 / 3},
    )
    of_groups = table(
        said("GroupGap", 1 / 4, 0.1, 0.4),
        said("GroupRatio", 1 / 2, 0.2, 0.8),
        said("UserMAD", 1 / 8),
        said("WorstGroup", 1 / 4, 0.0, 0.9),
        said("ItemMAD", 0.7),
    )
    found = gap_rows.to_gaps(metrics, of_groups)
    assert found.column_names == list(gap_rows.COLUMNS)
    assert found.to_pylist() == [
        {
            **{C.MODEL_ID: "als", C.SLICE: "country", C.MEASURE: "RR", C.K: 10},
            **{"n_groups": 4, "n_left_out": 3, "gap": 1 / 4, "ci_low": 0.1, "ci_high": 0.4, "ci_level": 0.9},
            **{"ratio": 1 / 2, "ratio_ci_low": 0.2, "ratio_ci_high": 0.8, "mad": 1 / 8},
            **{"lowest_group": "BE", "lowest_value": 1 / 4, "highest_group": "DE", "highest_value": 1 / 2},
        }
    ]
    assert (found.schema.field("n_groups").type, found.schema.field("n_left_out").type) == (pa.int32(), pa.int32())


def test_slicings_measures_cutoffs_and_nights_are_kept_apart() -> None:
    """They come in the order in which the metrics have them; the second has no group that counts."""
    days = [date(2026, 1, day) for day in (2, 1)]
    keys: list[dict[str, Any]] = [
        {C.K: 5},
        {C.K: 10, "is_small": True},
        {C.MEASURE: "P"},
        {C.MODEL_ID: "ease"},
        {C.SLICE: "tier"},
    ]
    metrics = table(
        *(
            group(name, value, **{C.EVALUATION: "e", C.EVALUATION_DATE: day}, **key)
            for name, value in (("a", 0.25), ("b", 0.75))
            for day in days
            for key in keys
        ),
        night=True,
    )
    gap = {**said("GroupGap", 0.5), C.K: 5, C.EVALUATION: "e", C.EVALUATION_DATE: days[1]}
    rows = gap_rows.to_gaps(metrics, table(gap, night=True)).to_pylist()
    assert list(rows[0])[:2] == list(gap_rows.NIGHT)
    assert [row[C.EVALUATION_DATE] for row in rows] == [day for day in days for _ in keys]
    assert [(row[C.MODEL_ID], row[C.SLICE], row[C.MEASURE], row[C.K]) for row in rows[: len(keys)]] == [
        ("als", "country", "RR", 5),
        ("als", "country", "RR", 10),
        ("als", "country", "P", 10),
        ("ease", "country", "RR", 10),
        ("als", "tier", "RR", 10),
    ]
    assert [row["gap"] for row in rows] == [*[None] * len(keys), 0.5, *[None] * (len(keys) - 1)]
    small = rows[1]
    extremes = ("lowest_group", "lowest_value", "highest_group", "highest_value")
    assert (small["n_groups"], small["n_left_out"], *(small[name] for name in extremes)) == (0, 2, *[None] * 4)


def test_without_slices_there_is_no_gap() -> None:
    everyone = table({C.SLICE: "all", C.SLICE_VALUES: [], C.SLICE_VALUE: "", C.VALUE: 1 / 3})
    found = gap_rows.to_gaps(everyone, table())
    assert (found.num_rows, found.column_names) == (0, list(gap_rows.COLUMNS))


def test_columns_may_be_declared_without_null() -> None:
    metrics, group_metrics = table(group("a", 0.25), group("b", 0.75)), table(said("GroupGap", 0.5))
    declared = pa.schema([field.with_nullable(field.name != C.MEASURE) for field in metrics.schema])
    found = gap_rows.to_gaps(metrics.cast(declared), group_metrics)
    assert found.to_pylist() == gap_rows.to_gaps(metrics, group_metrics).to_pylist()
