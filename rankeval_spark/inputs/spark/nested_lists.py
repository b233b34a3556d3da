"""Logs with one row per list on Spark: the arrays of a list, and the same log with one row per item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F, types as T

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import POSITION, column_and_field
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.input_columns import column_fault
from rankeval_spark.inputs.nested_lists import array_fault, arrays_by_column, recognised
from rankeval_spark.inputs.spark.source import CORRUPT, IS_UNPARSABLE, TEXT, column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankeval_spark.config.inputs import Nested
    from rankeval_spark.inputs.spark.canonical_columns import Canonical

_COMPLEX: Final = (T.ArrayType, T.MapType, T.StructType, T.VariantType)
_ITEM, _SCORE, _PLACE, _PAIR = "_item", "_score", "_place", "_pair"


@dataclass(frozen=True)
class Array:
    """An array of each list: its expression, and the type of its elements."""

    expression: Column
    element: T.DataType


@dataclass(frozen=True)
class ListArrays:
    """The arrays of a log with one row per list."""

    items: Array  # ids, best item first
    scores: Array | None  # scores of the items; a list has none where its arrays differ in length
    nested: Nested  # names of the columns

    def to_items(self, frame: DataFrame) -> DataFrame:
        """Write the log with one row per item: its other columns, then item, score and :data:`POSITION`.

        The columns of the items have the names by which the config calls the arrays. A list whose arrays differ in
        length has no scores, so that all of its items are counted as unusable.
        """
        of_list = [column(name) for name in frame.columns if not self.nested.is_of_items(name, frame.columns)]
        arrays = {_ITEM: self.items.expression, **({} if self.scores is None else {_SCORE: self._paired_scores()})}
        placed = frame.select(*of_list, *(array.alias(name) for name, array in arrays.items()))
        pairs = F.posexplode(F.arrays_zip(*(F.col(name) for name in arrays))).alias(_PLACE, _PAIR)
        names = [one for one in (self.nested.items, self.nested.scores) if one]
        return placed.select(*of_list, pairs).select(
            *of_list,
            *(F.col(_PAIR).getField(own).alias(name) for own, name in zip(arrays, names, strict=True)),
            (F.col(_PLACE) + 1).alias(POSITION),
        )

    def _paired_scores(self) -> Column:
        if self.scores is None:
            raise ValueError
        items, scores = self.items.expression, self.scores.expression
        none = F.array_repeat(F.lit(None).cast(self.scores.element), F.size(items))
        return F.coalesce(F.when(F.size(items) == F.size(scores), scores), none)


def arrays_of(schema: T.StructType, nested: Nested, where: str) -> ListArrays:
    """Find the arrays of a log with one row per list.

    Raises InputError: columns that are missing or hold neither arrays nor text; all of them.
    """
    found = arrays_by_column(nested, lambda path, place: _array(schema, path, where, place))
    return ListArrays(_with_broken_lines(found[C.ITEM_ID], schema), found.get(C.SCORE), nested)


def _with_broken_lines(items: Array, schema: T.StructType) -> Array:
    """Let a line of csv or json that could not be split have one item, NULL, which is counted as unusable."""
    if CORRUPT not in schema.names:
        return items
    none = F.array(F.lit(None).cast(items.element))
    return Array(F.when(column(CORRUPT).isNotNull(), none).otherwise(items.expression), items.element)


def to_list_rows(frame: DataFrame, arrays: ListArrays, canonical: Canonical) -> DataFrame:
    """Select the columns of a list and its arrays, see :attr:`Source.lists`.

    `frame`: the log with one row per list. `canonical`: expressions of the canonical columns of the log with one row
    per item.
    """
    of_list = [one for name, one in canonical.named.items() if name not in (C.ITEM_ID, C.SCORE, C.RANK, IS_UNPARSABLE)]
    items = _cast_unless(arrays.items, _ids(arrays.items, canonical.id_types[C.ITEM_ID]))
    found = [items.alias(row_kinds.LISTED_ITEMS)]
    if arrays.scores is not None:
        scores = arrays.scores
        is_number = isinstance(scores.element, T.NumericType)
        found.append(_cast_unless(scores, None if is_number else "double").alias(row_kinds.LISTED_SCORES))
    return frame.select(*of_list, *found).where(F.size(row_kinds.LISTED_ITEMS) > 0)


def _ids(items: Array, wanted: str) -> str | None:
    """Return the type that ids are cast to; None where the engine converts them, or they are of it already."""
    plain = {"bigint": (T.ByteType, T.ShortType, T.IntegerType, T.LongType), "string": (T.StringType,)}[wanted]
    return None if isinstance(items.element, plain) else wanted


def _cast_unless(array: Array, wanted: str | None) -> Column:
    return array.expression if wanted is None else array.expression.try_cast(f"array<{wanted}>")


def _array(schema: T.StructType, path: str, where: str, place: str) -> Array:
    name, field = column_and_field(path, schema.names)
    if name not in schema.names:
        raise InputError(column_fault(f"{where}.{place}", name, schema.names))
    kind, given = schema[name].dataType, column(name)
    if isinstance(kind, TEXT):
        return Array(_of_json(given, field), T.StringType())
    element = kind.elementType if isinstance(kind, T.ArrayType) else None
    if field is not None and isinstance(element, T.StructType) and field in element.names:
        given, element = given.getField(field), element[field].dataType
    elif field is not None:
        element = None
    if element is None or isinstance(element, _COMPLEX):
        raise InputError(array_fault(where, place, path, kind.simpleString()))
    return Array(given, element)


def _of_json(text: Column, field: str | None) -> Column:
    """Read a JSON array as texts; text that is none becomes an array of one NULL, which is counted as unusable."""
    if field is None:
        read = F.from_json(text, "array<string>")
    else:
        struct = T.StructType([T.StructField(field, T.StringType())])
        read = F.from_json(text, T.ArrayType(struct)).getField(field)
    return F.when(text.isNotNull(), F.coalesce(read, F.array(F.lit(None).cast("string"))))


def nested_of(frame: DataFrame, where: str, *, ranks_from: int) -> Nested | None:
    """Recognise a DataFrame of the caller whose rows are whole lists, see :func:`nested_lists.recognised`."""
    fields: Mapping[str, Sequence[str]] = {
        field.name: field.dataType.elementType.names if isinstance(field.dataType.elementType, T.StructType) else ()
        for field in frame.schema
        if isinstance(field.dataType, T.ArrayType)
    }
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    return recognised(where, types, fields, ranks_from=ranks_from)
