"""Histograms of how many items are in how many lists: with everyone, and without each group of users.

Measures of exposure read no more than that, for each group of lists (model, slice, cutoff). An entry of a group of
users says by how much the histogram without it differs from everyone's, so that an item that few users were shown adds
a few entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import to_numpy
from rankeval_spark.engine.buckets import N_GROUPS
from rankeval_spark.measures.arrays import is_run_start
from rankeval_spark.measures.exposure import Exposure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


_ROOM: Final = 4  # cells of a dense count for each key, beyond which sorting takes less time and memory

_MOST_REPEATS: Final = 4  # times that keys are written out to be sorted, on average

_SMALL: Final = 1 << 20  # cells that are always counted densely: 8 MB


def count_keys(key: IntVector, *, n_keys: int, times: IntVector | None = None) -> tuple[IntVector, IntVector]:
    """Return the keys, from 0 to ``n_keys - 1``, that occur, ascending, and how often each does.

    ``times``: how often each of them counts, at least once.

    >>> count_keys(np.array([3, 1, 3]), n_keys=5)
    (array([1, 3]), array([1, 2]))
    >>> count_keys(np.array([3, 1, 3]), n_keys=5, times=np.array([2, 5, 1]))
    (array([1, 3]), array([5, 3]))
    """
    if times is not None and len(key) and times.max() > 1:
        if _is_dense(key, n_keys) or times.sum() > _MOST_REPEATS * len(key):
            found, (total,) = sum_by_key(key, [times.astype(np.float64)], n_keys=n_keys)
            return found, total.astype(np.int64)
        key = np.repeat(key, times)  # to sort whole numbers takes a tenth of the time of finding their order
    if _is_dense(key, n_keys):
        cells = np.bincount(key, minlength=n_keys)
        found = np.flatnonzero(cells)
        return found, cells[found]
    ordered = np.sort(key)
    starts = np.flatnonzero(is_run_start(ordered))
    return ordered[starts], np.diff(starts, append=len(ordered))


def sum_by_key(key: IntVector, weights: Sequence[FloatVector], *, n_keys: int) -> tuple[IntVector, list[FloatVector]]:
    """Return the keys, from 0 to ``n_keys - 1``, that occur, ascending, and the sums of their weights, maybe 0.

    >>> sum_by_key(np.array([3, 1, 3]), [np.array([1.0, 2.0, -1.0])], n_keys=5)
    (array([1, 3]), [array([2., 0.])])
    """
    if _is_dense(key, n_keys):
        found = np.flatnonzero(np.bincount(key, minlength=n_keys))
        cells = (np.bincount(key, weights=weight, minlength=n_keys) for weight in weights)
        return found, [cell[found].astype(np.float64, copy=False) for cell in cells]
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(is_run_start(ordered))
    return ordered[starts], [np.add.reduceat(weight[order], starts) for weight in weights]


def _is_dense(key: IntVector, n_keys: int) -> bool:
    """Return True if counting in an array of all keys is cheaper than sorting."""
    return n_keys <= max(_ROOM * len(key), _SMALL)


def renumber(numbers: IntVector) -> tuple[IntVector, IntVector]:
    """Return the place of each whole number among the distinct ones, and these, ascending.

    Numbers are 0 or more; memory grows with the largest.

    >>> renumber(np.array([7, 2, 7]))
    (array([1, 0, 1]), array([2, 7]))
    """
    occurs = np.zeros(numbers.max(initial=-1) + 1, dtype=np.bool_)
    occurs[numbers] = True
    return (np.cumsum(occurs) - 1)[numbers], np.flatnonzero(occurs)


def sum_over_pairs(
    holder: IntVector,  # (n,), whose lists they are, ascending
    length: IntVector,  # (n,), length of the lists, ascending within the holder
    times: IntVector,  # (n,), lists of that length; may be 0
) -> np.ndarray:
    """Sum over the ordered pairs of lists that hold the same item: shape (2, n_holders).

    Sums of 1 / the length of the shorter list, and of 1 / the root of the product of both lengths.

    A list has the shorter length of every pair with a later one, and the root of a product is that of each factor.
    Nothing is subtracted: an item in one list adds exactly 0.

    Two lists of length 1 and one of length 4: 2 / 1 + 4 / 1, and 2 / 1 + 4 / 2.

    >>> sum_over_pairs(np.array([0, 0]), np.array([1, 4]), np.array([2, 1]))
    array([[6.],
           [4.]])
    """
    starts = np.flatnonzero(is_run_start(holder))
    n_lengths = np.diff(starts, append=len(holder))
    place = np.arange(len(holder)) - np.repeat(starts, n_lengths)
    upto = np.cumsum(times)
    later = np.repeat(upto[starts + n_lengths - 1], n_lengths) - upto
    of_one_length = times * (times - 1) / length
    roots = times / np.sqrt(length)
    shared = of_one_length + 2 * later * times / length
    cosine = of_one_length + 2 * roots * _prefix_sums_in_runs(roots, place)
    return np.add.reduceat([shared, cosine], starts, axis=1)


def _prefix_sums_in_runs(values: FloatVector, place: IntVector) -> FloatVector:
    """Return exclusive prefix sums within each run, by doubling: a difference of sums over all runs would be inexact.

    ``place`` is that of each value in its run, from 0.
    """
    sums = _shift_in_runs(values, place, by=1)
    step = 1
    while step < place.max(initial=0):
        sums = sums + _shift_in_runs(sums, place, by=step)
        step *= 2
    return sums


def _shift_in_runs(values: FloatVector, place: IntVector, *, by: int) -> FloatVector:
    """Move values down by some places, 0 where they would come from another run."""
    moved = np.zeros(len(values))
    moved[by:] = values[: len(values) - by]
    moved[place < by] = 0
    return moved


EVERYONE: Final = -1  # no group is left out

COUNTS: Final = ("n_items", "n_catalogued", "n_lists", "n_users", "shared", "cosine")
"""Numbers of an entry in addition to its number of lists, and the group that is left out."""


class ShownCounts(NamedTuple):
    """Numbers of lists that hold an item, by user group; a holder is an item in a group of lists."""

    holder: IntVector  # (n,), ascending
    group: IntVector  # (n,)
    times: IntVector  # (n,), lists of these users that hold the item; above 0


class LengthCounts(NamedTuple):
    """Numbers of lists of each length that hold an item, sorted by holder and length."""

    holder: IntVector  # (n,), place of the holder among all
    length: IntVector  # (n,), of the lists
    times: IntVector  # (n,), lists of this length
    of_group: ShownCounts  # of each group of users; its `holder` is the place of the row

    @classmethod
    def from_lists(cls, holder: IntVector, length: IntVector, group: IntVector, times: IntVector) -> LengthCounts:
        """Count lists by holder, length and group of users; holders are places or other whole numbers."""
        code, lengths = renumber(length)
        width = len(lengths) * N_GROUPS
        key, n_keys = holder * width + code * N_GROUPS + group, (int(holder.max(initial=-1)) + 1) * width
        found, count = count_keys(key, n_keys=n_keys, times=times)
        part, group = np.divmod(found, N_GROUPS)
        is_first = is_run_start(part)
        holder, place = np.divmod(part[is_first], len(lengths) or 1)
        return cls(
            np.cumsum(is_run_start(holder)) - 1,
            lengths[place],
            np.add.reduceat(count, np.flatnonzero(is_first)),
            ShownCounts(np.cumsum(is_first) - 1, group, count),
        )

    def without(self, group: int, is_shown: BoolVector) -> np.ndarray:
        """Sum over the pairs of lists of the other users, for some holders."""
        times = self.times.copy()
        is_of_group = self.of_group.group == group
        times[self.of_group.holder[is_of_group]] -= self.of_group.times[is_of_group]
        chosen = np.flatnonzero(is_shown[self.holder])
        return sum_over_pairs(self.holder[chosen], self.length[chosen], times[chosen])


class Entries(NamedTuple):
    """Entries of histograms, ascending by cell, left-out group and number of lists; all (n_entries,).

    A cell is a model and a combination of values of a slice.
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


