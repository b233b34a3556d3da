"""Bad input: an exit code, one readable message, and no change to any table but the run's own rows in ``runs``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from tests.support.nights import Workspace

TABLES = ("lists", "user_metrics", "metrics", "checks")


@pytest.fixture
def workspace(own_copy: Workspace) -> Workspace:
    """Give a workspace in which nights were published already: there is something to spoil."""
    return own_copy


def versions(workspace: Workspace) -> dict[str, int]:
    return {table: deltalake.DeltaTable(f"{workspace.root}/{table}").version() for table in TABLES}


def events(workspace: Workspace) -> list[tuple[str, str]]:
    """Rows of ``runs`` as (run, status)."""
    runs = deltalake.DeltaTable(f"{workspace.root}/runs").to_pyarrow_table(columns=["run_id", "status"])
    return [(row["run_id"], row["status"]) for row in runs.to_pylist()]


def refused(workspace: Workspace, *options: str, code: int, recorded: bool) -> Finished:
    """Run a night that must fail, and check what it left behind."""
    before, known = versions(workspace), events(workspace)
    done = rankeval("run", workspace.config, "--date", FIRST, *options)
    assert done.code == code, done.err
    done.assert_readable()
    assert versions(workspace) == before
    new = sorted(status for run, status in events(workspace) if (run, status) not in known)
    assert new == (["FAILED", "RUNNING"] if recorded else [])
    assert list(Path(workspace.root).glob("_staging/*")) == []
    return done


def test_all_faults_of_a_config_are_reported_at_once(workspace: Workspace) -> None:
    workspace.change(
        measures=["nDGC", "RR"],
        cutoffs=[0, 10_001],
        models=["als", "als"],
        results__lists="yes",
        polices={"ties": "item_asc"},
    )

    message = refused(workspace, code=2, recorded=False).message

    where = workspace.config
    for found in (
        f"{where}, measures[0] (line 19): found unknown measure 'nDGC'",
        "did you mean 'nDCG'?",
        "cutoffs[0] (line 22): found 0; expected a whole number from 1 to 10000 or 'all'",
        "cutoffs[1] (line 23): found 10001",
        "models[1] (line 33): found model 'als' a second time; expected each once",
        "results.lists (line 30): found 'yes'; expected true or false",
        "polices (line 34): found unknown key 'polices'",
        "did you mean 'policies'?",
    ):
        assert found in message


def test_fault_of_an_override_names_the_override(workspace: Workspace) -> None:
    message = refused(workspace, "--set", "results.list=true", code=2, recorded=False).message

    assert "--set results.list=true, results.list: found unknown key 'list'" in message
    assert "did you mean 'lists'?" in message


def test_faults_of_all_inputs_are_reported_at_once(own_copy_of_delta: Workspace) -> None:
    own_copy_of_delta.change(
        inputs__held_out__path="inputs/heldout",
        inputs__recommendations__columns={"score": "scor"},
        slices=["contry"],
    )

    message = refused(own_copy_of_delta, code=4, recorded=True).message

    folder = own_copy_of_delta.folder / "inputs"
    assert f"inputs.held_out: found no such path at {folder / 'heldout'}" in message
    assert f"{folder} has no 'heldout', did you mean 'held_out'?" in message
    assert "inputs.recommendations.columns.score: found no column 'scor' (for score)" in message
    assert "inputs.segments: found no column 'contry' among day, user_id, country" in message


@pytest.mark.parametrize("name", ["recommendations", "held_out", "segments"])
def test_input_without_any_row_is_missing(own_copy_of_delta: Workspace, name: str) -> None:
    rows = getattr(nights, name)()
    place = own_copy_of_delta.folder / "inputs" / name
    deltalake.write_deltalake(str(place), nights.arrow_of(rows).slice(0, 0), mode="overwrite")

    message = refused(own_copy_of_delta, code=4, recorded=True).message

    assert message == (
        f"an input is missing or unreadable: - inputs.{name}: found no row in {place}; "
        "expected rows; is the path right, and did the job that writes it run?"
    )


def test_ids_of_two_types_are_refused_with_both_ways_out(workspace: Workspace) -> None:
    workspace.write("held_out", nights.with_number_ids(nights.held_out()))

    message = refused(workspace, code=3, recorded=True).message

    assert "inputs.held_out: found item_id of type integer, while inputs.recommendations has string" in message
    assert "write inputs.held_out.types: {item_id: string}, or" in message


def test_format_that_the_files_do_not_have_is_named(own_copy_of_delta: Workspace) -> None:
    shutil.rmtree(own_copy_of_delta.folder / "inputs" / "held_out")
    own_copy_of_delta.write("held_out", nights.held_out(), "parquet")

    message = refused(own_copy_of_delta, code=4, recorded=True).message

    assert "did you mean format: parquet?" in message


def test_grade_above_the_scale_of_a_measure_stops_the_night(workspace: Workspace) -> None:
    graded = nights.held_out()
    graded[0]["gain"] = 9.0
    workspace.write("held_out", graded)
    workspace.change(measures=["ERR(max_rel=4)", "nDCG"])

    message = refused(workspace, code=3, recorded=True).message

    assert "measures, ERR: found a judgement with grade 9; expected none above max_rel=4" in message


def test_share_of_faulty_rows_above_its_threshold_stops_the_night(workspace: Workspace) -> None:
    log = nights.recommendations()
    workspace.write("recommendations", [{**log[0], "item_id": None}, *log[1:]])
    workspace.change(checks__null_keys={"warn": 0, "error": 0.01})

    message = refused(workspace, code=3, recorded=True).message

    assert message == (
        "a check failed, nothing was published: - recommendations, null_keys: "
        f"found 1 ({1 / 24:.2%}), for example als ann  NULL; expected at most 1.00%; "
        "fix the input, or raise checks.null_keys.error"
    ).replace("  NULL", " NULL")


@pytest.mark.parametrize("text", ["2026-13-01", "yesterday", "01/02/2026", ""])
def test_date_that_is_none_is_refused(workspace: Workspace, text: str) -> None:
    done = rankeval("run", workspace.config, "--date", text)

    assert done.code == 2
    done.assert_readable()
    assert f"--date: found {text!r}; expected a d" in done.message


@pytest.fixture
def foreign(tmp_path: Path) -> Workspace:
    """Give a workspace whose results root holds somebody's notes."""
    workspace = nights.workspace(tmp_path / "foreign")
    Path(workspace.root).mkdir()
    (Path(workspace.root) / "notes.txt").write_text("mine")
    return workspace


