"""Queries that the audit runs on staged rows, whichever reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.results.storage.constraints import CONSTRAINTS

if TYPE_CHECKING:
    from rankeval_spark.errors import Fault
    from rankeval_spark.results.storage.constraints import Constraint
    from rankeval_spark.schemas import Schema


class Summary(NamedTuple):
    """Values of a column that are not NULL: how many, the lowest, the highest, and their mean or ratio of sums."""

    n: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None


Key: TypeAlias = tuple[str, int]
"""Model and cutoff."""

Summaries: TypeAlias = Mapping[Key, Mapping[str, Summary]]
"""Summaries of columns by model and cutoff."""


class StagedRows(ABC):
    """Rows of a staged table."""

    @abstractmethod
    def refused(self, schema: Schema) -> list[Fault]:
        """Find keys that occur more than once in the table, and rows that break a constraint of it.

        The table would refuse the rows by itself, but when the run has announced its publish: then no one could ever
        finish it.
        """

    @abstractmethod
    def has_several_lists(self) -> bool:
        """Whether a user has several lists of a model."""

    @abstractmethod
    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Summarise columns by model and cutoff.

        Parameters
        ----------
        weights : mapping
            The columns, each with that of its denominators where its mean is a ratio of sums.
        over_users : bool
            Whether the lists of each user are averaged before.
        """


def key_of(schema: Schema) -> list[str]:
    """Key of a table within one run."""
    return [name for name in schema.key if name not in C.RUN_KEY]


def rules_of(schema: Schema) -> list[Constraint]:
    """Constraints of a table on columns that it has."""
    names = schema.field_names()
    return [rule for rule in CONSTRAINTS.get(schema.name, {}).values() if set(rule.columns) <= set(names)]


def plain_columns(schema: Schema) -> list[str]:
    """Columns that must not be NULL and can be looked at.

    Arrays and maps are not: to know that they are there, all of them would have to be read.
    """
    return [
        field.name
        for field in schema.fields
        if not field.nullable and "<" not in field.type and field.name not in C.RUN_KEY
    ]
