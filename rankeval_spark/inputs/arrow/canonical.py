"""Rows of a table in canonical columns: names, cells, events, whole lists and broken lines of an input.

The one place that says what a row means, in this process and in the workers of Spark.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import (
    POSITION,
    FrameInputs,
    JudgementRows,
    LogRows,
    Nested,
    NestedItems,
    NestedJudgements,
    column_and_field,
)
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    combine_chunks,
    lengths_of,
    list_column,
    parent_indices,
    to_arrow,
    to_numpy,
    to_texts,
)
from rankeval_spark.engine.batch import flatten_lists
from rankeval_spark.errors import Fault, InputError, shortened
from rankeval_spark.inputs.arrow import texts
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_text, spark_name, to_plain
from rankeval_spark.inputs.arrow.cells import Cells, read_cells, read_gains
from rankeval_spark.inputs.input_columns import (
    CORRUPT,
    IDS,
    IS_UNPARSABLE,
    RAW,
    column_fault,
    missing_faults,
    required_columns,
)
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.inputs import Gains, InputRows
    from rankeval_spark.schemas import Field, Schema

MAX_LISTS: Final = 1000
"""Lists that are written as rows of items at once."""

RECOMMENDATIONS: Final = "recommendations"
"""Column of structs that ``recommendForAllUsers`` of MLlib writes."""

SCORE_FIELDS: Final = (C.SCORE, "rating")
"""Fields of such a struct that are its score; MLlib's is ``rating``."""

_EXPECTED: Final = "an array, a field of an array of structs, or text with a JSON array or a separator"

_SEPARATORS: Final = ("|", ";", ",", "\t", " ")
"""Likely separators, those first next to which others may stand too."""


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
        of_one_input = ("list_separator", "ranks_from", "gains", "nested")
        given = {key: getattr(rows, key) for key in of_one_input if hasattr(rows, key)}
        return cls(where, schema, rows.renames, rows.places, rows.types, time_zone=time_zone, **given)

    @classmethod
    def from_frame(
        cls, name: str, schema: Schema, columns: pa.Schema, rows: InputRows | None = None, time_zone: str = UTC
    ) -> Reading:
        """Build the reading of a frame of a call; its columns have canonical names where ``rows`` gives no others."""
        rows = rows or getattr(FrameInputs(), schema.name)
        if isinstance(rows, LogRows | JudgementRows):
            rows = rows.model_copy(update={"nested": find_nested(columns, name, rows)})
        return cls.from_rows(name, schema, rows, time_zone)

    @property
    def names(self) -> dict[str, str]:
        """Each canonical column's name in the table."""
        return {name: self.renames.get(name, name) for name in self.schema.field_names()}

    def column_faults(self, columns: Sequence[str]) -> list[Fault]:
        """Find required columns that a table with one row per item does not have."""
        columns = [name for name in columns if name != CORRUPT]
        required = required_columns(self.schema)
        return missing_faults(columns, self.names, self.renames, self.where, self.places, required=required)

    def to_items(self, table: pa.Table) -> pa.Table:
        """Write a table with one row per item, where its rows are lists: its other columns, item, score, position.

        The columns of the items have the names by which the config calls the arrays. A list whose arrays differ in
        length has no scores, or gains, so that all of its items are counted as unusable.
        """
        if self.nested is None:
            return table
        arrays = item_arrays(table, self.nested, self.where)
        paired = C.SCORE if C.SCORE in arrays else C.GAIN  # of a log, or of judgements
        flat = flatten_lists(arrays[C.ITEM_ID], arrays.get(paired))
        row = to_arrow(flat.row)  # (items,) row of the list of each item
        columns = {name: pc.take(to_plain(table[name]), row) for name in list_columns(table.column_names, self.nested)}
        columns[self.nested.items] = flat.items
        if flat.scores is not None:
            columns[self.nested.arrays[paired]] = flat.scores
        return pa.Table.from_pydict({**columns, POSITION: to_arrow(flat.position.astype(np.int32))})

    def read_columns(self, table: pa.Table, faults: Iterable[Fault] = ()) -> dict[str, Cells]:
        """Read the canonical columns of a table with one row per item; its faults are raised with those given."""
        cells: dict[str, Cells] = {}
        all_faults = [*faults]
        for name, table_column in self.names.items():
            if table_column in table.column_names:
                try:
                    cells[name] = self._read_column(self.schema.field(name), table[table_column])
                except InputError as error:
                    all_faults.extend(error.faults)
        if all_faults:
            raise InputError(*all_faults)
        return cells

    def _read_column(self, field: Field, column: pa.ChunkedArray) -> Cells:
        """Read a column of a table as one of the schema."""
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
        """Return the fix for ids that are neither text nor whole numbers of 64 bits."""
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

    def read_rows(self, table: pa.Table) -> pa.Table:
        """Read a table into canonical columns, then :data:`IS_UNPARSABLE`, and :data:`RAW` where the table has it."""
        flat = self.to_items(table)
        cells = self.read_columns(flat)
        columns = {name: column.values for name, column in cells.items()}
        is_unparsable = pa.chunked_array([to_arrow(np.zeros(flat.num_rows, dtype=np.bool_))])
        for column in cells.values():
            if column.unreadable is not None:
                is_unparsable = pc.or_(is_unparsable, column.unreadable)
        if CORRUPT in flat.column_names:
            is_unparsable = pc.or_(is_unparsable, flat[CORRUPT].is_valid())
            columns |= self._drop_keys_of_broken_lines(columns, flat[CORRUPT])
        columns[IS_UNPARSABLE] = is_unparsable
        if RAW in flat.column_names:
            columns[RAW] = to_plain(flat[RAW]) if self.nested is None else _complete_raw_items(flat, self.nested)
        return pa.Table.from_pydict(columns)

    def _drop_keys_of_broken_lines(
        self, columns: Mapping[str, pa.ChunkedArray], corrupt: pa.ChunkedArray
    ) -> dict[str, pa.ChunkedArray]:
        """Return the key columns, NULL where a line of text could not be split into columns."""
        keys = [name for name in self.schema.key if name in columns]
        return {name: texts.null_unless(columns[name], corrupt.is_null()) for name in keys}

    def read_lists(self, table: pa.Table) -> pa.Table:
        """Read a table of lists that have an item: columns of a list, then the arrays :data:`row_kinds.LISTED`."""
        if self.nested is None:
            raise ValueError
        arrays = item_arrays(table, self.nested, self.where)
        cells = self.read_columns(table.select(list_columns(table.column_names, self.nested)))
        columns = {name: each.values for name, each in cells.items()}
        if CORRUPT in table.column_names:
            columns |= self._drop_keys_of_broken_lines(columns, table[CORRUPT])
        for name, listed in ((C.ITEM_ID, row_kinds.LISTED_ITEMS), (C.SCORE, row_kinds.LISTED_SCORES)):
            if name in arrays:
                elements = self._read_column(self.schema.field(name), pa.chunked_array([pc.list_flatten(arrays[name])]))
                columns[listed] = list_column(lengths_of(arrays[name]), combine_chunks(elements.values))
        return pa.Table.from_pydict(columns).filter(to_arrow(lengths_of(arrays[C.ITEM_ID]) > 0))


