"""How much the lists of each model agree with those of a baseline, user by user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.request import agreement_request
from rankeval_spark.in_process.result_tables.scored_rows import user_rows
from rankeval_spark.in_process.rows.assembly import Usable
from rankeval_spark.sums.grouping import in_order_of

if TYPE_CHECKING:
    import pyarrow as pa


def to_agreement(usable: Usable, *, baseline: str, k: int, p: float) -> pa.Table:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, in the population or not.
    """
    request, measures = agreement_request(usable.request, baseline=baseline, k=k, p=p)
    scored = user_rows(Usable(usable.tables, request, usable.n_threads).user_rows)
    key = [name for name in C.LIST_KEY if name != C.LIST_ID or not usable.has_one_list]
    has_both = pc.is_valid(scored[measures["overlap"].column])
    rows = scored.filter(has_both).select([*key, *(one.column for one in measures.values())])
    return in_order_of(rows.rename_columns([*key, *measures]), key)
