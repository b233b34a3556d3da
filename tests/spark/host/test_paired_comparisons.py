"""Models against a baseline on the same users, held against scipy on plain lists."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as F
from scipy import stats

from rankeval_spark import schemas
from rankeval_spark.config import Comparisons
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.engine.planning import outputs_of
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.spark.plans import result_frames
from rankeval_spark.statistics import hashed_random, paired_tests
from rankeval_spark.statistics.resampling import Draws
from rankeval_spark.sums.published import UserTotals
from rankeval_spark.sums.sums import COMPARISONS, Differences
from tests.support.frames import scored_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ASKED = MeasureSet.parse(["P@1", "RMSE", "R(agg='micro')@1"])
SLICES = [("country",)]
N_USERS = 60
EVERY_TEST = ("t", "randomization", "bootstrap", "wilcoxon", "sign", "tukey", "randomized_tukey")


def values() -> dict[tuple[str, str, int], tuple[float | None, float]]:
    """P and RMSE by (model, user, k): the new model is better, one user has no value, one no list of it."""
    draw = random.Random(3)
    found: dict[tuple[str, str, int], tuple[float | None, float]] = {}
    for user in range(N_USERS):
        base = draw.randrange(5) / 8
        for model, gain in (("base", 0.0), ("new", 1 / 8), ("other", draw.choice((-1, 0, 1)) / 8)):
            found[model, f"u{user}", 1] = (base + gain + draw.randrange(2) / 8, 1.0)
            found[model, f"u{user}", 0] = (None, base + gain + draw.randrange(3) / 8)
    found["new", "u5", 1] = (None, 1.0)
    del found["new", "u7", 1]
    return found


def users(spark: SparkSession, partitions: int = 3) -> DataFrame:
    rows: list[dict[str, Any]] = [
        {
            **{"model_id": model, "user_id": user, "k": k, "p": p, "rmse": rmse if k == 0 else None},
            **dict.fromkeys(ASKED.stored[2:], 1.0),
            "segments": {"country": None if user == "u3" else ("FR", "DE")[int(user[1:]) < 50]},
        }
        for (model, user, k), (p, rmse) in values().items()
    ]
    measured = ("p", *ASKED.stored[1:])
    frame = scored_rows(spark, *rows, measures=measured)
    return frame.withColumns({name: F.col(name).cast("double") for name in measured}).repartition(partitions)


def comparisons(frame: DataFrame, **options: Any) -> pa.Table:  # noqa: ANN401 - of Comparisons
    asked = Comparisons(**{"baseline": "base", **options})
    request = Request(
        measures=tuple(map(str, ASKED.measures)),
        slices=tuple(SLICES),
        slicing=Slicing(min_slice_size=5),
        comparisons=asked,
    )
    differences = Differences(request, outputs_of(request))
    totals = UserTotals(ASKED, {COMPARISONS: differences}, ("country",))
    return result_frames.to_published_users([frame], totals)[COMPARISONS]


def rows_of(table: pa.Table) -> dict[tuple[str, ...], dict[str, Any]]:
    keys = ("baseline_model_id", "model_id", "slice_value", "measure", "test")
    rows = table.to_pylist()
    found = {tuple(row[name] for name in keys): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_differences_are_those_of_the_users_that_both_models_have(spark: SparkSession) -> None:
    frame = comparisons(users(spark))
    assert frame.schema == arrow_schema(schemas.COMPARISONS)
    found = rows_of(frame)
    assert {key[:2] for key in found} == {("base", "new"), ("base", "other")}
    assert {key[2] for key in found} == {"", "FR", "DE", "(unknown)"}
    assert {key[3:] for key in found} == {("P", "t"), ("RMSE", "t"), ("R(agg='micro')", "t")}

    known = values()
    common = [f"u{user}" for user in range(N_USERS) if user not in (5, 7)]
    new, base = (np.array([known[model, user, 1][0] for user in common], dtype=float) for model in ("new", "base"))
    test = stats.ttest_rel(new, base)
    interval = test.confidence_interval(0.95)
    row = found["base", "new", "", "P", "t"]
    assert (row["n_users"], row["method"], row["k"], row["slice"]) == (58, "t", 1, "all")
    assert row["p_value"] == pytest.approx(test.pvalue, rel=1e-9)
    for name, expected in (
        ("value", new.mean()),
        ("baseline_value", base.mean()),
        ("delta", (new - base).mean()),
        ("ci_low", interval.low),
        ("ci_high", interval.high),
        ("relative_delta", new.mean() / base.mean() - 1),
        ("effect_size", (new - base).mean() / (new - base).std(ddof=1)),
    ):
        assert row[name] == pytest.approx(expected, rel=1e-12), name
    signs = np.sign(new - base)
    assert (row["n_wins"], row["n_ties"], row["n_losses"]) == tuple((signs == side).sum() for side in (1, 0, -1))

    french, unknown = found["base", "new", "FR", "P", "t"], found["base", "new", "(unknown)", "P", "t"]
    assert (french["n_users"], french["reason"], french["is_small"]) == (10, None, False)  # above min_slice_size
    assert french["p_value"] is not None
    assert (unknown["n_users"], unknown["reason"], unknown["is_small"]) == (1, "one_user", True)
    assert unknown["delta"] is not None
    assert all(unknown[name] is None for name in ("p_value", "p_adjusted", "verdict"))

    # Small slices have no p and the others are one family: two models, three measures, everyone and two countries,
    # but for one measure of which fewer than six users of a country differ.
    tested = sorted(row["p_value"] for row in found.values() if row["p_value"] is not None)
    assert {row["family_size"] for row in found.values()} == {len(tested)} == {17}
    least = min(found.values(), key=lambda row: row["p_value"] or 1.0)
    assert least["p_adjusted"] == pytest.approx(min(17 * tested[0], 1.0), rel=1e-12)
    assert row["verdict"] == "better"
    assert found["base", "new", "", "RMSE", "t"]["verdict"] == "worse"  # of errors, more is worse
    assert found["base", "other", "", "P", "t"]["verdict"] == "undecided"


def test_every_two_models_are_compared_once_by_every_test_whatever_the_partitions(spark: SparkSession) -> None:
    drawn = {"replicates": 200, "seed": 5}
    options = {"pairs": "all", "baseline": "new", "tests": EVERY_TEST, "wilcoxon_zeros": "pratt", **drawn}
    one, other = (rows_of(comparisons(users(spark, parts), **options)) for parts in (1, 7))
    assert {key[:2] for key in one} == {("new", "base"), ("new", "other"), ("base", "other")}
    assert {key[4] for key in one if key[3] == "P"} == set(EVERY_TEST)
    assert {key[4] for key in one if key[3] == "R(agg='micro')"} == {"t"}
    assert {row["method"] for key, row in one.items() if key[4] == "wilcoxon"} == {"pratt"}
    assert one.keys() == other.keys()
    for key, row in one.items():
        if row["method"] == "monte_carlo":
            assert (other[key]["p_value"], other[key]["replicates"]) == (row["p_value"], 200)
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-9, abs=1e-15) if isinstance(value, float) else value
            assert other[key][name] == same, (key, name)

    # Ids are hashed as the statistics hash them.
    known = values()
    common = [f"u{user}" for user in range(N_USERS) if user not in (5, 7)]
    d = np.array([[known["base", user, 1][0] - known["new", user, 1][0]] for user in common])  # type: ignore[operator]  # both are there
    sums = paired_tests.sign_sums(d, hashed_random.user_hashes(common), Draws(200, 5))
    p = paired_tests.monte_carlo_p(d.sum(axis=0), np.abs(d).sum(axis=0), sums[0])
    assert one["new", "base", "", "P", "randomization"]["p_value"] == p[0]
