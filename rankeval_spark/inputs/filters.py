"""Filters of an input as a condition of Spark or Arrow; values have the type of their column."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import COMPARE, parse_moment, parse_time
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.inputs.input_columns import is_bigint
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.time_zones import UTC, clock_of

if TYPE_CHECKING:
    from pyspark.sql import Column, types as T

    from rankeval_spark.config.inputs import Filter, Scalar

Value = str | int | float | dt.date


@dataclass(frozen=True)
class RowFilter:
    """The rows of an input that are read on a date: all filters hold, and none does where its column is NULL."""

    filters: Sequence[Filter]
    date: dt.date
    where: str = ""  # place of the filters in the config, for messages
    time_zone: str = UTC  # zone in which days begin, and of times without one

    def spark(self, schema: T.StructType) -> Column | None:
        """Build the condition in Spark; None without filters. The table has the columns of all of them.

        Raises ConfigError: all values that are not of their column's type; of a window of days the first one.
        """
        conditions: list[Column] = []
        faults: dict[int, Fault] = {}
        for each in self.filters:
            kind = schema[each.column].dataType.simpleString()
            try:
                conditions.append(_sql_condition(each, kind, self))
            except ValueError as error:
                found = f"{error} for column {each.column!r} of type {kind}"
                place = f"{self.where}[{each.place}].value"
                faults.setdefault(each.place, Fault(place, found, "a value of the column's type"))
        if faults:
            raise ConfigError(*faults.values())
        return reduce(operator.and_, conditions) if conditions else None

    def arrow(self, schema: pa.Schema) -> pc.Expression | None:
        """Build the condition in Arrow; None without filters.

        Raises ForSparkError: a column is missing, a value is none of its type, or the comparison is one that depends on
        how numbers are rounded.
        """
        conditions = [_arrow_condition(each, schema, self) for each in self.filters]
        return reduce(operator.and_, conditions) if conditions else None


def _sql_condition(each: Filter, kind: str, rows: RowFilter) -> Column:
    """Build one condition on a column of a type, as Spark names it; a number is compared with the number in a text."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - this module is loaded without Spark too

    def literal(value: Value) -> Column:
        if isinstance(value, dt.date):  # as text, with its offset: a literal would be in the zone of the session
            return F.lit(value.isoformat()).cast(kind)
        return F.lit(value).cast("bigint") if isinstance(value, int) and kind != "boolean" else F.lit(value)

    values, left = each.values(rows.date), F.col(C.quoted_name(each.column))
    if _READERS.get(re.split(r"\W", kind)[0]) is _text and not any(isinstance(value, str | bool) for value in values):
        left, kind = left.try_cast("double"), "double"
    literals = [literal(_of_type(value, kind, rows.time_zone)) for value in values]
    if each.op == "in":
        return left.isin(*literals)
    compared: Column = COMPARE[each.op](left, literals[0])
    return compared


def _arrow_condition(each: Filter, schema: pa.Schema, rows: RowFilter) -> pc.Expression:
    if schema.get_field_index(each.column) < 0:
        raise ForSparkError(each.column, "no such column")
    type_, field = schema.field(each.column).type, pc.field(each.column)
    kind = next((kind for is_kind, kind in _ARROW_KINDS if is_kind(type_)), "")
    values = []
    for value in each.values(rows.date):
        try:
            typed = _of_type(value, kind, rows.time_zone)
        except ValueError:
            typed = 0.0  # as a number with a fraction, which is compared as Spark rounds it
        if isinstance(typed, float):
            raise ForSparkError(repr(value), f"against a column of type {type_}")
        values.append(pa.scalar(typed, pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else None))
    if each.op == "in":
        return field.isin(pa.array([value.as_py() for value in values], values[0].type))
    return COMPARE[each.op](field, values[0])


_ARROW_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_), "string"),
    (pa.types.is_signed_integer, "bigint"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date32, "date"),
    (lambda type_: pa.types.is_timestamp(type_) and type_.tz is not None, "timestamp"),
    (pa.types.is_timestamp, "timestamp_ntz"),
)
"""Types whose values Arrow compares as Spark does, with Spark's names."""


def _of_type(value: Scalar, kind: str, time_zone: str) -> Value:
    """Convert a value to one of a type that Spark names; raise ValueError with the value where it is none."""
    name = re.split(r"\W", kind)[0]
    try:
        if name in _READERS_OF_TIMES:
            return _READERS_OF_TIMES[name](value, time_zone)
        if name in _READERS:
            return _READERS[name](value)
    except (ValueError, TypeError, OverflowError):
        pass
    raise ValueError(repr(value))


def _text(value: Scalar) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Scalar) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Scalar) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _whole(value: Scalar) -> int | float:
    if isinstance(value, bool) or not (isinstance(value, float) or is_bigint(int(value))):
        raise TypeError
    return value if isinstance(value, float) else int(value)


def _day(value: Scalar) -> dt.date:
    day = dt.date.fromisoformat(str(value))
    if day.isoformat() != value:  # newer versions of Python read 20260131 too
        raise ValueError
    return day


def _moment(value: Scalar, time_zone: str) -> dt.datetime:
    return parse_moment(str(value), time_zone).astimezone(dt.UTC)


def _clock(value: Scalar, time_zone: str) -> dt.datetime:
    """Return what the clocks of the zone show; a time without an offset stays, also one that they skip."""
    time = parse_time(str(value))
    return time if time.tzinfo is None else clock_of(time, time_zone)


_READERS: Final[Mapping[str, Callable[[Scalar], Value]]] = {
    **dict.fromkeys(("string", "char", "varchar"), _text),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _whole),
    **dict.fromkeys(("float", "double", "decimal"), _number),
    **{"boolean": _flag, "date": _day},
}
_READERS_OF_TIMES: Final[Mapping[str, Callable[[Scalar, str], dt.datetime]]] = {
    "timestamp": _moment,
    "timestamp_ntz": _clock,
}
