"""Rows of lists and users: scored rows, what is kept of them, and the ranked items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED, USER_HASH
from rankeval_spark.engine.aggregation.user_means import to_user_means as to_means_over_lists
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.user_hashes import hashes_of
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.engine.scoring.scorer import RELEVANT
from rankeval_spark.sums.grouping import in_order_of

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.in_process.rows.assembly import Usable
    from rankeval_spark.in_process.rows.user_rows import UserRows
    from rankeval_spark.measures import MeasureSet

COUNTED: Final = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS, C.HAS_TIES)
"""Columns between the key of a scored row and its measures."""


def to_scored(user_rows: UserRows) -> pa.Table:
    """Score every list at every cutoff, see :meth:`ListOutputs.to_scored_rows`."""
    batches = user_rows.run(lambda job: lambda rows: job.scored_rows(rows, has_partials=False))
    return pa.Table.from_batches(batches) if batches else _no_row(user_rows)


def keep_population(scored: pa.Table, request: Request) -> pa.Table:
    """Keep the rows of the population, in the columns of ``schemas.USER_METRICS`` from the list key on."""
    names = [*C.LIST_KEY, C.K, C.SEGMENTS, *COUNTED, *request.measures.stored]
    return scored.filter(scored[IS_EVALUATED]).select(names)


def to_users(scored: pa.Table, request: Request, *, has_one_list: bool) -> pa.Table:
    """Make one row per (model, user, k), with the columns that aggregates are made of.

    Segments are packed, see :func:`slices.unpacked`, and there is a hash of each user.
    """
    measures, unit = request.measures, request.policies.unit
    users = scored
    if not has_one_list:
        users = to_means_over_lists(scored, measures=measures.columns, weights=measures.weights, unit=unit)
    if request.segments:
        users = users.append_column(PACKED, _packed(users[C.SEGMENTS]))
    return users.append_column(USER_HASH, to_arrow(hashes_of(users[C.USER_ID])))


def to_user_values(user_metrics: pa.Table, measures: MeasureSet) -> pa.Table:
    """Make one row per requested (list, measure, k); ``value`` is NULL where it is undefined."""
    names, none = [*C.LIST_KEY, C.MEASURE, C.K, C.VALUE], user_metrics.slice(0, 0)
    keys = [none[name] for name in C.LIST_KEY]
    parts = [pa.Table.from_arrays([*keys, pa.nulls(0, pa.string()), none[C.K], pa.nulls(0, pa.float64())], names)]
    for one in measures.per_list:
        own = user_metrics.filter(pc.equal(user_metrics[C.K], one.k))
        label = pa.repeat(one.label, own.num_rows)
        parts.append(
            pa.Table.from_arrays([*(own[name] for name in C.LIST_KEY), label, own[C.K], own[one.column]], names)
        )
    return in_order_of(pa.concat_tables(parts), (*C.LIST_KEY, C.MEASURE, C.K))


def to_ranked_items(usable: Usable) -> pa.Table:
    """Rank the items of every list: model, user, list, item, rank, gain and whether the item is relevant."""
    ranked = usable.ranked_items(depth=0)
    if C.LIST_ID not in ranked.column_names:
        ranked = ranked.append_column(C.LIST_ID, pa.repeat(C.ONE_LIST, ranked.num_rows))
    is_relevant = to_arrow(to_numpy(ranked[C.GAIN], null=0.0) >= RELEVANT)
    names = [*C.LIST_KEY, C.ITEM_ID, C.RANK, C.GAIN]
    found = ranked.select(names).append_column("is_relevant", is_relevant)
    return in_order_of(found, (*C.LIST_KEY, C.RANK, C.ITEM_ID))


def to_hit_ranks(ranked: pa.Table, model: str, baseline: str) -> pa.Table:
    """Put the ranks of the items that are relevant under either of two models side by side.

    A rank is NULL where a model did not recommend the item, and the best of several. Judgements may differ between the
    models where times attribute them: the gain is the larger one.

    Parameters
    ----------
    ranked : pa.Table
        Rows of :func:`to_ranked_items`.
    """
    shown = ranked.filter(pc.is_in(ranked[C.MODEL_ID], pa.array([model, baseline])))
    key = [C.USER_ID, C.LIST_ID, C.ITEM_ID]
    sides = {C.BASELINE_RANK: baseline, C.RANK: model}
    none = pa.scalar(None, shown.schema.field(C.RANK).type)
    ranks = {side: pc.if_else(pc.equal(shown[C.MODEL_ID], name), shown[C.RANK], none) for side, name in sides.items()}
    of_items = {**{name: shown[name] for name in (*key, C.GAIN)}, **ranks}
    found = pa.Table.from_pydict(of_items).group_by(key)
    both = found.aggregate([(C.GAIN, "max"), *((side, "min") for side in sides)])
    both = both.rename_columns([*key, C.GAIN, *sides])
    return in_order_of(both.filter(pc.greater_equal(both[C.GAIN], RELEVANT)), key)


def _packed(segments: pa.ChunkedArray) -> pa.Array:
    """Take the values of the map of segments as a list; every row has the same names in the same order."""
    whole = in_one_piece(segments)
    return pa.ListArray.from_arrays(whole.offsets, whole.items)


def _no_row(user_rows: UserRows) -> pa.Table:
    """Return no row in the columns of scored rows."""
    names = {C.MODEL_ID: pa.string(), C.USER_ID: pa.string(), C.LIST_ID: pa.string(), C.K: pa.int32()}
    names |= {C.SEGMENTS: pa.map_(pa.string(), pa.string()), C.N_DUPLICATES: pa.int32(), "_n_listed": pa.int32()}
    names |= {**dict.fromkeys(COUNTED, pa.int32()), C.HAS_TIES: pa.bool_()}
    names |= dict.fromkeys(user_rows.job.outputs.measures.stored, pa.float64())
    return pa.schema({**names, IS_EVALUATED: pa.bool_()}.items()).empty_table()
