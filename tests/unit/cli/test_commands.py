"""Commands that start no JVM: validate, measures, version, and what every command refuses at once."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import __version__
from rankeval_spark.config import json_schema
from rankeval_spark.measures import registry
from tests.support import nights
from tests.support.cli import PROJECT, rankeval, rankeval_process

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition
    from tests.support.nights import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace with a config and no inputs: what needs no Spark does not look at them."""
    made = nights.Workspace(tmp_path)
    made.configure(nights.config_of("recommendations", "held_out", "segments"))
    return made


def test_valid_config_is_confirmed_in_one_line(workspace: Workspace) -> None:
    done = rankeval("validate", workspace.config, "--set", "cutoffs=[5]")

    assert (done.code, done.err) == (0, "")
    valid, cost = done.out.splitlines()
    assert valid == f"{workspace.config}: valid; evaluation nightly; measures: 3, cutoffs: 1, slices: 1"
    assert cost == (
        f"cost: at least {(1 + 1) * 3} rows of metrics a night: 3 measures at cutoffs x 1 model x 2 slice values; "
        "a run counts first, and ends above 1,000,000"
    )


def test_faults_of_a_config_are_reported_without_spark(workspace: Workspace) -> None:
    workspace.change(measures=["nDGC"], cutoffs=[0])

    done = rankeval_process("validate", workspace.config)

    assert done.code == 2
    done.assert_readable()
    assert "found unknown measure 'nDGC'" in done.message
    assert "found 0; expected a whole number from 1 to 10000" in done.message


def test_config_that_is_not_there_has_its_nearest_file(workspace: Workspace) -> None:
    done = rankeval("validate", workspace.folder / "nigthly.yaml")

    assert done.code == 2
    done.assert_readable()
    assert "found no such file; expected a config file; did you mean 'nightly.yaml'?" in done.message


def test_init_writes_the_template_and_the_schema_that_its_first_line_names(tmp_path: Path) -> None:
    config = tmp_path / "new folder" / "nightly.yaml"

    done = rankeval("init", config)

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == f"keep what you need, then: rankeval validate '{config}'"
    assert rankeval("validate", config).code == 0
    named = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", config.read_text().splitlines()[0])
    assert named is not None
    assert json.loads((config.parent / named[1]).read_text()) == json_schema.build_schema()


def test_init_writes_over_nothing(tmp_path: Path) -> None:
    config = tmp_path / "nightly.yaml"
    config.write_text("mine")

    done = rankeval("init", config)

    assert done.code == 2
    done.assert_readable()
    assert "found an existing file or folder; expected a new file" in done.message
    assert config.read_text() == "mine"
    assert rankeval("init", config / "below.yaml").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["nightly.yaml"]


def test_every_measure_is_listed() -> None:
    done = rankeval("measures", "--all")

    assert done.code == 0
    listed = {line.split("│")[0].strip() for line in done.out.splitlines() if "│" in line}
    assert {entry.name for entry in registry.entries()} <= listed
    heads = " ".join(done.out.partition("━")[0].replace("┃", " ").split())
    assert [
        word for word in ("measure", "formula", "options", "range", "undefined", "source") if word not in heads
    ] == []


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_every_measure_and_option_is_explained(entry: Definition) -> None:
    """A parameter whose description cannot be found would be left bare."""
    done = rankeval("measures", entry.name)

    assert done.code == 0, done.err
    assert done.out.startswith(f"{entry.name}  ")
    for heading in ("formula", "cutoff", "range", "undefined", "source", "notes", "example"):
        assert f"\n  {heading:<12}" in done.out
    lines = [line.strip() for line in done.out.splitlines()]
    options = [place for place, line in enumerate(lines) if line.startswith("option ")]
    assert len(options) == len(entry.options)
    assert [lines[place + 1] for place in options if lines[place + 1].startswith(("option ", "cutoff "))] == []


def test_explanation_says_what_each_option_does_and_works_each_example_out() -> None:
    lines = [line.strip() for line in rankeval("measures", "MAP", "--all").out.splitlines()]

    assert "option      denom='R' ('R' or 'min' or 'k' or 'len' or 'hits' or 'none')" in lines
    assert "Divisor of the sum: the relevant items R; min(R, k); k; min(R, k, n); the hits h_k; none." in lines
    example = lines.index("example     AP@5 = (1 + 2/3) / 2, (1 + 2/3) / 8 = 0.8333, 0.2083  (divided by R = 2 and 8)")
    assert lines[example + 1] == "gains 1 - 1 -; 1 - 1 - (missed 1 1 1 1 1 1)"
    assert lines[-2:] == ["example     AP = undefined  (no relevant held-out item)", "gains 0 - (missed 0)"]


