"""A night with users who win and lose, and who these are by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.statistics.hashed_random import hash_ids
from tests.support import nights

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Rows, Workspace

DAY: Final = date(2026, 3, 1)
MODELS: Final = ("als", "knn", "pop")
HOSTILE: Final = "<script>alert('x')</script> & \u202e<b>"
TITLES: Final = {"i0": HOSTILE, "i1": "Ünïcode ☃", "i2": "x" * 300, "i3": None}
N_USERS: Final = 60


def lists() -> dict[str, dict[str, list[str]]]:
    """Return the items of each model's lists; some users have none, so that differences tie and lists are empty."""
    rng = np.random.default_rng(5)
    made: dict[str, dict[str, list[str]]] = {model: {} for model in MODELS}
    for model in MODELS:
        for user in range(N_USERS):
            if rng.random() < 0.9:
                made[model][f"u{user}"] = [f"i{item}" for item in rng.permutation(6)[:4]]
    return made


def hits() -> dict[str, set[str]]:
    return {f"u{user}": {f"i{user % 6}", f"i{(user + 1) % 6}"} for user in range(N_USERS)}


def value(model: str, user: str) -> float:
    """P@3 of a user, 0 without a list."""
    return sum(item in hits()[user] for item in lists()[model].get(user, [])[:3]) / 3


def chosen(model: str, side: str, n: int) -> list[str]:
    """Return the users with the greatest differences from ``pop``; of equal ones those with the lowest hashes."""
    users = [f"u{user}" for user in range(N_USERS)]
    sign, hashes = (1 if side == "win" else -1), dict(zip(users, hash_ids(users).tolist(), strict=True))
    gains = {user: sign * (value(model, user) - value("pop", user)) for user in users}
    found = [user for user in users if gains[user] > 0]
    return sorted(found, key=lambda user: (-round(gains[user], 9), hashes[user]))[:n]


def workspace(folder: Path, format_: str = nights.PARQUET, n: int = 3) -> Workspace:
    made = nights.Workspace(folder)
    log = {model: {user: " ".join(items) for user, items in users.items()} for model, users in lists().items()}
    judged = {user: dict.fromkeys(items, 1) for user, items in hits().items()}
    catalogue: Rows = [
        {"item_id": item, "name": TITLES.get(item, f"Title of {item}")}
        for item in sorted({f"i{item}" for item in range(6)})
    ]
    made.write("recommendations", nights.recommendations({DAY: log}), format_)
    made.write("held_out", nights.held_out({DAY: judged}), format_)
    made.write("items", catalogue, format_)
    made.configure(nights.config_of("recommendations", "held_out", format_=format_))
    made.change(
        inputs__items={"format": format_, "path": "inputs/items", "columns": {"title": "name"}},
        measures=["P"],
        cutoffs=[3],
        comparisons={"baseline": "pop"},
        results__examples=n,
    )
    return made
