"""What must not matter on Spark: the order and the partitions of rows, plans, and the time zone of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import evaluate
from tests.support.hosts import assert_same
from tests.support.logs import Logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS: Final = Logs.make(seed=20261121)
MEASURES: Final = ("P(denom='len')@3", "nDCG@3", "RR@3", "RBPResidual@3", "Judged@3", "AP", "infAP", "IPrecAvg")


@pytest.mark.parametrize(
    ("n_partitions", "is_adaptive", "time_zone"),
    [(1, False, "Pacific/Honolulu"), (20, True, "Asia/Kolkata")],
)
def test_order_partitions_adaptive_plans_and_time_zones_change_nothing(
    spark: SparkSession, n_partitions: int, is_adaptive: bool, time_zone: str
) -> None:
    """Values of users bit for bit those of this process, means within 1e-12."""
    spark.conf.set("spark.sql.adaptive.enabled", str(is_adaptive).lower())
    spark.conf.set("spark.sql.shuffle.partitions", str(n_partitions))
    spark.conf.set("spark.sql.session.timeZone", time_zone)
    on_spark, tables = LOGS.frames(spark, seed=n_partitions).repartition(n_partitions), LOGS.tables()
    here, result = (
        evaluate(one.recommendations, one.held_out, measures=MEASURES, segments=one.segments, slices=["country"])
        for one in (tables, on_spark)
    )
    with result.cached() as kept:
        assert_same(kept.user_values.toArrow(), here.user_values, tolerance=0.0)
        assert_same(kept.metrics.toArrow(), here.metrics, tolerance=1e-12)
