"""What can be done to the published tables in addition to a publish: rows are deleted, users erased, files merged.

Everything here happens while the root's publish lock is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rankeval_spark.results.storage.commits import Root, is_local_root
from rankeval_spark.results.table_changes.changes_on_disk import ChangesOnDisk

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.results.run_record import NightKey


class TableChanges(Protocol):
    """Changes of the tables of one root."""

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Name the nights of earlier dates that have rows, of one evaluation or of all."""

    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        """Delete the rows of some nights, in one commit."""

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Delete the rows of a user; return how many there were."""

    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Take a user out of the texts of ``checks`` or ``runs``; return how many rows named them."""

    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files; return how many there were, and how many they became."""

    def unneeded_files(self, table: str) -> int:
        """Count the files that no version within the retention needs."""

    def delete_unneeded(self, table: str) -> None:
        """Delete these files."""

    def properties(self, table: str) -> dict[str, str]:
        """Return the properties of a table."""


def changes_of(root: Root) -> TableChanges:
    """Choose who changes the tables: this process on a disk of this machine, Spark elsewhere."""
    if is_local_root(root):
        return ChangesOnDisk(root)
    from rankeval_spark.results.table_changes.changes_on_spark import ChangesOnSpark  # noqa: PLC0415 - imports pyspark

    return ChangesOnSpark(root)
