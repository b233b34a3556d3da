"""Nights with own values and weights of users: published, recorded, and not compared where they cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import Results
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, USERS

if TYPE_CHECKING:
    from tests.support.nights import Workspace

SPENT = {user: 2.0 * place for place, user in enumerate(USERS)}
WEIGHTS = {user: 1.0 + place for place, user in enumerate(USERS)}


@pytest.fixture
def night(workspace: Workspace) -> Workspace:
    """Give every user a value and a weight, and publish two nights."""
    workspace.write("spent", [{"user_id": user, "name": "spent", "value": value} for user, value in SPENT.items()])
    workspace.write("weights", [{"user_id": user, "weight": weight} for user, weight in WEIGHTS.items()])
    for name, path in (("user_values", "spent"), ("user_weights", "weights")):
        workspace.change(**{f"inputs__{name}": {"format": "delta", "path": f"inputs/{path}"}})
    workspace.change(measures=["RR", "UserValue(name='spent')"], cutoffs=["all"], gates=[])
    for day in (FIRST, SECOND):
        done = rankeval("run", str(workspace.config), "--date", day)
        assert done.code == 0, done.err
    return workspace


def test_a_night_publishes_weighted_means_and_the_versions_of_both_tables(night: Workspace) -> None:
    rows = Results(night.root).arrow("user_metrics", date=FIRST).to_pylist()
    means = {
        (row["model_id"], row["measure"]): row["value"]
        for row in Results(night.root).arrow("metrics", date=FIRST, slice="all").to_pylist()
    }
    for model in ("als", "pop"):
        own = {row["user_id"]: row for row in rows if row["model_id"] == model}
        assert all(row["uservalue_name_spent"] == SPENT[user] for user, row in own.items())
        assert all(row["rr__weight"] == WEIGHTS[user] for user, row in own.items() if row["rr"] is not None)
        total = sum(WEIGHTS[user] for user in own)
        spent = sum(WEIGHTS[user] * SPENT[user] for user in own) / total
        assert means[model, "UserValue(name='spent')"] == pytest.approx(spent, rel=0, abs=1e-12)
    (run,) = [event for event in night.events() if event["status"] == "PUBLISHED" and event["evaluation_date"] == FIRST]
    assert {each["name"]: each["version"] for each in run["inputs"]}.items() >= {
        "user_values": 0,
        "user_weights": 0,
    }.items()
    assert {dict(each["options"]).get("user_weights") for each in run["measures"]} == {"True"}


def test_weighted_nights_are_neither_compared_nor_scored_and_say_so(night: Workspace) -> None:
    compared = rankeval("compare", night.root, "--against", "previous")
    assert "not compared, no means over users: RR" in compared.out + compared.err
    scored = rankeval("score", night.root, "--measure", "AP")
    assert (scored.code != 0, "need user_weights, user_values" in scored.out + scored.err) == (True, True)


def test_a_rule_against_the_previous_night_is_refused_with_weights(night: Workspace) -> None:
    night.change(gates=[{"measure": "RR", "margin": 0.1, "against": "previous"}])
    with pytest.raises(ConfigError, match=r"gates\[0\]\.against.*RR, whose users have weights"):
        load_config(night.config)
