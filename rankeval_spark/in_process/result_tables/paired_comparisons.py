"""The table ``comparisons``: models against each other on the same users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.engine.batch.user_hashes import hashes_of
from rankeval_spark.engine.comparisons.comparison_state import GROUP
from rankeval_spark.engine.planning import denominators
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.in_process.result_tables.grouping import applied, in_order_of
from rankeval_spark.in_process.result_tables.published_users import users_in_parts
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.comparison_rows import comparison_finisher

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.comparisons.paired_differences import DifferenceAggregator
    from rankeval_spark.in_process.rows.assembly import Usable
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows


def to_comparisons(usable: Usable, users: Callable[[], pa.Table]) -> pa.Table:
    """Make the rows of ``schemas.COMPARISONS`` from the baseline on, of what the request compares.

    Parameters
    ----------
    users : callable
        As :func:`mean_metrics.to_metrics` takes it.
    """
    request = usable.request
    if not usable.has_one_list:
        return of_users([users()], request, has_one_list=False)
    rows = comparison_finisher(request, weights=denominators(request, has_one_list=True))
    aggregator = rows.aggregator
    return _finished(
        usable.user_rows.run(lambda job: lambda batches: job.differences(batches, aggregator=aggregator)), rows
    )


def of_users(users: Iterable[pa.Table], request: Request, *, has_one_list: bool) -> pa.Table:
    """Make the same rows of rows of users, some at a time, as of :func:`scored_rows.to_users`."""
    rows = comparison_finisher(request, weights=denominators(request, has_one_list=has_one_list))
    evaluated = (part.filter(part[IS_EVALUATED]) for part in users)
    return _finished([batch for part in evaluated for batch in _aggregated(part, rows.aggregator)], rows)


def to_published_comparisons(user_metrics: ds.Dataset, request: Request) -> pa.Table:
    """Make the same rows of published rows of users; the request has the slices and measures that are wanted."""
    rows = comparison_finisher(request, weights=denominators(request, has_one_list=False))
    parts = users_in_parts([user_metrics], request.measures, segments=request.segments, unit=request.policies.unit)
    hashed = (users.append_column(USER_HASH, to_arrow(hashes_of(users[C.USER_ID]))) for (users,) in parts)
    return _finished([batch for users in hashed for batch in _aggregated(users, rows.aggregator)], rows)


def _aggregated(users: pa.Table, aggregator: DifferenceAggregator) -> Iterator[pa.RecordBatch]:
    by_user = in_order_of(users, (USER_HASH, C.USER_ID))
    yield from aggregator.aggregate_rows(iter(by_user.to_batches()))


def _finished(partials: Sequence[pa.RecordBatch], rows: ComparisonRows) -> pa.Table:
    schema = arrow_schema(schemas.COMPARISONS)
    finished = applied(partials, GROUP, rows.finish, schema)
    return pa.Table.from_batches(rows.adjust(iter(finished.to_batches())), schema)
