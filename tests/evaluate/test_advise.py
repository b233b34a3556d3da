"""``advise``: each rule on data in which it is planted, and what it says of healthy data."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rankeval_spark
from rankeval_spark import advise
from rankeval_spark.config import EvaluationConfig, validate_model
from rankeval_spark.config.yaml_reader import parse
from rankeval_spark.errors import ConfigError

N_USERS: Final = 800
K: Final = 10
N_ITEMS: Final = 40
DAY: Final = dt.datetime(2026, 1, 10)
Inputs = dict[str, Any]


@lru_cache
def to_log(models: tuple[str, ...] = ("als", "popular"), n_users: int = N_USERS, k: int = K) -> pa.Table:
    """Lists of k items, each model's shifted by a rank; but for every fiftieth user."""
    rows = [
        {
            "model_id": name,
            "user_id": user,
            "item_id": (3 * user + (rank - shift * (user % 50 > 0))) % N_ITEMS,
            "score": -rank / 8,
        }
        for shift, name in enumerate(models)
        for user in range(n_users)
        for rank in range(k)
    ]
    return pa.Table.from_pylist(rows)


def to_held_out(ranks: tuple[int, ...] = (0, 3), n_users: int = N_USERS) -> pa.Table:
    """The items at these ranks of als, from 0, each relevant."""
    pairs = [(user, (3 * user + rank) % N_ITEMS) for user in range(n_users) for rank in ranks]
    return pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]})


def healthy() -> Inputs:
    return {"recommendations": to_log(), "held_out": to_held_out()}


def with_gains(gains: list[float], name: str = "gain") -> Callable[[Inputs], Inputs]:
    """Give the judgements these gains in turn."""

    def plant(given: Inputs) -> Inputs:
        rows = given["held_out"]
        found = given | {"held_out": rows.append_column(name, [np.resize(np.array(gains, float), len(rows))])}
        return found if name == "gain" else found | {"inputs": {"held_out": {"columns": {"gain": name}}}}

    return plant


def with_column(table: str, name: str, values: Callable[[pa.Table], Any]) -> Callable[[Inputs], Inputs]:
    return lambda given: given | {table: given[table].append_column(name, [pa.array(values(given[table]))])}


def with_times(given: Inputs, days: int, train_days: int = -5) -> Inputs:
    """Show lists on one day, and let judgements happen some days later, training rows before."""
    log, judged = given["recommendations"], given["held_out"]
    train = pa.table({"user_id": range(N_USERS), "item_id": [3 * n % N_ITEMS + N_ITEMS for n in range(N_USERS)]})
    return {
        "recommendations": log.append_column("recommended_at", [pa.array([DAY] * len(log))]),
        "held_out": judged.append_column("interacted_at", [pa.array([DAY + dt.timedelta(days)] * len(judged))]),
        "train": train.append_column("interacted_at", [pa.array([DAY + dt.timedelta(train_days)] * N_USERS)]),
    }


def train_of(*ranks: int, share: float = 1.0) -> Callable[[Inputs], Inputs]:
    """Train on the items at these ranks of als, of a share of the users."""
    return lambda given: given | {"train": to_held_out(ranks, int(share * N_USERS))}


def a_b_test(given: Inputs) -> Inputs:
    log = given["recommendations"]
    is_even = pc.equal(pc.bit_wise_and(log["user_id"], 1), 0)
    return given | {"recommendations": log.filter(pc.equal(is_even, pc.equal(log["model_id"], "als")))}


def sampled(given: Inputs) -> Inputs:
    """Rank one relevant item and 99 others of 40 times as many, all of a single model."""
    rng = np.random.default_rng(7)
    items = np.concatenate([rng.choice(4000, 100, replace=False) for _ in range(N_USERS)])
    log = pa.table({"user_id": np.repeat(range(N_USERS), 100), "item_id": items, "score": rng.random(len(items))})
    return given | {"recommendations": log, "held_out": pa.table({"user_id": range(N_USERS), "item_id": items[::100]})}


