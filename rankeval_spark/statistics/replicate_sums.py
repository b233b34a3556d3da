"""Sums over users with random factors, many replicates at a time: one matrix product per block of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.statistics import hashed_random

Matrix: TypeAlias = NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)

Sums: TypeAlias = NDArray[np.float64]
"""Shape (n_groups, n_columns, n_replicates); the sums of two sets of users are added."""

Draw: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.integer]]
"""Function that returns the random factors of users, (n_users, n_replicates), from their hashes."""

USERS_AT_ONCE: Final = 1024  # users in a block: with 1000 replicates, 8 MB of doubles

_LEAST_AT_ONCE: Final = 64
"""Users in a block where replicates are many; smaller blocks would read and write the sums too often."""


@dataclass(frozen=True)
class Draws:
    """Number of random replicates and their seed: the same for every model, slice, measure and cutoff."""

    replicates: int
    seed: int

    def weights(self, hashes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return how often each user is drawn in each replicate; rows of one user have the same weights.

        >>> Draws(replicates=5, seed=0).weights(hashed_random.user_hashes(["ann", "bob", "ann"]))
        array([[0, 1, 1, 0, 3],
               [1, 1, 2, 1, 2],
               [0, 1, 1, 0, 3]], dtype=uint8)
        """
        users, place = np.unique(hashes, return_inverse=True)
        return hashed_random.poisson_weights(users, seed=self.seed, replicates=self.replicates)[place]

    def signs(self, hashes: NDArray[np.int64]) -> NDArray[np.int8]:
        """Random sign of each user in each replicate."""
        return hashed_random.signs(hashes, seed=self.seed, replicates=self.replicates)


class SliceGroups(NamedTuple):
    """Groups of several slicings."""

    codes: NDArray[np.integer]  # (n_slicings, n_users), from 0 to `n - 1`, below 0 for none; slicings share no group
    n: int  # groups of all slicings

    @classmethod
    def everyone(cls, n_users: int) -> SliceGroups:
        """Build one group of all users."""
        return cls(np.zeros((1, n_users), dtype=np.int64), 1)


def sums_by_group(
    columns: Matrix,  # (n_users, n_columns), without NaN
    hashes: NDArray[np.int64],
    draw: Draw,  # called once for all columns and slicings
    groups: SliceGroups | None = None,  # everyone by default
) -> Sums:
    """Sum of the columns times the random factors over the users of each group: (n_groups, n_columns, n_replicates).

    NaN where a sum is beyond the range of a double. Blocks and partitions of users add up to the same numbers except
    for the order of rounding.

    >>> sums = sums_by_group(
    ...     np.array([[1.0], [2.0]]),
    ...     np.array([7, 8]),
    ...     lambda hashes: hashes[:, None] * np.array([1, -1]),
    ...     SliceGroups(np.array([[0, 0], [1, -1]]), 2),
    ... )
    >>> sums.tolist()
    [[[23.0, -23.0]], [[7.0, -7.0]]]
    """
    slicings, n_groups = groups or SliceGroups.everyone(len(columns))
    n_replicates = draw(hashes[:0]).shape[1]
    sums = np.zeros((n_groups, columns.shape[1], n_replicates))
    at_once = min(USERS_AT_ONCE, max(_LEAST_AT_ONCE, USERS_AT_ONCE * 1000 // max(n_replicates, 1)))
    for start in range(0, len(columns), at_once):
        block = slice(start, start + at_once)
        factors = draw(hashes[block]).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            for codes in slicings[:, block]:
                for group, users in members(codes):
                    sums[group] += columns[block][users].T @ factors[users]
    return np.where(np.isfinite(sums), sums, np.nan)


def distinct_columns(columns: NDArray[Scalar]) -> tuple[NDArray[Scalar], NDArray[np.int64]]:
    """Keep one of equal columns; return the columns that are kept, and which of them each column is.

    Most measures are defined for the same users, so that one sum of weights serves many.
    """
    texts = [column.tobytes() for column in columns.T]
    firsts: dict[bytes, int] = {}
    for position, text in enumerate(texts):
        firsts.setdefault(text, position)
    places = {text: place for place, text in enumerate(firsts)}
    return columns[:, list(firsts.values())], np.array([places[text] for text in texts], dtype=np.int64)


def members(codes: NDArray[np.integer]) -> Iterator[tuple[int, slice | NDArray[np.int64]]]:
    """Find the groups of a slicing and the positions of their users; a Python slice for everyone, to copy nothing."""
    if codes.size and codes.min() == codes.max():
        if codes[0] >= 0:
            yield int(codes[0]), slice(None)
        return
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    for group, users in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if group >= 0:
            yield group, users
