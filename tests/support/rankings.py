"""Hypothesis strategies for ranked lists."""

from __future__ import annotations

from operator import itemgetter

from hypothesis import strategies as st

from rankeval_spark.measures import Ranking

GRADES = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)
SCORES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)


def rankings(
    *, grades: tuple[float, ...] = GRADES, min_size: int = 0, max_size: int = 12
) -> st.SearchStrategy[Ranking]:
    """Draw lists with judged, unjudged and missed items; empty lists and users without judgements too.

    Scores are probabilities, with ties.
    """
    item = st.tuples(st.sampled_from(SCORES), st.none() | st.sampled_from(grades))
    items = st.lists(item, min_size=min_size, max_size=max_size)
    return st.builds(_ranking, items, st.lists(st.sampled_from(grades), max_size=6))


def _ranking(items: list[tuple[float, float | None]], missed: list[float]) -> Ranking:
    best_first = sorted(items, key=itemgetter(0), reverse=True)
    return Ranking([gain for _, gain in best_first], missed, [score for score, _ in best_first])


def binary_rankings() -> st.SearchStrategy[Ranking]:
    """Draw lists whose judgements are 0 or 1."""
    return rankings(grades=(0.0, 1.0))


def batches() -> st.SearchStrategy[list[Ranking]]:
    """Draw several lists, or none."""
    return st.lists(rankings(), max_size=6)
