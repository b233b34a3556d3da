"""Workspace of the demo: logs of real models, written once and kept for equal data and settings.

The only module of the demo that starts Spark or touches tables.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.ml import recommendation
from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.demo import dataset, models, movielens
from rankeval_spark.demo.dataset import Cut, make_segments, rolling_cuts
from rankeval_spark.demo.models import Factors
from rankeval_spark.demo.movielens import DataUnavailableError
from rankeval_spark.spark.session import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.demo.dataset import Dataset

TRAINING: Final = {
    # ALS serialises a deep lineage, for which the default stack can be too small.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Xss4m",
    # A hundred thousand ratings: four partitions hold them.
    "spark.sql.shuffle.partitions": "4",
}
"""Settings of the session in which ALS is trained."""

LOGS_VERSION: Final = 1
"""Raised whenever the code gives the same settings another meaning, so that kept logs are written again."""


@dataclass(frozen=True)
class AlsSettings:
    """Settings of MLlib's implicit ALS, chosen on the rows that the demo evaluates on, which flatters it."""

    rank: int = 30
    alpha: float = 1.0
    regularisation: float = 0.1
    iterations: int = 10
    seed: int = 7


@dataclass(frozen=True)
class DemoSettings:
    """Evaluation dates, the window that each holds out, and settings of the models."""

    # Consecutive; the last one holds out each user's last ``window`` interactions
    dates: tuple[dt.date, ...] = (dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3))
    window: int = 10  # interactions held out per user and date
    n_recommendations: int = 100  # length of the lists
    liked_rating: float = 4.0  # least rating of a liked item, from which neighbours and ALS learn
    n_neighbours: int = 100  # most similar items that may vote for an item
    als: AlsSettings = AlsSettings()

    def to_json(self) -> str:
        """Write the settings as canonical JSON, with the version of the code that reads them."""
        return json.dumps({"logs_version": LOGS_VERSION, **asdict(self)}, default=str, sort_keys=True)


RECOMMENDATIONS: Final = "recommendations"
HELD_OUT: Final = "held_out"
SEGMENTS: Final = "segments"
TABLES: Final = (RECOMMENDATIONS, HELD_OUT, SEGMENTS)

CAVEATS: Final = (
    "The cut is rolled along each user's own sequence, so the dates are stand-ins and other users' later"
    " interactions are in the training data.",
    "The models' settings were chosen on these same rows, which flatters them.",
)
"""To be shown wherever figures of the demo are."""

_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class DemoLogs:
    """Logs of a demo, and their sizes."""

    folder: Path  # holds a Delta table for each of :data:`TABLES`
    source_name: str  # 'MovieLens 100K' or 'synthetic'
    was_reused: bool  # whether the logs are those of an earlier demo
    dates: tuple[dt.date, ...]  # ascending
    n_users: int  # size of the data set
    n_items: int
    n_interactions: int
    n_recommendations: int  # rows of the tables over all dates
    n_held_out: int

    @classmethod
    def describe(
        cls, folder: Path, data: Dataset, *, dates: tuple[dt.date, ...], n_rows: Mapping[str, int]
    ) -> DemoLogs:
        """Describe logs that were just written from ``data``."""
        n_users, n_items, n_ratings = map(len, (data.users, data.items, data.interactions))
        logged = n_rows[RECOMMENDATIONS], n_rows[HELD_OUT]
        return cls(folder, data.source_name, False, dates, n_users, n_items, n_ratings, *logged)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Limits of the figures, in words."""
        made_up = () if self.source_name != "synthetic" else ("The data is synthetic: its figures mean nothing.",)
        return (*made_up, *CAVEATS)

    def table(self, name: str) -> Path:
        """Return the folder of one of :data:`TABLES`."""
        return self.folder / name

    def summary(self) -> str:
        """Return the sizes in a few words."""
        return (
            f"{self.n_recommendations:,} recommendations and {self.n_held_out:,} held-out interactions"
            f" over {len(self.dates)} dates"
        )


def read_kept(folder: Path, fingerprint: str) -> DemoLogs | None:
    """Return the logs in ``folder`` if they are whole and of this fingerprint."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        dates = tuple(dt.date.fromisoformat(date) for date in manifest["logs"]["dates"])
        logs = DemoLogs(**{**manifest["logs"], "folder": folder, "was_reused": True, "dates": dates})
    except (OSError, ValueError, KeyError, TypeError):  # none, or not one that `remember_logs` wrote
        return None
    has_tables = all((logs.table(name) / "_delta_log").is_dir() for name in TABLES)
    return logs if has_tables and manifest.get("fingerprint") == fingerprint else None


def forget_logs(folder: Path) -> None:
    """Drop the note before the tables change, so that half-written logs are never taken for whole ones."""
    (folder / _MANIFEST).unlink(missing_ok=True)


def remember_logs(logs: DemoLogs, fingerprint: str) -> None:
    """Write the note, last and in one step."""
    # Where the folder is and whether it was reused is up to the reader.
    fields = {name: value for name, value in asdict(logs).items() if name not in ("folder", "was_reused")}
    content = {"fingerprint": fingerprint, "logs": {**fields, "dates": [str(date) for date in logs.dates]}}
    draft = logs.folder / f".{_MANIFEST}.{os.getpid()}"
    draft.write_text(json.dumps(content, indent=2), encoding="utf-8")
    draft.replace(logs.folder / _MANIFEST)


DEFAULT_SETTINGS: Final = DemoSettings()
POPULAR: Final = "popular"
ITEM_KNN: Final = "item_knn"
ALS: Final = "als"


