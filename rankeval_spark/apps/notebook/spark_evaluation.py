"""``evaluate`` on Spark: DataFrames in, DataFrames out, computed when used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.check_facts import (
    can_be_tallied,
    computed_facts,
    counted_facts,
    row_facts,
    tallied_inputs,
)
from rankeval_spark.apps.inputs import exposures_of, inputs_of, or_failing_at_zero_rank, with_model_names
from rankeval_spark.config import Checks
from rankeval_spark.engine.checks.unusable_rows import refuse_without_usable
from rankeval_spark.errors import Fault, InputError, kind_of
from rankeval_spark.evaluation import Evaluation, no_comparisons, refuse_unknown_baseline
from rankeval_spark.in_process.checks.input_warnings import warn_of_withheld
from rankeval_spark.inputs.input_columns import read_given
from rankeval_spark.inputs.spark import Source, Sources, from_frame
from rankeval_spark.refusals import refusals_of_call
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.check_rows import CheckCount, to_check_rows
from rankeval_spark.result_rows.groups import gap_rows, gap_test_rows
from rankeval_spark.result_rows.groups.group_rows import to_group_table
from rankeval_spark.result_rows.leaderboard import to_leaderboard
from rankeval_spark.spark import plans
from rankeval_spark.spark.result_tables import long_view
from rankeval_spark.spark.session.worker_packages import require_packages
from rankeval_spark.sums import list_counts, sums
from rankeval_spark.sums.grouping import in_order_of
from rankeval_spark.sums.input_counts import to_row_counts

if TYPE_CHECKING:
    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.inputs import Gains
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure
    from rankeval_spark.schemas import Schema
    from rankeval_spark.spark.plans import InputFrames
    from rankeval_spark.spark.rows.moved_rows import MovedRows


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
    _kept: list[DataFrame] = field(default_factory=list, compare=False)
    """Packed rows of users and sums that are kept, once for :meth:`cached` and once for each open block."""

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
        if self._kept:
            return plans.to_rows(self._kept[0], sums.USER_ROWS, self._rows.user_types)
        return plans.to_user_metrics(self.inputs, request=self.request)

    @property
    @override
    def user_values(self) -> DataFrame:
        requested = [(one.label, one.column, one.k) for one in self.request.measures.per_list]
        return long_view.to_user_values(self.user_metrics, requested=requested)

    @cached_property
    @override
    def metrics(self) -> DataFrame:
        return self._frame(self._metrics)

    @cached_property
    @override
    def group_metrics(self) -> DataFrame:
        return self._frame(to_group_table(self._metrics))

    @property
    @override
    def ranked_items(self) -> DataFrame:
        return plans.to_ranked_items(self.inputs, request=self.request)

    @cached_property
    @override
    def comparisons(self) -> DataFrame:
        if self.request.comparisons is None or not self.request.measures.columns:
            raise no_comparisons()
        refuse_unknown_baseline(self.request, self._model_names())
        rows = self._totals[sums.COMPARISONS]
        warn_of_withheld(rows)
        return self._frame(rows)

    @cached_property
    @override
    def gaps(self) -> DataFrame:
        return self._frame(gap_rows.to_gaps(self._metrics, to_group_table(self._metrics)))

    @cached_property
    @override
    def checks(self) -> DataFrame:
        inputs, request = self.inputs, self.request
        tallied, counted = None, list[CheckCount]()
        if can_be_tallied(request):
            tallied = tallied_inputs(self._totals)
            counted = counted_facts(inputs, tallied)
        counted += computed_facts(*row_facts(inputs, request, tallied))
        of_lists = list_counts.list_facts(self._totals[sums.LISTS], request)
        return self._frame(to_check_rows([*counted, *of_lists], Checks()))

    @override
    def cached(self) -> SparkEvaluation:
        """Compute the rows of users once for all results that are used from now on."""
        if not self._kept:
            rows = plans.to_user_rows(self.inputs, self.request, is_cached=True)
            packed = plans.to_packed(rows.frame, sums.ListTotals(rows.job, self._sums, tables=(sums.USER_ROWS,)))
            packed.persist(StorageLevel.MEMORY_AND_DISK)  # read by each result until release
            self._kept.append(packed)
        return self

    @override
    def release(self) -> None:
        """Release the rows that :meth:`cached` keeps, if any."""
        for packed in self._kept[:1]:
            packed.unpersist()
        self._kept.clear()

    @override
    def __enter__(self) -> SparkEvaluation:
        self._kept.append(self.cached()._kept[0])
        return self

    @override
    def __exit__(self, *_: object) -> None:
        del self._kept[-1:]
        if not self._kept[1:]:  # the outermost block
            self.release()

    @property
    @override
    def _has_one_list(self) -> bool:
        return self.given.has_one_list

    @override
    def _gap_tests(self, gap_request: GapTestRequest) -> DataFrame:
        """Look up which groups there are, and run a job that tests each gap between them."""
        gaps = gap_test_rows.gaps_of(self._metrics, gap_request)
        resampling = gap_test_rows.GapBootstrap.of(gaps, self.request, gap_request.draws)
        tests = sums.ListTotals(self._rows.job, {sums.GAP_TESTS: sums.GapTests(resampling)})
        found = plans.to_totals(plans.to_packed(self._rows.frame, tests), tests.sums)[sums.GAP_TESTS]
        return self._frame(gap_test_rows.to_rows(gaps, found, gap_request, alpha=1 - self.request.confidence))

    @override
    def _leaderboard(self, measures: Sequence[Measure]) -> DataFrame:
        names = {(one.label, one.k): str(one) for one in measures}
        return self._frame(to_leaderboard(self._metrics, names, is_lower_better=measures[0].better == "lower"))

    @override
    def _agreement(self, baseline: str, *, k: int, p: float) -> DataFrame:
        return plans.to_agreement(self.inputs, request=self.request, baseline=baseline, k=k, p=p)

    @override
    def _model_names(self) -> Sequence[str]:
        return plans.model_names(self.inputs, self.request)

    @override
    def _hit_ranks(self, model: str, baseline: str) -> DataFrame:
        return plans.to_hit_ranks(self.ranked_items, model, baseline)

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        """The small tables, made by one job at the first use of one of them."""
        totals = sums.ListTotals(self._rows.job, self._sums)
        packed = self._kept[0] if self._kept else plans.to_packed(self._rows.frame, totals)
        found = plans.to_totals(packed, self._sums)
        refuse_without_usable(to_row_counts(found[sums.ROWS]))
        return found

    @cached_property
    def _rows(self) -> MovedRows:
        """The rows of all users on their way to the sums."""
        return plans.to_user_rows(self.inputs, self.request, is_aggregated=True)

    @cached_property
    def _sums(self) -> dict[str, sums.Sum]:
        of_results = sums.result_sums(self.request, self._rows.job.outputs)
        return {**of_results, **sums.check_sums(self.request, tallies_inputs=True)}

    @cached_property
    def _metrics(self) -> pa.Table:
        """All rows of ``metrics``, in the order of their keys."""
        means = [self._totals[sums.METRICS]] if self.request.measures.columns else []
        exposures = exposures_of(self.inputs, self.request)
        found = [*means, *([] if exposures is None else [exposures.toArrow()])]
        whole = pa.concat_tables([one.cast(arrow_schema(schemas.METRICS)) for one in found])
        return in_order_of(whole, (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K))

    def _frame(self, table: pa.Table) -> DataFrame:
        """Hand a small table out as a frame."""
        return self.given.recommendations.sparkSession.createDataFrame(table)


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
