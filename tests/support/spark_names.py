"""What pyspark offers, by name: lists of two versions show what is new in one of them.

``python -m tests.support.spark_names`` prints the list of the installed version; ``tests/meta/oldest_spark.txt`` is
that of the oldest version that this package supports, made in ``.venv-spark-4.0``.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Final

MODULES: Final = ("pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types")
CLASSES: Final = (
    "Catalog", "Column", "DataFrame", "DataFrameNaFunctions", "DataFrameReader", "DataFrameStatFunctions",
    "DataFrameWriter", "DataFrameWriterV2", "GroupedData", "Row", "SparkSession", "Window", "WindowSpec",
)  # fmt: skip  # one name a line would be a page
"""Classes of :mod:`pyspark.sql` and ``Catalog``; their methods are known by name alone, whatever they are called on."""


def names() -> dict[str, set[str]]:
    """Return the public names of pyspark, by module and class.

    A function is also listed with each of its parameters, as ``array_sort(comparator)``.
    """
    found = {module: set(_of(import_module(module))) for module in MODULES}
    sql = import_module("pyspark.sql")
    homes = {"Catalog": import_module("pyspark.sql.catalog")}
    return found | {name: set(_of(getattr(homes.get(name, sql), name))) for name in CLASSES}


def read(text: str) -> dict[str, set[str]]:
    """Read what :func:`written` wrote."""
    blocks = (block.split() for block in text.strip().split("\n\n"))
    return {words[0].rstrip(":"): set(words[1:]) for words in blocks}


def written(found: dict[str, set[str]]) -> str:
    """Write lists of names as text."""
    return "\n".join(
        textwrap.fill(f"{place}: {' '.join(sorted(own))}", 120, break_long_words=False, break_on_hyphens=False) + "\n"
        for place, own in found.items()
    )


def _of(home: object) -> Iterator[str]:
    for name in dir(home):
        if name.startswith("_"):
            continue
        yield name
        value = inspect.getattr_static(home, name)
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(value):
            yield from (f"{name}({parameter})" for parameter in _parameters(value))


def _parameters(function: object) -> list[str]:
    own = inspect.signature(inspect.unwrap(function)).parameters  # type: ignore[arg-type]  # a function, as was looked at
    return [name for name in own if name not in {"self", "cls"}]


if __name__ == "__main__":
    print(written(names()), end="")
