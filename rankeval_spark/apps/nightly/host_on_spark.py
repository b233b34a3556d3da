"""A night that Spark reads and computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.check_facts import (
    can_be_tallied,
    computed_facts,
    counted_facts,
    row_facts,
    tallied_inputs,
)
from rankeval_spark.apps.inputs import exposures_of, inputs_of, with_model_names
from rankeval_spark.apps.nightly import quarantine
from rankeval_spark.apps.nightly.night_host import NightHost
from rankeval_spark.apps.nightly.night_size import cost_of
from rankeval_spark.inputs.spark import Source, Sources, is_wholly_empty, read_all
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.spark import plans
from rankeval_spark.spark.checks import input_checks
from rankeval_spark.spark.rows.moved_rows import user_types
from rankeval_spark.sums import list_counts, sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config import Cost
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.results import StagedRun
    from rankeval_spark.spark.plans import InputFrames
    from rankeval_spark.spark.rows.moved_rows import MovedRows


class SparkHost(NightHost):
    """Plans of Spark; rows of users are computed once and kept until the block ends."""

    def __init__(self, spark: SparkSession, plan: NightPlan) -> None:
        self._spark = spark
        self._plan = plan
        self._kept = ExitStack()
        self._packed: DataFrame | None = None

    def __exit__(self, *_: object) -> None:
        """Let go of what was kept."""
        self._kept.close()

    @override
    def read(self) -> Cost:
        self.inputs = self._sources.all()
        return cost_of(self._plan.config, self._usable)

    @override
    def size_of(self, name: str) -> tuple[int, int]:
        frame = self._source(name).frame
        return frame.count(), len(frame.inputFiles())

    @override
    def stage_users(self, run: StagedRun, steps: Steps) -> None:
        rows, has_lists = self._rows, self._plan.config.results.lists
        tables = (sums.USER_ROWS, *([sums.LIST_ROWS] if has_lists else []))
        totals = sums.ListTotals(rows.job, self._sums, tables=tables, has_text_ids=True)
        packed = self._kept.enter_context(cached(plans.to_packed(rows.frame, totals)))
        if has_lists:
            with steps.step("match") as step:
                types = {field.name: field.type for field in schemas.LISTS.fields if field.name not in C.RUN_KEY}
                run.stage(schemas.LISTS.name, plans.to_rows(packed, sums.LIST_ROWS, types))
                step.n_rows = run.n_rows[schemas.LISTS.name]
        with steps.step("score") as step:
            types = user_types(self._plan.request.measures.stored)
            run.stage(schemas.USER_METRICS.name, plans.to_rows(packed, sums.USER_ROWS, types))
            step.n_rows = run.n_rows[schemas.USER_METRICS.name]
        self._packed = packed

    @override
    def input_facts(self) -> list[CheckCount]:
        segments, tallied = self._sources.segments, None
        if self._packed is not None and sums.ITEMS in self._sums:
            types = {C.ITEM_ID: self._rows.id_types[C.ITEM_ID], "n_judged": "bigint", "is_listed": "boolean"}
            items = plans.to_rows(self._packed, sums.ITEMS, types).where(F.col("is_listed"))
            tallied = tallied_inputs(self._totals, items)
        of_segments = [input_checks.to_segment_facts(segments.frame)] if segments else []
        counted = [] if tallied is None else counted_facts(self._usable, tallied)
        return [*counted, *computed_facts(*row_facts(self._usable, self._plan.request, tallied), *of_segments)]

    @override
    def list_facts(self) -> list[CheckCount]:
        return list_counts.list_facts(self._totals[sums.LISTS], self._plan.request)

    @cached_property
    @override
    def metrics(self) -> pa.Table:
        exposures = exposures_of(self._usable, self._plan.request)
        found = [self._totals.get(sums.METRICS), None if exposures is None else exposures.toArrow()]
        schema = arrow_schema(schemas.METRICS)
        return pa.concat_tables([schema.empty_table(), *(one.cast(schema) for one in found if one is not None)])

    @property
    @override
    def comparisons(self) -> pa.Table | None:
        return self._totals.get(sums.COMPARISONS)

    @cached_property
    def _rows(self) -> MovedRows:
        can_be_counted = can_be_tallied(self._plan.request)
        return plans.to_user_rows(self._usable, self._plan.request, is_cached=True, counts_rows=can_be_counted)

    @cached_property
    def _sums(self) -> dict[str, sums.Sum]:
        request = self._plan.request
        of_checks = sums.check_sums(request, tallies_inputs=can_be_tallied(request))
        return {**sums.result_sums(request, self._rows.job.outputs), **of_checks}

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        if self._packed is None:
            message = "the rows of users are staged first"
            raise RuntimeError(message)
        return plans.to_totals(self._packed, self._sums)

    @override
    def refused_rows(self) -> DataFrame:
        return quarantine.to_refused_rows(self._sources, self._plan.request, sample_share=self._plan.sample_share)

    @override
    def has_no_row(self, name: str) -> bool:
        return is_wholly_empty(self._source(name))

    @property
    @override
    def model_names(self) -> Sequence[str]:
        return plans.model_names(self._usable, self._plan.request)

    @override
    def models(self, *, at_most: int) -> list[str | None]:
        log = self._sources.recommendations.frame
        names = log.select(C.MODEL_ID).distinct().orderBy(C.MODEL_ID).limit(at_most).collect()
        return [row[0] for row in names]

    @cached_property
    def _sources(self) -> Sources:
        return read_all(self._spark, self._plan.config, self._plan.evaluation_date)

    @cached_property
    def _usable(self) -> InputFrames:
        inputs = inputs_of(self._sources, self._plan.request, sample_share=self._plan.sample_share)
        return with_model_names(inputs, self._plan.request)

    def _source(self, name: str) -> Source:
        return next(source for source in self._sources.all() if source.name == name)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame, once computed, until the block ends; what does not fit into memory goes to disk."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()
