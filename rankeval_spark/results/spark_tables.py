"""Published tables that Spark reads, writes and audits, where this process does not reach them or Spark has the rows.

No text of a user or of a config is pasted into SQL. Delta's Python package is not used: a cluster need not have it, and
through Spark Connect it needs a jar of the server. A location is between backticks, which no results root contains (see
``file_store.normalise``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import delta_log, tables
from rankeval_spark.results.audit import Summaries, Summary, key_of, key_text, plain_columns, rules_of
from rankeval_spark.results.file_store import inside, normalise
from rankeval_spark.results.local_tables import AT, require_columns
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.stores import reachable_storage
from rankeval_spark.results.table_store import STAGED_VERSION, TableStore

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.local_tables import Filters, Order, Requested
    from rankeval_spark.results.run_record import RunRecord
    from rankeval_spark.results.table_store import RowChange
    from rankeval_spark.schemas import Field, Schema

# VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is.
LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
ENOUGH_TASKS: Final = "64"
MAX_SUSPECTS: Final = 100


def struct_type(schema: Schema, extra_fields: Iterable[Field] = ()) -> T.StructType:
    """Build the Spark schema of the columns of ``schema``, then ``extra_fields``, each with its comment.

    >>> struct_type(schemas.TRAIN).simpleString()
    'struct<user_id:string,item_id:string,interacted_at:timestamp>'
    """
    return T.StructType.fromJson(columns_json(schema, extra_fields))


def read_table(spark: SparkSession, root: str, table: str, version: int | None = None) -> DataFrame:
    """Return a frame of a table; ConfigError if a file or its log is, or links, outside the allowed folders."""
    reader, location = spark.read.format("delta"), inside(root, table)
    if version is not None:
        reader = reader.option("versionAsOf", version)
    where = f"results root, table {table}"
    allowed_folders.require_each(where, allowed_folders.delta_log_paths(location))
    frame = reader.load(location)
    if allowed_folders.is_limited():
        allowed_folders.require_each(where, frame.inputFiles())
    return frame


def identifier(storage: Storage, table: str) -> str:
    """Return the name of a path table for Spark's writers; the root has no backtick (``file_store.normalise``)."""
    return f"delta.`{inside(storage.root, table)}`"


def only_after(version: int) -> dict[str, str]:
    """Return options of a write that must make the version after one that was seen.

    Delta repeats a commit that was overtaken by itself, as a later version; but not if the other commit, too, has a
    transaction number of the same application. It leaves a write out if such a number is no lower.
    """
    return {"txnAppId": delta_log.FENCE, "txnVersion": str(version + 1)}


def conform_frame(frame: DataFrame, fields: Sequence[Field], facts: RunRecord, *, where: str) -> DataFrame:
    """Add the columns of a run, and order all columns, as :func:`tables.conform_rows`."""
    of_run = {C.EVALUATION: facts.evaluation, C.EVALUATION_DATE: facts.evaluation_date, C.RUN_ID: facts.run_id}
    keyed = frame.withColumns({name: F.lit(value) for name, value in of_run.items()})
    found = {field.name: field.dataType.simpleString() for field in keyed.schema.fields}
    tables.require_types(found, {field.name: field.type for field in fields}, where)
    return keyed.select(*(F.col(field.name).alias(field.name, metadata={"comment": field.comment}) for field in fields))


def stage(spark: SparkSession, location: str, rows: DataFrame | pa.Table) -> None:
    """Stage the rows of a table at a location, in one commit."""
    # Spark loses rows of a table of Arrow next to an empty chunk.
    frame = rows if isinstance(rows, DataFrame) else spark.createDataFrame(rows.combine_chunks())
    # Collect no statistics: deltalake skips rows by statistics that Spark left incomplete.
    properties = {**tables.PROPERTIES, "delta.dataSkippingNumIndexedCols": "0"}
    writer = frame.write.format("delta").options(**properties).mode("error")
    writer.partitionBy(*tables.PARTITIONS).save(location)


