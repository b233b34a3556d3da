"""Off-policy measures through ``evaluate``: the sums over impressions, their weights, and what is refused."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.impressions import rare_rows
from tests.support.sections import measured

# ---- off-policy measures through ``evaluate``: the sums over impressions, intervals, and what is refused -----------


MEASURES = ["IPS", "ClippedIPS(limit=2)", "SNIPS", "ImportanceWeight", "ImportanceWeight(power='2')"]


def inputs(n: int = 500) -> tuple[pa.Table, pa.Table]:
    """Draw requests that showed one of three items each, and a target policy that never shows the last."""
    draw = np.random.default_rng(20261125)
    propensity = draw.dirichlet((2, 1, 1), size=n)
    item = np.array([draw.choice(3, p=row) for row in propensity])
    held_out = pa.table(
        {
            "user_id": np.arange(n),
            "item_id": item,
            "gain": draw.integers(0, 2, n).astype(float),
            "propensity": propensity[np.arange(n), item],
        }
    )
    log = pa.table(
        {
            "user_id": np.repeat(np.arange(n), 2),
            "item_id": np.tile([0, 1], n),
            "score": np.column_stack([share := draw.random(n), 1 - share]).ravel(),
        }
    )
    return log, held_out


def by_hand(log: pa.Table, held_out: pa.Table) -> dict[str, float]:
    """Compute the estimates request by request."""
    rows = zip(*(log[name].to_pylist() for name in ("user_id", "item_id", "score")), strict=True)
    target = {(user, item): score for user, item, score in rows}
    found = held_out.to_pylist()
    weight = [target.get((row["user_id"], row["item_id"]), 0.0) / row["propensity"] for row in found]
    reward = [row["gain"] for row in found]
    n = len(found)
    return {
        "IPS": math.fsum(w * r for w, r in zip(weight, reward, strict=True)) / n,
        "ClippedIPS(limit=2)": math.fsum(min(w, 2) * r for w, r in zip(weight, reward, strict=True)) / n,
        "SNIPS": math.fsum(w * r for w, r in zip(weight, reward, strict=True)) / math.fsum(weight),
        "ImportanceWeight": math.fsum(weight) / n,
        "ImportanceWeight(power='2')": math.fsum(w * w for w in weight) / n,
    }


def test_estimates_are_those_of_sums_over_impressions() -> None:
    log, held_out = inputs()
    rows = measured(log, held_out, measures=MEASURES, population="judged").metrics.to_pylist()
    assert {row["measure"]: row["value"] for row in rows} == pytest.approx(by_hand(log, held_out), rel=1e-12)
    assert all(row["n_users"] == 500 for row in rows if row["measure"] != "SNIPS")
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)


def test_intervals_of_ips_are_those_of_the_mean_of_weighted_rewards() -> None:
    log, held_out = inputs()
    (row,) = measured(log, held_out, measures=["IPS(agg='macro')"], population="judged").metrics.to_pylist()
    ((micro,)) = measured(log, held_out, measures=["IPS"], population="judged").metrics.to_pylist()
    assert micro["value"] == pytest.approx(row["value"], rel=1e-12)
    assert micro["ci_high"] - micro["ci_low"] == pytest.approx(row["ci_high"] - row["ci_low"], rel=0.01)


def with_predictions(log: pa.Table) -> pa.Table:
    """Predict a reward of each item of the target policy."""
    return log.append_column("predicted_reward", pa.array(np.tile([0.25, 0.75], len(log) // 2)))


def test_doubly_robust_estimates_are_predictions_and_weighted_errors() -> None:
    log, held_out = inputs()
    log = with_predictions(log)
    target = {(row["user_id"], row["item_id"]): row for row in log.to_pylist()}
    found = []
    for row in held_out.to_pylist():
        own = [target[row["user_id"], item] for item in (0, 1)]
        value = math.fsum(one["score"] * one["predicted_reward"] for one in own)
        shown = target.get((row["user_id"], row["item_id"]))
        if shown is not None:
            value += shown["score"] / row["propensity"] * (row["gain"] - shown["predicted_reward"])
        found.append(value)
    (result,) = measured(log, held_out, measures=["DR"], population="judged").metrics.to_pylist()
    assert result["value"] == pytest.approx(math.fsum(found) / len(found), rel=1e-12)
    assert result["n_users"] == 500
    assert result["ci_low"] < result["value"] < result["ci_high"]


def test_each_model_has_the_predictions_of_its_own_items() -> None:
    log, held_out = inputs(50)
    log = with_predictions(log)
    other = log.set_column(2, "score", pa.array(1 - log["score"].to_numpy()))
    named = (("a", log), ("b", other))
    models = [table.append_column("model_id", pa.array([name] * len(log))) for name, table in named]
    both = measured(pa.concat_tables(models), held_out, measures=["DR"], population="judged").metrics.to_pylist()
    alone = [
        measured(table, held_out, measures=["DR"], population="judged").metrics["value"][0].as_py()
        for table in (log, other)
    ]
    assert [row["value"] for row in both] == pytest.approx(alone, rel=1e-12)


def test_repeated_items_are_predicted_once() -> None:
    log, held_out = inputs(20)
    log = with_predictions(log)
    options: dict[str, Any] = {"measures": ["DR"], "population": "judged"}
    twice = measured(pa.concat_tables([log, log]), held_out, **options)
    assert twice.metrics["value"].to_pylist() == measured(log, held_out, **options).metrics["value"].to_pylist()


@pytest.mark.parametrize("predicted", [None, math.nan, math.inf])
def test_item_without_a_predicted_reward_is_refused_unless_it_is_never_shown(predicted: float | None) -> None:
    log, held_out = inputs(20)
    lacking = changed(with_predictions(log), "predicted_reward", predicted)
    with pytest.raises(Exception, match="a predicted_reward that is NULL, NaN or infinite; expected a number"):
        _ = measured(lacking, held_out, measures=["DR"], population="judged").metrics
    never = lacking.set_column(2, "score", pa.array([0.0, 1.0, *lacking["score"].to_pylist()[2:]]))
    assert measured(never, held_out, measures=["DR"], population="judged").metrics["value"][0].is_valid


def changed(table: pa.Table, name: str, value: float | None) -> pa.Table:
    """Set the first cell of a column."""
    column = pa.array([value, *table[name].to_pylist()[1:]], pa.float64())
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.parametrize("propensity", [0.0, -0.5, 1.5, None])
def test_a_propensity_that_is_no_probability_is_refused(propensity: float | None) -> None:
    log, held_out = inputs(20)
    shown = held_out.set_column(1, "item_id", pa.array([0] * 20))
    with pytest.raises(Exception, match=r"propensity.*probability above 0 to 1"):
        _ = measured(log, changed(shown, "propensity", propensity), measures=["IPS"], population="judged").metrics


def test_a_score_that_is_no_probability_is_refused() -> None:
    log, held_out = inputs(20)
    shown = held_out.set_column(1, "item_id", pa.array([0] * 20))
    with pytest.raises(Exception, match=r"a score of 7 .*probability from 0 to 1"):
        _ = measured(changed(log, "score", 7.0), shown, measures=["IPS"], population="judged").metrics


def test_what_cannot_be_estimated_is_refused() -> None:
    log, held_out = inputs(20)
    options: dict[str, Any] = {"measures": ["SNIPS"], "population": "judged"}
    with pytest.raises(InputError, match=r"held_out=\): found no column 'propensity'"):
        measured(log, held_out.drop_columns("propensity"), **options)
    with pytest.raises(InputError, match=r"recommendations=\): found no column 'predicted_reward'.* for DR"):
        measured(log, held_out, **{**options, "measures": ["DR"]})
    with pytest.raises(InputError, match="no column 'score'"):
        measured(
            log.rename_columns(["user_id", "item_id", "rank"]).cast(
                pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("rank", pa.int32())]), safe=False
            ),
            held_out,
            **options,
        )
    with pytest.raises(ConfigError, match=r"SNIPS with population='truth'.*pass policies={'population': 'judged'}"):
        evaluate(log, held_out, measures=["SNIPS"])
    with pytest.raises(Exception, match="two impressions of an item"):
        _ = measured(log, pa.concat_tables([held_out, held_out]), **options).metrics


N_SAMPLES, N_USERS = 250, 100
ESTIMATES = [*MEASURES, "DR", "IPS(agg='macro')", "SNIPS(agg='macro')", "DR(agg='macro')"]


def sampled_users(most_impressions: int) -> dict[str, pa.Table]:
    """Draw samples of users, a slice each: one to so many impressions of one of three items, with the user's taste."""
    draw = np.random.default_rng(20261126 + most_impressions)
    n_users = N_SAMPLES * N_USERS
    user = np.repeat(np.arange(n_users), draw.integers(1, most_impressions + 1, n_users))
    n = len(user)
    propensity, chance = draw.dirichlet((3, 2, 1), size=n), draw.dirichlet((1, 1, 1), size=n)
    shown = (draw.random(n)[:, None] > propensity.cumsum(axis=1)).sum(axis=1).clip(max=2)
    rewards = draw.beta(1, 3, n_users)[user] * np.array([1.2, 0.8, 1.0])[shown]
    items = np.arange(3 * n).reshape(n, 3)
    every = np.arange(n)
    return {
        "recommendations": pa.table(
            {
                "user_id": np.repeat(user, 3),
                "item_id": items.ravel(),
                "score": chance.ravel(),
                "predicted_reward": np.tile([0.3, 0.2, 0.25], n),
            }
        ),
        "held_out": pa.table(
            {
                "user_id": user,
                "item_id": items[every, shown],
                "gain": (draw.random(n) < rewards).astype(float),
                "propensity": propensity[every, shown],
            }
        ),
        "segments": pa.table(
            {"user_id": np.arange(n_users), "sample": [f"s{one // N_USERS}" for one in range(n_users)]}
        ),
    }


