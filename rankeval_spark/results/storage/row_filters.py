"""Conditions that rows of a table meet, for every reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from rankeval_spark.errors import ConfigError, Fault

Filters: TypeAlias = Sequence[tuple[str, str, Any]]
"""Conditions that rows meet, all of them: column, ``=`` or ``in``, value or values."""


def require_columns(table: str, where: Filters, columns: Iterable[str]) -> None:
    """Refuse conditions on columns that a table does not have."""
    known = list(columns)
    unknown = sorted({name for name, _, _ in where} - set(known))
    if unknown:
        raise ConfigError(Fault(f"filter of {table}", ", ".join(unknown), f"columns: {', '.join(known)}"))
