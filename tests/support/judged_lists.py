"""Random sessions whose judgements name their list, and the same lists as users of their own."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.support.arrow_frames import table

MODELS = ("als", "pop")


@dataclass(frozen=True)
class Sessions:
    """Inputs: repeated items and judgements, ties, and lists on one side only or of one model only."""

    log: pa.Table
    held_out: pa.Table
    train: pa.Table
    items: pa.Table
    models: tuple[str, ...] = MODELS

    @classmethod
    def draw(cls, seed: int, *, n_users: int = 25, n_items: int = 12, has_own_train: bool = True) -> Sessions:
        """Draw them; ids of lists are those of other users too. Without own training data, that of others is there."""
        draw = random.Random(seed)
        every = [f"i{number:02}" for number in range(n_items)]
        log: list[tuple[Any, ...]] = []
        judged: list[tuple[Any, ...]] = []
        train = [(f"t{number}", item) for number in range(9) for item in draw.sample(every, draw.randint(1, 5))]
        for user in (f"u{number:02}" for number in range(n_users)):
            train += [(user, item) for item in draw.sample(every, draw.randint(0, 3)) if has_own_train]
            for name in draw.sample(["s1", "s2", "s3", "10", "9"], draw.randint(0, 4)):
                for model in draw.sample(MODELS, draw.choice([0, 1, 2, 2])):
                    items = draw.sample(every, draw.randint(1, 6))
                    items += items[:1] if draw.random() < 0.2 else []
                    log += [(model, user, name, item, draw.randint(0, 5) / 5) for item in items]
                for item in draw.choices(every, k=draw.choice([0, 1, 1, 2, 4])):
                    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randint(0, 3))
                    judged.append((user, name, item, float(draw.randint(-1, 3)), at))
        draw.shuffle(log)
        draw.shuffle(judged)
        kinds = [
            (item, draw.sample(["rock", "jazz", "folk"], draw.randint(1, 2)), [draw.random(), draw.random()])
            for item in every
        ]
        return cls(
            table("model_id user_id list_id item_id score", *log),
            table("user_id list_id item_id gain interacted_at", *judged),
            table("user_id item_id", *train),
            table("item_id categories vector", *kinds),
        )

    def as_users(self) -> Sessions:
        """Name each list as a user of its own, with the training data of the user."""
        pairs = {
            user: sorted(
                {
                    row["list_id"]
                    for one in (self.log, self.held_out)
                    for row in one.to_pylist()
                    if row["user_id"] == user
                }
            )
            for user in {user for one in (self.log, self.held_out) for user in one["user_id"].to_pylist()}
        }
        train = [
            (f"{user}/{name}", item)
            for user, item in zip(*self.train.to_pydict().values(), strict=True)
            for name in pairs.get(user, ["-"])
        ]
        log, held_out = map(_of_lists, (self.log, self.held_out))
        return Sessions(log, held_out, table("user_id item_id", *train), self.items)


def _of_lists(frame: pa.Table) -> pa.Table:
    """Put user and list together."""
    both = pc.binary_join_element_wise(frame["user_id"], frame["list_id"], "/")
    return frame.drop_columns(["list_id"]).set_column(frame.column_names.index("user_id"), "user_id", both)
