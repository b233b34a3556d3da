"""Rows that cannot be used: counted while they pass, and an input that has no other rows is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from rankeval_spark.engine.batch import row_checks, row_kinds
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.failures import refuse, refuse_input

if TYPE_CHECKING:
    import pyarrow as pa

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
    row_checks.INVALID_SCORES: "correct the rows; where rows are lists, the arrays of items and scores have one length",
    row_checks.INVALID_GAINS: "correct the rows; gains name events as the column does, with upper and lower case",
}
"""What to do where all rows fail one check."""

INVALID_ORDER: Final = "a recommendation with a NULL, NaN or infinite score or rank"
"""What the policy ``invalid_scores`` refuses."""

ZERO_RANK: Final = "rank 0, in a log whose ranks order its lists"
ZERO_RANK_EXPECTED: Final = "ranks that count from 1"
ZERO_RANK_FIX: Final = "call evaluate(ranks_from=0), which counts the first item of each list as 1"

_INVALID: Final = row_kinds.unusable(row_kinds.LOG, row_checks.INVALID_SCORES)
_N_KINDS: Final = row_kinds.FIRST_UNUSABLE + len(row_kinds.UNUSABLE)


@dataclass
class RowCounts:
    """Rows of a partition by their kind, see :mod:`row_kinds`.

    Attributes
    ----------
    by_kind : int64, shape (n_kinds,)
    """

    by_kind: np.ndarray = field(default_factory=lambda: np.zeros(_N_KINDS, dtype=np.int64))

    def usable(
        self, batches: Iterable[pa.RecordBatch], *, refuses_invalid_scores: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Count the rows that pass, and keep those that can be used.

        Raises
        ------
        RefusedError
            With ``refuses_invalid_scores``, at a recommendation whose place in its list is unknown.
        """
        for batch in batches:
            kind = to_numpy(batch[row_kinds.KIND])
            self.by_kind += np.bincount(kind, minlength=_N_KINDS)
            if refuses_invalid_scores and self.by_kind[_INVALID]:
                refuse(row_checks.INVALID_SCORES, INVALID_ORDER)
            if kind.max(initial=0) < row_kinds.FIRST_UNUSABLE:
                yield batch
            else:
                yield batch.filter(to_arrow(kind < row_kinds.FIRST_UNUSABLE))

    def has_unusable(self, kind: int) -> bool:
        """Return True if an input has rows that cannot be used."""
        return any(
            self.by_kind[row_kinds.FIRST_UNUSABLE + at] for at, (of, _) in enumerate(row_kinds.UNUSABLE) if of == kind
        )


def refuse_without_usable(counts: RowCounts) -> None:
    """Refuse an input that has rows and none that can be used, by the rows of all partitions."""
    by_kind = counts.by_kind
    for kind, name in row_kinds.NAMES.items():
        places = [
            (row_kinds.FIRST_UNUSABLE + place, check)
            for place, (of, check) in enumerate(row_kinds.UNUSABLE)
            if of == kind
        ]
        refuse_by_check(name, {None: int(by_kind[kind]), **{check: int(by_kind[at]) for at, check in places}})


def refuse_unusable(counts: pa.Array) -> None:
    """Refuse an input that has rows and none that can be used.

    Parameters
    ----------
    counts : pa.Array
        One cell of :data:`row_kinds.COUNTS`: the first rows of each input, :data:`row_kinds.MOST_COUNTED` at most.
    """
    by_input: dict[str, dict[str | None, int]] = {}
    for one in counts[0].as_py():
        by_input.setdefault(one["input"], {})[one["check"]] = one["count"]
    for name, by_check in sorted(by_input.items()):
        is_part = sum(by_check.values()) >= row_kinds.MOST_COUNTED
        refuse_by_check(name, by_check, or_more=" or more" if is_part else "")


def refuse_by_check(name: str, by_check: Mapping[str | None, int], *, or_more: str = "") -> None:
    """Refuse an input that has rows and none that can be used.

    Parameters
    ----------
    name : str
        The input, of :data:`EXPECTED`.
    by_check : mapping
        Number of rows by the check that they fail, None for those that can be used.
    or_more : str
        What is written behind the number of rows, where not all of them were counted.

    Raises
    ------
    RefusedError
        With the counts by check.
    """
    unusable = {check: by_check[check] for check in row_checks.UNUSABLE if by_check.get(check)}
    if unusable and not by_check.get(None):
        each = ", ".join(f"{count} {check}" for check, count in unusable.items())
        found = f"{sum(unusable.values())} rows{or_more} and none that can be used ({each})"
        refuse_input(name, found, expected=EXPECTED[name], fix=fix_of(unusable))


def fix_of(checks: Collection[str | None]) -> str:
    """Say what to do with rows of which each fails one of these checks."""
    return _FIXES.get(next(iter(checks)) or "", _FIX) if len(checks) == 1 else _FIX


def refuse_zero_rank() -> NoReturn:
    """Refuse a log that counts its ranks from 0 and is ordered by them."""
    refuse_input(row_kinds.NAMES[row_kinds.LOG], ZERO_RANK, expected=ZERO_RANK_EXPECTED, fix=ZERO_RANK_FIX)
