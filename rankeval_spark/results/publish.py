"""The publish protocol: staged tables become the published ones, and one row of ``runs`` is the commit.

Everything here happens while the publish lock of the root is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import first_line
from rankeval_spark.results import audit, delta_log, journal, local_tables, local_writes, tables
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.locks import Root, own_commit, retried
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.staging import Staging
from rankeval_spark.results.table_changes import ChangesOnDisk, TableChanges

if TYPE_CHECKING:
    from datetime import datetime

    from rankeval_spark.results.file_store import LocalStorage
    from rankeval_spark.results.locks import Lock

_REFUSED: Final = re.compile(r"DELTA_VIOLATE_CONSTRAINT|DELTA_NOT_NULL_CONSTRAINT")
"""Delta's names for rows that a table never takes; the audit looks for them before the run announces itself."""


def publish(root: Root, event: journal.RunEvent, staging: Staging, *, on_intent: Callable[[], None]) -> dict[str, int]:
    """Publish what a run staged; return the new Delta version of every table.

    ``on_intent`` is called before the intent is written into the journal, and may refuse: from here on the intent may
    be there, even if its writer was interrupted, and the staging area belongs to whoever finds it.
    """
    last = recover(root).last_recorded
    on_intent()
    intent = replace(event, status=journal.PUBLISHING, table_versions={})
    announced = journal.record(root.spark, root.storage, intent, after=last, held=[root.lock])
    failpoint("after_intent")
    versions = _write_tables(root, event.facts.night, event.facts.run_id, staging)
    failpoint("before_marker")
    commit = replace(event, status=journal.PUBLISHED, table_versions=versions)
    journal.record(root.spark, root.storage, commit, after=announced, held=[root.lock])
    return versions


def recover(root: Root) -> journal.JournalState:
    """Finish every publish and deletion that was announced and not completed; return the state of the journal.

    A run is rolled forward from its staging area. If that is gone, or the tables refuse its rows, its night is rolled
    back to the last published version, so that the next publish does not make half a run visible.
    """
    state = journal.state(root.spark, root.storage)
    lacking = {}
    for schema in schemas.PUBLISHED:  # all of them, before the first is touched
        published = state.versions.get(schema.name, -1)
        delta_log.require_whole(root.storage, schema.name, published=published)
        tables.require_reader_version(root.storage, schema.name, after=published)
        lacking[schema.name] = tables.lacking_columns(root.spark, root.storage, schema)
    for table, columns in lacking.items():
        if columns:
            tables.add_columns(root, table, columns)
    if not state.pending:
        return state
    last = state.last_recorded
    for intent in state.pending:
        if intent["status"] == journal.PUBLISHING:
            last = _recover_run(root, intent, state, after=last)
    if deletions := [intent for intent in state.pending if intent["status"] == journal.MAINTAINING]:
        finish_deletions(root, deletions, after=last)
    return journal.state(root.spark, root.storage)


def _recover_run(root: Root, intent: journal.Event, state: journal.JournalState, *, after: datetime) -> datetime:
    """Complete a publish that its run did not complete, and record the outcome; return the time."""
    night, run_id = NightKey(intent[C.EVALUATION], intent[C.EVALUATION_DATE]), intent[C.RUN_ID]
    staging = Staging(root.spark, root.storage, night, run_id)
    found = "its staging area was lost" if staging.lacking(intent["n_rows"]) else None
    found = found or _refused_rows(staging)
    versions: Mapping[str, int] = {}
    if found is None:
        try:
            versions = _write_tables(root, night, run_id, staging)
        except Exception as error:
            if not _REFUSED.search(str(error)):
                raise  # a disk that is full, a lock that was lost: the next one tries again
            found = first_line(str(error))
    status, reason = journal.PUBLISHED, "rolled forward from its staging area after a crash"
    if found is not None:
        versions = _roll_back(root, night, run_id, state.versions)
        status, reason = journal.MAINTAINED, f"rolled back: {found}"
    reasons = "; ".join(filter(None, (intent["reason"], reason)))
    event = {**intent, "status": status, "reason": reasons, "table_versions": dict(versions)}
    recorded_at = journal.record_all(root.spark, root.storage, [event], after=after, held=[root.lock])
    staging.remove()
    return recorded_at


