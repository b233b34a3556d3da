"""A night that Spark reads and computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, functions as F
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.check_facts import (
    can_be_tallied,
    computed_facts,
    counted_facts,
    list_facts,
    row_facts,
    tallied_inputs,
    without_tallies,
)
from rankeval_spark.apps.inputs import exposures_of, inputs_of, with_model_names
from rankeval_spark.apps.nightly import quarantine
from rankeval_spark.apps.nightly.night_host import NightHost
from rankeval_spark.apps.nightly.night_size import cost_of
from rankeval_spark.inputs.spark import Source, Sources, is_wholly_empty, read_all
from rankeval_spark.spark import plans
from rankeval_spark.spark.checks import input_checks
from rankeval_spark.spark.rows import population
from rankeval_spark.spark.spark_types import with_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.apps.check_facts import TalliedInputs
    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config import Cost
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.results import StagedRun
    from rankeval_spark.spark.plans import InputFrames


class SparkHost(NightHost):
    """Plans of Spark; rows of users are computed once and kept until the block ends."""

    def __init__(self, spark: SparkSession, plan: NightPlan) -> None:
        self._spark = spark
        self._plan = plan
        self._kept = ExitStack()
        self._tallied: TalliedInputs | None = None
        self._scored: DataFrame | None = None

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
        request, inputs, has_tallies = self._plan.request, self._usable, can_be_tallied(self._plan.request)
        if self._plan.config.results.lists:
            with steps.step("match") as step:
                lists = with_text_ids(plans.to_lists(inputs, request=request, has_tallies=has_tallies))
                lists = self._keep(lists) if has_tallies else lists
                run.stage(schemas.LISTS.name, with_all_columns(without_tallies(lists)))
                step.n_rows = run.n_rows[schemas.LISTS.name]
            self._tallied = tallied_inputs(lists) if has_tallies else None
            if plans.are_lists_enough(inputs, request):
                staged = run.frame(schemas.LISTS.name)
                scored = plans.to_scored_lists(staged, request=request, has_one_list=inputs.has_one_list)
                self._scored = self._keep(scored)
                stage_users(run, self._scored, steps=steps)
                return
        # Facts of items are not published: where a measure reads them, the log is ranked once more.
        counts_rows = has_tallies and self._tallied is None
        planned = plans.to_scored(inputs, request=request, is_cached=True, has_tallies=counts_rows)
        computed = self._keep(with_text_ids(planned))
        self._scored = without_tallies(computed)
        stage_users(run, self._scored, steps=steps)
        self._tallied = tallied_inputs(computed) if counts_rows else self._tallied

    @override
    def input_facts(self) -> list[CheckCount]:
        segments = self._sources.segments
        of_segments = [input_checks.to_segment_facts(segments.frame)] if segments else []
        counted = [] if self._tallied is None else counted_facts(self._usable, self._tallied)
        return [*counted, *computed_facts(*row_facts(self._usable, self._plan.request, self._tallied), *of_segments)]

    @override
    def list_facts(self) -> list[CheckCount]:
        return computed_facts(list_facts(self._frames.scored, self._plan.request))

    @property
    @override
    def metrics(self) -> DataFrame:
        return self._frames.metrics

    @property
    @override
    def comparisons(self) -> DataFrame | None:
        return self._frames.comparisons

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

    @cached_property
    def _frames(self) -> plans.Frames:
        if self._scored is None:
            message = "the rows of users are staged first"
            raise RuntimeError(message)
        exposures = exposures_of(self._usable, self._plan.request)
        usable = self._usable
        has_judged_lists = usable.has_judged_lists
        return plans.Frames(self._scored, self._plan.request, usable.has_one_list, exposures, has_judged_lists)

    def _source(self, name: str) -> Source:
        return next(source for source in self._sources.all() if source.name == name)

    def _keep(self, frame: DataFrame) -> DataFrame:
        return self._kept.enter_context(cached(frame))


def stage_users(run: StagedRun, scored: DataFrame, *, steps: Steps) -> None:
    """Stage the rows of users; where they are kept, this computes them for all results."""
    with steps.step("score") as step:
        run.stage(schemas.USER_METRICS.name, population.keep_population(scored))
        step.n_rows = run.n_rows[schemas.USER_METRICS.name]


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame, once computed, until the block ends; what does not fit into memory goes to disk."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


def with_text_ids(frame: DataFrame) -> DataFrame:
    """Turn ids into text, as all published tables hold them."""
    return frame.withColumns({name: F.col(name).cast("string") for name in C.LIST_KEY if name in frame.columns})


def with_all_columns(lists: DataFrame) -> DataFrame:
    """Add the columns of ``schemas.LISTS`` that no measure of the run needs, as NULL."""
    absent = [field for field in schemas.LISTS.fields if field.name not in (*lists.columns, *C.RUN_KEY)]
    return with_columns(lists, {field.name: F.lit(None).cast(field.type) for field in absent})