def to_entries(
    shown: ShownCounts,
    *,
    cell: IntVector,  # (n_holders,), cell of each holder
    is_known: FloatVector,  # (n_holders,), 1 where the catalogue has the item; NaN without a catalogue
    n_cells: int,
    by_length: LengthCounts | None = None,  # where lengths of lists are read
) -> Entries:
    """Build the entries of items: with everyone, and for each group that was shown an item, without that group.

    Three parts are added up by cell, group and number of lists: the items of everyone; less, for each group, the items
    that it was shown; and these again by the lists that show them without the group, if any do.
    """
    starts = np.flatnonzero(is_run_start(shown.holder))
    n_groups = np.diff(starts, append=len(shown.holder))
    total = np.add.reduceat(shown.times, starts)  # (n_holders,) lists of everyone
    before = np.repeat(total, n_groups)  # (n_shown,) the same for each group of a holder
    rest = before - shown.times  # (n_shown,) lists without those of the group
    without = np.repeat(cell, n_groups) * (N_GROUPS + 1) + shown.group + 1
    remains = np.flatnonzero(rest)
    known = np.repeat(is_known, n_groups)
    weights = [  # by item, then those that the catalogue has
        np.repeat([1.0, -1.0, 1.0], [len(starts), len(rest), len(remains)]),
        np.concatenate([is_known, -known, known[remains]]),
    ]
    if by_length is not None:
        pairs, left = _pair_sums_without_groups(shown, by_length)
        weights += [
            np.concatenate([pair_total, -np.repeat(pair_total, n_groups), pair_total_without[remains]])
            for pair_total, pair_total_without in zip(pairs, left, strict=True)
        ]
    code, values = renumber(np.concatenate([total, before, rest[remains]]))
    key = np.concatenate([cell * (N_GROUPS + 1), without, without[remains]]) * len(values) + code
    found, sums = sum_by_key(key, weights, n_keys=n_cells * (N_GROUPS + 1) * len(values))
    n_items, n_catalogued, shared, cosine = sums + [np.full(len(found), np.nan)] * (4 - len(sums))
    change, place = np.divmod(found, len(values) or 1)
    of_cell, group = np.divmod(change, N_GROUPS + 1)
    no_list = np.zeros(len(found))
    return Entries(of_cell, group - 1, values[place], n_items, n_catalogued, no_list, no_list, shared, cosine)


