"""Filters of a config as conditions on the rows of a table of files; what is not certain is left to Spark."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.config.inputs import COMPARE, parse_moment
from rankeval_spark.inputs.arrow.arrow_types import is_text
from rankeval_spark.inputs.arrow.files import ForSparkError
from rankeval_spark.inputs.input_columns import is_bigint

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import Filter, Scalar


def condition(filters: Sequence[Filter], schema: pa.Schema, date: dt.date) -> pc.Expression | None:
    """Build the condition that rows have to fulfil, none of them where a column of it is NULL; None without a filter.

    Raises
    ------
    ForSparkError
        A column is missing, a value is none of its type, or the comparison is one that depends on how numbers are
        rounded.
    """
    conditions = [_condition(each, schema, date) for each in filters]
    return reduce(operator.and_, conditions) if conditions else None


def _condition(each: Filter, schema: pa.Schema, date: dt.date) -> pc.Expression:
    if schema.get_field_index(each.column) < 0:
        raise ForSparkError(each.column, "no such column")
    kind, field = schema.field(each.column).type, pc.field(each.column)
    values = [_scalar(value, kind) for value in each.values(date)]
    if each.op == "in":
        return field.isin(pa.array([value.as_py() for value in values], values[0].type))
    return COMPARE[each.op](field, values[0])


def _scalar(value: Scalar, kind: pa.DataType) -> pa.Scalar:
    """Write a value as one of a type."""
    read = next((read for is_kind, read in _READERS if is_kind(kind)), None)
    found = None if read is None else read(value, kind)
    if found is None:
        raise ForSparkError(repr(value), f"against a column of type {kind}")
    return found


def _text(value: Scalar, _: pa.DataType) -> pa.Scalar | None:
    return pa.scalar(value) if isinstance(value, str) else None


def _whole(value: Scalar, _: pa.DataType) -> pa.Scalar | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and is_bigint(value)
    return pa.scalar(value, pa.int64()) if is_whole else None


def _flag(value: Scalar, _: pa.DataType) -> pa.Scalar | None:
    return pa.scalar(value) if isinstance(value, bool) else None


def _day(value: Scalar, _: pa.DataType) -> pa.Scalar | None:
    try:
        day = dt.date.fromisoformat(str(value))
    except ValueError:
        return None
    return pa.scalar(day, pa.date32()) if day.isoformat() == value else None


def _time(value: Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """Read a time; a column without a zone is taken for UTC."""
    try:
        moment = parse_moment(str(value)).astimezone(dt.UTC)
    except ValueError:
        return None
    return pa.scalar(moment if kind.tz else moment.replace(tzinfo=None), pa.timestamp("us", "UTC" if kind.tz else None))


_READERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Scalar, pa.DataType], pa.Scalar | None]], ...]] = (
    (is_text, _text),
    (pa.types.is_signed_integer, _whole),
    (pa.types.is_boolean, _flag),
    (pa.types.is_date32, _day),
    (pa.types.is_timestamp, _time),
)
