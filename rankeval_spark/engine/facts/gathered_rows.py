"""The rows of items, gathered in one place, become what every worker is handed: one cell of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import fields
from rankeval_spark.engine.batch.constants import pack_constants
from rankeval_spark.engine.facts.item_facts import FactSources, to_constants
from rankeval_spark.engine.facts.popularity import N_USERS, Counted

if TYPE_CHECKING:
    from datetime import date

TOTAL: Final = 0
"""The one row with what is counted already: :data:`N_USERS` of all items, totals, :data:`row_kinds.COUNTS`."""
COUNTED: Final = 1
"""A row per item of the training data, in the columns of :meth:`Counted.of`."""
CATALOGUE: Final = 2
"""A row per item of the catalogue."""


@dataclass(frozen=True)
class GatheredRows:
    """What is made of the rows; plain data that travels to the worker.

    Attributes
    ----------
    needs : frozenset of str
        Facts and totals that follow from the rows, names of :mod:`measures.required_facts`.
    has_items : bool
        Whether the rows have the catalogue; where they do not, it has the items of the training data.
    evaluation_date : date or None
        Day at which the age of items is taken.
    """

    needs: frozenset[str]
    has_items: bool
    evaluation_date: date | None

    def to_cell(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make the row of :func:`constants.pack_constants`.

        Parameters
        ----------
        batches : iterable of pa.RecordBatch
            Rows by :data:`row_kinds.KIND`: one of :data:`TOTAL`, any number of :data:`COUNTED` and :data:`CATALOGUE`.

        Raises
        ------
        RefusedError
            The catalogue has an item twice, or vectors of two lengths.
        """
        rows = pa.Table.from_batches(list(batches))
        kind = to_numpy(rows[row_kinds.KIND])
        total, counted, items = (rows.filter(to_arrow(kind == one)) for one in (TOTAL, COUNTED, CATALOGUE))
        constants = to_constants(self._sources(total, counted, items), needs=self.needs)
        if C.TOTALS in rows.column_names:
            known = fields(in_one_piece(total[C.TOTALS]))
            constants[C.TOTALS] = _structs({**known, **fields(constants[C.TOTALS])} if C.TOTALS in constants else known)
        if row_kinds.COUNTS in rows.column_names:
            constants[row_kinds.COUNTS] = in_one_piece(total[row_kinds.COUNTS])
        return pack_constants(constants)

    def _sources(self, total: pa.Table, counted: pa.Table, items: pa.Table) -> FactSources:
        names = counted.column_names
        n_users = int(to_numpy(total[N_USERS], null=0)[0]) if N_USERS in names else 0
        counts = Counted.of(counted, n_users=n_users) if N_USERS in names else None
        return FactSources(counts, items if self.has_items else None, self.evaluation_date)


def _structs(cells: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(cells.values()), names=list(cells))
