"""Nights of TREC files, and of logs with a place for each model: the same as of one table."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import least_cost, load_config
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ChecksFailedError, ConfigError
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.spark.session import on_demand
from tests.support import nights, trec
from tests.support.cli import rankeval
from tests.support.nights import FIRST, no_session
from tests.support.united_logs import with_paths, with_trec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

TABLES = ("lists", "user_metrics", "metrics")


def published(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    """Run a night here; its rows without the run and without what only a table with ranks has."""
    run_night(on_demand(no_session), load_config(workspace.config), FIRST)
    left_out = ("run_id", "has_rank_gaps", "is_out_of_order")
    return {
        table: sorted(
            ({name: value for name, value in row.items() if name not in left_out} for row in workspace.rows(table)),
            key=str,
        )
        for table in TABLES
    }


@pytest.fixture
def flat(tmp_path: Path) -> dict[str, list[dict[str, Any]]]:
    return published(nights.workspace(tmp_path / "flat"))


@pytest.mark.parametrize("has_one_file", [True, False], ids=["one file", "a folder with a file a model"])
def test_a_run_and_its_judgements_are_those_of_tables(
    tmp_path: Path, flat: dict[str, list[dict[str, Any]]], *, has_one_file: bool
) -> None:
    assert published(with_trec(nights.workspace(tmp_path / "trec"), has_one_file=has_one_file)) == flat


def test_packed_files_are_read_too(tmp_path: Path, flat: dict[str, list[dict[str, Any]]]) -> None:
    made = with_trec(nights.workspace(tmp_path / "trec"))
    file = made.folder / "inputs" / "runs" / "all.txt"
    (file.parent / "all.txt.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert published(made) == flat


@pytest.mark.parametrize("format_", ["delta", "parquet", "trec"])
def test_a_place_for_each_model_is_as_one_table(
    tmp_path: Path, flat: dict[str, list[dict[str, Any]]], format_: str
) -> None:
    assert published(with_paths(nights.workspace(tmp_path / "paths"), format_)) == flat


def test_the_key_of_a_path_names_the_model_whatever_a_run_calls_itself(tmp_path: Path) -> None:
    made = with_paths(nights.workspace(tmp_path), "trec", tag="run")
    assert {row["model_id"] for row in published(made)["metrics"]} == {"als", "pop"}


def test_filters_choose_models_and_days_by_statistics(tmp_path: Path) -> None:
    made = with_paths(nights.workspace(tmp_path), "delta")
    made.change(inputs__recommendations__filters=[{"column": "model_id", "op": "=", "value": "als"}])
    config = load_config(made.config)
    log = open_inputs(config, request_of(config, FIRST), FIRST)[0]
    n_als = sum(row["model_id"] == "als" for row in nights.recommendations())
    assert (log.n_rows, log.version) == (n_als, None)
    assert log.read().table["model_id"].unique().to_pylist() == ["als"]


def without_rows_of_als(folder: Path, format_: str = "delta") -> Workspace:
    """Make a night on which one of two models wrote nothing."""
    made = with_paths(nights.workspace(folder), format_)
    later = [row for row in nights.recommendations() if row["model_id"] == "als" and row["day"] != str(FIRST)]
    made.write("als", [{name: row[name] for name in row if name != "model_id"} for row in later], format_)
    return made


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_a_model_whose_place_has_no_rows_of_the_date_fails_the_night(tmp_path: Path, format_: str) -> None:
    made = without_rows_of_als(tmp_path, format_)
    with pytest.raises(
        ChecksFailedError, match="no list of als for any of 5 judged users; the log of this date has pop"
    ):
        run_night(on_demand(no_session), load_config(made.config), FIRST)


def test_a_model_without_rows_has_no_hit_where_that_may_be_published(tmp_path: Path) -> None:
    made = without_rows_of_als(tmp_path)
    config = load_config(made.config, ("checks.missing_users={}",))
    run_night(on_demand(no_session), config, FIRST)
    of_all = [row for row in made.rows("metrics") if row["slice"] == "all"]
    assert {row["model_id"] for row in of_all} == {"als", "pop"}
    assert {row["value"] for row in of_all if row["model_id"] == "als"} == {0.0}
    assert least_cost(config).n_models == 2


@pytest.mark.parametrize(("key", "expected"), [("models", ["pop"]), ("filters", ["pop"])])
def test_models_and_filters_choose_which_places_count(tmp_path: Path, key: str, expected: list[str]) -> None:
    made = without_rows_of_als(tmp_path)
    if key == "models":
        made.change(models=expected)
    else:
        day = {"column": "day", "op": "=", "value": "{date}"}
        made.change(inputs__recommendations__filters=[day, {"column": "model_id", "op": "in", "value": ["als", "pop"]}])
    run_night(on_demand(no_session), load_config(made.config), FIRST)
    assert {row["model_id"] for row in made.rows("metrics")} == {*expected}


@pytest.mark.parametrize("format_", ["delta", "parquet", "trec"])
def test_a_night_of_one_place_has_one_model(
    tmp_path: Path, flat: dict[str, list[dict[str, Any]]], format_: str
) -> None:
    made = with_paths(nights.workspace(tmp_path / "one"), format_)
    made.change(inputs__recommendations__paths={"als": "inputs/als"})
    assert published(made) == {table: [row for row in flat[table] if row["model_id"] == "als"] for table in TABLES}


def test_each_place_is_recorded_and_shown(tmp_path: Path) -> None:
    made = with_paths(nights.workspace(tmp_path), "parquet")
    published(made)
    (run,) = (row for row in made.rows("runs") if row["status"] == "PUBLISHED")
    folder = made.folder / "inputs"
    assert json.loads(run["inputs"][0]["location"]) == {"als": str(folder / "als"), "pop": str(folder / "pop")}
    done = rankeval("validate", made.config, "--date", FIRST, "--json")
    names = [one["name"] for one in json.loads(done.out)["inputs"]]
    assert names == ["recommendations.paths.als", "recommendations.paths.pop", "held_out", "segments"]
    made.change(inputs__recommendations__paths={"als": "inputs/als", "pop": "inputs/none"})
    missing = rankeval("validate", made.config, "--date", FIRST)
    assert missing.code == 4
    assert "inputs.recommendations.paths.pop: found no such path" in missing.message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("u Q0 a 1 0.5\n", "5 fields"),
        ("u Q0 a 1 much m\n", "'much'"),
        ("# nothing\n\n", "no line with content"),
    ],
)
def test_lines_of_another_form_are_left_to_spark(tmp_path: Path, text: str, why: str) -> None:
    made = with_trec(nights.workspace(tmp_path))
    (made.folder / "inputs" / "runs" / "all.txt").write_text(text)
    config = load_config(made.config)
    with pytest.raises(ForSparkError, match=why):
        open_inputs(config, request_of(config, FIRST), FIRST)


def test_what_rank_a_run_has_does_not_matter(tmp_path: Path, flat: dict[str, list[dict[str, Any]]]) -> None:
    made = with_trec(nights.workspace(tmp_path / "trec"))
    file = made.folder / "inputs" / "runs" / "all.txt"
    file.write_text(re.sub(r"  \d+ ", " - ", file.read_text()))
    assert " - " in file.read_text()
    assert published(made) == flat


def test_a_night_with_the_preset_has_the_numbers_of_the_command(tmp_path: Path) -> None:
    run, judgements = trec.random_topics(7)
    qrels_path, run_path = trec.write_files(tmp_path, run, judgements)
    made = nights.workspace(tmp_path / "night")
    made.configure(
        {
            "evaluation": "trec",
            "preset": "trec_eval",
            "inputs": {
                "recommendations": {"format": "trec", "path": str(run_path)},
                "held_out": {"format": "trec", "path": str(qrels_path)},
            },
            "measures": ["AP", "P@5", "RR"],
            "checks": {"missing_users": {}},
            "results": {"root": "results"},
        }
    )
    run_night(on_demand(no_session), load_config(made.config), FIRST)
    means = {row["measure"]: f"{row['value']:.4f}" for row in made.rows("metrics")}
    asked = ("-m", "map", "-m", "P.5", "-m", "recip_rank")
    command = rankeval("trec", "-c", "--trec-eval", "9", *asked, qrels_path, run_path)
    printed = {name.strip(): value for name, _, value in (line.split("\t") for line in command.out.splitlines())}
    assert means == {"AP": printed["map"], "P": printed["P_5"], "RR": printed["recip_rank"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "one", "paths": {"als": "a"}}, "both paths and path; expected one of them"),
        ({"paths": {"als": "a"}, "version": 3}, "both paths and version"),
        ({"paths": {"als": "a"}, "columns": {"model_id": "algorithm"}}, "both paths and columns.model_id"),
        ({"paths": {}}, "no path; expected a path of each model"),
        ({"paths": {"als": "a"}, "format": "table"}, "paths with format table.*make a view"),
        ({"paths": {"als": "{day}/a"}}, "placeholder {day}"),
    ],
)
def test_what_contradicts_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    made = nights.workspace(tmp_path)
    made.change(inputs__recommendations={"format": "delta", **changes})
    with pytest.raises(ConfigError, match=message):
        load_config(made.config)


@pytest.mark.parametrize("name", ["segments", "train", "items"])
def test_only_runs_and_judgements_are_files_of_trec(tmp_path: Path, name: str) -> None:
    made = nights.workspace(tmp_path)
    made.change(**{f"inputs__{name}": {"format": "trec", "path": "x"}})
    with pytest.raises(ConfigError, match=rf"inputs.{name}.format.*only a run and its judgements are TREC files"):
        load_config(made.config)
