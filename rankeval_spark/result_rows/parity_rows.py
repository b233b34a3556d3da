"""Rows of ``metrics`` of the measures that compare popular and rare items, or a category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.measures import Rates, needs as N
from rankeval_spark.measures.item_groups import BY_POPULARITY
from rankeval_spark.result_rows.jackknife_rows import GROUP, N_GROUPS, JackknifeRows
from rankeval_spark.result_rows.metric_rows import to_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.measures import Measure

N_DISPARITY_SUMS: Final = 4
"""Items of the category that are recommended, and in the training data; then all items, likewise."""


def is_disparity(measure: Measure) -> bool:
    """Return True if a measure compares the shares of a category."""
    return N.CATEGORY_SHARES in measure.needs


def n_sums(measure: Measure) -> int:
    """Count the sums of a measure."""
    return N_DISPARITY_SUMS if is_disparity(measure) else 2 * len(BY_POPULARITY)


@dataclass(frozen=True)
class ParityRows:
    """What the workers need to turn sums of groups of users into rows of ``metrics``."""

    measures: tuple[Measure, ...]
    rows: JackknifeRows

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make the rows of each measure, batch by batch."""
        for batch in batches:
            ends = np.cumsum([n_sums(measure) for measure in self.measures])
            n_users, n_lists, sums = _by_group(batch["_entries"], width=int(ends[-1]))
            for measure, own in zip(self.measures, np.split(sums, ends[:-1], axis=2), strict=True):
                taken, possible = np.split(own.reshape(-1, own.shape[2]), 2, axis=1)
                rates = Rates(taken, possible)
                columns = self.rows.columns(
                    measure,
                    batch,
                    measure.entry.values(rates, measure.options).reshape(-1, 1 + N_GROUPS),
                    n_users=n_users.sum(axis=1),
                    n_lists=n_lists,
                    has_users=n_users > 0,
                )
                yield to_batch(columns)


def _by_group(entries: pa.ListArray, *, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay the entries out: users by (row, group), lists by row, sums by (row, everyone or all but one group, sum)."""
    flat = entries.flatten()
    row = np.repeat(np.arange(len(entries)), np.diff(entries.offsets.to_numpy()))
    group = flat.field(GROUP).to_numpy()
    n_users = np.zeros((len(entries), N_GROUPS), dtype=np.int64)
    n_users[row, group] = flat.field("n_users").to_numpy()
    n_lists = np.zeros(len(entries), dtype=np.int64)
    np.add.at(n_lists, row, flat.field(C.N_LISTS).to_numpy())
    of_group = np.zeros((len(entries), N_GROUPS, width))
    of_group[row, group] = flat.field("_sums").flatten().to_numpy().reshape(-1, width)
    everyone = of_group.sum(axis=1, keepdims=True)
    return n_users, n_lists, np.concatenate([everyone, everyone - of_group], axis=1)
