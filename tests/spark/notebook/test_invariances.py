"""What must not matter on Spark: the order and the partitions of rows, plans, and the time zone of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import evaluate
from tests.support import arrow_frames, frames
from tests.support.logs import Logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS: Final = Logs.make(seed=20261121)
MEASURES: Final = ("P(denom='len')@3", "nDCG@3", "RR@3", "RBPResidual@3", "Judged@3", "AP", "infAP", "IPrecAvg")
OF_USER: Final = ("model_id", "measure", "k", "user_id")
OF_MEAN: Final = ("model_id", "slice_value", "measure", "k")
COLUMNS: Final = ("value", "std_error", "ci_low", "ci_high", "n_users", "n_undefined", "n_missing", "tie_share")


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
        values = frames.by(kept.user_values, *OF_USER, value="value")
        assert values == arrow_frames.by(here.user_values, *OF_USER, value="value")
        means = kept.metrics.toArrow()
    for name in COLUMNS:
        found, expected = (arrow_frames.by(each, *OF_MEAN, value=name) for each in (means, here.metrics))
        close = {key: pytest.approx(one, rel=0, abs=1e-12) for key, one in expected.items() if one is not None}
        assert found == {**expected, **close}, name  # nothing but None equals None
