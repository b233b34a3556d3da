"""Read the cells of a column as its canonical type, without guessing; in this process, and in the workers of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import combine_chunks, lengths_of, list_column, parent_indices, to_arrow, to_numpy
from rankeval_spark.errors import InputError, first_line
from rankeval_spark.inputs.arrow import texts
from rankeval_spark.inputs.arrow.arrow_types import (
    is_binary,
    is_list,
    is_nested,
    is_number,
    is_text,
    spark_name,
    to_plain,
)
from rankeval_spark.inputs.input_columns import IDS, NUMBERS_FIX, RANK_FIX, type_fault
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.inputs import Gains
    from rankeval_spark.schemas import Field

_MAX_RANK: Final = 2**31 - 1
_MAX_DIGITS: Final = 38
_DIGITS_OF_UINT64: Final = 20


@dataclass(frozen=True)
class Cells:
    """A canonical column."""

    values: pa.ChunkedArray  # of the canonical type, NULL where a cell cannot be read
    unreadable: pa.BooleanArray | None = None  # whether the cell could not be read; None where every one could


def read_cells(  # noqa: PLR0913 - a setting of the input each
    column: pa.ChunkedArray,  # as the table has it; one that is right already is not copied
    field: Field,  # of the schema
    *,
    where: str,  # name of the input, for messages
    name: str = "",  # of the column in the table, where it is another one, for messages
    id_fix: str = "",  # how ids that are no whole numbers become so, for messages
    wanted: str | None = None,  # type of ids, ``string`` or ``integer``, where the config says it
    separator: str | None = None,  # of the elements of a list that is text; without it such text is a JSON array
    ranks_from: int = 1,  # rank of the first item of a list, 0 or 1
    time_zone: str = UTC,  # zone of days, and of times that have none
) -> Cells:
    """Read a table's column as the schema says; refused if its type does not fit the field."""
    given = to_plain(column)
    values, found = None, spark_name(column.type)
    try:
        if field.name in IDS:
            values = _read_ids(given, wanted)
        elif separator is not None and field.type.startswith("array<") and is_text(given.type):
            values = _read_values(texts.split(given, separator), field, time_zone)
        else:
            values = _read_values(given, field, time_zone)
    except pa.ArrowException as error:  # a value beyond the canonical type, such as an id from 2^63 on
        found += f" ({first_line(str(error))})"
    if values is None:
        fix = {C.RANK: RANK_FIX, **dict.fromkeys((*IDS, C.LIST_ID), id_fix)}.get(field.name, "")
        has_fix = is_binary(given.type) or not is_nested(given.type)
        raise InputError(type_fault(where, field, name or field.name, found, fix if has_fix else ""))
    if field.name == C.RANK and ranks_from == 0:  # a negative one becomes NULL, which is no place in a list
        numbers = to_numpy(values, null=-1)
        is_lost = (numbers < 0) | (numbers == _MAX_RANK)
        values = pa.chunked_array([to_arrow(np.where(is_lost, 0, numbers + np.int32(1)), is_null=is_lost)])
    # Seconds of Unix that are no time so far from 1970 are unknown, and not marked.
    is_marked = values.null_count > given.null_count and not (field.type == "timestamp" and is_number(given.type))
    return Cells(values, combine_chunks(pc.and_(values.is_null(), given.is_valid())) if is_marked else None)


def read_gains(column: pa.ChunkedArray, gains: Gains, field: Field, *, where: str) -> Cells:
    """Build gains of a column of events, ratings or seconds; NULL where it has no value, or one without a gain."""
    given, by_number = to_plain(column), gains.number_values()
    if gains.values and (is_text(given.type) or pa.types.is_boolean(given.type)):
        return Cells(_look_up_gains(given.cast(pa.string()), gains.values))
    numbers = None if is_nested(given.type) or pa.types.is_boolean(given.type) else _read_doubles(given)
    if numbers is None or by_number is None:
        fix = NUMBERS_FIX if by_number is None else ""
        raise InputError(type_fault(where, field, gains.column, spark_name(column.type), fix))
    if by_number:  # -0.0 equals 0.0, and Arrow looks at the bits
        return Cells(_look_up_gains(pc.add(numbers, pa.scalar(0.0, numbers.type)), by_number))
    values = to_numpy(numbers)
    reached = np.searchsorted(np.array(gains.edges), values, side="right").astype(np.float64)
    return Cells(pa.chunked_array([to_arrow(reached, is_null=np.isnan(values))]))


