"""Models and their means over all users, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure


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
