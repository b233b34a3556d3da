"""What a worker sees of the log and the judgements while it evaluates them: what the checks ask about them.

It is added up with the other sums, so that the checks need not read these inputs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_checks
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy, to_texts
from rankeval_spark.engine.checks.judged_users import judged_users
from rankeval_spark.engine.checks.unusable_rows import RowCounts
from rankeval_spark.engine.ranking.judgements import usable_weights
from rankeval_spark.engine.scoring.scorer import RELEVANT

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch
    from rankeval_spark.engine.ranking.judgements import Judgements
    from rankeval_spark.measures.arrays import BoolVector

ITEM_FIELDS: Final = (C.ITEM_ID, "n_judged", "is_listed")
"""Columns of the items of the log and the judgements, and how each is used."""


@dataclass(frozen=True)
class Tally:
    """How often a check met its case in some partitions, of how many, and the first and last key concerned."""

    check: str
    count: int
    total: int
    first: str | None = None
    last: str | None = None

    def plus(self, other: Tally) -> Tally:
        """Add what another partition counted."""
        keys = [key for key in (self.first, self.last, other.first, other.last) if key is not None]
        first, last = (min(keys), max(keys)) if keys else (None, None)
        return Tally(self.check, self.count + other.count, self.total + other.total, first, last)

    @property
    def sample_keys(self) -> list[str]:
        """The keys, each once."""
        return list(dict.fromkeys(key for key in (self.first, self.last) if key is not None))


@dataclass
class PartitionTallies:
    """What was seen of the log and the judgements in one partition.

    Attributes
    ----------
    is_enabled : bool
        Whether more than rows by kind is looked at.
    counts : RowCounts
        Rows by kind.
    tallies : dict of str to Tally
        What was counted of the usable judgements, by check.
    items : list of tuple
        Items that are judged or listed, of some users each: ids, judged rows, and whether each is listed.
    """

    is_enabled: bool = False
    counts: RowCounts = field(default_factory=RowCounts)
    tallies: dict[str, Tally] = field(default_factory=dict)
    items: list[tuple[pa.Array, pa.Array, pa.Array]] = field(default_factory=list)

    def add(self, batch: Batch, judgements: Judgements) -> None:
        """Look at a batch, with one judgement per owner and item."""
        if not self.is_enabled:
            return
        is_listed = np.bincount(batch.log.item, minlength=batch.n_items) > 0
        n_judged = np.bincount(batch.held_out.item, minlength=batch.n_items)
        used = to_arrow(is_listed | (n_judged > 0))
        self.items.append((batch.items.filter(used), to_arrow(n_judged).filter(used), to_arrow(is_listed).filter(used)))
        for tally in (*_of_users(batch, judgements), *_of_rows(batch), *_of_lists(batch)):
            self.tallies[tally.check] = self.tallies.get(tally.check, Tally(tally.check, 0, 0)).plus(tally)


def _of_users(batch: Batch, judgements: Judgements) -> Iterator[Tally]:
    """Count judgements that repeat another, and users without a relevant one."""
    owner = batch.user_of(judgements.owner)
    users = judged_users(batch.held_out.user, owner, judgements.gain, n_users=batch.n_users)
    n_rows, n_judged, has_none = len(batch.held_out.user), np.count_nonzero(users.is_judged), users.has_none_relevant
    yield _tally("duplicates", n_rows - len(judgements.owner), n_rows, batch.users, users.is_repeated)
    yield _tally("zero_relevant", np.count_nonzero(has_none), n_judged, batch.users, has_none)


def _of_lists(batch: Batch) -> Iterator[Tally]:
    """Count judgements of lists that the log does not have, where judgements name lists."""
    if batch.owners is None:
        return
    is_listed = np.bincount(batch.owners.log, minlength=batch.n_owners) > 0
    owner = batch.owners.held_out[~is_listed[batch.owners.held_out]]
    keys = _joined(*(pc.take(ids, to_arrow(code)) for ids, code in batch.ids_of(owner)))
    yield _tally(row_checks.UNMATCHED_LISTS, len(owner), len(batch.held_out), *_all(keys))


def _of_rows(batch: Batch) -> Iterator[Tally]:
    """Count gains below 0, or too low to be relevant, values that are no number, and weights that are not above 0."""
    held_out = batch.held_out
    gain = to_numpy(held_out.columns[C.GAIN]).astype(np.float64, copy=False) if len(held_out.user) else np.zeros(0)
    flags = {row_checks.NEGATIVE_GAINS: gain < 0, row_checks.LOW_GAINS: (gain > 0) & (gain < RELEVANT)}
    if C.VALUE in held_out.columns:
        flags[row_checks.INVALID_VALUES] = ~np.isfinite(
            to_numpy(held_out.columns[C.VALUE]).astype(np.float64, copy=False)
        )
    if C.WEIGHT in held_out.columns:
        flags[row_checks.INVALID_WEIGHTS] = usable_weights(held_out.columns[C.WEIGHT]) == 0
    for check, flag in flags.items():
        concerned = np.flatnonzero(flag)
        ids = [*batch.ids_of(batch.judged.user), (batch.items, held_out.item)]
        keys = _joined(*(pc.take(values, to_arrow(code[concerned])) for values, code in ids))
        yield _tally(check, len(concerned), len(flag), *_all(keys))


def _joined(*parts: pa.Array) -> pa.Array:
    """Join the texts of ids by a blank."""
    return pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), to_texts([" "])[0])


def _all(keys: pa.Array) -> tuple[pa.Array, BoolVector]:
    return keys, np.ones(len(keys), dtype=np.bool_)


def _tally(check: str, count: SupportsInt, total: SupportsInt, keys: pa.Array, is_concerned: BoolVector) -> Tally:
    if not is_concerned.any():
        return Tally(check, int(count), int(total))
    ends = pc.min_max(keys.filter(to_arrow(is_concerned)).cast(pa.string())).as_py()
    return Tally(check, int(count), int(total), ends["min"], ends["max"])
