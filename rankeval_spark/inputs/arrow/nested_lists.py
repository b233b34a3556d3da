"""Logs with one row per list: which columns have the items, and the same log with one row per item."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import POSITION, JudgementRows, LogRows, Nested, NestedItems, column_and_field
from rankeval_spark.engine.arrays import in_one_piece, lengths_of, list_column, owners_of, to_arrow, to_numpy
from rankeval_spark.engine.batch import flat_lists
from rankeval_spark.errors import Fault, InputError, shortened
from rankeval_spark.inputs.arrow import texts
from rankeval_spark.inputs.arrow.arrow_types import is_list, is_text, plain, spark_name
from rankeval_spark.inputs.input_columns import CORRUPT, column_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

RECOMMENDATIONS: Final = "recommendations"
"""Column of structs that ``recommendForAllUsers`` of MLlib writes."""

SCORE_FIELDS: Final = (C.SCORE, "rating")
"""Fields of such a struct that are its score; MLlib's is ``rating``."""

EXPECTED: Final = "an array, a field of an array of structs, or text with a JSON array or a separator"

_SEPARATORS: Final = ("|", ";", ",", "\t", " ")
"""Likely separators, those first next to which others may stand too."""


def nested_of(schema: pa.Schema, where: str, rows: LogRows | JudgementRows) -> NestedItems | None:
    """Return how a table of a caller has several items a row; None where rows are items.

    What ``rows`` does not say is recognised by the types of the columns. `where`: name of the input, for messages.

    Raises InputError: the items are structs without an item, or there are ranks in addition to the order of the arrays.
    """
    types: Mapping[str, pa.DataType] = {field.name: field.type for field in schema}
    item, score, rank = (rows.columns.get(name, name) for name in (C.ITEM_ID, C.SCORE, C.RANK))
    is_log, found = isinstance(rows, LogRows), rows.several_items
    if found is None and item in types:
        if is_list(types[item]):
            scores = score if score in types else None
            found = Nested(items=item, scores=scores) if is_log else NestedItems(items=item)
    elif found is None and is_log and is_list(types.get(RECOMMENDATIONS, pa.null())):
        found = _of_structs(where, types[RECOMMENDATIONS])
    ranks_from = rows.ranks_from if isinstance(rows, LogRows) else 1
    if is_log and found is not None and (rank in types or ranks_from != 1):
        ranks = f"a column {rank!r}" if rank in types else f"ranks_from={ranks_from}"
        expected = "no ranks, because the order of the items in their array is the rank"
        raise InputError(Fault(where, f"arrays of items and {ranks}", expected, "leave it out"))
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


def arrays_of(table: pa.Table, nested: NestedItems, where: str) -> dict[str, pa.Array]:
    """Return the arrays of a log with one row per list, by the canonical column of their elements.

    Raises InputError: columns that are missing or hold neither arrays nor text; all of them.
    """
    faults: list[Fault] = []
    found: dict[str, pa.Array] = {}
    for name, path in nested.arrays.items():
        try:
            found[name] = _array(table, path, nested.separator, f"{where}.{nested.places[name]}")
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    return found


def to_items(table: pa.Table, nested: NestedItems, where: str) -> pa.Table:
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
    if flat.scores is not None:
        columns[nested.arrays[C.SCORE]] = flat.scores
    return pa.Table.from_pydict({**columns, POSITION: to_arrow(flat.position.astype(np.int32))})


def columns_of_lists(names: Sequence[str], nested: NestedItems) -> list[str]:
    """Return the columns of a table that an item has of its list."""
    return [name for name in names if not nested.is_of_items(name, names)]


def _array(table: pa.Table, path: str, separator: str | None, where: str) -> pa.Array:
    name, field = column_and_field(path, table.column_names)
    if name not in table.column_names:
        raise InputError(column_fault(where, name, [each for each in table.column_names if each != CORRUPT]))
    column = plain(table[name])
    if is_text(column.type):
        if CORRUPT in table.column_names:
            column = pc.if_else(table[CORRUPT].is_valid(), "", column)
        if separator is not None and field is None:
            return _of_text(column, separator, table[CORRUPT] if CORRUPT in table.column_names else None)
        _require_json(column, path, where)
        return in_one_piece(texts.to_text_lists(column, field, broken=[None]))
    lists = in_one_piece(column)
    element = lists.type.value_type if is_list(lists.type) else None
    if element is not None and field is not None:
        has_field = pa.types.is_struct(element) and element.get_field_index(field) >= 0
        lists = _field_of(lists, field) if has_field else lists
        element = lists.type.value_type if has_field else None
    if element is None or pa.types.is_nested(element):
        fix = "" if separator is None else "read the column as text, with the zeros that its ids begin with"
        raise InputError(Fault(where, f"{path!r} of type {spark_name(table[name].type)}", EXPECTED, fix))
    return lists


def _of_text(column: pa.ChunkedArray, separator: str, corrupt: pa.ChunkedArray | None) -> pa.Array:
    """Split texts into lists; a line that could not be split into columns becomes one NULL, which is counted."""
    if corrupt is None:
        return in_one_piece(texts.split(column, separator))
    is_broken = in_one_piece(corrupt.is_valid())
    one_element = "+" if "-" in separator else "-"
    lists = in_one_piece(texts.split(pc.if_else(is_broken, one_element, column), separator))
    is_kept = pc.invert(pc.take(is_broken, to_arrow(owners_of(lists))))
    elements = texts.null_unless(pc.list_flatten(lists), is_kept)
    return list_column(lengths_of(lists), elements, is_null=to_numpy(lists.is_null()))


def _require_json(column: pa.ChunkedArray, path: str, where: str) -> None:
    """Refuse texts of which none begins as a JSON array does, with the separator that they likely have."""
    if pc.any(pc.match_substring_regex(column, r"^\s*\[")).as_py():
        return
    written = texts.trimmed(column)
    written = written.filter(pc.not_equal(written, ""))
    if not len(written):
        return
    first = written[0].as_py()
    separator = next((each for each in _SEPARATORS if each in first), _SEPARATORS[-1])
    input_, _, in_nested = where.partition(".nested.")
    if input_.startswith("inputs."):
        fix = f"write {input_}.nested.separator: {json.dumps(separator)}"
    else:
        given = {in_nested: path, "separator": separator}
        fix = f"write inputs={ {input_: {'nested': given}}!r}"
    raise InputError(Fault(where, f"{path!r} with text such as {shortened(first)!r}", EXPECTED, fix))


def _field_of(lists: pa.Array, field: str) -> pa.Array:
    """Return a field of the structs in lists; that of a NULL struct is NULL."""
    values = pc.struct_field(pc.list_flatten(lists), field)
    return pa.LargeListArray.from_arrays(to_arrow(np.append(0, np.cumsum(lengths_of(lists)))), values)
