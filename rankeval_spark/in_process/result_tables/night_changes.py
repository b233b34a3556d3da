"""Each model on one night against itself on an earlier one, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import GROUP
from rankeval_spark.engine.aggregation.slices import PACKED, segment_columns
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch.joins import row_codes
from rankeval_spark.in_process.result_tables.published_users import users_in_parts
from rankeval_spark.result_rows.night_change_rows import EARLIER, SCHEMA, NightChanges
from rankeval_spark.sums.grouping import applied

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_KEY = (C.MODEL_ID, C.USER_ID, C.K)


def to_changes(now: ds.Dataset, before: ds.Dataset, changes: NightChanges) -> pa.Table:
    """Make the rows that ``to_changes`` makes on Spark, of datasets of published rows."""
    segments = list(dict.fromkeys(name for one in changes.reported.segments for name in one))
    names = [one for (one,) in segment_columns([[name] for name in segments])]
    read = users_in_parts([now, before], changes.measures, segments=segments)
    parts = ([_with_segments(night, names) for night in part] for part in read)
    columns = [*changes.measures.columns, *changes.denominators, *names]
    partials = [batch for part in parts for batch in changes.aggregate(_side_by_side(part, columns))]
    return applied(partials, GROUP, changes.finish, SCHEMA)


def _with_segments(night: pa.Table, names: Sequence[str]) -> pa.Table:
    """Give each packed segment a column of its own."""
    if not names:
        return night
    values, first = in_one_piece(night[PACKED]).flatten(), np.arange(night.num_rows) * len(names)
    for place, name in enumerate(names):
        night = night.append_column(name, pc.take(values, to_arrow(first + place)))
    return night


def _side_by_side(nights: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Join two nights by model, user and cutoff; what a night does not have is NULL."""
    keys = pa.concat_tables([night.select(_KEY) for night in nights])
    found, first, place = np.unique(row_codes(keys, _KEY), return_index=True, return_inverse=True)
    joined = pc.take(keys.select([C.MODEL_ID, C.K]), to_arrow(first))
    start = 0
    for night, prefix in zip(nights, ("", EARLIER), strict=True):
        own = np.full(len(found), -1)
        own[place[start : start + night.num_rows]] = np.arange(night.num_rows)
        start += night.num_rows
        rows = to_arrow(own, is_null=own < 0)
        for name in columns:
            joined = joined.append_column(f"{prefix}{name}", pc.take(night[name], rows))
    return joined
