"""Aggregates of comparisons on their way between the workers, and sums that are kept a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow as pa

from rankeval_spark import columns as C

if TYPE_CHECKING:
    import numpy as np


GROUP: Final = (C.BASELINE_MODEL_ID, C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K)
PARTIAL: Final = pa.schema(
    [
        *zip(GROUP, (pa.string(), pa.string(), pa.int32(), pa.list_(pa.string()), pa.int32()), strict=True),
        ("models", pa.list_(pa.string())),  # of an aggregate of all models at once, without baseline and model
        ("kind", pa.string()),
        ("state", pa.binary()),
    ]
)
"""Rows of aggregates of one kind each."""

DIFFERENCES: Final = "differences"
RATIOS: Final = "ratios"
VALUES: Final = "values"
SIGNS: Final = "signs"
WEIGHTS: Final = "weights"
CENTRED: Final = "centred"
ORDERS: Final = "orders"
LISTED: Final = "listed"
"""Users with a list of each model, then those with one of both of two: all users, then those that are evaluated. For
all models at once, and no cutoff."""

LISTED_USERS: Final = "listed_users"  # the same of all users, where lists that judgements name are counted too
NO_CUTOFF: Final = -1  # cutoff of what is the same at all of them
MOST_HELD: Final = 1 << 28  # bytes of sums from which on they are handed on, to be merged elsewhere
_BATCH: Final = 1 << 24  # bytes of states from which on a batch is closed


class ComparisonKey(NamedTuple):
    """The models, slice and cutoff that an aggregate is about."""

    baseline: str | None
    model: str | None
    slice_index: int
    slice_values: tuple[str | None, ...]
    k: int
    models: tuple[str, ...] | None = None


Partial: TypeAlias = tuple[ComparisonKey, str, bytes]  # what it is about, its kind, and the aggregate


@dataclass
class HeldSums:
    """Sums of replicates, added up over the chunks of a part as long as they fit."""

    _sums: dict[tuple[ComparisonKey, str], np.ndarray] = field(default_factory=dict)
    _n_bytes: int = 0

    def add(self, key: ComparisonKey, kind: str, sums: np.ndarray) -> Iterator[Partial]:
        """Add to the sums held; yield all of them where they have become too large."""
        before = self._sums.get((key, kind))
        if before is None:
            self._sums[key, kind] = sums.copy()
            self._n_bytes += sums.nbytes
        else:
            before += sums
        if self._n_bytes > MOST_HELD:
            yield from self.release()

    def release(self) -> Iterator[Partial]:
        """Yield the sums held and start again from none."""
        held, self._sums, self._n_bytes = self._sums, {}, 0
        yield from ((key, kind, sums.tobytes()) for (key, kind), sums in held.items())


def to_batches(partials: Iterable[Partial]) -> Iterator[pa.RecordBatch]:
    """Convert aggregates to rows of :data:`PARTIAL`."""
    batch: list[Partial] = []
    n_bytes = 0
    for partial in partials:
        batch.append(partial)
        n_bytes += len(partial[2])
        if n_bytes > _BATCH:
            yield _to_batch(batch)
            batch, n_bytes = [], 0
    if batch:
        yield _to_batch(batch)


def _to_batch(partials: list[Partial]) -> pa.RecordBatch:
    rows = [(*key[:3], list(key.slice_values), *key[4:], kind, state) for key, kind, state in partials]
    arrays = map(pa.array, zip(*rows, strict=True), PARTIAL.types)
    return pa.RecordBatch.from_arrays(list(arrays), schema=PARTIAL)
