"""Give a table its canonical columns: renamed, cast without guessing, completed with defaults."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, functions as F, types as T

from rankeval_spark import columns as C
from rankeval_spark.config.input_columns import DEFAULTS, IDS, MAX_BIGINT_DIGITS, RANK_FIX, missing_faults, type_fault
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.sources.filters import column
from rankeval_spark.sources.source import IS_UNPARSABLE
from rankeval_spark.sources.table import CORRUPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.schemas import Field, Schema

_TEXT: Final = (T.StringType, T.CharType, T.VarcharType)
_NESTED: Final = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.BinaryType)
_TIMES: Final = (T.DateType, T.TimestampType, T.TimestampNTZType, T.NullType)
_SMALL: Final = (T.ByteType, T.ShortType, T.IntegerType)
_DAYS_AND_TIMES: Final = ("date", "timestamp")


@dataclass(frozen=True)
class Canonical:
    """Expressions that make canonical columns of a table.

    Attributes
    ----------
    columns : tuple of Column
        The columns of the schema in its order, then :data:`IS_UNPARSABLE` where a cast can fail.
    given : frozenset of str
        Canonical columns that the table has.
    id_types : mapping
        Type of each id, ``string`` or ``bigint``.
    """

    columns: tuple[Column, ...]
    given: frozenset[str]
    id_types: Mapping[str, str]


@dataclass(frozen=True)
class _Cast:
    """A canonical column: its expression, its type, and when its text is not a value of that type."""

    expression: Column
    type: str
    is_unparsable: Column | None = None


def canonical_columns(  # noqa: PLR0913 - what a config says of one input
    table: T.StructType,
    schema: Schema,
    *,
    renames: Mapping[str, str],
    types: Mapping[str, str],
    where: str,
    list_separator: str | None = None,
    ranks_from: int = 1,
) -> Canonical:
    """Plan the canonical columns of a table.

    Parameters
    ----------
    table : StructType
        Schema of the table.
    schema : Schema
        Canonical schema.
    renames : mapping
        Canonical name: name in the table; the rest has its canonical name there.
    types : mapping
        Ids to cast: ``string`` or ``integer``.
    where : str
        Name of the input in the config, for messages.
    list_separator : str, optional
        Separates the elements of a list that is text; where it is left out such a text is a JSON array.
    ranks_from : int
        Rank of the first item of a list in the table, 0 or 1; canonical ranks count from 1.

    Raises
    ------
    InputError
        All columns that are missing or of a type that cannot be cast.
    """
    names = {field.name: renames.get(field.name, field.name) for field in schema.fields}
    given = {field.name for field in schema.fields if names[field.name] in table.names}
    faults = missing_faults([name for name in table.names if name != CORRUPT], names, renames, where)
    casts: dict[str, _Cast] = {}
    for field in schema.fields:
        try:
            casts[field.name] = (
                _cast_any(
                    field,
                    names[field.name],
                    table[names[field.name]].dataType,
                    types.get(field.name),
                    where,
                    list_separator,
                )
                if field.name in given
                else _Cast(F.lit(DEFAULTS.get(field.name)).cast(field.type), field.type)
            )
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    if C.RANK in given and ranks_from == 0:
        casts[C.RANK] = _counted_from_1(casts[C.RANK])
    return _assemble(casts, schema, given, is_text=CORRUPT in table.names)


def _assemble(casts: Mapping[str, _Cast], schema: Schema, given: set[str], *, is_text: bool) -> Canonical:
    unparsable = [cast.is_unparsable for cast in casts.values() if cast.is_unparsable is not None]
    keys = {name: casts[name].expression for name in schema.key if name in given}
    if is_text:  # what a broken line holds is in the wrong columns: without a key it is counted and left out
        unparsable.append(column(CORRUPT).isNotNull())
        keys = {name: F.when(column(CORRUPT).isNull(), key) for name, key in keys.items()}
    columns = [keys.get(name, cast.expression).alias(name) for name, cast in casts.items()]
    if unparsable:
        columns.append(reduce(operator.or_, unparsable).alias(IS_UNPARSABLE))
        given = {*given, IS_UNPARSABLE}
    id_types = {name: casts[name].type for name in IDS if name in casts}
    return Canonical(tuple(columns), frozenset(given), id_types)


def _cast_any(  # noqa: PLR0913, PLR0917 - as of _cast
    field: Field, name: str, found: T.DataType, forced: str | None, where: str, list_separator: str | None
) -> _Cast:
    if field.type.startswith("array<"):
        return _cast_list(field, name, found, where, list_separator)
    if field.type in _DAYS_AND_TIMES:
        return _cast_time(field, name, found, where)
    return _cast(field, name, found, forced, where)


def _cast_list(field: Field, name: str, found: T.DataType, where: str, separator: str | None) -> _Cast:
    raw = column(name)
    is_list = isinstance(found, T.ArrayType) and not isinstance(found.elementType, _NESTED)
    if not (is_list or isinstance(found, (*_TEXT, T.NullType))):
        raise InputError(_type_fault(where, field, name, found))
    if isinstance(found, _TEXT):
        raw = F.from_json(raw, "array<string>") if separator is None else _split(raw, separator)
    read = raw.try_cast(field.type)
    whole = F.when(F.forall(read, lambda element: element.isNotNull()), read)  # half a list would be another list
    return _Cast(whole, field.type, column(name).isNotNull() & whole.isNull())


def _split(raw: Column, separator: str) -> Column:
    """Split a text at a separator, which is no pattern; blanks around an element and empty elements are left out."""
    # Not F.trim by itself: its second parameter would get the position.
    parts = F.transform(F.split(raw, re.escape(separator)), lambda part: F.trim(part))  # noqa: PLW0108 - see above
    return F.filter(parts, lambda part: part != "")


def _cast_time(field: Field, name: str, found: T.DataType, where: str) -> _Cast:
    """Cast a date or a time; what has no zone is in UTC, and so is the day of a time, whatever the session's zone."""
    raw = column(name)
    if isinstance(found, _TEXT):
        time = _text_in_utc(raw) if field.type == "timestamp" else raw.try_cast(field.type)
        return _Cast(time, field.type, raw.isNotNull() & time.isNull())
    if field.type == "timestamp" and isinstance(found, T.NumericType):  # seconds of Unix
        return _Cast(raw.try_cast(field.type), field.type)
    if not isinstance(found, _TIMES):
        raise InputError(_type_fault(where, field, name, found))
    if field.type == "timestamp" and isinstance(found, T.DateType | T.TimestampNTZType):
        return _Cast(_text_in_utc(raw.cast("string")), field.type)
    is_instant = field.type == "date" and isinstance(found, T.TimestampType)
    return _Cast((F.to_utc_timestamp(raw, F.current_timezone()) if is_instant else raw).cast(field.type), field.type)


