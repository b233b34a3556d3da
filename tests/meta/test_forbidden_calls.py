"""Actions, caching, reads, writes, SQL text and Python in Spark stand where they are meant to, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.code import Module, modules

Found = Iterator[tuple[int, str]]
Finder = Callable[[Module], Found]

ALL_MODULES: Final = modules("rankeval_spark", "jobs")

ACTIONS: Final = frozenset({
    "collect", "toPandas", "toArrow", "toLocalIterator", "first", "head", "tail", "take", "show", "isEmpty", "foreach",
    "foreachPartition", "cache", "persist", "unpersist", "checkpoint", "localCheckpoint", "createDataFrame",
})  # fmt: skip  # one name a line would be a page
"""Methods of a DataFrame that run it, or keep what it gave; creating one from local rows ships them."""

PYTHON_IN_SPARK: Final = frozenset({
    "udf", "pandas_udf", "arrow_udf", "udtf", "mapInArrow", "mapInPandas", "applyInPandas", "applyInArrow",
    "applyInPandasWithState", "transformWithState", "cogroup",
})  # fmt: skip  # as above
JVM: Final = frozenset({"_jvm", "_jdf", "_jsc", "_jsparkSession", "_jc", "_gateway", "sparkContext", "rdd"})
SESSION: Final = re.compile(r"spark|session|getOrCreate", re.IGNORECASE)
READS_AND_WRITES: Final = frozenset({"read", "readStream", "write", "writeStream", "writeTo", "sql", "table"})
"""Attributes of a session or a frame; ``read`` and ``write`` where they are not called: ``file.read()`` is no frame."""

ACTIONS_ALLOWED: Final = {
    "rankeval_spark/apps/": "the imperative shell: what is computed is decided there",
    "rankeval_spark/hosts/": "small results are computed and handed out there",
    "rankeval_spark/results/": "tables are written and audited there",
    "rankeval_spark/engine/": "arrays and tables of Arrow, which have `take` too; no frame of Spark",
    "rankeval_spark/statistics/": "arrays, as above",
    "rankeval_spark/inputs/spark/probes.py": "asks a table for its version and a file for its first lines",
    "rankeval_spark/inputs/places.py": "asks a store for the size of an object",
    "rankeval_spark/inputs/arrow/": "looks at the first texts of a dataset of Arrow, which is no frame of Spark",
    "rankeval_spark/spark/session/machine_checks.py": "doctor tries a worker and a Delta table",
    "rankeval_spark/demo/": "prepares data and trains models; no part of an evaluation",
    "rankeval_spark/spark/plans/result_frames.py": "the job that makes the small tables of an evaluation",
    "rankeval_spark/report/tables.py": "a figure is drawn of rows: of aggregates, or of a few columns of users",
}
IO_ALLOWED: Final = {
    "rankeval_spark/inputs/": "the only place where inputs are read",
    "rankeval_spark/results/": "the only place where results are written and read",
    "rankeval_spark/spark/session/machine_checks.py": "doctor writes and reads ten rows",
    "rankeval_spark/demo/": "the logs of the demo are written and read there",
}
PYTHON_ALLOWED: Final = {
    "rankeval_spark/inputs/spark/canonical_columns.py": "cells that have to be read in, canonical columns out",
    "rankeval_spark/spark/plans/moved_rows.py": "the engine: all rows of a user in, lists, values and moments out",
    "rankeval_spark/spark/plans/item_facts.py": "counts and the catalogue in, facts of items and totals out",
    "rankeval_spark/spark/plans/result_frames.py": "rows of a user or what was counted in, partial rows of sums out",
    "rankeval_spark/spark/session/machine_checks.py": "doctor asks a worker which Python it is",
    "rankeval_spark/spark/plans/bands.py": "numbers of users in, edges of bands by quantiles out",
    "rankeval_spark/spark/list_functions.py": "functions of measures for SQL, which users call",
}
JVM_ALLOWED: Final = {
    "rankeval_spark/spark/session/builder.py": "looks for Delta in the driver of spark-submit",
    "rankeval_spark/spark/session/": "doctor looks at the driver",
    "rankeval_spark/inputs/spark/probes.py": "Spark has no call that tells the columns of each Parquet file",
    "rankeval_spark/apps/error_translation.py": "a failure of the JVM is translated",
}
SQL_ALLOWED: Final[Mapping[str, str]] = {
    "rankeval_spark/inputs/spark/probes.py": "versions of a table; its name is quoted",
    "rankeval_spark/results/catalog.py": "which tables a schema has; its name is checked, see docs/security.md",
}
PRINT_ALLOWED: Final = {
    "rankeval_spark/cli/": "the terminal belongs to the command line",
    "rankeval_spark/results/failpoints.py": "a test waits for the line; nothing is armed outside of tests",
}
IMPORTERS: Final = frozenset({"pa.array", "pa.scalar", "pc.fill_null", ".to_numpy"})
"""Calls of pyarrow that import pandas; see ``engine/arrays``."""

WITHOUT_PANDAS: Final = ("rankeval_spark/engine/", "rankeval_spark/apps/trec_")
PANDAS_ALLOWED: Final = {
    "rankeval_spark/engine/aggregates.py": "its states are bytes made by Python",
}


def method_calls(module: Module) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """Find calls of the form ``value.name(...)`` whose value is no imported module."""
    imported = imported_names(module)
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = node.func.value
            if not (isinstance(value, ast.Name) and value.id in imported):
                yield node, node.func


@cache
def imported_names(module: Module) -> frozenset[str]:
    """Names that an import of the module binds."""
    imports = (node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return frozenset((each.asname or each.name).split(".")[0] for node in imports for each in node.names)


def root_name(node: ast.expr) -> str:
    """Name at the beginning of a chain such as ``pa.array(...).take``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def actions(module: Module) -> Found:
    """Find calls that run a frame; ``count`` without arguments is one, with them it belongs to text or to a list."""
    for call, function in method_calls(module):
        is_count = function.attr == "count" and not call.args and not call.keywords and not _is_grouped(function.value)
        if (function.attr in ACTIONS or is_count) and root_name(function) not in {"pa", "np"}:
            yield call.lineno, f".{function.attr}()"


