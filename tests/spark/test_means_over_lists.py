"""The policy ``unit='list'``: means over lists with users as clusters, the whole way, against naive loops."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import columns as C, evaluate
from rankeval_spark.app.compare import Wanted, with_night
from rankeval_spark.app.night import run_night
from rankeval_spark.app.past import published_nights
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import Results
from rankeval_spark.statistics import hashing
from tests.support import nights
from tests.support.frames import by, judgements, table, tuples
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.nights import Workspace

LEVEL: Final = 0.9
MEASURES: Final = ("P(denom='len')@2", "Success@2", "R(agg='micro')@3", "GMAP(floor=0.01)@3", "ILS(sim='jaccard')@2")
NUMBERS: Final = ("value", "std_error", "ci_low", "ci_high")
ITEMS: Final = "abcdef"

Log = dict[tuple[str, str, str], str]
"""Items, best first, by model, user and list."""


def log_of(spark: SparkSession, lists: Log) -> DataFrame:
    rows = [(*key, item, float(-place)) for key, items in lists.items() for place, item in enumerate(items)]
    return table(spark, "model_id user_id list_id item_id score", *rows)


def random_lists(seed: int, *, n_users: int = 60, most: int = 4) -> tuple[Log, dict[str, dict[str, float]]]:
    """Draw lists of two models, 0 to ``most`` a user, of different lengths; and judgements of every user."""
    draw = np.random.default_rng(seed)
    users = [f"u{number}" for number in range(n_users)]
    lists = {
        (model, user, str(name)): "".join(draw.permutation(list(ITEMS))[: draw.integers(1, 5)])
        for model in ("als", "pop")
        for user in users
        for name in range(draw.integers(0, most + 1))
    }
    judged = {user: dict.fromkeys(draw.permutation(list(ITEMS))[: draw.integers(1, 4)].tolist(), 1.0) for user in users}
    return lists, judged


def evaluated(spark: SparkSession, lists: Log, judged: Mapping[str, Mapping[str, float]], **asked: Any) -> Any:  # noqa: ANN401 - arguments of any type
    kinds = [(item, [item, "vowel" if item in "ae" else "other"]) for item in ITEMS]
    catalogue = spark.createDataFrame(kinds, "item_id string, categories array<string>")
    given = {"measures": MEASURES, "items": catalogue, "confidence": LEVEL, "min_slice_size": 1, **asked}
    return evaluate(log_of(spark, lists), judgements(spark, judged), **given)


Parts = dict[str, tuple[float, float, int]]
"""Of each user: sum of the numerators of his lists, of their denominators, and how many lists have a value."""


def parts_of(user_metrics: DataFrame, column: str, k: int, model: str) -> Parts:
    """Add the lists of each user up."""
    weight = f"{column}__weight"
    weights = [weight] if weight in user_metrics.columns else []
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    rows = user_metrics.where(f"k = {k} AND model_id = '{model}' AND {column} IS NOT NULL")
    for user, value, *below in rows.select(C.USER_ID, column, *weights).collect():
        found[user].append((value * (below or [1.0])[0], (below or [1.0])[0]))
    return {user: (*np.sum(own, axis=0).tolist(), len(own)) for user, own in found.items()}


def clustered(parts: Parts) -> tuple[float, float, float]:
    """Mean with standard error and quantile of t: var = U/(U-1) sum (S_u - mean L_u)^2 / (sum L)^2."""
    sums, sizes, _ = np.array(list(parts.values())).T
    n, mean = len(parts), sums.sum() / sizes.sum()
    error = math.sqrt(n / (n - 1) * ((sums - mean * sizes) ** 2).sum()) / sizes.sum()
    return mean, error, float(stats.t.ppf((1 + LEVEL) / 2, n - 1))


COLUMNS: Final = {
    "P(denom='len')": ("p_denom_len", 2),
    "R(agg='micro')": ("r_agg_micro", 3),
    "GMAP(floor=0.01)": ("gmap_floor_0_01", 3),
    "ILS(sim='jaccard')": ("ils_sim_jaccard", 2),
    "Success": ("success", 2),
}


@pytest.mark.parametrize(("unit", "mean"), [("user", 1 / 2), ("list", 1 / 4)])
def test_lists_1_and_0_0_0_of_two_users_give_a_half_or_a_quarter(spark: SparkSession, unit: str, mean: float) -> None:
    lists = {("als", "ann", "1"): "a", **{("als", "bob", str(name)): "x" for name in range(3)}}
    judged = {"ann": {"a": 1.0}, "bob": {"a": 1.0}}
    found = evaluated(spark, lists, judged, unit=unit, measures=["P@1", "Success@1"]).metrics
    assert tuples(found, "measure", "value", "n_users", "n_lists") == [("P", mean, 2, 4), ("Success", mean, 2, 4)]


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_means_and_intervals_are_those_of_clusters_in_every_slice(spark: SparkSession, n_partitions: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", str(n_partitions))
    lists, judged = random_lists(seed=5)
    country = {user: ("AT", "DE")[index % 2] for index, user in enumerate(sorted(judged))}
    segments = table(spark, "user_id country", *country.items())
    result = evaluated(spark, lists, judged, unit="list", segments=segments, slices=["country"])
    rows = {(row["model_id"], row["measure"], row["slice_value"]): row for row in result.metrics.collect()}
    for label, (column, k) in COLUMNS.items():
        for model in ("als", "pop"):
            everyone = parts_of(result.user_metrics, column, k, model)
            for value in ("", "AT", "DE"):
                parts = {user: own for user, own in everyone.items() if value in ("", country[user])}
                row = rows[model, label, value]
                mean, error, quantile = clustered(parts)
                numbers = [mean, error, mean - quantile * error, mean + quantile * error]
                if label.startswith("GMAP"):
                    numbers = [math.exp(mean), error, *np.exp(numbers[2:]).tolist()]
                if label == "Success":
                    n = len(parts)
                    trials = mean * (1 - mean) / (error**2 * (n - 1) / n)
                    z = stats.norm.ppf((1 + LEVEL) / 2)
                    half = z * math.sqrt(mean * (1 - mean) / trials + z**2 / 4 / trials**2)
                    numbers[2:] = [(mean + z**2 / 2 / trials + each) / (1 + z**2 / trials) for each in (-half, half)]
                np.testing.assert_allclose([row[name] for name in NUMBERS], numbers, rtol=0, atol=1e-12, err_msg=label)
                assert (row["n_users"], row["n_lists"]) == (len(parts), sum(own[2] for own in parts.values()))
                assert row["ci_method"] == ("wilson" if label == "Success" else "delta")


def test_groups_are_compared_by_their_means_over_lists(spark: SparkSession) -> None:
    lists = {("als", "ann", "1"): "a", **{("als", "bob", str(name)): "x" for name in range(3)}}
    lists |= {("als", "cat", str(name)): "ax"[name % 2] for name in range(2)}
    segments = table(spark, "user_id country", ("ann", "AT"), ("bob", "AT"), ("cat", "DE"))
    judged = {user: {"a": 1.0} for user in ("ann", "bob", "cat")}
    asked: dict[str, Any] = {"segments": segments, "slices": ["country"], "unit": "list"}
    result = evaluated(spark, lists, judged, measures=["P@1"], **asked)
    gap = result.group_metrics.where("measure = 'GroupGap(P)'").collect()[0]
    assert (gap["value"], gap["n_users"], gap["n_lists"]) == (1 / 2 - 1 / 4, 3, 6)
    with pytest.raises(ConfigError, match="means over lists"):
        result.gap_tests(measures=["P@1"])


def test_bootstrap_draws_users_and_divides_by_their_lists(spark: SparkSession) -> None:
    lists, judged = random_lists(seed=6)
    drawn: dict[str, Any] = {"intervals": "bootstrap", "replicates": 100, "seed": 4}
    result = evaluated(spark, lists, judged, unit="list", **drawn)
    rows = {(row["model_id"], row["measure"]): row for row in result.metrics.collect()}
    for label in ("P(denom='len')", "R(agg='micro')"):
        parts = parts_of(result.user_metrics, *COLUMNS[label], "als")
        sums, sizes, _ = np.array(list(parts.values())).T
        hashes = hashing.user_hashes(list(parts))
        weights = hashing.poisson_weights(hashes, seed=4, replicates=100).astype(np.float64)
        means = (weights.T @ sums) / (weights.T @ sizes)
        row = rows["als", label]
        ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        found = [row[name] for name in ("std_error", "ci_low", "ci_high")]
        np.testing.assert_allclose(found, [means.std(ddof=1), *ends], rtol=0, atol=1e-12)


def test_models_are_compared_as_ratios_of_the_sums_of_their_users(spark: SparkSession) -> None:
    lists, judged = random_lists(seed=7)
    compared: dict[str, Any] = {"baseline": "pop", "tests": ["t", "wilcoxon", "bootstrap"], "replicates": 100}
    result = evaluated(spark, lists, judged, unit="list", **compared)
    rows = {row["measure"]: row for row in result.comparisons.collect()}
    assert set(rows) == set(COLUMNS) - {"GMAP(floor=0.01)"}
    assert len(rows) == result.comparisons.count()  # other tests are of means over users
    for label, row in rows.items():
        model, baseline = (parts_of(result.user_metrics, *COLUMNS[label], name) for name in ("als", "pop"))
        common = [user for user in model if user in baseline]
        (a, b, _), (c, d, _) = (np.array([side[user] for user in common]).T for side in (model, baseline))
        ratio, below = a.sum() / b.sum(), c.sum() / d.sum()
        terms = (a - ratio * b) / b.mean() - (c - below * d) / d.mean()
        error = terms.std(ddof=1) / math.sqrt(len(terms))
        half = float(stats.t.ppf((1 + LEVEL) / 2, len(terms) - 1)) * error
        numbers = [row[name] for name in ("baseline_value", "value", "delta", "ci_low", "ci_high")]
        delta = ratio - below
        np.testing.assert_allclose(numbers, [below, ratio, delta, delta - half, delta + half], rtol=0, atol=1e-12)
        p = 2 * stats.t.sf(abs(delta) / error, len(terms) - 1)
        assert (row["p_value"], row["method"]) == (pytest.approx(p, rel=1e-9), "delta")


def test_where_each_user_has_one_list_the_unit_makes_no_difference(spark: SparkSession) -> None:
    lists, judged = random_lists(seed=8)
    one_each = {(model, user, f"of {user}"): items for (model, user, name), items in lists.items() if name == "0"}
    results = [evaluated(spark, one_each, judged, unit=unit, baseline="pop") for unit in ("user", "list")]
    for table_, key, differs in (
        ("metrics", ["model_id", "measure"], "ci_method"),
        ("comparisons", ["measure"], None),
    ):
        over_users, over_lists = (
            {tuple(row[name] for name in key): row.asDict() for row in getattr(result, table_).collect()}
            for result in results
        )
        assert over_users.keys() == over_lists.keys()
        for place, row in over_users.items():
            for name, value in row.items():
                if name != differs:
                    found = over_lists[place][name]
                    same = pytest.approx(value, rel=0, abs=1e-12) if isinstance(value, float) else value
                    assert found == same, (place, name)


def test_a_log_without_lists_has_means_over_users(spark: SparkSession) -> None:
    rows = [("ann", "a", 1.0), ("bob", "b", 1.0), ("cat", "a", 1.0)]
    log = table(spark, "user_id item_id score", *rows)
    result = evaluate(log, judgements(spark, {"ann": {"a": 1.0}, "bob": {"a": 1.0}}), measures=["P@1"], unit="list")
    assert tuples(result.metrics, "value", "n_users", "n_lists", "ci_method") == [(1 / 2, 2, 2, "t")]


def test_night_publishes_means_over_lists_and_compares_them_with_the_night_before(
    spark: SparkSession, own_copy: Workspace
) -> None:
    morning = [{**row, "list_id": "morning"} for row in nights.recommendations()]
    evening = [
        {**row, "list_id": "evening", "score": {"a": 1.0, "b": 2.0}[row["item_id"]]}
        for row in nights.recommendations()
        if row["user_id"] == "ann" and row["item_id"] in ("a", "b")
    ]
    own_copy.write("recommendations", [*morning, *evening])
    rule = {"measure": "RR@2", "margin": 0.9, "against": "previous"}
    own_copy.change(policies={"unit": "list"}, measures=["RR", "P(agg='micro')"], gates=[rule])
    config = load_config(own_copy.config, ())
    run_night(spark, config, FIRST)
    second = run_night(spark, config, SECOND)

    results = Results(spark, own_copy.root)
    of_night: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}
    rows = results.metrics(**of_night, slice="all", model_id="als", k=2)
    # ann hits at 1 in the morning and at 2 in the evening; bob, eve and kim, who has no list, count 0 once each.
    assert by(rows, "measure", value="value") == {
        "RR": pytest.approx((1 + 1 / 2 + 0 + 0 + 0) / 5, rel=0, abs=1e-12),
        "P(agg='micro')": pytest.approx((1 + 1 + 0 + 0 + 0) / (2 + 2 + 2 + 2 + 2), rel=0, abs=1e-12),
    }
    assert tuples(rows, "n_users", "n_lists") == [(4, 5), (4, 5)]
    two = published_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST, SECOND])
    assert all("unit=list" in definition for night in two for definition in night.definitions.values())

    compared = with_night(spark, own_copy.root, two[1], two[0], Wanted(models=["als"], measures=["RR"], ks=[2])).rows
    means = {
        night.evaluation_date: by(
            results.metrics(date=night.evaluation_date, evaluation="nightly", slice="all", model_id="als", k=2),
            "measure",
            value="value",
        )["RR"]
        for night in two
    }
    assert [(row["value"], row["earlier_value"]) for row in compared] == [
        (pytest.approx(means[SECOND], rel=0, abs=1e-12), pytest.approx(means[FIRST], rel=0, abs=1e-12))
    ]
    assert compared[0]["n_common_users"] == 2
    # Judged, because min_slice_size alone decides about that; four users cannot show it.
    assert [gate["verdict"] for gate in second.gates if gate["model_id"] == "als"] == ["failed"]
