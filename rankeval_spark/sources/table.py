"""A table as it was found, before anything is renamed, cast or filtered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT: Final = "_corrupt_record"
"""Column that holds a line of csv or json which could not be split into its columns, and is NULL for all others."""


@dataclass(frozen=True)
class Table:
    """A table as it was found.

    Attributes
    ----------
    frame : DataFrame
        Its rows; csv and json as text, with the column :data:`CORRUPT`.
    columns : tuple of str
        The columns it has by itself.
    location : str
        Absolute path or table name.
    version : int or None
        Pinned version (Delta only).
    """

    frame: DataFrame
    columns: tuple[str, ...]
    location: str
    version: int | None = None