@pytest.mark.parametrize("most_impressions", [1, 4])
def test_errors_are_within_a_fifth_of_the_simulated_deviation(most_impressions: int) -> None:
    """Of 250 samples: the deviation itself is known to 5 %, and to 10 % where single weights count most."""
    given = sampled_users(most_impressions)
    rows = measured(**given, measures=ESTIMATES, slices=["sample"], population="judged").metrics
    for name in dict.fromkeys(rows["measure"].to_pylist()):
        own = rows.filter((pc.field("measure") == name) & (pc.field("slice") == "sample"))
        assert own.num_rows == N_SAMPLES
        error = np.sqrt(np.mean(own["std_error"].to_numpy() ** 2))
        assert 0.8 < error / own["value"].to_numpy().std(ddof=1) < 1.2, name


# ---- what the weights of impressions say about estimates: their mean, the sums of a list, and the effective sample -


JUDGED: Final[dict[str, Any]] = {"population": "judged"}
N_REQUESTS: Final = 40
OF_WEIGHTS: Final = ("target_sums", "mean_weight", "effective_sample")


def requests(chances: dict[str, float], *, propensity: float, items: str = "ab" * 20) -> tuple[pa.Table, pa.Table]:
    """Return lists with the same chances for every user, each of whom was shown one item."""
    users = range(len(items))
    log = [{"user_id": user, "item_id": item, "score": chance} for user in users for item, chance in chances.items()]
    rows = [
        {"user_id": user, "item_id": item, "gain": float(user % 4 == 0), "propensity": propensity}
        for user, item in enumerate(items)
    ]
    return pa.Table.from_pylist(log), pa.Table.from_pylist(rows)


