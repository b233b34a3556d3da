"""The ``runs`` table: an append-only journal of run events, in which one row is the commit of a whole publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import delta_log, local_tables, local_writes
from rankeval_spark.results.locks import own_commit, retried, turn_for_runs
from rankeval_spark.results.readers import reader_of
from rankeval_spark.results.run_record import Failure, NightKey

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.local_tables import Filters
    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.readers import Reader
    from rankeval_spark.results.run_record import InputRecord, RunRecord

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

MERGED_EVERY: Final = 100
"""Commits to ``runs`` after which its small files are merged: each adds one, and readers open all of them."""

UNKNOWN_STAGE: Final = "unknown"
DIED: Final = "Died"  # type of the error of a run that did not record its end itself
Event: TypeAlias = Mapping[str, Any]  # a row of `runs`; structs and maps are dictionaries
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RunEvent:
    """One row of ``runs``."""

    facts: RunRecord
    status: str
    reason: str | None = None
    inputs: Sequence[InputRecord] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    n_rows: Mapping[str, int] = field(default_factory=dict)
    table_versions: Mapping[str, int] = field(default_factory=dict)
    error: Failure | None = None
    failed_checks: Sequence[str] = ()

    def values(self, recorded_at: datetime) -> dict[str, Any]:
        """Return the values of the row by column."""
        facts = self.facts
        inputs = _fields(self.inputs, "name", "location", "format", "version", "n_rows")
        definitions = _fields([fact.definition for fact in facts.measures], "name", "options", "group_rule")
        measures = zip(_fields(facts.measures, "measure", "k", "column"), definitions, strict=True)
        return {
            **_fields([facts], *C.RUN_KEY, "sample_share", "config", "config_hash")[0],
            **_fields([facts], "defaults_version", "code_version")[0],
            "status": self.status,
            "recorded_at": recorded_at,
            "reason": self.reason,
            "inputs": inputs,
            "input_columns": {fact.name: fact.columns for fact in self.inputs if fact.columns is not None},
            "policies": dict(facts.policies),
            "measures": [measure | definition for measure, definition in measures],
            "table_versions": dict(self.table_versions),
            "timings": dict(self.timings),
            "n_rows": dict(self.n_rows),
            "error": asdict(self.error) if self.error else None,
            "failed_checks": list(self.failed_checks),
        }


def _fields(facts: Iterable[object], *names: str) -> list[dict[str, Any]]:
    return [{name: getattr(fact, name) for name in names} for fact in facts]


@dataclass(frozen=True)
class JournalState:
    """State of the journal: the newest commit, and the runs that announced a change and did not finish it."""

    last_recorded: datetime
    versions: dict[str, int]
    pending: tuple[Event, ...]  # intents of runs to publish, and of maintenance to delete, one per night


def record(
    spark: SparkSession, storage: Storage, event: RunEvent, *, after: datetime = _EPOCH, held: Sequence[Lock] = ()
) -> datetime:
    """Append an event and return its time; see :func:`record_all`."""
    return record_all(spark, storage, [event.values(after)], after=after, held=held)


def record_death(spark: SparkSession, storage: Storage, run_id: str, *, found_by: str, holder: str) -> None:
    """Record FAILED for a run that ended silently, by its ``holder``; not if it has more events than RUNNING."""
    events = event_frame(spark, storage.root, where=[(C.RUN_ID, "=", run_id)])
    if [event["status"] for event in events] != [RUNNING]:  # published, failed, or to be rolled forward
        return
    reason = f"died: its process was gone, or silent for too long, when {found_by} took over"
    error = asdict(Failure(UNKNOWN_STAGE, DIED, f"{holder} ended without a word"))
    record_all(spark, storage, [{**events[0], "status": FAILED, "reason": reason, "error": error}], after=_EPOCH)


def record_all(
    spark: SparkSession,
    storage: Storage,
    events: Iterable[Mapping[str, Any]],
    *,
    after: datetime,
    held: Sequence[Lock] = (),
) -> datetime:
    """Append events to ``runs`` in one commit, find that commit in the log, and return the time of the events.

    The time is later than ``after``, even if the clock of this machine is behind. A writer that lost the locks ``held``
    while it waited for its turn appends nothing.
    """
    recorded_at = max(datetime.now(UTC), after + timedelta(microseconds=1))
    rows = [{**values, "recorded_at": recorded_at} for values in events]
    table, run_id = schemas.RUNS.name, str(rows[0][C.RUN_ID])

    def append(seen: int) -> int:
        if local_tables.are_at(storage):
            local_writes.append_rows(storage, table, rows, tag=run_id, after=seen)
        else:
            from rankeval_spark.results import spark_tables  # noqa: PLC0415 - imports pyspark

            delta_log.require_whole(storage, table, seen)
            spark_tables.append_events(spark, storage, rows, tag=run_id, after=seen)
        return own_commit(storage, table, run_id, after=seen)

    with turn_for_runs(storage, run_id) as turn:
        version = retried(storage, table, append, held=[turn, *held])
        if version % MERGED_EVERY == 0 or (rows[0]["status"] in COMMITS and local_tables.is_by_night(storage, table)):
            _merge_events(spark, storage, version)
    return recorded_at


def _merge_events(spark: SparkSession, storage: Storage, version: int) -> None:
    """Merge small files of ``runs``; the events are there without it, and ``rankeval maintain`` says what is wrong."""
    with suppress(Exception):
        if local_tables.are_at(storage):
            local_writes.merge_events(storage, schemas.RUNS.name, after=version)
        else:
            from rankeval_spark.results import spark_tables  # noqa: PLC0415 - imports pyspark

            spark_tables.merge_files(spark, storage, schemas.RUNS.name)


def event_frame(
    spark: SparkSession | None,
    root: str,
    *,
    columns: Sequence[str] | None = None,
    where: Filters = (),
    is_lenient: bool = False,
) -> list[Event]:
    """Read events of a root as dictionaries, see :func:`event_table`; ConfigError if there are no results."""
    events = event_table(reader_of(spark, root), columns=columns, where=where, is_lenient=is_lenient)
    return [*local_tables.to_rows(events)]


def event_table(
    reader: Reader[Any, Any], *, columns: Sequence[str] | None = None, where: Filters = (), is_lenient: bool = False
) -> pa.Table:
    """Read events in the order of their times; ``recorded_at``, in UTC, is read in addition to ``columns``.

    With ``is_lenient`` those of damaged files are left out, with a warning. Never where anything is written: what is
    not read may be the publish of a night. (Dictionaries of ten thousand nights take a second: choose events first.)
    """
    wanted = None if columns is None else [*columns, "recorded_at"]
    scan = reader.readable_events(where) if is_lenient else reader.scan(schemas.RUNS.name, where=where)
    return reader.arrow(scan, wanted).sort_by("recorded_at")


def state(spark: SparkSession, storage: Storage) -> JournalState:
    """Read the state of the journal; the caller holds the publish lock."""
    of_changes = ("status", "in", (*INTENTS, *COMMITS))
    columns = (C.RUN_ID, "status", "table_versions")
    events = event_table(reader_of(spark, storage.root), columns=columns, where=[of_changes])
    commits = events.filter(pc.field("status").isin(COMMITS))
    done = pc.is_in(events[C.RUN_ID], value_set=commits[C.RUN_ID].combine_chunks())
    pending = events[C.RUN_ID].filter(pc.invert(done)).to_pylist()
    intents = [("status", "in", INTENTS), (C.RUN_ID, "in", pending)]
    last_recorded = events["recorded_at"][-1].as_py() if events.num_rows else _EPOCH
    announced = event_frame(spark, storage.root, where=intents) if pending else ()
    return JournalState(last_recorded, last_versions(commits), tuple(announced))


def last_versions(commits: pa.Table) -> dict[str, int]:
    """Return the table versions of the last event; none without an event."""
    last = local_tables.to_rows(commits.slice(max(commits.num_rows - 1, 0)))
    return dict(last[0]["table_versions"]) if last else {}


def unended(spark: SparkSession, storage: Storage) -> dict[str, list[str]]:
    """Return the runs whose only event is RUNNING, by the slug of their night."""
    events = event_frame(spark, storage.root, columns=(*C.RUN_KEY, "status"))
    ended = {event[C.RUN_ID] for event in events if event["status"] != RUNNING}
    found: dict[str, list[str]] = {}
    for event in events:
        if event[C.RUN_ID] not in ended:
            found.setdefault(NightKey(event[C.EVALUATION], event[C.EVALUATION_DATE]).slug, []).append(event[C.RUN_ID])
    return found


def newest_date(spark: SparkSession, storage: Storage, evaluation: str | None) -> date | None:
    """Return the newest published date, of one evaluation or all; None if nothing was published."""
    where = [("status", "=", PUBLISHED), *([(C.EVALUATION, "=", evaluation)] if evaluation is not None else [])]
    events = event_frame(spark, storage.root, columns=C.RUN_KEY, where=where)
    return max((event[C.EVALUATION_DATE] for event in events), default=None)
