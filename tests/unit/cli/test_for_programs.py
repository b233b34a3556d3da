"""What programs read: JSON on standard output, notes on standard error, silence where it is wanted, no colours."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import Results
from rankeval_spark.cli.published import RUN_COLUMNS
from rankeval_spark.cli.terminal import json_text
from rankeval_spark.config import load_config
from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS
from tests.support.published import Root, frames_of
from tests.support.terminal import on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish two dates with rows and one without."""
    made = nights.workspace(
        tmp_path_factory.mktemp("programs") / "workspace",
        comparisons={"baseline": "pop"},
        gates=[{"measure": "RR@2", "at_least": 0.95}],
    )
    root = Root(made.root, load_config(made.config))
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"nightly-{day}")
    root.publish_nothing(WITHOUT_ROWS, run_id="nothing", reason="no rows")
    return made


def read(done: Finished) -> Any:  # noqa: ANN401 - whatever the JSON is
    """Read all of standard output as JSON."""
    return json.loads(done.out)


@pytest.mark.parametrize("arguments", [("show",), ("compare", "--against", "previous", "--date", SECOND)])
def test_json_and_csv_have_the_same_rows_and_exclude_each_other(
    published: Workspace, arguments: tuple[object, ...]
) -> None:
    command, *options = arguments

    rows = read(rankeval(command, published.root, *options, "--json"))
    as_csv = rankeval(command, published.root, *options, "--csv").out.splitlines()

    assert len(rows) == len(as_csv) - 1 > 1
    assert list(rows[0]) == as_csv[0].split(",")
    refused = rankeval(command, published.root, *options, "--json", "--csv")
    assert (refused.code, refused.out) == (2, "")
    assert "--json and --csv: found both; expected one of them" in refused.message


def test_gate_prints_a_row_a_rule_and_model_and_ends_with_its_code(published: Workspace) -> None:
    done = rankeval("gate", published.root, "--date", FIRST, "--json")

    rows = read(done)
    assert {(row["evaluation_date"], row["verdict"]) for row in rows} == {(FIRST.isoformat(), "failed")}
    assert done.code == 6


