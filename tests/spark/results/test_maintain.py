"""Maintenance beside runs and after crashes: what readers see, what is gone, what stays."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, InputError, ResultsError
from rankeval_spark.results import Results, ResultsStore, delta_log, failpoints, table_scans, tables
from rankeval_spark.results.maintenance import Compacted
from rankeval_spark.results.storage import Storage
from rankeval_spark.schemas import Field
from tests.spark.results import nights
from tests.support import nights as workspaces
from tests.support.arrow_frames import where
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.results.maintenance import Maintenance

DELETED_FILES = "delta.deletedFileRetentionDuration"
THIRD = nights.SECOND.replace(day=3)


def maintenance(root: str) -> Maintenance:
    return ResultsStore.open(root, create=False).maintenance()


def statuses(root: str) -> list[str]:
    events: list[str] = Results(root).runs().sort_by("recorded_at")["status"].to_pylist()
    return events


def n_rows(root: str, day: date) -> dict[str, int]:
    """Rows of a night as anybody reads them, at the published versions."""
    results = Results(root)
    return {
        schema.name: where(results.published(schema.name), evaluation_date=day).num_rows for schema in nights.STAGED
    }


def test_a_deletion_that_was_killed_is_finished_by_the_next_run(root: str) -> None:
    before = n_rows(root, nights.FIRST)
    early = Results(root)
    early.table_versions()
    with failpoints.armed("after_deletion"), pytest.raises(failpoints.FailpointError):
        maintenance(root).keep_days(1, newest=THIRD)
    assert (n_rows(root, nights.FIRST), Results(root).deleted()) == (before, {})

    nights.publish(root, nights.facts("third", THIRD))
    gone = {(nights.NIGHTLY, nights.FIRST): {"lists", "user_metrics"}}
    assert Results(root).deleted() == gone
    assert n_rows(root, nights.FIRST) == {**before, "lists": 0, "user_metrics": 0}
    assert n_rows(root, THIRD) == before
    assert statuses(root)[-5:] == ["MAINTAINING", "RUNNING", "MAINTAINED", "PUBLISHING", "PUBLISHED"]
    with pytest.raises(InputError, match=r"nightly, 2026-01-01: found no lists: deleted by rankeval maintain"):
        Results(root).lists(date=nights.FIRST)
    assert early.lists(date=nights.FIRST).num_rows == before["lists"]  # pinned before, and told so


def test_staging_of_dead_runs_goes_and_that_of_live_ones_stays(root: str) -> None:
    for failpoint, day in (("after_staging", nights.FIRST), ("after_lists", nights.SECOND)):
        with failpoints.armed(failpoint), pytest.raises(failpoints.FailpointError):
            nights.publish(root, nights.facts(f"dead-{failpoint}", day))
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, THIRD, "live"):
        run = store.start(nights.facts("live", THIRD))
        nights.stage(run, nights.RANKS)
        # The second one is rolled forward, and so removed, before.
        done = maintenance(root).remove_staging()
        run.publish()
    assert [name.rpartition(".")[2] for name in done.removed] == ["dead-after_staging"]
    assert [name.rpartition(".")[2] for name in done.kept] == ["live"]
    assert list(Path(root, "_staging").iterdir()) == []
    assert all(n_rows(root, day)["lists"] for day in (nights.SECOND, THIRD))


def test_the_command_keeps_the_means_and_says_what_is_gone(own_copy: workspaces.Workspace) -> None:
    root, storage = own_copy.root, Storage(own_copy.root)
    means = nights.rows_of(Results(root).metrics(), without=())
    users = set(Results(root).user_metrics(date=workspaces.SECOND)[C.USER_ID].to_pylist())
    assert "ann" in users

    abandoned = Path(root, "lists", "part-of-a-write-that-was-killed.parquet")
    abandoned.write_bytes(b"")
    os.utime(abandoned, (0, 0))

    done = rankeval("maintain", root, "--keep-days", "1", "--erase-user", "ann", "--vacuum")
    assert (done.code, done.err.count("error")) == (0, 0), done.err
    assert "before 2026-01-02 deleted: 2 nights (nightly, 2026-01-01 to nightly.sample-0.75, 2026-01-01)" in done.out
    assert "one user erased, rows: lists 2, user_metrics 4" in done.out
    assert "files that no version within the retention needs, deleted: lists 1\n" in done.out
    assert not abandoned.exists()
    assert "runs " in done.out.partition("small files merged: ")[2].splitlines()[0]

    results = Results(root)
    assert nights.rows_of(results.metrics(), without=()) == means
    assert set(results.user_metrics(date=workspaces.SECOND)[C.USER_ID].to_pylist()) == users - {"ann"}
    for schema in tables.TABLES:
        newest = table_scans.scan(storage, schema.name).to_table()
        text = nights.rows_of(newest, without=["config"] if "config" in newest.column_names else ())
        assert not [row for row in text if re.search(r"\bann\b", row)], schema.name
    published = {schema.name: delta_log.latest_version(storage, schema.name) for schema in schemas.PUBLISHED}
    assert results.table_versions() == published

    again = maintenance(root)
    assert (again.keep_days(1).nights, again.compact("metrics")) == ((), Compacted(0, 0))
    assert Results(root).table_versions() == published

    assert again.erase_user("zoe")["checks"] > 0  # the example of a user without a judgement

    for command in (
        ("score", root, "-m", "P@1", "--date", "2026-01-01", "--evaluation", "nightly"),
        ("compare", root, "--against", "previous", "--date", "2026-01-02", "--evaluation", "nightly"),
    ):
        refused = rankeval(*command)
        assert (refused.code, "deleted by rankeval maintain --keep-days" in refused.message) == (4, True), refused
    shown = rankeval("show", root, "--date", "2026-01-01", "--evaluation", "nightly")
    assert shown.code == 0
    assert "note: nightly, 2026-01-01: lists and user_metrics were deleted" in shown.err

    deltalake.DeltaTable(f"{root}/lists").alter.set_table_properties({DELETED_FILES: "interval 0 hours"})
    with pytest.raises(ConfigError, match="expected at least 7 days"):
        maintenance(root).vacuum("lists", deletes=True)


def test_tables_with_other_columns_than_declared_are_refused(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share = Field("share", "string", "A share in words")
    fields = (share if field.name == "share" else field for field in schemas.CHECKS.fields)
    monkeypatch.setattr(schemas, "PUBLISHED", (*schemas.PUBLISHED[:-1], replace(schemas.CHECKS, fields=tuple(fields))))
    with pytest.raises(ResultsError, match=r"table checks: found other columns .*\(share double\).*new results root"):
        maintenance(root).remove_staging()
    with pytest.raises(ResultsError, match="column share: found double; expected string"):
        nights.publish(root, nights.facts("by-other-code"))
