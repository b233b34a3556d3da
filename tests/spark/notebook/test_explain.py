"""The explanation of a value on Spark: the rows of one user, in one job, and the same as of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.evaluate.test_explain import HELD_OUT, LOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_hosts_explain_the_same(spark: SparkSession) -> None:
    held_out = HELD_OUT.append_column("value", pa.array([1.5, 2.0, 3.0, 4.0, 9.0, 1.0, 2.0]))
    asked: dict[str, Any] = {"measures": ["nDCG@3", "AP"], "models": ["x", "y"]}
    here, there = (
        evaluate(*tables, **asked) for tables in ((LOG, held_out), map(spark.createDataFrame, (LOG, held_out)))
    )
    found = there.explain("ann", "nDCG@3", model="x")
    assert repr(found) == repr(here.explain("ann", "nDCG@3", model="x"))
    assert found.table.equals(here.explain("ann", "nDCG@3", model="x").table)
    of_other = (host.explain("ann", "R(gains='value')@2", model="x") for host in (here, there))
    assert len({repr(each) for each in of_other}) == 1
    with pytest.raises(InputError, match="train: found nothing; expected this input, for MIUF"):
        there.explain("ann", "MIUF@2", model="x")
    with pytest.raises(ConfigError, match=r"explain\(user=\): found 'anna'; expected a user of .*did you mean 'ann'"):
        there.explain("anna", "AP", model="x")
