"""A run may die anywhere: readers see the last whole run, and the next run mends what was left."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ResultsError, notes_of
from rankeval_spark.results import Results, ResultsStore
from rankeval_spark.results.publishing import failpoints, publish as publishing
from rankeval_spark.results.storage import delta_log, locks
from tests.spark.results import nights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.journal import JournalState
    from rankeval_spark.results.storage.commits import Root

CHANGED: nights.Ranks = {"ann": 2, "kim": 1}

UNTOUCHED = ("after_staging",)
ANNOUNCED = ("after_intent", "after_metrics", "before_marker")


def crash(spark: SparkSession, root: str, failpoint: str, ranks: nights.Ranks) -> None:
    """Run the first night again until the failpoint; nothing is cleaned up after it, as if it had been killed."""
    with failpoints.armed(failpoint), pytest.raises(failpoints.FailpointError):
        nights.publish(spark, root, nights.facts("crashed"), ranks)


def events(spark: SparkSession, root: str) -> list[tuple[str, str]]:
    runs = Results(spark, root).runs().orderBy("recorded_at")
    return [(row[C.RUN_ID], row["status"]) for row in runs.collect()]


def leftovers(root: str) -> list[str]:
    return [path.name for path in Path(root, "_staging").iterdir()]


@pytest.mark.parametrize("failpoint", [*UNTOUCHED, *ANNOUNCED])
def test_a_crash_shows_the_last_published_run_and_a_rerun_mends_it(
    spark: SparkSession, root: str, failpoint: str
) -> None:
    before = nights.rows_of(Results(spark, root).user_metrics(), without=())
    crash(spark, root, failpoint, CHANGED)
    assert nights.rows_of(Results(spark, root).user_metrics(), without=()) == before
    for schema in nights.STAGED:  # a plain reader of one table sees one run, whole
        plain = spark.read.format("delta").load(f"{root}/{schema.name}")
        assert plain.groupBy(*schema.key).count().where("count > 1").isEmpty()
        assert plain.select(C.RUN_ID).distinct().count() == 1

    nights.publish(spark, root, nights.facts("rerun"), CHANGED)
    assert nights.rows_of(Results(spark, root).user_values(k=1)) == [
        f"Row(evaluation='nightly', evaluation_date=datetime.date(2026, 1, 1), model_id='als', "
        f"user_id={user!r}, list_id='', measure='RR', k=1, value={value})"
        for user, value in (("ann", 0.0), ("kim", 1.0))
    ]
    assert leftovers(root) == []
    assert (("crashed", "PUBLISHED") in events(spark, root)) == (failpoint in ANNOUNCED)


def test_the_next_date_rolls_a_crashed_date_forward_first(spark: SparkSession, root: str) -> None:
    crash(spark, root, "after_user_metrics", CHANGED)
    nights.publish(spark, root, nights.facts("next", nights.SECOND))
    first = Results(spark, root).user_metrics(date=nights.FIRST)
    assert {(row[C.RUN_ID], row[C.USER_ID]) for row in first.collect()} == {("crashed", "ann"), ("crashed", "kim")}
    assert events(spark, root)[-5:] == [
        ("crashed", "PUBLISHING"),
        ("next", "RUNNING"),
        ("crashed", "PUBLISHED"),
        ("next", "PUBLISHING"),
        ("next", "PUBLISHED"),
    ]
    assert leftovers(root) == []


def test_a_night_whose_staging_was_lost_goes_back_to_what_was_published(spark: SparkSession, root: str) -> None:
    before = nights.rows_of(Results(spark, root).user_metrics(), without=())
    crash(spark, root, "after_user_metrics", CHANGED)
    shutil.rmtree(Path(root, "_staging"))
    nights.publish(spark, root, nights.facts("next", nights.SECOND))
    results = Results(spark, root)
    assert nights.rows_of(results.user_metrics(date=nights.FIRST), without=()) == before
    assert ("crashed", "MAINTAINED") in events(spark, root)


def test_a_run_that_was_taken_for_dead_while_it_waited_publishes_nothing(
    spark: SparkSession, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended before its turn to publish: its night was taken over, and its staging is gone."""
    before = nights.rows_of(Results(spark, root).user_metrics(), without=())
    recovered = publishing.recover

    def suspended(held: Root) -> JournalState:
        for name in leftovers(root):
            shutil.rmtree(Path(root, "_staging", name))
        return recovered(held)

    monkeypatch.setattr(publishing, "recover", suspended)
    with pytest.raises(ResultsError, match=r"found no \w+ and no \w+ .*in its staging"):
        nights.publish(spark, root, nights.facts("lost"), CHANGED)
    assert nights.rows_of(Results(spark, root).user_metrics(), without=()) == before
    assert events(spark, root)[-1] == ("lost", "RUNNING")