def checks_of(log: pa.Table, held_out: pa.Table, **options: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - of a call
    """Return the checks of weights by name."""
    rows = measured(log, held_out, **{"measures": ["IPS"], **JUDGED, **options}).checks.to_pylist()
    return {row["check"]: row for row in rows if row["check"] in OF_WEIGHTS}


def test_propensities_of_1_under_a_target_of_a_half_are_warned_of() -> None:
    log, held_out = requests({"a": 1 / 2, "b": 1 / 2}, propensity=1.0)
    result = measured(log, held_out, measures=["IPS"], **JUDGED)
    with pytest.warns(
        UserWarning,
        match=r"mean_weight: model: the mean weight is 0\.5; expected a mean weight of 1.*give the propensities",
    ):
        _ = result.metrics
    found = checks_of(log, held_out)["mean_weight"]
    assert (found["count"], found["share"], found["verdict"]) == (1, 1 / 2, "warn")


@pytest.mark.parametrize("times", [4, 1 / 3])
def test_a_mean_weight_far_from_1_is_an_error(times: float) -> None:
    log, held_out = requests({"a": 1 / 4, "b": 1 / 4}, propensity=1 / 4 / times)
    found = checks_of(log, held_out)["mean_weight"]
    assert found["share"] == pytest.approx(1 - 1 / max(times, 1 / times), rel=0, abs=1e-12)
    assert found["verdict"] == "error"
    assert found["sample_keys"] == [f"model: the mean weight is {times:.4g}"]


@pytest.mark.filterwarnings("ignore:mean_weight")
def test_the_distance_from_1_is_that_of_the_nearest_end_of_the_interval() -> None:
    log, held_out = requests({"a": 0.3, "b": 0.1}, propensity=1 / 2)
    (row,) = measured(log, held_out, measures=["ImportanceWeight"], **JUDGED, confidence=0.9).metrics.to_pylist()
    assert row["value"] == pytest.approx((0.6 + 0.2) / 2, rel=0, abs=1e-12)
    found = checks_of(log, held_out, confidence=0.9)["mean_weight"]
    assert found["share"] == pytest.approx(1 - row["ci_high"], rel=0, abs=1e-12)
    assert found["sample_keys"] == [f"model: the mean weight is 0.4 ({row['ci_low']:.4g} to {row['ci_high']:.4g})"]


def test_five_equal_weights_say_nothing_about_their_mean() -> None:
    log, held_out = requests({"a": 1 / 2, "b": 1 / 2}, propensity=1.0, items="ababa")
    assert checks_of(log, held_out)["mean_weight"]["share"] == 0
    log, held_out = requests({"a": 1 / 2, "b": 1 / 2}, propensity=1.0, items="ababab")  # 2^-5 is below 5 %
    assert checks_of(log, held_out)["mean_weight"]["share"] == 1 / 2


def test_a_log_that_is_what_it_says_is_not_warned_of() -> None:
    draw = np.random.default_rng(20261127)
    propensity = np.array([0.5, 0.3, 0.2])
    items = draw.choice(3, p=propensity, size=2000)
    held_out = pa.table({"user_id": range(2000), "item_id": items, "gain": draw.integers(0, 2, 2000).astype(float)})
    held_out = held_out.append_column("propensity", pa.array(propensity[items]))
    chances = np.tile([0.2, 0.3, 0.5], 2000)
    log = pa.table({"user_id": np.repeat(range(2000), 3), "item_id": np.tile(range(3), 2000), "score": chances})
    with warnings.catch_warnings(action="error"):
        result = measured(log, held_out, measures=["IPS", "SNIPS"], **JUDGED)
        assert result.metrics.num_rows == 2
    assert {row["verdict"] for row in checks_of(log, held_out).values()} == {"ok"}


@pytest.mark.parametrize(
    ("chances", "n_wrong"),
    [
        ({"a": 1.0, "b": 1.0}, N_REQUESTS),  # of one slot
        ({"a": 0.7, "b": 0.4}, N_REQUESTS),
        ({"a": 0.5, "b": 0.5, "c": -3.0}, N_REQUESTS),  # of an item that nobody was shown
        ({"a": 0.505, "b": 0.5}, 0),  # rounded
        ({"a": 0.6, "b": 0.4}, 0),
        ({"a": 0.2, "b": 0.1}, 0),  # items that were not shown may be left out
    ],
)
def test_scores_that_add_up_to_more_than_1_are_no_probabilities(chances: dict[str, float], n_wrong: int) -> None:
    found = checks_of(*requests(chances, propensity=1 / 2))["target_sums"]
    assert (found["count"], found["share"]) == (n_wrong, n_wrong / N_REQUESTS)
    assert found["verdict"] == ("error" if n_wrong else "ok")
    assert found["sample_keys"] == (["model 0", "model 9"] if n_wrong else [])


def test_scores_may_add_up_to_the_number_of_slots() -> None:
    log, held_out = requests({"a": 1.0, "b": 1.0, "c": 0.0}, propensity=1 / 2)
    others = held_out.set_column(
        1, "item_id", pa.array([{"a": "b", "b": "a"}[one] for one in held_out["item_id"].to_pylist()])
    )
    assert checks_of(log, pa.concat_tables([held_out, others]))["target_sums"]["count"] == 0


def test_lists_with_predicted_rewards_have_all_that_their_policy_shows() -> None:
    log, held_out = requests({"a": 0.6, "b": 0.3}, propensity=1 / 2)
    predicted = with_predictions(log)
    assert checks_of(predicted, held_out, measures=["DR"])["target_sums"]["count"] == N_REQUESTS
    assert checks_of(predicted, held_out, measures=["IPS"])["target_sums"]["count"] == 0
    whole = predicted.set_column(2, "score", pa.array([0.6, 0.4] * N_REQUESTS))
    assert checks_of(whole, held_out, measures=["DR"])["target_sums"]["count"] == 0


def test_sums_are_of_the_list_of_a_request_where_users_have_several() -> None:
    log, held_out = requests({"a": 0.7, "b": 0.7}, propensity=1 / 2)
    users = pa.array([user // 2 for user in range(N_REQUESTS)])
    name = pa.array([str(user) for user in range(N_REQUESTS)])
    of_log = log.set_column(0, "user_id", pc.take(users, log["user_id"]))
    of_log = of_log.append_column("list_id", pc.take(name, log["user_id"]))
    judged = held_out.set_column(0, "user_id", users).append_column("list_id", name)
    assert checks_of(of_log, judged)["target_sums"]["count"] == N_REQUESTS


def rare_tables() -> tuple[pa.Table, pa.Table]:
    log, held_out = map(pa.Table.from_pylist, rare_rows())
    return log, held_out


N_EFFECTIVE: Final = 1000**2 / (995 / 199**2 + 5 * 199**2)  # about 5 of 1,000 users


@pytest.mark.filterwarnings("ignore:effective_sample")
def test_the_effective_sample_is_that_of_the_sums_of_weights_of_users() -> None:
    measures = ["IPS", "ClippedIPS", "SNIPS", "IPS(agg='macro')"]
    result = measured(*rare_tables(), measures=measures, **JUDGED)
    rows = result.metrics.to_pylist()
    assert {row["measure"] for row in rows} == set(measures)
    for row in rows:
        expected = {"same": 1000, "rare": N_EFFECTIVE}[row["model_id"]]
        assert row["n_effective"] == pytest.approx(expected, rel=1e-12)
        assert row["has_support"] is (row["model_id"] == "same")
    found = checks_of(*rare_tables())
    assert found["mean_weight"]["verdict"] == "ok"
    assert found["effective_sample"]["count"] == 995
    assert found["effective_sample"]["verdict"] == "warn"
    assert found["effective_sample"]["sample_keys"] == [
        "rare: 1,000 users say as much as 5 of the target policy itself"
    ]
    with pytest.warns(UserWarning, match="effective_sample: rare: 1,000 users say as much as 5 of the target policy"):
        _ = measured(*rare_tables(), measures=["IPS"], **JUDGED).metrics


def test_requests_of_one_user_count_together() -> None:
    log, held_out = requests({"a": 0.8, "b": 0.2}, propensity=1 / 2, items="aaab")
    users = pa.array([0, 0, 0, 1])  # weights 1.6 each for the first user, 0.4 for the second
    name = pa.array(["1", "2", "3", "4"])
    of_log = log.set_column(0, "user_id", pc.take(users, log["user_id"]))
    of_log = of_log.append_column("list_id", pc.take(name, log["user_id"]))
    judged = held_out.set_column(0, "user_id", users).append_column("list_id", name)
    options: dict[str, Any] = {"measures": ["IPS"], **JUDGED, "unit": "list"}
    (row,) = measured(of_log, judged, **options).metrics.to_pylist()
    assert row["n_effective"] == pytest.approx((4.8 + 0.4) ** 2 / (4.8**2 + 0.4**2), rel=1e-12)
    (row,) = measured(of_log, judged, **{**options, "unit": "user"}).metrics.to_pylist()
    assert row["n_effective"] == pytest.approx((1.6 + 0.4) ** 2 / (1.6**2 + 0.4**2), rel=1e-12)


@pytest.mark.filterwarnings("ignore:effective_sample")
@pytest.mark.parametrize("options", [{}, {"intervals": "bootstrap"}])
def test_a_value_without_support_is_not_compared(options: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"measures": ["IPS", "IPS(agg='macro')", "SNIPS"], **JUDGED, **options}
    result = measured(*rare_tables(), baseline="same", **asked)
    for row in result.comparisons.to_pylist():
        assert row["delta"] > 0.3
        assert row["ci_low"] is not None
        assert (row["p_value"], row["p_adjusted"], row["family_size"]) == (None, None, 0)
        assert (row["reason"], row["verdict"]) == ("too_little_support", "undecided")


@pytest.mark.filterwarnings("ignore:effective_sample")
def test_support_is_that_of_a_slice() -> None:
    log, held_out = rare_tables()
    users = pc.unique(held_out["user_id"]).to_pylist()
    parts = ["rare" if user in users[:5] else "usual" for user in users]
    segments = pa.table({"user_id": users, "part": parts})
    options: dict[str, Any] = {"segments": segments, "slices": ["part"], "min_slice_size": 5, "baseline": "same"}
    result = measured(log, held_out, measures=["IPS"], **JUDGED, **options)
    found = {(row["model_id"], row["slice_value"]): row for row in result.metrics.to_pylist()}
    assert found["rare", "rare"]["n_effective"] == pytest.approx(5, rel=1e-12)
    assert found["rare", "usual"]["n_effective"] == pytest.approx(995, rel=1e-12)
    assert found["rare", ""]["n_effective"] == pytest.approx(N_EFFECTIVE, rel=1e-12)
    assert all(row["has_support"] for row in found.values())
    reasons = {row["slice_value"]: row["reason"] for row in result.comparisons.to_pylist()}
    assert "too_little_support" not in reasons.values()


def test_the_mean_weight_is_shown_only_where_it_is_asked_for() -> None:
    log, held_out = inputs()
    own = measured(log, held_out, measures=["IPS"], **JUDGED)
    assert own.metrics["measure"].to_pylist() == ["IPS"]
    assert [name for name in own.user_metrics.column_names if "weight" in name] == ["ips__weight"]
    asked = measured(log, held_out, measures=["ImportanceWeight", "IPS"], **JUDGED)
    assert asked.metrics["measure"].to_pylist() == ["IPS", "ImportanceWeight"]
    plain = measured(log.slice(0, 2), held_out.drop_columns("propensity"), measures=["RR"], **JUDGED)
    assert plain.metrics["n_effective"].to_pylist() == plain.metrics["has_support"].to_pylist() == [None]


def test_measures_with_a_biased_interval_say_so() -> None:
    notes = measured(*inputs(), measures=["IPS", "ClippedIPS", "ClippedIPS(limit=2)", "SNIPS"], **JUDGED).notes
    assert [note.partition(":")[0] for note in notes] == ["ClippedIPS", "SNIPS"]
    assert "around the mean with cut weights, a biased value" in notes[0]


N_DRAWN, PER_SAMPLE, MOST_REQUESTS = 300, 50, 8
TRUTH: Final = 1 / 4


def correlated_requests(seed: int) -> dict[str, pa.Table]:
    """Draw samples of users, a slice each: up to 8 requests of a user, with the user's own taste and propensities.

    A reward depends on the user alone, so that every policy has the mean taste of 1 / 4. Both models are policies.
    """
    draw = np.random.default_rng(seed)
    n_users = N_DRAWN * PER_SAMPLE
    user = np.repeat(np.arange(n_users), draw.integers(1, MOST_REQUESTS + 1, n_users))
    n = len(user)
    taste, lean = draw.beta(0.5, 1.5, n_users)[user], draw.random(n_users)[user]
    propensity = np.column_stack([0.2 + 0.6 * lean, 0.8 - 0.6 * lean])
    shown = (draw.random(n) > propensity[:, 0]).astype(int)
    request = np.arange(n).astype(str)
    lists = {"user_id": np.repeat(user, 2), "item_id": np.tile([0, 1], n), "list_id": np.repeat(request, 2)}
    models = [
        pa.table({**lists, "score": np.tile(chances, n), "model_id": [name] * (2 * n)})
        for name, chances in (("one", [0.7, 0.3]), ("other", [0.4, 0.6]))
    ]
    rewards = (draw.random(n) < taste).astype(float)
    held_out = {"user_id": user, "item_id": shown, "list_id": request, "gain": rewards}
    samples = {"user_id": np.arange(n_users), "sample": [f"s{one // PER_SAMPLE}" for one in range(n_users)]}
    return {
        "recommendations": pa.concat_tables(models),
        "held_out": pa.table({**held_out, "propensity": propensity[np.arange(n), shown]}),
        "segments": pa.table(samples),
    }


@pytest.mark.parametrize("unit", ["user", "list"])
def test_intervals_and_tests_hold_with_correlated_requests_of_one_user(unit: str) -> None:
    """Of 300 samples: 95 % are known to 1.3 %."""
    given = correlated_requests(20261128)
    options: dict[str, Any] = {"slices": ["sample"], "baseline": "one", "unit": unit, **JUDGED}
    result = measured(**given, measures=["IPS", "SNIPS"], **options, correction="none")
    own = result.metrics.filter(pc.field("slice") == "sample")
    for name in ("IPS", "SNIPS"):
        low, high = (own.filter(pc.field("measure") == name)[end].to_numpy() for end in ("ci_low", "ci_high"))
        assert 0.92 <= ((low <= TRUTH) & (high >= TRUTH)).mean() <= 0.98, name
        tested = result.comparisons.filter((pc.field("measure") == name) & (pc.field("slice") == "sample"))
        assert tested.num_rows == N_DRAWN
        assert 0.015 <= (tested["p_value"].to_numpy() <= 0.05).mean() <= 0.09, name
