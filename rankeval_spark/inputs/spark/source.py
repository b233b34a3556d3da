"""An input after reading: its rows in canonical columns, and facts that need no job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, functions as F, types as T

from rankeval_spark import columns as C
from rankeval_spark.inputs.input_columns import GivenInputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

CORRUPT: Final = "_corrupt_record"
"""Column with a line of csv, json or trec that could not be split into columns; NULL for all other lines."""

IS_UNPARSABLE: Final = "is_unparsable"
"""Extra column of a frame whose casts can fail: true where a text could not be converted."""

RAW: Final = "_raw"
"""Column with the unchanged row: as JSON, or the line of csv or json that could not be split."""

TEXT: Final = (T.StringType, T.CharType, T.VarcharType)


def column(name: str) -> Column:
    """Refer to a top-level column by its exact name, with any characters."""
    return F.col(C.quoted_name(name))


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns."""

    name: str  # ``recommendations``, ``held_out``, ``segments``, ``train`` or ``items``
    # Columns of the input's schema in its order, after the filters. Ids are string or bigint. Columns that the table
    # does not have contain their default (``input_columns.DEFAULTS``). It has the column :data:`IS_UNPARSABLE` too iff
    # ``given`` names it.
    frame: DataFrame
    unfiltered: DataFrame  # the unchanged table, before the filters
    location: str  # absolute path or table name
    format: str  # as in the config; ``frame`` for a DataFrame of the caller
    version: int | None  # pinned version of a Delta table; None for other formats
    given: frozenset[str]  # canonical columns that the table has
    # Type of each id, ``string`` or ``bigint``, by canonical column
    id_types: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()  # columns of the table that nothing reads
    rows: DataFrame | None = None  # rows of the unchanged table after the filters; None for a DataFrame of the caller
    canonical: tuple[Column, ...] = ()  # expressions that select `frame` from `rows`
    # Of a log with one row per list, the same as it is: the columns of `frame` that a list has, and the arrays
    # :data:`row_kinds.LISTED_ITEMS` and :data:`row_kinds.LISTED_SCORES`, the latter where there are scores. Their
    # elements are of types that the engine converts to those of `frame`.
    lists: DataFrame | None = None

    @property
    def with_raw(self) -> Source:
        """The same input with the column :data:`RAW` in `frame`; a DataFrame of the caller is unchanged."""
        if self.rows is None:
            return self
        names = [name for name in self.rows.columns if name != CORRUPT]
        values = F.to_json(F.struct(*map(column, names)), {"ignoreNullFields": "false"})
        raw = F.coalesce(column(CORRUPT), values) if CORRUPT in self.rows.columns else values
        return replace(self, frame=self.rows.select(*self.canonical, raw.alias(RAW)))

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return sum(name != CORRUPT for name in self.unfiltered.columns)

    @property
    def table_columns(self) -> str:
        """Columns and types of the unchanged table, such as ``user_id string, day date``; csv and json are text."""
        fields = self.unfiltered.schema.fields
        return ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in fields if one.name != CORRUPT)

    @property
    def has_model_id(self) -> bool:
        """Whether the table names its models; otherwise there is one, 'model'."""
        return C.MODEL_ID in self.given

    @property
    def has_list_id(self) -> bool:
        """Whether a user can have several lists; of judgements, whether they name theirs."""
        return C.LIST_ID in self.given

    @property
    def has_interacted_at(self) -> bool:
        """Whether the judgements have times."""
        return C.INTERACTED_AT in self.given


@dataclass(frozen=True)
class Sources(GivenInputs[Source]):
    """The inputs of one evaluation date."""

    @property
    def with_raw(self) -> Sources:
        """The same inputs, each with the column :data:`RAW`."""
        return Sources(**{source.name: source.with_raw for source in self.all()})
