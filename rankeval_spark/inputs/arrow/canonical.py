"""Rows of a table in canonical columns: names, cells, events, whole lists and broken lines of an input.

The one place that says what a row means, in this process and in the workers of Spark.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import POSITION, FrameInputs, JudgementRows, LogRows
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import in_one_piece, lengths_of, list_column, to_arrow, to_texts
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.arrow import nested_lists, texts
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_text, plain
from rankeval_spark.inputs.arrow.cells import Cells, read_cells, read_gains
from rankeval_spark.inputs.input_columns import CORRUPT, IDS, IS_UNPARSABLE, RAW, missing_faults
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import Gains, InputRows, NestedItems
    from rankeval_spark.schemas import Field, Schema

MOST_LISTS: Final = 1000
"""Lists that are written as rows of items at once."""

_OF_ONE_INPUT: Final = ("list_separator", "ranks_from", "gains", "nested")
"""Settings that only one of the inputs has."""


@dataclass(frozen=True)
class Reading:
    """Settings by which the rows of one input become canonical columns."""

    where: str  # place of the input, for messages
    schema: Schema
    # Name in the table, by canonical name; other columns have their canonical name
    renames: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Key that names a column, by canonical name, where it is not ``columns``
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)  # ids to cast: ``string`` or ``integer``
    list_separator: str | None = None  # separates the elements of a list that is text; None: such text is a JSON array
    ranks_from: int = 1  # rank of the first item of a list in the table, 0 or 1; canonical ranks count from 1
    gains: Gains | None = None  # how the column of ``gain`` becomes gains, where it holds events, ratings or seconds
    nested: NestedItems | None = None  # columns of items and scores, where a row of the table has several items
    time_zone: str = UTC  # zone of days, and of times without one
    is_of_pandas: bool = False  # whether pandas has the table, for messages

    @classmethod
    def from_rows(cls, where: str, schema: Schema, rows: InputRows, time_zone: str = UTC) -> Reading:
        """Build the reading of an input from what a config or a call says about its rows."""
        given = {key: getattr(rows, key) for key in _OF_ONE_INPUT if hasattr(rows, key)}
        return cls(where, schema, rows.renames, rows.places, rows.types, time_zone=time_zone, **given)

    @classmethod
    def from_frame(
        cls, name: str, schema: Schema, columns: pa.Schema, rows: InputRows | None = None, time_zone: str = UTC
    ) -> Reading:
        """Build the reading of a frame of a call, whose columns have canonical names where ``rows`` gives no others.

        Raises InputError: its rows are lists that also have ranks, or whose items have no name.
        """
        rows = rows or getattr(FrameInputs(), schema.name)
        if isinstance(rows, LogRows | JudgementRows):
            rows = rows.model_copy(update={"nested": nested_lists.nested_of(columns, name, rows)})
        return cls.from_rows(name, schema, rows, time_zone)

    @property
    def names(self) -> dict[str, str]:
        """Name in the table of each canonical column."""
        return {name: self.renames.get(name, name) for name in self.schema.field_names()}

    def column_faults(self, known: Sequence[str]) -> list[Fault]:
        """Find required columns that a table with one row per item does not have."""
        own = [name for name in known if name != CORRUPT]
        return missing_faults(own, self.names, self.renames, self.where, self.places)

    def to_items(self, table: pa.Table) -> pa.Table:
        """Write a table with one row per item, where its rows are lists.

        Raises InputError: columns of lists that are missing or hold no arrays.
        """
        return table if self.nested is None else nested_lists.to_items(table, self.nested, self.where)

    def cells(self, table: pa.Table, faults: Iterable[Fault] = ()) -> dict[str, Cells]:
        """Read those canonical columns that a table with one row per item has.

        Raises InputError: columns of a type that cannot be read; all of them, after the other ``faults``.
        """
        found: dict[str, Cells] = {}
        wrong = [*faults]
        for name, own in self.names.items():
            if own in table.column_names:
                try:
                    found[name] = self._cells(self.schema.field(name), table[own])
                except InputError as error:
                    wrong.extend(error.faults)
        if wrong:
            raise InputError(*wrong)
        return found

    def _cells(self, field: Field, column: pa.ChunkedArray) -> Cells:
        if field.name == C.GAIN and self.gains is not None:
            return read_gains(column, self.gains, field, where=self.where)
        return read_cells(
            column,
            field,
            where=self.where,
            name=self.names[field.name],
            id_fix=self._id_fix(field, column.type),
            wanted=self.types.get(field.name),
            separator=self.list_separator,
            ranks_from=self.ranks_from,
            time_zone=self.time_zone,
        )

    def _id_fix(self, field: Field, kind: pa.DataType) -> str:
        """Return how ids that are neither text nor whole numbers of 64 bits become so."""
        if is_binary(kind):
            decoded = f", such as frame[{field.name!r}].str.decode('utf-8')" if self.is_of_pandas else ""
            return f"bytes are read as UUIDs, where all have 16 of them: write other ids as text{decoded}"
        is_exact, is_float = pa.types.is_integer(kind) or pa.types.is_decimal(kind), pa.types.is_floating(kind)
        if self.where.startswith("inputs.") and field.name in IDS and not (is_float and field.name in self.types):
            of_others = ", and for the other inputs too" if is_exact else ""
            return f"write {self.where}.types: {{{field.name}: string}}{of_others}"
        if is_exact:
            return "cast it to text, in the other tables too"
        if self.is_of_pandas and is_float:
            astype = f"frame.astype({{{field.name!r}: 'Int64'}})"
            return f"write {astype}, because a missing id makes floats of whole numbers in pandas"
        return "cast it to text or to whole numbers"

    def rows(self, table: pa.Table) -> pa.Table:
        """Read a table into canonical columns, then :data:`IS_UNPARSABLE`, and :data:`RAW` where it is there.

        A line of text that could not be split has values in wrong columns: its keys become NULL.
        """
        flat = self.to_items(table)
        cells = self.cells(flat)
        columns = {name: each.values for name, each in cells.items()}
        marks = [each.unreadable for each in cells.values() if each.unreadable is not None]
        if CORRUPT in flat.column_names:
            is_broken = flat[CORRUPT].is_valid()
            marks.append(is_broken)
            columns |= _without_keys(columns, self.schema, is_broken)
        none = pa.chunked_array([to_arrow(np.zeros(flat.num_rows, dtype=np.bool_))])
        columns[IS_UNPARSABLE] = reduce(pc.or_, marks) if marks else none
        if RAW in flat.column_names:
            columns[RAW] = plain(flat[RAW]) if self.nested is None else _raw_items(flat, self.nested)
        return pa.Table.from_pydict(columns)

    def lists(self, table: pa.Table) -> pa.Table:
        """Read a table of whole lists: the canonical columns of a list, then the arrays of its items and scores.

        The arrays are :data:`row_kinds.LISTED_ITEMS` and, where there are scores, :data:`row_kinds.LISTED_SCORES`. A
        list without an item is left out.
        """
        if self.nested is None:
            raise ValueError
        arrays = nested_lists.arrays_of(table, self.nested, self.where)
        cells = self.cells(table.select(nested_lists.columns_of_lists(table.column_names, self.nested)))
        columns = {name: each.values for name, each in cells.items()}
        if CORRUPT in table.column_names:
            columns |= _without_keys(columns, self.schema, table[CORRUPT].is_valid())
        for name, listed in ((C.ITEM_ID, row_kinds.LISTED_ITEMS), (C.SCORE, row_kinds.LISTED_SCORES)):
            if name in arrays:
                elements = self._cells(self.schema.field(name), pa.chunked_array([pc.list_flatten(arrays[name])]))
                columns[listed] = list_column(lengths_of(arrays[name]), in_one_piece(elements.values))
        return pa.Table.from_pydict(columns).filter(to_arrow(lengths_of(arrays[C.ITEM_ID]) > 0))


def _without_keys(
    columns: Mapping[str, pa.ChunkedArray], schema: Schema, is_broken: pa.ChunkedArray
) -> dict[str, pa.ChunkedArray]:
    return {name: texts.null_unless(columns[name], pc.invert(is_broken)) for name in schema.key if name in columns}


def _raw_items(flat: pa.Table, nested: NestedItems) -> pa.ChunkedArray:
    """Add item, score and place to the JSON of the other columns of their list; a broken line stays as it is."""
    of_list = plain(flat[RAW])
    parts: list[pa.Array | pa.ChunkedArray | str] = [pc.utf8_slice_codeunits(of_list, 0, -1)]
    for name in (*nested.arrays.values(), POSITION):
        if name in flat.column_names:
            values = in_one_piece(texts.to_text(plain(flat[name])))
            if is_text(flat[name].type):
                coded = values.dictionary_encode()
                values = pc.take(to_texts(map(json.dumps, coded.dictionary.to_pylist())), coded.indices)
            parts += [f", {json.dumps(name)}: ", pc.coalesce(values, "null")]
    whole = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(flat[CORRUPT].is_valid(), of_list, whole) if CORRUPT in flat.column_names else whole


def read_rows(batches: Iterable[pa.RecordBatch], reading: Reading, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read batches of a table into canonical rows, in the order of ``names``."""
    for batch in batches:
        most = batch.num_rows if reading.nested is None else MOST_LISTS
        for start in range(0, batch.num_rows, most):
            part = pa.Table.from_batches([batch.slice(start, most)])
            yield from reading.rows(part).select(names).combine_chunks().to_batches()


def read_lists(batches: Iterable[pa.RecordBatch], reading: Reading, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read batches of a table of whole lists, in the order of ``names``."""
    for batch in batches:
        yield from reading.lists(pa.Table.from_batches([batch])).select(names).combine_chunks().to_batches()
