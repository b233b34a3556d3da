"""From ranked items to the rows of ``metrics`` of the measures that are functions of how often each item is shown.

What such a measure reads is small: for each group of lists (model, slice, cutoff) how many items are in how many
lists, with everyone and without each of ``N_GROUPS`` groups of users. One pass over the ranked items counts them by
slice, item, group of users and cutoff; all that follows works on these counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.engine.codes import starts_of_runs
from rankeval_spark.engine.hashes import N_GROUPS
from rankeval_spark.in_process.audience import Slice, to_audience, to_slices
from rankeval_spark.in_process.counting import compact, counted, lengths_of, summed
from rankeval_spark.in_process.pair_sums import PairSums, pair_sums
from rankeval_spark.in_process.shown import Shown, Times, to_shown, to_times
from rankeval_spark.measures import needs
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.exposure_rows import ExposureRows
from rankeval_spark.result_rows.histograms import COUNTS
from rankeval_spark.result_rows.jackknife_rows import JackknifeRows
from rankeval_spark.result_rows.metric_rows import slice_names

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector

ENTRIES_AT_ONCE: Final = 1_000_000
"""Entries of histograms that are finished in one go; each is copied up to 21 times."""


def to_rows(  # noqa: PLR0913 - what a row of metrics is made of
    ranked: pa.Table,
    *,
    measures: Sequence[Measure],
    segments: pa.Table | None,
    catalogue: pa.Table | None,
    absent: Mapping[str, str],
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
) -> pa.Table:
    """Make one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure, k).

    Over all users with a list, judged or not. A slice in which no user has a list has no row. A list that keeps the
    ranks of the log counts at a cutoff where it has an item at a rank up to it.

    Parameters
    ----------
    ranked : pa.Table
        Rows of ``Job.ranked_items`` of all users, down to the largest cutoff at least.
    measures : sequence of Measure
        Of kind ``exposure``; at least one.
    segments, absent, slices
        As :func:`audience.to_slices` takes them.
    catalogue : pa.Table or None
        ``item_id`` of all items, each as often as it comes; None where no measure needs it.

    Raises
    ------
    RefusedError
        If a user with a list has two rows of segments.
    """
    ks = tuple(sorted({one.k for one in measures}, key=lambda k: k or np.inf))
    rows = JackknifeRows(slice_names(slices), min_slice_size, confidence)
    finishers = {k: ExposureRows(tuple(one for one in measures if one.k == k), rows) for k in ks}
    has_lengths = {one.k for one in measures if needs.LIST_LENGTHS in one.needs}
    audience = to_audience(ranked)
    shown = to_shown(ranked, audience.pair, ks=ks, has_lengths=has_lengths, catalogue=catalogue)
    found = (
        batch
        for one in to_slices(audience, segments=segments, absent=absent, slices=slices)
        for k, histograms in _to_histograms(shown, one)
        for part in _batches(histograms, one, k=k, catalogue_size=shown.catalogue_size)
        for batch in finishers[k].finish([part])
    )
    return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


class _Histograms(NamedTuple):
    """Entries, ascending by cell, group that is left out and number of lists; all of shape (n_entries,).

    Those of a group say by how much the histogram without it differs from everyone's.
    """

    cell: IntVector
    without: IntVector
    times: IntVector
    n_items: FloatVector
    n_catalogued: FloatVector
    n_lists: FloatVector
    n_users: FloatVector
    shared: FloatVector
    cosine: FloatVector


def _to_histograms(shown: Shown, one: Slice) -> Iterator[tuple[int, _Histograms]]:
    """Count the items that are in so many lists, at each cutoff."""
    times = to_times(shown, one)
    n_lists = _by_bucket(one, shown.list_pair, shown.list_band, n_bands=shown.n_bands)
    n_users = _by_bucket(one, *_first_bands(shown), n_bands=shown.n_bands)
    for band, k in enumerate(shown.ks):
        yield k, _histograms(shown, one, times.at(band), k=k, opened=(n_lists[..., band], n_users[..., band]))


def _first_bands(shown: Shown) -> tuple[IntVector, IntVector]:
    """Find each pair with a list, and the first of the bands of its lists."""
    pair, band = np.divmod(np.sort(shown.list_pair * shown.n_bands + shown.list_band), shown.n_bands)
    is_first = starts_of_runs(pair)
    return pair[is_first], band[is_first]


def _by_bucket(one: Slice, pair: IntVector, band: IntVector, *, n_bands: int) -> IntVector:
    """Count lists, or users, by cell, group of users and cutoff."""
    shape = (one.n_cells, N_GROUPS, n_bands)
    found = np.bincount(one.bucket[pair] * n_bands + band, minlength=one.n_cells * N_GROUPS * n_bands)
    return np.cumsum(found.reshape(shape), axis=2)


def _histograms(
    shown: Shown, one: Slice, of_group: Times, *, k: int, opened: tuple[IntVector, IntVector]
) -> _Histograms:
    """Make the entries at one cutoff: with everyone, and for each group that was shown an item, without that group."""
    starts = np.flatnonzero(starts_of_runs(of_group.holder))
    n_groups = lengths_of(starts, n_rows=len(of_group.holder))
    total = np.add.reduceat(of_group.times, starts)
    before = np.repeat(total, n_groups)
    rest = before - of_group.times
    cell, item = np.divmod(of_group.holder, shown.n_items or 1)
    without = cell * (N_GROUPS + 1) + of_group.group + 1
    remains = np.flatnonzero(rest)
    known = shown.is_known[item]
    weights = [
        np.repeat([1.0, -1.0, 1.0], [len(starts), len(rest), len(remains)]),
        np.concatenate([known[starts], -known, known[remains]]),
    ]
    if k in shown.lengths:
        pairs, left = _to_pairs(shown, one, of_group, k=k)
        weights += [
            np.concatenate([ours, -np.repeat(ours, n_groups), theirs[remains]])
            for ours, theirs in zip(pairs, left, strict=True)
        ]
    code, values = compact(np.concatenate([total, before, rest[remains]]))
    key = np.concatenate([cell[starts] * (N_GROUPS + 1), without, without[remains]]) * len(values) + code
    found, sums = summed(key, weights, n_keys=one.n_cells * (N_GROUPS + 1) * len(values))
    n_items, n_catalogued, shared, cosine = sums + [np.full(len(found), np.nan)] * (4 - len(sums))
    change, times = np.divmod(found, len(values) or 1)
    lists, users = (_at_first(counts, change) for counts in opened)
    cell, without = np.divmod(change, N_GROUPS + 1)
    return _Histograms(cell, without - 1, values[times], n_items, n_catalogued, lists, users, shared, cosine)


def _at_first(counts: IntVector, change: IntVector) -> FloatVector:
    """Put the lists of everyone, and less those of each group, into the first of their entries.

    Parameters
    ----------
    counts : int64, shape (n_cells, N_GROUPS)
    change : int64, shape (n_entries,)
        ``cell * (N_GROUPS + 1)``, and a number from 1 for the group that is left out.
    """
    changes = np.concatenate([counts.sum(axis=1, keepdims=True), -counts], axis=1).ravel()
    return np.where(starts_of_runs(change), changes[change], 0).astype(np.float64)


class _ByLength(NamedTuple):
    """In how many lists of each length an item is: sorted by holder and length.

    Attributes
    ----------
    holder : int64, shape (n,)
        Place of the holder among all.
    length, times : int64, shape (n,)
        Length of the lists, and how many they are.
    of_group : Times
        The same of each group of users; its ``holder`` is the place of the row.
    """

    holder: IntVector
    length: IntVector
    times: IntVector
    of_group: Times

    def without(self, group: int, is_shown: BoolVector) -> PairSums:
        """Sum over the pairs of lists of the other users, of some holders."""
        times = self.times.copy()
        own = self.of_group.group == group
        times[self.of_group.holder[own]] -= self.of_group.times[own]
        chosen = np.flatnonzero(is_shown[self.holder])
        return pair_sums(self.holder[chosen], self.length[chosen], times[chosen])


def _to_pairs(shown: Shown, one: Slice, of_group: Times, *, k: int) -> tuple[PairSums, PairSums]:
    """Sum over the pairs of lists that hold an item: of each holder, and without the group of each of ``of_group``."""
    by_length = _by_length(shown, one, k=k)
    holder = np.cumsum(starts_of_runs(of_group.holder)) - 1
    left = PairSums(*np.zeros((2, len(holder))))
    for group in range(N_GROUPS):
        places = np.flatnonzero(of_group.group == group)
        is_shown = np.zeros(len(holder), dtype=np.bool_)
        is_shown[holder[places]] = True
        left.shared[places], left.cosine[places] = by_length.without(group, is_shown)
    return pair_sums(by_length.holder, by_length.length, by_length.times), left


def _by_length(shown: Shown, one: Slice, *, k: int) -> _ByLength:
    within = np.flatnonzero(shown.band <= shown.ks.index(k))
    pair, item = shown.pair[within], shown.item[within]
    code, lengths = compact(shown.lengths[k][within])
    width = len(lengths) * N_GROUPS
    key = (one.cell[pair] * shown.n_items + item) * width + code * N_GROUPS + one.group[pair]
    found, count = counted(key, n_keys=one.n_cells * shown.n_items * width)
    part, group = np.divmod(found, N_GROUPS)
    is_first = starts_of_runs(part)
    holder, length = np.divmod(part[is_first], len(lengths) or 1)
    return _ByLength(
        np.cumsum(starts_of_runs(holder)) - 1,
        lengths[length],
        np.add.reduceat(count, np.flatnonzero(is_first)),
        Times(np.cumsum(is_first) - 1, group, count),
    )


def _batches(histograms: _Histograms, one: Slice, *, k: int, catalogue_size: float) -> Iterator[pa.RecordBatch]:
    """Make a row of what :class:`Histograms` reads of each cell, some at a time; at least one batch."""
    starts = np.flatnonzero(starts_of_runs(histograms.cell))
    ends = np.append(starts, len(histograms.cell))
    n_rows = len(starts)
    columns = {name: to_arrow(getattr(histograms, name)) for name in ("without", "times", *COUNTS)}
    entries = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    batch = pa.RecordBatch.from_pydict(
        {
            **one.key_columns(histograms.cell[starts]),
            C.K: to_arrow(np.full(n_rows, k, dtype=np.int32)),
            "catalogue_size": to_arrow(np.full(n_rows, catalogue_size)),
            "_entries": pa.ListArray.from_arrays(to_arrow(ends.astype(np.int32)), entries),
        }
    )
    at_once = max(1, ENTRIES_AT_ONCE * n_rows // max(len(histograms.cell), 1))
    for start in range(0, max(n_rows, 1), at_once):
        yield batch.slice(start, at_once)
