"""Logs of experiments: two models of equal quality, each of which serves its own users, but for a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

N_USERS: Final = 1_000
OF_A: Final = range(900)
"""Users of the larger arm; those of the smaller one are the others."""
LISTS: Final = "t x", "x t", "x y"
"""Lists of users by turns: the relevant item first, second, or not there."""


def user(number: int) -> str:
    """Name a user."""
    return f"u{number:04}"


def lists(shared: Collection[int] = ()) -> dict[str, dict[str, str]]:
    """Items of each list by model and user; ``shared`` users have the same list of both."""
    of_a = {user(one): LISTS[one % 3] for one in range(N_USERS) if one in OF_A or one in shared}
    of_b = {user(one): LISTS[one % 3] for one in range(N_USERS) if one not in OF_A or one in shared}
    return {"A": of_a, "B": of_b}


def gains() -> dict[str, dict[str, float]]:
    """Every user has the one relevant item."""
    return {user(one): {"t": 1} for one in range(N_USERS)}


def countries() -> dict[str, str]:
    """Country of each user: a tenth of the larger arm, and all of the smaller one, are in AT."""
    return {user(one): "AT" if one % 10 == 0 or one not in OF_A else "DE" for one in range(N_USERS)}
