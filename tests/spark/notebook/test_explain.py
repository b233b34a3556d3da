"""The explanation of a value on Spark: the rows of one user, in one job, and the same as of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.evaluate.test_explain import HELD_OUT, LOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_hosts_explain_the_same(spark: SparkSession) -> None:
    asked: dict[str, Any] = {"measures": ["nDCG@3", "AP"], "models": ["x", "y"]}
    here, there = (
        evaluate(*tables, **asked) for tables in ((LOG, HELD_OUT), map(spark.createDataFrame, (LOG, HELD_OUT)))
    )
    found = there.explain("ann", "nDCG@3", model="x")
    assert repr(found) == repr(here.explain("ann", "nDCG@3", model="x"))
    assert found.table.equals(here.explain("ann", "nDCG@3", model="x").table)
    with pytest.raises(ConfigError, match=r"explain\(user=\): found 'anna'; expected a user of .*did you mean 'ann'"):
        there.explain("anna", "AP", model="x")
