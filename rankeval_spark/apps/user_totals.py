"""Sums over published rows of users, on the host that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.hosts import is_of_spark
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.sums.published import NIGHT
from rankeval_spark.sums.sums import finished

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.sums.published import UserTotals


def totals_of_users(nights: Sequence[Any], totals: UserTotals) -> dict[str, pa.Table]:
    """Add up the users of published nights: rows of ``schemas.USER_METRICS`` as ``Results.scan`` returns them."""
    if is_of_spark(nights[0]):
        from rankeval_spark.spark import plans  # noqa: PLC0415 - imports pyspark

        return plans.to_published_users(nights, totals)
    wanted = pc.field(C.K).isin(to_arrow(np.array(totals.measures.ks, dtype=np.int32)))

    def batches() -> Iterator[pa.RecordBatch]:
        for place, night in enumerate(nights):
            for batch in night.filter(wanted).to_batches(columns=totals.columns):
                yield batch.append_column(NIGHT, to_arrow(np.full(batch.num_rows, place, dtype=np.int32)))

    return finished(totals.sums, chain(totals.known, totals.add(batches())))
