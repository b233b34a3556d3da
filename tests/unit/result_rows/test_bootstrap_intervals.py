"""The bootstrap of the moments node, without a session: what a partition passes on, and what is made of it."""

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
from rankeval_spark.result_rows.metric_rows import BootstrapIntervals
from rankeval_spark.statistics import hashed_random
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    hashes = hashed_random.user_hashes([str(user) for user in range(N_USERS)]).tolist()
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
