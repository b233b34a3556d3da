"""Models and their means over all users, best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C


def to_leaderboard(
    metrics: pa.Table,  # rows of `schemas.METRICS`
    wanted: Mapping[tuple[str, int], str],  # column of each label and cutoff, in order
    *,
    is_lower_better: bool = False,  # of the first measure
) -> pa.Table:
    """Build a row of the means of each model, best first by the first measure, then by name.

    The highest value is first where neither side is better.
    """
    rows = metrics.filter(pc.equal(metrics[C.SLICE], C.ALL_USERS)).to_pylist()
    by_model: dict[str, dict[str, Any]] = {}
    for row in rows:
        own = by_model.setdefault(row[C.MODEL_ID], {C.MODEL_ID: row[C.MODEL_ID], "n_users": 0})
        if (row[C.MEASURE], row[C.K]) in wanted:
            own["n_users"] = max(own["n_users"], row["n_users"])
            own[wanted[row[C.MEASURE], row[C.K]]] = row[C.VALUE]
    first, sign = next(iter(wanted.values())), 1 if is_lower_better else -1

    def place(row: dict[str, Any]) -> tuple[bool, float, str]:
        value = row.get(first)
        return value is None, 0.0 if value is None else sign * value, row[C.MODEL_ID]

    schema = pa.schema(
        {C.MODEL_ID: pa.string(), "n_users": pa.int64(), **dict.fromkeys(wanted.values(), pa.float64())}.items()
    )
    return pa.Table.from_pylist(sorted(by_model.values(), key=place), schema)
