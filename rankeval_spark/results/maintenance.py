"""Maintenance of a results root at any time: next to runs, and after a crash at any point.

Each step takes the publish lock for itself, finishes what another run left unfinished, and publishes the table versions
that it made with a MAINTAINED row, so that no publish waits for more than one step.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas, wording
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import journal, staging
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.publish import finish_deletions, recover
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.result_tables import RowChange
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.staging import discard_run

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.results.result_tables import ResultTables
    from rankeval_spark.results.results_store import ResultsStore

ALL: Final = (*(schema.name for schema in schemas.PUBLISHED), schemas.RUNS.name)
"""Tables that can be compacted and cleaned; ``runs``, to which each step adds a row, comes last."""

RETENTION: Final = "delta.deletedFileRetentionDuration"
MIN_RETENTION: Final = timedelta(days=7)
"""Shortest retention under which files are deleted: a reader may have pinned a version a week ago."""

NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)  # tables whose texts can name a user
WITHOUT_USERS: Final = (schemas.METRICS.name, "items")  # inputs whose checks name other things than users, as BANDS
_BETWEEN_KEYS: Final = re.compile(r"[\s;,]+", re.ASCII)
REMOVED: Final = "removed: it named a user who was erased"  # replacement of an error message

_DELTA_DEFAULT: Final = "interval 1 week"
_PART: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Staged:
    """Runs whose staged files were removed, and those that are alive."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class DeletedNights:
    """Nights whose rows of single users were deleted."""

    before: date | None  # the first date that is kept; None if nothing was ever published
    nights: tuple[NightKey, ...]


@dataclass(frozen=True)
class Compacted:
    """Small files that became larger ones."""

    n_before: int
    n_after: int


class Maintenance:
    """Steps of maintenance of one root; made by :meth:`ResultsStore.maintenance`."""

    def __init__(self, store: ResultsStore, code_version: str) -> None:
        self._store, self._storage = store, store.storage
        self._code_version = code_version  # written into `runs`
        self._id = f"maintain-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"

    @contextmanager
    def _turn(self) -> Iterator[tuple[ResultTables, journal.JournalState]]:
        """Lock the tables for one step, in which nothing that another run announced is pending."""
        with self._store.publish_lock(self._id) as tables:
            yield tables, recover(tables)

    def give_up_events(self) -> list[str]:
        """Remove damaged files from ``runs``, which stop all writing; return the damage of each."""
        with self._store.publish_lock(self._id) as tables, tables.turn_for(schemas.RUNS.name, self._id) as in_turn:
            return in_turn.give_up_damaged_events()

    def remove_staging(self) -> Staged:
        """Remove what dead runs staged and nothing needs; record FAILED for runs that ended silently."""
        with self._turn() as (tables, _):
            removed, kept = list[str](), list[str]()
            runs = journal.unended_runs(tables)
            for slug, run_id in staging.staged_runs(self._storage):
                runs.setdefault(slug, []).append(run_id)
            for slug, run_ids in runs.items():
                if self._store.take_over(slug, run_ids):
                    removed += [run_id for run_id in dict.fromkeys(run_ids) if discard_run(tables, slug, run_id)]
                else:
                    kept += dict.fromkeys(run_ids)
        return Staged(tuple(removed), tuple(kept))

    def keep_days(self, days: int, *, newest: date | None = None, evaluation: str | None = None) -> DeletedNights:
        """Delete rows of users, and quarantined ones, of dates more than ``days`` before the newest published one."""
        with self._turn() as (tables, state):
            published = newest_date(tables, evaluation)
            newest = newest or published
            if published is None or newest is None:
                return DeletedNights(None, ())
            oldest_kept = newest - timedelta(days=days)
            staging.remove_quarantined(self._storage, evaluation=evaluation, before=oldest_kept)
            found: dict[NightKey, dict[str, int]] = {}
            for table in OF_USERS:
                for night in tables.nights_before(table, oldest_kept, evaluation):
                    found.setdefault(night, {})[table] = 0
            nights = sorted(found, key=lambda night: (night.evaluation_date, night.evaluation))
            reason = f"{wording.listed(OF_USERS)} deleted: of dates before {oldest_kept}"
            # Under an id of their own: an intent is pending by its id, and other steps publish.
            run_id, status = f"{self._id}-delete", journal.MAINTAINING
            intents = [self._event(night, run_id, status, reason=reason, n_rows=found[night]) for night in nights]
            if intents:
                announced = journal.record(tables, *intents, after=state.last_recorded)
                failpoint("after_maintaining")
                finish_deletions(tables, intents, after=announced)
        return DeletedNights(oldest_kept, tuple(nights))

    def erase_user(self, user: str, *, evaluation: str | None = None) -> dict[str, int]:
        """Erase a user from every table that names users; return the number of affected rows by table.

        Older versions hold the user until the retention ends and VACUUM has run. Quarantined rows may name anybody: all
        go.
        """
        with self._turn() as (tables, state):
            newest_date(tables, evaluation)
            staging.remove_quarantined(self._storage, evaluation=evaluation)
            n_rows = {}
            for table in OF_USERS:
                n_rows[table] = tables.change_rows(table, without_rows(user), evaluation)
                failpoint("after_erasure")
            for table in NAMED_IN:
                with tables.turn_for(table, self._id) as in_turn:
                    named = without_name(table, user, evaluation)
                    n_rows[table] = in_turn.change_rows(table, named, evaluation)
            self._publish(tables, state, n_rows, "a user was erased")
        return n_rows

    def compact(self, table: str) -> Compacted:
        """Merge small files of each night of a table into larger ones; no row changes."""
        with self._turn() as (tables, state):
            with tables.turn_for(table, self._id) as in_turn:
                merged = in_turn.merge_files(table)
            failpoint("after_compaction")
            self._publish(tables, state, [table], "small files merged")
        return Compacted(*merged)

    def vacuum(self, table: str, *, deletes: bool) -> int:
        """Count, or delete, files that no version within the retention needs; ConfigError if that is too short."""
        with self._turn() as (tables, state):
            require_retention(table, tables.properties(table))
            with tables.turn_for(table, self._id) as in_turn:
                n_files = in_turn.vacuum(table, deletes=deletes)
            if deletes and n_files:
                self._publish(tables, state, [table], "files that no version needs deleted")
        return n_files

    def _publish(
        self, tables: ResultTables, state: journal.JournalState, changed: Collection[str], reason: str
    ) -> None:
        """Record the new versions of some tables, if any, so that readers see them."""
        versions = state.versions | tables.latest_versions(table for table in changed if table in state.versions)
        if versions == state.versions:
            return
        failpoint("before_maintained")
        today = NightKey(journal.MAINTENANCE, datetime.now(UTC).date())
        event = self._event(today, self._id, journal.MAINTAINED, reason=reason, table_versions=versions)
        journal.record(tables, event, after=state.last_recorded)

    def _event(self, night: NightKey, run_id: str, status: str, **columns: Any) -> journal.Event:  # noqa: ANN401 - of a row
        facts = RunRecord(night.evaluation, night.evaluation_date, run_id, code_version=self._code_version)
        return journal.run_event(facts, status, **columns)


