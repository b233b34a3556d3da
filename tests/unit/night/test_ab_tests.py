"""A night of an A/B test: unpaired verdicts, rules that read them, and users that are checked against the plan."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest

from rankeval_spark import Results
from tests.support import arms
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST
from tests.support.query_night import QUERIES
from tests.support.readers import load_delta

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

RULES: Final[list[dict[str, Any]]] = [
    {"measure": "Success@1", "least_gain": -0.9},
    {"measure": "Success@1", "margin": 0.01},
    {"measure": "Success@1", "alpha": 0.05},
    {"measure": "Success@1", "margin": 0.99, "slice": "country"},
    {"measure": "Success@1", "margin": 0.99, "against": "previous"},
]
POLICIES: Final = {"population": "run", "zero_relevant": "zero", "missing": "exclude"}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Finished]:
    compared: dict[str, Any] = {"baseline": "A", "split": {"A": 0.8, "B": 0.2}}
    folder = tmp_path_factory.mktemp("arms")
    return arms.run_night(folder, arms.lists((0,)), comparisons=compared, gates=RULES, policies=POLICIES)


def test_rules_judge_the_unpaired_difference_and_say_whose_it_is(night: tuple[Workspace, Finished]) -> None:
    workspace, done = night
    assert done.code == 6, done.err
    rows = json.loads(rankeval("gate", workspace.root, "--json").out)
    rows = rows if isinstance(rows, list) else rows["rows"]
    found = [(row["gate"], row["slice_value"], row["verdict"]) for row in rows]
    of_all = [(1, "", "passed"), (2, "", "failed"), (3, "", "passed")]
    assert found == [
        *of_all,
        (4, "AT", "passed"),
        (4, "DE", "missing_slice"),
        (5, "", "no_baseline"),
        (5, "", "no_baseline"),
    ]
    ends = "(−0.086 to +0.112, 101 users against 900 others, 1 of both)"
    assert rows[0]["explanation"].startswith(f"B: Success@1 is 0.013 better than A {ends}; a loss of at most 0.9 is")


def test_tables_and_the_report_have_the_difference(night: tuple[Workspace, Finished], tmp_path: Path) -> None:
    root = night[0].root
    for command in (("show", root, "--comparisons"), ("compare", root, "--against", "A")):
        out = " ".join(rankeval(*command).out.split())
        assert "undecided" in out
        assert "B - A: 1 user has lists of both, though each is meant to have one model" in out
    (row,) = [row for row in json.loads(rankeval("show", root, "--comparisons", "--json").out) if row["slice"] == "all"]
    assert (row["test"], row["method"], row["n_users"], row["n_baseline_users"]) == ("unpaired", "welch", 101, 900)
    assert row["delta"] == pytest.approx(35 / 101 - 300 / 900, rel=0, abs=1e-12)
    # With the other model as the baseline it is computed from the published users.
    other = json.loads(rankeval("compare", root, "--against", "B", "--json").out)
    (back,) = other if isinstance(other, list) else other["rows"]
    assert (back["model_id"], back["test"], back["n_users"]) == ("A", "unpaired", 900)
    for name in ("delta", "ci_low", "ci_high"):
        mirrored = {"ci_low": "ci_high", "ci_high": "ci_low"}.get(name, name)
        assert back[name] == pytest.approx(-row[mirrored], rel=0, abs=1e-12)
    done = rankeval("report", root, "--out", tmp_path / "report.html")
    assert done.code == 0, done.err
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "101 users against 900 others" in page
    assert "sample_ratio" in page or "sample ratio" in page
    assert "1 user has lists of both, though each is meant to have one model" in page
    assert "Mean difference of Success@1 between the users of each model" in page
    assert "adjusted by Holm for 1 test on all users and 1 in slices" in page
    assert "Differences of the same user" not in page
    assert "B against A, Success@1: +0.013 (−0.086 to +0.112), adjusted p = .79." in page
    assert "<dt>night</dt><dd>1</dd>" in page
    for model, users in {"A": "900", "B": "101"}.items():
        assert f"<dt>users of {model}</dt><dd>{users}</dd>" in page


def test_the_query_of_slices_that_lose_reads_unpaired_rows(night: tuple[Workspace, Finished]) -> None:
    query = QUERIES["slices-where-the-candidate-loses"].replace("nDCG", "Success").replace("k = 10", "k = 1")
    with duckdb.connect() as connection:
        load_delta(connection)
        Results(night[0].root).register(connection)
        assert connection.execute(f"SELECT slice, delta FROM ({query})").fetchall() == []
        wins = query.replace("delta < 0", "delta > 0")
        assert connection.execute(f"SELECT slice FROM ({wins}) WHERE delta > 0.013").fetchone() == ("all",)


def test_validate_says_what_is_compared_unpaired(night: tuple[Workspace, Finished]) -> None:
    done = rankeval("validate", night[0].config)
    out = done.out
    assert done.code == 0, done.err
    assert "A/B test: 0.8 of the users to A, 0.2 of the users to B; these models are compared unpaired" in out
    assert "population 'truth'" not in out
    override = "policies={population: truth}"
    assert "comparisons.split with population 'truth'" in rankeval("validate", night[0].config, "--set", override).out


def test_a_split_that_is_not_as_planned_warns_or_stops_the_night(night: tuple[Workspace, Finished]) -> None:
    workspace, done = night
    assert "missing_users" not in done.out
    assert "sample_ratio: 99 (9.89%), for example A 900 (0.8), B 101 (0.2), p = " in " ".join(done.out.split())
    workspace.change(checks={"sample_ratio": {"error": 0.05}})
    again = rankeval("run", workspace.config, "--date", FIRST)
    assert again.code == 3
    assert "checks.sample_ratio.error; find out why before you read a verdict" in " ".join(again.err.split())
    workspace.change(checks={"sample_ratio": {"error": 0.05, "alpha": 1e-30}})
    assert rankeval("run", workspace.config, "--date", FIRST).code == 6
