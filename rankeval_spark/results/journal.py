"""The ``runs`` table: an append-only journal of run events, in which one row is the commit of a whole publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Row, SparkSession, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import delta_log, tables
from rankeval_spark.results.commits import lost, turn_for_runs
from rankeval_spark.results.facts import Failure, Night
from rankeval_spark.stages.frames import struct_type

if TYPE_CHECKING:
    from rankeval_spark.results.facts import InputFact, RunFacts
    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.storage import Storage

RUNNING: Final = "RUNNING"
PUBLISHING: Final = "PUBLISHING"
PUBLISHED: Final = "PUBLISHED"
FAILED: Final = "FAILED"
MAINTAINING: Final = "MAINTAINING"
"""The intent to delete a night from the tables that ``n_rows`` names; MAINTAINED says that its rows are gone."""
MAINTAINED: Final = "MAINTAINED"

COMMITS: Final = (PUBLISHED, MAINTAINED)
"""Events that name the versions of the tables at which readers read."""

INTENTS: Final = (PUBLISHING, MAINTAINING)

MAINTENANCE: Final = "rankeval.maintain"
"""``evaluation`` of the events of maintenance that are about no night; also the beginning of its run ids."""

UNKNOWN_STAGE: Final = "unknown"
DIED: Final = "Died"
"""Type of the error of a run that did not record its end itself."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class RunEvent:
    """One row of ``runs``."""

    facts: RunFacts
    status: str
    reason: str | None = None
    inputs: tuple[InputFact, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    n_rows: Mapping[str, int] = field(default_factory=dict)
    table_versions: Mapping[str, int] = field(default_factory=dict)
    error: Failure | None = None
    failed_checks: tuple[str, ...] = ()

    def values(self, recorded_at: datetime) -> dict[str, Any]:
        """Values of the row by column."""
        facts = self.facts
        return {
            C.EVALUATION: facts.evaluation,
            C.EVALUATION_DATE: facts.evaluation_date,
            C.RUN_ID: facts.run_id,
            "status": self.status,
            "recorded_at": recorded_at,
            "reason": self.reason,
            "sample_share": facts.sample_share,
            "config": facts.config,
            "config_hash": facts.config_hash,
            "code_version": facts.code_version,
            "inputs": [(fact.name, fact.location, fact.format, fact.version, fact.n_rows) for fact in self.inputs],
            "input_columns": {fact.name: fact.columns for fact in self.inputs if fact.columns is not None},
            "measures": [(fact.measure, fact.k, fact.column, fact.definition) for fact in facts.measures],
            "table_versions": dict(self.table_versions),
            "timings": dict(self.timings),
            "n_rows": dict(self.n_rows),
            "error": astuple(self.error) if self.error else None,
            "failed_checks": list(self.failed_checks),
        }


@dataclass(frozen=True)
class State:
    """Where the journal stands: the newest commit, and the runs that announced a change and did not finish it."""

    last_recorded: datetime
    versions: dict[str, int]
    pending: tuple[Row, ...]

    @property
    def pending_publishes(self) -> list[Row]:
        """Intents of runs that were about to publish."""
        return [intent for intent in self.pending if intent["status"] == PUBLISHING]

    @property
    def pending_deletions(self) -> list[Row]:
        """Intents of maintenance, one a night."""
        return [intent for intent in self.pending if intent["status"] == MAINTAINING]


def record(
    spark: SparkSession,
    storage: Storage,
    event: RunEvent,
    *,
    after: datetime = _EPOCH,
    held: Sequence[Lock] = (),
) -> datetime:
    """Append an event and return its time: later than ``after``, even if the clock of this machine is behind.

    Nothing is appended unless the locks ``held`` are, at the time of the commit.
    """
    recorded_at = _now(after)
    append(spark, storage, event.values(recorded_at), held=held)
    return recorded_at


@dataclass(frozen=True)
class Outcome:
    """How the publish of a run that did not complete it ended."""

    status: str
    reason: str
    table_versions: Mapping[str, int]


def record_outcome(  # noqa: PLR0913 - options by keyword
    spark: SparkSession,
    storage: Storage,
    intent: Row,
    outcome: Outcome,
    *,
    after: datetime,
    held: Sequence[Lock] = (),
) -> datetime:
    """Append the outcome of a recovered run: the row of its intent with what became of it; return the time."""
    values = {
        **intent.asDict(),
        "status": outcome.status,
        "reason": "; ".join(filter(None, (intent["reason"], outcome.reason))),
        "table_versions": dict(outcome.table_versions),
    }
    return record_all(spark, storage, [values], after=after, held=held)


def record_death(spark: SparkSession, storage: Storage, run_id: str, *, found_by: str, holder: str) -> None:
    """Record FAILED for a run that ended without a word; not where it had more to say than that it is RUNNING.

    Parameters
    ----------
    run_id : str
        Whose lock was taken over: it is not at work any more.
    found_by : str
        Who took it over.
    holder : str
        What the lock said of its process.
    """
    events = tables.read(spark, storage, schemas.RUNS.name).where(F.col(C.RUN_ID) == F.lit(run_id)).collect()
    if [event["status"] for event in events] != [RUNNING]:  # published, failed, or to be rolled forward
        return
    reason = f"died: its process was gone, or silent for too long, when {found_by} took over"
    values = {
        **events[0].asDict(),
        "status": FAILED,
        "reason": reason,
        "error": astuple(Failure(UNKNOWN_STAGE, DIED, f"{holder} ended without a word")),
    }
    record_all(spark, storage, [values], after=_EPOCH)


def record_all(
    spark: SparkSession,
    storage: Storage,
    events: Iterable[Mapping[str, Any]],
    *,
    after: datetime,
    held: Sequence[Lock] = (),
) -> datetime:
    """Append events in one commit, all of one time, which is later than ``after`` and is returned."""
    recorded_at = _now(after)
    append(spark, storage, *({**values, "recorded_at": recorded_at} for values in events), held=held)
    return recorded_at


def append(spark: SparkSession, storage: Storage, *events: Mapping[str, Any], held: Sequence[Lock] = ()) -> None:
    """Append rows to ``runs`` in one commit, and find that commit in the log.

    Whoever was suspended while it waited for its turn may have lost the locks ``held`` meanwhile; then it appends
    nothing.
    """
    table, run_id = schemas.RUNS.name, str(events[0][C.RUN_ID])
    rows = [tuple(values[name] for name in schemas.RUNS.field_names()) for values in events]
    frame = spark.createDataFrame(rows, struct_type(schemas.RUNS))
    with turn_for_runs(storage, run_id):
        for lock in held:
            lock.assert_held()
        before = delta_log.latest_version(storage, table)
        frame.coalesce(1).writeTo(tables.identifier(storage, table)).option("userMetadata", run_id).append()
        if delta_log.find_commit(storage, table, tag=run_id, after=before) is None:
            raise lost(table, run_id, before)


def state(spark: SparkSession, storage: Storage) -> State:
    """Read where the journal stands; the caller holds the publish lock."""
    runs = tables.read(spark, storage, schemas.RUNS.name)
    statuses = (*INTENTS, *COMMITS)
    slim = runs.where(F.col("status").isin(*statuses)).select(
        C.RUN_ID, "status", "table_versions", F.unix_micros("recorded_at").alias("_micros")
    )
    rows = sorted(slim.collect(), key=lambda row: row["_micros"])
    commits = [row for row in rows if row["status"] in COMMITS]
    done = {row[C.RUN_ID] for row in commits}
    pending = [row[C.RUN_ID] for row in rows if row[C.RUN_ID] not in done]
    return State(
        last_recorded=_EPOCH + timedelta(microseconds=rows[-1]["_micros"] if rows else 0),
        versions=dict(commits[-1]["table_versions"]) if commits else {},
        pending=_intents(runs, pending),
    )


def unended(spark: SparkSession, storage: Storage) -> dict[str, list[str]]:
    """List the runs of which nothing is known but that they began, by the slug of their night."""
    events = tables.read(spark, storage, schemas.RUNS.name).groupBy(*C.RUN_KEY)
    silent = (
        events.agg(F.count_if(F.col("status") != F.lit(RUNNING)).alias("_n_ends"))
        .where(F.col("_n_ends") == 0)
        .collect()
    )
    found: dict[str, list[str]] = {}
    for row in silent:
        found.setdefault(Night(row[C.EVALUATION], row[C.EVALUATION_DATE]).slug, []).append(row[C.RUN_ID])
    return found


def newest_date(spark: SparkSession, storage: Storage, evaluation: str | None) -> date | None:
    """Newest published evaluation date, of one evaluation or of all; None where none was published."""
    published = tables.read(spark, storage, schemas.RUNS.name).where(F.col("status") == PUBLISHED)
    if evaluation is not None:
        published = published.where(F.col(C.EVALUATION) == F.lit(evaluation))
    newest = published.agg(F.max(C.EVALUATION_DATE)).head()
    return newest[0] if newest else None


def _intents(runs: DataFrame, run_ids: list[str]) -> tuple[Row, ...]:
    if not run_ids:  # nearly always: one job less
        return ()
    intents = runs.where(F.col("status").isin(*INTENTS) & F.col(C.RUN_ID).isin(*run_ids))
    return tuple(intents.orderBy("recorded_at").collect())


def _now(after: datetime) -> datetime:
    return max(datetime.now(timezone.utc), after + timedelta(microseconds=1))
