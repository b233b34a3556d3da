"""Structured filters as Column expressions; values are converted to the column's type before Spark gets them."""

from __future__ import annotations

import datetime as dt
import operator
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, functions as F, types as T

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import COMPARE, parse_moment
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.inputs.input_columns import is_bigint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankeval_spark.config.inputs import Filter, Scalar

TEXT: Final = (T.StringType, T.CharType, T.VarcharType)


def column(name: str) -> Column:
    """Refer to a top-level column by its exact name, with any characters."""
    return F.col(C.quoted_name(name))


def filter_condition(filters: Sequence[Filter], schema: T.StructType, date: dt.date, where: str) -> Column | None:
    """Build the condition that rows must meet; None without filters.

    The columns of the filters exist in ``schema``; ``where`` is the place of the filters in the config.

    Raises ConfigError: all values that are not of their column's type; of a window of days the first one.
    """
    conditions: list[Column] = []
    faults: dict[int, Fault] = {}
    for each in filters:
        try:
            conditions.append(_condition(each, schema[each.column].dataType, date))
        except ValueError as error:
            found = f"{error} for column {each.column!r} of type {schema[each.column].dataType.simpleString()}"
            faults.setdefault(each.place, Fault(f"{where}[{each.place}].value", found, "a value of the column's type"))
    if faults:
        raise ConfigError(*faults.values())
    return reduce(operator.and_, conditions) if conditions else None


def _condition(each: Filter, data_type: T.DataType, date: dt.date) -> Column:
    values = each.values(date)
    left = column(each.column)
    if isinstance(data_type, TEXT) and all(map(_is_number, values)):
        left, data_type = left.try_cast("double"), T.DoubleType()
    literals = [_literal(value, data_type) for value in values]
    if each.op == "in":
        return left.isin(*literals)
    compared: Column = COMPARE[each.op](left, literals[0])
    return compared


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _literal(value: Scalar, data_type: T.DataType) -> Column:
    """Convert a value to a literal of a type, or raise ValueError with the value."""
    read = next((read for kinds, read in _READERS if isinstance(data_type, kinds)), None)
    if read is None:
        raise ValueError(repr(value))
    try:
        return read(value)
    except (ValueError, TypeError):
        raise ValueError(repr(value)) from None


def _text(value: Scalar) -> Column:
    if not isinstance(value, str):
        raise TypeError
    return F.lit(value)


def _whole(value: Scalar) -> Column:
    if isinstance(value, float):
        return F.lit(value)
    number = int(_not_bool(value))
    if not is_bigint(number):
        raise ValueError
    return F.lit(number).cast("bigint")


def _number(value: Scalar) -> Column:
    return F.lit(float(_not_bool(value)))


def _not_bool(value: Scalar) -> str | int | float:
    if isinstance(value, bool):
        raise TypeError
    return value


def _flag(value: Scalar) -> Column:
    if not isinstance(value, bool):
        raise TypeError
    return F.lit(value)


def _date(value: Scalar) -> Column:
    day = dt.date.fromisoformat(str(value))
    if day.isoformat() != value:  # newer versions of Python read 20260131 too
        raise ValueError
    return F.lit(value).cast("date")


def _timestamp(value: Scalar) -> Column:
    # with its offset, so that the session's time zone does not matter
    return F.lit(parse_moment(str(value)).isoformat()).cast("timestamp")


def _zoneless_timestamp(value: Scalar) -> Column:
    # a column without a zone is in UTC, as in canonical_columns.py
    moment = parse_moment(str(value)).astimezone(dt.UTC)
    return F.lit(moment.replace(tzinfo=None).isoformat()).cast("timestamp_ntz")


_READERS: Final[tuple[tuple[tuple[type[T.DataType], ...], Callable[[Scalar], Column]], ...]] = (
    (TEXT, _text),
    ((T.IntegralType,), _whole),
    ((T.FractionalType,), _number),
    ((T.BooleanType,), _flag),
    ((T.DateType,), _date),
    ((T.TimestampType,), _timestamp),
    ((T.TimestampNTZType,), _zoneless_timestamp),
)
