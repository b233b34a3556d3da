"""A whole night without a JVM: from tables on disk to published tables, and what is left of one that crashed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError, ConfigError, InputError
from rankeval_spark.inputs.arrow.files import FileTable
from rankeval_spark.results import failpoints
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS, Workspace, no_session

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.apps.nightly.night import NightResult

TABLES = ("lists", "user_metrics", "metrics", "group_metrics", "checks")


def run(workspace: Workspace, day: date = FIRST, *overrides: str) -> NightResult:
    return run_night(on_demand(no_session), load_config(workspace.config, overrides), day)


def runs(workspace: Workspace) -> list[tuple[str, date, str]]:
    events = sorted(workspace.rows("runs"), key=lambda event: event["recorded_at"])
    return [(event[C.RUN_ID], event[C.EVALUATION_DATE], event["status"]) for event in events]


def test_rows_and_events_are_those_that_are_published(workspace: Workspace) -> None:
    result = run(workspace)
    assert result.n_rows == {table: len(workspace.rows(table)) for table in TABLES}
    assert [status for _, _, status in runs(workspace)] == ["RUNNING", "PUBLISHING", "PUBLISHED"]


def lose(workspace: Workspace, *names: str, day: date = FIRST) -> None:
    """Leave the rows of a date out of some inputs."""
    of_all = {"recommendations": nights.recommendations(), "held_out": nights.held_out()}
    for name in names:
        workspace.write(name, [row for row in of_all[name] if row["day"] != day.isoformat()])


@pytest.mark.parametrize("lost", [("recommendations",), ("held_out",), ("recommendations", "held_out")])
def test_empty_night_replaces_no_published_means(workspace: Workspace, lost: tuple[str, ...]) -> None:
    first = run(workspace).run_id
    before = {table: workspace.rows(table) for table in TABLES}
    lose(workspace, *lost)

    with pytest.raises(InputError) as refused:
        run(workspace)

    (fault,) = refused.value.faults
    assert (fault.where, fault.found) == ("nightly, 2026-01-01", f"no rows for 2026-01-01 in {' and '.join(lost)}")
    assert f"run {first} measured, whose results stay published" in fault.expected
    assert {table: workspace.rows(table) for table in TABLES} == before
    assert runs(workspace)[-1][2] == "FAILED"
    assert not any(Path(workspace.root, "_staging").iterdir())


def test_empty_night_may_replace_an_empty_one(workspace: Workspace) -> None:
    assert run(workspace, WITHOUT_ROWS).reason == run(workspace, WITHOUT_ROWS).reason
    run(workspace)
    assert run(workspace, WITHOUT_ROWS).reason is not None  # of another date there are means


@pytest.mark.parametrize(
    ("models", "found"),
    [
        ("[als, pop]", "no list of als, pop for any of 5 judged users; the log of this date has no row"),
        ("[alsx]", "no list of alsx for any of 5 judged users; the log of this date has no row"),
    ],
)
def test_log_that_is_lost_fails_where_the_config_names_models(workspace: Workspace, models: str, found: str) -> None:
    """As it does where one of several models is missing, whether the night was published before or not."""
    lose(workspace, "recommendations")
    with pytest.raises(ChecksFailedError, match=re.escape(f"recommendations, missing_users: found {found}")):
        run(workspace, FIRST, f"models={models}")
    assert runs(workspace)[-1][2] == "FAILED"


def test_log_that_has_no_row_of_a_sample_is_not_called_empty(workspace: Workspace) -> None:
    lose(workspace, "recommendations")
    config = load_config(workspace.config, ["models=[als]"])
    with pytest.raises(ChecksFailedError, match=r"the log of this date has no row of 0\.9 of the users"):
        run_night(on_demand(no_session), config, FIRST, sample_share=0.9)


def test_log_without_any_named_model_fails_with_those_that_it_has(workspace: Workspace) -> None:
    with pytest.raises(ChecksFailedError, match=r"the log of this date has als, pop; .*did you mean 'als'"):
        run(workspace, FIRST, "models=[alsx]")


def test_date_without_traffic_is_empty_where_the_config_names_models_too(workspace: Workspace) -> None:
    assert run(workspace, WITHOUT_ROWS, "models=[als, pop]").reason == (
        "no rows for 2026-01-03 in recommendations and held_out (looked for: models als, pop)"
    )
    lose(workspace, "held_out")
    assert run(workspace, FIRST, "models=[als, pop]").reason is not None
    allowed = run(workspace, WITHOUT_ROWS, "models=[als, pop]", "checks.missing_users={}")
    assert allowed.n_rows.keys() == {"checks"}


def test_a_baseline_that_the_log_does_not_have_is_refused(workspace: Workspace) -> None:
    with pytest.raises(
        ConfigError, match="'popp'; expected a model of the log: als, pop; did you mean 'pop'"
    ) as caught:
        run(workspace, FIRST, "comparisons={baseline: popp}")

    assert caught.value.faults[0].where == "comparisons.baseline"
    assert [status for _, _, status in runs(workspace)] == ["RUNNING", "FAILED"]
    # A log without rows has no models to choose from, and an expected model may have no list.
    assert run(workspace, WITHOUT_ROWS, "comparisons={baseline: popp}").reason
    of_models = ("comparisons={baseline: popp}", "models=[als, popp]", "checks.missing_users={}")
    assert run(workspace, FIRST, *of_models).n_rows["comparisons"]


def test_each_input_is_read_once_and_only_what_its_date_has(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, int]] = []
    original = FileTable.read

    def counting(table: FileTable, *arguments: Any) -> Any:  # noqa: ANN401 - as it is called
        rows = original(table, *arguments)
        read.append((Path(table.location).name, rows.num_rows))
        return rows

    monkeypatch.setattr(FileTable, "read", counting)
    run(workspace)
    assert sorted(read) == [("held_out", 7), ("recommendations", 24), ("segments", 4)]


def test_next_night_finishes_what_a_crashed_one_announced(workspace: Workspace) -> None:
    """``spark/results/test_crashes.py`` crashes at every point."""
    run(workspace)
    with failpoints.armed("after_user_metrics"), pytest.raises(failpoints.FailpointError):
        run(workspace, FIRST, "slicing.min_slice_size=3")
    crashed = runs(workspace)[-1][0]

    run(workspace, SECOND)
    assert [event[2] for event in runs(workspace) if event[0] == crashed] == [
        "RUNNING",
        "PUBLISHING",
        "FAILED",
        "PUBLISHED",
    ]
    for table in TABLES:
        of_first = {row[C.RUN_ID] for row in workspace.rows(table) if row[C.EVALUATION_DATE] == FIRST}
        assert of_first == {crashed}, table
    assert not any(Path(workspace.root, "_staging").iterdir())


def test_measures_that_are_new_add_their_columns(workspace: Workspace) -> None:
    run(workspace)
    run(workspace, SECOND, "measures=[RR, P(agg='micro')]")
    columns = deltalake.DeltaTable(f"{workspace.root}/user_metrics").schema().fields
    added = {field.name: field.metadata["comment"] for field in columns if field.name.startswith("p_")}
    assert set(added) == {"p_agg_micro", "p_agg_micro__weight"}
    assert added["p_agg_micro"].startswith("P(")
    assert len({tuple(row) for row in workspace.rows("user_metrics")}) == 1


def without_run(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: value for name, value in row.items() if name != C.RUN_ID} for row in found), key=str)


def test_a_pinned_version_is_read_here_until_its_files_are_gone(workspace: Workspace) -> None:
    pin_config = ("inputs.recommendations.version=0",)
    result = run(workspace)
    before = without_run(workspace.rows("user_metrics"))
    workspace.write("recommendations", nights.recommendations({FIRST: {"als": {"ann": "x y z"}}}))

    again = run(workspace, FIRST, *pin_config)

    assert again.n_rows == result.n_rows
    assert without_run(workspace.rows("user_metrics")) == before
    log = deltalake.DeltaTable(f"{workspace.folder}/inputs/recommendations", version=0)
    for file in log.file_uris():
        Path(file).unlink()
    with pytest.raises(AssertionError, match="a session was started"):
        run(workspace, FIRST, *pin_config)


def checks_of(workspace: Workspace, name: str) -> list[tuple[Any, ...]]:
    """Return input, count, share and verdict of a check."""
    read = ("input", "count", "share", "verdict")
    return [tuple(row[column] for column in read) for row in workspace.rows("checks") if row["check"] == name]


def test_purchases_that_are_added_up_do_not_fail_a_night_as_duplicates(workspace: Workspace) -> None:
    """One, five and three rows of three items: six of nine rows repeat another."""
    bought = {"a": 1, "b": 5, "c": 3}
    workspace.write(
        "held_out", [{"user_id": "ann", "item_id": i, "day": FIRST} for i, n in bought.items() for _ in range(n)]
    )
    with pytest.raises(ChecksFailedError, match=r"held_out, duplicates: found 6 \(66.67%\)"):
        run(workspace)
    result = run(workspace, FIRST, "policies.held_out_duplicates=sum", "measures=[CG]")
    assert not [text for text in result.warnings if "duplicates" in text]
    assert ("held_out", 6, 6 / 9, "ok") in checks_of(workspace, "duplicates")
    means = {
        row[C.MODEL_ID]: row[C.VALUE]
        for row in workspace.rows("metrics")
        if row[C.SLICE] == C.ALL_USERS and row[C.K] == 2
    }
    assert means == {"als": 1 + 5, "pop": 5 + 1}


def with_train(workspace: Workspace, *pairs: tuple[str, str]) -> None:
    workspace.write("train", [{"user_id": user, "item_id": item} for user, item in pairs])
    workspace.change(inputs__train={"format": nights.DELTA, "path": "inputs/train"})


def test_a_night_warns_of_judgements_in_train_and_says_what_to_do(workspace: Workspace) -> None:
    """Seven judgements of the first date, two of which are in the training data."""
    with_train(workspace, ("ann", "a"), ("ann", "a"), ("eve", "e"), ("zoe", "a"))
    result = run(workspace)
    (text,) = [text for text in result.warnings if "held_out_in_train" in text]
    assert text == (
        "held_out, held_out_in_train: 2 (28.57%), for example ann a; eve e; where users consume items again, this is "
        "legitimate, and checks.held_out_in_train: {} silences it; otherwise set policies.seen_in_train: drop_both, "
        "which leaves such pairs out of lists and judgements"
    )
    assert checks_of(workspace, "held_out_in_train") == [("held_out", 2, 2 / 7, "warn")]
    silent = run(workspace, FIRST, "checks.held_out_in_train={}")
    assert not [text for text in silent.warnings if "in_train" in text]
    assert checks_of(workspace, "held_out_in_train") == []
    with pytest.raises(ChecksFailedError, match="consume items again"):
        run(workspace, FIRST, "checks.held_out_in_train={error: 0.2}")


def test_a_night_drops_judgements_in_train_with_both(workspace: Workspace) -> None:
    """Ann's a leaves her lists and judgements, so that c is her only relevant item; eve keeps b alone."""
    with_train(workspace, ("ann", "a"), ("eve", "e"))
    run(workspace, FIRST, "policies.seen_in_train=drop_both", "checks.held_out_in_train={}", "measures=[R]")
    means = {
        (row[C.MODEL_ID], row[C.K]): row[C.VALUE] for row in workspace.rows("metrics") if row[C.SLICE] == C.ALL_USERS
    }
    # als: ann b c, bob b a d, eve c d a, kim no list; pop: ann b c, bob d a b, eve a b, kim b a c.
    assert means == {("als", 1): 0.0, ("als", 2): 1 / 4, ("pop", 1): 2 / 4, ("pop", 2): 4 / 4}
    assert checks_of(workspace, "held_out_in_train") == [("held_out", 2, 2 / 7, "ok")]
    assert checks_of(workspace, "seen_in_train") == [("recommendations", 3, 3 / 24, "ok")]
