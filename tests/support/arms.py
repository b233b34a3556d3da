"""Logs of experiments: two models of equal quality, each of which serves its own users, but for a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from tests.support.cli import Finished
    from tests.support.nights import Workspace

N_USERS: Final = 1_000
OF_A: Final = range(900)
"""Users of the larger arm; those of the smaller one are the others."""
MICRO: Final = "P(agg='micro',denom='len')"
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


def unjudged_arms(shared: Collection[int] = ()) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, float]]]:
    """Return lists of 100 users each, and judgements of those of A alone; ``shared`` ones have lists of both."""
    numbers = {"A": [*range(100)], "B": [*range(100, 200), *shared]}
    made = {model: {user(one): LISTS[one % 3] for one in own} for model, own in numbers.items()}
    return made, {user(one): {"t": 1.0} for one in numbers["A"]}


def sessions(n_shared: int) -> dict[str, dict[tuple[str, str], str]]:
    """Return lists by model, user and id: of 30 users, five a model, of which ``n_shared`` are of both models."""
    users = [user(number) for number in range(30)]
    ids = {"A": range(5), "B": range(5 - n_shared, 10 - n_shared)}
    return {
        model: {(one, f"s{place}"): LISTS[place % 3] for one in users for place in own} for model, own in ids.items()
    }


def gains() -> dict[str, dict[str, float]]:
    """Every user has the one relevant item."""
    return {user(one): {"t": 1} for one in range(N_USERS)}


def countries() -> dict[str, str]:
    """Country of each user: a tenth of the larger arm, and all of the smaller one, are in AT."""
    return {user(one): "AT" if one % 10 == 0 or one not in OF_A else "DE" for one in range(N_USERS)}


def run_night(folder: Path, own_lists: dict[str, dict[str, str]], **asked: Any) -> tuple[Workspace, Finished]:  # noqa: ANN401 - of a config
    """Run a night of Success@1 of both arms, by country."""
    workspace = nights.workspace(folder, measures=["Success"], cutoffs=[1], slices=["country"], **asked)
    workspace.write("recommendations", nights.recommendations({FIRST: own_lists}))
    workspace.write("held_out", nights.held_out({FIRST: gains()}))
    rows = [{"day": FIRST.isoformat(), "user_id": user, "country": own} for user, own in countries().items()]
    workspace.write("segments", rows)
    return workspace, rankeval("run", workspace.config, "--date", FIRST)


def nights_of_a_test(folder: Path, n_users: int = 400) -> Workspace:
    """Write three nights: all users, but for every fifth, have the model ``a``; then every second one has ``b``.

    A user has the same taste on all nights, and lists of four to six items.
    """
    draw, log, held_out = np.random.default_rng(1), list[dict[str, Any]](), list[dict[str, Any]]()
    for day in (FIRST, SECOND, WITHOUT_ROWS):
        for number in range(n_users):
            if day == FIRST and number % 5 == 0:
                continue
            of_day = {"day": day.isoformat(), "user_id": f"u{number:03}"}
            model = "b" if day != FIRST and number % 2 else "a"
            ranks = range(4 + number % 3)
            log += [{**of_day, "model_id": model, "item_id": f"i{rank}", "score": -1.0 * rank} for rank in ranks]
            clicked = draw.random(len(ranks)) < (number % 10) / 10
            held_out += [{**of_day, "item_id": f"i{rank}"} for rank in ranks if clicked[rank]]
    asked: dict[str, Any] = {
        "comparisons": {"baseline": "a"},
        "policies": {"population": "run", "zero_relevant": "zero", "missing": "exclude"},
        "results": {"root": "results", "lists": True},
    }
    made = nights.workspace(folder, measures=["Success@1", f"{MICRO}@10"], **asked)
    made.write("recommendations", log)
    made.write("held_out", held_out)
    return made
