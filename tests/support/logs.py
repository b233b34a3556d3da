"""A log with everything awkward in it, small enough to be evaluated many times in one test run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support import arrow_frames

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

USERS = 40
ITEMS = 30


@dataclass(frozen=True)
class Logs:
    """Rows of the three inputs.

    Attributes
    ----------
    recommendations : list of (model, user, item, score)
        Lists of 0 to 9 items of two models; scores of one decimal, so that many tie.
    held_out : list of (user, item, gain)
        0 to 5 judgements a user, of gain 0 to 3.
    segments : list of (user, country, tier)
        Not every user, and NULL where the country is unknown.
    """

    recommendations: list[tuple[str, int, int, float]] = field(repr=False)
    held_out: list[tuple[int, int, float]] = field(repr=False)
    segments: list[tuple[int, str | None, str]] = field(repr=False)

    @classmethod
    def make(cls, seed: int) -> Logs:
        """Draw the rows from a seed."""
        draw = random.Random(seed)
        recommendations = [
            (model, user, item, draw.randint(0, 9) / 10)
            for model in ("als", "popular")
            for user in range(USERS)
            for item in draw.sample(range(ITEMS), draw.randint(0, 9))
        ]
        held_out = [
            (user, item, float(draw.randint(0, 3)))
            for user in range(USERS)
            for item in draw.sample(range(ITEMS), draw.randint(0, 5))
        ]
        segments = [
            (user, draw.choice(["DE", "FR", None]), draw.choice(["gold", "new"])) for user in range(0, USERS, 2)
        ]
        return cls(recommendations, held_out, segments)

    def frames(self, spark: SparkSession, *, ids: str = "string", seed: int | None = None) -> Frames:
        """Make frames, ids as bigint or as text of equal width (the same order); a seed shuffles the rows.

        As those of a night, they are too large to be broadcast.
        """
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        tables = self.tables(ids=ids, seed=seed)
        return Frames(*map(spark.createDataFrame, (tables.recommendations, tables.held_out, tables.segments)))

    def tables(self, *, ids: str = "string", seed: int | None = None) -> Tables:
        """Make Arrow tables, as :meth:`frames` makes frames."""
        recommendations, held_out, segments = self._rows(ids, seed)
        return Tables(
            arrow_frames.table("model_id user_id item_id score", *recommendations, ids=ids),
            arrow_frames.table("user_id item_id gain", *held_out, ids=ids),
            arrow_frames.table("user_id country tier", *segments, ids=ids),
        )

    def _rows(self, ids: str, seed: int | None) -> tuple[list[Any], list[Any], list[Any]]:
        """Name users and items, and shuffle the rows of each input."""

        def as_id(number: int) -> Any:  # noqa: ANN401 - the type of the id is chosen by the caller
            return number if ids == "bigint" else f"{number:03}"

        recommendations = [
            (model, as_id(user), as_id(item), score) for model, user, item, score in self.recommendations
        ]
        held_out = [(as_id(user), as_id(item), gain) for user, item, gain in self.held_out]
        segments = [(as_id(user), *values) for user, *values in self.segments]
        if seed is not None:
            for rows in (recommendations, held_out, segments):
                random.Random(seed).shuffle(rows)
        return recommendations, held_out, segments


@dataclass(frozen=True)
class Tables:
    """The three inputs as Arrow tables."""

    recommendations: pa.Table
    held_out: pa.Table
    segments: pa.Table

    def in_chunks(self, n_chunks: int) -> Tables:
        """Cut each into some chunks of rows, as Spark spreads them over partitions."""
        return Tables(*(arrow_frames.in_chunks(table, n_chunks) for table in vars(self).values()))


@dataclass(frozen=True)
class Frames:
    """The three inputs as frames."""

    recommendations: DataFrame
    held_out: DataFrame
    segments: DataFrame

    def repartition(self, n_partitions: int) -> Frames:
        """Spread the rows of each over some partitions."""
        return Frames(*(frame.repartition(n_partitions) for frame in self.all()))

    def all(self) -> tuple[DataFrame, DataFrame, DataFrame]:
        """Return the three."""
        return self.recommendations, self.held_out, self.segments
