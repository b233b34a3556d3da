"""How rows of a table are read: which of them, by filters; events as gains; and lists in one row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, cast

from pydantic import (
    BeforeValidator,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from rankeval_spark import columns as C
from rankeval_spark.config.sections.base import Model, Number, fault_error
from rankeval_spark.config.sections.durations import DAYS_PATTERN, MOST_DAYS, nearest_window, whole_days
from rankeval_spark.config.sections.locations import check_placeholders, date_placeholder, fill_date
from rankeval_spark.errors import Fault

ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
FilterOp = Literal["=", "!=", "<", "<=", ">", ">=", "in", "last", "next"]
WINDOWS: Final = ("last", "next")
"""Operators of a window of days, which an input has as two plain filters."""
Scalar = str | int | float | bool


def _filter_value(value: Any) -> Scalar | tuple[Scalar, ...]:  # noqa: ANN401 - a file can hold anything
    if isinstance(value, list | tuple):
        return tuple(cast("Scalar", _filter_value(element)) for element in value if _is_scalar(element, value))
    _is_scalar(value, value)
    return check_placeholders(value) if isinstance(value, str) else cast("Scalar", value)


def _is_scalar(element: object, value: object) -> bool:
    if not isinstance(element, str | int | float | bool):
        raise fault_error(Fault("", repr(value), "text, a number, true, false, or a list of them"))
    return True


_SCALAR_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
FilterValue = Annotated[
    Scalar | tuple[Scalar, ...],
    PlainValidator(_filter_value),
    PlainSerializer(lambda value: value),
    WithJsonSchema({"anyOf": [_SCALAR_SCHEMA, {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1}]}),
]


class Filter(Model):
    """Condition on a column of the table. Rows with NULL in the column never meet it."""

    column: ColumnName
    """Name of the column in the table."""
    op: FilterOp
    """Comparison operator; `in` takes a list. `last` and `next` take a number of days: those up to and including the
    evaluation date, and those after it."""
    value: FilterValue
    """Value to compare with, converted to the type of the column; `{date}` is the evaluation date, `{date-1}` the day
    before. A number is compared with the numeric value of a text column. With `last` and `next`, 1d to 3660d."""

    _place: int = PrivateAttr(default=0)

    @property
    def place(self) -> int:
        """Where the config has it among the filters of its input, from 0; the two filters of a window share a place."""
        return self._place

    @model_validator(mode="after")
    def _fits_its_op(self) -> Filter:
        if self.op in WINDOWS:
            return self._whole_days()
        is_list = isinstance(self.value, tuple)
        if is_list != (self.op == "in"):
            expected = "a list of values" if self.op == "in" else "a single value"
            fix = "" if self.op == "in" else "use op: in for a list"
            raise fault_error(Fault(".value", repr(self.value), f"{expected} with op {self.op!r}", fix))
        if self.value == ():
            raise fault_error(Fault(".value", "an empty list", "at least one value"))
        return self

    def _whole_days(self) -> Filter:
        try:
            whole_days(self.value)
        except ValueError:
            expected = f"whole days from 1d to {MOST_DAYS}d with op {self.op!r}"
            raise fault_error(Fault(".value", repr(self.value), expected, nearest_window(self.value))) from None
        return self

    def plain(self, place: int) -> tuple[Filter, ...]:
        """Return the filter at a place of its input; of a window the two that it is short for.

        They are half open, from the first day to before the day after the last one, so that they hold for times too.
        """
        if self.op in WINDOWS:
            days = whole_days(self.value)
            first, last = (1 - days, 0) if self.op == "last" else (1, days)
            ends = (">=", date_placeholder(first)), ("<", date_placeholder(last + 1))
            made = [self.model_copy(update={"op": op, "value": value}) for op, value in ends]
        else:
            made = [self.model_copy()]
        for each in made:
            each._place = place
        return tuple(made)

    def values(self, date: dt.date) -> tuple[Scalar, ...]:
        """Return the values to compare with, with the date filled in; one value unless the operator is ``in``."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(fill_date(value, date) if isinstance(value, str) else value for value in values)

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: Any,  # noqa: ANN401 - private type of pydantic
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Add how days are written, for checks in editors."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        of_window = {"properties": {"op": {"enum": list(WINDOWS)}}, "required": ["op"]}
        days = {"properties": {"value": {"type": "string", "pattern": f"^{DAYS_PATTERN}$"}}}
        schema.update({"if": of_window, "then": days})
        return schema


