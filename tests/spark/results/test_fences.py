"""A write of Spark that another writer overtakes: it commits nothing, whenever that one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from rankeval_spark.results import delta_log, spark_tables
from rankeval_spark.results.file_store import LocalStorage
from rankeval_spark.results.table_store import is_conflict
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

TABLE = "metrics"


def test_a_write_of_spark_that_a_fence_overtakes_commits_nothing(spark: SparkSession, root: str) -> None:
    storage = LocalStorage(root)
    rows = spark_tables.read_table(spark, storage.root, TABLE).withColumn("run_id", F.lit("late")).toArrow()

    def fence_and_pass(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if delta_log.latest_version(storage, TABLE) == seen:
                delta_log.fence(storage, TABLE)
            yield batch

    frame = spark.createDataFrame(rows).coalesce(1)
    seen = delta_log.latest_version(storage, TABLE)
    for is_append in (True, False):
        seen = delta_log.latest_version(storage, TABLE)
        late = frame.mapInArrow(fence_and_pass, frame.schema)
        writer = late.writeTo(spark_tables.identifier(storage, TABLE)).options(**spark_tables.only_after(seen))
        with pytest.raises(Exception, match="DELTA_CONCURRENT_TRANSACTION") as overtaken:
            writer.append() if is_append else writer.overwrite(F.lit(True))
        assert is_conflict(overtaken.value)
        assert delta_log.latest_version(storage, TABLE) == seen + 1  # the fence alone

    writer = frame.writeTo(spark_tables.identifier(storage, TABLE)).options(**spark_tables.only_after(seen))
    writer.append()  # the fence came before the write
    assert delta_log.latest_version(storage, TABLE) == seen + 1

    runs = spark_tables.read_table(spark, storage.root, TABLE).select("run_id").distinct().collect()
    assert [row["run_id"] for row in runs] == ["first"]


def test_a_write_of_no_rows_is_a_commit_of_its_own(spark: SparkSession, root: str) -> None:
    storage = LocalStorage(root)
    seen = delta_log.latest_version(storage, TABLE)
    none = spark_tables.read_table(spark, storage.root, TABLE).limit(0)
    writer = none.writeTo(spark_tables.identifier(storage, TABLE)).option("userMetadata", "none")
    writer.options(**spark_tables.only_after(seen)).overwrite(F.col("evaluation") == nights.NIGHTLY + " not")
    assert delta_log.find_commit(storage, TABLE, tag="none", after=seen) == seen + 1
