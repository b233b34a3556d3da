"""Weights of users in the means: against numpy, a jackknife and a simulation; equal weights change nothing."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError, RefusedCallError
from rankeval_spark.measures import Measure, MeasureSet
from tests.support.skewed import hall

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

N = 300
MEASURES = ("nDCG@5", "Success@3", "P(agg='micro',denom='len')@5", "AP", "GMAP", "UserValue(name='x')")
SPREAD = ("value", "std_dev", "std_error", "ci_low", "ci_high", "n_users", "n_undefined")


@cache
def inputs() -> dict[str, pa.Table]:
    """Return lists of two models, judgements, own values, halves of the users and lognormal weights."""
    draw = np.random.default_rng(3)
    users = np.arange(N)
    log = [
        (model, user, item, float(draw.random()))
        for model in ("a", "b")
        for user in users.tolist()
        for item in draw.choice(30, draw.integers(3, 8), replace=False).tolist()
    ]
    judged = [(user, item) for user in users.tolist() for item in draw.choice(30, 5, replace=False).tolist()]
    return {
        "recommendations": _table(["model_id", "user_id", "item_id", "score"], log),
        "held_out": _table(["user_id", "item_id"], judged),
        "user_values": pa.table({"user_id": users, "name": ["x"] * N, "value": draw.gamma(2, 3, N)}),
        "segments": pa.table({"user_id": users, "half": ["even", "odd"] * (N // 2)}),
        "user_weights": pa.table({"user_id": users, "weight": draw.lognormal(0, 0.7, N)}),
    }


def _table(names: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def evaluated(weights: object, **asked: Any) -> Evaluation:  # noqa: ANN401 - arguments of evaluate
    frames = {
        **inputs(),
        "user_weights": None if weights is None else pa.table({"user_id": range(N), "weight": weights}),
    }
    return evaluate(**{**frames, "measures": list(MEASURES), "slices": ["half"], "baseline": "a", **asked})


def keyed(rows: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    names = ("model_id", "slice_value", "measure", "k", "test")
    return {tuple(row.get(name) for name in names): row for row in rows.to_pylist()}


@pytest.mark.parametrize("weight", [1.0, 0.1])
@pytest.mark.parametrize("asked", [{}, {"intervals": {"method": "bootstrap", "replicates": 100}}])
def test_equal_weights_change_no_mean_error_interval_or_comparison(weight: float, asked: dict[str, Any]) -> None:
    plain, weighted = evaluated(None, **asked), evaluated([weight] * N, **asked)
    for name, columns in (
        ("metrics", SPREAD),
        ("comparisons", ("delta", "ci_low", "ci_high", "p_value", "p_adjusted")),
    ):
        wanted, found = keyed(getattr(plain, name)), keyed(getattr(weighted, name))
        assert found.keys() == wanted.keys()
        for key, row in wanted.items():
            for column in columns:
                assert _is_close(found[key][column], row[column]), (key, column, found[key][column], row[column])


def _is_close(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-11, abs_tol=1e-12)


@cache
def both() -> tuple[Evaluation, Evaluation]:
    """Evaluate without weights and with them."""
    return evaluated(None), evaluated(inputs()["user_weights"]["weight"])


def parts(measure: Measure, model: str, half: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of users and their weights in the mean, as ``user_metrics`` of an evaluation without weights has them."""
    users = [
        row
        for row in both()[0].user_metrics.to_pylist()
        if (row["model_id"], row["k"]) == (model, measure.k) and half in ("", dict(row["segments"])["half"])
    ]
    own = inputs()["user_weights"]["weight"].to_pylist()
    rows = [row for row in users if row[measure.column] is not None]
    below = [row.get(f"{measure.column}__weight", 1.0) for row in rows]
    values = np.array([row[measure.column] for row in rows])
    return values, np.array([own[row["user_id"]] for row in rows]) * np.array(below)


@pytest.mark.parametrize("text", MEASURES)
@pytest.mark.parametrize("half", ["", "odd"])
def test_means_and_intervals_are_those_of_a_ratio_of_sums(text: str, half: str) -> None:
    measure = Measure.parse(text)
    values, weights = parts(measure, "b", half)
    row = keyed(both()[1].metrics)["b", half, measure.label, measure.k, None]
    mean, n = np.average(values, weights=weights), len(values)
    error = math.sqrt(n / (n - 1) * (weights**2 * (values - mean) ** 2).sum()) / weights.sum()
    ends = hall(values * weights, weights, level=0.95, bounds=measure.entry.bounds)
    published = math.exp if measure.link == "log" else float
    assert math.isclose(row["value"], published(mean), rel_tol=1e-12, abs_tol=1e-12)
    assert math.isclose(row["std_error"], error, rel_tol=1e-9)
    assert np.allclose([row["ci_low"], row["ci_high"]], [published(end) for end in ends], rtol=0, atol=1e-12)
    assert row["n_users"] == n
    if "micro" not in text:
        assert math.isclose(row["n_effective"], weights.sum() ** 2 / (weights**2).sum(), rel_tol=1e-12)


def test_the_error_is_near_that_of_a_jackknife_over_users() -> None:
    measure = Measure.parse("nDCG@5")
    values, weights = parts(measure, "b", "")
    without = (np.dot(values, weights) - values * weights) / (weights.sum() - weights)
    jackknife = math.sqrt((N - 1) / N * ((without - without.mean()) ** 2).sum())
    row = keyed(both()[1].metrics)["b", "", "nDCG", 5, None]
    assert math.isclose(row["std_error"], jackknife, rel_tol=0.01)


