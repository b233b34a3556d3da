"""From ranked items to the rows of ``metrics`` of the measures that compare popular and rare items, or a category.

They need little of a list: how many items of each group of popularity it holds that count, and how many there could be;
or how many items of a category. Those are added up per (slice, group of users); everyone's sums less those of a group
are the sums without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.engine.codes import starts_of_runs
from rankeval_spark.in_process.audience import Slice, to_audience, to_slices
from rankeval_spark.in_process.parity_counts import Counts, Offer, is_of_relevant, to_counts
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.jackknife_rows import GROUP, N_GROUPS, JackknifeRows
from rankeval_spark.result_rows.metric_rows import slice_names
from rankeval_spark.result_rows.parity_rows import ParityRows, is_disparity

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import FloatMatrix, IntVector


def to_rows(  # noqa: PLR0913 - what a row of metrics is made of
    ranked: pa.Table,
    *,
    measures: Sequence[Measure],
    offer: Offer,
    segments: pa.Table | None,
    absent: Mapping[str, str],
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
) -> pa.Table:
    """Make one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure).

    Over all users with a list. A slice in which no user has a list has no row.

    Parameters
    ----------
    ranked : pa.Table
        Rows of ``Job.ranked_items`` of all users, down to the largest cutoff at least.
    measures : sequence of Measure
        Of kind ``parity``; at least one.
    segments, absent, slices
        As :func:`audience.to_slices` takes them.

    Raises
    ------
    RefusedError
        If a user with a list has two rows of segments, or the categories of an item are read and it has two rows.
    """
    finisher = ParityRows(tuple(measures), JackknifeRows(slice_names(slices), min_slice_size, confidence))
    audience = to_audience(ranked)
    n_lists = np.bincount(audience.pair[to_numpy(ranked["_is_last"])], minlength=audience.n_pairs)
    users = _Users(np.flatnonzero(n_lists), n_lists[n_lists > 0])
    sums = _to_sums(to_counts(ranked, audience, offer, measures), measures, users)
    divided = to_slices(audience, segments=segments, absent=absent, slices=slices)
    found = (batch for one in divided for batch in finisher.finish([_to_batch(one, users, sums)]))
    return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


@dataclass(frozen=True)
class _Users:
    """The pairs of a model and a user that have lists.

    Attributes
    ----------
    pair, n_lists : int64, shape (n_users,)
        Pair, ascending, and its lists.
    """

    pair: IntVector
    n_lists: IntVector


def _to_sums(counts: Counts, measures: Sequence[Measure], users: _Users) -> FloatMatrix:
    """Put the counts of the users side by side: of each measure what is taken, then what that is taken of."""
    user = users.pair % (counts.n_users or 1)
    n_lists = users.n_lists[:, None]

    def of_measure(measure: Measure) -> list[np.ndarray]:
        if is_disparity(measure):
            (slots_of, slots), (own_of, own) = counts.slots(measure), counts.profiles(measure)
            return [np.column_stack([slots_of[users.pair], own_of[user], slots[users.pair], own[user]])]
        possible = counts.relevant(measure) if is_of_relevant(measure) else counts.available
        return [counts.taken(measure)[users.pair], possible[user] * n_lists]

    return np.concatenate([part for one in measures for part in of_measure(one)], axis=1).astype(np.float64)


def _to_batch(one: Slice, users: _Users, sums: FloatMatrix) -> pa.RecordBatch:
    """Add up: a row per cell with an entry for each of its groups of users: how many, their lists and sums."""
    bucket = one.bucket[users.pair]
    n_users, n_lists, *totals = (
        np.bincount(bucket, weights=weights, minlength=one.n_cells * N_GROUPS)
        for weights in (None, users.n_lists, *sums.T)
    )
    found = np.flatnonzero(n_users)
    cell, group = np.divmod(found, N_GROUPS)
    starts = np.flatnonzero(starts_of_runs(cell))
    n_sums = sums.shape[1]
    flat = np.column_stack(totals)[found].ravel()
    entries = pa.StructArray.from_arrays(
        [
            to_arrow(group.astype(np.int32)),
            to_arrow(n_users[found]),
            to_arrow(n_lists[found].astype(np.int64)),
            pa.ListArray.from_arrays(to_arrow(np.arange(len(found) + 1, dtype=np.int32) * n_sums), to_arrow(flat)),
        ],
        [GROUP, "n_users", C.N_LISTS, "_sums"],
    )
    ends = np.append(starts, len(found)).astype(np.int32)
    columns = {**one.key_columns(cell[starts]), "_entries": pa.ListArray.from_arrays(to_arrow(ends), entries)}
    return pa.RecordBatch.from_pydict(columns)
