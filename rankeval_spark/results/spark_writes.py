"""Staging and publishing by Spark: frames of users, and all tables of stores that this process does not reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import delta_log, local_tables, local_writes, spark_tables, tables
from rankeval_spark.results.commits import Root, lost, retried
from rankeval_spark.results.file_store import inside
from rankeval_spark.results.tables import require_types

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.run_record import NightKey, RunRecord
    from rankeval_spark.schemas import Field, Schema


def conform_frame(frame: DataFrame, fields: Sequence[Field], facts: RunRecord, *, where: str) -> DataFrame:
    """Add the columns of a run, and order all columns, as :func:`tables.conform_rows`."""
    of_run = {C.EVALUATION: facts.evaluation, C.EVALUATION_DATE: facts.evaluation_date, C.RUN_ID: facts.run_id}
    keyed = frame.withColumns({name: F.lit(value) for name, value in of_run.items()})
    found = {field.name: field.dataType.simpleString() for field in keyed.schema.fields}
    require_types(found, {field.name: field.type for field in fields}, where)
    return keyed.select(*(F.col(field.name).alias(field.name, metadata={"comment": field.comment}) for field in fields))


def stage(spark: SparkSession, storage: Storage, path: str, night: NightKey, rows: DataFrame | pa.Table) -> None:
    """Stage the rows of a table at a path of the root, in one commit."""
    frame = rows if isinstance(rows, DataFrame) else spark.createDataFrame(rows)
    if local_tables.are_at(storage):  # our commit of plain files: Spark's own takes longer than few rows
        folder = inside(storage.root, f"{path}/{local_writes.folder_of(night)}")
        frame.drop(*local_tables.PARTITIONS).write.mode("error").parquet(folder)
        local_writes.commit_new(storage, path, frame.schema.json(), night)
        return
    writer = frame.write.format("delta").options(**tables.PROPERTIES).mode("error")
    writer.partitionBy(*local_tables.PARTITIONS).save(inside(storage.root, path))


def staged(
    spark: SparkSession, storage: Storage, path: str, night: NightKey, files: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Read the files of a staged table as Parquet.

    That spares the jobs in which Delta reads its log: the audit of four small tables takes 6 jobs instead of 25.
    """
    schema = T.StructType.fromJson(delta_log.columns(storage, path))
    if not files:
        return spark.createDataFrame([], schema)
    # The files lack the columns of the night.
    of_night = {C.EVALUATION: F.lit(night.evaluation), C.EVALUATION_DATE: F.lit(night.evaluation_date)}
    stored = T.StructType([field for field in schema.fields if field.name not in of_night])
    paths = [re.sub(r"([\\{}\[\]*?])", r"\\\1", f"{file['location']}/{file['path']}") for file in files]  # no patterns
    return spark.read.schema(stored).parquet(*paths).withColumns(of_night).select(*schema.fieldNames())


def replace_night(root: Root, schema: Schema, night: NightKey, run_id: str, rows: DataFrame | None) -> int:
    """Overwrite the rows of one night in one table, None by no rows; return the new version."""
    if rows is None and delta_log.latest_version(root.storage, schema.name) == 0:
        return 0  # an optional table that nothing was ever written to
    if rows is not None and schema is schemas.USER_METRICS:
        tables.add_columns(root, schema.name, tables.measure_columns(rows.schema.jsonValue()))
    current = spark_tables.read_table(root.spark, root.storage, schema.name)
    frame = current.limit(0) if rows is None else spark_tables.widened(rows, current.schema)
    table, is_own = schema.name, spark_tables.rows_of(night)

    def overwrite(seen: int) -> int:
        writer = frame.writeTo(spark_tables.identifier(root.storage, table)).option("userMetadata", run_id)
        writer.options(**spark_tables.only_after(seen)).overwrite(is_own)
        own = delta_log.find_commit(root.storage, table, tag=run_id, after=seen)
        if own is None:
            raise lost(table, run_id, seen)
        return own

    return retried(root.storage, table, overwrite, held=[root.lock])