def test_an_evaluation_without_rules_hides_no_verdict_of_another(tmp_path: Path) -> None:
    """The newest night of each evaluation is judged; one without a rule has a note, and a fault where none has any."""
    made = nights.workspace(tmp_path / "workspace", gates=[{"measure": "RR@2", "at_least": 0.95}])
    root = Root(made.root, load_config(made.config))
    root.publish(FIRST, frames_of(FIRST), run_id="judged")
    made.change(evaluation="other", gates=[])
    root.publish(FIRST, frames_of(FIRST), run_id="other", config=load_config(made.config))

    done = rankeval("gate", made.root, "--json")

    assert (done.code, {row["evaluation"] for row in read(done)}) == (6, {"nightly"})
    assert "other, 2026-01-01: not judged, its config has no rule" in done.err
    refused = rankeval("gate", made.root, "--evaluation", "other")
    assert (refused.code, refused.out) == (2, "")
    assert "other, 2026-01-01: found no rule; expected gates in the config" in refused.message


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish two evaluations with newest nights of their own, an empty night after them, and a sample after that."""
    made = nights.workspace(
        tmp_path_factory.mktemp("several") / "workspace", gates=[{"measure": "RR@2", "at_least": 0.95}]
    )
    config = load_config(made.config)
    root = Root(made.root, config)
    root.publish(FIRST, frames_of(FIRST), run_id="other", config=config.model_copy(update={"evaluation": "other"}))
    root.publish(SECOND, frames_of(SECOND), run_id="nightly")
    root.publish_nothing(WITHOUT_ROWS, run_id="nothing", reason="no rows")
    Root(made.root, config, sample_share=0.5).publish(date(2026, 1, 4), frames_of(SECOND), run_id="sample")
    return made


OF_SEVERAL = [("nightly", SECOND.isoformat()), ("other", FIRST.isoformat())]
"""Evaluations and their newest nights."""


def nights_in(done: Finished) -> list[tuple[str, str]]:
    return sorted({(row["evaluation"], row["evaluation_date"]) for row in read(done)})


def test_each_evaluation_has_its_own_newest_night_and_a_sample_is_named(several: Workspace) -> None:
    judged = rankeval("gate", several.root, "--json")
    assert (judged.code, nights_in(judged)) == (6, OF_SEVERAL)
    said = "nightly, 2026-01-02: judged as the newest night with means; nothing was measured on 2026-01-03"
    assert said in judged.err
    assert nights_in(rankeval("show", several.root, "--json")) == OF_SEVERAL

    named = ("--evaluation", "nightly.sample-0.5", "--json")
    sample = [("nightly.sample-0.5", "2026-01-04")]
    assert nights_in(rankeval("gate", several.root, *named)) == sample
    assert nights_in(rankeval("show", several.root, *named)) == sample
    of_date = rankeval("show", several.root, "--date", "2026-01-04", "--json")
    assert nights_in(of_date) == sample  # nothing else is of that date


def test_titles_name_the_newest_night(several: Workspace) -> None:
    done = rankeval("gate", several.root)
    assert "nightly, 2026-01-02" in done.out
    assert "other, 2026-01-01" in done.out


def test_the_newest_night_is_the_same_everywhere(several: Workspace, tmp_path: Path) -> None:
    of_it, page = ("--evaluation", "nightly"), tmp_path / "report.html"
    compared = rankeval("compare", several.root, *of_it, "--against", "pop", "--json")
    assert nights_in(compared) == OF_SEVERAL[:1]
    assert rankeval("report", several.root, *of_it, "--out", page).code == 0
    assert "<title>nightly, 2026-01-02" in page.read_text()
    assert set(Results(several.root).latest(evaluation="nightly")["evaluation_date"].to_pylist()) == {SECOND}
    several_named = rankeval("compare", several.root, "--against", "previous")
    assert "found several evaluations; expected one of: nightly, other" in several_named.message


def test_gate_of_a_night_without_rows_prints_no_row(published: Workspace) -> None:
    done = rankeval("gate", published.root, "--date", WITHOUT_ROWS, "--json")

    assert (done.code, read(done)) == (0, [])
    assert done.err == "note: nightly, 2026-01-03: nothing to judge, no rows\n"
    assert rankeval("gate", published.root, "--date", WITHOUT_ROWS, "--quiet").err == ""


def test_runs_have_their_outcome_and_their_id(published: Workspace) -> None:
    rows = read(rankeval("runs", published.root, "--json"))

    assert [list(row) for row in rows] == [list(RUN_COLUMNS)] * 3
    assert [(row["evaluation_date"], row["run_id"], row["status"]) for row in rows] == [
        (FIRST.isoformat(), f"nightly-{FIRST}", "PUBLISHED"),
        (SECOND.isoformat(), f"nightly-{SECOND}", "PUBLISHED"),
        (WITHOUT_ROWS.isoformat(), "nothing", "PUBLISHED"),
    ]
    assert [row["reason"] for row in rows] == [None, None, "no rows"]
    of_a_day = read(rankeval("runs", published.root, "--date", SECOND, "--evaluation", "nightly", "--json"))
    assert of_a_day == [rows[1]]
    assert all(datetime.fromisoformat(row["started_at"]).tzinfo == UTC for row in rows)


def test_runs_and_the_report_say_why_a_night_failed(tmp_path: Path) -> None:
    made, page = nights.workspace(tmp_path / "workspace"), tmp_path / "report.html"
    without_user = {"day": FIRST.isoformat(), "user_id": None, "item_id": "a", "gain": 1.0}
    made.write("held_out", [*nights.held_out(), without_user])
    strict = ("--set", "checks.null_keys.error=0", "--set", "results.quarantine=false")
    assert rankeval("run", made.config, "--date", FIRST, *strict).code == 3

    (row,) = read(rankeval("runs", made.root, "--json"))
    why = "check, code 3: held_out, null_keys: found 1 (12.50%)"
    assert row["reason"].startswith(why)
    assert why in " ".join(rankeval("runs", made.root).out.replace("│", " ").split())
    assert rankeval("report", made.root, "--date", FIRST, "--out", page).code == 0
    assert "The run failed. Check, code 3: held_out, null_keys: found 1 (12.50%)" in page.read_text()


def test_runs_are_a_table_for_people(published: Workspace) -> None:
    done = rankeval("runs", published.root)

    assert (done.code, done.err) == (0, "")
    assert done.out.count("PUBLISHED") == 3
    none = rankeval("runs", published.root, "--evaluation", "other")
    assert (none.code, none.out) == (4, "")
    assert "found no run of other; expected one of the evaluations: nightly" in none.message


def test_validate_prints_one_object(published: Workspace) -> None:
    found = read(rankeval("validate", published.config, "--json"))

    assert found["evaluation"] == "nightly"
    assert (found["n_measures"], found["n_cutoffs"], found["n_slices"]) == (3, 2, 1)
    assert found["least_metrics"] == (1 + 1) * 3 * 2
    meaning = "the mean itself meets the bound, whatever its interval"
    assert found["gates"] == [{"rule": "RR@2: at_least 0.95", "meaning": meaning}]


def test_quiet_leaves_faults_and_results(published: Workspace) -> None:
    assert rankeval("validate", published.config, "--quiet") == Finished(0, "", "")
    assert rankeval("--quiet", "validate", published.folder / "none.yaml").code == 2
    nothing = ("show", published.root, "--measure", "GroupGap(RR)", "--slice", "all")  # known, but in no row together
    assert rankeval(*nothing, "--quiet") == Finished(0, "", "")
    assert rankeval("show", published.root, "--model", "ghost", "--quiet").code == 2
    assert rankeval("show", published.root, "--quiet").out == rankeval("show", published.root).out
    again = rankeval(*nothing)
    assert again.err.startswith("note: no row matches")  # of one command only


def test_a_quiet_backfill_names_the_dates_that_need_a_look(tmp_path: Path) -> None:
    """An empty date has its warnings too: three days before it had rows."""
    made = nights.workspace(tmp_path / "workspace")
    days = [date(2026, 1, 4) + timedelta(days=place) for place in range(4)]
    log, held_out = (
        [{**row, "day": day.isoformat()} for day in days[:3] for row in rows if row["day"] == FIRST.isoformat()]
        for rows in (nights.recommendations(), nights.held_out())
    )
    made.write("recommendations", log)
    made.write("held_out", held_out)

    good = rankeval("backfill", made.config, "--from", days[0], "--to", days[2], "--quiet")
    assert good == Finished(0, "", "")
    empty = rankeval("backfill", made.config, "--from", days[2], "--to", days[3], "--quiet")
    assert (empty.code, empty.err) == (0, "")
    said = " ".join(empty.out.replace("│", " ").split())
    assert "published empty" in said
    assert "no rows for 2026-01-07 in recommendations and held_out" in said
    assert "held_out, volume: 7 (100.00%), for example 0 rows, 7 by the median of 3 nights" in said


@pytest.mark.parametrize("arguments", [(), ("runs",), ("gate",), ("show",)])
def test_there_is_no_colour_without_a_terminal(published: Workspace, arguments: tuple[str, ...]) -> None:
    done = rankeval(*arguments, *([published.root] if arguments else []))

    assert "\x1b" not in done.out + done.err


def test_validate_of_a_date_says_what_is_read_and_where(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")

    found = read(rankeval("validate", made.config, "--date", FIRST, "--json"))

    assert (found["evaluation_date"], found["host"], found["why_spark"]) == (FIRST.isoformat(), "process", None)
    names = ["recommendations", "held_out", "segments"]
    assert [one["name"] for one in found["inputs"]] == names
    of_all_days = [len(rows) for rows in (nights.recommendations(), nights.held_out(), nights.segments())]
    assert [one["n_rows"] for one in found["inputs"]] == of_all_days  # one file has both dates
    shown = rankeval("validate", made.config, "--date", FIRST)
    assert shown.out.splitlines()[-1] == "would run in this process, without Spark"
    on_spark = rankeval("validate", made.config, "--date", FIRST, "--set", "spark.always=true")
    assert on_spark.out.splitlines()[-1] == "would run on Spark: spark.always is true"


def test_validate_of_a_date_refuses_an_input_that_is_not_there(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    path = {"format": "parquet", "path": "inputs/{date}.parquet"}
    made.change(inputs__held_out=path)

    done = rankeval("validate", made.config, "--date", FIRST, "--json")

    assert done.code == 4
    assert [one["is_missing"] for one in read(done)["inputs"]] == [False, True, False]
    assert f"inputs.held_out: found no such path at {tmp_path}/workspace/inputs/2026-01-01.parquet" in done.message
    assert rankeval("validate", made.config).code == 0


def test_validate_of_a_date_refuses_times_in_nanoseconds(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    path = tmp_path / "workspace" / "events.parquet"
    times = pa.array([0], pa.timestamp("ns"))
    pq.write_table(pa.table({"user_id": ["ann"], "item_id": ["a"], "interacted_at": times}), path)
    made.change(inputs__held_out={"format": "parquet", "path": "events.parquet"})

    done = rankeval("validate", made.config, "--date", FIRST)

    assert done.code == 4
    found = f"times in nanoseconds, which Spark does not read: interacted_at at {path}; expected microseconds"
    assert f"inputs.held_out: found {found}" in done.message
    assert "coerce_timestamps='us'" in done.message


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {"slices": ["contry"]},
            r"inputs.segments: found no column 'contry' .*slices name; did you mean 'country'\?",
        ),
        (
            {"inputs__recommendations__columns": {"score": "scroe"}},
            r"inputs.recommendations.columns.score: found no column 'scroe' \(for score\) .*did you mean 'score'\?",
        ),
        (
            {"inputs__recommendations__filters": [{"column": "dya", "op": "=", "value": 1}]},
            r"inputs.recommendations.filters\[0\].column: found no column 'dya' among day, .*",
        ),
    ],
)
def test_validate_of_a_date_refuses_columns_that_are_not_there(
    tmp_path: Path, changes: dict[str, Any], found: str
) -> None:
    made = nights.workspace(tmp_path / "workspace")
    made.change(**changes)

    done = rankeval("validate", made.config, "--date", FIRST)

    assert done.code == 4
    assert re.search(found, done.message)
    assert "valid;" not in done.out
    assert "would run" not in done.out
    assert rankeval("validate", made.config).code == 0


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]m")


@pytest.mark.parametrize(
    ("variables", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_has_colours_unless_the_user_wants_none(
    published: Workspace, variables: dict[str, str], has_colour: bool
) -> None:
    script = f"from rankeval_spark.cli import main\nmain(['show', {published.root!r}, '--date', '{FIRST}'])"

    said = on_a_terminal(script, environment=variables, keeps_codes=True)

    assert "nDCG@2" in said
    assert bool(COLOUR.search(said)) is has_colour


def test_quiet_shows_no_progress_on_a_terminal(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    run = f"['run', {str(made.config)!r}, '--date', '{FIRST}', '--set', 'results.lists=false'"

    said = on_a_terminal(f"""