def test_comparisons_are_of_weighted_differences() -> None:
    measure = Measure.parse("nDCG@5")
    (own, weights), (other, _) = (parts(measure, model, "") for model in ("b", "a"))
    row = keyed(both()[1].comparisons)["b", "", "nDCG", 5, "t"]
    differences = own - other
    delta = np.average(differences, weights=weights)
    error = math.sqrt(N / (N - 1) * (weights**2 * (differences - delta) ** 2).sum()) / weights.sum()
    assert math.isclose(row["delta"], delta, rel_tol=0, abs_tol=1e-12)
    assert math.isclose(row["std_error"], error, rel_tol=1e-9)
    assert (row["method"], row["n_users"]) == ("delta", N)


def test_the_interval_covers_the_mean_in_95_of_100_samples() -> None:
    """A thousand slices of 200 users are as many samples; weights have a squared variation of 0.28."""
    draw, n, samples = np.random.default_rng(11), 200, 1000
    users = np.arange(n * samples)
    log = pa.table({"user_id": users, "item_id": users * 0, "score": users * 1.0})
    result = evaluate(
        log,
        log.select(["user_id", "item_id"]),
        measures=["UserValue(name='x')"],
        user_values=pa.table({"user_id": users, "name": ["x"] * len(users), "value": draw.gamma(2, 1, len(users))}),
        user_weights=pa.table({"user_id": users, "weight": draw.lognormal(0, 0.5, len(users))}),
        segments=pa.table({"user_id": users, "sample": (users // n).astype(str)}),
        slices=["sample"],
    )
    rows = [row for row in result.metrics.to_pylist() if row["slice"] == "sample"]
    assert len(rows) == samples
    assert 0.94 <= np.mean([row["ci_low"] <= 2 <= row["ci_high"] for row in rows]) <= 0.96


LOG = pa.table({"user_id": ["ann", "bob", "cem"], "item_id": ["x"] * 3, "score": [1.0] * 3})
JUDGED = pa.table({"user_id": ["ann", "bob", "cem"], "item_id": ["x", "y", "x"]})


@pytest.mark.parametrize(
    ("users", "given"), [(["ann", "bob"], [1.0, 3.0]), (["ann", "bob", "cem"], [1.0, 3.0, math.nan])]
)
@pytest.mark.filterwarnings("ignore:user_weights. 1 of 3 rows")
def test_a_user_without_a_weight_is_in_no_mean(users: list[str], given: list[float]) -> None:
    weights = pa.table({"user_id": users, "weight": given})
    result = evaluate(LOG, JUDGED, measures=["RR", "Success@1"], user_weights=weights, policies={"missing": "zero"})
    for row in result.metrics.to_pylist():
        assert (row["value"], row["n_users"], row["n_undefined"]) == (0.25, 2, 1)
    assert [row["rr"] for row in result.user_metrics.to_pylist() if row["user_id"] == "cem"] == [None, None]


@pytest.mark.parametrize("given", [[0.0, 0.0], [-1.0, math.inf]])
def test_weights_of_which_none_is_above_zero_are_refused(given: list[float]) -> None:
    weights = pa.table({"user_id": ["ann", "bob"], "weight": given})
    result = evaluate(LOG, JUDGED, measures=["RR"], user_weights=weights)
    with pytest.raises(
        RefusedCallError, match=r"user_weights.*2 rows and none that can be used .2 invalid_user_weights"
    ):
        result.metrics  # noqa: B018 - it is computed when it is used


def test_two_weights_of_a_user_are_refused() -> None:
    weights = pa.table({"user_id": ["ann", "ann"], "weight": [1.0, 2.0]})
    result = evaluate(LOG, JUDGED, measures=["RR"], user_weights=weights)
    with pytest.raises(RefusedCallError, match="user 'ann' has a weight twice"):
        result.metrics  # noqa: B018 - it is computed when it is used


def test_measures_of_all_lists_together_have_no_weights_and_a_note_says_so() -> None:
    weights = pa.table({"user_id": ["ann", "bob", "cem"], "weight": [1.0, 3.0, 4.0]})
    asked: dict[str, Any] = {"measures": ["RR", "ItemCoverage"], "train": JUDGED}
    (plain, found) = (evaluate(LOG, JUDGED, user_weights=given, **asked) for given in (None, weights))
    coverage = [
        [row["value"] for row in each.metrics.to_pylist() if row["measure"] == "ItemCoverage"]
        for each in (plain, found)
    ]
    assert coverage[0] == coverage[1]
    assert any("not ItemCoverage, of all lists together" in note for note in found.notes)
    assert not any("user_weights" in note for note in plain.notes)


def test_a_measure_with_weights_keeps_its_name_and_is_recorded_as_another() -> None:
    plain = Measure.parse("nDCG@5")
    own = plain.weighted_by_user()
    assert (str(own), own.column, own == plain) == (str(plain), plain.column, True)
    assert own.recorded_options == {**plain.recorded_options, "user_weights": "True"}
    again = Measure.recorded("nDCG", own.recorded_options, 5)
    assert (again.weight_column, again.needs) == ("ndcg__weight", ("user_weights",))
    assert MeasureSet.of([again]).lacking([]) == {"user_weights": ["nDCG"]}


def test_weights_need_their_column() -> None:
    with pytest.raises(InputError, match="no column 'weight'"):
        evaluate(LOG, JUDGED, measures=["RR"], user_weights=pa.table({"user_id": ["ann"], "w": [1.0]}))
