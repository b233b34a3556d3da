"""From Arrow to numpy: the histograms that :mod:`exposure` collected, with everyone and without each group of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine.hashes import N_GROUPS
from rankeval_spark.measures.exposure import Exposure

if TYPE_CHECKING:
    import pyarrow as pa

EVERYONE: Final = -1
"""Means that no group is left out."""

PAIR_SUMS: Final = ("shared", "cosine")
"""Sums over the pairs of lists that hold an item; there where the lengths of lists are known."""

COUNTS: Final = ("n_items", "n_catalogued", "n_lists", "n_users", *PAIR_SUMS)
"""What an entry holds in addition to its number of lists, and the group that is left out."""


@dataclass(frozen=True)
class Histograms:
    """The rows of a batch as exposures: N_GROUPS + 1 a row, the first with everyone.

    Attributes
    ----------
    n_users : int64, shape (n_rows,)
        Users with a list.
    n_lists : int64, shape (n_rows,)
        Their lists.
    has_users : bool, shape (n_rows, N_GROUPS)
        Whether the group has any of them.
    """

    exposure: Exposure
    n_users: np.ndarray
    n_lists: np.ndarray
    has_users: np.ndarray

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> Histograms:
        """Build them from the columns ``_entries``, ``k`` and ``catalogue_size``."""
        n_rows, width = rows.num_rows, N_GROUPS + 1
        lengths = np.diff(rows["_entries"].offsets.to_numpy())
        entries = rows["_entries"].flatten()
        row = np.repeat(np.arange(n_rows), lengths)
        without = _doubles(entries, "without").astype(np.int64)
        of_everyone = without == EVERYONE
        # The entries of everyone are in each histogram; those of a group only where it is left out.
        repeats = np.where(of_everyone, width, 1)
        source = np.repeat(np.arange(len(row)), repeats)
        first = np.repeat(np.cumsum(repeats) - repeats, repeats)
        place = np.where(of_everyone[source], np.arange(len(source)) - first, without[source] + 1)
        group = row[source] * width + place
        columns = {name: _doubles(entries, name)[source] for name in ("times", *COUNTS)}
        n_lists, n_users = (
            np.bincount(group, weights=columns[name], minlength=n_rows * width).reshape(n_rows, width)
            for name in ("n_lists", "n_users")
        )
        exposure = Exposure.merged(
            group,
            columns["times"],
            columns["n_items"],
            columns["n_catalogued"],
            columns["shared"],
            columns["cosine"],
            n_lists=n_lists.ravel(),
            k=np.repeat(rows[C.K].to_numpy(), width),
            catalogue_size=np.repeat(_nan_for_null(rows["catalogue_size"]), width),
        )
        users, lists = (np.rint(counts).astype(np.int64) for counts in (n_users, n_lists))
        return cls(exposure, users[:, 0], lists[:, 0], users[:, 1:] < users[:, :1])


def _doubles(entries: pa.StructArray, name: str) -> np.ndarray:
    return _nan_for_null(entries.field(name))


def _nan_for_null(values: pa.Array) -> np.ndarray:
    array: np.ndarray = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return array
