"""Rows of ``metrics``: spread and interval, and the bootstrap from partitions to intervals, without a session."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine import aggregates
from rankeval_spark.engine.scorer import COUNTED, IS_EVALUATED
from rankeval_spark.engine.slices import USER_HASH
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.result_rows.metric_rows import BootstrapIntervals
from rankeval_spark.statistics import hashed_random, intervals
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from collections.abc import Iterator


# ---- rows of ``metrics`` from moments_of moments: spread and interval, without a session ---------------------------


def moments_of(*rows: tuple[int, float | None, float | None]) -> pa.RecordBatch:
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
    words = metric_rows.join_slice_values(pa.array(slices, pa.list_(pa.string()))).to_pylist()
    assert words == [C.CROSSING.join(map(C.readable_value, one)) for one in slices]
    assert words[:5] == ["", "(unknown)", '"(unknown)"', '"""(unknown)"""', "DE"]
    crossed = words[1 + len(values) :]
    assert len(set(words[1 : 1 + len(values)])) == len(values)
    assert len(set(crossed)) == len(crossed)


def test_intervals_are_those_of_the_statistics_and_null_where_there_is_none() -> None:
    rows = moments_of((10, 0.7, 10 * 0.7 * 0.3), (3, 2.0, 2.0), (1, 1.0, 0.0), (0, None, 0.0))
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
    rows = moments_of((40, 0.8, None), (40, 1e300, np.inf), (40, 0.8, 1.0))
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
    rows = moments_of((3, 2.0, 2.0), (1, 1.0, 0.0), (0, None, 0.0))
    found = metric_rows.metric_spread(
        rows,
        is_proportion=np.array([False, False, True]),
        is_ratio=np.zeros(3, dtype=bool),
        bounds=anywhere(3),
        confidence=0.9,
    )
    assert found["std_dev"].to_pylist() == [1.0, None, None]
    assert found["std_error"].to_pylist() == [pytest.approx(1 / np.sqrt(3)), None, None]


# ---- the bootstrap of the moments node, without a session: what a partition passes on, and what is made of it ------


N_USERS: Final = 240
MODELS: Final = ("als", "popular")
KS: Final = (1, 5)
COUNTRIES: Final = ("AT", "DE", None)
SLICES: Final = ((), ("_segment_0",))
DRAWS: Final = Draws(replicates=100, seed=3)
LEVEL: Final = 0.9
SUMMARISER: Final = aggregates.PartialAggregator(("p", "r"), {"r": "r__weight"}, SLICES, KS, DRAWS)
MERGER: Final = BootstrapIntervals(2, DRAWS, LEVEL)

Row = dict[str, object]
Found = dict[tuple[object, ...], list[float]]


def rows() -> list[Row]:
    """Users of three countries, two models, two cutoffs; a measure that is undefined for some, and a ratio of sums."""
    draw = np.random.default_rng(0)
    hashes = hashed_random.hash_ids([str(user) for user in range(N_USERS)]).tolist()
    return [
        {
            **{C.MODEL_ID: model, C.K: k, "_segment_0": COUNTRIES[user % 3], USER_HASH: hashes[user]},
            **dict.fromkeys(COUNTED, 1),
            IS_EVALUATED: True,
            "p": None if user % 7 == 0 else float(draw.integers(0, 4)) / 4,
            **{"r": float(draw.random()), "r__weight": float(draw.integers(1, 5))},
        }
        for user, model, k in itertools.product(range(N_USERS), MODELS, KS)
    ]


def expected(data: list[Row]) -> Found:
    """Draw a replicate at a time: standard error and interval of each group and measure."""
    found: Found = {}
    for model, index, k in itertools.product(MODELS, range(2), KS):
        for country in COUNTRIES if index else [""]:
            own = [
                row for row in data if (row[C.MODEL_ID], row[C.K]) == (model, k) and country in ("", row["_segment_0"])
            ]
            for measure, name in enumerate(("p", "r")):
                kept = [row for row in own if row[name] is not None]
                users = np.array([row[USER_HASH] for row in kept])
                below = np.array([row["r__weight"] if name == "r" else 1.0 for row in kept], dtype=np.float64)
                above = np.array([row[name] for row in kept], dtype=np.float64) * below
                weights = hashed_random.poisson_weights(users, seed=3, replicates=100).astype(np.float64)
                drawn = (weights.T @ above) / (weights.T @ below)
                key = (model, index, (country,) if index else (), k, measure)
                found[key] = [float(drawn.std(ddof=1)), *np.quantile(drawn, [0.05, 0.95]).tolist()]
    return found


def passed_on(data: list[Row]) -> list[pa.RecordBatch]:
    """Return what the worker makes of a partition."""
    return list(SUMMARISER.summarise(iter(pa.Table.from_pylist(data).to_batches())))


def merged(batches: list[pa.RecordBatch]) -> Found:
    """Merge group by group, as Spark does."""
    table = pa.Table.from_batches(batches)
    keys = [tuple(map(str, row.values())) for row in table.select(list(aggregates.GROUP)).to_pylist()]
    found: Found = {}
    for key in set(keys):
        group = table.filter(pa.array([each == key for each in keys]))
        scalars = tuple(group[name][0] for name in aggregates.GROUP)
        for row in SUMMARISER.state.pool(MERGER.merge(scalars, group)).to_pylist():
            where = (row[C.MODEL_ID], row["slice_index"], tuple(row[C.SLICE_VALUES]), row[C.K])
            found[(*where, row["measure_index"])] = [_number(row[name]) for name in aggregates.DRAWN]
    return found


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def assert_close(found: Found, wanted: Found) -> None:
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        np.testing.assert_allclose(found[key], values, rtol=0, atol=1e-12, err_msg=str(key))


def dealt(data: list[Row], n_partitions: int) -> Iterator[list[Row]]:
    """Deal users to partitions."""
    for partition in range(n_partitions):
        yield [row for row in data if hash(row[USER_HASH]) % n_partitions == partition]


@pytest.mark.parametrize("n_partitions", [1, 3, 25])
def test_intervals_are_those_of_a_naive_bootstrap_on_any_partitioning(n_partitions: int) -> None:
    """With 25 partitions every group is few users, which are passed on as they are."""
    data = rows()
    batches = [batch for part in dealt(data, n_partitions) for batch in passed_on(part)]
    states = pa.Table.from_batches(batches)
    has_sums = states["drawn_sums"].null_count < states.num_rows
    has_users = states["drawn_users"].null_count < states.num_rows
    assert (has_sums, has_users) == {1: (True, False), 3: (True, True), 25: (False, True)}[n_partitions]
    found = merged(batches)
    assert_close(found, expected(data))
    assert merged(batches[::-1]) == found


def test_numbers_are_the_same_where_little_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    n_before = len(passed_on(data))
    monkeypatch.setattr(aggregates, "HELD_BYTES", 1)
    batches = passed_on(data)
    assert len(batches) >= n_before
    assert_close(merged(batches), expected(data))


def test_moments_pass_through_as_they_are() -> None:
    data = rows()
    plain = aggregates.PartialAggregator(("p", "r"), {"r": "r__weight"}, SLICES, KS, None)
    without = pa.Table.from_batches(plain.summarise(iter(pa.Table.from_pylist(data).to_batches())))
    batches = pa.Table.from_batches(passed_on(data))
    kept = batches.filter(batches[aggregates.STATE].is_valid()).drop_columns(list(aggregates.STATES))
    assert kept.to_pylist() == without.to_pylist()


def test_user_without_a_value_is_not_passed_on() -> None:
    nobody: list[Row] = [{**row, "p": None, "r": None, "r__weight": None} for row in rows()[:8]]
    table = pa.Table.from_pylist(nobody, schema=pa.Table.from_pylist(rows()).schema)
    batches = list(SUMMARISER.summarise(iter(table.to_batches())))
    assert all(batch["drawn_users"].null_count == batch.num_rows for batch in batches)
    assert np.isnan(list(merged(batches).values())).all()
