"""Canonical columns on Spark: selected where the table has them of the right types, else read by workers in Arrow.

What the cells of a table mean, and which types can be read, is said in :mod:`rankeval_spark.inputs.arrow.canonical`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F, types as T
from pyspark.sql.pandas.types import from_arrow_type

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import column_and_field
from rankeval_spark.engine import row_kinds
from rankeval_spark.inputs.arrow.arrow_types import is_list, is_number, spark_name
from rankeval_spark.inputs.arrow.canonical import Reading, item_arrays, list_columns, read_batches
from rankeval_spark.inputs.input_columns import CORRUPT, DEFAULTS, IDS, IS_UNPARSABLE, RAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    **{narrow: (*_WHOLE[place:], "double", "string") for place, narrow in enumerate(_WHOLE)},
    "float": ("double",),
}
"""Types that Spark casts without changing a value, and to which: a number has but one text."""

_ARROW_TYPES: Final[Mapping[type[T.DataType], pa.DataType]] = {
    **{T.NullType: pa.null(), T.BooleanType: pa.bool_(), T.DateType: pa.date32()},
    **{T.ByteType: pa.int8(), T.ShortType: pa.int16(), T.IntegerType: pa.int32(), T.LongType: pa.int64()},
    **{T.FloatType: pa.float32(), T.DoubleType: pa.float64(), T.BinaryType: pa.binary()},
    **dict.fromkeys((T.StringType, T.CharType, T.VarcharType), pa.string()),
    **{T.TimestampType: pa.timestamp("us", "UTC"), T.TimestampNTZType: pa.timestamp("us")},
}


@dataclass(frozen=True)
class Canonical:
    """The steps from a table to canonical rows, decided by the types of its columns alone."""

    reading: Reading
    table: pa.Table  # the table without a row
    types: Mapping[str, pa.DataType]  # canonical columns that the table has, in the order of the schema
    is_read: bool  # whether workers read the rows; otherwise Spark selects them

    @property
    def id_types(self) -> dict[str, str]:
        """Type of each id, ``string`` or ``bigint``."""
        return {name: spark_name(self.types[name]) for name in IDS if name in self.types}

    @property
    def given(self) -> frozenset[str]:
        """Canonical columns that the table has, and :data:`IS_UNPARSABLE` where the rows have it."""
        is_item = C.RANK in self.types and self.reading.nested is None
        has_long_ranks = is_item and self._table_type(C.RANK) == pa.int64()
        return frozenset({*self.types, *([IS_UNPARSABLE] if self.is_read or has_long_ranks else [])})

    def _table_type(self, name: str) -> pa.DataType:
        """Return the type that a canonical column has in the table."""
        return self.table.schema.field(self.reading.names[name]).type

    @property
    def _columns_read(self) -> list[str]:
        """Columns of the table that workers get."""
        names, table_columns = self.reading.names, self.table.column_names
        columns = [names[name] for name in self.types if names[name] in table_columns]
        if self.reading.nested is not None:
            columns += [column_and_field(path, table_columns)[0] for path in self.reading.nested.arrays.values()]
        return [name for name in dict.fromkeys([*columns, CORRUPT]) if name in table_columns]

    def to_rows(self, table: DataFrame, *, has_raw: bool = False) -> DataFrame:
        """Write the rows of a table in the columns of the schema, then :data:`IS_UNPARSABLE`.

        The columns that the table does not have contain their defaults. `has_raw`: whether :data:`RAW` follows.
        """
        raw = [self._build_raw()] if has_raw else []
        marks = [name for name in (IS_UNPARSABLE,) if name in self.given]
        if self.is_read:
            types = {**self.types, IS_UNPARSABLE: pa.bool_(), **({RAW: pa.string()} if has_raw else {})}
            rows = self._in_workers(table.select(*map(column, self._columns_read), *raw), types)
            return rows.select(*self._with_defaults(column), *marks, *(RAW for _ in raw))
        if marks:
            rank = column(self.reading.names[C.RANK])
            is_lost = rank.isNotNull() & rank.try_cast("int").isNull()
            return table.select(*self._with_defaults(self._select), is_lost.alias(IS_UNPARSABLE), *raw)
        return table.select(*self._with_defaults(self._select), *raw)

    def to_lists(self, table: DataFrame) -> DataFrame:
        """Write a table of whole lists in the columns of a list and its arrays, see :attr:`Source.lists`."""
        arrays, of_items = self._select_arrays(), (C.ITEM_ID, C.SCORE, C.RANK)
        if arrays is not None and all(self.is_plain(name) for name in self.types if name not in of_items):
            selected = self._with_defaults(self._select, leaves_out=of_items)
            found = table.select(*selected, *(array.alias(name) for name, array in arrays.items()))
            return found.where(F.size(row_kinds.LISTED_ITEMS) > 0)
        types = {field.name: field.type for field in self.reading.read_lists(self.table).schema}
        read = self._in_workers(table.select(*map(column, self._columns_read)), types, as_lists=True)
        listed = [name for name in row_kinds.LISTED if name in types]
        return read.select(*self._with_defaults(column, leaves_out=of_items), *listed)

    def _in_workers(self, frame: DataFrame, types: Mapping[str, pa.DataType], *, as_lists: bool = False) -> DataFrame:
        """Return a table's rows, or whole lists, as workers read them into canonical columns of these types."""
        names, reading = list(types), self.reading

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return read_batches(batches, reading, names, as_lists=as_lists)

        fields = [T.StructField(name, from_arrow_type(types[name])) for name in names]
        return frame.mapInArrow(work, T.StructType(fields))

    def _with_defaults(self, value: Callable[[str], Column], *, leaves_out: Collection[str] = ()) -> Iterator[Column]:
        """Yield the columns of the schema, then parts of its key that are not read."""
        schema = self.reading.schema
        unread = dict.fromkeys((name for name in schema.key if name not in schema.field_names()), "string")
        types = {field.name: field.type for field in schema.fields} | unread
        for name, type_ in types.items():
            if name not in leaves_out:
                has_it = name in self.types
                yield (value(name) if has_it else F.lit(DEFAULTS.get(name)).cast(type_)).alias(name)

    def _select(self, name: str) -> Column:
        """Select a canonical column; scores of whole numbers stay so: as doubles, different ones could become equal."""
        selected, kind = column(self.reading.names[name]), self._table_type(name)
        if name == C.SCORE and not pa.types.is_floating(kind) and not pa.types.is_null(kind):
            return selected
        return selected.try_cast("int") if name == C.RANK else selected.cast(spark_name(self.types[name]))

    def is_plain(self, name: str) -> bool:
        """Return True if Spark selects a canonical column, because no cell of it has to be read."""
        given, wanted = spark_name(self._table_type(name)), spark_name(self.types[name])
        if name == C.RANK:
            return given in (*_WHOLE, "void") and self.reading.ranks_from == 1
        if name == C.GAIN and self.reading.gains is not None:
            return False
        is_score = name == C.SCORE and is_number(self._table_type(name))
        is_same = given == wanted and not is_list(self._table_type(name))
        return is_same or is_score or given == "void" or wanted in _WIDER.get(given, ())

    def _select_arrays(self) -> dict[str, Column] | None:
        """Select the arrays of whole lists; None where their elements have to be read."""
        nested = self.reading.nested
        if nested is None or CORRUPT in self.table.column_names:
            return None
        found: dict[str, Column] = {}
        for name, array in item_arrays(self.table, nested, self.reading.where).items():
            name_in_table, field = column_and_field(nested.arrays[name], self.table.column_names)
            element = spark_name(array.type.value_type)
            is_id = element == self.id_types[C.ITEM_ID] or {element, self.id_types[C.ITEM_ID]} <= {*_WHOLE}
            is_right = is_id if name == C.ITEM_ID else is_number(array.type.value_type)
            if not (is_right and is_list(self.table.schema.field(name_in_table).type)):
                return None
            listed = row_kinds.LISTED_ITEMS if name == C.ITEM_ID else row_kinds.LISTED_SCORES
            found[listed] = column(name_in_table) if field is None else column(name_in_table).getField(field)
        return found

    def _build_raw(self) -> Column:
        """Build :data:`RAW`; of a list without its items, which workers add to each of them."""
        names = [name for name in self.table.column_names if name != CORRUPT]
        if self.reading.nested is not None:
            names = list_columns(names, self.reading.nested)
        values = F.to_json(F.struct(*map(column, names)), {"ignoreNullFields": "false"})
        is_text = CORRUPT in self.table.column_names
        return (F.coalesce(column(CORRUPT), values) if is_text else values).alias(RAW)