def pools(given: Inputs) -> Inputs:
    """Judge all places of als as not relevant or relevant; popular has other items for half of its places."""
    log = given["recommendations"]
    als, popular = (log.filter(pc.field("model_id") == name) for name in ("als", "popular"))
    judged = als.select(["user_id", "item_id"]).append_column("gain", [np.resize([1.0, 0.0, 0.0, 1.0, 0.0], len(als))])
    moved = pc.add(popular["item_id"], pc.if_else(pc.less(popular["score"], -0.5), N_ITEMS, 0))
    log = pa.concat_tables([als, popular.set_column(2, "item_id", moved)])
    return given | {"recommendations": log, "held_out": judged}


def with_scores(given: Inputs, scores: list[float] | np.ndarray | pa.ChunkedArray) -> Inputs:
    return given | {"recommendations": given["recommendations"].set_column(3, "score", [np.asarray(scores)])}


def segments(given: Inputs) -> Inputs:
    of_users = {"country": ["AT"] * (N_USERS - 3) + ["DE"] * 3, "age": [*range(N_USERS)], "planet": ["earth"] * N_USERS}
    mail = [f"{user}@example.org" for user in range(N_USERS)]
    return given | {"segments": pa.table({"user_id": range(N_USERS), **of_users, "mail": mail})}


def half_hits(given: Inputs) -> Inputs:
    """Let half of the users find their items under one model alone."""
    rows = given["held_out"]
    missed = pc.if_else(pc.less(pc.bit_wise_and(rows["user_id"], 3), 2), 20, 0)
    return given | {"held_out": rows.set_column(1, "item_id", pc.add(rows["item_id"], missed))}


