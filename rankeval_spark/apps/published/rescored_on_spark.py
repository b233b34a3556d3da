"""A night whose published lists are scored again on Spark: of a root that this process does not read."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as F
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.host_on_spark import cached, stage_users
from rankeval_spark.apps.nightly.staging import stage_results
from rankeval_spark.apps.published.recorded_plan import has_judged_lists
from rankeval_spark.apps.published.rescored_night import RescoredNight
from rankeval_spark.spark import plans


class RescoredOnSpark(RescoredNight):
    """Lists that Spark reads and scores."""

    @override
    def stage_lists_and_values(self) -> None:
        with self.steps.step("match") as step:
            self.recorded.stage(schemas.LISTS.name, self.published(schemas.LISTS.name))
            step.n_rows = self.recorded.n_rows[schemas.LISTS.name]
            lists = self.recorded.frame(schemas.LISTS.name)
            has_one_list = lists.where(F.col(C.LIST_ID) != C.ONE_LIST).isEmpty()
        metrics = self.published(schemas.METRICS.name)
        exposures = metrics.where(F.col(C.MEASURE).isin(*self.exposures)) if self.exposures else None
        scored = plans.to_scored_lists(lists, request=self.request, has_one_list=has_one_list)
        with cached(scored) as kept:
            stage_users(self.recorded, kept, steps=self.steps)
            are_judged = has_judged_lists(self.results, self.night)
            frames = plans.Frames(kept, self.request, has_one_list, exposures, are_judged)
            stage_results(self.recorded, frames, self.request, steps=self.steps)

    @override
    def published(self, table: str) -> DataFrame:
        rows: DataFrame = getattr(self.results, table)(**self.of_night)
        return rows.drop(*C.RUN_KEY)
