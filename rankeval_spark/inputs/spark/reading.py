"""Read the inputs of an evaluation date into their canonical columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import schemas
from rankeval_spark.config.inputs import HeldOutInput, ItemsInput, RecommendationsInput
from rankeval_spark.errors import ConfigError, FaultsError, InputError
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import check_id_types, filter_faults, input_schemas
from rankeval_spark.inputs.spark.canonical_columns import Reading, canonical_columns
from rankeval_spark.inputs.spark.nested_lists import arrays_of, nested_of, to_list_rows
from rankeval_spark.inputs.spark.opening import open_table, parquet_faults
from rankeval_spark.inputs.spark.source import CORRUPT, Source, Sources, column

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.config.evaluation_config import EvaluationConfig
    from rankeval_spark.config.inputs import Gains, InputConfig
    from rankeval_spark.schemas import Schema


def read_all(spark: SparkSession, config: EvaluationConfig, date: dt.date) -> Sources:
    """Read every input of an evaluation, and report all of their faults at once.

    Raises InputError if an input or a column is missing or cannot be read. Raises ConfigError if a filter has a value
    of another type than its column. Raises ChecksFailedError if an id is text in one input and a number in another.
    """
    faults: list[FaultsError] = []

    by_name = input_schemas(config.segment_names(), numbers=config.bands, lists=config.policies.lists)
    found: dict[str, Source] = {}
    for name, given in config.inputs:
        if given is not None:
            try:
                found[name] = read_input(spark, name, given, by_name[name], date)
            except FaultsError as error:
                faults.append(error)
    if faults:
        raise _merged(faults)
    sources = Sources(**found)
    check_id_types(sources.all())
    return sources


def read_input(spark: SparkSession, name: str, config: InputConfig, schema: Schema, date: dt.date) -> Source:
    """Read one input, called ``name`` in the config, into the columns of a canonical schema.

    It only looks up the version and the columns (Delta: the history; csv and json: the first lines).

    Raises InputError, ConfigError as :func:`read_all`.
    """
    table = open_table(spark, name, config, date)
    where = f"inputs.{name}"
    faults = filter_faults(config.filters, table.columns, where)
    try:
        reading = Reading(
            where,
            config.renames,
            config.types,
            config.list_separator if isinstance(config, ItemsInput) else None,
            config.ranks_from if isinstance(config, RecommendationsInput) else 1,
            config.gains if isinstance(config, HeldOutInput) else None,
            config.places,
        )
        nested = config.nested if isinstance(config, RecommendationsInput) else None
        arrays = arrays_of(table.frame.schema, nested, where) if nested else None
        flat = arrays.to_items(table.frame) if arrays else table.frame
        canonical = canonical_columns(flat.schema, schema, reading)
    except InputError as error:
        raise InputError(*error.faults, *faults) from None
    if faults:
        raise InputError(*faults)
    wanted = [*config.columns_read(schema.field_names(), table.columns), *(each.column for each in config.filters)]
    if config.format == "parquet":
        differing = parquet_faults(spark, table, wanted, where, date)
        if differing:
            raise InputError(*differing)
    condition = RowFilter(config.filters, date, f"{where}.filters").spark(table.frame.schema)
    if condition is not None and CORRUPT in table.frame.columns:
        condition |= column(CORRUPT).isNotNull()  # its columns are unknown, so it is kept and counted
    filtered = table.frame if condition is None else table.frame.where(condition)
    rows = arrays.to_items(filtered) if arrays else filtered
    return Source(
        name=name,
        frame=rows.select(*canonical.columns),
        unfiltered=table.frame,
        location=table.location,
        format=config.format,
        version=table.version,
        given=canonical.given,
        id_types=canonical.id_types,
        unread=tuple(name for name in table.columns if name not in wanted),
        rows=rows,
        canonical=canonical.columns,
        lists=to_list_rows(filtered, arrays, canonical) if arrays else None,
    )


def from_frame(
    name: str, frame: DataFrame, schema: Schema, *, ranks_from: int = 1, gains: Gains | None = None
) -> Source:
    """Bring a DataFrame with canonical names into canonical columns; no job, no change of the session.

    ``name`` is the argument, for messages; ``ranks_from`` the rank of the first item of a list; ``gains`` how events
    of the judgements become gains.

    Raises InputError if a column is missing or of a type that cannot be cast.
    """
    is_log = schema.name == schemas.RECOMMENDATIONS.name
    nested = nested_of(frame, name, ranks_from=ranks_from) if is_log else None
    events = gains if schema.name == schemas.HELD_OUT.name else None
    shape = nested or events
    renames, places = (shape.renames, shape.places) if shape else ({}, {})
    reading = Reading(name, renames, ranks_from=ranks_from, gains=events, places=places)
    arrays = arrays_of(frame.schema, nested, name) if nested else None
    rows = arrays.to_items(frame) if arrays else frame
    canonical = canonical_columns(rows.schema, schema, reading)
    return Source(
        name,
        rows.select(*canonical.columns),
        frame,
        name,
        "frame",
        None,
        canonical.given,
        canonical.id_types,
        lists=to_list_rows(frame, arrays, canonical) if arrays else None,
    )


def _merged(errors: Sequence[FaultsError]) -> FaultsError:
    """Combine the faults of several errors; if an input is missing, the result is an InputError."""
    kind = InputError if any(isinstance(error, InputError) for error in errors) else ConfigError
    return kind(*(fault for error in errors for fault in error.faults))
