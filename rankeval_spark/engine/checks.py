"""Facts of the inputs that workers count while they evaluate them, for the checks.

They are added up with the other sums, so that the checks need not read these inputs again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy, to_texts
from rankeval_spark.engine.failures import refuse, refuse_input
from rankeval_spark.engine.ranking.matching import usable_weights
from rankeval_spark.engine.scorer import RELEVANT

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch
    from rankeval_spark.engine.ranking.matching import Judgements
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


EXPECTED: Final[Mapping[str, str]] = {
    "recommendations": "ids that are not NULL, and a finite score or else a rank of at least 1",
    "held_out": "ids that are not NULL, and a finite gain",
    "segments": "users that are not NULL",
    "train": "users and items that are not NULL",
    "items": "items that are not NULL",
}
"""What a row of each input needs to be used."""

_FIX: Final = "correct the rows"

_FIXES: Final = {
    row_kinds.INVALID_SCORES: "correct the rows; where rows are lists, the arrays of items and scores have one length",
    row_kinds.INVALID_GAINS: "correct the rows; gains name events as the column does, with upper and lower case",
}
"""What to do where all rows fail one check."""

INVALID_ORDER: Final = "a recommendation with a NULL, NaN or infinite score or rank"
"""What the policy ``invalid_scores`` refuses."""

ZERO_RANK: Final = "rank 0, in a log whose ranks order its lists"
ZERO_RANK_EXPECTED: Final = "ranks that count from 1"
ZERO_RANK_FIX: Final = "call evaluate(ranks_from=0), which counts the first item of each list as 1"

_INVALID: Final = row_kinds.unusable(row_kinds.LOG, row_kinds.INVALID_SCORES)
_N_KINDS: Final = row_kinds.FIRST_UNUSABLE + len(row_kinds.UNUSABLE_KINDS)


@dataclass
class RowCounts:
    """Rows of a partition by their kind, see :mod:`row_kinds`."""

    by_kind: np.ndarray = field(default_factory=lambda: np.zeros(_N_KINDS, dtype=np.int64))  # int64 (n_kinds,)

    def usable(
        self, batches: Iterable[pa.RecordBatch], *, refuses_invalid_scores: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Count the rows that pass, and keep those that can be used.

        Raises RefusedError with ``refuses_invalid_scores``, at a recommendation whose place in its list is unknown.
        """
        for batch in batches:
            kind = to_numpy(batch[row_kinds.KIND])
            self.by_kind += np.bincount(kind, minlength=_N_KINDS)
            if refuses_invalid_scores and self.by_kind[_INVALID]:
                refuse(row_kinds.INVALID_SCORES, INVALID_ORDER)
            if kind.max(initial=0) < row_kinds.FIRST_UNUSABLE:
                yield batch
            else:
                yield batch.filter(to_arrow(kind < row_kinds.FIRST_UNUSABLE))

    def has_unusable(self, kind: int) -> bool:
        """Return True if an input has rows that cannot be used."""
        return any(
            self.by_kind[row_kinds.FIRST_UNUSABLE + at]
            for at, (of, _) in enumerate(row_kinds.UNUSABLE_KINDS)
            if of == kind
        )


def refuse_without_usable(counts: RowCounts) -> None:
    """Refuse an input that has rows and none that can be used, by the rows of all partitions."""
    by_kind = counts.by_kind
    for kind, name in row_kinds.NAMES.items():
        places = [
            (row_kinds.FIRST_UNUSABLE + place, check)
            for place, (of, check) in enumerate(row_kinds.UNUSABLE_KINDS)
            if of == kind
        ]
        refuse_by_check(name, {None: int(by_kind[kind]), **{check: int(by_kind[at]) for at, check in places}})


def refuse_unusable(counts: pa.Array) -> None:
    """Refuse an input that has rows and none that can be used.

    ``counts``: one cell of :data:`row_kinds.COUNTS`: the first rows of each input, :data:`row_kinds.MOST_COUNTED` at
    most.
    """
    by_input: dict[str, dict[str | None, int]] = {}
    for one in counts[0].as_py():
        by_input.setdefault(one["input"], {})[one["check"]] = one["count"]
    for name, by_check in sorted(by_input.items()):
        is_part = sum(by_check.values()) >= row_kinds.MOST_COUNTED
        refuse_by_check(name, by_check, or_more=" or more" if is_part else "")


