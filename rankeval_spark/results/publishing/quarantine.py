"""Rows of the inputs that a night could not use, kept next to its results for whoever fixes the inputs.

A Delta table of its own for each night, which no reader of results looks at. It is made again as a folder, so that no
version of it outlives the night's next run, the retention or the erasure of a user.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from rankeval_spark.results.storage.file_store import inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.storage.file_store import Storage

FOLDER: Final = "_quarantine"
_DATE_LENGTH: Final = len("2026-01-31")


def quarantine_path(storage: Storage, night: NightKey) -> str:
    """Where the rows of a night are."""
    return inside(storage.root, _folder(night))


def replace(storage: Storage, night: NightKey, rows: DataFrame | None) -> None:
    """Keep the rows of a night instead of those that its last run left; None leaves nothing."""
    storage.remove(_folder(night))
    if rows is not None:
        rows.write.format("delta").save(quarantine_path(storage, night))


def remove(storage: Storage, *, evaluation: NightKey | None = None, before: date | None = None) -> list[str]:
    """Remove the rows of past nights; return the folders that are gone.

    Parameters
    ----------
    evaluation : NightKey, optional
        Any night of the evaluation whose rows go; of all evaluations by default.
    before : date, optional
        The first date that is kept; none by default.
    """
    removed = []
    for name in storage.names(FOLDER):
        of_evaluation, day = name[: -_DATE_LENGTH - 1], name[-_DATE_LENGTH:]
        is_meant = evaluation is None or of_evaluation == evaluation.slug[: -_DATE_LENGTH - 1]
        if is_meant and (before is None or day < before.isoformat()):
            storage.remove(f"{FOLDER}/{name}")
            removed.append(name)
    return removed


def _folder(night: NightKey) -> str:
    return f"{FOLDER}/{night.slug}"
