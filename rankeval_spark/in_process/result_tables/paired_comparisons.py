"""The table ``comparisons``: models against each other on the same users."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregation.slices import PACKED, USER_HASH
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.engine.batch.buckets import in_buckets
from rankeval_spark.engine.batch.user_hashes import hashes_of
from rankeval_spark.engine.comparisons.comparison_state import GROUP
from rankeval_spark.engine.planning import denominators
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.in_process.result_tables.published_users import packed_segments, users_in_parts
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.comparison_rows import comparison_finisher
from rankeval_spark.sums.grouping import applied, in_order_of

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.request import Request
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows


def to_published_comparisons(
    user_metrics: ds.Dataset, request: Request, *, unjudged: pa.Table, has_judged_lists: bool
) -> pa.Table:
    """Compare models by published rows of users: rows of ``schemas.COMPARISONS`` from the baseline on.

    Parameters
    ----------
    request : Request
        With the slices and measures that are wanted.
    unjudged : pa.Table
        Rows of ``metrics``, for the number of users that are not among the rows.
    has_judged_lists : bool
        Whether judgements name the list that they belong to.
    """
    weights = denominators(request, has_one_list=False)
    rows = comparison_finisher(request, weights=weights, has_judged_lists=has_judged_lists)
    parts = users_in_parts([user_metrics], request.measures, segments=request.segments, unit=request.policies.unit)
    partials = [*rows.unjudged(unjudged), *_counts(user_metrics, rows, request.segments)]
    for (users,) in parts:
        hashed = users.append_column(USER_HASH, to_arrow(hashes_of(users[C.USER_ID])))
        by_user = in_order_of(hashed, (USER_HASH, C.USER_ID))
        partials += rows.aggregator.aggregate_rows(iter(by_user.to_batches()))
    schema = arrow_schema(schemas.COMPARISONS)
    finished = applied(partials, GROUP, rows.finish, schema)
    return pa.Table.from_batches(rows.adjust(iter(finished.to_batches())), schema)


def _counts(user_metrics: ds.Dataset, rows: ComparisonRows, segments: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Count the owners of lists, some users at a time; published users are evaluated."""
    has_items = (pc.field(C.K) == rows.requested.ks[0]) & (pc.field(C.N_RECOMMENDED) > 0)
    names = list(dict.fromkeys((C.MODEL_ID, C.USER_ID, *rows.aggregator.owner)))

    def listed() -> Iterator[pa.RecordBatch]:
        for batch in user_metrics.filter(has_items).to_batches(columns=[*names, C.SEGMENTS]):
            found = batch.select(names).append_column(IS_EVALUATED, pa.array([True] * batch.num_rows))
            yield found.append_column(PACKED, packed_segments(batch[C.SEGMENTS], segments)) if segments else found

    for lists in in_buckets(listed(), most_rows=sys.maxsize):
        yield from rows.aggregator.count_lists(lists)