CASES: Final[dict[str, tuple[Callable[[Inputs], Inputs], dict[str, Any]]]] = {
    "healthy": (lambda given: given, {}),
    "counts": (
        with_gains([1, 1, 1, 1, 2, 2, 3, 7]),
        {"warning": {"counts as grades"}, "inputs.held_out.gains": {"column": "gain", "edges": [1]}},
    ),
    "few counts by name": (with_gains([1, 1, 2], "quantity"), {"warning": {"counts as grades"}}),
    "ratings": (
        with_gains([5, 4, 4, 3, 1, 2, 5], "stars"),
        {"warning": {"ratings as gains", "few users"}, "inputs.held_out.gains": {"column": "stars", "edges": [4]}},
    ),
    "grades": (with_gains([1, 2, 3, 0]), {"measures": ["Judged"]}),
    "A/B test": (
        a_b_test,
        {
            "warning": {"A/B test"},
            "comparisons.split": {"als": 0.5, "popular": 0.5},
            "policies.population": "run",
            "policies.zero_relevant": "zero",
        },
    ),
    "sampled candidates": (
        sampled,
        {"warning": {"sampled candidates"}, "inputs.recommendations.sampled_candidates": 100, "cutoffs": [20]},
    ),
    "one relevant item": (
        lambda given: given | {"held_out": to_held_out((1,))},
        {"without": ["AP", "R"]},
    ),
    "many relevant items": (
        lambda given: given | {"held_out": to_held_out(tuple(range(12)))},
        {"measures": ["AP(denom='min')", "R(denom='min')"]},
    ),
    "unlike judged": (pools, {"warning": {"unlike judged"}, "measures": ["Judged"]}),
    "ties": (
        lambda given: with_scores(given, pa.array([0.5] * 2 * N_USERS * K)),
        {"policies.ties": "expected"},
    ),
    "events after lists": (
        lambda given: with_times(given, 2),
        {"policies.attribution": "last_touch", "policies.attribution_window": "7d", "measures": ["MIUF", "ARP"]},
    ),
    "events before lists": (lambda given: with_times(given, -2), {"warning": {"held-out before lists"}}),
    "training after lists": (lambda given: with_times(given, 2, 1), {"warning": {"training after lists"}}),
    "recommended again": (train_of(5), {"warning": {"recommended again"}, "policies.seen_in_train": "drop"}),
    "leak": (train_of(0, share=0.04), {"warning": {"held-out in training"}}),
    "consumed again": (train_of(0, 3), {"policies.seen_in_train": "keep"}),
    "few users": (half_hits, {"warning": {"few users"}}),
    "segments": (
        segments,
        {"warning": {"small slices"}, "slices": ["country", "age"], "slicing.bands.age": {"quantiles": 4}},
    ),
    "missing users": (
        lambda given: given | {"held_out": to_held_out((0, 3), N_USERS + 100)},
        {"warning": {"missing users"}},
    ),
    "ids that do not match": (
        lambda given: given | {"held_out": pa.table({"user_id": range(N_USERS), "item_id": [9000] * N_USERS})},
        {"warning": {"unmatched items"}},
    ),
    "repeated items": (
        lambda given: given | {"recommendations": pa.concat_tables([given["recommendations"], to_log(("als",), 12)])},
        {"warning": {"duplicates"}},
    ),
    "unknown items": (
        lambda given: given | {"items": pa.table({"item_id": [*range(N_ITEMS - 1)]})},
        {"policies.unknown_items": "drop", "measures": ["ItemCoverage"]},
    ),
    "other catalogue": (
        lambda given: given | {"items": pa.table({"item_id": [*range(N_ITEMS // 2)]})},
        {"warning": {"unknown items"}},
    ),
    "values": (with_column("held_out", "value", lambda rows: [9.5] * len(rows)), {"measures": ["R(gains='value')"]}),
    "impressions": (
        lambda given: with_column("held_out", "propensity", lambda rows: [0.5] * len(rows))(
            with_scores(given, np.resize(np.arange(10, 0, -1) / 55, 2 * N_USERS * K))
        ),
        {"warning": {"impressions"}, "measures": ["SNIPS"], "policies.population": "judged"},
    ),
    "a propensity of 0": (
        lambda given: with_column("held_out", "propensity", lambda rows: np.resize([0.5, 0.5, 0.0], len(rows)))(
            with_scores(given, np.resize(np.arange(10, 0, -1) / 55, 2 * N_USERS * K))
        ),
        {"warning": {"impressions"}, "policies.population": "judged"},
    ),
    "scores that are no probabilities": (
        with_column("held_out", "propensity", lambda rows: [0.5] * len(rows)),
        {"warning": {"propensities"}},
    ),
    "predicted ratings": (
        lambda given: with_gains([5, 4, 4, 3, 1, 2, 5], "rating")(
            with_scores(given, pc.add(given["recommendations"]["score"], 4.9))
        ),
        {"measures": ["RMSE", "MAE", "R(rel=4)"]},
    ),
    "own values": (
        lambda given: given | {"user_values": pa.table({"user_id": [1], "name": ["revenue"], "value": [2.0]})},
        {"measures": ["UserValue(name='revenue')"]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_rule_fires_where_it_is_planted_and_what_is_advised_works(name: str) -> None:
    plant, expected = CASES[name]
    given = plant(healthy())

    found = advise(**given)

    warned = {row["key"] for row in found if row["kind"] == "warning"}
    assert warned == expected.get("warning", set()), found
    assert all(row["reason"] and (len(row["reason"]) < 160 or row["key"] == "impressions") for row in found)
    assert {*expected.get("measures", [])} <= {*found.settings["measures"]}, found
    assert {*expected.get("without", [])}.isdisjoint(found.settings["measures"])
    values = {row["key"]: row["value"] for row in found if row["kind"] in ("input", "policy", "comparison")}
    for key, value in expected.items():
        if key.startswith(("policies.", "inputs.", "comparisons.")):
            text = value if isinstance(value, str) else json.dumps(value)
            assert values[key] == text, found
    advised_policies = {key for key in values if key.startswith("policies.")}
    if any(key.startswith("policies.") for key in expected):
        assert advised_policies == {key for key in expected if key.startswith("policies.")}
    assert found.settings.get("slices", []) == expected.get("slices", [])
    validate_model(EvaluationConfig, parse(found.to_yaml(), "advice").data)
    if not warned & {"unmatched items", "impressions", "propensities"} and name != "own values":
        result = eval(found.to_python(), {"evaluate": rankeval_spark.evaluate, **given})
        assert len(result.leaderboard()) >= 1


def test_an_argument_that_only_evaluate_has_is_refused_in_the_words_of_the_call() -> None:
    with pytest.raises(ConfigError, match=r"advise\(policies=\): found an unknown argument; expected one of recomm"):
        advise(**healthy(), policies={"ties": "expected"})  # type: ignore[call-arg]  # the fault


def test_columns_that_are_probably_meant_are_warned_of() -> None:
    given = healthy()
    log = given["recommendations"].rename_columns(["algo", "user_id", "item_id", "score"])
    found = advise(log, given["held_out"])
    assert "if 'algo' names the models" in next(row["reason"] for row in found if row["key"] == "columns")
