"""A night of an experiment whose models serve different users: no verdict, no gate that passes, one reason for all."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support import arms, nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

REASON: Final = (
    "withheld: 0 of the 100 users of the smaller model have lists of both, fewer than 1 in 10; "
    "compare the means of population='run', which are over each model's own users"
)
RULES: Final[list[dict[str, Any]]] = [
    {"measure": "Success@1", "least_gain": -0.9},
    {"measure": "Success@1", "margin": 0.99},
    {"measure": "Success@1", "alpha": 0.05},
    {"measure": "Success@1", "margin": 0.99, "slice": "country"},
    {"measure": "Success@1", "at_least": 0.01, "models": ["B"]},
]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Finished]:
    folder = tmp_path_factory.mktemp("arms")
    return arms.run_night(folder, arms.lists(), comparisons={"baseline": "A"}, gates=RULES)


def test_rules_that_need_the_difference_fail_with_the_reason(night: tuple[Workspace, Finished]) -> None:
    workspace, done = night
    assert done.code == 6, done.err
    gate = rankeval("gate", workspace.root, "--json")
    assert gate.code == 6
    rows = json.loads(gate.out)
    rows = rows if isinstance(rows, list) else rows["rows"]
    found = [(row["gate"], row["slice_value"], row["verdict"], row["observed"]) for row in rows]
    assert found[:3] == [(number, "", "failed", None) for number in (1, 2, 3)]
    # All users of B are in AT; in DE it has none.
    assert found[3:5] == [(4, "AT", "failed", None), (4, "DE", "failed", None)]
    assert found[5][:3] == (5, "", "passed")
    assert {row["explanation"] for row in rows[:3]} == {f"B: Success@1 against A is {REASON}: failed."}


def test_tables_of_the_command_line_have_the_reason(night: tuple[Workspace, Finished]) -> None:
    root = night[0].root
    for command in (("show", root, "--comparisons"), ("compare", root, "--against", "A")):
        out = " ".join(rankeval(*command).out.split())
        assert "not tested: few common lists" in out
        assert f"B - A: {REASON}" in out
    (row,) = [row for row in json.loads(rankeval("show", root, "--comparisons", "--json").out) if row["slice"] == "all"]
    assert (row["n_with_baseline"], row["n_with_model"], row["n_with_both"]) == (900, 100, 0)
    assert (row["reason"], row["verdict"], row["delta"]) == ("few_common_lists", None, None)


def test_the_report_has_the_reason_and_no_verdict(night: tuple[Workspace, Finished], tmp_path: Path) -> None:
    done = rankeval("report", night[0].root, "--out", tmp_path / "report.html")
    assert done.code == 0, done.err
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert f"B against A, Success@1: {REASON}." in page
    assert f"B: {REASON}." in page
    assert "Differences of the same user" not in page


@pytest.mark.parametrize(("shared", "n_both"), [((), 0), ((0,), 1)])
def test_unjudged_users_of_a_model_withhold_its_verdict(tmp_path: Path, shared: tuple[int, ...], n_both: int) -> None:
    lists, judged = arms.unjudged_arms(shared)
    rules = [{"measure": "Success@1", "least_gain": -0.99}]
    asked: dict[str, Any] = {"comparisons": {"baseline": "A"}, "gates": rules, "results": {"root": "results"}}
    workspace = nights.workspace(tmp_path / "unjudged", measures=["Success"], cutoffs=[1], **asked)
    workspace.write("recommendations", nights.recommendations({FIRST: lists}))
    workspace.write("held_out", nights.held_out({FIRST: judged}))
    workspace.change(checks={"missing_users": {"error": None}})
    assert rankeval("run", workspace.config, "--date", FIRST).code == 6
    reason = REASON.replace("0 of the 100", f"{n_both} of the 100")
    assert f"Success@1 against A is {reason}: failed." in rankeval("gate", workspace.root, "--json").out
    # A model that is no baseline of the night is compared by the rows of users, which those without a judgement lack.
    for baseline, model in (("A", "B"), ("B", "A")):
        out = " ".join(rankeval("compare", workspace.root, "--against", baseline).out.split())
        assert f"{model} - {baseline}: {reason}" in out
    page = tmp_path / "report.html"
    assert rankeval("report", workspace.root, "--out", page).code == 0
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert f"B against A, Success@1: {reason}." in text
    assert "Differences of the same user" not in text


def test_other_lists_of_the_same_users_withhold_the_verdict(tmp_path: Path) -> None:
    lists = arms.sessions(0)
    asked: dict[str, Any] = {"comparisons": {"baseline": "A"}, "results": {"root": "results", "lists": True}}
    workspace = nights.workspace(tmp_path / "sessions", measures=["Success"], cutoffs=[1], **asked)
    day = {"day": FIRST.isoformat()}
    log = [
        {"model_id": model, "user_id": user, "list_id": name, "item_id": item, "score": float(-place), **day}
        for model, own in lists.items()
        for (user, name), items in own.items()
        for place, item in enumerate(items.split())
    ]
    judged = sorted({key for own in lists.values() for key in own})
    workspace.write("recommendations", log)
    workspace.write("held_out", [{"user_id": user, "list_id": name, "item_id": "t", **day} for user, name in judged])
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0
    reason = "withheld: fewer than 1 in 10 of the judged lists of the smaller model are answered by both"
    for baseline in ("A", "B"):
        assert reason in " ".join(rankeval("compare", workspace.root, "--against", baseline).out.split())
    assert rankeval("score", workspace.root, "--measure", "RR@1").code == 0
    assert reason in " ".join(rankeval("show", workspace.root, "--comparisons").out.split())
