"""Inputs with everything awkward in them, as Arrow tables that both hosts read."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

N_USERS: Final = 60
N_ITEMS: Final = 40
CATEGORIES: Final = ("rock", "jazz", "folk", None)


@dataclass(frozen=True)
class Awkward:
    """Five inputs: repeated items, ties, NULL keys, NaN scores, users on one side only, unknown segments and items."""

    recommendations: pa.Table
    held_out: pa.Table
    segments: pa.Table
    train: pa.Table
    items: pa.Table

    @classmethod
    def make(cls, seed: int, *, ids: str = "string", has_lists: bool = False, has_ranks: bool = False) -> Awkward:
        """Draw the rows from a seed; ``ids`` are text or whole numbers."""
        draw = random.Random(seed)

        def as_id(number: int) -> Any:  # noqa: ANN401 - the type of the id is chosen by the caller
            return number if ids == "bigint" else f"{number:03}"

        id_type = pa.int64() if ids == "bigint" else pa.string()
        log: list[tuple[Any, ...]] = [
            (model, as_id(user), list_id, as_id(item), score, rank)
            for model in ("als", "knn", "popular")
            for user in range(N_USERS - 5)
            for list_id in (["a", "b"][: draw.randint(1, 2)] if has_lists else [""])
            for rank, (item, score) in enumerate(_list(draw), 1)
        ]
        log += [("als", None, "", as_id(1), 0.5, 1), ("als", as_id(2), "", None, 0.5, 1)]
        log += [("knn", as_id(3), "", as_id(4), float("nan"), None), (None, as_id(3), "", as_id(4), 0.1, 2)]
        judged = [
            (as_id(user), as_id(item), float(draw.randint(-1, 3)), _moment(draw))
            for user in range(5, N_USERS)
            for item in draw.choices(range(N_ITEMS), k=draw.randint(0, 5))
        ]
        judged += [(None, as_id(1), 1.0, None), (as_id(6), as_id(1), float("nan"), None)]
        segments = [
            (as_id(user), draw.choice(["DE", "FR", None]), draw.choice(["gold", "new"]), draw.random() * 90)
            for user in range(0, N_USERS, 2)
        ]
        train = [
            (as_id(user), as_id(int(N_ITEMS * draw.random() ** 2)))
            for user in range(N_USERS)
            for _ in range(draw.randint(0, 8))
        ]
        items = [
            (
                as_id(item),
                draw.choices(CATEGORIES, k=draw.randint(0, 3)),
                [draw.uniform(-1, 1) for _ in range(3)] if draw.random() < 0.9 else None,
                dt.date(2025, 1, 1) + dt.timedelta(days=draw.randint(0, 300)),
            )
            for item in range(N_ITEMS - 3)
        ]
        names = ["model_id", "user_id", "list_id", "item_id", "score", "rank"]
        types = [pa.string(), id_type, pa.string(), id_type, pa.float64(), pa.int32()]
        recommendations = _table(draw, log, names, types)
        left_out = [*([] if has_lists else ["list_id"]), *([] if has_ranks else ["rank"])]
        return cls(
            recommendations.drop_columns(left_out),
            _table(
                draw,
                judged,
                ["user_id", "item_id", "gain", "interacted_at"],
                [id_type, id_type, pa.float64(), pa.timestamp("us", "UTC")],
            ),
            _table(
                draw, segments, ["user_id", "country", "tier", "age"], [id_type, pa.string(), pa.string(), pa.float64()]
            ),
            _table(draw, train, ["user_id", "item_id"], [id_type, id_type]),
            _table(
                draw,
                items,
                ["item_id", "categories", "vector", "published_at"],
                [id_type, pa.list_(pa.string()), pa.list_(pa.float64()), pa.date32()],
            ),
        )

    def with_judged_lists(self, seed: int = 0) -> Awkward:
        """Name a list in each judgement: one of the log, another one, or none."""
        names = random.Random(seed).choices(["a", "a", "b", "b", "c", None], k=self.held_out.num_rows)
        return replace(self, held_out=self.held_out.append_column("list_id", pa.array(names, pa.string())))

    def on_spark(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Make DataFrames of the inputs, by their names; as those of a night, they are too large to be broadcast."""
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        return {name: spark.createDataFrame(table) for name, table in vars(self).items()}


def _list(draw: random.Random) -> list[tuple[int, float]]:
    """Draw a list of 0 to 9 items, one of them twice now and then, with scores of one decimal."""
    items = draw.sample(range(N_ITEMS), draw.randint(0, 9))
    items += items[:1] if draw.random() < 0.3 else []
    return [(item, draw.randint(0, 9) / 10) for item in items]


def _moment(draw: random.Random) -> dt.datetime | None:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randint(0, 20))
    return None if draw.random() < 0.2 else moment


def _table(draw: random.Random, rows: list[tuple[Any, ...]], names: list[str], types: list[pa.DataType]) -> pa.Table:
    draw.shuffle(rows)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=names)
