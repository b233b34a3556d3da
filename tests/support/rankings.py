"""Hypothesis strategies for ranked lists."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

from hypothesis import strategies as st

from rankeval_spark.measures import Background, Item, Ranking

Apart = tuple[float, str]
"""Value and groups of an item."""

GRADES = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)
VALUES = (-2.5, 0.0, 0.25, 4.0, 9.5)
MEMBERSHIPS = ("", "head", "middle", "tail", "tail rock", "head rock")
WEIGHTS = (1.0, 2.5, 0.25, 4.0, 0.0)
SCORES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)

OTHER_MODEL = "rival"
"""A model that gives some users lists too."""

ITEMS = (
    Item(),
    Item(8, 5, False, 1, 1, True, 0, ("a",), (1.0, 0.0, 0.0), 1.0, 0.75, 1),
    Item(5, 4, False, 2, 2, False, 10, ("a", "b"), (1.0, 2.0, -1.0), 0.8, 0.25, 3),
    Item(3, 3, True, 3, 3, True, -3, ("b", "c", "d"), (0.0, -3.0, 0.5), 0.6, 1.0, 1),
    Item(3, 2, True, 3, 4, False, 45, ("a", "d"), (-2.0, 0.0, 0.0), 0.4, 0.0, 2),
    Item(1, 1, True, 4, 5, False, 29, (), None, 0.2, math.nan, 1),
    Item(0, 0, True, math.inf, 9, False, 30, ("e",), (0.0, 0.0, 0.0), 0.0, 0.0, 1),
)
"""Items that lists are drawn from: seen and unseen, with and without a day, categories and a vector."""

BACKGROUNDS = (
    Background(),
    Background(
        20, 8, 1, 6, 5, (("a", 1, 2), ("b", 2, 1), ("d", 2, 1)), (0.5, 0.25, -0.5), (), 4.5, (), 30, profile_unjudged=3
    ),
    Background(30, 9, 2, 9, 6, (("f", 1, 1),), None, (), 8, (), 5),
)
"""What lies behind a list: nothing, and two kinds of training data and user."""


def rankings(
    *, grades: tuple[float, ...] = GRADES, min_size: int = 0, max_size: int = 12
) -> st.SearchStrategy[Ranking]:
    """Draw lists with judged, unjudged and missed items; empty lists and users without judgements too.

    Scores are probabilities, with ties.
    """
    apart = st.tuples(st.sampled_from(VALUES), st.sampled_from(MEMBERSHIPS))
    place = st.tuples(st.sampled_from(SCORES), st.none() | st.sampled_from(grades), st.sampled_from(ITEMS), apart)
    places = st.lists(place, min_size=min_size, max_size=max_size)
    missed = st.lists(st.tuples(st.sampled_from(grades), apart), max_size=6)
    others = st.lists(st.integers(1, 16), max_size=12, unique=True)
    return st.builds(build_ranking, places, missed, st.sampled_from(BACKGROUNDS), others)


def build_ranking(
    places: list[tuple[float, float | None, Item, Apart]],
    missed: list[tuple[float, Apart]],
    background: Background,
    other: list[int],
) -> Ranking:
    """Build a list, best score first; without training data no item has anything in it.

    Ranks that the list does not have mean items of the other list alone.
    """
    best_first = sorted(places, key=itemgetter(0), reverse=True)
    items = [item if background.interactions else item._replace(**_NOT_IN_TRAIN) for _, _, item, _ in best_first]
    pairs = [
        (rank, later, 1 / (rank + later))
        for later, other in enumerate(items, 1)
        for rank, item in enumerate(items[: later - 1], 1)
        if item.users and other.users and (item.users + other.users) % 3
    ]
    recommended = [(gain, item.categories) for _, gain, item, _ in best_first if gain is not None]
    others = [(gain, ITEMS[place % len(ITEMS)].categories) for place, (gain, _) in enumerate(missed)]
    judged = [(gain, categories) for gain, categories in (*others, *recommended) if categories]
    return Ranking(
        [gain for _, gain, _, _ in best_first],
        [gain for gain, _ in missed],
        [score for score, _, _, _ in best_first],
        items,
        background._replace(
            pairs=pairs,
            judged=judged,
            others=[(OTHER_MODEL, [rank if rank <= len(places) else None for rank in other])],
        ),
        [value for _, _, _, (value, _) in best_first],
        [value for _, (value, _) in missed],
        [groups for _, _, _, (_, groups) in best_first],
        [groups for _, (_, groups) in missed],
        propensities=[(0.25, 0.5, 1.0)[place % 3] for place in range(len(best_first))],
        predictions=[(0.5, 0.125, 0.0)[place % 3] for place in range(len(best_first))],
        weights=[WEIGHTS[(place + len(missed)) % len(WEIGHTS)] for place in range(len(best_first))],
        missed_weights=[WEIGHTS[place % len(WEIGHTS)] for place in range(len(missed))],
        user_values=[("Drama", len(places) - 4.5)] if len(missed) % 3 else [],
    )


_NOT_IN_TRAIN: dict[str, Any] = {
    name: Item._field_defaults[name]
    for name in ("interactions", "users", "is_tail", "level", "place", "is_seen", "quantile", "familiarity")
}


def binary_rankings() -> st.SearchStrategy[Ranking]:
    """Draw lists whose judgements are 0 or 1."""
    return rankings(grades=(0.0, 1.0))


def batches() -> st.SearchStrategy[list[Ranking]]:
    """Draw several lists, or none."""
    return st.lists(rankings(), max_size=6)