def _is_grouped(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "groupBy"


def reads_and_writes(module: Module) -> Found:
    """Attributes and calls by which Spark reads or writes tables; ``read`` is that of a session, by its name."""
    called = {id(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in READS_AND_WRITES:
            is_method = node.attr in {"writeTo", "sql", "table"}
            is_module = node.attr == "sql" and root_name(node) == "pyspark"
            is_elsewhere = node.attr in {"read", "readStream"} and not SESSION.search(last_name(node.value))
            if is_method == (id(node) in called) and not is_module and not is_elsewhere:
                yield node.lineno, f".{node.attr}"


def last_name(node: ast.expr) -> str:
    """Name of a value: the end of a chain such as ``frame.sparkSession`` or ``root.spark``, or of what is called."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def python_in_spark(module: Module) -> Found:
    """Functions that send rows through Python."""
    for node in module.nodes:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in PYTHON_IN_SPARK:
            yield node.lineno, name  # type: ignore[attr-defined]  # attributes and names have a line


def jvm(module: Module) -> Found:
    """Ways round the public interface, which Spark Connect does not have."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in JVM:
            yield node.lineno, f".{node.attr}"


def sql_text(module: Module) -> Found:
    """Text that Spark would parse: ``F.expr``, ``spark.sql``, ``selectExpr``, a condition as a string."""
    for node in module.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name, first = node.func.attr, node.args[0] if node.args else None
        is_text = isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str))
        if name in {"expr", "sql", "selectExpr", "call_function"} or (name in {"where", "filter"} and is_text):
            yield node.lineno, f".{name}(...)"


def prints(module: Module) -> Found:
    """Find calls of ``print``."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno, "print()"


def imports_of_pandas(module: Module) -> Found:
    """Find calls by which the engine would import pandas."""
    if not module.place.startswith(WITHOUT_PANDAS):
        return
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            names = {f".{node.func.attr}", f"{of.id}.{node.func.attr}" if isinstance(of, ast.Name) else ""}
            yield from ((node.lineno, name) for name in names & IMPORTERS)


def outside(allowed: Mapping[str, str], finder: Finder) -> list[str]:
    """Places where something is found that is not among those allowed."""
    forbidden = (module for module in ALL_MODULES if not module.place.startswith(tuple(allowed)))
    return [f"{module.place}:{line}: {what}" for module in forbidden for line, what in finder(module)]


@pytest.mark.parametrize(
    ("allowed", "finder"),
    [
        pytest.param(ACTIONS_ALLOWED, actions, id="actions and caching"),
        pytest.param(IO_ALLOWED, reads_and_writes, id="reads and writes"),
        pytest.param(PYTHON_ALLOWED, python_in_spark, id="Python in Spark"),
        pytest.param(JVM_ALLOWED, jvm, id="the JVM"),
        pytest.param(SQL_ALLOWED, sql_text, id="SQL text"),
        pytest.param(PRINT_ALLOWED, prints, id="print"),
        pytest.param(PANDAS_ALLOWED, imports_of_pandas, id="pandas"),
    ],
)
def test_it_is_used_only_where_it_is_allowed(allowed: Mapping[str, str], finder: Finder) -> None:
    assert outside(allowed, finder) == []


@pytest.mark.parametrize(
    "allowed",
    [ACTIONS_ALLOWED, IO_ALLOWED, PYTHON_ALLOWED, JVM_ALLOWED, SQL_ALLOWED, PRINT_ALLOWED, PANDAS_ALLOWED],
)
def test_every_allowed_place_exists(allowed: Mapping[str, str]) -> None:
    places = [module.place for module in ALL_MODULES]
    assert [place for place in allowed if not any(each.startswith(place) for each in places)] == []


def test_nothing_is_imported_by_star() -> None:
    found = [f"{module.place}: {name}" for module in ALL_MODULES for name, _ in module.imports() if name.endswith(".*")]
    assert found == []


def test_functions_and_types_of_spark_are_called_f_and_t() -> None:
    """Imported by name, ``max``, ``sum`` and ``filter`` would stand for something else than what a reader expects."""
    assert [fault for module in ALL_MODULES for fault in _odd_names(module)] == []


def _odd_names(module: Module) -> Iterator[str]:
    wanted = {"functions": "F", "types": "T"}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (
                f"{module.place}:{node.lineno}: {each.name}" for each in node.names if "pyspark.sql." in each.name
            )
        elif isinstance(node, ast.ImportFrom) and node.module in {"pyspark.sql.functions", "pyspark.sql.types"}:
            yield f"{module.place}:{node.lineno}: from {node.module}"
        elif isinstance(node, ast.ImportFrom) and node.module == "pyspark.sql":
            yield from (
                f"{module.place}:{node.lineno}: {each.name} as {each.asname}"
                for each in node.names
                if each.asname != wanted.get(each.name)
            )


def test_joins_say_on_and_how_and_none_is_right() -> None:
    assert [fault for module in ALL_MODULES for fault in _vague_joins(module)] == []


def _vague_joins(module: Module) -> Iterator[str]:
    for call, function in method_calls(module):
        keywords = {each.arg: each.value for each in call.keywords}
        if function.attr != "join" or (len(call.args) == 1 and not keywords):  # "".join(parts)
            continue
        if root_name(function) == "os":
            continue
        how = keywords.get("how")
        if not {"on", "how"} <= set(keywords) or (isinstance(how, ast.Constant) and "right" in str(how.value)):
            yield f"{module.place}:{call.lineno}"


def test_assert_is_used_in_tests_only() -> None:
    """It vanishes under ``python -O``, and it explains nothing to a user."""
    asserts = [
        f"{module.place}:{node.lineno}"
        for module in ALL_MODULES
        for node in module.nodes
        if isinstance(node, ast.Assert)
    ]
    assert asserts == []


@pytest.mark.parametrize(
    ("source", "finder", "n_found"),
    [
        ("frame.count()", actions, 1),
        ("frame.groupBy('a').count()", actions, 0),
        ("text.count('a')", actions, 0),
        ("frame.where(x).first()", actions, 1),
        ("from pyspark.sql import functions as F\nF.first('a')", actions, 0),
        ("spark.read.parquet('a')", reads_and_writes, 1),
        ("self._spark.read.format('delta')", reads_and_writes, 1),
        ("file.read()", reads_and_writes, 0),
        ("night.read == versions", reads_and_writes, 0),
        ("frame.write.save('a')", reads_and_writes, 1),
        ("spark.table('a')", reads_and_writes, 1),
        ("config.table", reads_and_writes, 0),
        ("frame.where('a > 1')", sql_text, 1),
        ("F.expr(text)", sql_text, 1),
        ("frame.rdd.map(f)", jvm, 1),
    ],
)
def test_a_finder_finds_what_it_is_for(source: str, finder: Finder, n_found: int, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    assert len(list(finder(Module(tmp_path / "one.py", "one")))) == n_found
