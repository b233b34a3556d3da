"""Inputs of an evaluation date on Spark, in their canonical columns, with facts that need no job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.errors import ConfigError, FaultsError, InputError
from rankeval_spark.inputs.arrow.canonical import Reading
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import (
    CORRUPT,
    IS_UNPARSABLE,
    LOG,
    GivenInputs,
    check_id_types,
    filter_faults,
    input_schemas,
)
from rankeval_spark.inputs.spark.canonical_columns import arrow_schema, column, plan_reading
from rankeval_spark.inputs.spark.opening import open_table, parquet_faults
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from rankeval_spark.config.evaluation_config import EvaluationConfig
    from rankeval_spark.config.inputs import InputConfig, InputRows
    from rankeval_spark.inputs.spark.canonical_columns import Canonical
    from rankeval_spark.schemas import Schema


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns."""

    name: str  # one of ``input_columns.INPUTS``
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
    def rows_to_count(self) -> DataFrame:
        """A frame with as many rows as `frame`, for which no cell is read."""
        if self.lists is not None:
            return self.lists.select(F.explode(row_kinds.LISTED_ITEMS))
        has_lists = self.canonical is not None and self.canonical.reading.nested is not None
        return self.frame if self.rows is None or has_lists else self.rows

    @property
    def n_columns(self) -> int:
        return sum(name != CORRUPT for name in self.unfiltered.columns)

    @property
    def table_columns(self) -> str:
        """Columns and types of the unchanged table, such as ``user_id string, day date``; csv and json are text."""
        fields = self.unfiltered.schema.fields
        return ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in fields if each.name != CORRUPT)


Sources: TypeAlias = GivenInputs[Source]
"""The inputs of one evaluation date."""


def read_all(spark: SparkSession, config: EvaluationConfig, date: dt.date) -> Sources:
    """Read every input of an evaluation, and report all of their faults at once."""
    errors: list[FaultsError] = []
    by_name = input_schemas(config.segment_names(), numbers=config.slicing.bands, lists=config.policies.lists)
    found: dict[str, Source] = {}
    for name, given in config.inputs.given.items():
        try:
            found[name] = read_input(spark, name, given, by_name[name], date)
        except (InputError, ConfigError) as error:  # others, such as of the environment, are no faults of inputs
            errors.append(error)
    if errors:
        kind = InputError if any(isinstance(error, InputError) for error in errors) else ConfigError
        raise kind(*(fault for error in errors for fault in error.faults))
    check_id_types({name: source.id_types for name, source in found.items()}, own_item=config.policies.own_item)
    return Sources(**found)


def read_input(spark: SparkSession, name: str, config: InputConfig, schema: Schema, date: dt.date) -> Source:
    """Read one input of a config into canonical columns; only its version and columns are looked up."""
    table, version = open_table(spark, name, config, date)
    columns, where = [column for column in table.columns if column != CORRUPT], f"inputs.{name}"
    faults = filter_faults(config.filters, columns, where)
    try:
        canonical = plan_reading(table.schema, Reading.from_rows(where, schema, config, config.time_zone))
    except InputError as error:
        raise InputError(*error.faults, *faults) from None
    if faults:
        raise InputError(*faults)
    wanted = [*config.columns_read(schema.field_names(), columns), *(each.column for each in config.filters)]
    if config.format == "parquet" and (differing := parquet_faults(spark, table, wanted, where, date)):
        raise InputError(*differing)
    condition = RowFilter(config.filters, date, f"{where}.filters", config.time_zone).spark_condition(table.schema)
    if condition is not None and CORRUPT in table.columns:
        condition |= column(CORRUPT).isNotNull()  # its columns are unknown, so it is kept and counted
    filtered = table if condition is None else table.where(condition)
    return Source(
        name=name,
        frame=canonical.to_rows(filtered),
        unfiltered=table,
        location=config.location(date),
        format=config.format,
        version=version,
        given=canonical.given,
        id_types=canonical.id_types,
        unread=tuple(name for name in columns if name not in wanted),
        rows=filtered,
        canonical=canonical,
        lists=canonical.to_lists(filtered) if canonical.reading.nested and name == LOG else None,
    )


def from_frame(
    name: str, frame: DataFrame, schema: Schema, rows: InputRows | None = None, time_zone: str = UTC
) -> Source:
    """Read a DataFrame of a call into canonical columns; no job, and the session stays as it is.

    ``name`` is the argument, for messages; ``rows`` says how it is read, by default by canonical names;
    ``time_zone`` is the zone of days, and of times without one.

    Raises InputError if a column is missing or of a type that cannot be cast.
    """
    canonical = plan_reading(
        frame.schema, Reading.from_frame(name, schema, arrow_schema(frame.schema), rows, time_zone)
    )
    lists = canonical.to_lists(frame) if canonical.reading.nested and name == LOG else None
    read = rows.renames.values() if rows else ()
    unread = tuple(own for own in frame.columns if own not in (*schema.field_names(), *read))
    table, given = canonical.to_rows(frame), canonical.given
    return Source(name, table, frame, name, "frame", None, given, canonical.id_types, unread=unread, lists=lists)


def unite_models(sources: Mapping[str, Source]) -> Source:
    """Append the logs of models to one another, each row with the name of its model."""
    is_marked = any(IS_UNPARSABLE in source.given for source in sources.values())

    def unite(frames: Iterable[DataFrame]) -> DataFrame:
        named = (frame.withColumn(C.MODEL_ID, F.lit(model)) for model, frame in zip(sources, frames, strict=True))
        return reduce(DataFrame.unionByName, named)

    def with_mark(source: Source) -> DataFrame:
        has_mark = IS_UNPARSABLE in source.given or not is_marked
        return source.frame if has_mark else source.frame.withColumn(IS_UNPARSABLE, F.lit(False))

    rows = unite(map(with_mark, sources.values()))
    lists = [source.lists for source in sources.values() if source.lists is not None]
    first, unread = next(iter(sources.values())), [name for source in sources.values() for name in source.unread]
    given = frozenset({C.MODEL_ID}).union(*(source.given for source in sources.values()))
    whole = unite(lists) if len(lists) == len(sources) else None
    return Source(
        LOG, rows, rows, LOG, first.format, None, given, first.id_types, unread=(*dict.fromkeys(unread),), lists=whole
    )
