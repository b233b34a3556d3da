"""Inputs that are too large for this process are refused before they are read, where their size is known."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from typing import Final

from rankeval_spark.errors import Fault, InputError

BYTES_A_ROW: Final = 100
"""Memory of a row of an input with integer ids at the peak, its Arrow table included; measured with ten million."""

_SIZED: Final = frozenset({"pandas", "polars", "pyarrow"})
"""Libraries whose tables know their rows; a relation of DuckDB runs its query to count them, and ends its streams."""


def refuse_large(frames: Mapping[str, object]) -> None:
    """Refuse inputs that need more memory than the machine has.

    Raises
    ------
    InputError
        With the number of rows, the memory that they need and the memory that there is.
    """
    refuse_rows(sum(_n_rows(frame) for frame in frames.values()))


def refuse_rows(n_rows: int) -> None:
    """Refuse rows that need more memory than the machine has.

    Raises
    ------
    InputError
        With the number of rows, the memory that they need and the memory that there is.
    """
    needed, there = n_rows * BYTES_A_ROW, physical_bytes()
    if needed > there:
        found = f"{n_rows:,} rows, which need some {needed / 1e9:.0f} GB"
        expected = f"what fits into the {there / 1e9:.0f} GB of this machine"
        raise InputError(Fault("evaluate(recommendations=)", found, expected, "give DataFrames of Spark instead"))


def physical_bytes() -> float:
    """Memory of the machine, or the limit of this process (``ulimit -v``) if that is lower; infinite if unknown."""
    try:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        there = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return there if limit == resource.RLIM_INFINITY else min(there, float(limit))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _n_rows(frame: object) -> int:
    """Rows of an input, 0 where they are unknown before it is read."""
    if type(frame).__module__.partition(".")[0] not in _SIZED:
        return 0
    shape = getattr(frame, "shape", ())
    return shape[0] if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else 0
