"""Random inputs of users, items with categories, and what judgements are worth; and the lists that come of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.measures import Background, Ranking
from tests.support.arrow_frames import in_chunks, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEMS: Final = tuple("abcdefghijklmnop")
CATEGORIES: Final = {item: ["rock", "sci-fi"][: place % 3] for place, item in enumerate(ITEMS[:-1])}
"""No, one or two categories; the last item is not in the catalogue."""

Held = dict[str, dict[str, tuple[float, float | None]]]


class Case:
    """Random inputs, as plain Python and as tables."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        users = [f"u{number:02}" for number in range(40)]
        self.scores = {
            user: {item: float(draw.randint(0, 5)) for item in draw.sample(ITEMS, draw.randint(0, 9))} for user in users
        }
        self.held: Held = {
            user: {
                item: (draw.choice([0.0, 0.5, 1.0, 2.0]), draw.choice([None, math.nan, -3.0, 0.5, 12.0]))
                for item in draw.sample(ITEMS, draw.randint(1, 6))
            }
            for user in users
        }
        # Few of the items are popular, one is in no interaction, and the counts tie.
        self.train = [
            (draw.choice(users), item) for place, item in enumerate(ITEMS[1:]) for _ in range(40 // (place + 2))
        ]

    def groups(self) -> dict[str, str]:
        """Name the groups of each item, worked out item by item."""
        counts = Counter(item for _, item in self.train)
        total, before = sum(counts.values()), 0
        found = {item: ["tail", *CATEGORIES.get(item, [])] for item in ITEMS}
        for item in sorted(counts, key=lambda item: (-counts[item], item)):
            found[item][0] = "head" if before * 5 < total else "middle" if before * 5 < total * 4 else "tail"
            before += counts[item]
        return {item: " ".join(names) for item, names in found.items()}

    def ranking(self, user: str, *, ties: str = "item_asc", judged_only: bool = False) -> Ranking:
        """Build the list of a user."""
        scores, held, groups = self.scores[user], self.held[user], self.groups()
        gain = {item: held[item][0] if item in held else 0.0 for item in ITEMS}
        value = {item: _usable(held[item][1]) if item in held else 0.0 for item in ITEMS}
        by_gain = ties == "optimistic"
        listed = [item for item in scores if item in held or not judged_only]
        order = sorted(listed, key=lambda item: (-scores[item], -gain[item] if by_gain else 0, item))
        missed = [item for item in held if item not in scores]
        return Ranking(
            [gain[item] if item in held else None for item in order],
            [gain[item] for item in missed],
            [scores[item] for item in order],
            background=Background(catalogue=len(CATEGORIES)),
            values=[value[item] for item in order],
            missed_values=[value[item] for item in missed],
            groups=[groups[item] for item in order],
            missed_groups=[groups[item] for item in missed],
        )

    def frames(self, spark: SparkSession) -> dict[str, Any]:
        """Make the same inputs on Spark."""
        return {name: spark.createDataFrame(rows) for name, rows in self.tables().items()}

    def tables(self) -> dict[str, Any]:
        """Make the inputs; every judgement occurs twice, once worth less."""
        log = [(user, item, score) for user, one in self.scores.items() for item, score in one.items()]
        held = [(user, item, *both) for user, one in self.held.items() for item, both in one.items()]
        worse = [(user, item, gain - 1, None) for user, item, gain, _ in held]
        return {
            "recommendations": in_chunks(table("user_id item_id score", *log), 3),
            "held_out": table("user_id item_id gain value", *held, *worse),
            "train": table("user_id item_id", *self.train),
            "items": table("item_id categories", *CATEGORIES.items()),
        }


def _usable(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else value
