"""Classes of the JVM that pyspark asks for by name at every use, looked up once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASSES: Final = (
    "functions",
    "SimplePythonFunction",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.expressions.Window",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
    "org.apache.spark.sql.types.Metadata",
)
"""As pyspark writes them: the short ones are looked for in nine packages, in each of 300 jars."""


def remember_classes(session: SparkSession) -> None:
    """Keep the classes of which every expression is made; nothing happens where no JVM is in reach.

    A frame of 50 columns asks some hundred times, and the search through the jars, mostly in vain, was a sixth of the
    CPU of a driver on small data.
    """
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        return
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))
