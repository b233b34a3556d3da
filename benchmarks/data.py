"""Seeded recommendation logs and judgements of any size, written once as Parquet and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, functions as F

from rankeval_spark.spark.session.settings import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_FILE: Final = 700_000
MODEL: Final = "model"
SEGMENT_SIZES: Final = {"country": 20, "device": 4, "tier": 5, "age_band": 7, "gender": 3}
MORE_SEGMENTS: Final = {f"segment_{index:02}": 2 + index for index in range(20)}
EVERY_SEGMENT: Final = {**SEGMENT_SIZES, **MORE_SEGMENTS}
"""Values of each column of the table of segments; the first few are those of every line but that by many slices."""

UNKNOWN_SHARE: Final = 0.02
"""Users whose value of a segment is NULL."""

N_CATEGORIES: Final = 20
N_FEATURES: Final = 32
LAST_DAY: Final = "2025-12-31"
"""Items were published in the thousand days up to this one."""

HASH_STEPS: Final = 1_000_000
"""Distinct values of a draw."""

SCORE_STEPS: Final = 14_000
"""Distinct scores: of a hundred items some are equal in 30 % of the lists."""

REPEATED: Final = 100
"""One row in so many names an item that the list has already."""


@dataclass(frozen=True)
class DataSettings:
    """What the generated rows depend on; its hash names the folder that they are kept in.

    Attributes
    ----------
    n_rows : int
        Recommendation rows wanted; lists are drawn, so that the exact number differs by a fraction of a percent.
    n_models : int
        Models; each gives every user a list.
    n_items : int
        Size of the catalogue. Its prime factors are 2 and 5, which :func:`_item` relies on.
    shortest_list, longest_list : int
        Lists have a uniform length in this range.
    fewest_judgements, most_judgements : int
        The same for the judgements of a user; half of them are on the user's list.
    fewest_interactions, most_interactions : int
        The same for the training interactions of a user.
    has_text_ids : bool
        Whether ids are texts of 36 characters instead of integers.
    version : int
        Raised when the generator changes.
    """

    n_rows: int
    seed: int = 1
    n_models: int = 1
    n_items: int = 50_000
    shortest_list: int = 80
    longest_list: int = 120
    fewest_judgements: int = 10
    most_judgements: int = 30
    fewest_interactions: int = 10
    most_interactions: int = 30
    has_text_ids: bool = False
    version: int = 4

    @property
    def n_users(self) -> int:
        """Users: lists stay at about a hundred items, whatever the number of rows."""
        return max(1, 2 * self.n_rows // ((self.shortest_list + self.longest_list) * self.n_models))

    @property
    def folder(self) -> Path:
        """Where the tables are kept."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
        return cache_dir() / "bench" / f"data-{self.n_rows}-{digest}"


@dataclass(frozen=True)
class Tables:
    """Paths of the generated Parquet tables."""

    recommendations: Path
    held_out: Path
    segments: Path
    train: Path
    items: Path

    @classmethod
    def under(cls, folder: Path) -> Tables:
        """Name the tables of a folder."""
        return cls(*(folder / field.name for field in fields(cls)))


