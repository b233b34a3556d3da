"""The declared columns as JSON, the form in which Delta's log and Spark keep the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from rankeval_spark.schemas import Field, Schema

Json: TypeAlias = Mapping[str, Any]
"""Columns or one column, as ``StructType.jsonValue()`` and ``StructField.jsonValue()`` of Spark return them."""

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
_TOKEN: Final = re.compile(r"\s*([A-Za-z_]\w*|[<>:,])")


def columns_json(schema: Schema, extra_fields: Iterable[Field] = ()) -> dict[str, Any]:
    """Columns of ``schema``, then ``extra_fields``, each with its comment.

    Examples
    --------
    >>> from rankeval_spark import schemas
    >>> [field["type"] for field in columns_json(schemas.TRAIN)["fields"]]
    ['string', 'string', 'timestamp']
    """
    return {"type": "struct", "fields": [column_json(field) for field in (*schema.fields, *extra_fields)]}


def column_json(field: Field) -> dict[str, Any]:
    """Turn one declared column into JSON; its comment is kept where Spark and Delta look for it."""
    return _field(field.name, type_json(field.type), {"comment": field.comment}, is_nullable=field.nullable)


def type_json(type_string: str) -> str | dict[str, Any]:
    """Parse a type string of :mod:`rankeval_spark.schemas`.

    Examples
    --------
    >>> type_json("bigint")
    'long'
    >>> type_name(type_json("array<struct<name:string,n_rows:bigint>>"))
    'array<struct<name:string,n_rows:bigint>>'
    """
    parsed, rest = _parse(list(_tokens(type_string)))
    if rest:
        raise _unreadable(type_string)
    return parsed


def type_name(type_: str | Json) -> str:
    """Write a type as :mod:`rankeval_spark.schemas` does; one that is declared nowhere keeps its name in the log."""
    if isinstance(type_, str):
        return _DECLARED.get(type_, type_)
    if type_["type"] == "array":
        return f"array<{type_name(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{type_name(type_['keyType'])},{type_name(type_['valueType'])}>"
    fields = (f"{one['name']}:{type_name(one['type'])}" for one in type_["fields"])
    return f"struct<{','.join(fields)}>"


def _field(
    name: str, type_: str | dict[str, Any], metadata: Mapping[str, str], *, is_nullable: bool = True
) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": is_nullable, "metadata": dict(metadata)}


def _tokens(type_string: str) -> Iterator[str]:
    position = 0
    while position < len(type_string):
        match = _TOKEN.match(type_string, position)
        if match is None:
            raise _unreadable(type_string)
        yield match.group(1)
        position = match.end()


def _parse(tokens: list[str]) -> tuple[str | dict[str, Any], list[str]]:
    head, rest = _split(tokens)
    if head == "array":
        element, rest = _parse(_after("<", rest))
        return {"type": "array", "elementType": element, "containsNull": True}, _after(">", rest)
    if head == "map":
        key, rest = _parse(_after("<", rest))
        value, rest = _parse(_after(",", rest))
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}, _after(">", rest)
    if head == "struct":
        return _parse_struct(_after("<", rest))
    if head not in ATOMIC_TYPES:
        raise _unreadable(head)
    return ATOMIC_TYPES[head], rest


def _parse_struct(tokens: list[str]) -> tuple[dict[str, Any], list[str]]:
    fields = []
    separator, rest = ",", tokens
    while separator == ",":
        name, rest = _split(rest)
        type_, rest = _parse(_after(":", rest))
        fields.append(_field(name, type_, {}))
        separator, rest = _split(rest)
    return {"type": "struct", "fields": fields}, _after(">", [separator, *rest])


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
