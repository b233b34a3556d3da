"""The table ``metrics``, means over users of every slice, and the models with the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregate_state import GROUP, State
from rankeval_spark.engine.aggregation import Summariser
from rankeval_spark.engine.planning import denominators, lists_column
from rankeval_spark.engine.slices import segment_columns
from rankeval_spark.in_process.keyed_rows import by_key
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.bootstrap_intervals import BootstrapIntervals
from rankeval_spark.result_rows.metric_rows import finisher_of

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.in_process.assembly import Usable
    from rankeval_spark.measures import Measure


def to_metrics(usable: Usable, users: Callable[[], pa.Table]) -> pa.Table:
    """Make the rows of ``schemas.METRICS``, from the model on, that are means over users.

    Parameters
    ----------
    users : callable
        Makes one row per (model, user, k), see :func:`users.to_users`; called where users have several lists.
    """
    request = usable.request
    if usable.tables.has_one_list:
        return of_partials(usable.user_rows.run(lambda job: job.partials), request)
    summariser = _summariser(request)
    return of_partials(list(summariser.summarise(iter(users().to_batches()))), request, summariser.state)


def of_partials(partials: list[pa.RecordBatch], request: Request, state: State | None = None) -> pa.Table:
    """Make the same rows of partial moments.

    Parameters
    ----------
    state : State, optional
        How moments and counts lie in them; where left out, every user has one list of a model.
    """
    measures = request.measures
    rows = finisher_of(
        measures,
        state or State.of(measures.columns, measures.weights),
        request.every_slice,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
    )
    found = rows.finish(partials if request.draws is None else _with_intervals(partials, request))
    return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


def _summariser(request: Request) -> Summariser:
    measures = request.measures
    lists = tuple(map(lists_column, measures.columns))
    weights = denominators(request, has_one_list=False)
    by = tuple(segment_columns(request.every_slice))
    return Summariser(measures.columns, dict(weights), by, measures.ks, request.draws, lists)


def _with_intervals(partials: list[pa.RecordBatch], request: Request) -> list[pa.RecordBatch]:
    """Replace the states of a bootstrap by the spread of each group's means."""
    if request.draws is None or not partials:
        return partials
    intervals = BootstrapIntervals(len(request.measures.columns), request.draws, request.confidence)
    groups = by_key(pa.Table.from_batches(partials), GROUP)
    merged = pa.concat_tables([intervals.merge(key, group) for key, group in groups])
    return list(merged.combine_chunks().to_batches())


def to_leaderboard(metrics: pa.Table, wanted: Sequence[Measure]) -> pa.Table:
    """Put the means of each model into one row, best first by the first measure, then by name.

    Parameters
    ----------
    metrics : pa.Table
        Rows of ``schemas.METRICS`` from the model on.
    """
    rows = metrics.filter(pc.equal(metrics[C.SLICE], C.ALL_USERS)).to_pylist()
    by_model: dict[str, dict[str, Any]] = {}
    labels = {(one.label, one.k): str(one) for one in wanted}
    for row in rows:
        own = by_model.setdefault(row[C.MODEL_ID], {C.MODEL_ID: row[C.MODEL_ID], "n_users": 0})
        own["n_users"] = max(own["n_users"], row["n_users"])
        if (row[C.MEASURE], row[C.K]) in labels:
            own[labels[row[C.MEASURE], row[C.K]]] = row[C.VALUE]
    sign = 1 if wanted[0].entry.definition.better == "lower" else -1

    def place(row: dict[str, Any]) -> tuple[bool, float, str]:
        value = row.get(str(wanted[0]))
        return value is None, 0.0 if value is None else sign * value, row[C.MODEL_ID]

    schema = pa.schema(
        {C.MODEL_ID: pa.string(), "n_users": pa.int64(), **dict.fromkeys(map(str, wanted), pa.float64())}.items()
    )
    return pa.Table.from_pylist(sorted(by_model.values(), key=place), schema)
