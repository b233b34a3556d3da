"""A night whose published lists are scored again on Spark: of a root that this process does not read."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as F
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.host_on_spark import cached
from rankeval_spark.apps.published.rescored_night import RescoredNight
from rankeval_spark.spark import plans
from rankeval_spark.spark.plans.moved_rows import user_types
from rankeval_spark.sums import sums


class RescoredOnSpark(RescoredNight):
    """Lists that Spark reads and scores."""

    @override
    def stage_lists_and_values(self) -> None:
        with self.steps.step("match") as step:
            self.recorded.stage(schemas.LISTS.name, self.published(schemas.LISTS.name))
            step.n_rows = self.recorded.n_rows[schemas.LISTS.name]
            lists = self.recorded.frame(schemas.LISTS.name)
            has_one_list = lists.where(F.col(C.LIST_ID) != C.ONE_LIST).isEmpty()
        source, totals = self.totals(has_one_list)
        packed = plans.to_packed(lists.select(*source.columns).repartition(C.USER_ID), totals)
        with cached(packed) as kept:
            with self.steps.step("score") as step:
                types = user_types(self.request.measures.stored)
                self.recorded.stage(schemas.USER_METRICS.name, plans.to_rows(kept, sums.USER_ROWS, types))
                step.n_rows = self.recorded.n_rows[schemas.USER_METRICS.name]
            self.stage_totals(plans.to_totals(kept, totals.sums), self.published(schemas.METRICS.name).toArrow())

    @override
    def published(self, table: str) -> DataFrame:
        rows: DataFrame = getattr(self.results, table)(**self.of_night)
        return rows.drop(*C.RUN_KEY)
