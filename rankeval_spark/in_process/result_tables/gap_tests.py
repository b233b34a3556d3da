"""Tests of the gaps between groups of users by a bootstrap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.result_rows.groups.gap_rows import is_compared
from rankeval_spark.result_rows.groups.gap_test_rows import (
    P_SCHEMA,
    ROW_SCHEMA,
    TESTED_SCHEMA,
    GapBootstrap,
    adjusted,
    gap_test_rows,
    gaps_of,
)
from rankeval_spark.sums.grouping import applied

if TYPE_CHECKING:
    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.request import Request


def to_gap_tests(users: pa.Table, metrics: pa.Table, request: Request, gap_request: GapTestRequest) -> pa.Table:
    """Test each gap between groups, one family.

    Parameters
    ----------
    users : pa.Table
        One row per (model, user, k), see :func:`scored_rows.to_users`.
    metrics : pa.Table
        Rows of ``schemas.METRICS`` from the model on, which say which groups there are.
    """
    of_groups = metrics.filter(pc.not_equal(metrics[C.SLICE], C.ALL_USERS))
    of_groups = of_groups.append_column("is_compared", to_arrow(is_compared(of_groups)))
    gaps = gaps_of([row for row in of_groups.to_pylist() if gap_request.has(row)])
    resampling = GapBootstrap.of(gaps, request, gap_request.draws)
    drawn = applied(list(resampling.draw(iter(users.to_batches()))), ["test"], resampling.merge, P_SCHEMA).to_pydict()
    p_of = dict(zip(drawn["test"], drawn["p_value"], strict=True))
    rows = [
        dict(zip(TESTED_SCHEMA.names, (*row[1:], p_of.get(test)), strict=True))
        for test, row in enumerate(gap_test_rows(gaps))
    ]
    tested = pa.Table.from_pylist(rows, TESTED_SCHEMA)
    found = adjusted(
        iter(tested.to_batches()),
        replicates=gap_request.draws.replicates,
        correction=gap_request.correction,
        alpha=1 - request.confidence,
    )
    return pa.Table.from_batches(found, ROW_SCHEMA)
