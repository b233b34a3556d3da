"""Rows of lists and users: scored rows, the ranked items, and how much lists agree with a baseline's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.request import agreement_request
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.engine.scorer import COUNTED, RELEVANT
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.sums.grouping import sort_by_key

if TYPE_CHECKING:
    from rankeval_spark.in_process.assembly import UserRows
    from rankeval_spark.measures import MeasureSet


def user_rows(rows: UserRows) -> pa.Table:
    """Return the rows of the population: ``schemas.USER_METRICS``, starting with the model."""
    batches = rows.run(lambda job: job.user_rows)
    if batches:
        return pa.Table.from_batches(batches)
    types = {**dict.fromkeys(C.LIST_KEY, pa.string()), C.K: pa.int32(), C.SEGMENTS: pa.map_(pa.string(), pa.string())}
    types |= {**dict.fromkeys(COUNTED, pa.int32()), C.HAS_TIES: pa.bool_()}
    return pa.schema({**types, **dict.fromkeys(rows.job.outputs.measures.stored, pa.float64())}.items()).empty_table()


def to_user_values(user_metrics: pa.Table, measures: MeasureSet) -> pa.Table:
    """Build one row per requested (list, measure, k); ``value`` is NULL where it is undefined."""
    names, none = [*C.LIST_KEY, C.MEASURE, C.K, C.VALUE], user_metrics.slice(0, 0)
    keys = [none[name] for name in C.LIST_KEY]
    parts = [pa.Table.from_arrays([*keys, pa.nulls(0, pa.string()), none[C.K], pa.nulls(0, pa.float64())], names)]
    for measure in measures.per_list:
        rows_at_k = user_metrics.filter(pc.equal(user_metrics[C.K], measure.k))
        columns = [*(rows_at_k[name] for name in C.LIST_KEY), pa.repeat(measure.label, rows_at_k.num_rows)]
        parts.append(pa.Table.from_arrays([*columns, rows_at_k[C.K], rows_at_k[measure.column]], names))
    return sort_by_key(pa.concat_tables(parts), (*C.LIST_KEY, C.MEASURE, C.K))


def to_ranked_items(usable: Usable) -> pa.Table:
    """Rank the items of every list: model, user, list, item, rank, gain and whether the item is relevant."""
    ranked = usable.ranked_items(depth=0)
    if C.LIST_ID not in ranked.column_names:
        ranked = ranked.append_column(C.LIST_ID, pa.repeat(C.ONE_LIST, ranked.num_rows))
    is_relevant = to_arrow(to_numpy(ranked[C.GAIN], null=0.0) >= RELEVANT)
    names = [*C.LIST_KEY, C.ITEM_ID, C.RANK, C.GAIN]
    found = ranked.select(names).append_column("is_relevant", is_relevant)
    return sort_by_key(found, (*C.LIST_KEY, C.RANK, C.ITEM_ID))


def to_hit_ranks(
    ranked: pa.Table,  # rows of :func:`to_ranked_items`
    model: str,
    baseline: str,
) -> pa.Table:
    """Join the ranks of the items that are relevant under either of two models, see :meth:`Host.hit_ranks`."""
    shown = ranked.filter(pc.is_in(ranked[C.MODEL_ID], pa.array([model, baseline])))
    key, sides = [C.USER_ID, C.LIST_ID, C.ITEM_ID], {C.BASELINE_RANK: baseline, C.RANK: model}
    none = pa.scalar(None, shown.schema.field(C.RANK).type)
    ranks = {side: pc.if_else(pc.equal(shown[C.MODEL_ID], name), shown[C.RANK], none) for side, name in sides.items()}
    of_items = pa.Table.from_pydict({**{name: shown[name] for name in (*key, C.GAIN)}, **ranks})
    both = of_items.group_by(key).aggregate([(C.GAIN, "max"), *((side, "min") for side in sides)])
    both = both.rename_columns([*key, C.GAIN, *sides])
    return sort_by_key(both.filter(pc.greater_equal(both[C.GAIN], RELEVANT)), key)


def to_agreement(usable: Usable, *, baseline: str, k: int, p: float) -> pa.Table:
    """Compare each list's first k items with the baseline's, if it gave that user one: overlap, Jaccard and RBO."""
    request, measures = agreement_request(usable.request, baseline=baseline, k=k, p=p)
    scored = user_rows(Usable(usable.tables, request, usable.n_threads).user_rows)
    key = [name for name in C.LIST_KEY if name != C.LIST_ID or not usable.has_one_list]
    has_both = pc.is_valid(scored[measures["overlap"].column])
    rows = scored.filter(has_both).select([*key, *(measure.column for measure in measures.values())])
    return sort_by_key(rows.rename_columns([*key, *measures]), key)
