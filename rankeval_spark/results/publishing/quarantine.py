"""Rows of the inputs that a night could not use, kept next to its results for whoever fixes the inputs.

A Delta table of its own for each night, which no reader of results looks at. It is made again as a folder, so that no
version of it outlives the night's next run, the retention or the erasure of a user.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage.file_store import inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def remove(storage: Storage, *, evaluation: str | None = None, before: date | None = None) -> list[str]:
    """Remove the rows of past nights, of one evaluation or of all, before a date or of any; return the folders."""
    removed, start = [], None if evaluation is None else NightKey(evaluation, date.min).slug[:-_DATE_LENGTH]
    for name in storage.names(FOLDER):
        of_evaluation, day = name[:-_DATE_LENGTH], name[-_DATE_LENGTH:]
        if start in (None, of_evaluation) and (before is None or day < before.isoformat()):
            storage.remove(f"{FOLDER}/{name}")
            removed.append(name)
    return removed


def _folder(night: NightKey) -> str:
    return f"{FOLDER}/{night.slug}"
