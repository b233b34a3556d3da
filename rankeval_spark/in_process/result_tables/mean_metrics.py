"""The table ``metrics``: means over users of every slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import schemas
from rankeval_spark.engine.aggregation.aggregate_state import GROUP, AggregateLayout
from rankeval_spark.engine.aggregation.partial_aggregates import PartialAggregator
from rankeval_spark.engine.aggregation.slices import segment_columns
from rankeval_spark.engine.planning import denominators, lists_column
from rankeval_spark.in_process.result_tables.grouping import applied
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.bootstrap_intervals import WITH_SPREAD, BootstrapIntervals
from rankeval_spark.result_rows.metric_rows import metric_finisher

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.in_process.rows.assembly import Usable


def to_metrics(usable: Usable, users: Callable[[], pa.Table]) -> pa.Table:
    """Make the rows of ``schemas.METRICS``, from the model on, that are means over users.

    Parameters
    ----------
    users : callable
        Makes one row per (model, user, k), see :func:`scored_rows.to_users`; called where users have several lists.
    """
    request = usable.request
    if usable.has_one_list:
        return of_partials(usable.user_rows.run(lambda job: job.partials), request)
    return of_users([users()], request)


def of_users(users: Iterable[pa.Table], request: Request) -> pa.Table:
    """Make the same rows of rows of users, some at a time, as :func:`scored_rows.to_users` averages their lists."""
    summariser = _summariser(request)
    batches = (batch for part in users for batch in part.to_batches())
    return of_partials(list(summariser.summarise(batches)), request, summariser.state)


def of_partials(partials: list[pa.RecordBatch], request: Request, state: AggregateLayout | None = None) -> pa.Table:
    """Make the same rows of partial moments.

    Parameters
    ----------
    state : AggregateLayout, optional
        How moments and counts lie in them; where left out, every user has one list of a model.
    """
    measures = request.measures
    rows = metric_finisher(
        measures,
        state or AggregateLayout.of(measures.columns, measures.weights),
        request.reported,
    )
    found = rows.finish(partials if request.draws is None else _with_intervals(partials, request))
    return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


def _summariser(request: Request) -> PartialAggregator:
    measures = request.measures
    lists = tuple(map(lists_column, measures.columns))
    weights = denominators(request, has_one_list=False)
    by = tuple(segment_columns(request.every_slice))
    counts_values = bool(request.quantiles)
    return PartialAggregator(
        measures.columns, dict(weights), by, measures.ks, request.draws, lists, counts_values, measures.without_hits
    )


def _with_intervals(partials: list[pa.RecordBatch], request: Request) -> list[pa.RecordBatch]:
    """Replace the states of a bootstrap by the spread of each group's means."""
    if request.draws is None or not partials:
        return partials
    intervals = BootstrapIntervals(len(request.measures.columns), request.draws, request.confidence)
    return list(applied(partials, GROUP, intervals.merge, WITH_SPREAD).combine_chunks().to_batches())
