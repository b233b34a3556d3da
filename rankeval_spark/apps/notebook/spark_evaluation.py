"""``evaluate`` on Spark: DataFrames in, DataFrames out, computed when used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, functions as F
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.apps.check_facts import list_facts, row_facts
from rankeval_spark.apps.inputs import exposures_of, inputs_of, or_failing_at_zero_rank, with_model_names
from rankeval_spark.config import Checks
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.errors import Fault, InputError, kind_of
from rankeval_spark.evaluation import Evaluation, no_comparisons, refuse_unknown_baseline
from rankeval_spark.inputs.input_columns import read_given
from rankeval_spark.inputs.spark import Source, Sources, from_frame
from rankeval_spark.refusals import refusals_of_call
from rankeval_spark.result_rows.groups import gap_rows, gap_test_rows
from rankeval_spark.spark import plans
from rankeval_spark.spark.checks import input_checks
from rankeval_spark.spark.result_tables import group_gaps, long_view
from rankeval_spark.spark.session.worker_packages import require_packages

if TYPE_CHECKING:
    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.request import Request
    from rankeval_spark.config.sections.input_shapes import Gains
    from rankeval_spark.measures import Measure
    from rankeval_spark.schemas import Schema
    from rankeval_spark.spark.plans import Frames, InputFrames


def evaluate_on_spark(
    frames: Mapping[str, object], request: Request, *, ranks_from: int, gains: Gains | None = None
) -> SparkEvaluation:
    """Plan an evaluation; no Spark job starts here, see :attr:`SparkEvaluation.inputs`.

    Parameters
    ----------
    frames : mapping of str to object
        The inputs by their names; None where one is not given.
    ranks_from : int
        Rank of the first item of a list in the log.
    gains : Gains, optional
        How events of the judgements become gains.
    """
    sources = _sources(frames, request, ranks_from=ranks_from, gains=gains)
    require_packages(sources.recommendations.frame.sparkSession)
    return SparkEvaluation(inputs_of(or_failing_at_zero_rank(sources, request), request, are_checked=False), request)


@dataclass(frozen=True, repr=False)
class SparkEvaluation(Evaluation[DataFrame]):
    """Results as frames that are computed when used.

    Attributes
    ----------
    given : InputFrames
        The inputs as they were given.
    """

    given: InputFrames
    request: Request
    _kept: list[Frames] = field(default_factory=list, compare=False)
    """Frames of scored rows that are kept, inside a block of :meth:`cached`."""

    @cached_property
    def inputs(self) -> InputFrames:
        """The inputs with the names of the models: one job with the first result, none where ``models=`` names them.

        As ``pivot`` of Spark looks its values up. A subquery in the plan of each result would start no job here, but
        its value is one column more for all rows to carry.
        """
        return with_model_names(self.given, self.request)

    @property
    @override
    def user_metrics(self) -> DataFrame:
        return self._frames.user_metrics

    @property
    @override
    def user_values(self) -> DataFrame:
        requested = [(one.label, one.column, one.k) for one in self.request.measures.per_list]
        return long_view.to_user_values(self.user_metrics, requested=requested)

    @property
    @override
    def metrics(self) -> DataFrame:
        if self._needs_no_rows:
            return plans.to_metrics(
                self.inputs,
                request=self.request,
                exposures=exposures_of(self.inputs, self.request),
            )
        return self._frames.metrics

    @property
    @override
    def group_metrics(self) -> DataFrame:
        return plans.to_group_metrics(self.metrics, request=self.request)

    @property
    @override
    def ranked_items(self) -> DataFrame:
        return plans.to_ranked_items(self.inputs, request=self.request)

    @property
    @override
    def comparisons(self) -> DataFrame:
        alone = self._needs_no_rows
        found = plans.to_comparisons(self.inputs, request=self.request) if alone else self._frames.comparisons
        if found is None:
            raise no_comparisons()
        refuse_unknown_baseline(self.request, self._model_names())
        return found

    @property
    @override
    def gaps(self) -> DataFrame:
        metrics = self.metrics
        return group_gaps.to_gaps(metrics, plans.to_group_metrics(metrics, request=self.request))

    @property
    @override
    def checks(self) -> DataFrame:
        of_rows = row_facts(self.inputs, self.request)
        facts = input_checks.union(*of_rows, list_facts(self._frames.scored, self.request))
        return input_checks.with_verdicts(facts, checks=Checks())

    @override
    @contextmanager
    def cached(self) -> Iterator[SparkEvaluation]:
        """Compute the scored rows once for all results that are used inside the block."""
        if self._kept:  # inside of another block
            yield self
            return
        scored = plans.to_scored(self.inputs, request=self.request, is_cached=True)
        scored.persist(StorageLevel.MEMORY_AND_DISK)  # read by each result of the block
        self._kept.append(self._frames_of(scored))
        try:
            yield self
        finally:
            self._kept.clear()
            scored.unpersist()

    @property
    @override
    def _has_one_list(self) -> bool:
        return self.given.has_one_list

    @override
    def _gap_tests(self, gap_request: GapTestRequest) -> DataFrame:
        """Look up which groups there are, and plan a test of each gap between them."""
        frames, labels = self._frames, {one.label for one in gap_request.measures}
        of_groups = frames.metrics.where((F.col(C.SLICE) != C.ALL_USERS) & F.col(C.MEASURE).isin(*labels))
        names = (
            C.MODEL_ID,
            C.SLICE,
            C.SLICE_VALUES,
            C.MEASURE,
            C.K,
            C.VALUE,
            "n_users",
            "n_nonzero",
            "std_dev",
            "is_small",
        )
        groups = of_groups.select(*names).toArrow()  # as many as metrics has of these
        rows = groups.append_column("is_compared", to_arrow(gap_rows.is_compared(groups))).to_pylist()
        gaps = gap_test_rows.gaps_of([row for row in rows if gap_request.has(row)])
        tested = frames.scored.sparkSession.createDataFrame(gap_test_rows.gap_test_rows(gaps), gap_test_rows.TESTED)
        return frames.gap_tests(tested, gaps, gap_request)

    @override
    def _leaderboard(self, measures: Sequence[Measure]) -> DataFrame:
        means = self.metrics.where(F.col(C.SLICE) == C.ALL_USERS).groupBy(C.MODEL_ID)
        direction = F.asc_nulls_last if measures[0].better == "lower" else F.desc
        best_first = [direction(C.quoted_name(str(measures[0]))), F.asc(C.MODEL_ID)]
        return means.agg(_most_users(measures), *map(_mean_of, measures)).orderBy(*best_first)

    @override
    def _agreement(self, baseline: str, *, k: int, p: float) -> DataFrame:
        return plans.to_agreement(self.inputs, request=self.request, baseline=baseline, k=k, p=p)

    @override
    def _model_names(self) -> Sequence[str]:
        return plans.model_names(self.inputs, self.request)

    @override
    def _hit_ranks(self, model: str, baseline: str) -> DataFrame:
        return plans.to_hit_ranks(self.ranked_items, model, baseline)

    @property
    def _needs_no_rows(self) -> bool:
        """Whether aggregates are made where lists are scored; rows that are kept are read instead."""
        return not self._kept and plans.can_be_summarised(self.given, self.request)

    @property
    def _frames(self) -> Frames:
        return self._kept[0] if self._kept else self._planned

    @cached_property
    def _planned(self) -> Frames:
        return self._frames_of(plans.to_scored(self.inputs, request=self.request))

    def _frames_of(self, scored: DataFrame) -> Frames:
        exposures = exposures_of(self.inputs, self.request)
        return plans.Frames(scored, self.request, self.inputs.has_one_list, exposures)


def _mean_of(measure: Measure) -> Any:  # noqa: ANN401 - Column has two classes, classic and Connect
    return F.max(F.when(_is_of(measure), F.col(C.VALUE))).alias(str(measure))


def _most_users(measures: Sequence[Measure]) -> Any:  # noqa: ANN401 - as above
    is_shown = reduce(or_, map(_is_of, measures))
    return F.coalesce(F.max(F.when(is_shown, F.col("n_users"))), F.lit(0)).alias("n_users")


def _is_of(measure: Measure) -> Any:  # noqa: ANN401 - as above
    return (F.col(C.MEASURE) == measure.label) & (F.col(C.K) == measure.k)


def _sources(frames: Mapping[str, object], request: Request, *, ranks_from: int, gains: Gains | None) -> Sources:
    """Bring the frames into canonical columns."""
    expected = "a DataFrame of Spark"

    def read(name: str, frame: object, schema: Schema) -> Source:
        if not isinstance(frame, DataFrame):
            fix = "spark.createDataFrame makes one of a pandas DataFrame, spark.read of files"
            raise InputError(Fault(f"evaluate({name}=)", f"a {kind_of(frame)}", expected, fix))
        return from_frame(name, frame, schema, ranks_from=ranks_from, gains=gains)

    with refusals_of_call():
        return Sources(**read_given(frames, request, read, expected=expected))
