"""Published rows of users on their way to aggregates: some users at a time, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.aggregation.user_means import FACTS, to_user_means
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.buckets import in_buckets
from rankeval_spark.engine.scoring.population import IS_EVALUATED

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.policies import Unit
    from rankeval_spark.measures import MeasureSet

_PLACE: Final = "_place"
_READ: Final = (C.MODEL_ID, C.USER_ID, C.K, *FACTS, C.HAS_TIES)


def users_in_parts(
    scans: Sequence[ds.Dataset], measures: MeasureSet, *, segments: Sequence[str], unit: Unit = "user"
) -> Iterator[list[pa.Table]]:
    """Read some users of all scans at a time: one row per (model, user, k), with their lists averaged.

    Parameters
    ----------
    scans : sequence of pyarrow.dataset.Dataset
        Rows of ``schemas.USER_METRICS``, of one night each.
    measures : MeasureSet
        Measures and cutoffs that are wanted.
    segments : sequence of str
        Names of the segments that are wanted, packed as ``slices.unpacked`` takes them.
    unit : {"user", "list"}
        As :func:`user_means.to_user_means` takes it.

    Yields
    ------
    list of pa.Table
        A table for each scan, all of the same users.
    """
    stored = (*measures.columns, *measures.weights.values())
    read = partial(_batches, stored=stored, segments=segments, ks=measures.ks)
    batches = (batch for place, scan in enumerate(scans) for batch in read(scan, place))
    for part in in_buckets(batches, most_rows=sys.maxsize):
        place = to_numpy(part[_PLACE])
        yield [
            _to_users(part.filter(to_arrow(place == one)), measures, unit, has_segments=bool(segments))
            for one in range(len(scans))
        ]


def _batches(
    scan: ds.Dataset, place: int, *, stored: Sequence[str], segments: Sequence[str], ks: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    names = [*_READ, *stored]
    wanted = pc.field(C.K).isin(to_arrow(np.array(ks, dtype=np.int32)))
    for batch in scan.filter(wanted).to_batches(columns=[*names, *([C.SEGMENTS] if segments else [])]):
        columns = [batch[name] for name in names]
        packed = packed_segments(batch[C.SEGMENTS], segments) if segments else pa.nulls(batch.num_rows)
        of_scan = to_arrow(np.full(batch.num_rows, place, dtype=np.int8))
        yield pa.RecordBatch.from_arrays([*columns, packed, of_scan], [*names, C.SEGMENTS, _PLACE])


def packed_segments(segments: pa.Array, names: Sequence[str]) -> pa.ListArray:
    """Give the values of some segments as a list a row; NULL where a row's map does not have the segment."""
    n_rows, n_names = len(segments), len(names)
    found = [in_one_piece(pc.map_lookup(segments, key, "first")) for key in to_texts(names)]
    # Value of row i under name j is at j * n_rows + i of all values; a list has those of one row.
    place = np.arange(n_rows)[:, None] + np.arange(n_names)[None, :] * n_rows
    values = pc.take(pa.concat_arrays(found), to_arrow(place.ravel()))
    return pa.ListArray.from_arrays(to_arrow(np.arange(n_rows + 1, dtype=np.int32) * n_names), values)


def _to_users(rows: pa.Table, measures: MeasureSet, unit: Unit, *, has_segments: bool) -> pa.Table:
    """Average the lists of each user; published users belong to the population."""
    evaluated = rows.append_column(IS_EVALUATED, to_arrow(np.ones(rows.num_rows, dtype=np.bool_)))
    users = to_user_means(evaluated, measures=measures.columns, weights=measures.weights, unit=unit)
    if not has_segments:
        return users.drop_columns(C.SEGMENTS)
    return users.rename_columns([PACKED if name == C.SEGMENTS else name for name in users.column_names])
