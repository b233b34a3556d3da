"""Frames of results: from usable inputs to scored rows, and from scored rows to the result tables; plans only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.request import agreement_request
from rankeval_spark.engine.planning import carries_partials, denominators, exposure_parts, outputs_of
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.engine.scoring.scorer import RELEVANT
from rankeval_spark.result_rows.comparison_rows import comparison_finisher
from rankeval_spark.result_rows.exposure.jackknife_rows import JackknifeRows
from rankeval_spark.result_rows.exposure.parity_rows import ParityRows
from rankeval_spark.spark.exposure import group_parity, item_exposure
from rankeval_spark.spark.plans.user_rows import model_names, to_user_rows
from rankeval_spark.spark.result_tables import gap_tests, mean_metrics, paired_comparisons, scored_lists
from rankeval_spark.spark.rows import population

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.request import Request
    from rankeval_spark.result_rows.groups.gap_test_rows import ComparedGroups
    from rankeval_spark.spark.plans.input_frames import InputFrames


@dataclass(frozen=True)
class Frames:
    """The results as plans, each made when it is used.

    Attributes
    ----------
    scored : DataFrame
        Every list at every cutoff, with the rows outside the population that are only counted: a plan, or staging read
        back.
    request : Request
        The request.
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a grouping.
    exposures : DataFrame or None
        The rows of :func:`to_exposures`, which become rows of ``metrics``.
    has_judged_lists : bool
        Whether judgements name the list that they belong to.
    """

    scored: DataFrame
    request: Request
    has_one_list: bool
    exposures: DataFrame | None = None
    has_judged_lists: bool = False

    @cached_property
    def user_metrics(self) -> DataFrame:
        """As ``schemas.USER_METRICS`` from the first column after the run's on."""
        return population.keep_population(self.scored)

    @cached_property
    def metrics(self) -> DataFrame:
        """As ``schemas.METRICS``, likewise."""
        if self.exposures is not None and not self._has_values:
            return self.exposures
        means = _means(self._users, self.request, has_one_list=self.has_one_list)
        return means if self.exposures is None else means.unionByName(self.exposures)

    @cached_property
    def comparisons(self) -> DataFrame | None:
        """As ``schemas.COMPARISONS``, likewise; None where nothing is compared."""
        return self.compared()

    def compared(self, unjudged: pa.Table | None = None) -> DataFrame | None:
        """Compare models; ``unjudged`` are rows of ``metrics`` where users without a judgement have no scored rows."""
        if not self._has_values or self.request.comparisons is None:
            return None
        finisher = comparison_finisher(
            self.request,
            weights=denominators(self.request, has_one_list=self.has_one_list),
            has_judged_lists=self.has_judged_lists,
        )
        return paired_comparisons.to_comparisons(self._users, self.scored, finisher, unjudged=unjudged)

    def gap_tests(self, tested: DataFrame, gaps: Sequence[ComparedGroups], gap_request: GapTestRequest) -> DataFrame:
        """Test gaps between groups of users, all of slices of the request; ``tested`` has their rows."""
        return gap_tests.to_gap_tests(self._users, tested, gaps, self.request, gap_request)

    @property
    def _has_values(self) -> bool:
        """Whether users have values: not of measures of all lists together."""
        return bool(self.request.measures.columns)

    @cached_property
    def _users(self) -> DataFrame:
        return _users(self.scored, self.request, has_one_list=self.has_one_list)


def to_lists(inputs: InputFrames, *, request: Request, has_tallies: bool = False) -> DataFrame:
    """Rank, match and group: one compact row per list, in the columns of ``schemas.LISTS`` from the list key on.

    Parameters
    ----------
    has_tallies : bool
        As for :func:`to_scored`.
    """
    rows = to_user_rows(inputs, request, needs=frozenset(), is_cached=has_tallies, counts_rows=has_tallies)
    return rows.to_lists(has_tallies=has_tallies)


def to_scored(
    inputs: InputFrames, *, request: Request, is_cached: bool = False, has_tallies: bool = False
) -> DataFrame:
    """Score every list at every cutoff and mark who belongs to the population.

    Where every user has one list of a model, and users are not drawn, the rows carry the moments that means are made
    of.

    Parameters
    ----------
    is_cached : bool
        Whether the rows are kept, for several results.
    has_tallies : bool
        Whether rows without a model say what the inputs have, see :mod:`engine.checks.partition_tallies`.
    """
    has_partials = carries_partials(request, has_one_list=inputs.has_one_list)
    rows = to_user_rows(inputs, request, is_cached=is_cached, counts_rows=has_tallies)
    return rows.to_scored(has_partials=has_partials, has_tallies=has_tallies)


