"""The policy ``unit='list'``, and quantiles and shares of users, the whole way, against naive loops."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError
from rankeval_spark.statistics import hashed_random
from tests.support.arrow_frames import dicts, in_chunks, judgements, table, tuples, where
from tests.support.sections import measured
from tests.support.skewed import hall
from tests.support.threads import threads

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


# ---- the policy ``unit='list'``: means over lists with users as clusters, the whole way, against naive loops -------


LEVEL: Final = 0.9
MEASURES: Final = ("P(denom='len')@2", "Success@2", "R(agg='micro')@3", "GMAP(floor=0.01)@3", "ILS(sim='jaccard')@2")
NUMBERS: Final = ("value", "std_error", "ci_low", "ci_high")
ITEMS: Final = "abcdef"

Log = dict[tuple[str, str, str], str]
"""Items, best first, by model, user and list."""


def log_of(lists: Log) -> pa.Table:
    rows = [(*key, item, float(-place)) for key, items in lists.items() for place, item in enumerate(items)]
    return table("model_id user_id list_id item_id score", *rows)


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


def evaluated(lists: Log, judged: Mapping[str, Mapping[str, float]], *, n_chunks: int = 1, **asked: Any) -> Any:  # noqa: ANN401 - arguments of any type
    kinds = [(item, [item, "vowel" if item in "ae" else "other"]) for item in ITEMS]
    catalogue = table("item_id categories", *kinds)
    given = {"measures": MEASURES, "items": catalogue, "confidence": LEVEL, "min_slice_size": 1, **asked}
    return measured(in_chunks(log_of(lists), n_chunks), in_chunks(judgements(judged), n_chunks), **given)


Parts = dict[str, tuple[float, float, int]]
"""Of each user: sum of the numerators of his lists, of their denominators, and how many lists have a value."""


def parts_of(user_metrics: pa.Table, column: str, k: int, model: str) -> Parts:
    """Add the lists of each user up."""
    weight = f"{column}__weight"
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in dicts(where(user_metrics, k=k, model_id=model)):
        if row[column] is not None:
            below = row.get(weight, 1.0)
            found[row[C.USER_ID]].append((row[column] * below, below))
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
def test_lists_1_and_0_0_0_of_two_users_give_a_half_or_a_quarter(unit: str, mean: float) -> None:
    lists = {("als", "ann", "1"): "a", **{("als", "bob", str(name)): "x" for name in range(3)}}
    judged = {"ann": {"a": 1.0}, "bob": {"a": 1.0}}
    found = evaluated(lists, judged, unit=unit, measures=["P@1", "Success@1"]).metrics
    assert tuples(found, "measure", "value", "n_users", "n_lists") == [("P", mean, 2, 4), ("Success", mean, 2, 4)]


@pytest.mark.parametrize("n_chunks", [1, 5])
def test_means_and_intervals_are_those_of_clusters_in_every_slice(n_chunks: int) -> None:
    lists, judged = random_lists(seed=5)
    country = {user: ("AT", "DE")[index % 2] for index, user in enumerate(sorted(judged))}
    segments = table("user_id country", *country.items())
    result = evaluated(lists, judged, unit="list", n_chunks=n_chunks, segments=segments, slices=["country"])
    rows = {(row["model_id"], row["measure"], row["slice_value"]): row for row in dicts(result.metrics)}
    for label, (column, k) in COLUMNS.items():
        for model in ("als", "pop"):
            everyone = parts_of(result.user_metrics, column, k, model)
            for value in ("", "AT", "DE"):
                parts = {user: own for user, own in everyone.items() if value in ("", country[user])}
                row = rows[model, label, value]
                mean, error, _ = clustered(parts)
                sums, sizes, _ = zip(*parts.values(), strict=True)
                numbers = [mean, error, *hall(sums, sizes, level=LEVEL)]
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


def test_groups_are_compared_by_their_means_over_lists() -> None:
    lists = {("als", "ann", "1"): "a", **{("als", "bob", str(name)): "x" for name in range(3)}}
    lists |= {("als", "cat", str(name)): "ax"[name % 2] for name in range(2)}
    segments = table("user_id country", ("ann", "AT"), ("bob", "AT"), ("cat", "DE"))
    judged = {user: {"a": 1.0} for user in ("ann", "bob", "cat")}
    asked: dict[str, Any] = {"segments": segments, "slices": ["country"], "unit": "list"}
    result = evaluated(lists, judged, measures=["P@1"], **asked)
    gap = dicts(where(result.group_metrics, measure="GroupGap(P)"))[0]
    assert (gap["value"], gap["n_users"], gap["n_lists"]) == (1 / 2 - 1 / 4, 3, 6)
    with pytest.raises(ConfigError, match="means over lists"):
        result.gap_tests(measures=["P@1"])


def test_bootstrap_draws_users_and_divides_by_their_lists() -> None:
    lists, judged = random_lists(seed=6)
    drawn: dict[str, Any] = {"intervals": "bootstrap", "replicates": 100, "seed": 4}
    result = evaluated(lists, judged, unit="list", **drawn)
    rows = {(row["model_id"], row["measure"]): row for row in dicts(result.metrics)}
    for label in ("P(denom='len')", "R(agg='micro')"):
        parts = parts_of(result.user_metrics, *COLUMNS[label], "als")
        sums, sizes, _ = np.array(list(parts.values())).T
        hashes = hashed_random.hash_ids(list(parts))
        weights = hashed_random.poisson_weights(hashes, seed=4, replicates=100).astype(np.float64)
        means = (weights.T @ sums) / (weights.T @ sizes)
        row = rows["als", label]
        ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        found = [row[name] for name in ("std_error", "ci_low", "ci_high")]
        np.testing.assert_allclose(found, [means.std(ddof=1), *ends], rtol=0, atol=1e-12)


def test_models_are_compared_as_ratios_of_the_sums_of_their_users() -> None:
    lists, judged = random_lists(seed=7)
    compared: dict[str, Any] = {"baseline": "pop", "tests": ["t", "wilcoxon", "bootstrap"], "replicates": 100}
    result = evaluated(lists, judged, unit="list", **compared)
    rows = {row["measure"]: row for row in dicts(result.comparisons)}
    assert set(rows) == set(COLUMNS) - {"GMAP(floor=0.01)"}
    assert len(rows) == result.comparisons.num_rows  # other tests are of means over users
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


def test_where_each_user_has_one_list_the_unit_makes_no_difference() -> None:
    lists, judged = random_lists(seed=8)
    one_each = {(model, user, f"of {user}"): items for (model, user, name), items in lists.items() if name == "0"}
    results = [evaluated(one_each, judged, unit=unit, baseline="pop") for unit in ("user", "list")]
    for table_, key, differs in (("metrics", ["model_id", "measure"], "ci_method"), ("comparisons", ["measure"], None)):
        over_users, over_lists = (
            {tuple(row[name] for name in key): row for row in dicts(getattr(result, table_))} for result in results
        )
        assert over_users.keys() == over_lists.keys()
        for place, row in over_users.items():
            for name, value in row.items():
                if name != differs:
                    found = over_lists[place][name]
                    same = pytest.approx(value, rel=0, abs=1e-12) if isinstance(value, float) else value
                    assert found == same, (place, name)


def test_a_log_without_lists_has_means_over_users() -> None:
    rows = [("ann", "a", 1.0), ("bob", "b", 1.0), ("cat", "a", 1.0)]
    log = table("user_id item_id score", *rows)
    result = measured(log, judgements({"ann": {"a": 1.0}, "bob": {"a": 1.0}}), measures=["P@1"], unit="list")
    assert tuples(result.metrics, "value", "n_users", "n_lists", "ci_method") == [(1 / 2, 2, 2, "hall")]


@pytest.mark.parametrize("unit", ["user", "list"])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_changes_no_bit(unit: str, seed: int) -> None:
    """Lists of a user are added up in the order of their ids, not as they appear."""
    lists, judged = random_lists(8, most=7)
    log, held_out = log_of(lists), judgements(judged)
    draw = np.random.default_rng(seed)

    def rows(log: pa.Table, held_out: pa.Table) -> list[list[tuple[object, ...]]]:
        found = measured(
            log,
            held_out,
            measures=["nDCG@3", "AP@4", "RR@2", "ARHR@4"],
            unit=unit,
            lists="separate",
            pairs="all",
            tests=["t", "tukey"] if unit == "user" else ["t"],
            replicates=100,
        )
        return [sorted(tuples(rows), key=str) for rows in (found.user_metrics, found.metrics, found.comparisons)]

    shuffled = [each.take(draw.permutation(each.num_rows)) for each in (log, held_out)]
    assert rows(*shuffled) == rows(log, held_out)


# ---- quantiles of users in ``metrics``, and shares of users beyond a margin in ``comparisons``, against naive loops


NOTHING: Final[dict[str, Any]] = {}
SHARES: Final = [0.1, 0.5, 0.9]
WITH_QUANTILES: Final = ["nDCG@2", "P@3", "R(agg='micro')@3", "Success@1"]


def by_country(seed: int, *, most: int = 1, n_chunks: int = 1, **asked: Any) -> Any:  # noqa: ANN401 - arguments of any type
    lists, judged = random_lists(seed, most=most)
    country = table(
        "user_id country", *((user, "FR" if place % 3 else "DE") for place, user in enumerate(sorted(judged)))
    )
    given = {"measures": WITH_QUANTILES, "segments": country, "slices": ["country"], "min_slice_size": 1, **asked}
    return measured(in_chunks(log_of(lists), n_chunks), in_chunks(judgements(judged), n_chunks), **given)


def values_of_users(result: Any) -> dict[tuple[str, str, str, int], dict[str, float]]:  # noqa: ANN401 - as above
    """Means of each user over their lists, by model, country, measure and cutoff."""
    country = {
        (row["model_id"], row["user_id"]): dict(row["segments"])["country"] for row in result.user_metrics.to_pylist()
    }
    of_lists: dict[Any, list[float]] = defaultdict(list)
    for row in result.user_values.to_pylist():
        if row["value"] is not None:
            of_lists[row["model_id"], row["user_id"], row["measure"], row["k"]].append(row["value"])
    found: dict[Any, dict[str, float]] = defaultdict(dict)
    for (model, user, measure, k), values in of_lists.items():
        for slice_value in ("", country[model, user]):
            found[model, slice_value, measure, k][user] = sum(values) / len(values)
    return found


@pytest.mark.parametrize("asked", [{}, {"most": 3}, {"most": 3, "unit": "list"}, {"intervals": "bootstrap"}])
def test_metrics_hold_quantiles_of_the_values_of_users(asked: dict[str, Any]) -> None:
    result = by_country(1, quantiles=SHARES, **asked)
    wanted = values_of_users(result)
    rows = result.metrics.to_pylist()
    assert len(rows) == 2 * 3 * len(WITH_QUANTILES)
    for row in rows:
        values = list(wanted[row["model_id"], row["slice_value"], row["measure"], row["k"]].values())
        exact = np.quantile(values, SHARES, method="inverted_cdf")
        names, found = zip(*row["quantiles"], strict=True)
        assert names == ("0.1", "0.5", "0.9")
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
        assert row["quantile_error"] == 0


def test_quantiles_do_not_depend_on_the_chunks_nor_on_the_threads() -> None:
    tables = []
    for number in (1, 3):
        with threads(number):
            tables.append(by_country(2, quantiles=SHARES, n_chunks=number).metrics)
    assert tables[0].equals(tables[1])


def test_without_a_request_there_are_none_and_the_rest_is_the_same() -> None:
    without, with_them = (by_country(3, **asked).metrics for asked in (NOTHING, {"quantiles": [0.5]}))
    columns = ["quantiles", "quantile_error"]
    assert without.drop_columns(columns).equals(with_them.drop_columns(columns))
    assert [without[name].null_count for name in columns] == [len(without)] * 2


def test_quantiles_of_gmap_are_values_of_users_as_its_value_is() -> None:
    result = by_country(4, measures=["GMAP(floor=0.01)@3", "AP@3"], quantiles=[0.0, 1.0])
    found = {
        (row["model_id"], row["slice_value"], row["measure"]): row["quantiles"] for row in result.metrics.to_pylist()
    }
    low, high = (dict(found["als", "", "GMAP(floor=0.01)"])[name] for name in ("0", "1"))
    assert low == pytest.approx(0.01, rel=1e-12)
    assert high == pytest.approx(dict(found["als", "", "AP"])["1"], rel=1e-12)


def test_measures_of_all_lists_and_users_without_values_have_no_quantile() -> None:
    log = table("user_id item_id score", ("ann", "a", 1.0))
    held_out = table("user_id item_id gain", ("ann", "a", 0.0))
    items = table("item_id", ("a",))
    measures = ["ItemCoverage@1", "R@1"]
    rows = measured(log, held_out, measures=measures, items=items, quantiles=[0.5]).metrics.to_pylist()
    assert {row["measure"]: (row["quantiles"], row["quantile_error"]) for row in rows} == {
        "ItemCoverage": (None, None),
        "R": (None, None),
    }


@pytest.mark.parametrize("quantiles", [[1.5], [-0.1], [0.5, 0.5], [math.nan], ["half"]])
def test_shares_that_are_none_are_refused(quantiles: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(slicing=\)\.quantiles"):
        by_country(1, quantiles=quantiles)


@pytest.mark.parametrize("most", [1, 3])
def test_comparisons_hold_the_shares_of_users_beyond_a_margin(most: int) -> None:
    margin = 0.35
    result = by_country(5, most=most, baseline="pop", margin=margin, tests=["t", "sign"])
    users = values_of_users(result)
    rows = result.comparisons.to_pylist()
    assert {row["test"] for row in rows} == {"t", "sign"}
    for row in rows:
        base, own = (users[model, row["slice_value"], row["measure"], row["k"]] for model in ("pop", "als"))
        differences = [own[user] - base[user] for user in own.keys() & base.keys()]
        wins, losses = (sum(sign * each > margin + 1e-12 for each in differences) for sign in (1, -1))
        assert row["n_users"] == len(differences)
        assert (row["margin"], row["win_share"], row["loss_share"]) == (
            margin,
            wins / len(differences),
            losses / len(differences),
        )
    assert any(row["win_share"] * row["n_users"] < row["n_wins"] for row in rows)


def test_a_difference_that_exceeds_the_margin_by_rounding_only_does_not_count() -> None:
    log = table(
        "model_id user_id item_id score",
        *(("pop", "ann", item, -place) for place, item in enumerate("abcxyuvwst")),
        *(("als", "ann", item, -place) for place, item in enumerate("abcdxyuvws")),
    )
    held_out = table("user_id item_id", *(("ann", item) for item in "abcd"))
    asked: dict[str, Any] = {"measures": ["P@10"], "baseline": "pop", "min_slice_size": 1}
    assert 0.4 - 0.3 > 0.1  # the doubles
    (at,) = measured(log, held_out, margin=0.1, **asked).comparisons.to_pylist()
    (below,) = measured(log, held_out, margin=0.09, **asked).comparisons.to_pylist()
    assert (at["win_share"], below["win_share"], below["loss_share"]) == (0, 1, 0)


def test_without_a_margin_there_are_no_shares() -> None:
    rows = by_country(6, baseline="pop").comparisons.to_pylist()
    assert {(row["margin"], row["win_share"], row["loss_share"]) for row in rows} == {(None, None, None)}


@pytest.mark.parametrize("margin", [0, -0.1, math.inf])
def test_a_margin_is_above_0(margin: float) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(comparisons=\)\.margin"):
        by_country(1, baseline="pop", margin=margin)