def prepare(spark: SparkSession, settings: DataSettings) -> Tables:
    """Return the tables, generated if they are not there yet."""
    if not settings.folder.is_dir():
        draft = settings.folder.with_name(f"{settings.folder.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        tables = Tables.under(draft)
        for frame, path in (
            (recommendations(spark, settings), tables.recommendations),
            (held_out(spark, settings), tables.held_out),
            (segments(spark, settings), tables.segments),
            (train(spark, settings), tables.train),
            (items(spark, settings), tables.items),
        ):
            _with_ids(frame, settings).write.parquet(str(path))
        draft.rename(settings.folder)
    return Tables.under(settings.folder)


def recommendations(spark: SparkSession, settings: DataSettings) -> DataFrame:
    """Make ``model_id, user_id, item_id, score``: lists in no order, one row in a hundred for an item listed before."""
    # Users change fastest, so that the rows of a list are spread over all files, as in a log ordered by time.
    longest = settings.longest_list
    cells = _cells(spark, settings, per_user=longest * settings.n_models, rows=settings.n_rows)
    position, number = F.col("_position") % longest, F.floor(F.col("_position") / longest)
    is_repeated = _draw(settings, "repeated", "user_id", "_position", n=REPEATED) == 0
    shown = F.when(is_repeated & (position > 0), position - 1).otherwise(position)
    model = F.lit(MODEL) if settings.n_models == 1 else F.concat(F.lit(f"{MODEL}-"), number.cast("string"))
    return cells.where(position < _list_length(settings)).select(
        model.alias("model_id"),
        "user_id",
        _item(settings, shown + 7 * number).alias("item_id"),
        (_draw(settings, "score", "user_id", "_position", n=SCORE_STEPS) / SCORE_STEPS).alias("score"),
    )


def held_out(spark: SparkSession, settings: DataSettings) -> DataFrame:
    """Make ``user_id, item_id, gain``: gains 0, 1, 2, 3; even positions are on the user's list, odd ones are not."""
    cells = _cells(spark, settings, per_user=settings.most_judgements, rows=2 * settings.n_users)
    n_judgements = _between(settings, "judgements", settings.fewest_judgements, settings.most_judgements)
    is_listed = F.col("_position") % 2 == 0
    position = F.when(is_listed, F.col("_position")).otherwise(settings.longest_list + F.col("_position"))
    return cells.where(F.col("_position") < n_judgements).select(
        "user_id",
        _item(settings, position).alias("item_id"),
        _draw(settings, "gain", "user_id", "_position", n=4).cast("double").alias("gain"),
    )


def segments(spark: SparkSession, settings: DataSettings) -> DataFrame:
    """Make ``user_id`` and the columns of ``EVERY_SEGMENT``; a value is missing now and then."""
    n_files = max(1, settings.n_users // ROWS_PER_FILE)
    users = spark.range(settings.n_users, numPartitions=n_files).withColumnRenamed("id", "user_id")
    return users.select("user_id", *(_segment(settings, name, size) for name, size in EVERY_SEGMENT.items()))


def train(spark: SparkSession, settings: DataSettings) -> DataFrame:
    """Make ``user_id, item_id``: some items are far more popular than others, and a pair may occur twice."""
    cells = _cells(spark, settings, per_user=settings.most_interactions, rows=2 * settings.n_users)
    n_interactions = _between(settings, "train", settings.fewest_interactions, settings.most_interactions)
    share = _draw(settings, "taste", "user_id", "_position", n=HASH_STEPS) / HASH_STEPS
    item = F.floor(settings.n_items * share * share * share)
    return cells.where(F.col("_position") < n_interactions).select("user_id", item.alias("item_id"))


def items(spark: SparkSession, settings: DataSettings) -> DataFrame:
    """Make ``item_id, categories, vector, published_at``: one to three categories, features in [-1, 1)."""
    catalogue = spark.range(settings.n_items, numPartitions=2).withColumnRenamed("id", "item_id")

    def category(place: int) -> Column:
        return F.concat(F.lit("category "), _draw(settings, f"category {place}", "item_id", n=N_CATEGORIES))

    def feature(place: int) -> Column:
        return 2 * _draw(settings, f"feature {place}", "item_id", n=HASH_STEPS) / HASH_STEPS - 1

    n_known = _between(settings, "categories", 1, 3, of="item_id").cast("int")
    return catalogue.select(
        "item_id",
        F.slice(F.array(*map(category, range(3))), F.lit(1), n_known).alias("categories"),
        F.array(*map(feature, range(N_FEATURES))).alias("vector"),
        F.date_sub(F.to_date(F.lit(LAST_DAY)), _draw(settings, "age", "item_id", n=1000).cast("int")).alias(
            "published_at"
        ),
    )


def robot_rows(spark: SparkSession, settings: DataSettings, *, n: int) -> DataFrame:
    """Make the log of one user more: a list of ``n`` different items under the first model, most of them tied."""
    rows = spark.range(n, numPartitions=max(2, n // ROWS_PER_FILE)).withColumnRenamed("id", "item_id")
    model = MODEL if settings.n_models == 1 else f"{MODEL}-0"
    score = _draw(settings, "robot", "item_id", n=SCORE_STEPS) / SCORE_STEPS
    user = F.lit(settings.n_users).cast("bigint")
    log = rows.select(F.lit(model).alias("model_id"), user.alias("user_id"), "item_id", score.alias("score"))
    return _with_ids(log, settings)


def robot_judgements(spark: SparkSession, settings: DataSettings, *, n: int) -> DataFrame:
    """Make ``n`` judgements of one of the users."""
    rows = spark.range(n, numPartitions=2).withColumnRenamed("id", "item_id")
    gain = _draw(settings, "robot gain", "item_id", n=4).cast("double").alias("gain")
    return _with_ids(rows.select(F.lit(0).cast("bigint").alias("user_id"), "item_id", gain), settings)


def _with_ids(frame: DataFrame, settings: DataSettings) -> DataFrame:
    """Write ids as texts of 36 characters, as long as those of a database, where that is wanted."""
    if not settings.has_text_ids:
        return frame
    names = [name for name in ("user_id", "item_id") if name in frame.columns]
    return frame.withColumns({name: F.concat(F.lit("id: "), F.md5(F.col(name).cast("string"))) for name in names})


def _cells(spark: SparkSession, settings: DataSettings, *, per_user: int, rows: int) -> DataFrame:
    """Make every (user, position) with position below ``per_user``."""
    n_files = max(2, rows // ROWS_PER_FILE)
    cells = spark.range(settings.n_users * per_user, numPartitions=n_files)
    user, position = F.col("id") % settings.n_users, F.floor(F.col("id") / settings.n_users)
    return cells.select(user.alias("user_id"), position.alias("_position"))


def _list_length(settings: DataSettings) -> Column:
    return _between(settings, "length", settings.shortest_list, settings.longest_list)


def _item(settings: DataSettings, position: Column) -> Column:
    """Walk the catalogue from a start of the user's own in steps that meet every item before any repeats."""
    start = _draw(settings, "start", "user_id", n=settings.n_items)
    step = 10 * _draw(settings, "step", "user_id", n=settings.n_items // 10) + 3  # ends in 3: coprime with 2 and 5
    return (start + position * step) % settings.n_items


def _segment(settings: DataSettings, name: str, size: int) -> Column:
    is_known = _draw(settings, f"{name} known", "user_id", n=HASH_STEPS) >= UNKNOWN_SHARE * HASH_STEPS
    value = F.concat(F.lit(f"{name} "), _draw(settings, name, "user_id", n=size).cast("string"))
    return F.when(is_known, value).alias(name)


def _between(settings: DataSettings, purpose: str, low: int, high: int, *, of: str = "user_id") -> Column:
    return low + _draw(settings, purpose, of, n=high - low + 1)


def _draw(settings: DataSettings, purpose: str, *keys: str, n: int) -> Column:
    """Draw a whole number below ``n``: a hash, so that a row never depends on partitioning or order."""
    return F.pmod(F.xxhash64(F.lit(settings.seed), F.lit(purpose), *keys), F.lit(n))
