"""Canonical columns of a table: renamed, cast without guessing, completed with defaults."""

from __future__ import annotations

import dataclasses
import operator
import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, functions as F, types as T

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.input_columns import (
    DEFAULTS,
    IDS,
    LAST_SECOND,
    MAX_BIGINT_DIGITS,
    NUMBERS_FIX,
    RANK_FIX,
    missing_faults,
    type_fault,
)
from rankeval_spark.inputs.spark.source import CORRUPT, IS_UNPARSABLE, TEXT, column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.inputs import Gains
    from rankeval_spark.schemas import Field, Schema

_NESTED: Final = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.BinaryType)
_TIMES: Final = (T.DateType, T.TimestampType, T.TimestampNTZType, T.NullType)
_SMALL: Final = (T.ByteType, T.ShortType, T.IntegerType)
_DAYS_AND_TIMES: Final = ("date", "timestamp")
_DAY: Final = 86_400_000_000
"""Microseconds of a day."""


@dataclass(frozen=True)
class Reading:
    """Options by which an input is read into its canonical columns."""

    where: str  # name of the input in the config, for messages
    # Name in the table, by canonical name; other columns have their canonical name
    renames: Mapping[str, str] = dataclasses.field(default_factory=dict)
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)  # ids to cast: ``string`` or ``integer``
    list_separator: str | None = None  # separates the elements of a list that is text; None: such text is a JSON array
    ranks_from: int = 1  # rank of the first item of a list in the table, 0 or 1; canonical ranks count from 1
    gains: Gains | None = None  # how the column of ``gain`` becomes gains, where it holds events, ratings or seconds
    # Key that names a column, by canonical name, where it is not ``columns``
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Canonical:
    """Expressions of the canonical columns of a table."""

    # Columns of the schema in its order, by name, then :data:`IS_UNPARSABLE` where a cast can fail
    named: Mapping[str, Column]
    given: frozenset[str]  # canonical columns that the table has
    id_types: Mapping[str, str]  # type of each id, ``string`` or ``bigint``

    @property
    def columns(self) -> tuple[Column, ...]:
        """The expressions in their order."""
        return tuple(self.named.values())


@dataclass(frozen=True)
class _Found:
    """A column of the table for a canonical column, and how the input is read."""

    field: Field
    name: str
    kind: T.DataType
    reading: Reading

    @property
    def raw(self) -> Column:
        return column(self.name)

    def is_a(self, *types: type[T.DataType]) -> bool:
        return isinstance(self.kind, types)

    def error(self, fix: str = "") -> InputError:
        return InputError(type_fault(self.reading.where, self.field, self.name, self.kind.simpleString(), fix))


@dataclass(frozen=True)
class _Cast:
    """A canonical column: its expression, its type, and whether its text is not a value of that type."""

    expression: Column
    type: str
    is_unparsable: Column | None = None


def canonical_columns(table: T.StructType, schema: Schema, reading: Reading) -> Canonical:
    """Plan the canonical columns of a table with the given schema.

    Raises InputError: all columns that are missing or of a type that cannot be cast.
    """
    names = {field.name: reading.renames.get(field.name, field.name) for field in schema.fields}
    given = {field.name for field in schema.fields if names[field.name] in table.names}
    own = [name for name in table.names if name != CORRUPT]
    faults: list[Fault] = missing_faults(own, names, reading.renames, reading.where, reading.places)
    casts: dict[str, _Cast] = {}
    for field in schema.fields:
        name = names[field.name]
        try:
            casts[field.name] = (
                _cast(_Found(field, name, table[name].dataType, reading))
                if field.name in given
                else _Cast(F.lit(DEFAULTS.get(field.name)).cast(field.type), field.type)
            )
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    unread = (name for name in schema.key if name not in names)
    casts |= {name: _Cast(F.lit(DEFAULTS[name]), "string") for name in unread}
    if C.RANK in given and reading.ranks_from == 0:
        casts[C.RANK] = _counted_from_1(casts[C.RANK])
    return _assemble(casts, schema, given, is_text=CORRUPT in table.names)


