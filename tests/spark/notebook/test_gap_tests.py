"""Tests of gaps between groups on Spark: partitions change no p, and arguments are refused before any job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.support import arrow_frames
from tests.support.frames import judgements, ranking, table
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation

COUNTRIES: Final = ("AT", "AT", "DE", "FR", "FR", None)
USERS: Final = {f"u{index:03d}": COUNTRIES[index % len(COUNTRIES)] for index in range(360)}
ASKED: Final[dict[str, Any]] = {"measures": ["RR@2"], "replicates": 200, "seed": 3}


def evaluation(spark: SparkSession | None) -> Evaluation:
    """On Spark, or in this process without a session."""
    is_first = [index % 5 == 0 or (index % 6 == 2 and index < 84) for index in range(len(USERS))]
    lists = {user: "hit b" if first else "b hit" for user, first in zip(USERS, is_first, strict=True)}
    gains = {user: {"hit": 1} for user in lists}
    if spark is None:
        log, held_out = arrow_frames.ranking(lists), arrow_frames.judgements(gains)
        segments = arrow_frames.table("user_id country", *USERS.items())
    else:
        log, held_out = ranking(spark, lists), judgements(spark, gains)
        segments = table(spark, "user_id country", *USERS.items())
    measures = ["RR@2", "P@1", "ItemCoverage@2"]
    return evaluate(
        log, held_out, measures=measures, segments=segments, slices=["country"], slicing={"min_slice_size": 5}
    )


def test_partitions_and_hosts_change_nothing(spark: SparkSession) -> None:
    with evaluation(spark).cached() as result:
        (one,) = result.gap_tests(**ASKED).collect()
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    (other,) = evaluation(spark).gap_tests(**ASKED).collect()
    assert 1 / 201 < one["p_value"] < 1
    assert one == other
    (in_process,) = evaluation(None).gap_tests(**ASKED).to_pylist()
    assert in_process == {**one.asDict(), "gap": pytest.approx(one["gap"], rel=0, abs=1e-12)}


def test_what_cannot_be_tested_is_said_before_anything_runs(spark: SparkSession) -> None:
    result = evaluation(spark)
    with no_spark_jobs(spark), pytest.raises(ConfigError, match=r"gap_tests\(measures=\)\[0\](.|\n)*'ItemCoverage@2'"):
        result.gap_tests(measures=["RR@3", "ItemCoverage@2"])
