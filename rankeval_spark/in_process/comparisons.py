"""Models against each other on the same users, and groups of users against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.request import agreement_request
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.engine.comparison_state import GROUP
from rankeval_spark.engine.hashes import hashes_of
from rankeval_spark.engine.planning import denominators
from rankeval_spark.engine.population import IS_EVALUATED
from rankeval_spark.engine.slices import USER_HASH, segment_columns
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.in_process.keyed_rows import by_key, in_order_of
from rankeval_spark.in_process.published_users import users_in_parts
from rankeval_spark.in_process.users import to_scored
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.comparison_rows import aggregator_of, finisher_of
from rankeval_spark.result_rows.gap_rows import is_compared
from rankeval_spark.result_rows.gap_significance import ROW_SCHEMA, TESTED_SCHEMA, Lots, adjusted, gaps_of, rows_of
from rankeval_spark.result_rows.metric_rows import slice_names

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.inference import Comparisons
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.differing import Aggregator
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows


def to_comparisons(usable: Usable, users: Callable[[], pa.Table], comparisons: Comparisons) -> pa.Table:
    """Make the rows of ``schemas.COMPARISONS`` from the baseline on.

    Parameters
    ----------
    users : callable
        As :func:`means.to_metrics` takes it.
    """
    request, has_one_list = usable.request, usable.tables.has_one_list
    rows = finisher_of(
        request.measures,
        request.every_slice,
        comparisons,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
        weights=denominators(request, has_one_list=has_one_list),
    )
    aggregator = aggregator_of(rows, request.every_slice)
    if has_one_list:
        partials = usable.user_rows.run(lambda job: lambda batches: job.differences(batches, aggregator=aggregator))
    else:
        table = users()
        partials = list(_aggregated(table.filter(table[IS_EVALUATED]), aggregator))
    return _finished(partials, rows)


def to_published_comparisons(user_metrics: ds.Dataset, request: Request, comparisons: Comparisons) -> pa.Table:
    """Make the same rows of published rows of users; the request has the slices and measures that are wanted."""
    measures, unit = request.measures, request.policies.unit
    rows = finisher_of(
        measures,
        request.every_slice,
        comparisons,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
        weights=denominators(request, has_one_list=False),
    )
    aggregator = aggregator_of(rows, request.every_slice)
    parts = users_in_parts(
        [user_metrics],
        measures=measures.columns,
        segments=request.segments,
        ks=measures.ks,
        weights=measures.weights,
        unit=unit,
    )
    hashed = (users.append_column(USER_HASH, to_arrow(hashes_of(users[C.USER_ID]))) for (users,) in parts)
    return _finished([batch for users in hashed for batch in _aggregated(users, aggregator)], rows)


def _aggregated(users: pa.Table, aggregator: Aggregator) -> Iterator[pa.RecordBatch]:
    by_user = in_order_of(users, (USER_HASH, C.USER_ID))
    yield from aggregator.aggregate_rows(iter(by_user.to_batches()))


def _finished(partials: Sequence[pa.RecordBatch], rows: ComparisonRows) -> pa.Table:
    schema = arrow_schema(schemas.COMPARISONS)
    if not partials:
        return schema.empty_table()
    groups = by_key(pa.Table.from_batches(partials), GROUP)
    finished = pa.concat_tables([schema.empty_table(), *(rows.finish(key, group) for key, group in groups)])
    return pa.Table.from_batches(rows.adjust(iter(finished.to_batches())), schema)


def to_agreement(usable: Usable, *, baseline: str, k: int, p: float) -> pa.Table:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, whoever is in the population.
    """
    request, measures = agreement_request(usable.request, baseline=baseline, k=k, p=p)
    scored = to_scored(Usable(usable.tables, request, usable.n_threads).user_rows)
    has_both = pc.and_(scored[IS_EVALUATED], pc.is_valid(scored[measures["overlap"].column]))
    key = [name for name in C.LIST_KEY if name != C.LIST_ID or not usable.tables.has_one_list]
    rows = scored.filter(has_both).select([*key, *(one.column for one in measures.values())])
    return in_order_of(rows.rename_columns([*key, *measures]), key)


def to_gap_tests(users: pa.Table, metrics: pa.Table, request: Request, wanted: GapTestRequest) -> pa.Table:
    """Test each gap between groups, one family.

    Parameters
    ----------
    users : pa.Table
        One row per (model, user, k), see :func:`users.to_users`.
    metrics : pa.Table
        Rows of ``schemas.METRICS`` from the model on, which say which groups there are.
    """
    of_groups = metrics.filter(pc.not_equal(metrics[C.SLICE], C.ALL_USERS))
    of_groups = of_groups.append_column("is_compared", to_arrow(is_compared(of_groups)))
    gaps = gaps_of([row for row in of_groups.to_pylist() if wanted.has(row)])
    measures = request.measures
    names = dict(zip(slice_names(request.slices), segment_columns(request.slices), strict=True))
    columns = dict(zip(measures.labels, measures.columns, strict=True))
    drawn = Lots(tuple(gaps), columns, names, measures.ks, wanted.draws)
    partials = list(drawn.draw(iter(users.to_batches())))
    p_of: dict[int, float | None] = {}
    if partials:
        for key, group in by_key(pa.Table.from_batches(partials), ["test"]):
            p_of[key[0].as_py()] = drawn.merge(key, group)["p_value"][0].as_py()
    rows = [
        dict(zip(TESTED_SCHEMA.names, (*row[1:], p_of.get(test)), strict=True))
        for test, row in enumerate(rows_of(gaps))
    ]
    tested = pa.Table.from_pylist(rows, TESTED_SCHEMA)
    found = adjusted(
        iter(tested.to_batches()),
        replicates=wanted.draws.replicates,
        correction=wanted.correction,
        alpha=1 - request.confidence,
    )
    return pa.Table.from_batches(found, ROW_SCHEMA)
