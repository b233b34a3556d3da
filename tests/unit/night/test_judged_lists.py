"""A night whose judgements name their list: what it publishes, and what commands make of it; all without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import columns as C
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

LISTS: Final = [("als", 1, "bd"), ("als", 2, "dc"), ("pop", 1, "db")]
JUDGED: Final = [(1, "b"), (2, "c"), (3, "b")]
"""Of ann: the model pop has no second list, and no model has a third one."""


@pytest.fixture
def published(tmp_path: Path) -> Workspace:
    return published_night(tmp_path)


def published_night(tmp_path: Path) -> Workspace:
    made = nights.workspace(tmp_path / "workspace", measures=["RR", "R"], cutoffs=["all"], results={"root": "results"})
    log: list[dict[str, Any]] = [
        {"model_id": model, "user_id": "ann", "visit": visit, "item_id": item, "score": -place, "day": FIRST}
        for model, visit, items in LISTS
        for place, item in enumerate(items)
    ]
    made.write("recommendations", [{**row, "score": float(row["score"])} for row in log])
    made.write("held_out", [{"user_id": "ann", "visit": str(v), "item_id": item, "day": FIRST} for v, item in JUDGED])
    made.change(inputs__recommendations__columns={"list_id": "visit"}, inputs__held_out__columns={"list_id": "visit"})
    made.change(results__lists=True)
    done = rankeval("run", made.config, "--date", FIRST)
    assert done.code == 0, done.err
    return made


def means(workspace: Workspace) -> dict[tuple[str, str], float]:
    return {
        (row["model_id"], row["measure"]): row["value"] for row in workspace.rows("metrics") if row["slice"] == "all"
    }


def test_means_are_over_the_judged_lists_of_each_user(published: Workspace) -> None:
    assert means(published) == {
        ("als", "RR"): pytest.approx((1 + 1 / 2 + 0) / 3, rel=0, abs=1e-12),
        ("als", "R"): pytest.approx((1 + 1 + 0) / 3, rel=0, abs=1e-12),
        ("pop", "RR"): pytest.approx((1 / 2 + 0 + 0) / 3, rel=0, abs=1e-12),
        ("pop", "R"): pytest.approx((1 + 0 + 0) / 3, rel=0, abs=1e-12),
    }
    (count,) = {(row["n_users"], row["n_lists"], row["n_missing"]) for row in published.rows("metrics")}
    assert count == (1, 3, 0)
    (unmatched,) = [row for row in published.rows("checks") if row["check"] == "unmatched_lists"]
    assert (unmatched["count"], unmatched["share"], unmatched["sample_keys"]) == (1, 1 / 3, ["ann 3"])


def test_published_lists_hold_the_judgements_of_each_list_and_can_be_scored(published: Workspace) -> None:
    lists = {
        (row["model_id"], row["list_id"]): (row["hit_ranks"], row["judged_gains"]) for row in published.rows("lists")
    }
    assert lists == {
        **{("als", "1"): ([1], [1.0]), ("als", "2"): ([2], [1.0]), ("als", "3"): ([], [1.0])},
        **{("pop", "1"): ([2], [1.0]), ("pop", "2"): ([], [1.0]), ("pop", "3"): ([], [1.0])},
    }
    done = rankeval("score", published.root, "--measures", "Success@1")
    assert done.code == 0, done.err
    assert means(published)["als", "Success"] == pytest.approx(1 / 3, rel=0, abs=1e-12)


def test_the_lists_of_a_user_show_what_each_of_them_missed(published: Workspace) -> None:
    done = rankeval("user", published.root, "ann", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert sorted((one["list_id"], one["item_id"], one["gain"]) for one in found["judged"]) == [
        ("1", "b", 1),
        ("2", "c", 1),
        ("3", "b", 1),
    ]
    hits = {(one["model_id"], one["list_id"]): [row["is_relevant"] for row in one["items"]] for one in found["lists"]}
    assert hits["als", "1"] == [True, False]
    assert hits["als", "2"] == [False, True]
    assert hits["als", "3"] == []
    shown = rankeval("user", published.root, "ann")
    assert "judged, and in no list" in shown.out
    (missed,) = [line for line in shown.out.splitlines() if line.startswith("judged, and in no list")]
    assert missed.endswith("b of 3")


def test_lists_by_name_and_by_time_contradict_each_other(published: Workspace) -> None:
    published.change(policies={"attribution": "all", "attribution_window": "1d"})
    with pytest.raises(ConfigError, match="finds lists by time"):
        load_config(published.config, ())
    assert C.LIST_ID in str(rankeval("validate", published.config).err)


def test_a_log_without_lists_is_refused_with_what_to_add(published: Workspace) -> None:
    published.change(inputs__recommendations__columns={})
    done = rankeval("run", published.config, "--date", FIRST)
    assert done.code == 4
    assert "no column 'list_id'" in done.err
    assert "held_out name" in done.err
