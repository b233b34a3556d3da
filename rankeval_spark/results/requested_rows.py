"""What is requested of the rows of a table, for every reader: conditions, an order, measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from rankeval_spark.errors import ConfigError, Fault

Filters: TypeAlias = Sequence[tuple[str, str, Any]]
"""Conditions that rows meet, all of them: column, ``=`` or ``in``, value or values."""

Order: TypeAlias = Sequence[tuple[str, str]]
"""Columns to sort by, each with ``asc`` or ``desc``; NULL comes last in both."""


class Requested(NamedTuple):
    """A measure at a cutoff that a run computed, and its column in ``user_metrics``; None where users have no value."""

    measure: str
    k: int
    column: str | None


def require_columns(table: str, where: Filters, columns: Iterable[str]) -> None:
    """Refuse conditions on columns that a table does not have."""
    known = list(columns)
    unknown = sorted({name for name, _, _ in where} - set(known))
    if unknown:
        raise ConfigError(Fault(f"filter of {table}", ", ".join(unknown), f"columns: {', '.join(known)}"))
