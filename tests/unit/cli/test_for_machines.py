"""What schedulers and monitors read: JSON in one line, a log of JSON lines, and metrics for Prometheus."""

from __future__ import annotations

import json
import math
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS, Workspace

NOT_MET: Final = [{"measure": "RR@2", "at_least": 0.9}]
SAMPLE: Final = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (\S+)')
LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """A line of the text format of Prometheus that has a value."""

    name: str
    labels: dict[str, str]
    value: float


def samples_of(path: Path) -> list[Sample]:
    """Read a file as the collector does: each family once, with its help and type before its lines."""
    text, found, family, seen = path.read_text(encoding="utf-8"), list[Sample](), "", set[str]()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen
            seen.add(family)
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {family} gauge"
        else:
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            assert match[1] == family
            labels = {name: re.sub(r"\\.", _plain, value) for name, value in LABEL.findall(match[2])}
            found.append(Sample(match[1], labels, float(match[3])))
    return found


def _plain(escaped: re.Match[str]) -> str:
    return {"\\n": "\n", '\\"': '"', "\\\\": "\\"}[escaped[0]]


def value_of(samples: list[Sample], name: str, **labels: str) -> float:
    """Return the value of the one sample with a name and labels."""
    wanted = {"evaluation": "nightly", **labels}
    (value,) = (
        sample.value for sample in samples if (sample.name, sample.labels) == (f"rankeval_night_{name}", wanted)
    )
    return value


def log_of(done: Finished) -> list[dict[str, object]]:
    """Read standard error as JSON lines."""
    return [json.loads(line) for line in done.err.splitlines()]


@pytest.fixture
def own(tmp_path: Path) -> Workspace:
    """Give a workspace of its own whose gate is not met."""
    return nights.workspace(tmp_path / "workspace", gates=NOT_MET)


def test_run_backfill_and_gate_print_one_line_of_json(own: Workspace) -> None:
    commands = {
        "run": ("run", own.config, "--date", FIRST, "--json"),
        "dry run": ("run", own.config, "--date", FIRST, "--json", "--dry-run"),
        "backfill": ("backfill", own.config, "--date", SECOND, "--json"),
        "gate": ("gate", own.root, "--json"),
    }
    documents = {}
    for name, command in commands.items():
        done = rankeval(*command)
        assert done.code == (0 if name == "dry run" else 6)
        (line,) = done.out.splitlines()
        documents[name] = json.loads(line)
    assert documents["run"]["evaluation_date"] == FIRST.isoformat()
    assert [one["status"] for one in documents["backfill"]] == ["PUBLISHED"]
    assert {row["verdict"] for row in documents["gate"]} == {"failed"}


@pytest.mark.parametrize("option", [("--log-format", "json"), ("--log-format=json",)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_of_json_has_an_object_a_line_wherever_the_option_is(
    own: Workspace, option: tuple[str, ...], is_first: bool
) -> None:
    command = ("run", own.config, "--date", FIRST)
    done = rankeval(*(*option, *command) if is_first else (*command, *option))
    lines = log_of(done)
    assert done.code == 6
    assert {line["level"] for line in lines} == {"info"}
    times = [datetime.fromisoformat(str(line["time"])) for line in lines]
    assert times == sorted(times)
    assert all(time.tzinfo == UTC for time in times)
    stages = {line["stage"]: line["rows"] for line in lines if "stage" in line}
    assert (stages["score"], stages["gate"]) == (20, 2)
    assert {line["run"] for line in lines if "stage" in line} == {"nightly 2026-01-01"}


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("run", "none.yaml", "--date", FIRST), 2, "none.yaml"),
        (("run", "--date", FIRST), 2, "Missing argument 'CONFIG'"),
        (("show", "none", "--nothing"), 2, "No such option: --nothing"),
        (("measures", "nDCGG"), 2, "did you mean 'nDCG'?"),
    ],
)
def test_an_error_is_a_json_line_with_its_exit_code(command: tuple[object, ...], code: int, words: str) -> None:
    done = rankeval(*command, "--log-format", "json")
    (line,) = log_of(done)
    assert (done.code, done.out) == (code, "")
    assert (line["level"], line["exit_code"]) == ("error", code)
    assert words in str(line["message"])


def test_an_error_has_its_trace_in_the_same_line() -> None:
    (line,) = log_of(rankeval("measures", "nDCGG", "--log-format", "json", "--debug"))
    assert str(line["trace"]).startswith("Traceback")


def test_a_note_and_a_warning_of_python_are_json_lines(own: Workspace) -> None:
    rankeval("backfill", own.config, "--from", FIRST, "--to", WITHOUT_ROWS)
    done = rankeval("gate", own.root, "--json", "--log-format", "json")
    assert any("judged as the newest night with means" in str(line["message"]) for line in log_of(done))
    quiet = rankeval("gate", own.root, "--json", "--log-format", "json", "--quiet")
    assert (quiet.out, quiet.err) == (done.out, "")


