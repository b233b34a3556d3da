"""The declared schemas as Spark types, built without a session or a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from rankeval_spark.schemas import Field, Schema

ATOMIC_TYPES: Final[dict[str, T.DataType]] = {
    "string": T.StringType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
}

_TOKEN: Final = re.compile(r"\s*([A-Za-z_]\w*|[<>:,])")


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Add columns to a frame; none is fine, which ``withColumns`` of Spark Connect refuses."""
    return frame.withColumns(dict(columns)) if columns else frame


def struct_type(schema: Schema, extra_fields: Iterable[Field] = ()) -> T.StructType:
    """Columns of ``schema``, then ``extra_fields``, as a Spark schema whose fields carry their comments.

    Examples
    --------
    >>> from rankeval_spark import schemas
    >>> struct_type(schemas.TRAIN).simpleString()
    'struct<user_id:string,item_id:string,interacted_at:timestamp>'
    """
    return T.StructType([struct_field(field) for field in (*schema.fields, *extra_fields)])


def struct_field(field: Field) -> T.StructField:
    """Turn one declared column into a Spark field; its comment is kept where Spark and Delta look for it."""
    return T.StructField(field.name, data_type(field.type), field.nullable, {"comment": field.comment})


def data_type(type_string: str) -> T.DataType:
    """Parse a type string of :mod:`rankeval_spark.schemas`.

    ``DataType.fromDDL`` needs a running session to parse; the declared schemas are needed before there is one.

    Examples
    --------
    >>> data_type("array<struct<name:string,n_rows:bigint>>").simpleString()
    'array<struct<name:string,n_rows:bigint>>'
    """
    tokens = list(_tokens(type_string))
    parsed, rest = _parse(tokens)
    if rest:
        raise _unreadable(type_string)
    return parsed


def _tokens(type_string: str) -> Iterator[str]:
    position = 0
    while position < len(type_string):
        match = _TOKEN.match(type_string, position)
        if match is None:
            raise _unreadable(type_string)
        yield match.group(1)
        position = match.end()


def _parse(tokens: list[str]) -> tuple[T.DataType, list[str]]:
    head, rest = _split(tokens)
    if head == "array":
        element, rest = _parse(_after("<", rest))
        return T.ArrayType(element), _after(">", rest)
    if head == "map":
        key, rest = _parse(_after("<", rest))
        value, rest = _parse(_after(",", rest))
        return T.MapType(key, value), _after(">", rest)
    if head == "struct":
        return _parse_struct(_after("<", rest))
    if head not in ATOMIC_TYPES:
        raise _unreadable(head)
    return ATOMIC_TYPES[head], rest


def _parse_struct(tokens: list[str]) -> tuple[T.DataType, list[str]]:
    fields = []
    separator = ","
    rest = tokens
    while separator == ",":
        name, rest = _split(rest)
        type_, rest = _parse(_after(":", rest))
        fields.append(T.StructField(name, type_))
        separator, rest = _split(rest)
    return T.StructType(fields), _after(">", [separator, *rest])


def _split(tokens: list[str]) -> tuple[str, list[str]]:
    if not tokens:
        raise _unreadable(type_string="")
    return tokens[0], tokens[1:]


def _after(expected: str, tokens: list[str]) -> list[str]:
    head, rest = _split(tokens)
    if head != expected:
        raise _unreadable("".join(tokens))
    return rest


def _unreadable(type_string: str) -> ValueError:
    known = ", ".join([*ATOMIC_TYPES, "array<>", "map<,>", "struct<:>"])
    return ValueError(f"cannot read the type {type_string!r}; known: {known}")