def _text_in_utc(text: Column) -> Column:
    """Read a time from text: by its own zone, or in UTC where it has none.

    A cast alone takes the zone of the session, in which an hour of spring does not exist and one of autumn is two.
    """
    trimmed = F.trim(text)
    readings = (F.concat(trimmed, F.lit(rest)).try_cast("timestamp") for rest in ("Z", ":00Z", "T00:00:00Z", ""))
    return F.coalesce(*readings)


def _cast(field: Field, name: str, found: T.DataType, forced: str | None, where: str) -> _Cast:
    raw = column(name)
    if isinstance(found, _NESTED):
        raise InputError(_type_fault(where, field, name, found))
    if field.name in IDS:
        return _cast_id(field, name, found, forced, where)
    if field.type == "string":
        return _Cast(raw.cast("string"), "string")
    if field.name == C.RANK:
        return _cast_rank(field, name, found, where)
    if field.name == C.SCORE and isinstance(found, T.IntegralType | T.DecimalType):
        return _Cast(raw, found.simpleString())  # a double would make ties of numbers that differ
    if isinstance(found, _TEXT):
        number = raw.try_cast(field.type)
        return _Cast(number, field.type, raw.isNotNull() & number.isNull())
    if not isinstance(found, T.NumericType | T.BooleanType | T.NullType):
        raise InputError(_type_fault(where, field, name, found))
    return _Cast(raw.cast(field.type), field.type)


def _cast_rank(field: Field, name: str, found: T.DataType, where: str) -> _Cast:
    """Cast a rank, of a type of whole numbers or text; what an int does not hold becomes NULL."""
    raw = column(name)
    if isinstance(found, (*_SMALL, T.NullType)):
        return _Cast(raw.cast("int"), "int")
    if not (isinstance(found, (*_TEXT, T.LongType)) or (isinstance(found, T.DecimalType) and found.scale == 0)):
        raise InputError(_type_fault(where, field, name, found, RANK_FIX))
    rank = raw.try_cast("int")
    return _Cast(rank, "int", raw.isNotNull() & rank.isNull())


def _counted_from_1(rank: _Cast) -> _Cast:
    """Let ranks that count from 0 count from 1; a negative one becomes NULL, which is no place in a list."""
    counted = F.when(rank.expression >= 0, F.try_add(rank.expression, F.lit(1)))
    is_lost = rank.expression.isNotNull() & counted.isNull()
    return _Cast(counted, "int", is_lost if rank.is_unparsable is None else rank.is_unparsable | is_lost)


def _cast_id(field: Field, name: str, found: T.DataType, forced: str | None, where: str) -> _Cast:
    raw = column(name)
    if forced == "string" or (forced is None and isinstance(found, _TEXT)):
        return _Cast(raw.cast("string"), "string")
    if isinstance(found, _TEXT):
        number = raw.try_cast("bigint")
        return _Cast(number, "bigint", raw.isNotNull() & number.isNull())
    is_whole = isinstance(found, T.IntegralType) or (
        isinstance(found, T.DecimalType) and found.scale == 0 and found.precision <= MAX_BIGINT_DIGITS
    )
    if not is_whole:
        fix = f"write {where}.types: {{{field.name}: string}}"
        raise InputError(_type_fault(where, field, name, found, fix))
    return _Cast(raw.cast("bigint"), "bigint")


def _type_fault(where: str, field: Field, name: str, found: T.DataType, fix: str = "") -> Fault:
    return type_fault(where, field, name, found.simpleString(), fix)
