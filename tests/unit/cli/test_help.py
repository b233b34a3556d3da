"""Help: it fits a terminal of 80 columns, and every command has an example that it takes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
import typer.main

from rankeval_spark.cli.main import app
from tests.support.cli import PROJECT, rankeval

if TYPE_CHECKING:
    from pathlib import Path

GROUP: Final[Any] = typer.main.get_command(app)
COMMANDS: Final = sorted(GROUP.commands)
EXAMPLES: Final = [
    (name, line)
    for name in COMMANDS
    for line in (GROUP.commands[name].epilog or "").split("\n\n")
    if line.startswith("rankeval ")
]
WIDTH: Final = 80


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_fits_80_columns(arguments: list[str]) -> None:
    done = rankeval(*arguments)

    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > WIDTH] == []
    assert "…" not in done.out  # nothing is cut off


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_on_one_line(name: str) -> None:
    of_it = [line for command, line in EXAMPLES if command == name]
    shown = [line.strip() for line in rankeval(name, "--help").out.splitlines()]

    assert of_it
    assert [line for line in of_it if line not in shown] == []


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_examples_are_taken_as_they_are(name: str, example: str) -> None:
    _, command, *arguments = shlex.split(example)

    assert command == name
    assert GROUP.commands[name].make_context(name, arguments).params


@pytest.mark.parametrize("option", ["--measure", "--measures", "-m"])
@pytest.mark.parametrize(
    "command",
    ["show /data/results", "compare /data/results --against previous", "score /data/results", "trec qrels.txt run.txt"],
)
def test_every_command_with_measures_names_the_option_alike(command: str, option: str) -> None:
    name, *arguments = shlex.split(command)

    context = GROUP.commands[name].make_context(name, [*arguments, option, "RR@5", option, "P@5"])
    assert list(context.params["measures"]) == ["RR@5", "P@5"]


def test_without_arguments_there_is_help() -> None:
    done = rankeval()

    assert "Usage: rankeval [OPTIONS] COMMAND" in done.out
    assert [name for name in COMMANDS if f" {name} " not in done.out] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rankeval sh", {"show"}),
        ("rankeval show --comp", {"--comparisons"}),
        ("rankeval measures nD", {"nDCG"}),
        ("rankeval score root --measures Suc", {"Success"}),
        ("rankeval show root --measure Suc", {"Success"}),
    ],
)
def test_the_shell_completes_commands_options_and_measures(words: str, expected: set[str], tmp_path: Path) -> None:
    of_bash = {"_RANKEVAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    done = subprocess.run(
        [sys.executable, "-m", "rankeval_spark"],
        env={**os.environ, "PYTHONPATH": str(PROJECT), **of_bash},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert set(done.stdout.split()) == expected, done.stderr
