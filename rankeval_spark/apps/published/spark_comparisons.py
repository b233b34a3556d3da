"""Models of a published night against each other by Spark, for results in a store that only Spark reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.spark import plans

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request


def of_published_users(user_metrics: DataFrame, request: Request) -> list[dict[str, Any]]:
    """Make the rows of ``schemas.COMPARISONS`` of published rows of users, as the night itself would have."""
    scored = user_metrics.where(F.col(C.K).isin(*request.measures.ks)).withColumn(IS_EVALUATED, F.lit(True))
    found = plans.Frames(scored, request=request, has_one_list=False).comparisons
    return [] if found is None else [row.asDict() for row in found.collect()]
