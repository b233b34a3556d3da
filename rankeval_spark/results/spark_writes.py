"""Staging, audit, publishing and maintenance by Spark: frames of users, and stores that this process does not reach.

No text of a user or of a config is pasted into SQL. Delta's Python package is not used: a cluster need not have it, and
through Spark Connect it needs a jar of the server. A location is between backticks, which no results root contains (see
``file_store.normalise``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.errors import Fault
from rankeval_spark.results import delta_log, local_tables, spark_tables, tables
from rankeval_spark.results.audit import Summaries, Summary, key_of, key_text, plain_columns, rules_of
from rankeval_spark.results.locks import Root, own_commit, retried
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_changes import TableChanges
from rankeval_spark.results.tables import require_types

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.run_record import RunRecord
    from rankeval_spark.results.table_changes import RowChange
    from rankeval_spark.schemas import Field, Schema


def conform_frame(frame: DataFrame, fields: Sequence[Field], facts: RunRecord, *, where: str) -> DataFrame:
    """Add the columns of a run, and order all columns, as :func:`tables.conform_rows`."""
    of_run = {C.EVALUATION: facts.evaluation, C.EVALUATION_DATE: facts.evaluation_date, C.RUN_ID: facts.run_id}
    keyed = frame.withColumns({name: F.lit(value) for name, value in of_run.items()})
    found = {field.name: field.dataType.simpleString() for field in keyed.schema.fields}
    require_types(found, {field.name: field.type for field in fields}, where)
    return keyed.select(*(F.col(field.name).alias(field.name, metadata={"comment": field.comment}) for field in fields))


def stage(spark: SparkSession, location: str, rows: DataFrame | pa.Table) -> None:
    """Stage the rows of a table at a location, in one commit."""
    # Spark loses rows of a table of Arrow next to an empty chunk.
    frame = rows if isinstance(rows, DataFrame) else spark.createDataFrame(rows.combine_chunks())
    # deltalake would find no row by a column of which the log, as Spark writes it, has no statistics: so of none.
    properties = {**tables.PROPERTIES, "delta.dataSkippingNumIndexedCols": "0"}
    writer = frame.write.format("delta").options(**properties).mode("error")
    writer.partitionBy(*local_tables.PARTITIONS).save(location)


def staged(
    spark: SparkSession, storage: Storage, path: str, night: NightKey, files: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Read a staged table from its Parquet files: the audit of four small tables takes 6 jobs instead of 25."""
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
    current = spark_tables.read_table(root.spark, root.storage.root, schema.name)
    frame = current.limit(0) if rows is None else rows
    absent = set(current.columns) - set(frame.columns)  # measures that only other runs computed are NULL
    nulls = {field.name: F.lit(None).cast(field.dataType) for field in current.schema.fields if field.name in absent}
    frame = frame.withColumns(nulls).select(*current.columns)
    table, is_own = schema.name, spark_tables.rows_of(night)

    def overwrite(seen: int) -> int:
        writer = frame.writeTo(spark_tables.identifier(root.storage, table)).option("userMetadata", run_id)
        writer.options(**spark_tables.only_after(seen)).overwrite(is_own)
        return own_commit(root.storage, table, run_id, after=seen)

    return retried(root.storage, table, overwrite, held=[root.lock])


MAX_SUSPECTS: Final = 100


@dataclass(frozen=True)
class RowsOnSpark:
    """Rows of a frame."""

    frame: DataFrame

    def refused(self, schema: Schema) -> list[Fault]:
        """Count hashes of keys: eight bytes per row are moved, and keys only if two hashes agree."""
        table, key = f"table {schema.name}", key_of(schema)
        hashed = F.xxhash64(*key).alias("_hash")
        counts = self.frame.select(hashed, _broken(schema)).groupBy("_hash")
        counted = counts.agg(F.count("*").alias("_count"), F.max("_broken").alias("_broken"))
        suspects = counted.where((F.col("_count") > 1) | F.col("_broken").isNotNull()).take(MAX_SUSPECTS)
        faults = []
        for row in [row for row in suspects if row["_broken"] is not None][:1]:
            example = self.frame.where(hashed == row["_hash"]).select(*key).head()
            faults.append(
                Fault(table, key_text(example.asDict()) if example else "a row", f"rows with {row['_broken']}")
            )
        repeated = [row["_hash"] for row in suspects if row["_count"] > 1]
        if repeated:
            rows = self.frame.where(hashed.isin(*repeated)).groupBy(*key).agg(F.count("*").alias("_count"))
            doubles = rows.where(F.col("_count") > 1).select(*key).take(3)
            found = "; ".join(key_text(row.asDict()) for row in doubles)
            faults += [Fault(table, f"several rows for {found}", "one row a key")] if doubles else []
        return faults

    def has_several_lists(self) -> bool:
        """Return whether a list has a name."""
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


