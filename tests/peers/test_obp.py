"""The off-policy measures against the Open Bandit Pipeline, on the Open Bandit data that its wheel holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
import yaml

from rankeval_spark.demo import open_bandit
from rankeval_spark.measures import Lists, MeasureSet

N_ITEMS: Final = 80
N_POSITIONS: Final = 3


def home_of_obp() -> Path:
    """Find the folder of the package."""
    found = find_spec("obp")
    assert found is not None
    return Path(next(iter(found.submodule_search_locations or ())))


@pytest.fixture(scope="module")
def estimators() -> Any:  # noqa: ANN401 - a module
    """Import the estimators on numpy arrays alone: the package imports torch and plotting for the others."""
    home = home_of_obp()
    torch, ope = ModuleType("torch"), ModuleType("obp.ope")
    vars(torch)["Tensor"] = type("Tensor", (), {})  # named in annotations
    ope.__path__ = [str(home / "ope")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch)
        patch.setitem(sys.modules, "obp.ope", ope)
        yield import_module("obp.ope.estimators")


@pytest.fixture(scope="module")
def logs() -> dict[str, pd.DataFrame]:
    """Read the impressions of both policies: 10,000 of the random one, 10,000 of Bernoulli Thompson sampling."""
    home = home_of_obp()
    names = ("item_id", "position", "click", "propensity_score")
    return {
        policy: pd.read_csv(home / "dataset" / "obd" / policy / "all" / "all.csv", usecols=list(names))
        for policy in ("random", "bts")
    }


def shown_by(log: pd.DataFrame) -> Any:  # noqa: ANN401 - an array
    """Probability of each item at each position, as a log of its policy has it: shape (n_items, n_positions)."""
    shares = log.groupby(["item_id", "position"])["propensity_score"].mean()
    policy = np.zeros((N_ITEMS, N_POSITIONS))
    policy[shares.index.get_level_values(0), shares.index.get_level_values(1) - 1] = shares
    return policy / policy.sum(axis=0)


def sums(log: pd.DataFrame, policy: np.ndarray, measure: str, predicted: np.ndarray | None = None) -> tuple[float, int]:
    """Compute a measure over all impressions, each of a user of its own with the item as a list.

    ``predicted`` has the reward that is predicted of each item at each position.
    """
    n = len(log)
    score = policy[log["item_id"], log["position"] - 1]
    gain = log["click"].to_numpy(float)
    each = np.arange(n)
    lists = Lists(
        np.ones(n, dtype=np.int64),
        each,
        np.ones(n, dtype=np.int64),
        gain,
        each,
        gain,
        hit_score=score,
        hit_propensity=log["propensity_score"].to_numpy(),
    )
    if predicted is not None:
        of_shown, of_policy = predicted[log["item_id"], log["position"] - 1], (policy * predicted).sum(axis=0)
        lists = replace(lists, hit_prediction=of_shown, predicted_value=of_policy[log["position"] - 1])
    asked = MeasureSet.parse([measure])
    found = asked.score(lists)
    (column,), (weight,) = asked.columns, asked.denominator_columns.values()
    values, weights = found[column][:, 0], found[weight][:, 0]
    is_defined = weights > 0
    return float((values * weights)[is_defined].sum() / weights[is_defined].sum()), int(is_defined.sum())


@pytest.mark.parametrize("target", ["bts", "random", "one item"])
@pytest.mark.parametrize(
    ("measure", "name"),
    [("IPS", "InverseProbabilityWeighting"), ("SNIPS", "SelfNormalizedInverseProbabilityWeighting")],
)
def test_estimates_are_those_of_obp(
    estimators: Any,  # noqa: ANN401 - a module
    logs: dict[str, pd.DataFrame],
    measure: str,
    name: str,
    target: str,
) -> None:
    policy = np.eye(N_ITEMS, N_POSITIONS) if target == "one item" else shown_by(logs[target])
    for logged in ("random", "bts"):
        log = logs[logged]
        theirs = getattr(estimators, name)().estimate_policy_value(
            reward=log["click"].to_numpy(),
            action=log["item_id"].to_numpy(),
            pscore=log["propensity_score"].to_numpy(),
            action_dist=np.broadcast_to(policy, (len(log), N_ITEMS, N_POSITIONS)).copy(),
            position=log["position"].to_numpy() - 1,
        )
        ours, _ = sums(log, policy, measure)
        assert ours == pytest.approx(float(theirs), rel=1e-12, abs=1e-15)


def click_rates(log: pd.DataFrame) -> np.ndarray:
    """Predict clicks by the rate of each item at each position, drawn to that of all: shape (n_items, n_positions)."""
    found = log.groupby(["item_id", "position"])["click"].agg(["sum", "size"])
    clicks, shown = np.zeros((2, N_ITEMS, N_POSITIONS))
    places = found.index.get_level_values(0), found.index.get_level_values(1) - 1
    clicks[places], shown[places] = found["sum"], found["size"]
    rates: np.ndarray = (clicks + 50 * log["click"].mean()) / (shown + 50)
    return rates


@pytest.mark.parametrize("target", ["bts", "random", "one item"])
def test_doubly_robust_estimates_are_those_of_obp(
    estimators: Any,  # noqa: ANN401 - a module
    logs: dict[str, pd.DataFrame],
    target: str,
) -> None:
    policy = np.eye(N_ITEMS, N_POSITIONS) if target == "one item" else shown_by(logs[target])
    for logged, other in (("random", "bts"), ("bts", "random")):
        log, predicted = logs[logged], click_rates(logs[other])
        theirs = estimators.DoublyRobust().estimate_policy_value(
            reward=log["click"].to_numpy(),
            action=log["item_id"].to_numpy(),
            pscore=log["propensity_score"].to_numpy(),
            action_dist=np.broadcast_to(policy, (len(log), N_ITEMS, N_POSITIONS)).copy(),
            estimated_rewards_by_reg_model=np.broadcast_to(predicted, (len(log), N_ITEMS, N_POSITIONS)).copy(),
            position=log["position"].to_numpy() - 1,
        )
        ours, _ = sums(log, policy, "DR", predicted)
        assert ours == pytest.approx(float(theirs), rel=1e-12, abs=1e-15)
        ips, _ = sums(log, policy, "IPS")
        assert ours != pytest.approx(ips, rel=1e-6)


def test_the_random_log_estimates_the_clicks_of_the_other_policy(logs: dict[str, pd.DataFrame]) -> None:
    policy = shown_by(logs["bts"])
    clicks = logs["bts"]["click"]
    clipped, ips, snips = (sums(logs["random"], policy, one)[0] for one in ("ClippedIPS(limit=2)", "IPS", "SNIPS"))
    weight, n = sums(logs["random"], policy, "ImportanceWeight")
    square, _ = sums(logs["random"], policy, "ImportanceWeight(power='2')")
    effective = n * weight**2 / square
    rate = clicks.mean()
    error = 3 * np.sqrt(rate * (1 - rate) * (1 / len(clicks) + 1 / effective))
    assert weight == pytest.approx(1, abs=0.15)
    assert effective < n / 2
    assert clipped <= ips
    assert snips == pytest.approx(rate, abs=error)
    assert ips == pytest.approx(rate, abs=error)


def test_the_demo_gives_the_relative_value_that_obp_publishes(logs: dict[str, pd.DataFrame]) -> None:
    """Printed in the description of its package, of Thompson sampling by its prior and the random log."""
    prior = yaml.safe_load((home_of_obp() / "policy" / "conf" / "prior_bts.yaml").read_text(encoding="utf-8"))["all"]
    named = {"click": "gain", "propensity_score": "propensity"}
    canonical = {policy: log.rename(columns=named) for policy, log in logs.items()}
    found = open_bandit.estimate(open_bandit.Impressions(canonical, (prior["alpha"], prior["beta"])))
    assert found.relative_value == pytest.approx(1.198126, abs=1e-6)
    assert [round(1000 * one.value, 2) for one in found.rows] == [3.8, 4.55, 4.78, 4.2]
    assert round(found.n_effective) == 1640
