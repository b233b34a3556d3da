"""Two nights of eighty users each, seventy of them the same, and what follows for RR@2 by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import stats

from tests.support import nights

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Rows, Workspace

THEN, NOW = date(2026, 1, 8), date(2026, 1, 9)
USERS = {THEN: range(80), NOW: range(10, 90)}
MOVED = 15
"""A user who is in AT then and in DE now."""

Values: TypeAlias = Mapping[int, float]


def row_ranking(model: str, day: date, user: int) -> int:
    """Rank of the one relevant item, 3 where it is not in the list: of ``als`` it falls for every other user."""
    usual = 1 + user % 3
    return min(3, usual + (day == NOW and model == "als" and user % 2))


def country_of(day: date, user: int) -> str:
    """Country of a user on a date."""
    return "DE" if user >= 40 or (user, day) == (MOVED, NOW) else "AT"


def values(model: str, day: date, country: str | None = None) -> Values:
    """RR@2 of each user, of those in a country where one is named."""
    users = (user for user in USERS[day] if country in (None, country_of(day, user)))
    return {user: {1: 1.0, 2: 1 / 2, 3: 0.0}[row_ranking(model, day, user)] for user in users}


def shift(now: Values, before: Values) -> tuple[float, float]:
    """Difference of the means and half of its interval, from the lists of values."""
    x, y = np.array(list(now.values())), np.array(list(before.values()))
    products = sum((now[user] - x.mean()) * (before[user] - y.mean()) for user in now if user in before)
    squares = x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y) - 2 * products / (len(x) * len(y))
    half = stats.t.ppf(0.975, min(len(x), len(y)) - 1) * np.sqrt(squares)
    return x.mean() - y.mean(), half


def inputs() -> dict[str, Rows]:
    """Return the tables of both nights; a third model gives a few lists then and none now."""
    items = {1: "hit x", 2: "x hit", 3: "x y"}
    lists = {
        day: {model: {f"u{user}": items[row_ranking(model, day, user)] for user in users} for model in ("als", "pop")}
        for day, users in USERS.items()
    }
    lists[THEN]["old"] = {f"u{user}": items[1] for user in range(5)}
    return {
        "recommendations": nights.recommendations(lists),
        "held_out": nights.held_out({day: {f"u{user}": {"hit": 1} for user in users} for day, users in USERS.items()}),
        "segments": [
            {"day": day.isoformat(), "user_id": f"u{user}", "country": country_of(day, user)}
            for day, users in USERS.items()
            for user in users
        ],
    }


def workspace(folder: Path, format_: str = nights.DELTA) -> Workspace:
    """Make a workspace with the inputs of both nights and two rules against the previous night."""
    made = nights.workspace(
        folder,
        format_=format_,
        measures=["RR"],
        cutoffs=[2],
        results__lists=False,
        slicing__min_slice_size=30,
        comparisons={"baseline": "pop"},
        gates=[
            {"measure": "RR@2", "margin": 0.05, "against": "previous"},
            {"measure": "RR@2", "slice": "country", "alpha": 0.05, "against": "previous", "models": ["als"]},
        ],
    )
    for name, rows in inputs().items():
        made.write(name, rows, format_)
    return made