def test_the_next_command_of_a_process_has_its_own_log_format(own: Workspace) -> None:
    as_json = rankeval("measures", "nDCGG", "--log-format", "json")
    as_text = rankeval("run", own.config, "--date", FIRST)
    assert as_json.err.startswith("{")
    assert re.match(r"\S+Z INFO rankeval nightly 2026-01-01 ", as_text.err)


def test_another_log_format_is_refused() -> None:
    done = rankeval("measures", "--log-format", "xml")
    assert done.code == 2
    assert "'xml' is not one of 'text', 'json'" in " ".join(done.err.replace("│", " ").split())


def test_metrics_of_a_night_are_those_that_are_published(own: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "night.prom"
    assert rankeval("run", own.config, "--date", FIRST, "--metrics-file", path).code == 6
    samples = samples_of(path)
    assert (value_of(samples, "published"), value_of(samples, "exit_code")) == (1, 6)
    assert value_of(samples, "date_timestamp_seconds") == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert value_of(samples, "mean", model="als", measure="RR", k="2") == 1 / 4
    assert value_of(samples, "mean", model="pop", measure="RR", k="2") == 7 / 8
    assert value_of(samples, "users", model="als", measure="RR", k="2") == 4
    assert value_of(samples, "gate_verdicts", verdict="failed") == 2
    assert value_of(samples, "check_share", input="recommendations", check="missing_users") == 2 / 5
    assert value_of(samples, "rows", table="metrics") == len(own.rows("metrics"))
    assert value_of(samples, "duration_seconds") > value_of(samples, "stage_duration_seconds", stage="publish") > 0
    everyone = [row for row in own.rows("metrics") if row["slice"] == "all"]
    assert len([sample for sample in samples if sample.name == "rankeval_night_mean"]) == len(everyone)
    assert os.listdir(tmp_path) == sorted(["night.prom", "workspace"])


def test_a_night_that_fails_replaces_the_metrics_of_the_one_before(own: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "night.prom"
    rankeval("run", own.config, "--date", FIRST, "--metrics-file", path)
    broken = ("--set", "inputs.held_out.path=none")
    assert rankeval("run", own.config, "--date", SECOND, "--metrics-file", path, *broken).code == 4
    samples = samples_of(path)
    assert (value_of(samples, "published"), value_of(samples, "exit_code")) == (0, 4)
    assert not [sample for sample in samples if sample.name == "rankeval_night_mean"]


def test_a_backfill_leaves_the_metrics_of_the_date_that_ends_last(own: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "night.prom"
    asked = ("backfill", own.config, "--from", FIRST, "--to", SECOND, "--metrics-file", path)
    rankeval(*asked)
    day = datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    assert value_of(samples_of(path), "date_timestamp_seconds") == day
    path.unlink()
    rankeval(*asked, "--missing")
    assert not path.exists()  # no date was run


def test_names_of_any_kind_are_labels_and_a_mean_without_a_value_is_left_out(tmp_path: Path) -> None:
    name = 'the "new"\\\nmodel é'
    lists = {FIRST: {name: {"ann": "d e"}, "pop": {"ann": "b a"}}}
    own = nights.workspace(tmp_path / "workspace", measures=["RR@1", "RMSE"])
    own.write("recommendations", nights.recommendations(lists))
    path = tmp_path / "night.prom"
    done = rankeval("run", own.config, "--date", FIRST, "--metrics-file", path)
    assert done.code == 0, done.err
    means = [sample for sample in samples_of(path) if sample.name == "rankeval_night_mean"]
    assert {sample.labels["model"] for sample in means} == {name, "pop"}
    assert all(math.isfinite(sample.value) for sample in means)
    values = [row["value"] for row in own.rows("metrics") if row["slice"] == "all"]
    assert None in values
    assert len(means) == len(values) - values.count(None)


def test_a_file_that_cannot_be_written_is_refused_before_the_night(
    own: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, words in ((tmp_path / "none" / "night.prom", "no folder"), (tmp_path, "which is no file")):
        done = rankeval("run", own.config, "--date", FIRST, "--metrics-file", path)
        assert done.code == 2
        assert f"--metrics-file: found {words}" in done.message or words in done.message
    monkeypatch.setenv("RANKEVAL_ROOTS", str(own.folder))
    done = rankeval("run", own.config, "--date", FIRST, "--metrics-file", tmp_path / "night.prom")
    assert (done.code, "a path below" in done.message) == (2, True)
    assert not Path(own.root).exists()


def test_a_disk_that_is_full_for_metrics_does_not_fail_the_night(
    own: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(source: Path, goal: Path) -> None:
        if Path(goal).suffix == ".prom":
            raise OSError(28, "No space left on device")
        replace(source, goal)

    monkeypatch.setattr(os, "replace", full)
    done = rankeval("run", own.config, "--date", FIRST, "--metrics-file", tmp_path / "night.prom", "--quiet")
    assert done.code == 6
    assert done.err.startswith("warning: --metrics-file: found ")
    assert own.events()[-1]["status"] == "PUBLISHED"
