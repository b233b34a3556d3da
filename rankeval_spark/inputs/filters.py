"""Filters of an input as a condition for Spark or Arrow; values have the type of their column."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Sequence
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

_ARROW_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_), "string"),
    (pa.types.is_signed_integer, "bigint"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date32, "date"),
    (lambda type_: pa.types.is_timestamp(type_) and type_.tz is not None, "timestamp"),
    (pa.types.is_timestamp, "timestamp_ntz"),
)
"""Types whose values Arrow compares as Spark does, with Spark's names."""


@dataclass(frozen=True)
class RowFilter:
    """The rows of an input that are read on a date: all filters hold, and none does where its column is NULL."""

    filters: Sequence[Filter]
    date: dt.date
    where: str = ""  # place of the filters in the config, for messages
    time_zone: str = UTC  # zone in which days begin, and of times without one

    def spark_condition(self, schema: T.StructType) -> Column | None:
        """Build the condition in Spark, None without filters; ConfigError with values of another type."""
        conditions: list[Column] = []
        faults: dict[int, Fault] = {}
        for filter_ in self.filters:
            kind = schema[filter_.column].dataType.simpleString()
            try:
                conditions.append(self._sql_condition(filter_, kind))
            except ValueError as error:
                found = f"{error} for column {filter_.column!r} of type {kind}"
                place = f"{self.where}[{filter_.place}].value"
                faults.setdefault(filter_.place, Fault(place, found, "a value of the column's type"))
        if faults:
            raise ConfigError(*faults.values())
        return reduce(operator.and_, conditions) if conditions else None

    def _sql_condition(self, filter_: Filter, kind: str) -> Column:
        """Build one condition on a column of a type that Spark names so; a number is compared with one in a text."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - this module is loaded without Spark too

        def literal(value: Value) -> Column:
            if isinstance(value, dt.date):  # as text, with its offset: a literal would be in the zone of the session
                return F.lit(value.isoformat()).cast(kind)
            return F.lit(value).cast("bigint") if isinstance(value, int) and kind != "boolean" else F.lit(value)

        values, left = filter_.values(self.date), F.col(C.quoted_name(filter_.column))
        is_text = _first_word(kind) in ("string", "char", "varchar")
        if is_text and not any(isinstance(value, str | bool) for value in values):
            left, kind = left.try_cast("double"), "double"
        literals = [literal(_convert_value(value, kind, self.time_zone)) for value in values]
        if filter_.op == "in":
            return left.isin(*literals)
        compared: Column = COMPARE[filter_.op](left, literals[0])
        return compared

    def arrow_condition(self, schema: pa.Schema) -> pc.Expression | None:
        """Build the condition in Arrow, None without filters; ForSparkError where Spark may decide otherwise."""
        conditions = []
        for filter_ in self.filters:
            if schema.get_field_index(filter_.column) < 0:
                raise ForSparkError(filter_.column, "no such column")
            type_, field = schema.field(filter_.column).type, pc.field(filter_.column)
            kind = next((kind for is_kind, kind in _ARROW_KINDS if is_kind(type_)), "")
            values = []
            for value in filter_.values(self.date):
                try:
                    typed = _convert_value(value, kind, self.time_zone)
                except ValueError:
                    typed = 0.0  # as a number with a fraction, which is compared as Spark rounds it
                if isinstance(typed, float):
                    raise ForSparkError(repr(value), f"against a column of type {type_}")
                values.append(pa.scalar(typed, pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else None))
            if filter_.op == "in":
                conditions.append(field.isin(pa.array([value.as_py() for value in values], values[0].type)))
            else:
                conditions.append(COMPARE[filter_.op](field, values[0]))
        return reduce(operator.and_, conditions) if conditions else None


def _first_word(kind: str) -> str:
    return re.split(r"\W", kind)[0]


def _convert_value(value: Scalar, kind: str, time_zone: str) -> Value:  # noqa: PLR0911 - a kind of type each
    """Convert a value to one of a type that Spark names; raise ValueError with any other value."""
    try:
        match _first_word(kind):
            case "string" | "char" | "varchar" if isinstance(value, str):
                return value
            case "boolean" if isinstance(value, bool):
                return value
            case "tinyint" | "smallint" | "int" | "bigint" if not isinstance(value, bool):
                if isinstance(value, float):
                    return value
                if is_bigint(int(value)):
                    return int(value)
            case "float" | "double" | "decimal" if not isinstance(value, bool):
                return float(value)
            case "date":
                day = dt.date.fromisoformat(str(value))
                if day.isoformat() == value:  # newer versions of Python read 20260131 too
                    return day
            case "timestamp":
                return parse_moment(str(value), time_zone).astimezone(dt.UTC)
            case "timestamp_ntz":  # what clocks of the zone show; a time without an offset stays, also one they skip
                time = parse_time(str(value))
                return time if time.tzinfo is None else clock_of(time, time_zone)
    except (ValueError, OverflowError):
        pass
    raise ValueError(repr(value))