def list_entries(
    n_lists: IntVector,  # (n_cells, N_GROUPS)
    n_users: IntVector,  # (n_cells, N_GROUPS), users with a list
) -> Entries:
    """Build the entries that count lists and users and add no item: for everyone, and minus each group's."""
    lists, users = (np.concatenate([each.sum(axis=1, keepdims=True), -each], axis=1) for each in (n_lists, n_users))
    cell, place = np.nonzero(lists)
    once, nothing = np.ones(len(cell), dtype=np.int64), np.zeros(len(cell))
    of_lists, of_users = (each[cell, place].astype(np.float64) for each in (lists, users))
    return Entries(cell, place - 1, once, nothing, nothing, of_lists, of_users, nothing, nothing)


def _pair_sums_without_groups(shown: ShownCounts, by_length: LengthCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return :func:`sum_over_pairs` of each holder, (2, n_holders), and without the group of each row: (2, n_shown)."""
    holder = np.cumsum(is_run_start(shown.holder)) - 1
    left = np.zeros((2, len(holder)))
    for group in range(N_GROUPS):
        places = np.flatnonzero(shown.group == group)
        is_shown = np.zeros(len(holder), dtype=np.bool_)
        is_shown[holder[places]] = True
        left[:, places] = by_length.without(group, is_shown)
    return sum_over_pairs(by_length.holder, by_length.length, by_length.times), left


def to_exposures(
    rows: pa.RecordBatch,  # a row for each group of lists, with `k`
    entries: pa.Table,  # may come in parts
    row: IntVector,  # (n_entries,), row of each entry
    catalogue_size: float,
) -> tuple[Exposure, Exposure, IntVector, IntVector]:
    """Build exposures from entries: N_GROUPS + 1 of each row, the first with everyone; and those with everyone alone.

    With them the users with a list, by group: shape (n_rows, N_GROUPS); and the lists of all users: (n_rows,).
    """
    n_rows, width = rows.num_rows, N_GROUPS + 1
    without = to_numpy(entries["without"])
    of_everyone = without == EVERYONE
    # The entries of everyone are in each histogram; those of a group only where it is left out.
    repeats = np.where(of_everyone, width, 1)
    source = np.repeat(np.arange(len(row)), repeats)
    first = np.repeat(np.cumsum(repeats) - repeats, repeats)
    place = np.where(of_everyone[source], np.arange(len(source)) - first, without[source] + 1)
    group = row[source] * width + place
    columns = {name: to_numpy(entries[name]).astype(np.float64)[source] for name in ("times", *COUNTS)}
    n_lists, n_users = (
        np.bincount(group, weights=columns[name], minlength=n_rows * width).reshape(n_rows, width)
        for name in ("n_lists", "n_users")
    )
    of_entry = ("times", "n_items", "n_catalogued", "shared", "cosine")
    found = Exposure(
        group=group,
        **{name: columns[name] for name in of_entry},
        n_lists=n_lists.ravel().astype(np.float64),
        k=np.repeat(to_numpy(rows[C.K]), width).astype(np.int64),
        catalogue_size=np.full(n_rows * width, catalogue_size),
    ).merged()
    chosen = found.group % width == 0
    everyone = Exposure(
        group=found.group[chosen] // width,
        **{name: getattr(found, name)[chosen] for name in of_entry},
        **{name: getattr(found, name)[::width] for name in ("n_lists", "k", "catalogue_size")},
    )
    users, lists = (np.rint(counts).astype(np.int64) for counts in (n_users, n_lists))
    return found, everyone, users[:, :1] - users[:, 1:], lists[:, 0]
