"""The declared columns as Arrow types, as Spark reads them, and as JSON, the form in which Delta's log keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from rankeval_spark.schemas import Field, Schema

Json: TypeAlias = Mapping[str, Any]
"""Columns or one column, as ``StructType.jsonValue()`` and ``StructField.jsonValue()`` of Spark return them."""

ARROW_TYPES: Final = {
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
    "array<double>": pa.list_(pa.float64()),
    "array<struct<first:int,last:int>>": pa.list_(pa.struct([("first", pa.int32()), ("last", pa.int32())])),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "date": pa.date32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}

ATOMIC_TYPES: Final[Mapping[str, str]] = {
    "string": "string",
    "int": "integer",
    "bigint": "long",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
"""Names of types in the log, by their names in :mod:`rankeval_spark.schemas`."""

_DECLARED: Final = {name: declared for declared, name in ATOMIC_TYPES.items()}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a result without those of its run."""
    fields = [field for field in schema.fields if field.name not in C.RUN_KEY]
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in fields])


def columns_json(schema: Schema, extra_fields: Iterable[Field] = ()) -> dict[str, Any]:
    """Columns of ``schema``, then ``extra_fields``, each with its comment.

    >>> from rankeval_spark import schemas
    >>> [field["type"] for field in columns_json(schemas.TRAIN)["fields"]]
    ['string', 'string', 'timestamp']
    """
    fields = (
        _field_json(field.name, type_json(field.type), {"comment": field.comment}, is_nullable=field.nullable)
        for field in (*schema.fields, *extra_fields)
    )
    return {"type": "struct", "fields": list(fields)}


def type_json(type_string: str) -> str | dict[str, Any]:
    """Parse a type string of :mod:`rankeval_spark.schemas`.

    >>> type_json("bigint")
    'long'
    >>> type_name(type_json("array<struct<name:string,n_rows:bigint>>"))
    'array<struct<name:string,n_rows:bigint>>'
    """
    head, _, inside = type_string.partition("<")
    parts = _split_types(inside[:-1]) if inside.endswith(">") else []
    match head, parts:
        case "array", [element]:
            return {"type": "array", "elementType": type_json(element), "containsNull": True}
        case "map", [key, value]:
            types = {"keyType": type_json(key), "valueType": type_json(value)}
            return {"type": "map", **types, "valueContainsNull": True}
        case "struct", [_, *_]:
            named = (part.partition(":") for part in parts)
            return {"type": "struct", "fields": [_field_json(name, type_json(type_), {}) for name, _, type_ in named]}
        case _ if type_string in ATOMIC_TYPES:
            return ATOMIC_TYPES[type_string]
    known = ", ".join([*ATOMIC_TYPES, "array<>", "map<,>", "struct<:>"])
    message = f"cannot read the type {type_string!r}; known: {known}"
    raise ValueError(message)


def _split_types(types: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    parts, depth = [""], 0
    for letter in types:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def type_name(type_: str | Json) -> str:
    """Write a type as :mod:`rankeval_spark.schemas` does; one that is declared nowhere keeps its name in the log."""
    if isinstance(type_, str):
        return _DECLARED.get(type_, type_)
    if type_["type"] == "array":
        return f"array<{type_name(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{type_name(type_['keyType'])},{type_name(type_['valueType'])}>"
    fields = (f"{field['name']}:{type_name(field['type'])}" for field in type_["fields"])
    return f"struct<{','.join(fields)}>"


def _field_json(
    name: str, type_: str | dict[str, Any], metadata: Mapping[str, str], *, is_nullable: bool = True
) -> dict[str, Any]:
    """Build the JSON of a ``StructField``."""
    return {"name": name, "type": type_, "nullable": is_nullable, "metadata": dict(metadata)}
