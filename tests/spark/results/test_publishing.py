"""What stands in the tables after a night was published, and after it was published again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.requested_measures import RecordedDefinition
from rankeval_spark.errors import ResultsError
from rankeval_spark.results import InputRecord, MeasureRecord, Results, ResultsStore, delta_log, tables
from rankeval_spark.results.storage import Storage
from tests.spark.results import nights
from tests.support.arrow_frames import assert_key, where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = [schema.name for schema in nights.STAGED]


def test_a_rerun_leaves_one_row_a_key_and_the_same_values(root: str) -> None:
    before = {table: nights.rows_of(Results(root).published(table)) for table in TABLES}
    nights.publish(root, nights.facts("again"))
    after = Results(root)
    for schema in nights.STAGED:
        rows = after.published(schema.name)
        assert nights.rows_of(rows) == before[schema.name]
        assert_key(rows, schema.key)
        assert set(rows[C.RUN_ID].to_pylist()) == {"again"}


def test_a_rerun_after_the_input_changed_leaves_no_stale_row(root: str) -> None:
    nights.publish(root, nights.facts("again"), {"ann": 2})
    users = Results(root).user_metrics(k=2).to_pylist()
    assert [(row[C.USER_ID], row["rr"]) for row in users] == [("ann", 1 / 2)]


def test_other_dates_and_other_evaluations_stay_as_they_were(root: str) -> None:
    before = nights.rows_of(Results(root).user_metrics(), without=())
    nights.publish(root, nights.facts("second", nights.SECOND), {"ann": 2})
    nights.publish(root, nights.facts("other", evaluation="Nightly; it's other"), {"ann": None})
    results = Results(root)
    assert nights.rows_of(results.user_metrics(date="2026-01-01", evaluation="nightly"), without=()) == before
    assert results.user_metrics(date=nights.SECOND).num_rows == len((1, 2))
    assert results.user_metrics(evaluation="Nightly; it's other").num_rows == len((1, 2))


def test_a_rerun_without_rows_clears_the_date_and_says_why(root: str) -> None:
    nights.publish(root, nights.facts("empty"), {})
    nights.publish(root, nights.facts("empty_again"), {})  # now nothing changes in most tables
    results = Results(root)
    assert [results.published(table).num_rows for table in TABLES] == [0, 0, 0, 1]
    published = where(results.runs(), run_id="empty_again", status="PUBLISHED").to_pylist()
    assert [row["reason"] for row in published] == ["no rows for this date"]


def test_a_table_that_was_not_staged_is_emptied_for_the_night(root: str) -> None:
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "narrow"):
        run = store.start(nights.facts("narrow"))
        run.stage("checks", nights.table(schemas.CHECKS, nights.check_rows(nights.RANKS)))
        run.publish()
    assert Results(root).lists().num_rows == 0


def test_runs_tells_the_whole_story(spark: SparkSession, empty_root: str) -> None:
    store = ResultsStore.open(empty_root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "one"):
        run = store.start(nights.facts("one", sample_share=1 / 4))
        nights.stage(run, nights.RANKS)
        versions = run.publish(
            inputs=[InputRecord("held_out", "/in", "delta", 3, 7, "user_id string")], timings={"score": 1.5}
        )
    events = Results(empty_root, spark).runs().orderBy("recorded_at").collect()
    assert [row["status"] for row in events] == ["RUNNING", "PUBLISHING", "PUBLISHED"]
    published = events[-1].asDict(recursive=True)
    assert published["table_versions"] == versions
    assert published["n_rows"] == {"lists": 3, "user_metrics": 6, "metrics": 3, "checks": 1}
    assert published["inputs"] == [
        {"name": "held_out", "location": "/in", "format": "delta", "version": 3, "n_rows": 7}
    ]
    assert published["input_columns"] == {"held_out": "user_id string"}
    assert published["measures"][-1] == {
        "measure": "AP(denom='min')",
        "k": 2,
        "column": "ap_denom_min",
        "name": "AP",
        "options": {"rel": "1", "denom": "min"},
        "group_rule": None,
        "own": None,
    }
    assert published["policies"] == {"ties": "item_asc"}
    assert (published["sample_share"], published["timings"]) == (1 / 4, {"score": 1.5})


def test_staging_is_gone_after_a_publish(root: str) -> None:
    assert not list(Path(root, "_staging").iterdir())


def test_a_new_measure_gets_a_column_and_earlier_rows_are_null_in_it(spark: SparkSession, root: str) -> None:
    hits = MeasureRecord("Success", 1, "success", RecordedDefinition("Success", {"group": "a \"quote\" and a 'quote'"}))
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.SECOND, "wider"):
        run = store.start(nights.facts("wider", nights.SECOND, measures=(hits,)))
        rows = nights.table(schemas.USER_METRICS, nights.user_rows({"ann": 1})[:1]).drop_columns(["rr", "ap_denom_min"])
        run.stage("user_metrics", rows.append_column("success", pa.array([1.0])))
        run.publish()
    table = Results(root, spark).user_metrics()
    assert table.schema["success"].metadata["comment"] == str(hits.definition)
    assert {(str(row[C.EVALUATION_DATE]), row["success"]) for row in table.collect()} == {
        ("2026-01-01", None),
        ("2026-01-02", 1.0),
    }
    assert table.where("evaluation_date = '2026-01-02' AND rr IS NOT NULL").isEmpty()


@pytest.mark.parametrize("change", ["missing", "surplus", "mistyped"])
def test_a_table_of_other_columns_than_declared_is_refused(root: str, change: str) -> None:
    rows = nights.table(schemas.CHECKS, nights.check_rows(nights.RANKS))
    changed = {
        "missing": rows.drop_columns("share"),
        "surplus": rows.append_column("shar", pa.array([0.5])),
        "mistyped": rows.drop_columns("count").append_column("count", pa.array(["0"])),
    }[change]
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "wrong"):
        run = store.start(nights.facts("wrong"))
        with pytest.raises(ResultsError, match=r"table checks, column (share|shar|count)"):
            run.stage("checks", changed)


def test_every_table_is_created_as_declared(spark: SparkSession, empty_root: str) -> None:
    for schema in tables.TABLES:
        path = f"{empty_root}/{schema.name}"
        created = spark.read.format("delta").load(path).schema
        tables.require_declared(created.jsonValue(), schema)
        assert [field.metadata["comment"] for field in created] == [field.comment for field in schema.fields]
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
        # Files of `runs` are merged across nights.
        assert detail["partitionColumns"] == ([] if schema is schemas.RUNS else [C.EVALUATION, C.EVALUATION_DATE])
        assert detail["minReaderVersion"] == 1
        assert detail["properties"]["delta.deletedFileRetentionDuration"] == "interval 30 days"
        assert detail["properties"]["delta.logRetentionDuration"] == "interval 30 days"


def test_a_table_that_other_readers_could_not_read_is_not_written_to(spark: SparkSession, root: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{root}/metrics` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    with pytest.raises(ResultsError, match="reader version 3"):
        nights.publish(root, nights.facts("again"))


def test_a_table_of_a_newer_version_is_not_written_to(spark: SparkSession, root: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{root}/checks` ADD COLUMNS (hint STRING)")
    with pytest.raises(ResultsError, match="table checks: found other columns than this version declares"):
        nights.publish(root, nights.facts("again"))
    assert where(Results(root).runs(), status="PUBLISHING", run_id="again").num_rows == 0


class ForgetfulStorage(Storage):
    """A store that loses every commit made after it was opened, as one without conditional put can."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._known = {table: super(ForgetfulStorage, self).names(f"{table}/_delta_log") for table in TABLES}

    def names(self, path: str) -> list[str]:
        """List a folder as it was."""
        table, _, folder = path.partition("/")
        return self._known[table] if folder == "_delta_log" and table in self._known else super().names(path)

    def read(self, path: str) -> bytes:
        """Read a file that was there."""
        folder, _, name = path.rpartition("/")
        if name not in self.names(folder):
            raise FileNotFoundError(path)
        return super().read(path)


def test_a_writer_that_cannot_find_its_commit_fails(root: str) -> None:
    store = ResultsStore(ForgetfulStorage(root))
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "again"):
        run = store.start(nights.facts("again"))
        nights.stage(run, nights.RANKS)
        with pytest.raises(ResultsError, match="table lists: found no commit of run again"):
            run.publish()


def test_each_publish_carries_its_run_in_the_history_of_every_table(root: str) -> None:
    storage = Storage(root)
    for table in TABLES:
        newest = delta_log.latest_version(storage, table)
        assert delta_log.find_commit(storage, table, tag="first", after=0) == newest