def _complete_raw_items(flat: pa.Table, nested: NestedItems) -> pa.ChunkedArray:
    """Add item, score and place to the JSON of the other columns of their list; a broken line stays as it is."""
    list_json = to_plain(flat[RAW])  # (items,)
    parts: list[pa.Array | pa.ChunkedArray | str] = [pc.utf8_slice_codeunits(list_json, 0, -1)]
    for name in (*nested.arrays.values(), POSITION):
        if name in flat.column_names:
            values = combine_chunks(texts.to_text(to_plain(flat[name])))
            if is_text(flat[name].type):
                coded = values.dictionary_encode()
                values = pc.take(to_texts(map(json.dumps, coded.dictionary.to_pylist())), coded.indices)
            parts += [f", {json.dumps(name)}: ", pc.coalesce(values, "null")]
    whole = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(flat[CORRUPT].is_valid(), list_json, whole) if CORRUPT in flat.column_names else whole


def read_batches(
    batches: Iterable[pa.RecordBatch], reading: Reading, names: Sequence[str], *, as_lists: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read batches of a table into canonical rows, or whole lists, in the order of ``names``."""
    for batch in batches:
        n_rows = batch.num_rows if as_lists or reading.nested is None else MAX_LISTS
        for start in range(0, batch.num_rows, n_rows):
            part = pa.Table.from_batches([batch.slice(start, n_rows)])
            read = reading.read_lists(part) if as_lists else reading.read_rows(part)
            yield from read.select(names).combine_chunks().to_batches()


def find_nested(schema: pa.Schema, where: str, rows: LogRows | JudgementRows) -> NestedItems | None:
    """Return how a table of a caller has several items a row; None where rows are items.

    What ``rows`` does not say is recognised by types. Arrays of structs without an item, or next to ranks, are refused.
    """
    types: Mapping[str, pa.DataType] = {field.name: field.type for field in schema}
    item, score, rank, gain = (rows.columns.get(name, name) for name in (C.ITEM_ID, C.SCORE, C.RANK, C.GAIN))
    is_log, found = isinstance(rows, LogRows), rows.nested_items
    structs = types.get(RECOMMENDATIONS, pa.null())
    if found is None and item in types:
        if is_list(types[item]):
            scores = score if score in types else None
            has_gains = not is_log and gain in types and is_list(types[gain])
            judged = NestedJudgements(items=item, gains=gain if has_gains else None)
            found = Nested(items=item, scores=scores) if is_log else judged
    elif found is None and is_log and is_list(structs):
        fields = [field.name for field in structs.value_type] if pa.types.is_struct(structs.value_type) else []
        if C.ITEM_ID not in fields:
            expected = f"structs with the field {C.ITEM_ID} [, {C.SCORE} or rating]"
            fix = 'name the fields so, or give arrays as columns item_id and score: select("recommendations.movieId")'
            raise InputError(Fault(where, f"column {RECOMMENDATIONS!r} of type {spark_name(structs)}", expected, fix))
        scores = next((f"{RECOMMENDATIONS}.{name}" for name in SCORE_FIELDS if name in fields), None)
        found = Nested(items=f"{RECOMMENDATIONS}.{C.ITEM_ID}", scores=scores)
    ranks_from = rows.ranks_from if isinstance(rows, LogRows) else 1
    if is_log and found is not None and (rank in types or ranks_from != 1):
        ranks = f"a column {rank!r}" if rank in types else f"ranks_from={ranks_from}"
        expected = "no ranks, because the order of the items in their array is the rank"
        raise InputError(Fault(where, f"arrays of items and {ranks}", expected, "leave it out"))
    return found


def item_arrays(table: pa.Table, nested: NestedItems, where: str) -> dict[str, pa.Array]:
    """Return the arrays of a log with one row per list, by their canonical column; other columns are refused."""
    faults: list[Fault] = []
    arrays: dict[str, pa.Array] = {}
    for name, path in nested.arrays.items():
        try:
            arrays[name] = _read_array(table, path, nested.separator, f"{where}.{nested.places[name]}")
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    return arrays


def list_columns(names: Sequence[str], nested: NestedItems) -> list[str]:
    """Return the columns of a table that an item has of its list."""
    return [name for name in names if not nested.has_item_values(name, names)]


def _read_array(
    table: pa.Table,
    path: str,  # a column of arrays, or a field of one of structs, such as ``recommendations.item_id``
    separator: str | None,  # of the elements, where they are text; None for JSON
    where: str,
) -> pa.Array:
    """Return a column of arrays as lists, one for each row of the table."""
    name, field = column_and_field(path, table.column_names)
    if name not in table.column_names:
        raise InputError(column_fault(where, name, [each for each in table.column_names if each != CORRUPT]))
    column = to_plain(table[name])
    if is_text(column.type):
        corrupt = table[CORRUPT] if CORRUPT in table.column_names else None
        if separator is not None and field is None:
            return _split_lists(column, separator, corrupt)
        column = column if corrupt is None else pc.if_else(corrupt.is_valid(), "", column)
        _require_json(column, path, where)
        return combine_chunks(texts.to_text_lists(column, field, broken=[None]))
    lists = combine_chunks(column)
    if field is not None:
        lists = _select_field(lists, field)
    if lists is None or not is_list(lists.type) or pa.types.is_nested(lists.type.value_type):
        fix = "" if separator is None else "read the column as text, with the zeros that its ids begin with"
        raise InputError(Fault(where, f"{path!r} of type {spark_name(table[name].type)}", _EXPECTED, fix))
    return lists


def _select_field(lists: pa.Array, field: str) -> pa.Array | None:
    """Return lists of one field of the structs in lists, NULL for a NULL struct; None where there is no such field."""
    element = lists.type.value_type if is_list(lists.type) else None
    if element is None or not pa.types.is_struct(element) or element.get_field_index(field) < 0:
        return None
    values = pc.struct_field(pc.list_flatten(lists), field)
    return pa.LargeListArray.from_arrays(to_arrow(np.append(0, np.cumsum(lengths_of(lists)))), values)


def _split_lists(column: pa.ChunkedArray, separator: str, corrupt: pa.ChunkedArray | None) -> pa.Array:
    """Split texts into lists; a line that could not be split into columns becomes one NULL, which is counted."""
    if corrupt is None:
        return combine_chunks(texts.split(column, separator))
    is_broken = combine_chunks(corrupt.is_valid())
    one_element = "+" if "-" in separator else "-"
    lists = combine_chunks(texts.split(pc.if_else(is_broken, one_element, column), separator))
    is_kept = pc.invert(pc.take(is_broken, to_arrow(parent_indices(lists))))
    elements = texts.null_unless(pc.list_flatten(lists), is_kept)
    return list_column(lengths_of(lists), elements, is_null=to_numpy(lists.is_null()))


def _require_json(column: pa.ChunkedArray, path: str, where: str) -> None:
    """Refuse texts if none begins as a JSON array does, with the separator that they likely have."""
    trimmed = texts.trim(column)
    trimmed = trimmed.filter(pc.not_equal(trimmed, ""))
    if not len(trimmed) or pc.any(pc.match_substring_regex(column, r"^\s*\[")).as_py():
        return
    first = trimmed[0].as_py()
    separator = next((each for each in _SEPARATORS if each in first), _SEPARATORS[-1])
    input_, _, in_nested = where.rpartition(".nested.")
    if input_.startswith("inputs."):
        fix = f"write {input_}.nested.separator: {json.dumps(separator)}"
    else:
        given = {in_nested: path, "separator": separator}
        fix = f"write inputs={ {input_.partition('[')[0]: {'nested': given}}!r}"
    raise InputError(Fault(where, f"{path!r} with text such as {shortened(first)!r}", _EXPECTED, fix))
