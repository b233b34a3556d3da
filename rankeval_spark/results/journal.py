"""The ``runs`` table: an append-only journal of run events, in which one row is the commit of a whole publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.results.readers import ArrowReader, arrow_reader
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_scans import to_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.result_tables import ResultTables
    from rankeval_spark.results.run_record import InputRecord, RunRecord
    from rankeval_spark.results.table_scans import Filters

RUNNING: Final = "RUNNING"
PUBLISHING: Final = "PUBLISHING"
PUBLISHED: Final = "PUBLISHED"
FAILED: Final = "FAILED"
MAINTAINING: Final = "MAINTAINING"
"""The intent to delete a night from the tables that ``n_rows`` names; MAINTAINED says that its rows are gone."""
MAINTAINED: Final = "MAINTAINED"
COMMITS: Final = (PUBLISHED, MAINTAINED)  # events that name the versions of the tables at which readers read
INTENTS: Final = (PUBLISHING, MAINTAINING)

MAINTENANCE: Final = "rankeval.maintain"
"""``evaluation`` of the events of maintenance that are about no night; also the start of its run ids."""

Event: TypeAlias = Mapping[str, Any]  # a row of `runs`; structs and maps are dictionaries
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class JournalState:
    """State of the journal: the newest commit, and the runs that announced a change and did not finish it."""

    last_recorded: datetime
    versions: dict[str, int]
    pending: tuple[Event, ...]  # intents of runs to publish, and of maintenance to delete, one per night


def run_event(facts: RunRecord, status: str, *, inputs: Sequence[InputRecord] = (), **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - values of columns
    """Return a row of ``runs`` without its time; ``columns`` are those that differ from event to event."""
    measures = []
    for fact in facts.measures:
        definition = _values_of(fact.definition, "name", "options", "group_rule")
        own = {**fact.definition.own, **fact.definition.described} or None
        measures.append({**_values_of(fact, "measure", "k", "column"), **definition, "own": own})
    return {
        **_values_of(facts, *C.RUN_KEY, "sample_share", "config", "config_hash", "defaults_version", "code_version"),
        "status": status,
        "reason": None,
        "inputs": [_values_of(fact, "name", "location", "format", "version", "n_rows") for fact in inputs],
        "input_columns": {fact.name: fact.columns for fact in inputs if fact.columns is not None},
        "policies": dict(facts.policies),
        "measures": measures,
        "table_versions": {},
        "timings": {},
        "n_rows": {},
        "error": None,
        "failed_checks": [],
        **columns,
    }


def _values_of(fact: object, *names: str) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in names}


def record(tables: ResultTables, *events: Event, after: datetime = _EPOCH) -> datetime:
    """Append events to ``runs`` in one commit, merge its small files now and then, and return the time of the events.

    The time is later than ``after``, even if the clock of this machine is behind. A writer that lost its locks while it
    waited for its turn appends nothing. The commit is looked for in the log afterwards.
    """
    recorded_at = max(datetime.now(UTC), after + timedelta(microseconds=1))
    rows = [{**event, "recorded_at": recorded_at} for event in events]
    table, run_id = schemas.RUNS.name, str(rows[0][C.RUN_ID])

    def append(seen: int) -> int:
        in_turn.append_events(rows, tag=run_id, after=seen)
        return in_turn.own_commit(table, run_id, after=seen)

    with tables.turn_for(table, run_id) as in_turn:
        version = in_turn.commit(table, append)
        if version % tables.storage.merge_every == 0:
            with suppress(Exception):  # the events are there without it, and `rankeval maintain` says what is wrong
                in_turn.merge_files(table)
    return recorded_at


def record_death(tables: ResultTables, run_id: str, *, found_by: str, holder: str) -> None:
    """Record FAILED for a run that ended silently, by its ``holder``; not if it has more events than RUNNING."""
    events = to_rows(event_table(tables.reader, where=[(C.RUN_ID, "=", run_id)]))
    if [event["status"] for event in events] == [RUNNING]:  # else published, failed, or to be rolled forward
        reason = f"died: its process was gone, or silent for too long, when {found_by} took over"
        error = {"stage": "unknown", "type": "Died", "message": f"{holder} ended without a word"}
        record(tables, {**events[0], "status": FAILED, "reason": reason, "error": error})


def event_frame(
    root: str, *, columns: Sequence[str] | None = None, where: Filters = (), is_lenient: bool = False
) -> list[Event]:
    """Read events of a root as dictionaries, see :func:`event_table`; ConfigError if there are no results."""
    events = event_table(arrow_reader(root), columns=columns, where=where, is_lenient=is_lenient)
    return [*to_rows(events)]


def event_table(
    reader: ArrowReader, *, columns: Sequence[str] | None = None, where: Filters = (), is_lenient: bool = False
) -> pa.Table:
    """Read events in the order of their times; ``recorded_at``, in UTC, is read in addition to ``columns``.

    With ``is_lenient`` those of damaged files are left out, with a warning. Never where anything is written: what is
    not read may be the publish of a night. (Dictionaries of ten thousand nights take a second: choose events first.)
    """
    wanted = None if columns is None else [*columns, "recorded_at"]
    scan = reader.readable_events(where) if is_lenient else reader.scan(schemas.RUNS.name, where=where)
    return reader.arrow(scan, wanted).sort_by("recorded_at")


def read_state(tables: ResultTables) -> JournalState:
    """Read the state of the journal; the caller holds the publish lock."""
    of_changes = ("status", "in", (*INTENTS, *COMMITS))
    events = event_table(tables.reader, columns=(C.RUN_ID, "status", "table_versions"), where=[of_changes])
    commits = events.filter(pc.field("status").isin(COMMITS))
    done = pc.is_in(events[C.RUN_ID], value_set=commits[C.RUN_ID].combine_chunks())
    pending = events[C.RUN_ID].filter(pc.invert(done)).to_pylist()
    intents: Iterable[Event] = ()
    if pending:
        of_pending = [("status", "in", INTENTS), (C.RUN_ID, "in", pending)]
        intents = to_rows(event_table(tables.reader, where=of_pending))
    last_recorded = events["recorded_at"][-1].as_py() if events.num_rows else _EPOCH
    return JournalState(last_recorded, last_versions(commits), tuple(intents))


def last_versions(commits: pa.Table) -> dict[str, int]:
    """Return the table versions of the last event; none without an event."""
    last = to_rows(commits.slice(max(commits.num_rows - 1, 0)))
    return dict(last[0]["table_versions"]) if last else {}


def unended_runs(tables: ResultTables) -> dict[str, list[str]]:
    """Return the runs whose only event is RUNNING, by the slug of their night."""
    events = event_table(tables.reader, columns=(*C.RUN_KEY, "status")).to_pylist()
    ended = {event[C.RUN_ID] for event in events if event["status"] != RUNNING}
    found: dict[str, list[str]] = {}
    for event in events:
        if event[C.RUN_ID] not in ended:
            found.setdefault(NightKey(event[C.EVALUATION], event[C.EVALUATION_DATE]).slug, []).append(event[C.RUN_ID])
    return found
