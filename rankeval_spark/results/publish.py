"""The publish protocol: staged tables become the published ones, and one row of ``runs`` is the commit.

Everything here happens while the publish lock of the root is held, as its tables know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import first_line
from rankeval_spark.results import audit, delta_log, journal
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.staging import Staging
from rankeval_spark.results.tables import require_reader_version

if TYPE_CHECKING:
    from rankeval_spark.results.table_store import TableStore

_REFUSED: Final = re.compile(r"DELTA_VIOLATE_CONSTRAINT|DELTA_NOT_NULL_CONSTRAINT")
"""Delta's names for rows that a table never takes; the audit looks for them before the run announces itself."""


def publish(
    tables: TableStore, event: journal.Event, staging: Staging, *, on_intent: Callable[[], None]
) -> dict[str, int]:
    """Publish what a run staged; return the new Delta version of every table.

    ``on_intent`` is called before the intent is written into the journal, and may refuse: from here on the intent may
    be there, even if its writer was interrupted, and the staging area belongs to whoever finds it.
    """
    last = recover(tables).last_recorded
    on_intent()
    announced = journal.record(tables, {**event, "status": journal.PUBLISHING}, after=last)
    failpoint("after_intent")
    versions = _replace_night(tables, staging)
    failpoint("before_marker")
    commit = {**event, "status": journal.PUBLISHED, "table_versions": versions}
    journal.record(tables, commit, after=announced)
    return versions


def _replace_night(tables: TableStore, staging: Staging) -> dict[str, int]:
    """Replace the rows of a night in every table by what was staged; return the new versions."""

    def replace_in(table: str) -> int:
        staged = staging.path(table) if staging.has(table) else None
        version = tables.replace_by_staged(table, staging.night, staging.run_id, staged)
        failpoint(f"after_{table}")
        return version

    names = [schema.name for schema in schemas.PUBLISHED]
    return dict(zip(names, tables.storage.side_by_side(replace_in, names), strict=True))


def recover(tables: TableStore) -> journal.JournalState:
    """Finish every publish and deletion that was announced and not completed; return the state of the journal.

    A run is rolled forward from its staging area. If that is gone, or the tables refuse its rows, its night is rolled
    back to the last published version, so that the next publish does not make half a run visible.
    """
    state = journal.read_state(tables)
    lacking = {}
    for schema in schemas.PUBLISHED:  # all of them, before the first is touched
        published = state.versions.get(schema.name, -1)
        delta_log.require_whole(tables.storage, schema.name, published=published)
        require_reader_version(tables.storage, schema.name, after=published)
        lacking[schema.name] = tables.lacking_columns(schema)
    for table, columns in lacking.items():
        if columns:
            tables.add_columns(table, columns)
    if not state.pending:
        return state
    last = state.last_recorded
    for intent in state.pending:
        if intent["status"] == journal.PUBLISHING:
            last = _recover_run(tables, intent, state, after=last)
    if deletions := [intent for intent in state.pending if intent["status"] == journal.MAINTAINING]:
        finish_deletions(tables, deletions, after=last)
    return journal.read_state(tables)


def _recover_run(
    tables: TableStore, intent: journal.Event, state: journal.JournalState, *, after: datetime
) -> datetime:
    """Complete a publish that its run did not complete, and record the outcome; return the time."""
    night, run_id = NightKey(intent[C.EVALUATION], intent[C.EVALUATION_DATE]), intent[C.RUN_ID]
    staging = Staging(tables, night, run_id)
    found = "its staging area was lost" if staging.lacking(intent["n_rows"]) else _find_refused(staging)
    versions: Mapping[str, int] = {}
    if found is None:
        try:
            versions = _replace_night(tables, staging)
        except Exception as error:
            if not _REFUSED.search(str(error)):
                raise  # a disk that is full, a lock that was lost: the next one tries again
            found = first_line(str(error))
    status, reason = journal.PUBLISHED, "rolled forward from its staging area after a crash"
    if found is not None:
        names = (schema.name for schema in schemas.PUBLISHED)
        versions = {table: tables.restore_night(table, night, run_id, state.versions.get(table)) for table in names}
        status, reason = journal.MAINTAINED, f"rolled back: {found}"
    reasons = "; ".join(filter(None, (intent["reason"], reason)))
    event = {**intent, "status": status, "reason": reasons, "table_versions": dict(versions)}
    recorded_at = journal.record(tables, event, after=after)
    staging.remove()
    return recorded_at


def _find_refused(staging: Staging) -> str | None:
    """Return the first fault of the staged rows, which may have changed since the run announced them."""
    found = []
    for schema in schemas.PUBLISHED:
        if staging.has(schema.name):  # with the columns as of its version
            names = {field["name"] for field in staging.columns(schema.name)["fields"]}
            found.append(replace(schema, fields=tuple(field for field in schema.fields if field.name in names)))
    faults = audit.refused_rows({schema.name: staging.staged_rows(schema.name) for schema in found}, found)
    return first_line(str(faults[0])) if faults else None


def finish_deletions(tables: TableStore, intents: Sequence[Mapping[str, Any]], *, after: datetime) -> datetime:
    """Delete the nights of intents, rows of ``runs``, from the tables in ``n_rows``; record it, and return its time."""
    for table in OF_USERS:
        own = [intent for intent in intents if table in intent["n_rows"]]
        nights = [NightKey(intent[C.EVALUATION], intent[C.EVALUATION_DATE]) for intent in own]
        if nights:
            tables.delete_nights(table, nights)
            failpoint("after_deletion")
    # Nothing else is pending, so that the newest versions are what readers are to see.
    versions = tables.latest_versions(schema.name for schema in schemas.PUBLISHED)
    done = [{**intent, "status": journal.MAINTAINED, "table_versions": versions} for intent in intents]
    return journal.record(tables, *done, after=after)
