"""The inputs of an evaluation in this process: Arrow tables in canonical columns, and how large they may be."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.input_columns import GivenInputs

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_A_ROW: Final = 100
"""Memory of a row of an input with integer ids at the peak, its Arrow table included; measured with ten million."""

_SIZED: Final = frozenset({"pandas", "polars", "pyarrow"})
"""Libraries whose tables know their rows; a relation of DuckDB runs its query to count them, and ends its streams."""


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns."""

    name: str  # ``recommendations``, ``held_out``, ``segments``, ``train`` or ``items``
    # Canonical columns that the table has, in the order of the schema; of judgements always ``gain``, 1 where the table
    # has none. Ids are string or int64, ``model_id`` and ``list_id`` string; ``score`` double, int64 or decimal;
    # ``rank`` int32, ``gain`` and ``value`` double; ``interacted_at`` timestamp in microseconds UTC, ``published_at``
    # date32, ``categories`` a list of string, ``vector`` a list of double; segments string, those that become bands
    # double. Cells that cannot be read are NULL.
    table: pa.Table
    given: frozenset[str]  # canonical columns that the table had
    id_types: Mapping[str, str]  # type of each id, ``string`` or ``bigint``, by canonical column
    unreadable: pa.BooleanArray | None = None  # whether a cell of the row could not be read; None where every one could
    unread: tuple[str, ...] = ()  # columns of the table that nothing reads, where they are known


@dataclass(frozen=True)
class Tables(GivenInputs[Source]):
    """The inputs of one evaluation: all rows, those that cannot be used too."""

    # Whether checks judge the rows that cannot be used. Where they do not, an input without any other is refused, and
    # so is a log whose ranks count from 0.
    are_checked: bool = False

    @property
    def has_one_list(self) -> bool:
        """Whether no user has several lists of a model."""
        return "list_id" not in self.recommendations.given


def refuse_large(frames: Mapping[str, object]) -> None:
    """Refuse inputs that need more memory than the machine has.

    Raises InputError: with the number of rows, the memory that they need and the memory that there is.
    """
    refuse_rows(sum(_n_rows(frame) for frame in frames.values()))


def refuse_rows(n_rows: int) -> None:
    """Refuse rows that need more memory than the machine has.

    Raises InputError: with the number of rows, the memory that they need and the memory that there is.
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
