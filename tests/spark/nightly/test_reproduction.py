"""A published run, run again: pinned inputs make the same of it, whatever happened to the tables since."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.progress import Progress
from rankeval_spark.config import load_config
from rankeval_spark.results import Results
from rankeval_spark.spark.plans import table_diff
from rankeval_spark.spark.session import on_demand
from tests.support import arms, nights, two_nights
from tests.support.arrow_frames import where
from tests.support.cli import rankeval
from tests.support.frames import frame_of
from tests.support.nights import FIRST, GAINS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.cli import Finished
    from tests.support.nights import Rows, Workspace

OTHER_GAINS = {**GAINS, FIRST: {**GAINS[FIRST], "ann": {"a": 1, "c": 3}}}
LATE = {FIRST: {"als": {"kim": "b a c"}}}


@dataclass
class Appending(Progress):
    """Somebody who appends to the log of a run between its reading and its scoring."""

    workspace: Workspace

    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:  # noqa: ARG002 - as it is called
        """Append where the inputs are open and nothing is computed yet."""
        if stage == "read":
            append(self.workspace, nights.recommendations(LATE))


@dataclass(frozen=True)
class Story:
    """What became of the first night: a second run replaced it, and then both were reproduced, with inputs changed."""

    workspace: Workspace
    first: str
    second: str
    files: tuple[list[str], list[str]]
    of_first: Finished
    with_other_judgements: Finished
    after_vacuum: Finished


def append(workspace: Workspace, rows: Rows) -> None:
    deltalake.write_deltalake(
        str(workspace.folder / "inputs" / "recommendations"), nights.arrow_of(rows), mode="append"
    )


def files_of(root: str) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in Path(root).rglob("*"))


def published_run(workspace: Workspace) -> str:
    runs = where(Results(workspace.root).runs(date=FIRST, evaluation="nightly"), status="PUBLISHED")
    (row,) = runs.to_pylist()
    return str(row["run_id"])


@pytest.fixture(scope="module")
def story(
    _published: tuple[Workspace, Finished, Finished],
    _shared_session: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    own = _published[0].copy(tmp_path_factory.mktemp("reproduced"))
    first = published_run(own)
    own.write("judged", nights.held_out(OTHER_GAINS), "parquet")
    own.change(inputs__held_out__format="parquet", inputs__held_out__path="inputs/judged")
    second = run_night(on_demand(nights.no_session), load_config(own.config), FIRST, progress=Appending(own)).run_id
    before = files_of(own.root)
    of_first = rankeval("reproduce", own.root, "--run-id", first)
    after = files_of(own.root)
    own.write("judged", [*nights.held_out(), {**nights.held_out()[0], "item_id": "e"}], "parquet")
    with_other_judgements = rankeval("reproduce", own.root, "--run-id", second)
    own.write("recommendations", nights.recommendations())
    log = deltalake.DeltaTable(str(own.folder / "inputs" / "recommendations"))
    log.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    after_vacuum = rankeval("reproduce", own.root, "--run-id", second)
    return Story(own, first, second, (before, after), of_first, with_other_judgements, after_vacuum)


def test_append_in_the_middle_of_a_run_changes_nothing(story: Story) -> None:
    lists = Results(story.workspace.root).published("lists")
    kim = where(lists, run_id=story.second, model_id="als", user_id="kim").to_pylist()
    assert [row["n_recommended"] for row in kim] == [0]


def test_inputs_are_recorded_with_version_rows_and_columns(story: Story) -> None:
    (row,) = where(Results(story.workspace.root).runs(), run_id=story.second, status="PUBLISHED").to_pylist()
    log, judged, segments = row["inputs"]
    assert (log["version"], log["n_rows"]) == (0, 24)
    assert (judged["version"], judged["n_rows"]) == (None, 7)
    assert (segments["version"], segments["n_rows"]) == (0, 4)
    assert dict(row["input_columns"]) == {
        "recommendations": "day string, model_id string, user_id string, item_id string, score double",
        "held_out": "day string, user_id string, item_id string, gain double",
        "segments": "day string, user_id string, country string",
    }


def test_run_that_was_replaced_is_compared_with_what_it_published(story: Story) -> None:
    done = story.of_first
    assert done.code == 0, done.out + done.err
    assert f"run {story.second} replaced its rows since" in done.out
    assert done.out.splitlines()[-1] == "equal"


def test_input_without_versions_is_read_as_it_is_and_said_to_be_another(story: Story) -> None:
    said = " ".join(story.with_other_judgements.out.replace("│", " ").split())
    assert "held_out parquet - 7 8 has no versions: what is there now; other rows than then" in said
    assert "recommendations delta 0 24 24 the version that the run read" in said


def test_rerun_leaves_the_root_as_it_was(story: Story) -> None:
    before, after = story.files
    assert before == after


def test_difference_is_reported_by_table_column_and_key(story: Story) -> None:
    done = story.with_other_judgements
    assert done.code == 7, done.out + done.err
    said = done.out.splitlines()
    assert "lists: hit_gains differs in 2 rows" in said
    assert "lists: for example model_id=als, user_id=ann, list_id=" in said
    assert said[-1].startswith("different: lists, user_metrics, metrics")
    assert said[-1].endswith("; other inputs than then: held_out")


def test_version_whose_files_are_gone_is_an_error_that_says_so(story: Story) -> None:
    done = story.after_vacuum
    assert done.code == 4, done.out + done.err
    done.assert_readable()
    assert "inputs.recommendations: found a missing data file" in done.message
    assert "VACUUM removes the files of old versions" in done.message


def test_unpublished_run_is_refused_with_the_nearest(story: Story) -> None:
    done = rankeval("reproduce", story.workspace.root, "--run-id", f"{story.first[:-1]}x")
    assert done.code == 4
    done.assert_readable()
    assert f"did you mean '{story.first}'?" in done.message


@pytest.mark.usefixtures("spark")
def test_what_nights_before_decide_is_not_repeated(tmp_path: Path) -> None:
    own = two_nights.workspace(tmp_path / "workspace", nights.PARQUET)
    rule = {"measure": "RR@2", "margin": 0.5, "sequential": True}
    own.change(comparisons={"baseline": "pop", "nights": 7}, gates=[rule, {"measure": "RR@2", "margin": 0.5}])
    for day in (two_nights.THEN, two_nights.NOW):
        run_night(on_demand(nights.no_session), load_config(own.config), day)
    tests = Results(own.root).comparisons(date=two_nights.NOW)
    assert "pooled" in tests["test"].to_pylist()
    again = rankeval("reproduce", own.root, "--run-id", tests["run_id"][0].as_py())
    assert again.code == 0, again.out
    assert "rules 1 of gates, which look at nights before" in again.out
    assert "comparisons of the test pooled, which look at the nights before" in again.out


def test_a_night_whose_covariates_lost_a_user_says_so(tmp_path: Path) -> None:
    own, split = arms.nights_of_a_test(tmp_path), {"baseline": "a", "split": {"a": 0.5, "b": 0.5}}
    run_night(on_demand(nights.no_session), load_config(own.config), FIRST)
    own.change(comparisons={**split, "covariate": FIRST.isoformat()})
    run_id = run_night(on_demand(nights.no_session), load_config(own.config), nights.SECOND).run_id
    user = Results(own.root).user_metrics(date=FIRST)["user_id"][0].as_py()
    assert rankeval("maintain", own.root, "--erase-user", user).code == 0
    done = rankeval("reproduce", own.root, "--run-id", run_id)
    assert done.code == 7, done.out
    assert f"covariates are those that {FIRST} has now" in " ".join(done.out.split())


def test_rows_are_matched_by_key_and_rounding_is_no_difference(spark: SparkSession) -> None:
    columns = "user_id string, slice_values array<string>, segments map<string,string>, value double, n int"
    same = ("same", ["AT", None], {"a": "1", "b": None}, 0.1 + 0.2, None)
    then = [same, ("gone", [], {}, 1.0, 1), ("other", [None], {"a": "1"}, 1 / 2, None)]
    now = [
        ("same", ["AT", None], {"b": None, "a": "1"}, 0.3, None),
        ("new", [], {}, 1.0, 1),
        ("other", [None], {"a": "2"}, 1 / 4, 3),
    ]

    key = ("user_id", "slice_values")
    rows = table_diff.to_differences(frame_of(spark, then, columns), frame_of(spark, now, columns), key=key).cache()

    assert table_diff.difference_counts({"metrics": rows}).collect()[0].asDict() == {
        "table": "metrics",
        "n_published": 3,
        "n_missing": 1,
        "n_extra": 1,
        "n_differing": 1,
        "n_rounded": 1,
    }
    assert [tuple(row) for row in table_diff.differences_by_column(rows).collect()] == [
        ("value", 2, 1 / 4),
        ("n", 1, None),
        ("segments", 1, None),
    ]
    assert [row["example"] for row in table_diff.difference_examples(rows, key=key).collect()] == [
        "user_id=gone, slice_values=",
        "user_id=new, slice_values=",
        "user_id=other, slice_values=NULL",
    ]


def test_column_that_a_later_version_added_is_no_difference(spark: SparkSession) -> None:
    published = frame_of(spark, [("als", 1.0)], "model_id string, value double")
    rerun = frame_of(spark, [("als", 1.0, 3)], "model_id string, value double, n_lists int")
    rows = table_diff.to_differences(published, rerun, key=["model_id"])
    assert [row["unlike"] for row in rows.collect()] == [[]]