def _with_text_keys(values: Any) -> Any:  # noqa: ANN401 - a file can hold anything
    """Write keys as text: YAML makes numbers of ratings, and truth values of true and false."""
    if not isinstance(values, Mapping):
        return values
    return {str(key).lower() if isinstance(key, bool) else str(key): value for key, value in values.items()}


_GAINS_SCHEMA: Final = {"type": "object", "additionalProperties": {"type": "number"}}


class Gains(Model):
    """How a column of events, ratings or seconds becomes gains: by the gain of each value, or by edges."""

    column: ColumnName
    """Name of the column in the table."""
    values: Annotated[Mapping[str, Number], BeforeValidator(_with_text_keys), WithJsonSchema(_GAINS_SCHEMA)] = {}
    """Gain of each value, such as {purchase: 3, cart: 2, view: 1, skip: 0}. Rows with another value have no gain, which
    the check `invalid_gains` counts."""
    edges: tuple[Number, ...] = ()
    """Ascending numbers; the gain is how many of them the number in the column reaches. [4] is a threshold; seconds by
    [10, 30, 60] have the gains 0 to 3."""

    @model_validator(mode="after")
    def _values_or_edges(self) -> Gains:
        if bool(self.values) == bool(self.edges):
            found = "both values and edges" if self.values else "neither values nor edges"
            raise fault_error(Fault("", found, "one of them", "write values: {purchase: 3, view: 1} or edges: [4]"))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise fault_error(Fault(".edges", str(list(self.edges)), "ascending numbers, each once"))
        return self

    @property
    def renames(self) -> Mapping[str, str]:
        """The column by its canonical name."""
        return {C.GAIN: self.column}

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names it, below its input."""
        return {C.GAIN: "gains.column"}

    def number_values(self) -> dict[float, float] | None:
        """Return the gain of each value as a number; None where a value is no number."""
        try:
            return {float(value): gain for value, gain in self.values.items()}
        except ValueError:
            return None


POSITION: Final = "_position"
"""Column of the place of an item in its array, from 1, once a list is written as one row per item."""


class Nested(Model):
    """Where a row of the table is a whole list: the columns that hold its items and their scores, best item first."""

    items: ColumnName
    """Column of the ids: an array, text with a JSON array, or `column.field` for a field of an array of structs."""
    scores: ColumnName | None = None
    """Column of the scores, of the same forms. Without it, the order of the items is their rank."""

    @property
    def renames(self) -> Mapping[str, str]:
        """The columns of an item by their canonical names."""
        return {C.ITEM_ID: self.items, **({C.SCORE: self.scores} if self.scores else {}), C.RANK: POSITION}

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names each of them, below its input."""
        return {C.ITEM_ID: "nested.items", C.SCORE: "nested.scores"}

    def is_of_items(self, name: str, columns: Collection[str]) -> bool:
        """Return True if a column of the table has the items or scores of a list, or their canonical name.

        Parameters
        ----------
        columns : collection of str
            All columns of the table.
        """
        own = {column_and_field(path, columns)[0] for path in (self.items, self.scores) if path}
        return name in {*own, C.ITEM_ID, C.SCORE, C.RANK}


def column_and_field(path: str, columns: Collection[str]) -> tuple[str, str | None]:
    """Split ``column.field`` at its last dot; a name that the table has is a column.

    Examples
    --------
    >>> column_and_field("recommendations.movieId", ["user", "recommendations"])
    ('recommendations', 'movieId')
    >>> column_and_field("items", ["user", "items"]), column_and_field("a.b", ["a.b"])
    (('items', None), ('a.b', None))
    """
    head, dot, field = path.rpartition(".")
    return (path, None) if path in columns or not dot else (head, field)