def _broken(schema: Schema) -> Column:
    """Return the first constraint that a row breaks, NULL if none."""
    rules = {f"{name} IS NOT NULL": F.col(name).isNotNull() for name in plain_columns(schema)}
    rules |= {str(rule): F.expr(str(rule)) for rule in rules_of(schema)}
    whens = (F.when(~F.coalesce(holds, F.lit(False)), F.lit(rule)) for rule, holds in rules.items())
    return F.coalesce(F.lit(None).cast("string"), *whens).alias("_broken")


def _mean(column: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(column)
    return F.try_divide(F.sum(F.col(column) * F.col(weight)), F.sum(weight))


# VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is.
LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
ENOUGH_TASKS: Final = "64"
NIGHT: Final = [C.EVALUATION, C.EVALUATION_DATE]


class ChangesOnSpark(TableChanges[NightKey]):
    """Changes of the tables of a root: nights with an affected row are overwritten."""

    @override
    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        rows = self._read(table).where((F.col(C.EVALUATION_DATE) < F.lit(day)) & _is_of(evaluation))
        return [NightKey(*row) for row in rows.select(*NIGHT).distinct().collect()]

    @override
    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        self._delete(table, _are_of(nights))

    @override
    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        rows = _is_of(evaluation) & (F.col(C.USER_ID) == F.lit(user))  # Delta finds the files by their statistics
        n_rows = self._read(table).where(rows).count()
        if n_rows:
            self._delete(table, rows)
        return n_rows

    @override
    def merge_files(self, table: str) -> tuple[int, int]:
        # It changes no row, so it may come after other commits.
        return self._commit(table, lambda _: spark_tables.merge_files(self.root.spark, self.root.storage, table))

    @override
    def unneeded_files(self, table: str) -> int:
        with self._listing_in_few_tasks():
            return self.root.spark.sql(f"VACUUM {self._identifier(table)} DRY RUN").count()

    @override
    def delete_unneeded(self, table: str) -> None:
        with self._listing_in_few_tasks():
            self.root.spark.sql(f"VACUUM {self._identifier(table)}")

    @override
    def properties(self, table: str) -> dict[str, str]:
        detail = self.root.spark.sql(f"DESCRIBE DETAIL {self._identifier(table)}").select("properties").head()
        return dict(detail["properties"]) if detail else {}

    @override
    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[NightKey, int]:
        def affected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.select(NIGHT).filter(to_arrow(change.affects(batch)))

        rows = self._read(table, version).where(_is_of(evaluation)).select(*dict.fromkeys([*NIGHT, *change.columns]))
        found = rows.mapInArrow(affected, rows.select(*NIGHT).schema).groupBy(*NIGHT).count().collect()
        return {NightKey(evaluation, day): n_rows for evaluation, day, n_rows in found}

    @override
    def _rewrite(self, table: str, parts: Collection[NightKey], change: RowChange, *, after: int) -> None:
        def changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(change.changed, batches)

        frame, is_of_nights = self._read(table), _are_of(parts)
        self._overwrite(table, is_of_nights, frame.where(is_of_nights).mapInArrow(changed, frame.schema), after=after)

    def _read(self, table: str, version: int | None = None) -> DataFrame:
        return spark_tables.read_table(self.root.spark, self.root.storage.root, table, version)

    def _identifier(self, table: str) -> str:
        return spark_tables.identifier(self.root.storage, table)

    def _delete(self, table: str, rows: Column) -> None:
        none = self._read(table).limit(0)
        self._commit(table, lambda seen: self._overwrite(table, rows, none, after=seen))
        version = delta_log.latest_version(self.root.storage, table)
        self._require_none(table, self._read(table, version).where(rows).limit(1).count())

    def _overwrite(self, table: str, rows: Column, by: DataFrame, *, after: int) -> None:
        """Overwrite the rows that meet a condition by those of a frame."""
        by.writeTo(self._identifier(table)).options(**spark_tables.only_after(after)).overwrite(rows)

    @contextmanager
    def _listing_in_few_tasks(self) -> Iterator[None]:
        """Spare VACUUM thousands of empty tasks, a minute for each table; the session's setting comes back."""
        settings = self.root.spark.conf
        before = str(settings.get(LISTING_TASKS))
        settings.set(LISTING_TASKS, ENOUGH_TASKS)
        try:
            yield
        finally:
            settings.set(LISTING_TASKS, before)


def _is_of(evaluation: str | None) -> Column:
    return F.lit(True) if evaluation is None else F.col(C.EVALUATION) == F.lit(evaluation)


def _are_of(nights: Iterable[NightKey]) -> Column:
    """Return the condition on partition columns for rows of some nights; short, however many there are."""
    days: dict[str, list[date]] = {}
    for night in nights:
        days.setdefault(night.evaluation, []).append(night.evaluation_date)
    return reduce(
        or_, ((F.col(C.EVALUATION) == F.lit(name)) & F.col(C.EVALUATION_DATE).isin(*own) for name, own in days.items())
    )