def test_an_announced_run_whose_rows_its_tables_refuse_is_set_back(spark: SparkSession, root: str) -> None:
    """As of a version that did not look for them: nobody could ever publish it, and everybody would try."""
    before = nights.rows_of(Results(spark, root).user_metrics(), without=())
    store = ResultsStore.open(spark, root)
    infinite = [{**row, "value": float("inf")} for row in nights.metric_rows(CHANGED)]
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "refused"):
        run = store.start(nights.facts("refused"))
        run.stage("user_metrics", nights.frame(spark, schemas.USER_METRICS, nights.user_rows(CHANGED)))
        run.stage("metrics", nights.frame(spark, schemas.METRICS, infinite))
        with failpoints.armed("after_intent"), pytest.raises(failpoints.FailpointError):
            run.publish()
    nights.publish(spark, root, nights.facts("next", nights.SECOND))
    assert nights.rows_of(Results(spark, root).user_metrics(date=nights.FIRST), without=()) == before
    assert ("refused", "MAINTAINED") in events(spark, root)
    assert leftovers(root) == []


def test_what_was_announced_is_finished_before_a_run_looks_at_the_nights_before(spark: SparkSession, root: str) -> None:
    crash(spark, root, "after_intent", CHANGED)
    store = ResultsStore.open(spark, root)
    with store.run_lock(nights.NIGHTLY, nights.SECOND, "next"):
        store.start(nights.facts("next", nights.SECOND))
        assert ("crashed", "PUBLISHED") in events(spark, root)


def test_a_reader_who_came_earlier_keeps_what_he_saw(spark: SparkSession, root: str) -> None:
    results = Results(spark, root)
    before = nights.rows_of(results.metrics(), without=())
    nights.publish(spark, root, nights.facts("again"), CHANGED)
    assert nights.rows_of(results.metrics(), without=()) == before
    assert nights.rows_of(results.refresh().metrics(), without=()) != before


def test_a_run_that_failed_says_where_and_why_and_leaves_nothing(spark: SparkSession, root: str) -> None:
    store = ResultsStore.open(spark, root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "bad"):
        run = store.start(nights.facts("bad"))
        nights.stage(spark, run, CHANGED)
        run.fail("score", ValueError("no such thing"), failed_checks=["null_keys"])
    failed = Results(spark, root).runs().where("status = 'FAILED'").collect()[0]
    assert failed["error"].asDict() == {"stage": "score", "type": "ValueError", "message": "no such thing"}
    assert failed["failed_checks"] == ["null_keys"]
    assert leftovers(root) == []


def leave_the_lock_behind(root: str) -> None:
    night = nights.facts("crashed").night
    folder = Path(root, locks.LOCKS_FOLDER, f"run-{night.slug}")
    (last,) = folder.iterdir()
    held = locks.Holder.from_json(last.read_bytes())
    assert held is not None
    last.write_bytes(replace(held, process=replace(held.process, started="1"), released_at="").to_json())


@pytest.mark.parametrize("has_lock", [True, False], ids=["killed", "without its JVM"])
def test_maintenance_records_runs_that_ended_before_they_staged_anything(
    spark: SparkSession, root: str, has_lock: bool
) -> None:
    crash(spark, root, "after_staging", CHANGED)
    if has_lock:
        leave_the_lock_behind(root)
    shutil.rmtree(Path(root, "_staging"))
    ResultsStore.open(spark, root).maintenance().remove_staging()
    assert events(spark, root)[-2:] == [("crashed", "RUNNING"), ("crashed", "FAILED")]


def test_the_run_whose_lock_was_left_behind_is_recorded_as_failed(spark: SparkSession, root: str) -> None:
    """What a killed process leaves: RUNNING, its staging and its lock; ``tests/faults`` kills them for good."""
    crash(spark, root, "after_staging", CHANGED)
    leave_the_lock_behind(root)

    nights.publish(spark, root, nights.facts("next"), CHANGED)

    assert events(spark, root)[-5:] == [
        ("crashed", "RUNNING"),
        ("crashed", "FAILED"),
        ("next", "RUNNING"),
        ("next", "PUBLISHING"),
        ("next", "PUBLISHED"),
    ]
    failed = Results(spark, root).runs().where("status = 'FAILED'").collect()[0]
    assert failed["reason"] == "died: its process was gone, or silent for too long, when run next took over"
    assert (failed["error"]["stage"], failed["error"]["type"]) == ("unknown", "Died")
    assert failed["config_hash"] == "c0ffee"
    assert leftovers(root) == []


def test_an_event_that_is_lost_or_cannot_be_written_does_not_hide_what_happened(
    spark: SparkSession, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultsStore.open(spark, root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "bad"):
        run = store.start(nights.facts("bad"))
        nights.stage(spark, run, CHANGED)
        monkeypatch.setattr(delta_log, "find_commit", lambda *_, **__: None)
        error = ValueError("no such thing")
        run.fail("score", error)
        assert notes_of(error) == [f"run bad could not be recorded as FAILED: {ResultsError.title}"]
        assert leftovers(root) == []
        nights.stage(spark, run, CHANGED)
        with pytest.raises(ResultsError, match=r"table runs: found no commit of run bad after version \d+"):
            run.publish()