def _assemble(casts: Mapping[str, _Cast], schema: Schema, given: set[str], *, is_text: bool) -> Canonical:
    unparsable = [cast.is_unparsable for cast in casts.values() if cast.is_unparsable is not None]
    keys = {name: casts[name].expression for name in schema.key if name in given}
    if is_text:  # a broken line has values in wrong columns: with NULL keys it is counted and dropped
        unparsable.append(column(CORRUPT).isNotNull())
        keys = {name: F.when(column(CORRUPT).isNull(), key) for name, key in keys.items()}
    columns = {name: keys.get(name, cast.expression).alias(name) for name, cast in casts.items()}
    if unparsable:
        columns[IS_UNPARSABLE] = reduce(operator.or_, unparsable).alias(IS_UNPARSABLE)
        given = {*given, IS_UNPARSABLE}
    id_types = {name: casts[name].type for name in IDS if name in casts}
    return Canonical(columns, frozenset(given), id_types)


def _cast(found: _Found) -> _Cast:
    field = found.field
    if field.type.startswith("array<"):
        return _cast_list(found)
    if field.type in _DAYS_AND_TIMES:
        return _cast_time(found)
    if found.is_a(*_NESTED):
        raise found.error()
    if field.name in IDS:
        return _cast_id(found)
    if field.name == C.GAIN and found.reading.gains is not None:
        return _cast_gain(found, found.reading.gains)
    return _cast_rank(found) if field.name == C.RANK else _cast_plain(found)


def _cast_plain(found: _Found) -> _Cast:
    """Cast to text, or to a number other than a rank."""
    field, raw = found.field, found.raw
    if field == schemas.JUDGED_LIST and found.is_a(T.FloatType, T.DoubleType):
        raise found.error(fix="cast it to text or to whole numbers")  # its text is 1.0, which is no id of a list 1
    if field.type == "string":
        return _Cast((_in_utc(raw) if found.is_a(T.TimestampType) else raw).cast("string"), "string")
    if field.name == C.SCORE and found.is_a(T.IntegralType, T.DecimalType):
        return _Cast(raw, found.kind.simpleString())  # as doubles, different numbers could become equal
    if found.is_a(*TEXT):
        number = raw.try_cast(field.type)
        return _Cast(number, field.type, raw.isNotNull() & number.isNull())
    if not found.is_a(T.NumericType, T.BooleanType, T.NullType):
        raise found.error()
    return _Cast(raw.cast(field.type), field.type)


def _cast_gain(found: _Found, gains: Gains) -> _Cast:
    """Build gains of events, ratings or seconds; NULL where the column has no value, or one without a gain."""
    raw = found.raw
    if found.is_a(*TEXT, T.BooleanType) and gains.values:
        return _Cast(_gain_by_value(raw.cast("string"), gains.values), "double")
    if not found.is_a(*TEXT, T.NumericType, T.NullType):
        raise found.error()
    number, by_number = raw.try_cast("double"), gains.number_values()
    if by_number is None:
        raise found.error(NUMBERS_FIX)
    if by_number:
        return _Cast(_gain_by_value(number, by_number), "double")
    reached = reduce(operator.add, ((number >= edge).cast("double") for edge in gains.edges))
    return _Cast(F.when(~F.isnan(number), reached), "double")  # NaN is above every number


def _gain_by_value(given: Column, gains: Mapping[Any, float]) -> Column:
    return F.coalesce(*(F.when(given == value, gain) for value, gain in gains.items())).cast("double")


def _cast_list(found: _Found) -> _Cast:
    field, raw, separator = found.field, found.raw, found.reading.list_separator
    is_list = isinstance(found.kind, T.ArrayType) and not isinstance(found.kind.elementType, _NESTED)
    if not (is_list or found.is_a(*TEXT, T.NullType)):
        raise found.error()
    if found.is_a(*TEXT):
        raw = F.from_json(raw, "array<string>") if separator is None else _split(raw, separator)
    read = raw.try_cast(field.type)
    whole = F.when(F.forall(read, lambda element: element.isNotNull()), read)  # a partial list would be another list
    return _Cast(whole, field.type, found.raw.isNotNull() & whole.isNull())


