"""Workspace of the demo: logs of real models, written once and kept for equal data and settings."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from deltalake import write_deltalake

from rankeval_spark import columns as C
from rankeval_spark.demo import dataset, models, movielens
from rankeval_spark.demo.dataset import Cut, make_segments, rolling_cuts
from rankeval_spark.demo.models import AlsSettings
from rankeval_spark.demo.movielens import DataUnavailableError
from rankeval_spark.spark.session import cache_dir

if TYPE_CHECKING:
    from rankeval_spark.demo.dataset import Dataset

LOGS_VERSION: Final = 2
"""Raised whenever the code gives the same settings another meaning, so that kept logs are written again."""


@dataclass(frozen=True)
class DemoSettings:
    """Evaluation dates, the window that each holds out, and settings of the models."""

    # Consecutive; the last one holds out each user's last ``window`` interactions
    dates: tuple[dt.date, ...] = (dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3))
    window: int = 10  # interactions held out per user and date
    n_recommendations: int = 100  # length of the lists
    liked_rating: float = 4.0  # least rating of a liked item, from which neighbours and ALS learn
    n_neighbours: int = 100  # most similar items that may vote for an item
    als: AlsSettings = field(default_factory=AlsSettings)

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
    tables = _make_logs(data, settings, progress)
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


def _make_logs(data: Dataset, settings: DemoSettings, progress: Callable[[str], None]) -> dict[str, pd.DataFrame]:
    """Train the models and return the three tables, all dates together."""
    cuts = rolling_cuts(data.interactions, dates=settings.dates, window=settings.window)
    for cut in cuts:
        trained, judged = cut.train[C.USER_ID].unique(), cut.held_out[C.USER_ID].unique()
        n_cold = int(np.setdiff1d(judged, trained).size)
        progress(
            f"{cut.date}: training {POPULAR}, {ITEM_KNN} and {ALS} on {len(cut.train):,} ratings of {len(trained):,} "
            f"users; {len(cut.held_out):,} held out of {len(judged):,} users, {n_cold:,} of them without a past"
        )
    frames = {
        RECOMMENDATIONS: [_recommend(cut, data, settings) for cut in cuts],
        HELD_OUT: [cut.held_out[[C.USER_ID, C.ITEM_ID, C.GAIN]] for cut in cuts],
        SEGMENTS: [make_segments(data.users, train=cut.train) for cut in cuts],
    }
    dates = [cut.date for cut in cuts]
    return {
        name: pd.concat([frame.assign(**{C.EVALUATION_DATE: day}) for day, frame in zip(dates, own, strict=True)])
        for name, own in frames.items()
    }


def _recommend(cut: Cut, data: Dataset, settings: DemoSettings) -> pd.DataFrame:
    """Train the models on one cut; one row per (model, user, item)."""
    training = models.Training.of(cut.train, data)
    n, liked_rating = settings.n_recommendations, settings.liked_rating
    by_model = {
        POPULAR: models.popular(training, n=n),
        ITEM_KNN: models.item_knn(training, n=n, liked_rating=liked_rating, n_neighbours=settings.n_neighbours),
        ALS: models.matrix_factorisation(training, settings.als, n=n, liked_rating=liked_rating),
    }
    return pd.concat([frame.assign(**{C.MODEL_ID: model_id}) for model_id, frame in by_model.items()])


def _write(frame: pd.DataFrame, table: Path) -> None:
    """Write a Delta table, a file a date; ids become strings, as in most logs."""
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    for name in (C.USER_ID, C.ITEM_ID):
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(pa.string()))
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=[C.EVALUATION_DATE])
