"""A night that Spark reads and computes."""

from __future__ import annotations

from functools import cached_property, reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night_host import NightHost
from rankeval_spark.config import Cost, counted_cost
from rankeval_spark.hosts.on_spark import OnSpark, inputs_of
from rankeval_spark.inputs.input_columns import RAW
from rankeval_spark.inputs.spark.probes import is_wholly_empty
from rankeval_spark.inputs.spark.reading import Source, Sources, read_all
from rankeval_spark.spark.plans import usable_rows
from rankeval_spark.spark.plans.result_frames import write_rows
from rankeval_spark.spark.session.machine_checks import require_packages_of_cluster
from rankeval_spark.spark.session.settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.spark.plans.user_rows import InputFrames
    from rankeval_spark.sums.sums import Writer

_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_LOG_SLOTS: Final = 12  # of a sketch of values: the standard error of their count is 1.6 %


class SparkHost(NightHost):
    """Plans of Spark, whose workers write the rows of users."""

    def __init__(self, spark: SparkSession, plan: NightPlan) -> None:
        super().__init__(plan)
        self._spark = spark
        self._batch_bytes: str | None = None  # the session's limit, where this night lifts it

    def __exit__(self, *_: object) -> None:
        """Restore the limit of the session; no rows are kept."""
        if self._batch_bytes is not None:
            self._spark.conf.set(_BATCH_BYTES, self._batch_bytes)

    @override
    def read(self) -> Cost:
        require_packages_of_cluster(self._spark)
        self.inputs = self._sources.all()
        config, inputs = self._plan.config, self.host.inputs
        # With a limit Spark measures a batch after each row: a quarter of the processor time of ten million rows.
        # Batches of 10,000 items need none, nor do the merges of one machine; whole lists and a cluster's may be large.
        is_small = is_local(self._spark.conf.get("spark.master", "") or "") and not config.inputs.recommendations.shapes
        if is_small and _BATCH_BYTES not in config.spark.settings:
            self._batch_bytes = self._spark.conf.get(_BATCH_BYTES, "64m")  # the default
            self._spark.conf.set(_BATCH_BYTES, str(2**31 - 1))
        return counted_cost(config, n_models=len(inputs.model_names), slice_values=_count_slice_values(config, inputs))

    @override
    def look_up_size(self, name: str) -> tuple[int, int]:
        frame = self._source(name).rows_to_count
        return frame.count(), len(frame.inputFiles())

    @override
    def write_refused(self, table: Writer) -> None:
        refused = to_refused_rows(self._sources, self._plan.request, sample_share=self._plan.sample_share)
        write_rows(refused, table)

    @override
    def has_no_row(self, name: str) -> bool:
        return is_wholly_empty(self._source(name))

    @override
    def models(self, *, at_most: int) -> list[str | None]:
        log = self._sources.recommendations.frame
        names = log.select(C.MODEL_ID).distinct().orderBy(C.MODEL_ID).limit(at_most).collect()
        return [row[0] for row in names]

    @cached_property
    def _sources(self) -> Sources:
        return read_all(self._spark, self._plan.config, self._plan.evaluation_date)

    @cached_property
    @override
    def host(self) -> OnSpark:
        return OnSpark(self._sources, self.request, sample_share=self._plan.sample_share)

    def _source(self, name: str) -> Source:
        return next(source for source in self._sources.all() if source.name == name)


def _count_slice_values(config: EvaluationConfig, inputs: InputFrames) -> dict[str, int]:
    """Count the values of each slice by sketches, NULL among them, in one pass over a few columns."""
    if inputs.segments is None or not config.slices:
        return {}
    columns = {name: F.col(C.quoted_name(name)) for names in config.slices for name in names}
    # NULL is left out of a count; its hash is one as any other.
    hashes = [F.xxhash64(*(columns[name] for name in names)) for names in config.slices]
    sketches = [F.hll_sketch_agg(column, _LOG_SLOTS) for column in hashes]
    counts = [F.hll_sketch_estimate(column).alias(str(place)) for place, column in enumerate(sketches)]
    (row,) = inputs.segments.select(*counts).collect()
    return {C.CROSSING.join(names): row[str(place)] for place, names in enumerate(config.slices)}


def to_refused_rows(sources: Sources, request: Request, *, sample_share: float = 1.0) -> DataFrame:
    """Plan the rows that fail a check of single rows, for the expected models and the sampled users.

    One more pass over each input. Checks of whole lists and of joins, such as a repeated item, add no rows.
    """
    with_raw = Sources(**{source.name: source.with_raw for source in sources.all()})
    inputs = inputs_of(with_raw, request, sample_share=sample_share)
    checks = inputs.row_checks(request.copy_with(evaluation_date=None))
    given = {"recommendations": inputs.recommendations, "held_out": inputs.held_out, **inputs.others}
    refused = (usable_rows.to_refused(frame, checks[name], row=RAW) for name, frame in given.items())
    return reduce(DataFrame.unionByName, refused)