def _split(raw: Column, separator: str) -> Column:
    """Split text at a literal separator; drop blanks around elements, and empty elements."""
    # A lambda, because F.trim has a second parameter, to which Spark would pass the position.
    parts = F.transform(F.split(raw, re.escape(separator)), lambda part: F.trim(part))  # noqa: PLW0108 - see above
    return F.filter(parts, lambda part: part != "")


def _cast_time(found: _Found) -> _Cast:
    """Cast a date or a time. Without a zone it is in UTC, and so is the day of a time, in any zone of the session."""
    field, raw = found.field, found.raw
    if found.is_a(*TEXT):
        time = _text_in_utc(raw) if field.type == "timestamp" else raw.try_cast(field.type)
        return _Cast(time, field.type, raw.isNotNull() & time.isNull())
    if field.type == "timestamp" and found.is_a(T.NumericType):  # Unix seconds
        return _Cast(F.when(raw.between(-LAST_SECOND, LAST_SECOND), raw.try_cast(field.type)), field.type)
    if not found.is_a(*_TIMES):
        raise found.error()
    if field.type == "timestamp" and found.is_a(T.DateType, T.TimestampNTZType):
        return _Cast(_text_in_utc(raw.cast("string")), field.type)
    is_instant = field.type == "date" and found.is_a(T.TimestampType)
    return _Cast((F.to_utc_timestamp(raw, F.current_timezone()) if is_instant else raw).cast(field.type), field.type)


def _in_utc(time: Column) -> Column:
    """Give a moment as the time in UTC that has no zone: as text, the zone of the session would change it."""
    micros = F.unix_micros(time)
    seconds = (F.pmod(micros, F.lit(_DAY)) / F.lit(1_000_000)).cast("decimal(18,6)")
    since = F.make_dt_interval(F.floor(micros / F.lit(_DAY)).cast("int"), F.lit(0), F.lit(0), seconds)
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + since


def _text_in_utc(text: Column) -> Column:
    """Read a time from text, in its own zone or else in UTC.

    A cast alone uses the zone of the session, where one hour in spring does not exist and one in autumn exists twice.
    """
    trimmed = F.trim(text)
    readings = (F.concat(trimmed, F.lit(rest)).try_cast("timestamp") for rest in ("Z", ":00Z", "T00:00:00Z", ""))
    return F.coalesce(*readings)


def _cast_rank(found: _Found) -> _Cast:
    """Cast a rank from whole numbers or text; a number outside the range of int becomes NULL."""
    raw = found.raw
    if found.is_a(*_SMALL, T.NullType):
        return _Cast(raw.cast("int"), "int")
    if not (found.is_a(*TEXT, T.LongType) or (isinstance(found.kind, T.DecimalType) and found.kind.scale == 0)):
        raise found.error(RANK_FIX)
    rank = raw.try_cast("int")
    return _Cast(rank, "int", raw.isNotNull() & rank.isNull())


def _counted_from_1(rank: _Cast) -> _Cast:
    """Convert ranks that count from 0; a negative rank becomes NULL."""
    counted = F.when(rank.expression >= 0, F.try_add(rank.expression, F.lit(1)))
    is_lost = rank.expression.isNotNull() & counted.isNull()
    return _Cast(counted, "int", is_lost if rank.is_unparsable is None else rank.is_unparsable | is_lost)


def _cast_id(found: _Found) -> _Cast:
    raw, forced = found.raw, found.reading.types.get(found.field.name)
    if forced == "string" or (forced is None and found.is_a(*TEXT)):
        return _Cast(raw.cast("string"), "string")
    if found.is_a(*TEXT):
        number = raw.try_cast("bigint")
        return _Cast(number, "bigint", raw.isNotNull() & number.isNull())
    is_whole = found.is_a(T.IntegralType) or (
        isinstance(found.kind, T.DecimalType) and found.kind.scale == 0 and found.kind.precision <= MAX_BIGINT_DIGITS
    )
    if not is_whole:
        fix = f"write {found.reading.where}.types: {{{found.field.name}: string}}"
        raise found.error(fix)
    return _Cast(raw.cast("bigint"), "bigint")
