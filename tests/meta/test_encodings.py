"""The table of encodings and sentinels in the architecture is true to the code."""

from __future__ import annotations

import ast
import importlib
import re
from typing import Final

import pytest

from tests.support.code import PACKAGE, ROOT

TEXT: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION: Final = TEXT.partition("## Encodings and sentinels\n")[2].partition("\n## ")[0]
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in SECTION.splitlines()
    if line.startswith("| ") and not line.startswith("| value |")
]
GROUPS: Final = {
    "columns.FACTS",
    "columns.FOR_CHECKS",
    "columns.OF_JUDGEMENTS",
    "columns.OF_USERS",
}  # modules use their members


def names_in(cell: str) -> list[str]:
    """Return what a cell has in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def constant_of(row: list[str]) -> tuple[str, object]:
    """Return the name of a row's constant, and its value in the package."""
    (path,) = names_in(row[1])
    module, _, name = path.rpartition(".")
    return name, getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[1].strip("`")) for row in ROWS])
def test_a_row_has_the_value_of_its_constant_and_the_modules_that_use_it(row: list[str]) -> None:
    shown, constant, writers, readers, _ = row
    name, value = constant_of(row)
    if written := names_in(shown):
        assert written == [str(value) or '""']
    members = [name]
    if constant.strip("`") in GROUPS:
        source = ast.parse((ROOT / PACKAGE / "columns.py").read_text(encoding="utf-8"))
        found = next(
            node for node in source.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name
        )
        members += [node.id for node in ast.walk(found) if isinstance(node, ast.Name)]
    for module in (*names_in(writers), *names_in(readers)):
        source_text = (ROOT / PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        assert any(re.search(rf"\b{member}\b", source_text) for member in members), f"{module} does not use {name}"


def test_every_column_that_exists_only_on_the_way_is_in_the_table() -> None:
    places = [ROOT / PACKAGE / "columns.py"]
    places += [path for room in ("engine", "sums", "result_rows") for path in (ROOT / PACKAGE / room).glob("*.py")]
    columns = {
        node.value.value
        for place in places
        for node in ast.parse(place.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and re.match(r"_[a-z]", node.value.value)
    }
    assert len(columns) > len(ROWS) / 2
    assert sorted(columns - set(names_in(SECTION))) == []
