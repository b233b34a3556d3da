"""Shapes of inputs that are not one row per judgement or recommended item: events, and lists in one row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, StringConstraints, WithJsonSchema, model_validator

from rankeval_spark import columns as C
from rankeval_spark.config.sections.base import Model, Number, fault_error
from rankeval_spark.errors import Fault

ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


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
    the check `null_gains` counts."""
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
