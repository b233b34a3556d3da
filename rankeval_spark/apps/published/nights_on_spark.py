"""What Spark computes of published nights, where only it reads their inputs or their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.hosts.on_spark import OnSpark
from rankeval_spark.hosts.spark_inputs import inputs_of
from rankeval_spark.inputs.spark import read_all

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.apps.nightly.night_plan import NightPlan


def user_lists(spark: SparkSession, plan: NightPlan, users: Sequence[str]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Rank and score the lists of some users: ranked items, judgements and values, as :class:`UserLists` has them."""
    inputs = inputs_of(read_all(spark, plan.config, plan.evaluation_date), plan.request, sample_share=plan.sample_share)

    def of_users(frame: DataFrame) -> DataFrame:
        return frame.where(F.col(C.USER_ID).cast("string").isin(*users))

    given = replace(
        inputs,
        recommendations=of_users(inputs.recommendations),
        held_out=of_users(inputs.held_out),
        lists=None if inputs.lists is None else of_users(inputs.lists),
    )
    host = OnSpark(given, plan.request)
    judged = given.held_out.select(*schemas.HELD_OUT.key_in(given.held_out.columns), C.GAIN)
    ranked, values = host.ranked_items(), host.user_values()
    return ranked.toArrow(), judged.toArrow(), values.toArrow()
