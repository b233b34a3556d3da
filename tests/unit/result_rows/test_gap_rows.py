"""How far the groups of a slicing lie apart, from rows of metrics and of their groups, without a session."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.result_rows import gap_rows, group_rows

TYPES: Final = {
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
    names = [name for name in TYPES if night or name not in gap_rows.NIGHT]
    return pa.Table.from_pylist(
        [{**NAMED, **row} for row in rows], schema=pa.schema([(name, TYPES[name]) for name in names])
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