def read_staged(spark: SparkSession, storage: Storage, path: str, night: NightKey) -> DataFrame:
    """Read a staged table from its Parquet files: the audit of four small tables takes 6 jobs instead of 25."""
    schema = T.StructType.fromJson(delta_log.columns(storage, path))
    files = delta_log.files_written(storage, path, STAGED_VERSION)
    if not files:
        return spark.createDataFrame([], schema)
    # The files lack the columns of the night.
    of_night = {C.EVALUATION: F.lit(night.evaluation), C.EVALUATION_DATE: F.lit(night.evaluation_date)}
    stored = T.StructType([field for field in schema.fields if field.name not in of_night])
    paths = [re.sub(r"([\\{}\[\]*?])", r"\\\1", f"{file['location']}/{file['path']}") for file in files]  # no patterns
    return spark.read.schema(stored).parquet(*paths).withColumns(of_night).select(*schema.fieldNames())


class SparkTables(TableStore):
    """Tables in any store that Spark reaches: nights with an affected row are overwritten."""

    spark: SparkSession

    @property
    def reader(self) -> SparkReader:
        return SparkReader(self.spark, self.storage.root)

    def columns(self, table: str) -> Json:
        columns: Json = self._read(table).schema.jsonValue()
        return columns

    def properties(self, table: str) -> dict[str, str]:
        detail = self.spark.sql(f"DESCRIBE DETAIL {self._identifier(table)}").select("properties").head()
        return dict(detail["properties"]) if detail else {}

    def _read(self, table: str, version: int | None = None) -> DataFrame:
        return read_table(self.spark, self.storage.root, table, version)

    def _identifier(self, table: str) -> str:
        return identifier(self.storage, table)

    def _extend(self, table: str, columns: Json, *, after: int) -> None:
        # Spark appends no rows with schema merging. Unlike ALTER TABLE that needs no SQL text, into which the
        # definition of a measure would have to be quoted, and it keeps the comment.
        empty = self.spark.createDataFrame([], T.StructType.fromJson(dict(columns)))
        writer = empty.write.format("delta").mode("append").options(**only_after(after))
        writer.option("mergeSchema", "true").save(inside(self.storage.root, table))

    def append_events(self, rows: Sequence[Mapping[str, Any]], *, tag: str, after: int) -> None:
        delta_log.require_whole(self.storage, schemas.RUNS.name, after)
        frame = self.spark.createDataFrame([dict(values) for values in rows], struct_type(schemas.RUNS)).coalesce(1)
        writer = frame.writeTo(self._identifier(schemas.RUNS.name)).options(**only_after(after))
        writer.option("userMetadata", tag).append()

    def replace_by_staged(self, table: str, night: NightKey, run_id: str, staged: str | None) -> int:
        rows = None if staged is None else read_staged(self.spark, self.storage, staged, night)
        return self._replace_night(table, night, run_id, rows)

    def restore_night(self, table: str, night: NightKey, run_id: str, version: int | None) -> int:
        rows = None if version is None else self._read(table, version).where(_are_of([night]))
        return self._replace_night(table, night, run_id, rows)

    def _replace_night(self, table: str, night: NightKey, run_id: str, rows: DataFrame | None) -> int:
        if rows is None and delta_log.latest_version(self.storage, table) == 0:
            return 0  # an optional table that nothing was ever written to
        if rows is not None and table == schemas.USER_METRICS.name:
            self.add_columns(table, tables.measure_columns(rows.schema.jsonValue()))
        current = self._read(table)
        frame = current.limit(0) if rows is None else rows
        absent = set(current.columns) - set(frame.columns)  # measures that only other runs computed are NULL
        nulls = {
            field.name: F.lit(None).cast(field.dataType) for field in current.schema.fields if field.name in absent
        }
        frame = frame.withColumns(nulls).select(*current.columns)

        def overwrite(seen: int) -> int:
            self._overwrite(table, _are_of([night]), frame, after=seen, userMetadata=run_id)
            return self.own_commit(table, run_id, after=seen)

        return self.commit(table, overwrite)

    def _overwrite(self, table: str, rows: Column, by: DataFrame, *, after: int, **options: str) -> None:
        """Overwrite the rows that meet a condition by those of a frame."""
        by.writeTo(self._identifier(table)).options(**only_after(after), **options).overwrite(rows)

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        rows = self._read(table).where((F.col(C.EVALUATION_DATE) < F.lit(day)) & _is_of(evaluation))
        return [NightKey(*row) for row in rows.select(*tables.PARTITIONS).distinct().collect()]

    def delete_nights(self, table: str, nights: Collection[NightKey]) -> None:
        self._delete(table, _are_of(nights))

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        rows = _is_of(evaluation) & (F.col(C.USER_ID) == F.lit(user))  # Delta finds the files by their statistics
        n_rows = self._read(table).where(rows).count()
        if n_rows:
            self._delete(table, rows)
        return n_rows

    def _delete(self, table: str, rows: Column) -> None:
        none = self._read(table).limit(0)
        self.commit(table, lambda seen: self._overwrite(table, rows, none, after=seen))
        version = delta_log.latest_version(self.storage, table)
        self._require_none(table, self._read(table, version).where(rows).limit(1).count())

    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[NightKey, int]:
        def affected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.select(night).filter(to_arrow(change.affects(batch)))

        night = list(tables.PARTITIONS)
        rows = self._read(table, version).where(_is_of(evaluation)).select(*dict.fromkeys([*night, *change.columns]))
        found = rows.mapInArrow(affected, rows.select(*night).schema).groupBy(*night).count().collect()
        return {NightKey(evaluation, day): n_rows for evaluation, day, n_rows in found}

    def _rewrite(self, table: str, parts: Collection[NightKey], change: RowChange, *, after: int) -> None:
        def changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(change.changed, batches)

        frame, is_of_nights = self._read(table), _are_of(parts)
        self._overwrite(table, is_of_nights, frame.where(is_of_nights).mapInArrow(changed, frame.schema), after=after)

    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each partition; no row changes, so it may come after other commits."""
        optimize = f"OPTIMIZE {self._identifier(table)}"
        done = self.commit(table, lambda _: self.spark.sql(optimize).select("metrics.*").head())
        return (done["numFilesRemoved"], done["numFilesAdded"]) if done else (0, 0)

    def vacuum(self, table: str, *, deletes: bool) -> int:
        before = str(self.spark.conf.get(LISTING_TASKS))
        self.spark.conf.set(LISTING_TASKS, ENOUGH_TASKS)  # thousands of empty tasks take a minute for each table
        try:
            n_files = self.spark.sql(f"VACUUM {self._identifier(table)} DRY RUN").count()
            if deletes and n_files:
                self.spark.sql(f"VACUUM {self._identifier(table)}")
        finally:  # the session's setting comes back
            self.spark.conf.set(LISTING_TASKS, before)
        return n_files


def _is_of(evaluation: str | None) -> Column:
    return F.lit(True) if evaluation is None else F.col(C.EVALUATION) == F.lit(evaluation)


def _are_of(nights: Iterable[NightKey]) -> Column:
    """Return the condition on partition columns for rows of some nights; short, however many there are."""
    days: dict[str, list[date]] = {}
    for night in nights:
        days.setdefault(night.evaluation, []).append(night.evaluation_date)
    return reduce(or_, (_is_of(name) & F.col(C.EVALUATION_DATE).isin(*own) for name, own in days.items()))


class SparkReader:
    """Reader by Spark, in any store: scans and frames are DataFrames. Spark Connect sessions work too."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> DataFrame:
        if table == schemas.RUNS.name and (storage := reachable_storage(self._spark, normalise(self._root))):
            delta_log.require_whole(storage, table)  # of the others, the published versions are looked at
        try:
            frame = _declared_first(table, read_table(self._spark, self._root, table, version))  # resolves now
        except AnalysisException as error:
            found = f"{self._root!r} (no table {table})"
            raise ConfigError(Fault("results root", found, "the results of an earlier run")) from error
        except Py4JJavaError as error:
            if "DATA_SOURCE_NOT_FOUND" not in str(error):
                raise
            fix = "make it by rankeval_spark.build_session(), which adds the jars and settings"
            raise ConfigError(Fault("Results(spark=)", "a session without Delta", "one with it", fix)) from None
        require_columns(table, where, frame.columns)
        for name, how, value in where:
            column = F.col(name)
            if how == AT:
                at = {label: F.col(C.K).isin(ks) if ks else F.lit(True) for label, ks in value.items()}
                frame = frame.where(reduce(or_, ((column == label) & is_at for label, is_at in at.items())))
            else:
                frame = frame.where(column == F.lit(value) if how == "=" else column.isin(*value))
        return frame

    def readable_events(self, where: Filters = ()) -> DataFrame:
        """Return a plan to read all events; Spark finds damaged files when it reads them."""
        return self.scan(schemas.RUNS.name, where=where)

    def columns(self, table: str) -> list[str]:
        return self._spark.read.format("delta").load(inside(self._root, table)).columns

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        nights = self.scan(table, version=version).select(C.EVALUATION, C.EVALUATION_DATE).distinct()
        return {(night[C.EVALUATION], night[C.EVALUATION_DATE]) for night in nights.collect()}

    def frame(self, scan: DataFrame) -> DataFrame:
        return scan

    def arrow(self, scan: DataFrame, columns: Sequence[str] | None = None) -> pa.Table:
        return (scan.select(*columns) if columns else scan).toArrow()

    def user_values(
        self, user_metrics: DataFrame, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> DataFrame:
        rows = [(run, *asked) for asked, runs in requested.items() for run in sorted(runs)]
        wanted = self._spark.createDataFrame(rows, f"{C.RUN_ID} string, {C.MEASURE} string, {C.K} int, _column string")
        columns = sorted({asked.column for asked in requested if asked.column is not None})
        columns = columns or [C.N_HITS]  # an array of nothing has no type
        values = (F.struct(F.lit(name).alias("_column"), F.col(name).cast("double").alias(C.VALUE)) for name in columns)
        long = user_metrics.select(*names, F.inline(F.array(*values)))
        key = [name for name in names if name != C.K]
        joined = long.join(F.broadcast(wanted), on=[C.RUN_ID, C.K, "_column"], how="inner")
        return joined.select(*key, C.MEASURE, C.K, C.VALUE)

    def users(self, user_metrics: DataFrame, column: str) -> DataFrame:
        sums = (F.sum(name).alias(name) for name in (C.N_RECOMMENDED, C.N_HITS))
        most = F.max(C.N_RELEVANT).alias(C.N_RELEVANT)
        return user_metrics.groupBy(C.USER_ID).agg(F.avg(column).alias(C.VALUE), most, *sums)

    def paired(self, one: DataFrame, other: DataFrame) -> DataFrame:
        """Join two frames by user, keeping the users of both: see :meth:`Reader.paired`."""
        named = (F.col(name).alias(f"other_{name}") for name in other.columns if name != C.USER_ID)
        rows = one.join(other.select(C.USER_ID, *named), on=C.USER_ID, how="full")
        return rows.withColumn("delta", F.col(C.VALUE) - F.col(f"other_{C.VALUE}"))

    def with_texts(self, frame: DataFrame, name: str, texts: Mapping[str, str], *, key: str) -> DataFrame:
        rows = self._spark.createDataFrame(list(texts.items()), f"{key} string, {name} string")
        return frame.join(F.broadcast(rows), on=key, how="left")

    def ordered(self, frame: DataFrame, *, columns: Sequence[str], order: Order, n: int | None = None) -> DataFrame:
        ways = {"asc": F.asc_nulls_last, "desc": F.desc_nulls_last}
        known = frame if n is None else frame.where(F.col(C.VALUE).isNotNull())
        rows = known.orderBy(*(ways[way](name) for name, way in order)).select(*columns)
        return rows if n is None else rows.limit(n)

    def from_arrow(self, rows: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(rows.combine_chunks())  # which loses rows next to an empty chunk


def _declared_first(table: str, frame: DataFrame) -> DataFrame:
    """Return the columns as :func:`local_tables.declared_first`: declared columns that the table lacks are NULL."""
    declared = next(schema for schema in tables.TABLES if schema.name == table)
    names, types = frame.columns, struct_type(declared)
    columns = [
        F.col(field.name)
        if field.name in names
        else F.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata)
        for field in types
    ]
    return frame.select(*columns, *(F.col(name) for name in names if name not in types.fieldNames()))


class RowsOnSpark:
    """Rows of a frame for the audit, as :class:`audit.RowsInProcess`."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    def refused(self, schema: Schema) -> list[Fault]:
        """Count hashes of keys: eight bytes per row are moved, and keys only if two hashes agree."""
        table, key = f"table {schema.name}", key_of(schema)
        rules = {f"{name} IS NOT NULL": F.col(name).isNotNull() for name in plain_columns(schema)}
        rules |= {str(rule): F.expr(str(rule)) for rule in rules_of(schema)}
        whens = (F.when(~F.coalesce(holds, F.lit(False)), F.lit(rule)) for rule, holds in rules.items())
        broken = F.coalesce(F.lit(None).cast("string"), *whens).alias("_broken")  # the first rule, NULL if none
        hashed = F.xxhash64(*key).alias("_hash")
        counts = self.frame.select(hashed, broken).groupBy("_hash")
        counted = counts.agg(F.count("*").alias("_count"), F.max("_broken").alias("_broken"))
        suspects = counted.where((F.col("_count") > 1) | F.col("_broken").isNotNull()).take(MAX_SUSPECTS)
        faults = []
        for row in [row for row in suspects if row["_broken"] is not None][:1]:
            example = self.frame.where(hashed == row["_hash"]).select(*key).head()
            named = key_text(example.asDict()) if example else "a row"
            faults.append(Fault(table, named, f"rows with {row['_broken']}"))
        repeated = [row["_hash"] for row in suspects if row["_count"] > 1]
        if repeated:
            rows = self.frame.where(hashed.isin(*repeated)).groupBy(*key).agg(F.count("*").alias("_count"))
            doubles = rows.where(F.col("_count") > 1).select(*key).take(3)
            found = "; ".join(key_text(row.asDict()) for row in doubles)
            faults += [Fault(table, f"several rows for {found}", "one row a key")] if doubles else []
        return faults

    def has_several_lists(self) -> bool:
        return not self.frame.where(F.col(C.LIST_ID) != F.lit(C.ONE_LIST)).isEmpty()

    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Aggregate the columns in one job."""
        frame = self.frame
        if over_users:  # a ratio of sums over the lists of the user, if it has a denominator
            values = (F.coalesce(_mean(name, weight), F.avg(name)).alias(name) for name, weight in weights.items())
            averages = (F.avg(weight).alias(weight) for weight in weights.values() if weight is not None)
            frame = frame.groupBy(C.MODEL_ID, C.K, C.USER_ID).agg(*values, *averages)
        fields = (
            F.struct(F.count(name), F.min(name), F.max(name), _mean(name, weight)).alias(name)
            for name, weight in weights.items()
        )
        rows = frame.groupBy(C.MODEL_ID, C.K).agg(*fields).collect()
        return {(row[C.MODEL_ID], row[C.K]): {name: Summary(*row[name]) for name in weights} for row in rows}


def _mean(column: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(column)
    return F.try_divide(F.sum(F.col(column) * F.col(weight)), F.sum(weight))