def _look_up_gains(column: pa.ChunkedArray, gains: Mapping[Any, float]) -> pa.ChunkedArray:
    """Return the gain of each value; NULL for a value without one."""
    place = pc.index_in(column, value_set=pa.array(gains, column.type))
    return pc.take(pa.chunked_array([pa.array(gains.values(), pa.float64())]), place)


def _read_ids(column: pa.ChunkedArray, wanted: str | None) -> pa.ChunkedArray | None:
    """Read ids as text or whole numbers, as wanted; without a wish, numbers of whole types stay numbers."""
    kind = column.type
    if is_binary(kind):
        return None if wanted == "integer" else texts.uuid_texts(column)
    if is_nested(kind):
        return None
    if is_text(kind) or pa.types.is_null(kind):
        return texts.to_whole(column) if wanted == "integer" and is_text(kind) else column.cast(pa.string())
    if wanted == "string":
        return texts.id_texts(column)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    is_readable = pa.types.is_decimal(kind) or (wanted == "integer" and pa.types.is_floating(kind))
    return texts.whole_ids(column) if is_readable else None


def _read_values(  # noqa: PLR0911 - a type each
    column: pa.ChunkedArray, field: Field, time_zone: str
) -> pa.ChunkedArray | None:
    """Read a plain column; None where its type cannot be read."""
    kind = column.type
    if field.type.startswith("array<"):
        return _read_lists(column, field.type.removeprefix("array<").removesuffix(">"))
    if field.type in ("timestamp", "date"):
        is_day = field.type == "date"
        if is_text(kind):
            return texts.read_days(column, time_zone) if is_day else texts.read_times(column, time_zone)
        if is_number(kind) and not is_day:
            return texts.from_seconds(column)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind):
            return texts.to_days(column, time_zone) if is_day else texts.to_times(column, time_zone)
        return None
    if is_nested(kind):
        return texts.uuid_texts(column) if is_binary(kind) and field.name in (C.LIST_ID, C.MODEL_ID) else None
    if field == schemas.JUDGED_LIST and pa.types.is_floating(kind):
        return None  # its text is 1.0, which is no id of a list 1
    if field.type == "string":
        return texts.id_texts(column) if field.name == C.LIST_ID else texts.to_text(column)
    if field.name == C.RANK:
        return _read_ranks(column)
    if field.name == C.SCORE and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return _read_exact_scores(column)
    return _read_doubles(column)


def _read_doubles(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read numbers as doubles; None where the type has none."""
    kind = column.type
    if is_text(kind):
        return texts.to_doubles(column)
    is_readable = is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return column.cast(pa.float64(), safe=False) if is_readable else None


def _read_exact_scores(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read whole numbers and decimals as such: a double would make ties of numbers that differ."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale)) if kind.precision <= _MAX_DIGITS else None
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # from 2^63 on
        return column.cast(pa.decimal128(_DIGITS_OF_UINT64, 0))


def _read_ranks(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read ranks; what an int does not hold becomes NULL."""
    column = texts.to_whole(column) if is_text(column.type) else column
    kind = column.type
    is_whole_decimal = pa.types.is_decimal(kind) and kind.scale == 0
    if not (pa.types.is_integer(kind) or pa.types.is_null(kind) or is_whole_decimal):
        return None
    try:
        return column.cast(pa.int32())
    except pa.ArrowInvalid:
        numbers = to_numpy(column.cast(pa.float64(), safe=False), null=0)
        is_rank = (numbers >= -_MAX_RANK - 1) & (numbers <= _MAX_RANK)
        return texts.null_unless(column, to_arrow(is_rank)).cast(pa.int32())


def _read_lists(column: pa.ChunkedArray, element: str) -> pa.ChunkedArray | None:
    """Read lists; one with an element that cannot be read becomes NULL, because half a list would be another list."""
    column = texts.to_text_lists(column) if is_text(column.type) else column
    wanted = pa.list_(pa.string() if element == "string" else pa.float64())
    if pa.types.is_null(column.type):
        return column.cast(wanted)
    if not is_list(column.type):
        return None
    lists = combine_chunks(column)
    given = to_plain(pa.chunked_array([pc.list_flatten(lists)]))
    elements = texts.to_text(given) if element == "string" else _read_doubles(given)
    if elements is None or (column.type == wanted and not elements.null_count):
        return None if elements is None else column
    has_gap = np.zeros(len(lists), dtype=np.bool_)
    has_gap[parent_indices(lists)[to_numpy(elements.is_null())]] = True
    is_null = has_gap | to_numpy(lists.is_null())
    return pa.chunked_array([list_column(lengths_of(lists), combine_chunks(elements), is_null=is_null)])
