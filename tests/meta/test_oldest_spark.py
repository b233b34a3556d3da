"""Nothing of pyspark is used that its oldest supported version does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from rankeval_spark.spark.version import SPARK_LINES
from tests.support import spark_names
from tests.support.code import ROOT, Module, modules

OLDEST: Final = spark_names.read((ROOT / "tests/meta/oldest_spark.txt").read_text(encoding="utf-8"))
ALIASES: Final = {"F": "pyspark.sql.functions", "T": "pyspark.sql.types"}


@cache
def newer() -> frozenset[str]:
    """Names of methods, and of their parameters, that the installed pyspark has and no class of the oldest."""
    old = set().union(*(OLDEST[name] for name in spark_names.CLASSES))
    new = set().union(*(spark_names.names()[name] for name in spark_names.CLASSES))
    return frozenset(new - old)


def too_new(module: Module) -> Iterator[tuple[int, str]]:
    """Find what the oldest version lacks: of its modules by their lists, of its classes by what came later."""
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and node.module in spark_names.MODULES:
            yield from ((node.lineno, each.name) for each in node.names if each.name not in OLDEST[node.module])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ALIASES:
            if node.attr not in OLDEST[ALIASES[node.value.id]]:
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr in newer():
            yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _new_parameters(node, node.func)


def _new_parameters(call: ast.Call, function: ast.Attribute) -> Iterator[tuple[int, str]]:
    is_known = isinstance(function.value, ast.Name) and function.value.id in ALIASES
    old = OLDEST[ALIASES[function.value.id]] if is_known else frozenset()  # type: ignore[attr-defined]  # as was looked at
    for given in (f"{function.attr}({keyword.arg})" for keyword in call.keywords if keyword.arg):
        if given in newer() or (is_known and function.attr[0].islower() and given not in old):
            yield call.lineno, given


def test_the_list_is_that_of_the_oldest_version() -> None:
    lock = (ROOT / f"requirements/spark-{SPARK_LINES[0]}.txt").read_text(encoding="utf-8")
    assert f"\npyspark=={SPARK_LINES[0]}." in lock
    assert {"toArrow", "transpose", "mapInArrow(barrier)"} <= OLDEST["DataFrame"]
    assert "zipWithIndex" not in OLDEST["DataFrame"]


def test_the_package_uses_nothing_newer() -> None:
    found = [f"{one.place}:{line}: {what}" for one in modules("rankeval_spark", "jobs") for line, what in too_new(one)]
    assert found == []


@pytest.mark.parametrize(
    ("source", "n_found"),
    [
        ("F.no_such_function(a)", 1),
        ("F.array_sort(a, comparator=b)", 0),
        ("F.array_sort(a, by=b)", 1),
        ("from pyspark.sql import Newest", 1),
        ("T.StructType([])", 0),
        ("frame.zipWithIndex()", 1),
        ("frame.join(other, on='a', how='left')", 0),
    ],
)
def test_what_is_too_new_is_found(source: str, n_found: int, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    assert len(list(too_new(Module(tmp_path / "one.py", "one")))) == n_found