def test_misspelt_measure_is_answered_with_the_nearest() -> None:
    done = rankeval("measures", "nDGC")

    assert done.code == 2
    done.assert_readable()
    assert "did you mean 'nDCG'?" in done.message


def test_version_is_printed() -> None:
    done = rankeval("--version")

    assert (done.code, done.out.strip()) == (0, __version__)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("rnu",), "No such command 'rnu'"),
        (("run", "conf.yaml"), "Missing option '--date'"),
        (("run", "conf.yaml", "--date", "2026-01-01", "--sample-users", "2"), "--sample-users"),
        (("run", "conf.yaml", "--date", "2026-01-01", "--dat", "x"), "No such option"),
    ],
)
def test_wrong_usage_has_exit_code_2(arguments: tuple[str, ...], found: str) -> None:
    done = rankeval(*arguments)

    assert done.code == 2
    assert found in " ".join(done.err.split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "command",
    ["run c.yaml", "validate c.yaml", "maintain r", "show r", "report r --out f", "gate r", "compare r --against als"],
)
def test_a_command_of_one_date_takes_it_once(command: str) -> None:
    name, *arguments = command.split()
    instead = "use rankeval backfill for several dates" if name == "run" else "it takes one value"

    done = rankeval(name, *arguments, "--date", "2026-01-01", "--date=2026-01-02")

    assert (done.code, done.out) == (2, "")
    assert f"--date was given twice; {instead}" in " ".join(done.err.split())


def test_other_options_of_one_value_are_not_overwritten_either() -> None:
    done = rankeval("show", "r", *("--evaluation", "a") * 3, *("--model", "b") * 2, "--json", "--json")

    assert done.code == 2
    assert "--evaluation was given 3 times; it takes one value" in done.err


@pytest.mark.parametrize("share", ["5", "5%", "0", "nan", "all"])
def test_a_sample_is_a_share(share: str) -> None:
    done = rankeval("run", "conf.yaml", "--date", "2026-01-01", "--sample-users", share)

    assert done.code == 2
    expected = "a share of the users above 0 and up to 1, not their number; 5 % of them are 0.05"
    assert done.message.endswith(f"--sample-users: found {share}; expected {expected}")


@pytest.mark.parametrize(("given", "fix"), [("5,10", "; repeat --k for several"), ("ten", ""), ("-1", "")])
def test_a_cutoff_is_a_whole_number(given: str, fix: str) -> None:
    done = rankeval("show", "results", f"--k={given}")

    assert done.code == 2
    expected = f"a whole number such as 10, or 0 for the whole list{fix}"
    assert done.message.endswith(f"--k: found {given}; expected {expected}")


@pytest.mark.parametrize("config", [("--config", "a.yaml"), ("--config=a.yaml",)])
def test_the_job_takes_the_options_of_the_command(config: tuple[str, ...]) -> None:
    arguments = runpy.run_path(str(PROJECT / "jobs" / "evaluate.py"))["arguments"]
    assert arguments(["--date", "2026-01-01", *config]) == ["run", "a.yaml", "--date", "2026-01-01"]


def test_what_needs_no_spark_answers_at_once_and_imports_little(workspace: Workspace) -> None:
    """Importing pyspark alone takes longer than all the rest; one process shows what each command adds."""
    commands = (["--help"], ["validate", str(workspace.config)], ["measures", "nDCG"], ["run", "x.yaml"])
    program = f"""
import sys
from rankeval_spark.cli import main
for arguments in {commands!r}:
    try:
        main(arguments)
    except SystemExit:
        pass
    slow = {{"numpy", "pydantic", "scipy", "pyarrow", "pandas", "pyspark"}}
    print("imported:", *sorted(slow & set(sys.modules)))
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PROJECT, check=True)

    help_, validate, measures, run = re.findall(r"^imported: ?(.*)$", done.stdout, re.MULTILINE)
    assert help_ == ""
    assert not {"scipy", "pyarrow", "pandas", "pyspark"} & set(validate.split())
    assert "pyspark" not in measures
    assert "pyspark" not in run
