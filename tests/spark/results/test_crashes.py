"""A run may die anywhere: readers see the last whole run, and the next run completes what was left.

All of it in this process: ``test_readers`` shows that Spark sees the same, and ``tests/faults`` kills runs on Spark.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ResultsError, notes_of
from rankeval_spark.results import Results, ResultsStore, delta_log, failpoints, locks, publish as publishing
from tests.spark.results import nights
from tests.support.arrow_frames import assert_key, tuples, where

if TYPE_CHECKING:
    from rankeval_spark.results.journal import JournalState
    from rankeval_spark.results.result_tables import ResultTables

CHANGED: nights.Ranks = {"ann": 2, "kim": 1}

UNTOUCHED = ("after_staging", "after_list")
ANNOUNCED = ("after_intent", "after_metrics", "before_marker")


def crash(root: str, failpoint: str, ranks: nights.Ranks) -> None:
    """Run the first night again until the failpoint; nothing is cleaned up after it, as if it had been killed."""
    with failpoints.armed(failpoint), pytest.raises(failpoints.FailpointError):
        nights.publish(root, nights.facts("crashed"), ranks)


def events(root: str) -> list[tuple[str, str]]:
    runs = Results(root).runs().sort_by("recorded_at")
    return [(row[C.RUN_ID], row["status"]) for row in runs.to_pylist()]


def leftovers(root: str) -> list[str]:
    return [path.name for path in Path(root, "_staging").iterdir()]


@pytest.mark.parametrize("failpoint", [*UNTOUCHED, *ANNOUNCED])
def test_a_crash_shows_the_last_published_run_and_a_rerun_mends_it(root: str, failpoint: str) -> None:
    before = nights.rows_of(Results(root).user_metrics(), without=())
    crash(root, failpoint, CHANGED)
    assert nights.rows_of(Results(root).user_metrics(), without=()) == before
    for schema in nights.STAGED:  # a plain reader of one table sees one run, whole
        plain = deltalake.DeltaTable(f"{root}/{schema.name}").to_pyarrow_table()
        assert_key(plain, schema.key)
        assert len(set(plain[C.RUN_ID].to_pylist())) == 1

    nights.publish(root, nights.facts("rerun"), CHANGED)
    values = tuples(Results(root).user_values(k=1), C.MODEL_ID, C.USER_ID, C.LIST_ID, C.MEASURE, C.K, C.VALUE)
    assert values == [("als", "ann", "", "RR", 1, 0.0), ("als", "kim", "", "RR", 1, 1.0)]
    assert leftovers(root) == []
    assert (("crashed", "PUBLISHED") in events(root)) == (failpoint in ANNOUNCED)


def test_the_next_date_rolls_a_crashed_date_forward_first(root: str) -> None:
    crash(root, "after_user_metrics", CHANGED)
    nights.publish(root, nights.facts("next", nights.SECOND))
    first = Results(root).user_metrics(date=nights.FIRST)
    assert {(row[C.RUN_ID], row[C.USER_ID]) for row in first.to_pylist()} == {("crashed", "ann"), ("crashed", "kim")}
    assert events(root)[-5:] == [
        ("crashed", "PUBLISHING"),
        ("next", "RUNNING"),
        ("crashed", "PUBLISHED"),
        ("next", "PUBLISHING"),
        ("next", "PUBLISHED"),
    ]
    assert leftovers(root) == []


def test_a_night_whose_staging_was_lost_goes_back_to_what_was_published(root: str) -> None:
    before = nights.rows_of(Results(root).user_metrics(), without=())
    crash(root, "after_user_metrics", CHANGED)
    shutil.rmtree(Path(root, "_staging"))
    nights.publish(root, nights.facts("next", nights.SECOND))
    results = Results(root)
    assert nights.rows_of(results.user_metrics(date=nights.FIRST), without=()) == before
    assert ("crashed", "MAINTAINED") in events(root)


def test_a_run_that_was_taken_for_dead_while_it_waited_publishes_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended before its turn to publish: its night was taken over, and its files are gone."""
    before = nights.rows_of(Results(root).user_metrics(), without=())
    recovered = publishing.recover

    def suspended(held: ResultTables) -> JournalState:
        for file in Path(root).rglob("lost.*.parquet"):
            file.unlink()
        return recovered(held)

    monkeypatch.setattr(publishing, "recover", suspended)
    with pytest.raises(ResultsError, match=r"found no \w+ and no \w+ .*in its staging"):
        nights.publish(root, nights.facts("lost"), CHANGED)
    assert nights.rows_of(Results(root).user_metrics(), without=()) == before
    assert events(root)[-1] == ("lost", "RUNNING")


