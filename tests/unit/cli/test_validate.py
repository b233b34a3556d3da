"""``rankeval validate --date`` refuses what ``rankeval run`` refuses, and says all of it at once; without Spark."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import allowed_folders
from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.results import ResultsStore
from rankeval_spark.spark.session import machine_checks
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS
from tests.support.united_logs import with_trec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cli import Finished
    from tests.support.nights import Workspace


@pytest.fixture
def made(tmp_path: Path) -> Workspace:
    return nights.workspace(tmp_path / "workspace", format_=nights.PARQUET)


def validate(made: Workspace, day: object = FIRST, *options: object) -> Finished:
    return rankeval("validate", made.config, "--date", day, *options)


def refused_by_both(made: Workspace) -> str:
    """Validate and run, and return the one message."""
    validated, ran = validate(made), rankeval("run", made.config, "--date", FIRST)
    assert "valid;" not in validated.out
    assert (validated.code, validated.message) == (ran.code, ran.message)
    return validated.message


def test_a_baseline_that_the_log_does_not_have(made: Workspace) -> None:
    made.change(comparisons={"baseline": "popp"})

    assert "comparisons.baseline: found 'popp'; expected a model of the log: als, pop; did you" in refused_by_both(made)
    assert rankeval("validate", made.config).code == 0


def test_validate_says_what_is_primary_and_which_rule_is_about_another_measure(made: Workspace) -> None:
    rules = [{"measure": "RR@2", "least_gain": 0}, {"measure": "RR@2", "at_least": 0}]
    made.change(comparisons={"baseline": "pop"}, gates=rules)
    said = validate(made).out
    assert "primary: RR@1 (the first, for comparisons.primary names none); all else that is compared is expl" in said
    assert said.count("; RR@2 is not primary") == 1
    made.change(comparisons={"baseline": "pop", "primary": ["RR@2", "nDCG@1"]})
    named = validate(made).out
    assert "primary: RR@2, nDCG@1; all else that is compared is exploratory" in named
    assert "is not primary" not in named
    made.change(comparisons={"baseline": "pop", "primary": ["RR@2", "nDGC@1"]})
    refused = rankeval("validate", made.config)
    assert refused.code == 2
    assert re.search(r"comparisons\.primary\[1\].*: found 'nDGC@1'; .*; did you mean 'nDCG@1'", refused.message)


def test_an_undecided_rule_is_not_met_and_says_so_everywhere(made: Workspace) -> None:
    """No interval of a few users clears 0.4."""
    rule = {"measure": "RR@2", "models": ["als"], "at_least": 0.4, "certainty": 0.95}
    made.change(gates=[rule])
    assert "rule 1, RR@2 of als: at_least 0.4, certainty 0.95: the whole 95 % interval" in validate(made).out
    done = rankeval("run", made.config, "--date", FIRST)
    assert done.code == 6, done.err
    said = " ".join(done.out.split())
    assert "Not decided. The rule is not met with the certainty that is asked for. 1 case undecided" in said
    judged = rankeval("gate", made.root, "--json")
    (row,) = json.loads(judged.out)
    assert (judged.code, row["verdict"]) == (6, "undecided")
    assert "users with this value would make it" in row["explanation"]
    made.change(gates=[{**rule, "certainty": 0.99}])
    assert "found 0.99; expected 0.95, the level of the published intervals" in refused_by_both(made)
    made.change(intervals={"confidence": 0.99})
    assert validate(made).code == 0


def test_validate_says_that_ratios_of_sums_are_not_pooled_over_nights(made: Workspace) -> None:
    asked = {"comparisons": {"baseline": "pop", "nights": 7}, "cutoffs": [2]}
    said = "note: comparisons.nights: only means over users are pooled, and there is none"
    made.change(**asked, measures=["P(agg='micro')"])
    assert said in validate(made).out
    made.change(**asked, measures=["P(agg='micro')", "P"])
    assert said not in validate(made).out


def test_validate_says_what_each_rule_means(made: Workspace) -> None:
    rules: list[dict[str, Any]] = [
        {"least_gain": 0},
        {"least_gain": 0.01, "relative": True},
        {"least_gain": -0.01, "against": "previous"},
        {"margin": 0.02},
        {"alpha": 0.05},
        {"at_least": 0.1},
        {"alpha": 0.05, "sequential": True, "horizon": 7},
    ]
    made.change(
        comparisons={"baseline": "pop", "primary": ["RR@2"]}, gates=[{"measure": "RR@2", **rule} for rule in rules]
    )
    done = rankeval("validate", made.config)
    assert done.code == 0
    for line in (
        "rule 1, RR@2: least_gain 0: better than the baseline: the interval of the gain lies above 0, and an equal "
        "model fails",
        "rule 2, RR@2: least_gain 0.01, relative: better than the baseline by at least 0.01 of the value of the "
        "baseline, with the whole interval of the gain",
        "rule 3, RR@2: least_gain -0.01 against the previous night: worse than itself on the previous night by at "
        "most 0.01, with the whole interval of the gain",
        "rule 4, RR@2: margin 0.02: not worse than the baseline by 0.02: the interval of the gain lies above minus "
        "that",
        "rule 5, RR@2: alpha 0.05: no loss to the baseline that a test finds; few users pass easily",
        "rule 6, RR@2: at_least 0.1: the mean itself meets the bound, whatever its interval",
        "rule 7, RR@2: alpha 0.05, sequential over 7 nights: no loss to the baseline that a test finds; few users pass "
        "easily; its error holds for 7 nights in a row",
        "error of a single night: rules 1, 2, 3, 4, 5; asked on 30 nights, a test at 0.05 stops an equal model in up "
        "to 79 % of months, unless it is sequential: true (docs/gates.md)",
    ):
        assert line in done.out.splitlines()
    told = json.loads(rankeval("validate", made.config, "--json").out)["gates"]
    assert [rule["rule"] for rule in told][:2] == ["RR@2: least_gain 0", "RR@2: least_gain 0.01, relative"]


@pytest.mark.parametrize(
    ("root", "found"),
    [
        ("inputs", "a folder that holds other things (held_out, recommendations, segments)"),
        ("nightly.yaml", "(Not a directory)"),
        ("nightly.yaml/below", "(Not a directory)"),
    ],
)
def test_a_results_root_that_cannot_be_one(made: Workspace, root: str, found: str) -> None:
    made.change(results__root=root)

    assert found in refused_by_both(made)


def test_a_results_root_that_cannot_be_written(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    made.change(results__root="new/results")
    monkeypatch.setattr("os.access", lambda path, _: str(path) != str(made.folder))

    done = validate(made)

    assert done.code == 2
    assert f"results root: found '{made.folder}/new/results' (Permission denied); expected a folder" in done.message
    monkeypatch.undo()
    assert validate(made).code == 0
    assert not (made.folder / "new").exists()


def test_folders_that_the_environment_does_not_allow(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(allowed_folders.VARIABLE, str(made.folder / "inputs"))

    assert "results.root: found" in refused_by_both(made)
    assert rankeval("validate", made.config).code == 2
    monkeypatch.setenv(allowed_folders.VARIABLE, "/nowhere")
    assert refused_by_both(made).count("expected a path below /nowhere") == 4


def test_an_input_without_a_row(made: Workspace) -> None:
    file = made.folder / "inputs" / "held_out" / "part-0.parquet"
    pq.write_table(pq.read_table(file)[:0], file)

    assert f"inputs.held_out: found no row in {file.parent}; expected rows" in refused_by_both(made)


def test_a_date_without_rows_is_no_fault_and_named(made: Workspace) -> None:
    done = validate(made, WITHOUT_ROWS)

    reason = "no rows for 2026-01-03 in recommendations and held_out"
    assert done.code == 0
    assert f"nothing would be measured: {reason}\n" in done.out
    assert json.loads(validate(made, WITHOUT_ROWS, "--json").out)["reason"] == reason
    assert reason in rankeval("run", made.config, "--date", WITHOUT_ROWS).out
    # The footers of one file say nothing about the dates between the first and the last.
    later = [{**row, "day": "2026-01-05"} for row in nights.held_out() if row["day"] == FIRST.isoformat()]
    made.write("held_out", [*nights.held_out(), *later])
    made.write("recommendations", [{**row, "day": WITHOUT_ROWS.isoformat()} for row in nights.recommendations()])
    assert "nothing would be measured: no rows for 2026-01-03 in held_out\n" in validate(made, WITHOUT_ROWS).out


def test_a_date_that_lost_its_rows_keeps_its_means(made: Workspace) -> None:
    assert rankeval("run", made.config, "--date", FIRST).code == 0
    made.write("held_out", [row for row in nights.held_out() if row["day"] != FIRST.isoformat()])

    message = refused_by_both(made)

    assert "nightly, 2026-01-01: found no rows for 2026-01-01 in held_out; expected rows as those that run" in message


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_ids_of_two_types(made: Workspace, format_: str) -> None:
    made.write("recommendations", nights.with_number_ids(nights.recommendations()), "parquet")
    shutil.rmtree(made.folder / "inputs" / "held_out")
    made.change(inputs__held_out__format=format_)
    made.write("held_out", nights.held_out())

    done = validate(made)

    assert (done.code, "valid;" in done.out) == (3, False)
    for name in ("user_id", "item_id"):
        assert f"inputs.held_out: found {name} of type string, while inputs.recommendations has integer" in done.message


def test_a_version_that_a_delta_table_does_not_have(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace", inputs__held_out__version=7)

    done = validate(made)

    assert (done.code, "valid;" in done.out) == (4, False)
    found = f"no such version at {made.folder}/inputs/held_out; expected a Delta table with version 7; the newest is 0"
    assert f"inputs.held_out: found {found}" in done.message


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"format": "delta"}, "no Delta table at {0}/held_out; expected a Delta table; did you mean format: parquet?"),
        ({"path": "inputs/empty"}, "no data files at {0}/empty; expected Parquet files"),
        ({"path": "nightly.yaml"}, "a file that cannot be read ("),
        ({"path": "inputs/heldout"}, "no such path at {0}/heldout; expected Parquet files; {0} has no 'heldout', did"),
    ],
)
def test_a_path_with_something_else(made: Workspace, changes: dict[str, Any], found: str) -> None:
    (made.folder / "inputs" / "empty").mkdir()
    made.change(**{f"inputs__held_out__{key}": value for key, value in changes.items()})

    done = validate(made)

    assert (done.code, "valid;" in done.out) == (4, False)
    assert f"inputs.held_out: found {found.format(made.folder / 'inputs')}" in done.message


def test_a_run_and_judgements_of_trec_that_are_swapped(made: Workspace) -> None:
    with_trec(made).change(inputs__recommendations__path="inputs/qrels.txt", inputs__held_out__path="inputs/runs")

    done = validate(made)

    assert done.code == 4
    assert "inputs.recommendations: found judgements at qrels.txt; expected a run, lines of the form" in done.message
    assert "inputs.held_out: found a run at all.txt; expected judgements, lines of the form" in done.message
    assert done.message.count("are the two files swapped?") == 2


def test_the_columns_of_csv(made: Workspace) -> None:
    (made.folder / "truth.csv").write_text("day;user_id;item_id;gain\n2026-01-01;ann;a;1\n")
    made.change(inputs__held_out={"format": "csv", "path": "truth.csv"})

    done = validate(made)

    assert done.code == 4
    assert done.message.count("- inputs.") == 1
    assert "inputs.held_out: found one column" in done.message
    assert 'write inputs.held_out.options: {sep: ";"}' in done.message
    made.change(inputs__held_out__options={"sep": ";"})
    assert validate(made).code == 0
    made.change(inputs__held_out__columns={"gain": "gian"})
    assert "inputs.held_out.columns.gain: found no column 'gian' (for gain) among day" in validate(made).message


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, (2, None)), ({"comment": "#"}, (None, "rows of csv are known only when they are read"))],
)
def test_rows_of_csv_are_counted_where_no_spark_reads_them(
    made: Workspace, options: dict[str, str], expected: tuple[int | None, str | None]
) -> None:
    (made.folder / "truth.csv").write_text("user_id,item_id\nann,a\nann,b\n")
    made.change(inputs__held_out={"format": "csv", "path": "truth.csv", "options": options})

    told = json.loads(validate(made, FIRST, "--json").out)["inputs"]

    assert [(one["n_rows"], one["remark"]) for one in told if one["name"] == "held_out"] == [expected]


def test_the_columns_of_folders_of_partitions(made: Workspace) -> None:
    rows = pa.table({"user_id": ["ann"], "item_id": ["a"], "gain": [1.0]})
    (made.folder / "truth" / f"day={FIRST}").mkdir(parents=True)
    pq.write_table(rows, made.folder / "truth" / f"day={FIRST}" / "part-0.parquet")
    filters = [{"column": "day", "op": "=", "value": "{date}"}]
    made.change(inputs__held_out={"format": "parquet", "path": "truth", "filters": filters})

    done = validate(made)
    assert done.code == 0
    assert "would run in this process, without Spark\n" in done.out

    made.change(inputs__held_out__columns={"gain": "gian"}, inputs__held_out__filters=[{**filters[0], "column": "dya"}])
    done = validate(made)
    assert done.code == 4
    assert "inputs.held_out.columns.gain: found no column 'gian' (for gain) among user_id" in done.message
    assert "inputs.held_out.filters[0].column: found no column 'dya' among user_id" in done.message


def test_a_night_that_another_run_holds(made: Workspace) -> None:
    store = ResultsStore.open(made.root)
    with store.run_lock("nightly", FIRST, "other"):
        assert "lock run-" in (told := refused_by_both(made))
        assert "found run other (process " in told
        assert validate(made, SECOND).code == 0
        assert validate(made, FIRST, "--set", "results.on_busy=wait").code == 0
    assert validate(made).code == 0


@pytest.mark.parametrize("override", ["spark.always=true", "inputs.held_out.format=orc"])
def test_a_night_that_needs_spark_where_no_java_is_found(
    made: Workspace, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    def find() -> NoReturn:
        raise EnvironmentFaultError(Fault("Java", "none", "Java 17", "install one"))

    monkeypatch.setattr(machine_checks, "is_running", lambda: False)
    monkeypatch.setattr(machine_checks, "find_java", find)

    done = validate(made, FIRST, "--set", override)

    assert (done.code, "valid;" in done.out) == (8, False)
    assert "Java: found none; expected Java 17; install one" in done.message


def test_a_table_of_delta_with_a_feature_that_only_spark_may_know_is_no_fault(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    log = made.folder / "inputs" / "held_out" / "_delta_log" / "00000000000000000000.json"
    feature = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]}
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{"protocol": feature} if "protocol" in action else action for action in actions]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    done = validate(made)

    assert done.code == 0, done.err
    assert "held_out: Kernel error: Unsupported: Feature 'new' is not supported, so only Spark opens it" in done.out


def test_all_faults_are_reported_at_once(made: Workspace) -> None:
    made.change(
        comparisons={"baseline": "popp"},
        results__root="inputs",
        inputs__held_out__path="inputs/{date}.parquet",
        inputs__segments__columns={"country": "land"},
    )

    done = validate(made)

    assert done.code == 2  # that of the first with which a run ends
    for where in ("results root", "inputs.held_out", "inputs.segments.columns.country", "comparisons.baseline"):
        assert f"- {where}: found" in done.message
