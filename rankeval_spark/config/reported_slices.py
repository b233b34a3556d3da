"""Slices that results are reported on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankeval_spark import columns as C


@dataclass(frozen=True)
class ReportedSlices:
    """Slices that rows are made of, and what holds for the rows of each.

    Attributes
    ----------
    segments : sequence of sequences of str
        Segments of each slice; ``()`` is all users.
    min_size : int
        Number of users below which a slice is small.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    quantiles : sequence of float
        Shares of the users up to whose values quantiles are reported.
    """

    segments: Sequence[Sequence[str]]
    min_size: int
    confidence: float
    quantiles: Sequence[float] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each slice."""
        return slice_names(self.segments)


def slice_names(slices: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Name each slice by its segments; that of no segment is all users."""
    return tuple(C.CROSSING.join(one) or C.ALL_USERS for one in slices)