def plan_reading(table: T.StructType, reading: Reading) -> Canonical:
    """Decide how a table is read; all columns that are missing or of a type that cannot be read are refused."""
    types = {field.name: _arrow_type(field.dataType) for field in reversed(table.fields)}
    empty = pa.schema([(name, types[name]) for name in dict.fromkeys(table.names)]).empty_table()
    flat = reading.to_items(empty)
    cells = reading.read_columns(flat, reading.column_faults(flat.column_names))
    found = Canonical(reading, empty, {name: each.values.type for name, each in cells.items()}, is_read=True)
    is_selected = reading.nested is None and CORRUPT not in table.names and all(map(found.is_plain, found.types))
    return replace(found, is_read=not is_selected)


def arrow_schema(table: T.StructType) -> pa.Schema:
    """Write the columns of a table as those that workers get; what Arrow does not have is opaque."""
    return pa.schema([(field.name, _arrow_type(field.dataType)) for field in table.fields])


def _arrow_type(kind: T.DataType) -> pa.DataType:
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        return pa.list_(_arrow_type(kind.elementType))
    if isinstance(kind, T.StructType):
        return pa.struct([*arrow_schema(kind)])
    if kind.typeName() == "time":
        return pa.time64("ns")
    found = next((arrow for spark, arrow in _ARROW_TYPES.items() if isinstance(kind, spark)), None)
    return pa.opaque(pa.binary(), kind.simpleString(), "Spark") if found is None else found


def column(name: str) -> Column:
    """Refer to a top-level column by its exact name, with any characters."""
    return F.col(C.quoted_name(name))
