"""Random predictions and ratings: as plain Python, as Arrow tables, and as the lists that measures are of."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from rankeval_spark.measures import Ranking
from tests.support.arrow_frames import in_chunks, table

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS: Final = tuple("abcdefghijkl")

Rated = dict[str, dict[str, float]]
"""Numbers by user and item."""


def random_ratings(seed: int) -> tuple[Rated, Rated]:
    """Predictions of few values, so that there are ties, and ratings; some users have only the one or the other."""
    draw = random.Random(seed)
    predicted, rated = (
        {
            f"u{number}": {item: draw.choice(values) for item in draw.sample(ITEMS, draw.randint(1, len(ITEMS)))}
            for number in range(60)
            if draw.random() < 0.9
        }
        for values in ((0.5, 1.25, 2.5, 3.75, 4.5), (1.0, 2.0, 3.0, 4.0, 5.0))
    )
    return predicted, rated


def tables(predicted: Rated, rated: Rated, *, n_chunks: int = 3) -> tuple[pa.Table, pa.Table]:
    """Make the log, in some chunks, and the held-out table."""
    log, truth = ([(u, i, v) for u, of_user in side.items() for i, v in of_user.items()] for side in (predicted, rated))
    return in_chunks(table("user_id item_id score", *log), n_chunks), table("user_id item_id gain", *truth)


def list_of(predicted: dict[str, float], rated: dict[str, float]) -> Ranking:
    """Build the list of a user."""
    order = sorted(predicted, key=lambda item: (-predicted[item], item))
    missed = [gain for item, gain in rated.items() if item not in predicted]
    return Ranking([rated.get(item) for item in order], missed, [predicted[item] for item in order])
