"""The demo's workspace: recommendation logs of real models, written once and kept for the same data and settings.

The only module of the demo that touches tables.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from deltalake import write_deltalake

from rankeval_spark import columns as C
from rankeval_spark.demo import als, models, movielens, segments, synthetic
from rankeval_spark.demo.logs import HELD_OUT, RECOMMENDATIONS, SEGMENTS, DemoLogs, forget, read_kept, remember
from rankeval_spark.demo.settings import DemoSettings
from rankeval_spark.demo.split import Cut, rolling_cuts
from rankeval_spark.demo.wheels import DataUnavailableError
from rankeval_spark.spark.session import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.demo.dataset import Dataset

DEFAULT_SETTINGS: Final = DemoSettings()

POPULAR: Final = "popular"
ITEM_KNN: Final = "item_knn"
ALS: Final = "als"

_IDS: Final = (C.USER_ID, C.ITEM_ID)


def prepare(
    spark: SparkSession,
    workspace: Path,
    progress: Callable[[str], None],
    *,
    settings: DemoSettings = DEFAULT_SETTINGS,
    dataset: Dataset | None = None,
) -> DemoLogs:
    """Leave recommendation logs, held-out interactions and segments as Delta tables below ``workspace / "logs"``.

    Logs that an earlier call made from equal data and settings are kept.

    Parameters
    ----------
    spark : SparkSession
        Where ALS is trained; it is left alone where the logs are kept.
    workspace : Path
        Folder of the demo; made if missing.
    progress : callable
        Called with one line that says what was found or is about to be done.
    settings : DemoSettings
        Dates, window and models.
    dataset : Dataset, optional
        What to train on; MovieLens 100K, or synthetic data where it is not available, unless given.
    """
    data = dataset or load_dataset(cache_dir(), progress)
    progress(data.description())
    folder = workspace.absolute() / "logs"
    fingerprint = fingerprint_of(data, settings)
    if kept := read_kept(folder, fingerprint):
        progress(f"logs of an earlier demo with equal data and settings: kept, {kept.summary()}")
        return kept
    forget(folder)
    tables = _make_logs(spark, data, settings, progress)
    progress("writing the logs")
    for name, frame in tables.items():
        _write(frame, folder / name)
    logs = DemoLogs.of(folder, data, dates=settings.dates, n_rows={name: len(frame) for name, frame in tables.items()})
    remember(logs, fingerprint)
    progress(f"logs written: {logs.summary()}")
    return logs


def fingerprint_of(data: Dataset, settings: DemoSettings) -> str:
    """Return a hash of the data and the settings, by which kept logs are found to be those of an equal demo."""
    return hashlib.sha256(f"{data.fingerprint()}\n{settings.to_json()}".encode()).hexdigest()


def load_dataset(cache: Path, progress: Callable[[str], None]) -> Dataset:
    """Read MovieLens 100K from the cache or fetch it; without either, say so and make synthetic data."""
    try:
        return movielens.load(cache)
    except DataUnavailableError as error:
        progress(f"{error}; going on with seeded synthetic data of the same shape")
        return synthetic.make_dataset()


def _make_logs(
    spark: SparkSession, data: Dataset, settings: DemoSettings, progress: Callable[[str], None]
) -> dict[str, pd.DataFrame]:
    """Train the models and return the three tables, all dates together."""
    cuts = rolling_cuts(data.interactions, dates=settings.dates, window=settings.window)
    for cut in cuts:
        progress(_summary(cut))
    # A fit is hundreds of tiny Spark tasks in a row; run in parallel they keep more than one core busy.
    with ThreadPoolExecutor(max_workers=len(cuts)) as pool:
        recommended = list(pool.map(partial(_recommendations, spark, data=data, settings=settings), cuts))
    return {
        RECOMMENDATIONS: _all_dates(cuts, recommended),
        HELD_OUT: _all_dates(cuts, [cut.held_out[[C.USER_ID, C.ITEM_ID, C.GAIN]] for cut in cuts]),
        SEGMENTS: _all_dates(cuts, [segments.of_users(data.users, train=cut.train) for cut in cuts]),
    }


def _summary(cut: Cut) -> str:
    trained, judged = cut.train[C.USER_ID].unique(), cut.held_out[C.USER_ID].unique()
    n_cold = int(np.setdiff1d(judged, trained).size)
    return (
        f"{cut.date}: training {POPULAR}, {ITEM_KNN} and {ALS} on {len(cut.train):,} ratings of {len(trained):,} users;"
        f" {len(cut.held_out):,} held out of {len(judged):,} users, {n_cold:,} of them without a past"
    )


def _recommendations(spark: SparkSession, cut: Cut, *, data: Dataset, settings: DemoSettings) -> pd.DataFrame:
    """Train the models on one cut; one row per (model, user, item)."""
    training = models.Training.of(cut.train, data)
    n, liked_rating = settings.n_recommendations, settings.liked_rating
    users, items = als.fit(_to_spark(spark, training.liked(liked_rating)), settings.als)
    by_model = {
        POPULAR: models.popular(training, n=n),
        ITEM_KNN: models.item_knn(training, n=n, liked_rating=liked_rating, n_neighbours=settings.n_neighbours),
        ALS: models.matrix_factorisation(training, n=n, users=users, items=items),
    }
    return pd.concat([frame.assign(**{C.MODEL_ID: model_id}) for model_id, frame in by_model.items()])


def _all_dates(cuts: Sequence[Cut], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([frame.assign(**{C.EVALUATION_DATE: cut.date}) for cut, frame in zip(cuts, frames, strict=True)])


def _to_spark(spark: SparkSession, frame: pd.DataFrame) -> DataFrame:
    # An Arrow table crosses as Arrow whatever the session's settings; a pandas frame may cross row by row.
    return spark.createDataFrame(_to_arrow(frame))


def _to_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _write(frame: pd.DataFrame, table: Path) -> None:
    """Write a Delta table, a file a date; ids become strings, as in most logs."""
    rows = _to_arrow(frame)
    for name in _IDS:
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(pa.string()))
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=[C.EVALUATION_DATE])
