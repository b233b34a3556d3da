"""What messages and pages advise exists: commands, their options, goals of make, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import typer

from rankeval_spark.cli.main import app
from rankeval_spark.spark.session import jars
from tests.support.code import PACKAGE, ROOT, modules

PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS: Final = {
    **{module.place: module.text for module in modules(PACKAGE)},
    **{str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES},
}
MADE: Final = re.compile(r"(?<![\w-])make (?:PYTHON=\S+ )?([a-z]+(?:-[a-z]+)*)(?=[`'\n]| *#)")
RUN: Final = re.compile(r"(?<![\w./-])rankeval ([a-z]+)((?: (?:--?[\w-]+|[\w./@<>=\"\[\]]+))*)")
NO_COMMANDS: Final = {"runs"}
"""Words after the name that are those of a sentence."""


def commands() -> dict[str, set[str]]:
    """List the commands with their options."""
    group = typer.main.get_group(app)
    return {name: {option for one in command.params for option in one.opts} for name, command in group.commands.items()}


def advised(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for place, text in TEXTS.items():
        yield from ((place, found) for found in pattern.finditer(text))


def test_goals_of_make_exist() -> None:
    goals = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    found = [(place, one[1]) for place, one in advised(MADE)]
    assert len(found) > 10
    assert [(place, goal) for place, goal in found if goal not in goals] == []


def test_commands_and_their_options_exist() -> None:
    known = commands()
    found = [(place, one[1], one[2]) for place, one in advised(RUN)]
    assert [(place, name) for place, name, _ in found if name not in known and name not in NO_COMMANDS] == []
    unknown = [
        (place, name, option)
        for place, name, rest in found
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", rest)
        if name in known and option not in known[name] | {"--help", "--debug"}
    ]
    assert unknown == []


def test_the_packages_of_delta_are_the_pinned_ones() -> None:
    named = {(place, one[0]) for place, one in advised(re.compile(r"io\.delta:delta-spark_[\w.:]+\w"))}
    assert {place for place, _ in named} >= {"README.md", "docs/operations.md"}
    assert {name for _, name in named} <= {one.package for one in jars.BUILDS.values()}