def newest_date(tables: ResultTables, evaluation: str | None) -> date | None:
    """Return the newest published date, of one evaluation or all; InputError for an evaluation without one."""
    where = [("status", "=", journal.PUBLISHED)]
    where += [(C.EVALUATION, "=", evaluation)] if evaluation is not None else []
    events = journal.event_table(tables.reader, columns=C.RUN_KEY, where=where)
    newest: date | None = pc.max(events[C.EVALUATION_DATE]).as_py()
    if newest is None and evaluation is not None:
        found = f"{evaluation!r}, which was never published"
        raise InputError(Fault("--evaluation", found, "a published evaluation"))
    return newest


def require_retention(table: str, properties: Mapping[str, str]) -> None:
    """Raise ConfigError if the retention of a table is shorter than MIN_RETENTION, or cannot be read."""
    found = properties.get(RETENTION, _DELTA_DEFAULT)
    length = length_of(found)
    if length is None or length < MIN_RETENTION:
        expected = f"at least {MIN_RETENTION.days} days, such as 'interval 30 days': readers hold older versions"
        where = f"table {table}, property {RETENTION}"
        raise ConfigError(Fault(where, repr(found), expected, "set the property of the table"))


def length_of(retention: str) -> timedelta | None:
    """Parse an interval as Delta writes it; None for anything else.

    >>> length_of("interval 1 week 12 hours")
    datetime.timedelta(days=7, seconds=43200)
    """
    text = retention.strip().lower().removeprefix("interval").strip()
    if not text or _PART.sub("", text).strip():
        return None
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in _PART.findall(text)), timedelta())


def names_user(text: str | None, user: str) -> bool:
    """Return whether a user id is in a text between blanks, commas or semicolons, which separate keys.

    >>> names_user("m ann, m bob", "ann"), names_user("ann;m", "ann"), names_user("m anna", "ann")
    (True, True, False)
    """
    if text is None:
        return False
    key, keys = (f" {_BETWEEN_KEYS.sub(' ', words)} " for words in (user, text))
    return key in keys


def without_rows(user: str) -> RowChange:
    """Return the change that deletes the rows of a user."""

    def affects(batch: pa.RecordBatch) -> BoolVector:
        return to_numpy(pc.equal(batch[C.USER_ID], user).fill_null(False))

    return RowChange([C.USER_ID], affects, lambda batch, own: batch.filter(to_arrow(~own)))


def without_name(table: str, user: str, evaluation: str | None) -> RowChange:
    """Return the change that removes a user from the sample keys of ``checks`` or from error messages of ``runs``."""
    column = "sample_keys" if table == schemas.CHECKS.name else "error"
    columns = [C.EVALUATION, "error"] if column == "error" else ["input", "check", "sample_keys"]

    def names(row: Mapping[str, Any]) -> bool:
        if column == "error":  # a check that fails gives a few keys as examples
            is_own = evaluation in (None, row[C.EVALUATION])  # other tables have files of one evaluation each
            return is_own and row["error"] is not None and names_user(row["error"]["message"], user)
        is_of_users = row["input"] not in WITHOUT_USERS and not row["check"].startswith(BANDS)
        return is_of_users and any(names_user(key, user) for key in row["sample_keys"] or ())

    def affects(batch: pa.RecordBatch) -> BoolVector:
        return np.array([names(row) for row in batch.select(columns).to_pylist()], dtype=np.bool_)

    def apply(batch: pa.RecordBatch, affected: BoolVector) -> pa.RecordBatch:
        values = batch[column].to_pylist()
        for row in np.flatnonzero(affected):
            if column == "error":
                values[row] = {**values[row], "message": REMOVED}
            else:
                values[row] = [key for key in values[row] if not names_user(key, user)]
        place = batch.schema.get_field_index(column)
        field = batch.schema.field(place)
        return batch.set_column(place, field, pa.array(values, field.type))

    return RowChange(columns, affects, apply)
