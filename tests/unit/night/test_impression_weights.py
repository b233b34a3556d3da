"""Nights of estimates from impressions: what weights say of them, no verdict without support, faults that are clear."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.impressions import rare_rows
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Rows, Workspace

RULES: Final[list[dict[str, Any]]] = [
    {"measure": "IPS", "at_least": 0.1},
    {"measure": "IPS", "least_gain": 0.01},
    {"measure": "IPS", "margin": 0.5},
    {"measure": "IPS", "alpha": 0.05},
    {"measure": "GroupGap(IPS)", "at_most": 0.9, "slice": "part"},
]
LACKING: Final = "an effective sample of 5 of 1,000 users of rare, where a verdict needs 30"


def night_of(folder: Path, log: Rows, held_out: Rows, **asked: Any) -> Workspace:  # noqa: ANN401 - values of a config
    """Write a night of impressions without Spark."""
    made = nights.workspace(folder, measures=["IPS", "ClippedIPS"], cutoffs=["all"], slices=[])
    made.change(policies={"population": "judged"}, slicing__min_slice_size=30, **asked)
    for name, rows in (("recommendations", log), ("held_out", held_out)):
        made.write(name, [{**row, "day": FIRST.isoformat()} for row in rows])
    return made


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Finished]:
    log, held_out = rare_rows()
    asked: dict[str, Any] = {"comparisons": {"baseline": "same"}, "gates": RULES, "slices": ["part"]}
    workspace = night_of(tmp_path_factory.mktemp("rare"), log, held_out, **asked)
    parts = [{"user_id": row["user_id"], "part": str(place % 2)} for place, row in enumerate(held_out)]
    workspace.write("segments", [{**row, "day": FIRST.isoformat()} for row in parts])
    return workspace, rankeval("run", workspace.config, "--date", FIRST)


def test_a_run_warns_of_a_sample_that_few_users_make(night: tuple[Workspace, Finished]) -> None:
    done = night[1]
    assert done.code == 0, done.err
    said = " ".join(f"{done.out} {done.err}".split())
    assert "recommendations, effective_sample: 995 (99.50%), for example rare: 1,000 users say as much as 5 of" in said
    assert "mean_weight" not in said


def test_no_rule_passes_without_support(night: tuple[Workspace, Finished]) -> None:
    gate = rankeval("gate", night[0].root, "--json")
    rows = json.loads(gate.out)
    rows = rows if isinstance(rows, list) else rows["rows"]
    found = {row["gate"]: row for row in rows if row["model_id"] == "rare"}
    for number in (1, 2, 3, 4):
        assert (found[number]["verdict"], found[number]["observed"]) == ("too_little_support", None)
    expected = f"rare: IPS is undecided: too little support, {LACKING}: not judged."
    assert {row["explanation"] for number, row in found.items() if number < 5} == {expected}
    assert found[5]["verdict"] == "too_few_users"  # no group is compared
    (own,) = [row for row in rows if row["model_id"] == "same" and row["gate"] == 1]
    assert own["verdict"] == "passed"


def test_tables_of_the_command_line_show_no_verdict(night: tuple[Workspace, Finished]) -> None:
    root = night[0].root
    for command in (("show", root, "--comparisons"), ("compare", root, "--against", "same")):
        out = " ".join(rankeval(*command).out.split())
        assert "undecided: too little support" in out
        assert "better" not in out
    out = " ".join(rankeval("compare", root, "--against", "rare").out.split())  # computed from published users
    assert "undecided: too little support" in out
    shown = " ".join(rankeval("show", root).out.split())
    assert "! undecided: too little support (n_effective is below min_slice_size)" in shown
    assert "ClippedIPS: the interval is around the mean with cut weights, a biased value" in shown
    rows = json.loads(rankeval("show", root, "--json", "--measure", "IPS").out)
    assert {row["model_id"]: row["has_support"] for row in rows} == {"same": True, "rare": False}


def test_the_report_names_no_leader_and_no_verdict(night: tuple[Workspace, Finished], tmp_path: Path) -> None:
    done = rankeval("report", night[0].root, "--out", tmp_path / "report.html")
    assert done.code == 0, done.err
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "undecided: too little support" in page
    assert "has the best IPS" not in page
    assert "ClippedIPS: the interval is around the mean with cut weights, a biased value" in page


def test_propensities_of_1_refuse_a_night_with_a_clear_sentence(tmp_path: Path) -> None:
    log, held_out = rare_rows()
    flat = [{**row, "score": 1 / 4} for row in log if row["model_id"] == "same"]
    certain = [{**row, "propensity": 1.0} for row in held_out]
    workspace = night_of(tmp_path, flat, certain)
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 3, done.err
    said = " ".join(done.err.split())
    found = "found 1 (75.00%), for example same: the mean weight is 0.25; expected a mean weight of 1"
    assert f"recommendations, mean_weight: {found}" in said
    assert "give the propensities of the policy that made the log" in said
    assert "checks.mean_weight.error" in said


def test_scores_that_add_up_to_2_refuse_a_night(tmp_path: Path) -> None:
    log, held_out = rare_rows()
    twice = [{**row, "score": 1.0} for row in log if row["model_id"] == "same"]
    workspace = night_of(tmp_path, twice, held_out)
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 3, done.err
    said = " ".join(done.err.split())
    assert (
        "recommendations, target_sums: found 1,000 (100.00%), for example same u000; same u999; expected scores" in said
    )
    assert "give as score the probability with which the target policy shows the item" in said


def test_a_change_from_another_night_has_no_verdict_without_support(tmp_path: Path) -> None:
    log, held_out = rare_rows()
    workspace = night_of(tmp_path, log, held_out)
    measures, gates = ["IPS(agg='macro')"], [{"measure": "IPS(agg='macro')", "margin": 0.5, "against": "previous"}]
    workspace.change(measures=measures, gates=gates)
    for name, rows in (("recommendations", log), ("held_out", held_out)):
        workspace.write(name, [{**row, "day": day.isoformat()} for day in (FIRST, SECOND) for row in rows])
    for day in (FIRST, SECOND):
        done = rankeval("run", workspace.config, "--date", day)
        assert done.code == 0, done.err
    rows = json.loads(rankeval("compare", workspace.root, "--against", "previous", "--json").out)
    found = {row["model_id"]: (row["p_value"], row["reason"], row["verdict"]) for row in rows}
    assert found["rare"] == (None, "too_little_support", "undecided")
    assert found["same"][1:] == (None, "undecided")
    judged = json.loads(rankeval("gate", workspace.root, "--json").out)
    judged = judged if isinstance(judged, list) else judged["rows"]
    verdicts = {row["model_id"]: row["verdict"] for row in judged}
    assert verdicts == {"rare": "too_little_support", "same": "passed"}