from rankeval_spark.cli import main
for more in (["--quiet"], []):
    print("now", *more)
    try:
        main([{run[1:]}, *more])
    except SystemExit as ended:
        assert not ended.code
""")

    quiet, _, loud = said.partition("now\r\n")
    assert quiet == "now --quiet\r\n"
    assert re.findall(r"done (\w+) +[\d.]+ s", loud) == [
        *("read", "score", "check", "summarise", "drift", "audit", "publish")
    ]


def test_a_run_and_a_backfill_are_one_document_each(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace", gates=[{"measure": "RR@2", "at_least": 0.95}])

    ran = rankeval("run", made.config, "--date", FIRST, "--json")
    one = read(ran)
    assert (ran.code, one["exit_code"], one["status"], one["evaluation_date"]) == (6, 6, "PUBLISHED", FIRST.isoformat())
    assert [row["verdict"] for row in one["gates"]] == ["failed"] * len(one["gates"])
    assert one["run_id"] == read(rankeval("runs", made.root, "--json"))[0]["run_id"]

    filled = rankeval("backfill", made.config, "--from", FIRST, "--to", WITHOUT_ROWS, "--missing", "--json")
    several = read(filled)
    assert [row["status"] for row in several] == ["KEPT", "PUBLISHED", "PUBLISHED"]
    assert [list(row) for row in several] == [list(one)] * 3
    assert several[2]["reason"] == "no rows for 2026-01-03 in recommendations and held_out"

    kept_in_order = read(rankeval("maintain", made.root, "--json"))
    assert [*kept_in_order] == ["staging", "given_up", "deleted", "erased", "compacted", "unneeded"]

    failed = rankeval("run", made.config, "--date", FIRST, "--set", "inputs.held_out.path=none", "--json")
    assert (failed.code, failed.out) == (4, "")
    dates = ("--from", FIRST, "--to", FIRST)
    (row,) = read(rankeval("backfill", made.config, *dates, "--set", "inputs.held_out.path=none", "--json"))
    assert (row["status"], row["exit_code"], row["run_id"]) == ("FAILED", 4, None)
    assert "found no such path" in row["reason"]


def test_a_dry_run_is_a_document_and_nothing_is_run(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    found = read(rankeval("run", made.config, "--date", FIRST, "--dry-run", "--json"))
    assert [one["name"] for one in found["inputs"]] == ["recommendations", "held_out", "segments"]
    assert found["cutoffs"] == [1, 2]
    assert not (tmp_path / "workspace" / "results").exists()


def test_commands_that_report_have_one_document(published: Workspace, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    written = read(rankeval("report", published.root, "--date", FIRST, "--out", page, "--json"))
    assert written == {"path": str(page), "n_bytes": page.stat().st_size}
    assert {one["name"] for one in read(rankeval("measures", "--json"))} >= {"nDCG", "GroupGap"}
    assert read(rankeval("measures", "mrr", "--json"))["name"] == "RR"
    assert read(rankeval("measures", "--presets", "kaggle", "--json"))["options"] == {"AP": {"denom": "min"}}


def test_a_number_that_is_none_is_null_and_times_are_iso() -> None:
    values = {"mean": float("nan"), "high": float("inf"), "at": datetime(2026, 1, 3, 4, 5, tzinfo=UTC), "day": FIRST}
    found = {"mean": None, "high": None, "at": "2026-01-03T04:05:00+00:00", "day": "2026-01-01"}
    assert json.loads(json_text(values)) == found


def test_the_whole_reason_of_a_failed_run_is_there_for_programs(tmp_path: Path) -> None:
    long = tmp_path / ("a folder with a long name " * 8).strip() / "workspace"
    made = nights.workspace(long)
    path = "inputs/" + "nowhere " * 20 + "held_out"
    assert rankeval("run", made.config, "--date", FIRST, "--set", f"inputs.held_out.path={path}").code == 4
    (row,) = read(rankeval("runs", made.root, "--json"))
    assert "..." not in row["reason"]
    assert path in row["reason"]
