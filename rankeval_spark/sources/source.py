"""What reading an input gives: its rows in canonical columns, and what is known of it without a job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.sources.filters import column
from rankeval_spark.sources.table import CORRUPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

IS_UNPARSABLE: Final = "is_unparsable"
"""Extra column of a frame whose numbers or casts may fail: true where text was there and no value came of it."""

RAW: Final = "_raw"
"""Column that holds a row unchanged from the table: JSON, or the line of csv or json that could not be split."""


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns.

    Attributes
    ----------
    name : str
        ``recommendations``, ``held_out``, ``segments``, ``train`` or ``items``.
    frame : DataFrame
        Grain and columns of the input's schema, all of them, in its order; the filters applied. Ids are string or
        bigint. Columns that the table does not have hold their default (``model_id`` 'model', ``list_id`` '',
        ``gain`` 1) or NULL (``score``, ``rank``, ``interacted_at``, ``value``, and all of ``items`` but the ids). One
        more column, :data:`IS_UNPARSABLE`, iff `has_unparsable`.
    unfiltered : DataFrame
        The table as it is, before the filters.
    location : str
        Absolute path or table name.
    format : str
        ``delta``, ``parquet``, ``csv``, ``json``; ``frame`` for a DataFrame that was handed over.
    version : int or None
        Version of the Delta table that every read of `frame` sees; None for other formats.
    given : frozenset of str
        Canonical columns that the table has.
    id_types : mapping
        Type of each id, ``string`` or ``bigint``, by canonical column.
    unread : tuple of str
        Columns of the table that nothing reads, in its order.
    rows : DataFrame or None
        Rows of the table as it is that the filters keep; None for a DataFrame that was handed over.
    canonical : tuple of Column
        Expressions that make `frame` of `rows`.
    """

    name: str
    frame: DataFrame
    unfiltered: DataFrame
    location: str
    format: str
    version: int | None
    given: frozenset[str]
    id_types: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    rows: DataFrame | None = None
    canonical: tuple[Column, ...] = ()

    @property
    def with_raw(self) -> Source:
        """The same input with one more column in `frame`, :data:`RAW`; a frame that was handed over stays as it is."""
        if self.rows is None:
            return self
        names = [name for name in self.rows.columns if name != CORRUPT]
        values = F.to_json(F.struct(*map(column, names)), {"ignoreNullFields": "false"})
        raw = F.coalesce(column(CORRUPT), values) if CORRUPT in self.rows.columns else values
        return replace(self, frame=self.rows.select(*self.canonical, raw.alias(RAW)))

    @property
    def n_columns(self) -> int:
        """How many columns the table has by itself."""
        return sum(name != CORRUPT for name in self.unfiltered.columns)

    @property
    def table_columns(self) -> str:
        """Columns and types of the table as it is, such as ``user_id string, day date``; csv and json are text."""
        fields = self.unfiltered.schema.fields
        return ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in fields if one.name != CORRUPT)

    @property
    def has_score(self) -> bool:
        """Whether the table has scores."""
        return C.SCORE in self.given

    @property
    def has_rank(self) -> bool:
        """Whether the table has ranks."""
        return C.RANK in self.given

    @property
    def has_model_id(self) -> bool:
        """Whether the table names its models; else there is one, 'model'."""
        return C.MODEL_ID in self.given

    @property
    def has_list_id(self) -> bool:
        """Whether a user may have several lists."""
        return C.LIST_ID in self.given

    @property
    def has_gain(self) -> bool:
        """Whether the judgements are graded; else every gain is 1."""
        return C.GAIN in self.given

    @property
    def has_interacted_at(self) -> bool:
        """Whether it is known when each judgement was made."""
        return C.INTERACTED_AT in self.given

    @property
    def has_unparsable(self) -> bool:
        """Whether `frame` has the column :data:`IS_UNPARSABLE`."""
        return IS_UNPARSABLE in self.given


@dataclass(frozen=True)
class Sources:
    """The inputs of one evaluation date."""

    recommendations: Source
    held_out: Source
    segments: Source | None = None
    train: Source | None = None
    items: Source | None = None

    @property
    def with_raw(self) -> Sources:
        """The same inputs, each with the column :data:`RAW` in its frame."""
        return Sources(**{source.name: source.with_raw for source in self.all()})

    def all(self) -> tuple[Source, ...]:
        """Return the inputs that there are, in the order of the config."""
        every = (self.recommendations, self.held_out, self.segments, self.train, self.items)
        return tuple(source for source in every if source)