def refuse_by_check(name: str, by_check: Mapping[str | None, int], *, or_more: str = "") -> None:
    """Refuse an input that has rows and none that can be used.

    ``name``: the input, of :data:`EXPECTED`. ``by_check``: number of rows by the check that they fail, None for those
    that can be used. ``or_more``: what is written behind the number of rows, where not all of them were counted. Raises
    RefusedError with the counts by check.
    """
    unusable = {check: by_check[check] for check in row_kinds.UNUSABLE if by_check.get(check)}
    if unusable and not by_check.get(None):
        each = ", ".join(f"{count} {check}" for check, count in unusable.items())
        found = f"{sum(unusable.values())} rows{or_more} and none that can be used ({each})"
        refuse_input(name, found, expected=EXPECTED[name], fix=fix_of(unusable))


def fix_of(checks: Collection[str | None]) -> str:
    """Return what to do with rows of which each fails one of these checks."""
    return _FIXES.get(next(iter(checks)) or "", _FIX) if len(checks) == 1 else _FIX


def refuse_zero_rank() -> NoReturn:
    """Refuse a log that counts its ranks from 0 and is ordered by them."""
    refuse_input(row_kinds.NAMES[row_kinds.LOG], ZERO_RANK, expected=ZERO_RANK_EXPECTED, fix=ZERO_RANK_FIX)


def judged_users(
    user: IntVector,  # (n_rows,) user of each row of the judgements
    owner: IntVector,  # (n_judgements,) user of each judgement, one per user and item
    gain: FloatVector,  # (n_judgements,)
    *,
    n_users: int,
) -> tuple[BoolVector, BoolVector, BoolVector]:
    """Return which users have a judgement, one with several rows, and judgements of which none is relevant."""
    n_rows, n_pairs = (np.bincount(each, minlength=n_users) for each in (user, owner))
    best = np.full(n_users, -np.inf)
    np.maximum.at(best, owner, gain)
    return n_pairs > 0, n_rows > n_pairs, (n_pairs > 0) & (best < RELEVANT)


ITEM_FIELDS: Final = (C.ITEM_ID, "n_judged", "is_listed")
"""Columns of the items of the log and the judgements, and how each is used."""


@dataclass(frozen=True)
class Tally:
    """Count of a check in some partitions, of how many rows, with the first and last key concerned."""

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
    """Counts of the log and the judgements in one partition."""

    is_enabled: bool = False  # whether more than rows by kind is looked at
    counts: RowCounts = field(default_factory=RowCounts)
    tallies: dict[str, Tally] = field(default_factory=dict)  # what was counted of the usable judgements, by check
    # items that are judged or listed, of some users each: ids, judged rows, and whether each is listed
    items: list[tuple[pa.Array, pa.Array, pa.Array]] = field(default_factory=list)

    def add(self, batch: Batch, judgements: Judgements) -> None:
        """Count a batch, with one judgement per owner and item."""
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
    user = batch.held_out.user
    is_judged, is_repeated, has_none = judged_users(user, owner, judgements.gain, n_users=batch.n_users)
    yield _tally("duplicates", len(user) - len(judgements.owner), len(user), batch.users, is_repeated)
    yield _tally("zero_relevant", np.count_nonzero(has_none), np.count_nonzero(is_judged), batch.users, has_none)


def _of_lists(batch: Batch) -> Iterator[Tally]:
    """Count judgements of lists that the log does not have, where judgements name lists."""
    if batch.owners is None:
        return
    is_listed = np.bincount(batch.owners.log, minlength=batch.n_owners) > 0
    owner = batch.owners.held_out[~is_listed[batch.owners.held_out]]
    keys = _joined(*(pc.take(ids, to_arrow(code)) for ids, code in batch.ids_of(owner)))
    yield _tally(row_kinds.UNMATCHED_LISTS, len(owner), len(batch.held_out), *_all(keys))


def _of_rows(batch: Batch) -> Iterator[Tally]:
    """Count gains below 0, or too low to be relevant, values that are no number, and weights that are not above 0."""
    held_out = batch.held_out
    gain = to_numpy(held_out.columns[C.GAIN]).astype(np.float64, copy=False) if len(held_out.user) else np.zeros(0)
    flags = {row_kinds.NEGATIVE_GAINS: gain < 0, row_kinds.LOW_GAINS: (gain > 0) & (gain < RELEVANT)}
    if C.VALUE in held_out.columns:
        flags[row_kinds.INVALID_VALUES] = ~np.isfinite(
            to_numpy(held_out.columns[C.VALUE]).astype(np.float64, copy=False)
        )
    if C.WEIGHT in held_out.columns:
        flags[row_kinds.INVALID_WEIGHTS] = usable_weights(held_out.columns[C.WEIGHT]) == 0
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
