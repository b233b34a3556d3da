"""The table ``comparisons``: models against each other on the same users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.engine.batch.user_hashes import hashes_of
from rankeval_spark.engine.comparisons.comparison_state import GROUP
from rankeval_spark.engine.planning import denominators
from rankeval_spark.in_process.result_tables.published_users import users_in_parts
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.comparison_rows import comparison_finisher
from rankeval_spark.sums.grouping import applied, in_order_of

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.request import Request


def to_published_comparisons(user_metrics: ds.Dataset, request: Request) -> pa.Table:
    """Compare models by published rows of users: rows of ``schemas.COMPARISONS`` from the baseline on.

    The request has the slices and measures that are wanted.
    """
    rows = comparison_finisher(request, weights=denominators(request, has_one_list=False))
    parts = users_in_parts([user_metrics], request.measures, segments=request.segments, unit=request.policies.unit)
    partials: list[pa.RecordBatch] = []
    for (users,) in parts:
        hashed = users.append_column(USER_HASH, to_arrow(hashes_of(users[C.USER_ID])))
        by_user = in_order_of(hashed, (USER_HASH, C.USER_ID))
        partials += rows.aggregator.aggregate_rows(iter(by_user.to_batches()))
    schema = arrow_schema(schemas.COMPARISONS)
    finished = applied(partials, GROUP, rows.finish, schema)
    return pa.Table.from_batches(rows.adjust(iter(finished.to_batches())), schema)