def test_folder_of_somebody_else_is_no_results_root(foreign: Workspace) -> None:
    done = rankeval("run", foreign.config, "--date", FIRST)

    assert done.code == 2
    done.assert_readable()
    assert f"found '{foreign.root}', a folder that holds other things (notes.txt)" in done.message
    assert "choose a folder of its own for the results" in done.message
    assert [path.name for path in Path(foreign.root).iterdir()] == ["notes.txt"]


def test_debug_shows_the_trace_before_the_message(foreign: Workspace) -> None:
    done = rankeval("run", foreign.config, "--debug", "--date", FIRST)

    assert done.code == 2
    assert done.err.startswith("Traceback (most recent call last):")
    assert done.err.rstrip().endswith("choose a folder of its own for the results")


def test_unforeseen_failure_is_one_line(foreign: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "it broke\n\tat org.apache.spark.Somewhere"
        raise RuntimeError(message)

    monkeypatch.setattr("rankeval_spark.cli.run.run_night", fail)
    done = rankeval("run", foreign.config, "--date", FIRST)

    assert done.code == 1
    done.assert_readable()
    assert done.err == "error: unexpected RuntimeError: it broke\n--debug shows the trace\n"


@pytest.mark.parametrize("command", [("show",), ("score", "-m", "RR")])
def test_results_are_not_looked_for_where_there_are_none(
    tmp_path: Path,
    command: tuple[str, ...],
) -> None:
    done = rankeval(*command, tmp_path / "nowhere")

    assert done.code == 2
    done.assert_readable()
    assert "(no such folder); expected the results of an earlier run" in done.message
