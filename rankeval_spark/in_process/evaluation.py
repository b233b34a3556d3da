"""``evaluate`` in this process: tables that Arrow can read in, Arrow tables out, each computed once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import Checks
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.evaluation import Evaluation, no_comparisons, refuse_unknown_baseline
from rankeval_spark.in_process.checks.input_checks import RowFacts
from rankeval_spark.in_process.checks.input_warnings import (
    warn_if_nothing_is_measured,
    warn_of_absent_models,
    warn_of_merged_lists,
    warn_of_unread_times,
    warn_of_withheld,
)
from rankeval_spark.in_process.exposure.all_lists import to_exposures
from rankeval_spark.in_process.result_tables import model_agreement, scored_rows
from rankeval_spark.in_process.rows.assembly import Usable
from rankeval_spark.inputs.arrow.input_tables import Tables
from rankeval_spark.inputs.arrow.memory_limit import refuse_large
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.input_columns import read_given, refuse_missing
from rankeval_spark.refusals import refusals_of_call
from rankeval_spark.result_rows.check_rows import to_check_rows
from rankeval_spark.result_rows.groups import gap_test_rows
from rankeval_spark.result_rows.groups.gap_rows import to_gaps
from rankeval_spark.result_rows.groups.gap_test_rows import GapBootstrap
from rankeval_spark.result_rows.groups.group_rows import to_group_table
from rankeval_spark.result_rows.leaderboard import to_leaderboard
from rankeval_spark.sums import list_counts, sums
from rankeval_spark.sums.grouping import in_order_of

if TYPE_CHECKING:
    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.inputs import Gains
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure

METRICS_KEY = (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K)


def evaluate_in_process(
    frames: Mapping[str, object],
    request: Request,
    *,
    ranks_from: int,
    threads: int | None,
    gains: Gains | None = None,
) -> ArrowEvaluation:
    """Read the inputs; results are computed when they are used.

    Parameters
    ----------
    frames : mapping of str to object
        The inputs by their names; None where one is not given.
    ranks_from : int
        Rank of the first item of a list in the log.
    threads : int or None
        Threads that work at a time; None for one a core.
    gains : Gains, optional
        How events of the judgements become gains.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ConfigError(Fault("evaluate(threads=)", repr(threads), "a whole number of at least 1"))
    refuse_large(frames)
    read = partial(to_source, ranks_from=ranks_from, gains=gains)
    with refusals_of_call():
        tables = Tables(**read_given(frames, request, read, expected="a table"), are_checked=False)
    refuse_missing({one.name: one.given for one in tables.all()}, request)
    if request.policies.is_attributed:
        warn_of_unread_times(tables)
        if request.policies.lists == "separate":
            warn_of_merged_lists(tables.recommendations)
    return ArrowEvaluation(request, Usable(tables, request, threads or os.cpu_count() or 1))


@dataclass(frozen=True, repr=False)
class ArrowEvaluation(Evaluation[pa.Table]):
    """Results as tables in the order of their keys; rows and columns are those of the frames of Spark."""

    request: Request
    usable: Usable

    @cached_property
    @override
    @refusals_of_call()
    def user_metrics(self) -> pa.Table:
        return in_order_of(scored_rows.user_rows(self.usable.user_rows), (*C.LIST_KEY, C.K))

    @cached_property
    @override
    def user_values(self) -> pa.Table:
        return scored_rows.to_user_values(self.user_metrics, self.request.measures)

    @cached_property
    @override
    @refusals_of_call()
    def metrics(self) -> pa.Table:
        means = [self._totals[sums.METRICS]] if self.request.measures.columns else []
        found = in_order_of(pa.concat_tables([*means, to_exposures(self.usable)]), METRICS_KEY)
        warn_of_absent_models(self.usable.tables, self.request)
        usable = self.usable
        warn_if_nothing_is_measured(found, usable.tables, usable.log, usable.held_out, self.request)
        return found

    @cached_property
    @override
    def group_metrics(self) -> pa.Table:
        return in_order_of(to_group_table(self.metrics), METRICS_KEY)

    @cached_property
    @override
    @refusals_of_call()
    def ranked_items(self) -> pa.Table:
        return scored_rows.to_ranked_items(self.usable)

    @cached_property
    @override
    @refusals_of_call()
    def comparisons(self) -> pa.Table:
        if self.request.comparisons is None or not self.request.measures.columns:
            raise no_comparisons()
        refuse_unknown_baseline(self.request, self.usable.models)
        rows = self._totals[sums.COMPARISONS]
        warn_of_withheld(rows)
        return in_order_of(rows, (C.BASELINE_MODEL_ID, *METRICS_KEY, "test"))

    @cached_property
    @override
    def gaps(self) -> pa.Table:
        return in_order_of(to_gaps(self.metrics, self.group_metrics), (C.MODEL_ID, C.SLICE, C.MEASURE, C.K))

    @cached_property
    @override
    @refusals_of_call()
    def checks(self) -> pa.Table:
        counted = self._totals[sums.LISTS]
        row_facts = RowFacts(self.usable.tables, self.request).all(self.usable.segments_and_facts[1])
        return to_check_rows([*row_facts, *list_counts.list_facts(counted, self.request)], Checks())

    @override
    def _known_leaderboard(self) -> list[dict[str, Any]] | None:
        if "metrics" not in vars(self):
            return None
        rows: list[dict[str, Any]] = self._leaderboard(self.request.measures.measures).to_pylist()
        return rows

    @property
    @override
    def _has_one_list(self) -> bool:
        return self.usable.has_one_list

    @override
    @refusals_of_call()
    def _gap_tests(self, gap_request: GapTestRequest) -> pa.Table:
        gaps = gap_test_rows.gaps_of(self.metrics, gap_request)
        rows, resampling = self.usable.user_rows, GapBootstrap.of(gaps, self.request, gap_request.draws)
        tests = sums.ListTotals(rows.job, {sums.GAP_TESTS: sums.GapTests(resampling)})
        found = sums.finished(tests.sums, rows.run(lambda _: tests.add))
        return gap_test_rows.to_rows(gaps, found[sums.GAP_TESTS], gap_request, alpha=1 - self.request.confidence)

    @override
    def _leaderboard(self, measures: Sequence[Measure]) -> pa.Table:
        names = {(one.label, one.k): str(one) for one in measures}
        return to_leaderboard(self.metrics, names, is_lower_better=measures[0].better == "lower")

    @override
    @refusals_of_call()
    def _agreement(self, baseline: str, *, k: int, p: float) -> pa.Table:
        return model_agreement.to_agreement(self.usable, baseline=baseline, k=k, p=p)

    @override
    @refusals_of_call()
    def _model_names(self) -> Sequence[str]:
        return self.usable.models

    @override
    def _hit_ranks(self, model: str, baseline: str) -> pa.Table:
        return scored_rows.to_hit_ranks(self.ranked_items, model, baseline)

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        """The small tables, made in one pass."""
        rows = self.usable.user_rows
        own = {**sums.result_sums(self.request, rows.job.outputs), **sums.check_sums(self.request)}
        totals = sums.ListTotals(rows.job, own)
        return sums.finished(totals.sums, rows.run(lambda _: totals.add))
