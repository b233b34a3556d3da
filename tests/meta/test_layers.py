"""Imports go downwards only, and what computes numbers knows nothing of Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.code import PACKAGE, ROOT, Module, modules

LAYERS: Final = (
    {"errors", "columns", "schemas", "allowed", "limits", "spark_version"},
    {"measures", "statistics"},
    {"config"},
    {"report"},
    {"evaluation"},
    {"engine"},
    {"result_rows"},
    {"in_process"},
    {"stages"},
    {"pipeline", "session", "sources", "results"},
    {"app"},
    {"demo"},
    {"cli"},
    {"__main__", "jobs"},
)
"""From the bottom to the top; parts of one layer do not see each other, the words at the bottom excepted."""

LEVELS: Final = {part: level for level, parts in enumerate(LAYERS) for part in parts}
WORDS: Final = LAYERS[0]
FIRST_WITH_SPARK: Final = LEVELS["stages"]
SPARK: Final = ("pyspark", "delta", "py4j")
NUMBERS_ONLY: Final = {"measures": {"numpy"}, "statistics": {"numpy", "scipy"}}
EXAMPLES: Final = f"{PACKAGE}.measures.worked_examples"
"""Documentation of the measures in YAML, which nothing that computes one loads."""

ALL_MODULES: Final = [*modules(PACKAGE), *modules("jobs")]


def part_of(name: str) -> str | None:
    """Part of the project that a dotted name belongs to; None for other libraries."""
    head, _, rest = name.partition(".")
    if head == "jobs":
        return "jobs"
    first = rest.partition(".")[0]
    return (first if first in LEVELS else PACKAGE) if head == PACKAGE else None


def may_import(importer: str, imported: str) -> bool:
    """Whether one part may import another."""
    if importer == imported or (importer in WORDS and imported in WORDS):
        return True
    if imported == PACKAGE:  # the top of the package: its version, and names that are loaded when used
        return LEVELS[importer] > LEVELS["stages"]
    return LEVELS[imported] < LEVELS[importer]


def upward_imports(module: Module) -> Iterator[str]:
    """Find imports of a module that break the order of the layers."""
    importer = part_of(module.name)
    assert importer is not None
    if importer == PACKAGE:  # `rankeval_spark/__init__.py` names the public surface and loads it when it is used
        return
    for name, line in module.imports():
        imported = part_of(name)
        if imported is not None and not may_import(importer, imported):
            yield f"{module.place}:{line}: {importer} must not import {name}"


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {
        path.stem for path in (ROOT / PACKAGE).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__"} == set(LEVELS) - {"jobs"}


def test_imports_go_downwards_only() -> None:
    assert [fault for module in ALL_MODULES for fault in upward_imports(module)] == []


def test_the_words_at_the_bottom_import_in_one_direction() -> None:
    """``schemas`` uses ``columns``, ``allowed`` and ``spark_version`` the errors; otherwise none knows another."""
    allowed = {("schemas", "columns"), ("allowed", "errors"), ("spark_version", "errors")}
    found = {
        (part_of(module.name), part_of(name))
        for module in ALL_MODULES
        if part_of(module.name) in WORDS
        for name, _ in module.imports()
        if part_of(name) is not None
    }
    assert {pair for pair in found if pair[0] != pair[1]} <= allowed | {("schemas", PACKAGE)}


def test_no_layer_below_the_stages_imports_spark() -> None:
    faults = [
        f"{module.place}:{line}: {name}"
        for module in ALL_MODULES
        if LEVELS.get(part_of(module.name) or "", FIRST_WITH_SPARK) < FIRST_WITH_SPARK
        for name, line in module.imports()
        if name.split(".")[0] in SPARK
    ]
    assert faults == []


def test_numbers_are_computed_with_numpy_and_scipy_alone() -> None:
    """No pandas, pyarrow or other library in the kernels and the statistics."""
    faults = [
        f"{module.place}:{line}: {name}"
        for module in ALL_MODULES
        for name, line in module.imports()
        if (part := part_of(module.name)) in NUMBERS_ONLY
        and module.name != EXAMPLES
        and (head := name.split(".")[0]) not in {*sys.stdlib_module_names, PACKAGE}
        and head not in NUMBERS_ONLY[part or ""]
    ]
    assert faults == []


def test_examples_of_measures_are_read_by_the_command_line_alone() -> None:
    importers = {part_of(module.name) for module in ALL_MODULES for name, _ in module.imports() if EXAMPLES in name}
    assert importers == {"cli"}


def test_there_is_no_relative_import() -> None:
    """A name is written as it is found by a search."""
    relative = [
        f"{module.place}:{line}"
        for module in ALL_MODULES
        for number, text in enumerate(module.text.splitlines(), 1)
        if text.lstrip().startswith("from .")
        for line in [number]
    ]
    assert relative == []


@pytest.mark.parametrize("name", ["errors", "columns", "schemas", "measures", "statistics", "config", "engine.job"])
def test_importing_a_layer_below_the_stages_loads_neither_spark_nor_pandas(name: str) -> None:
    """In a process of its own, because imports are remembered."""
    script = f"import sys, {PACKAGE}.{name}; print(*sorted({{'pyspark', 'pandas', 'py4j'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_importing_the_package_loads_none_of_its_public_names() -> None:
    script = f"import sys, {PACKAGE}; print(*(name for name in sys.modules if name.startswith('{PACKAGE}.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_order_of_layers_catches_an_import_that_goes_up() -> None:
    assert not may_import("stages", "app")
    assert not may_import("sources", "results")
    assert not may_import("measures", "statistics")
    assert not may_import("config", "stages")
    assert may_import("pipeline", "stages")