def to_scored_lists(lists: DataFrame, *, request: Request, has_one_list: bool) -> DataFrame:
    """Score compact lists that are a table already; measures then read no facts of items."""
    has_partials = carries_partials(request, has_one_list=has_one_list)
    return scored_lists.to_scored(lists, outputs=outputs_of(request), has_partials=has_partials)


def to_ranked_items(inputs: InputFrames, *, request: Request) -> DataFrame:
    """Rank the items of every list: model, user, list, item, rank, gain and whether the item is relevant.

    A row per item that is left in a list, in the population or not. ``gain`` is NULL without a judgement;
    ``is_relevant`` is true from a gain of 1 on.
    """
    plain = replace(request, slices=())
    ranked = to_user_rows(inputs, plain, needs=frozenset()).to_ranked_items()
    list_id = F.col(C.LIST_ID) if C.LIST_ID in ranked.columns else F.lit(C.ONE_LIST)
    return ranked.select(
        *(C.MODEL_ID, C.USER_ID, list_id.alias(C.LIST_ID), C.ITEM_ID, C.RANK, C.GAIN),
        (F.coalesce(C.GAIN, F.lit(0.0)) >= RELEVANT).alias("is_relevant"),
    )


def to_hit_ranks(ranked: DataFrame, model: str, baseline: str) -> DataFrame:
    """Put the ranks of the items that are relevant under either of two models side by side.

    A rank is NULL where a model did not recommend the item, and the best of several. Judgements may differ between the
    models where times attribute them: the gain is the larger one.

    Parameters
    ----------
    ranked : DataFrame
        Rows of :func:`to_ranked_items`.
    """
    sides = {C.BASELINE_RANK: baseline, C.RANK: model}
    ranks = (F.min(F.when(F.col(C.MODEL_ID) == name, F.col(C.RANK))).alias(side) for side, name in sides.items())
    items = ranked.where(F.col(C.MODEL_ID).isin(model, baseline)).groupBy(C.USER_ID, C.LIST_ID, C.ITEM_ID)
    found = items.agg(F.max(C.GAIN).alias(C.GAIN), *ranks)
    return found.where(F.col(C.GAIN) >= RELEVANT)


def to_exposures(inputs: InputFrames, *, request: Request) -> DataFrame | None:
    """Compute the measures of all lists together: rows of ``schemas.METRICS`` from the model on; None without any."""
    if not request.measures.exposures:
        return None
    parity, others, of_train, reads_catalogue, depth = exposure_parts(request)
    by_catalogue = ((others, inputs.catalogue if reads_catalogue else None), (of_train, inputs.train))
    models, frames = model_names(inputs, request), []
    if others or of_train:
        lists = to_user_rows(inputs, request, needs=frozenset()).to_item_lists(depth=depth)
        frames = [
            item_exposure.to_exposure_rows(lists, measures=some, models=models, catalogue=of, reported=request.reported)
            for some, of in by_catalogue
            if some
        ]
    if parity.measures:
        needs = frozenset(need for one in parity.measures for need in one.needs)
        counts = to_user_rows(inputs, request, needs=needs).to_parity(parity)
        rows = ParityRows(parity.measures, JackknifeRows(request.reported), models)
        frames.append(group_parity.to_parity_rows(counts, rows=rows))
    return reduce(DataFrame.unionByName, frames)


def to_agreement(inputs: InputFrames, *, request: Request, baseline: str, k: int, p: float) -> DataFrame:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, in the population or not.
    """
    asked, measures = agreement_request(request, baseline=baseline, k=k, p=p)
    scored = to_user_rows(inputs, asked).to_scored(has_partials=False)
    has_lists = not inputs.has_one_list
    return scored.where(F.col(IS_EVALUATED) & F.col(measures["overlap"].column).isNotNull()).select(
        *(C.MODEL_ID, C.USER_ID, *([C.LIST_ID] if has_lists else [])),
        *(F.col(measure.column).alias(name) for name, measure in measures.items()),
    )


def _means(users: DataFrame, request: Request, *, has_one_list: bool) -> DataFrame:
    """Make the rows of ``metrics`` that are means over users; of the moments that came with them, if there are any."""
    measures, reported = request.measures, request.reported
    if C.PARTIALS in users.columns:
        partials = users.select(F.inline(C.PARTIALS))
        return mean_metrics.to_metrics_of_partials(partials, measures=measures, reported=reported)
    weights = denominators(request, has_one_list=has_one_list)
    return mean_metrics.to_metrics(users, measures=measures, reported=reported, weights=weights, draws=request.draws)


def _users(scored: DataFrame, request: Request, *, has_one_list: bool) -> DataFrame:
    """One row per (model, user, k)."""
    if has_one_list:
        return scored
    asked = request.measures
    return mean_metrics.to_user_means(scored, measures=asked.columns, weights=asked.weights, unit=request.policies.unit)
