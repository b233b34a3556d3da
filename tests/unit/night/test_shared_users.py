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
    asked: dict[str, Any] = {"comparisons": {"baseline": "A"}, "gates": RULES, "slices": ["country"]}
    workspace = nights.workspace(tmp_path_factory.mktemp("arms"), measures=["Success"], cutoffs=[1], **asked)
    workspace.write("recommendations", nights.recommendations({FIRST: arms.lists()}))
    workspace.write("held_out", nights.held_out({FIRST: arms.gains()}))
    countries = arms.countries().items()
    workspace.write(
        "segments", [{"day": FIRST.isoformat(), "user_id": user, "country": own} for user, own in countries]
    )
    return workspace, rankeval("run", workspace.config, "--date", FIRST)


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