def prepare(
    spark: SparkSession,  # trains ALS; left alone where the logs are kept
    workspace: Path,  # made if missing
    progress: Callable[[str], None],  # called with one line on what was found or is about to be done
    *,
    settings: DemoSettings = DEFAULT_SETTINGS,
    dataset: Dataset | None = None,
) -> DemoLogs:
    """Write logs, held-out interactions and segments as Delta tables below ``workspace / "logs"``, or keep equal ones.

    Without ``dataset`` the models are trained on MovieLens 100K, or on synthetic data where it is not available.
    """
    data = dataset or load_dataset(cache_dir(), progress)
    progress(data.description())
    folder = workspace.absolute() / "logs"
    fingerprint = fingerprint_of(data, settings)
    if kept := read_kept(folder, fingerprint):
        progress(f"logs of an earlier demo with equal data and settings: kept, {kept.summary()}")
        return kept
    forget_logs(folder)
    tables = _make_logs(spark, data, settings, progress)
    progress("writing the logs")
    for name, frame in tables.items():
        _write(frame, folder / name)
    logs = DemoLogs.describe(
        folder, data, dates=settings.dates, n_rows={name: len(frame) for name, frame in tables.items()}
    )
    remember_logs(logs, fingerprint)
    progress(f"logs written: {logs.summary()}")
    return logs


def fingerprint_of(data: Dataset, settings: DemoSettings) -> str:
    """Return a hash of the data and the settings, by which kept logs are found to be those of an equal demo."""
    return hashlib.sha256(f"{data.fingerprint()}\n{settings.to_json()}".encode()).hexdigest()


def load_dataset(cache: Path, progress: Callable[[str], None]) -> Dataset:
    """Read MovieLens 100K from the cache or fetch it; without either, return synthetic data and report that."""
    try:
        return movielens.load(cache)
    except DataUnavailableError as error:
        progress(f"{error}; going on with seeded synthetic data of the same shape")
        return dataset.make_dataset()


def _make_logs(
    spark: SparkSession, data: Dataset, settings: DemoSettings, progress: Callable[[str], None]
) -> dict[str, pd.DataFrame]:
    """Train the models and return the three tables, all dates together."""
    cuts = rolling_cuts(data.interactions, dates=settings.dates, window=settings.window)
    for cut in cuts:
        trained, judged = cut.train[C.USER_ID].unique(), cut.held_out[C.USER_ID].unique()
        n_cold = int(np.setdiff1d(judged, trained).size)
        progress(
            f"{cut.date}: training {POPULAR}, {ITEM_KNN} and {ALS} on {len(cut.train):,} ratings of {len(trained):,} "
            f"users; {len(cut.held_out):,} held out of {len(judged):,} users, {n_cold:,} of them without a past"
        )
    # A fit is hundreds of tiny Spark tasks in a row; run in parallel they keep more than one core busy.
    with ThreadPoolExecutor(max_workers=len(cuts)) as pool:
        recommended = list(pool.map(partial(_recommend, spark, data=data, settings=settings), cuts))
    frames = {
        RECOMMENDATIONS: recommended,
        HELD_OUT: [cut.held_out[[C.USER_ID, C.ITEM_ID, C.GAIN]] for cut in cuts],
        SEGMENTS: [make_segments(data.users, train=cut.train) for cut in cuts],
    }
    dates = [cut.date for cut in cuts]
    return {
        name: pd.concat([frame.assign(**{C.EVALUATION_DATE: day}) for day, frame in zip(dates, own, strict=True)])
        for name, own in frames.items()
    }


def _recommend(spark: SparkSession, cut: Cut, *, data: Dataset, settings: DemoSettings) -> pd.DataFrame:
    """Train the models on one cut; one row per (model, user, item)."""
    training = models.Training.of(cut.train, data)
    n, liked_rating = settings.n_recommendations, settings.liked_rating
    # An Arrow table crosses as Arrow whatever the session's settings; a pandas frame may cross row by row.
    liked = pa.Table.from_pandas(training.liked(liked_rating), preserve_index=False)
    users, items = fit(spark.createDataFrame(liked), settings.als)
    by_model = {
        POPULAR: models.popular(training, n=n),
        ITEM_KNN: models.item_knn(training, n=n, liked_rating=liked_rating, n_neighbours=settings.n_neighbours),
        ALS: models.matrix_factorisation(training, n=n, users=users, items=items),
    }
    return pd.concat([frame.assign(**{C.MODEL_ID: model_id}) for model_id, frame in by_model.items()])


def fit(liked: DataFrame, settings: AlsSettings) -> tuple[Factors, Factors]:
    """Train ALS on the liked interactions, each with weight 1; return the factors of users and of items.

    ``ALSModel.recommendForAllUsers`` cannot leave out what a user has seen; 700 more items for each take 14 s a date.
    """
    model = recommendation.ALS(
        userCol=C.USER_ID,
        itemCol=C.ITEM_ID,
        ratingCol="_weight",
        implicitPrefs=True,
        rank=settings.rank,
        alpha=settings.alpha,
        regParam=settings.regularisation,
        maxIter=settings.iterations,
        seed=settings.seed,
        numUserBlocks=1,  # a round over 60,000 ratings is milliseconds of arithmetic: more blocks only add tasks
        numItemBlocks=1,
    ).fit(liked.select(C.USER_ID, C.ITEM_ID, F.lit(1.0).alias("_weight")).coalesce(1))
    users, items = (
        Factors(rows["id"].to_numpy(np.int64), np.stack(rows["features"].to_list()).astype(np.float64))
        for rows in (each.toPandas().sort_values("id") for each in (model.userFactors, model.itemFactors))
    )
    return users, items


def _write(frame: pd.DataFrame, table: Path) -> None:
    """Write a Delta table, a file a date; ids become strings, as in most logs."""
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    for name in (C.USER_ID, C.ITEM_ID):
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(pa.string()))
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=[C.EVALUATION_DATE])
