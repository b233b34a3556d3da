"""Imports go downwards only, and what computes numbers knows nothing of Spark."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pytest

from tests.support.code import PACKAGE, ROOT, Module, modules

LAYERS: Final = (
    {
        "errors",
        "columns",
        "schemas",
        "allowed_folders",
        "jar_faults",
        "object_stores",
        "spark",
        "time_zones",
        "wording",
    },
    {"measures", "statistics"},
    {"config"},
    {"inputs"},
    {"engine"},
    {"refusals", "result_rows", "inputs.trec_files"},
    {"inputs.arrow", "report", "sums"},
    {"in_process"},
    {"inputs.spark", "results", "spark.plans", "spark.list_functions"},
    {"spark.session"},
    {"hosts"},
    {"evaluation", "windows"},
    {"apps"},
    {"demo"},
    {"cli"},
    {"__main__", "jobs"},
)
"""From the bottom to the top; parts of one layer do not see each other, the words at the bottom excepted.

A part is a folder or module below the package. A module belongs to the part with the longest name that it begins with:
``inputs`` has what both hosts know of inputs, ``inputs.trec_files`` reads the files of TREC, ``inputs.arrow`` and
``inputs.spark`` read all of them; of ``spark`` itself
there is only its version.
"""

LEVELS: Final = {part: level for level, parts in enumerate(LAYERS) for part in parts}
WORDS: Final = LAYERS[0]
FIRST_WITH_SPARK: Final = LEVELS["spark.plans"]
SPARK: Final = ("pyspark", "delta", "py4j")
FILTERS: Final = f"{PACKAGE}.inputs.filters"
"""The one module below that builds a condition of Spark, too: Spark is imported in the function that does."""
NUMBERS_ONLY: Final = {"measures": {"numpy"}, "statistics": {"numpy", "scipy"}}
EXAMPLES: Final = f"{PACKAGE}.measures.worked_examples"
OTHER_TOOLS: Final = f"{PACKAGE}.measures.other_tools"
"""Documentation of the measures, and names in other tools, in YAML, which nothing that computes one loads."""

ALL_MODULES: Final = modules(PACKAGE, "jobs")


def part_of(name: str) -> str | None:
    """Part of the project that a dotted name belongs to; None for other libraries."""
    head, _, rest = name.partition(".")
    if head == "jobs":
        return "jobs"
    if head != PACKAGE:
        return None
    words = rest.split(".")
    prefixes = (".".join(words[:n]) for n in range(len(words), 0, -1))
    return next((prefix for prefix in prefixes if prefix in LEVELS), PACKAGE)


def may_import(importer: str, imported: str) -> bool:
    """Whether one part may import another."""
    if importer == imported or (importer in WORDS and imported in WORDS):
        return True
    if imported == PACKAGE:  # the top of the package: its version, and names that are loaded when used
        return LEVELS[importer] >= LEVELS["spark.plans"]
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
    assert parts - {"__init__"} == {part.split(".")[0] for part in LEVELS} - {"jobs"}


def test_every_layer_is_a_part_of_the_package() -> None:
    places = {module.name for module in ALL_MODULES}
    assert [part for part in LEVELS if part != "jobs" and f"{PACKAGE}.{part}" not in places] == []


def test_imports_go_downwards_only() -> None:
    assert [fault for module in ALL_MODULES for fault in upward_imports(module)] == []


def test_the_words_at_the_bottom_import_in_one_direction() -> None:
    """``schemas`` and ``wording`` use ``columns``; folders, jars, stores, zones, words and Spark's version errors."""
    of_errors = ("allowed_folders", "jar_faults", "object_stores", "spark", "time_zones", "wording")
    allowed = {
        ("schemas", "columns"),
        ("wording", "columns"),
        ("object_stores", "allowed_folders"),
        *((name, "errors") for name in of_errors),
    }
    found = {
        (part_of(module.name), part_of(name))
        for module in ALL_MODULES
        if part_of(module.name) in WORDS
        for name, _ in module.imports()
        if part_of(name) is not None
    }
    assert {pair for pair in found if pair[0] != pair[1]} <= allowed | {("schemas", PACKAGE)}


def folder_imports(parent: str) -> dict[str, set[str]]:
    """Which folders and modules directly below a package import which others of them when the program runs."""
    names = {module.name for module in ALL_MODULES}
    found: dict[str, set[str]] = defaultdict(set)
    for module in ALL_MODULES:
        if not module.name.startswith(f"{parent}."):
            continue
        child = module.name[len(parent) + 1 :].split(".")[0]
        for name, _ in module.imports(for_types=False):
            if name.startswith(f"{parent}."):
                other = name[len(parent) + 1 :].split(".")[0]
                if other != child and f"{parent}.{other}" in names:
                    found[child].add(other)
    return found


def reachable(start: str, arrows: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that can be reached by one arrow or more."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = set(arrows.get(waiting.pop(), ())) - seen
        seen |= new
        waiting += new
    return seen


PACKAGES: Final = sorted(module.name for module in ALL_MODULES if module.is_package)


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_and_modules_of_a_package_import_each_other_in_no_circle(package: str) -> None:
    arrows = folder_imports(package)
    assert [child for child in arrows if child in reachable(child, arrows)] == []


def test_no_layer_below_the_host_on_spark_imports_spark() -> None:
    faults = [
        f"{module.place}:{line}: {name}"
        for module in ALL_MODULES
        if (part := part_of(module.name) or "") in {"in_process", "inputs.arrow"}
        or LEVELS.get(part, FIRST_WITH_SPARK) < FIRST_WITH_SPARK
        if module.name != FILTERS
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
        and module.name not in {EXAMPLES, OTHER_TOOLS}
        and (head := name.split(".")[0]) not in {*sys.stdlib_module_names, PACKAGE}
        and head not in NUMBERS_ONLY[part or ""]
    ]
    assert faults == []


def test_examples_of_measures_are_read_by_commands_and_reconcile_alone() -> None:
    importers = {part_of(module.name) for module in ALL_MODULES for name, _ in module.imports() if EXAMPLES in name}
    assert importers == {"cli", "apps"}


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


@pytest.mark.parametrize(
    ("names", "unused"),
    [
        pytest.param("", f"{PACKAGE}.", id="the package without its public names"),
        pytest.param("config", "scipy pyarrow", id="a config without scipy"),  # which take as long as all it needs
        pytest.param(
            "errors columns schemas measures statistics config inputs.filters engine.job", "pyspark pandas py4j",
            id="the layers below the host on Spark without Spark and pandas",
        ),
    ],
)  # fmt: skip  # names on one line
def test_importing_it_loads_only_what_it_needs(names: str, unused: str) -> None:
    """In a process of its own, because imports are remembered."""
    script = f"""
import sys, {PACKAGE}
from importlib import import_module
for name in {names.split()}:
    import_module(f"{PACKAGE}.{{name}}")
print(*(name for name in sys.modules if name.startswith({tuple(unused.split())})))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_order_of_layers_catches_an_import_that_goes_up() -> None:
    assert not may_import("spark.plans", "apps")
    assert not may_import("inputs.spark", "results")
    assert not may_import("measures", "statistics")
    assert not may_import("config", "spark.plans")
    assert not may_import("in_process", "spark.plans")
    assert may_import("hosts", "spark.plans")


def test_a_module_belongs_to_the_longest_part_it_begins_with() -> None:
    assert part_of(f"{PACKAGE}.spark.version.spark_line") == "spark"
    assert part_of(f"{PACKAGE}.spark.session.builder") == "spark.session"
    assert part_of(f"{PACKAGE}.inputs.input_columns") == "inputs"