def test_an_announced_run_whose_rows_its_tables_refuse_is_set_back(root: str) -> None:
    """As of a version that did not look for them: nobody could ever publish it, and everybody would try."""
    before = nights.rows_of(Results(root).user_metrics(), without=())
    store = ResultsStore.open(root)
    infinite = [{**row, "value": float("inf")} for row in nights.metric_rows(CHANGED)]
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "refused"):
        run = store.start(nights.facts("refused"))
        run.stage("user_metrics", nights.table(schemas.USER_METRICS, nights.user_rows(CHANGED)))
        run.stage("metrics", nights.table(schemas.METRICS, infinite))
        with failpoints.armed("after_intent"), pytest.raises(failpoints.FailpointError):
            run.publish()
    nights.publish(root, nights.facts("next", nights.SECOND))
    assert nights.rows_of(Results(root).user_metrics(date=nights.FIRST), without=()) == before
    assert ("refused", "MAINTAINED") in events(root)
    assert leftovers(root) == []


def test_what_was_announced_is_finished_before_a_run_looks_at_the_nights_before(root: str) -> None:
    crash(root, "after_intent", CHANGED)
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.SECOND, "next"):
        store.start(nights.facts("next", nights.SECOND))
        assert ("crashed", "PUBLISHED") in events(root)


def test_a_reader_who_came_earlier_keeps_what_he_saw(root: str) -> None:
    results = Results(root)
    before = nights.rows_of(results.metrics(), without=())
    nights.publish(root, nights.facts("again"), CHANGED)
    assert nights.rows_of(results.metrics(), without=()) == before
    assert nights.rows_of(results.refresh().metrics(), without=()) != before


def test_a_run_that_failed_says_where_and_why_and_leaves_nothing(root: str) -> None:
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "bad"):
        run = store.start(nights.facts("bad"))
        nights.stage(run, CHANGED)
        run.fail("score", ValueError("no such thing"), failed_checks=["null_keys"])
    (failed,) = where(Results(root).runs(), status="FAILED").to_pylist()
    assert failed["error"] == {"stage": "score", "type": "ValueError", "message": "no such thing"}
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
def test_maintenance_records_runs_that_ended_before_they_staged_anything(root: str, has_lock: bool) -> None:
    crash(root, "after_staging", CHANGED)
    if has_lock:
        leave_the_lock_behind(root)
    shutil.rmtree(Path(root, "_staging"))
    ResultsStore.open(root).maintenance().remove_staging()
    assert events(root)[-2:] == [("crashed", "RUNNING"), ("crashed", "FAILED")]


def test_the_run_whose_lock_was_left_behind_is_recorded_as_failed(root: str) -> None:
    """What a killed process leaves: RUNNING, its staging and its lock; ``tests/faults`` kills them for good."""
    crash(root, "after_staging", CHANGED)
    leave_the_lock_behind(root)

    nights.publish(root, nights.facts("next"), CHANGED)

    assert events(root)[-5:] == [
        ("crashed", "RUNNING"),
        ("crashed", "FAILED"),
        ("next", "RUNNING"),
        ("next", "PUBLISHING"),
        ("next", "PUBLISHED"),
    ]
    (failed,) = where(Results(root).runs(), status="FAILED").to_pylist()
    assert failed["reason"] == "died: its process was gone, or silent for too long, when run next took over"
    assert (failed["error"]["stage"], failed["error"]["type"]) == ("unknown", "Died")
    assert failed["config_hash"] == "c0ffee"
    assert leftovers(root) == []


def test_an_event_that_is_lost_or_cannot_be_written_does_not_hide_what_happened(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "bad"):
        run = store.start(nights.facts("bad"))
        nights.stage(run, CHANGED)
        monkeypatch.setattr(delta_log, "find_commit", lambda *_, **__: None)
        error = ValueError("no such thing")
        run.fail("score", error)
        assert notes_of(error) == [f"run bad could not be recorded as FAILED: {ResultsError.title}"]
        assert leftovers(root) == []
        nights.stage(run, CHANGED)
        with pytest.raises(ResultsError, match=r"table runs: found no commit of run bad after version \d+"):
            run.publish()
