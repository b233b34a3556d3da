"""Logs with one row per list: which columns have the items, and the same log with one row per item."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import POSITION, Nested, column_and_field
from rankeval_spark.engine.batch.arrays import in_one_piece, lengths_of, to_arrow
from rankeval_spark.engine.batch.listed_rows import flat_lists
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.arrow import texts
from rankeval_spark.inputs.arrow.arrow_types import is_list, is_text, plain, spark_name
from rankeval_spark.inputs.input_columns import CORRUPT, column_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

RECOMMENDATIONS: Final = "recommendations"
"""Column of structs that ``recommendForAllUsers`` of MLlib writes."""

SCORE_FIELDS: Final = (C.SCORE, "rating")
"""Fields of such a struct that are its score; MLlib's is ``rating``."""

EXPECTED: Final = "an array, a field of an array of structs, or text with a JSON array"


def nested_of(schema: pa.Schema, where: str, *, ranks_from: int) -> Nested | None:
    """Recognise a table whose rows are whole lists, by the types of its columns; None where rows are items.

    `where`: name of the input, for messages. `ranks_from`: rank of the first item of a list, as the caller gives it;
    arrays have no ranks, so only 1 is accepted.

    Raises InputError: the items are structs without an item, or there are ranks in addition to the order of the arrays.
    """
    types: Mapping[str, pa.DataType] = {field.name: field.type for field in schema}
    found = None
    if C.ITEM_ID in types:
        if is_list(types[C.ITEM_ID]):
            found = Nested(items=C.ITEM_ID, scores=C.SCORE if C.SCORE in types else None)
    elif is_list(types.get(RECOMMENDATIONS, pa.null())):
        found = _of_structs(where, types[RECOMMENDATIONS])
    if found is not None and (C.RANK in types or ranks_from != 1):
        given = "a column 'rank'" if C.RANK in types else f"ranks_from={ranks_from}"
        expected = "no ranks, because the order of the items in their array is the rank"
        raise InputError(Fault(where, f"arrays of items and {given}", expected, "leave it out"))
    return found


def _of_structs(where: str, kind: pa.DataType) -> Nested:
    element = kind.value_type
    fields: Collection[str] = [field.name for field in element] if pa.types.is_struct(element) else ()
    score = next((name for name in SCORE_FIELDS if name in fields), None)
    if C.ITEM_ID not in fields:
        expected = f"structs with the field {C.ITEM_ID} [, {C.SCORE} or rating]"
        fix = 'name the fields so, or give arrays as columns item_id and score: select("recommendations.movieId")'
        found = f"column {RECOMMENDATIONS!r} of type {spark_name(kind)}"
        raise InputError(Fault(where, found, expected, fix))
    return Nested(
        items=f"{RECOMMENDATIONS}.{C.ITEM_ID}", scores=None if score is None else f"{RECOMMENDATIONS}.{score}"
    )


def arrays_of(table: pa.Table, nested: Nested, where: str) -> dict[str, pa.Array]:
    """Return the arrays of a log with one row per list, by the canonical column of their elements.

    Raises InputError: columns that are missing or hold neither arrays nor text; all of them.
    """
    faults: list[Fault] = []
    found: dict[str, pa.Array] = {}
    for name, key in nested.places.items():
        if name in nested.renames:
            try:
                found[name] = _array(table, nested.renames[name], f"{where}.{key}")
            except InputError as error:
                faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    return found


def to_items(table: pa.Table, nested: Nested, where: str) -> pa.Table:
    """Write a log with one row per item: its other columns, then item, score and :data:`POSITION`.

    The columns of the items have the names by which the config calls the arrays. A list whose arrays differ in length
    has no scores, so that all of its items are counted as unusable. `where`: name of the input, for messages.

    Raises InputError: columns that are missing or hold no arrays; all of them.
    """
    arrays = arrays_of(table, nested, where)
    flat = flat_lists(arrays[C.ITEM_ID], arrays.get(C.SCORE))
    row = to_arrow(flat.row)
    columns = {name: pc.take(plain(table[name]), row) for name in columns_of_lists(table.column_names, nested)}
    columns[nested.items] = flat.items
    if nested.scores is not None and flat.scores is not None:
        columns[nested.scores] = flat.scores
    return pa.Table.from_pydict({**columns, POSITION: to_arrow(flat.position.astype(np.int32))})


def columns_of_lists(names: Sequence[str], nested: Nested) -> list[str]:
    """Return the columns of a table that an item has of its list."""
    return [name for name in names if not nested.is_of_items(name, names)]


def _array(table: pa.Table, path: str, where: str) -> pa.Array:
    name, field = column_and_field(path, table.column_names)
    if name not in table.column_names:
        raise InputError(column_fault(where, name, [each for each in table.column_names if each != CORRUPT]))
    column = plain(table[name])
    if is_text(column.type):
        return _of_json(column, field, table[CORRUPT] if CORRUPT in table.column_names else None)
    lists = in_one_piece(column)
    element = lists.type.value_type if is_list(lists.type) else None
    if element is not None and field is not None:
        has_field = pa.types.is_struct(element) and element.get_field_index(field) >= 0
        lists = _field_of(lists, field) if has_field else lists
        element = lists.type.value_type if has_field else None
    if element is None or pa.types.is_nested(element):
        raise InputError(Fault(where, f"{path!r} of type {spark_name(table[name].type)}", EXPECTED))
    return lists


def _of_json(column: pa.ChunkedArray, field: str | None, corrupt: pa.ChunkedArray | None) -> pa.Array:
    """Read JSON arrays as lists of text.

    Text that is none, or of a line that could not be split, becomes a list of one NULL, which is counted as unusable.
    """
    if corrupt is not None:
        column = pc.if_else(corrupt.is_valid(), "", column)
    return in_one_piece(texts.to_text_lists(column, field, broken=[None]))


def _field_of(lists: pa.Array, field: str) -> pa.Array:
    """Return a field of the structs in lists; that of a NULL struct is NULL."""
    values = pc.struct_field(pc.list_flatten(lists), field)
    return pa.LargeListArray.from_arrays(to_arrow(np.append(0, np.cumsum(lengths_of(lists)))), values)
