"""From scored rows to the table ``metrics``: a mean, its health counts and its interval for every slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation import aggregate_state
from rankeval_spark.engine.aggregation.aggregate_state import AggregateLayout
from rankeval_spark.engine.aggregation.partial_aggregates import PartialAggregator
from rankeval_spark.engine.aggregation.slices import segment_columns
from rankeval_spark.engine.aggregation.user_means import lists_column
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.spark.result_tables import partial_aggregates

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.statistics.resampling.replicate_sums import Draws

NO_WEIGHTS: Mapping[str, str] = MappingProxyType({})


def to_user_means(
    scored: DataFrame, *, measures: Sequence[str], weights: Mapping[str, str] = NO_WEIGHTS, unit: Unit = "user"
) -> DataFrame:
    """Average the lists of each user: one row per (model, user, k). A list where a measure is NULL does not count.

    Of a measure with ``weights``, its column of denominators in the scored rows, numerators and denominators are
    averaged; with the unit ``list`` they are summed. How many lists count is said in the column :func:`lists_column` of
    each measure, NULL where none does.
    """
    put_together = F.sum if unit == "list" else F.avg
    facts = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)
    return scored.groupBy(C.MODEL_ID, C.USER_ID, C.K).agg(
        F.first(C.SEGMENTS).alias(C.SEGMENTS),
        F.bool_or(IS_EVALUATED).alias(IS_EVALUATED),
        *(F.max(name).alias(name) for name in facts),
        F.avg(F.col(C.HAS_TIES).cast("double")).alias(C.HAS_TIES),
        *(_over_lists(name, weights.get(name)).alias(name) for name in measures),
        *(put_together(weight).alias(weight) for weight in weights.values()),
        *(_n_lists(name).alias(lists_column(name)) for name in measures),
    )


def _n_lists(name: str) -> Column:
    return F.sum(F.when(F.col(name).isNotNull(), 1.0))


def _over_lists(name: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(name)
    return F.when(F.avg(weight) > 0, F.avg(F.col(name) * F.col(weight)) / F.avg(weight)).otherwise(F.avg(name))


def to_metrics(
    users: DataFrame,
    *,
    measures: MeasureSet,
    reported: ReportedSlices,
    weights: Mapping[str, str] | None = None,
    draws: Draws | None = None,
) -> DataFrame:
    """Make one row per (model, slice, slice values, measure, k) in the columns of ``schemas.METRICS`` from there on.

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k), as :func:`to_user_means` makes them or, where every user has one list, the scored
        rows.
    reported : ReportedSlices
        The slices; those that are small are marked ``is_small``.
    weights : mapping, optional
        As :func:`planning.denominators` gives them; those of the measures where left out.
    draws : Draws, optional
        Of a bootstrap, for standard errors and intervals; those of the moments where left out.
    """
    weights = dict(measures.weights if weights is None else weights)
    lists = tuple(name for name in map(lists_column, measures.columns) if name in users.columns)
    by = tuple(segment_columns(reported.segments))
    counts_values = bool(reported.quantiles)
    aggregator = PartialAggregator(
        measures.columns, weights, by, measures.ks, draws, lists, counts_values, measures.without_hits
    )
    partials = partial_aggregates.to_partials(users, aggregator, slices=reported.segments)
    return to_metrics_of_partials(partials, measures=measures, reported=reported, state=aggregator.state, draws=draws)


def to_metrics_of_partials(
    partials: DataFrame,
    *,
    measures: MeasureSet,
    reported: ReportedSlices,
    state: AggregateLayout | None = None,
    draws: Draws | None = None,
) -> DataFrame:
    """Make the same rows of partial moments, wherever they come from.

    Parameters
    ----------
    partials : DataFrame
        Rows of ``aggregate_state.PARTIAL``, of a bootstrap those of :data:`bootstrap_sums.WITH_STATES`.
    state : AggregateLayout, optional
        How moments and counts lie in them; where left out, every user has one list of a model.
    draws : Draws, optional
        Of the bootstrap.
    """
    if draws is None:
        together = partials.repartition(*aggregate_state.GROUP)
    else:
        n_measures = len(measures.columns)
        together = partial_aggregates.with_intervals(
            partials, n_measures=n_measures, draws=draws, level=reported.confidence
        )
    layout = state or AggregateLayout.of(measures.columns, measures.weights)
    rows = metric_rows.metric_finisher(measures, layout, reported)
    return together.mapInArrow(rows.finish, metric_rows.ROW_TYPE)
