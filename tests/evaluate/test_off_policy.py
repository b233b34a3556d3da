"""Off-policy measures through ``evaluate``: the sums over impressions, intervals, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.sections import sections

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
    rows = evaluate(log, held_out, measures=MEASURES, policies={"population": "judged"}).metrics.to_pylist()
    assert {row["measure"]: row["value"] for row in rows} == pytest.approx(by_hand(log, held_out), rel=1e-12)
    assert all(row["n_users"] == 500 for row in rows if row["measure"] != "SNIPS")
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)


def test_intervals_of_ips_are_those_of_the_mean_of_weighted_rewards() -> None:
    log, held_out = inputs()
    (row,) = evaluate(
        log, held_out, measures=["IPS(agg='macro')"], policies={"population": "judged"}
    ).metrics.to_pylist()
    ((micro,)) = evaluate(log, held_out, measures=["IPS"], policies={"population": "judged"}).metrics.to_pylist()
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
    (result,) = evaluate(log, held_out, measures=["DR"], policies={"population": "judged"}).metrics.to_pylist()
    assert result["value"] == pytest.approx(math.fsum(found) / len(found), rel=1e-12)
    assert result["n_users"] == 500
    assert result["ci_low"] < result["value"] < result["ci_high"]


def test_each_model_has_the_predictions_of_its_own_items() -> None:
    log, held_out = inputs(50)
    log = with_predictions(log)
    other = log.set_column(2, "score", pa.array(1 - log["score"].to_numpy()))
    named = (("a", log), ("b", other))
    models = [table.append_column("model_id", pa.array([name] * len(log))) for name, table in named]
    both = evaluate(
        pa.concat_tables(models), held_out, measures=["DR"], policies={"population": "judged"}
    ).metrics.to_pylist()
    alone = [
        evaluate(table, held_out, measures=["DR"], policies={"population": "judged"}).metrics["value"][0].as_py()
        for table in (log, other)
    ]
    assert [row["value"] for row in both] == pytest.approx(alone, rel=1e-12)


def test_repeated_items_are_predicted_once() -> None:
    log, held_out = inputs(20)
    log = with_predictions(log)
    options: dict[str, Any] = {"measures": ["DR"], "population": "judged"}
    twice = evaluate(pa.concat_tables([log, log]), held_out, **sections(**options))
    assert (
        twice.metrics["value"].to_pylist()
        == evaluate(log, held_out, **sections(**options)).metrics["value"].to_pylist()
    )


@pytest.mark.parametrize("predicted", [None, math.nan, math.inf])
def test_item_without_a_predicted_reward_is_refused_unless_it_is_never_shown(predicted: float | None) -> None:
    log, held_out = inputs(20)
    lacking = changed(with_predictions(log), "predicted_reward", predicted)
    with pytest.raises(Exception, match="a predicted_reward that is NULL, NaN or infinite; expected a number"):
        _ = evaluate(lacking, held_out, measures=["DR"], policies={"population": "judged"}).metrics
    never = lacking.set_column(2, "score", pa.array([0.0, 1.0, *lacking["score"].to_pylist()[2:]]))
    assert evaluate(never, held_out, measures=["DR"], policies={"population": "judged"}).metrics["value"][0].is_valid


def changed(table: pa.Table, name: str, value: float | None) -> pa.Table:
    """Set the first cell of a column."""
    column = pa.array([value, *table[name].to_pylist()[1:]], pa.float64())
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.parametrize("propensity", [0.0, -0.5, 1.5, None])
def test_a_propensity_that_is_no_probability_is_refused(propensity: float | None) -> None:
    log, held_out = inputs(20)
    shown = held_out.set_column(1, "item_id", pa.array([0] * 20))
    with pytest.raises(Exception, match=r"propensity.*probability above 0 to 1"):
        _ = evaluate(
            log, changed(shown, "propensity", propensity), measures=["IPS"], policies={"population": "judged"}
        ).metrics


def test_a_score_that_is_no_probability_is_refused() -> None:
    log, held_out = inputs(20)
    shown = held_out.set_column(1, "item_id", pa.array([0] * 20))
    with pytest.raises(Exception, match=r"a score of 7 .*probability from 0 to 1"):
        _ = evaluate(changed(log, "score", 7.0), shown, measures=["IPS"], policies={"population": "judged"}).metrics


def test_what_cannot_be_estimated_is_refused() -> None:
    log, held_out = inputs(20)
    options: dict[str, Any] = {"measures": ["SNIPS"], "population": "judged"}
    with pytest.raises(InputError, match=r"held_out=\): found no column 'propensity'"):
        evaluate(log, held_out.drop_columns("propensity"), **sections(**options))
    with pytest.raises(InputError, match=r"recommendations=\): found no column 'predicted_reward'.* for DR"):
        evaluate(log, held_out, **sections(**{**options, "measures": ["DR"]}))
    with pytest.raises(InputError, match="no column 'score'"):
        evaluate(
            log.rename_columns(["user_id", "item_id", "rank"]).cast(
                pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("rank", pa.int32())]), safe=False
            ),
            held_out,
            **sections(**options),
        )
    with pytest.raises(ConfigError, match=r"SNIPS with population='truth'.*pass policies={'population': 'judged'}"):
        evaluate(log, held_out, measures=["SNIPS"])
    with pytest.raises(Exception, match="two impressions of an item"):
        _ = evaluate(log, pa.concat_tables([held_out, held_out]), **sections(**options)).metrics


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
    rows = evaluate(**sections(**given, measures=ESTIMATES, slices=["sample"], population="judged")).metrics
    for name in dict.fromkeys(rows["measure"].to_pylist()):
        own = rows.filter((pc.field("measure") == name) & (pc.field("slice") == "sample"))
        assert own.num_rows == N_SAMPLES
        error = np.sqrt(np.mean(own["std_error"].to_numpy() ** 2))
        assert 0.8 < error / own["value"].to_numpy().std(ddof=1) < 1.2, name