def _refused_rows(staging: Staging) -> str | None:
    """Return the first fault of the staged rows, which may have changed since the run announced them."""
    found = []
    for schema in schemas.PUBLISHED:
        if not staging.has(schema.name):
            continue
        names = {field["name"] for field in staging.columns(schema.name)["fields"]}
        # with the columns as of its version
        found.append(replace(schema, fields=tuple(field for field in schema.fields if field.name in names)))
    faults = audit.refused_rows({schema.name: staging.staged_rows(schema.name) for schema in found}, found)
    return first_line(str(faults[0])) if faults else None


def _write_tables(root: Root, night: NightKey, run_id: str, staging: Staging) -> dict[str, int]:
    versions = {}
    for schema in schemas.PUBLISHED:
        table, is_staged = schema.name, staging.has(schema.name)
        if local_tables.are_at(root.storage):
            files = staging.files(table) if is_staged else []
            if files and schema is schemas.USER_METRICS:
                tables.add_columns(root, table, tables.measure_columns(staging.columns(table)))
            versions[table] = _replace_files(root.storage, root.lock, table, night, files, tag=run_id)
        else:
            from rankeval_spark.results import spark_writes  # noqa: PLC0415 - imports pyspark

            rows = staging.read(table) if is_staged else None
            versions[table] = spark_writes.replace_night(root, schema, night, run_id, rows)
        failpoint(f"after_{table}")
    return versions


def _replace_files(
    storage: LocalStorage, lock: Lock, table: str, night: NightKey, files: Sequence[Mapping[str, Any]], *, tag: str
) -> int:
    """Replace the night's files in one table, without a rewrite; return the new version."""

    def replace_night(seen: int) -> int:
        if not files and not local_tables.has_rows(storage, table, night, seen):
            return seen
        local_writes.replace_night(storage, table, night, files=files, tag=tag, after=seen)
        return own_commit(storage, table, tag, after=seen)

    return retried(storage, table, replace_night, held=[lock])


def _roll_back(root: Root, night: NightKey, run_id: str, published: Mapping[str, int]) -> dict[str, int]:
    versions = {}
    for schema in schemas.PUBLISHED:
        table, version = schema.name, published.get(schema.name)
        if local_tables.are_at(root.storage):
            files = [] if version is None else local_writes.night_files(root.storage, table, night, version)
            versions[table] = _replace_files(root.storage, root.lock, table, night, files, tag=run_id)
        else:
            from rankeval_spark.results import spark_tables, spark_writes  # noqa: PLC0415 - imports pyspark

            location = root.storage.root
            then = None if version is None else spark_tables.read_table(root.spark, location, table, version)
            before = None if then is None else then.where(spark_tables.rows_of(night))
            versions[table] = spark_writes.replace_night(root, schema, night, run_id, before)
    return versions


def finish_deletions(root: Root, intents: Sequence[Mapping[str, Any]], *, after: datetime) -> datetime:
    """Delete the nights of intents, rows of ``runs``, from the tables in ``n_rows``; record it, and return its time."""
    changes = changes_of(root)
    for table in OF_USERS:
        own = [intent for intent in intents if table in intent["n_rows"]]
        nights = [NightKey(intent[C.EVALUATION], intent[C.EVALUATION_DATE]) for intent in own]
        if nights:
            changes.delete_nights(table, nights)
            failpoint("after_deletion")
    # Nothing else is pending, so that the newest versions are what readers are to see.
    versions = {schema.name: delta_log.latest_version(root.storage, schema.name) for schema in schemas.PUBLISHED}
    done = [{**intent, "status": journal.MAINTAINED, "table_versions": versions} for intent in intents]
    return journal.record_all(root.spark, root.storage, done, after=after, held=[root.lock])


def changes_of(root: Root) -> TableChanges[Any]:
    """Return the changes of a root: by this process on a disk of this machine, by Spark elsewhere."""
    if local_tables.are_at(root.storage):
        return ChangesOnDisk(root, root.storage)
    from rankeval_spark.results.spark_writes import ChangesOnSpark  # noqa: PLC0415 - imports pyspark

    return ChangesOnSpark(root)
