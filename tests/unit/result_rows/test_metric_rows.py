"""Rows of ``metrics`` from merged moments: spread and interval, without a session."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.statistics import intervals


def merged(*rows: tuple[int, float | None, float | None]) -> pa.RecordBatch:
    """Moments of some groups of values that are not skewed: (n, mean, m2)."""
    n, mean, m2 = zip(*rows, strict=True)
    none = pa.array([0.0] * len(rows))
    doubles = {"mean": pa.array(mean, pa.float64()), "m2": pa.array(m2, pa.float64()), "m3": none, "lean": none}
    return pa.RecordBatch.from_pydict({"n": pa.array(n, pa.int64()), **doubles})


def anywhere(n_rows: int) -> np.ndarray:
    """Bounds of values that may be any number."""
    return np.array([(-np.inf, np.inf)] * n_rows)


def test_no_two_slices_read_alike() -> None:
    values = [None, "(unknown)", '"(unknown)"', "DE", "a*b", "", '"', '""', "*", 'a"b']
    slices = [[], *([one] for one in values), *([one, two] for one in values for two in values)]
    words = metric_rows.readable(pa.array(slices, pa.list_(pa.string()))).to_pylist()
    assert words == [C.CROSSING.join(map(C.readable_value, one)) for one in slices]
    assert words[:5] == ["", "(unknown)", '"(unknown)"', '"""(unknown)"""', "DE"]
    crossed = words[1 + len(values) :]
    assert len(set(words[1 : 1 + len(values)])) == len(values)
    assert len(set(crossed)) == len(crossed)


def test_intervals_are_those_of_the_statistics_and_null_where_there_is_none() -> None:
    rows = merged((10, 0.7, 10 * 0.7 * 0.3), (3, 2.0, 2.0), (1, 1.0, 0.0), (0, None, 0.0))
    found = metric_rows.metric_spread(
        rows,
        is_proportion=np.array([True, False, False, True]),
        is_ratio=np.zeros(4, dtype=bool),
        bounds=anywhere(4),
        confidence=0.9,
    )
    wilson = tuple(map(float, intervals.wilson_interval(10, 0.7, 10 * 0.7 * 0.3, 0.9)))
    student = tuple(map(float, intervals.t_interval(3, 2.0, 2.0, 0.9)))
    ends = list(zip(found["ci_low"].to_pylist(), found["ci_high"].to_pylist(), strict=True))
    assert ends == [wilson, pytest.approx(student, rel=0, abs=1e-12), (None, None), (None, None)]
    assert found["ci_method"].to_pylist() == ["wilson", "hall", "none", "none"]


def test_squares_beyond_the_range_of_a_double_leave_no_interval() -> None:
    """The deviations of weights of 1e300 have no squares, and a ratio of infinite ones is NULL."""
    rows = merged((40, 0.8, None), (40, 1e300, np.inf), (40, 0.8, 1.0))
    found = metric_rows.metric_spread(
        rows,
        is_proportion=np.zeros(3, dtype=bool),
        is_ratio=np.array([True, False, True]),
        bounds=anywhere(3),
        confidence=0.9,
    )
    assert found["ci_method"].to_pylist() == ["none", "none", "delta"]
    for name in ("std_dev", "std_error", "ci_low", "ci_high"):
        assert [value is None for value in found[name].to_pylist()] == [True, True, False], name


def test_deviations_are_those_of_the_sample_and_null_below_two_users() -> None:
    rows = merged((3, 2.0, 2.0), (1, 1.0, 0.0), (0, None, 0.0))
    found = metric_rows.metric_spread(
        rows,
        is_proportion=np.array([False, False, True]),
        is_ratio=np.zeros(3, dtype=bool),
        bounds=anywhere(3),
        confidence=0.9,
    )
    assert found["std_dev"].to_pylist() == [1.0, None, None]
    assert found["std_error"].to_pylist() == [pytest.approx(1 / np.sqrt(3)), None, None]
