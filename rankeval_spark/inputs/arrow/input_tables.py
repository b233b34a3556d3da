"""The inputs of an evaluation in this process: Arrow tables in their canonical columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark.inputs.input_columns import GivenInputs

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns.

    Attributes
    ----------
    name : str
        ``recommendations``, ``held_out``, ``segments``, ``train`` or ``items``.
    table : pa.Table
        Canonical columns that the table has, in the order of the schema; of judgements always ``gain``, 1 where the
        table has none. Ids are string or int64, ``model_id`` and ``list_id`` string; ``score`` double, int64 or
        decimal; ``rank`` int32, ``gain`` and ``value`` double; ``interacted_at`` timestamp in microseconds UTC,
        ``published_at`` date32, ``categories`` a list of string, ``vector`` a list of double; segments string, those
        that become bands double. Cells that cannot be read are NULL.
    given : frozenset of str
        Canonical columns that the table had.
    id_types : mapping
        Type of each id, ``string`` or ``bigint``, by canonical column.
    unreadable : pa.BooleanArray or None
        Whether a cell of the row could not be read; None where every one could.
    """

    name: str
    table: pa.Table
    given: frozenset[str]
    id_types: Mapping[str, str]
    unreadable: pa.BooleanArray | None = None


@dataclass(frozen=True)
class Tables(GivenInputs[Source]):
    """The inputs of one evaluation: all rows, those that cannot be used too.

    Attributes
    ----------
    are_checked : bool
        Whether checks judge the rows that cannot be used. Where they do not, an input without any other is refused, and
        so is a log whose ranks count from 0.
    """

    are_checked: bool = False

    @property
    def has_one_list(self) -> bool:
        """Whether no user has several lists of a model."""
        return "list_id" not in self.recommendations.given
