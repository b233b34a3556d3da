"""An input after reading: its rows in canonical columns, and facts that need no job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.inputs.input_columns import CORRUPT, GivenInputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from rankeval_spark.inputs.spark.canonical_columns import Canonical


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns."""

    name: str  # ``recommendations``, ``held_out``, ``segments``, ``train`` or ``items``
    # Columns of the input's schema in its order, after the filters. Ids are string or bigint. Columns that the table
    # does not have contain their default (``input_columns.DEFAULTS``). It has ``input_columns.IS_UNPARSABLE`` too iff
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
    canonical: Canonical | None = None  # how `rows` become `frame`
    # Of a log with one row per list, the same as it is: the columns of `frame` that a list has, and the arrays
    # :data:`row_kinds.LISTED_ITEMS` and :data:`row_kinds.LISTED_SCORES`, the latter where there are scores. Their
    # elements are of types that the engine converts to those of `frame`.
    lists: DataFrame | None = None

    @property
    def with_raw(self) -> Source:
        """The same input with ``input_columns.RAW`` in `frame`; a DataFrame of the caller is unchanged."""
        if self.rows is None or self.canonical is None:
            return self
        return replace(self, frame=self.canonical.to_rows(self.rows, has_raw=True))

    @property
    def counted(self) -> DataFrame:
        """As many rows as `frame` has, of which no cell is read."""
        if self.lists is not None:
            return self.lists.select(F.explode(row_kinds.LISTED_ITEMS))
        has_lists = self.canonical is not None and self.canonical.reading.nested is not None
        return self.frame if self.rows is None or has_lists else self.rows

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
        """The same inputs, each with the column :data:`input_columns.RAW`."""
        return Sources(**{source.name: source.with_raw for source in self.all()})
