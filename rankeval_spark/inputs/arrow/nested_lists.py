"""Logs with one row per list, written as one row per item where they enter this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import POSITION, column_and_field
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch.listed_rows import flat_lists
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow.arrow_types import is_list, plain, spark_name
from rankeval_spark.inputs.input_columns import column_fault
from rankeval_spark.inputs.nested_lists import array_fault, arrays_by_column, recognised

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import Nested


def to_items(table: pa.Table, nested: Nested, where: str) -> pa.Table:
    """Write a log with one row per item: its other columns, then item, score and :data:`POSITION`.

    As ``ListArrays.to_items`` of the host on Spark; text with JSON arrays is left to Spark.

    Parameters
    ----------
    where : str
        Name of the input, for messages.

    Raises
    ------
    InputError
        Columns that are missing or hold no arrays; all of them.
    """
    arrays = arrays_by_column(nested, lambda path, place: _array(table, path, where, place))
    flat = flat_lists(arrays[C.ITEM_ID], arrays.get(C.SCORE))
    row = to_arrow(flat.row)
    of_list = [name for name in table.column_names if not nested.is_of_items(name, table.column_names)]
    columns = {name: pc.take(plain(table[name]), row) for name in of_list} | {nested.items: flat.items}
    if nested.scores is not None and flat.scores is not None:
        columns[nested.scores] = flat.scores
    return pa.Table.from_pydict({**columns, POSITION: to_arrow(flat.position.astype(np.int32))})


def _array(table: pa.Table, path: str, where: str, place: str) -> pa.Array:
    name, field = column_and_field(path, table.column_names)
    if name not in table.column_names:
        raise InputError(column_fault(f"{where}.{place}", name, table.column_names))
    lists = in_one_piece(plain(table[name]))
    if not is_list(lists.type):
        raise InputError(array_fault(where, place, path, spark_name(lists.type)))
    element = lists.type.value_type
    has_field = pa.types.is_struct(element) and field is not None and element.get_field_index(field) >= 0
    if has_field:
        lists = _field_of(lists, str(field))
    if (field is not None and not has_field) or pa.types.is_nested(lists.type.value_type):
        raise InputError(array_fault(where, place, path, spark_name(table[name].type)))
    return lists


def _field_of(lists: pa.Array, field: str) -> pa.Array:
    """Take a field of the structs in lists; that of a NULL struct is NULL."""
    flat = flat_lists(lists, None)
    ends = np.append(0, np.cumsum(np.bincount(flat.row, minlength=len(lists)))).astype(np.int64)
    values = pc.struct_field(flat.items, field)
    return pa.LargeListArray.from_arrays(to_arrow(ends), values)


def nested_of(schema: pa.Schema, where: str, *, ranks_from: int) -> Nested | None:
    """Recognise a table of the caller whose rows are whole lists, see :func:`nested_lists.recognised`."""
    fields = {
        one.name: [field.name for field in one.type.value_type] if pa.types.is_struct(one.type.value_type) else ()
        for one in schema
        if is_list(one.type)
    }
    return recognised(where, {one.name: spark_name(one.type) for one in schema}, fields, ranks_from=ranks_from)
