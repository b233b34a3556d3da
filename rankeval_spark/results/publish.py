"""The publish protocol: staged tables become the published ones, and one row of ``runs`` is the commit.

Everything here happens while the publish lock of the root is held, as its tables know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import first_line
from rankeval_spark.results import audit, delta_log, journal
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.staging import Staging
from rankeval_spark.results.tables import require_declared, require_reader_version

if TYPE_CHECKING:
    from rankeval_spark.results.result_tables import ResultTables


FORWARD: Final = "rolled forward from its staging area after a crash"


def publish(
    tables: ResultTables, event: journal.Event, staging: Staging, *, on_intent: Callable[[], None]
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


def _replace_night(tables: ResultTables, staging: Staging) -> dict[str, int]:
    """Replace the rows of a night in every table by what was staged; return the new versions."""

    def replace_in(table: str) -> int:
        if table == schemas.USER_METRICS.name and staging.measures:
            tables.add_columns(table, staging.measures)
        version = tables.replace_night(table, staging.night, staging.run_id, staging.files(table))
        failpoint(f"after_{table}")
        return version

    names = [schema.name for schema in schemas.PUBLISHED]
    return dict(zip(names, tables.storage.side_by_side(replace_in, names), strict=True))


def recover(tables: ResultTables) -> journal.JournalState:
    """Finish every publish and deletion that was announced and not completed; return the state of the journal.

    A run is rolled forward from its staging area. If that is gone, or the tables refuse its rows, its night is rolled
    back to the last published version, so that the next publish does not make half a run visible.
    """
    state = journal.read_state(tables)
    for schema in schemas.PUBLISHED:  # all of them, before the first is touched
        published = state.versions.get(schema.name, -1)
        delta_log.require_whole(tables.storage, schema.name, published=published)
        require_reader_version(tables.storage, schema.name, after=published)
        require_declared(tables.columns(schema.name), schema)
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
    tables: ResultTables, intent: journal.Event, state: journal.JournalState, *, after: datetime
) -> datetime:
    """Complete a publish that its run did not complete, and record the outcome; return the time."""
    night, run_id = NightKey(intent[C.EVALUATION], intent[C.EVALUATION_DATE]), intent[C.RUN_ID]
    staging = Staging.announced(tables.storage, night, run_id)
    found = (
        "the list of its files, or one of them, was lost"
        if staging.lacking(intent["n_rows"])
        else _find_refused(staging)
    )
    if found is None:
        status, reason, versions = journal.PUBLISHED, FORWARD, _replace_night(tables, staging)
    else:
        # A table without rows to restore would get no commit: one of that run may be there unseen, or on its way.
        tables.fence(run_id)
        names = (schema.name for schema in schemas.PUBLISHED)
        versions = {table: tables.restore_night(table, night, run_id, state.versions.get(table)) for table in names}
        status, reason = journal.MAINTAINED, f"rolled back: {found}"
    reasons = "; ".join(filter(None, (intent["reason"], reason)))
    event = {**intent, "status": status, "reason": reasons, "table_versions": versions}
    recorded_at = journal.record(tables, event, after=after)
    staging.close()
    return recorded_at


def _find_refused(staging: Staging) -> str | None:
    """Return the first fault of the staged rows, which may have changed since the run announced them."""
    names = [schema.name for schema in schemas.PUBLISHED if staging.files(schema.name)]
    faults = audit.refused_rows({name: staging.staged_rows(name) for name in names}, schemas.PUBLISHED)
    return first_line(str(faults[0])) if faults else None


def finish_deletions(tables: ResultTables, intents: Sequence[Mapping[str, Any]], *, after: datetime) -> datetime:
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
