"""Maintenance of a results root at any time: next to runs, and after a crash at any point.

Each step takes the publish lock for itself, finishes what another run left unfinished, and publishes the table versions
that it made with a MAINTAINED row, so that no publish waits for more than one step.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from rankeval_spark import schemas
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import delta_log, journal, local_tables, local_writes, staging
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.locks import Root, retried, turn_for_runs
from rankeval_spark.results.publish import changes_of, finish_deletions, recover
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.staging import STAGING_FOLDER
from rankeval_spark.results.table_changes import NAMED_IN

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rankeval_spark.results.results_store import ResultsStore

ALL: Final = (*(schema.name for schema in schemas.PUBLISHED), schemas.RUNS.name)
"""Tables that can be compacted and cleaned; ``runs``, to which each step adds a row, comes last."""

RETENTION: Final = "delta.deletedFileRetentionDuration"
MIN_RETENTION: Final = timedelta(days=7)
"""Shortest retention under which files are deleted: a reader may have pinned a version a week ago."""

_DELTA_DEFAULT: Final = "interval 1 week"
_PART: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Staged:
    """Staging folders: those that were removed, and those that a live run still needs."""

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
        self._spark, self._storage = store.spark, store.storage
        self._publish_lock, self._take_over = store.publish_lock, store.take_over
        self._code_version = code_version  # written into `runs`
        self._id = f"maintain-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"

    def give_up_events(self) -> list[str]:
        """Remove damaged files from ``runs`` on a local disk, which stop all writing; return the damage of each."""
        storage, table = self._storage, schemas.RUNS.name
        if not local_tables.are_at(storage):
            return []
        give_up = partial(local_writes.give_up_damaged, storage, table)
        with self._publish_lock(self._id) as lock, turn_for_runs(storage, self._id) as turn:
            return retried(storage, table, lambda seen: give_up(after=seen), held=[lock, turn])

    def remove_staging(self) -> Staged:
        """Remove staging folders that nothing needs; record FAILED for runs that ended silently, also without one."""
        with self._turn():
            for slug, run_ids in journal.unended(self._spark, self._storage).items():
                self._take_over(slug, run_ids)
            removed, kept = [], []
            for name in self._storage.names(STAGING_FOLDER):
                # A run has its folder only while it holds its night, and a later run of the night has another one.
                night = name.rpartition(".")[0]
                if night and self._take_over(night, ()):
                    self._storage.remove(f"{STAGING_FOLDER}/{name}")
                    removed.append(name)
                else:
                    kept.append(name)
        return Staged(tuple(removed), tuple(kept))

    def keep_days(self, days: int, *, newest: date | None = None, evaluation: str | None = None) -> DeletedNights:
        """Delete rows of users, and quarantined ones, of dates more than ``days`` before the newest published one."""
        with self._turn() as (root, state):
            published = self._newest(evaluation)
            newest = newest or published
            if published is None or newest is None:
                return DeletedNights(None, ())
            oldest_kept = newest - timedelta(days=days)
            staging.remove_quarantined(self._storage, evaluation=evaluation, before=oldest_kept)
            found: dict[NightKey, list[str]] = {}
            for table in OF_USERS:
                for night in changes_of(root).nights_before(table, oldest_kept, evaluation):
                    found.setdefault(night, []).append(table)
            nights = sorted(found, key=lambda night: (night.evaluation_date, night.evaluation))
            reason = f"{' and '.join(OF_USERS)} deleted: of dates before {oldest_kept}"
            intents = []
            for night in nights:  # under an id of their own: an intent is pending by its id, and other steps publish
                facts, n_rows = self._facts(night, f"{self._id}-delete"), dict.fromkeys(found[night], 0)
                event = journal.RunEvent(facts, journal.MAINTAINING, reason=reason, n_rows=n_rows)
                intents.append(event.values(datetime.now(UTC)))
            if intents:
                after, held = state.last_recorded, [root.lock]
                announced = journal.record_all(self._spark, self._storage, intents, after=after, held=held)
                failpoint("after_maintaining")
                finish_deletions(root, intents, after=announced)
        return DeletedNights(oldest_kept, tuple(nights))

    def erase_user(self, user: str, *, evaluation: str | None = None) -> dict[str, int]:
        """Erase a user from every table that names users; return the number of affected rows by table.

        Older versions hold the user until the retention ends and VACUUM has run. Quarantined rows may name anybody: all
        go.
        """
        with self._turn() as (root, state):
            self._newest(evaluation)
            staging.remove_quarantined(self._storage, evaluation=evaluation)
            changes, n_rows = changes_of(root), {}
            for table in OF_USERS:
                n_rows[table] = changes.delete_user(table, user, evaluation)
                failpoint("after_erasure")
            for table in NAMED_IN:
                with self._turn_for(table):
                    n_rows[table] = changes.forget_user(table, user, evaluation)
            self._publish(root, state, list(n_rows), "a user was erased")
        return n_rows

    def compact(self, table: str) -> Compacted:
        """Merge small files of each night of a table into larger ones; no row changes."""
        with self._turn() as (root, state):
            with self._turn_for(table):
                merged = changes_of(root).merge_files(table)
            failpoint("after_compaction")
            self._publish(root, state, [table], "small files merged")
        return Compacted(*merged)

    def vacuum(self, table: str, *, deletes: bool) -> int:
        """Count, or delete, files that no version within the retention needs; ConfigError if that is too short."""
        with self._turn() as (root, state):
            changes = changes_of(root)
            require_retention(table, changes.properties(table))
            n_files = changes.unneeded_files(table)
            if deletes and n_files:
                with self._turn_for(table):
                    changes.delete_unneeded(table)
                self._publish(root, state, [table], "files that no version needs deleted")
        return n_files

    @contextmanager
    def _turn(self) -> Iterator[tuple[Root, journal.JournalState]]:
        """Lock the tables for one step, in which nothing that another run announced is pending."""
        with self._publish_lock(self._id) as lock:
            root = Root(self._spark, self._storage, lock)
            yield root, recover(root)

    def _turn_for(self, table: str) -> AbstractContextManager[object]:
        """Lock ``runs`` against commits of runs; the other tables have no other writer."""
        return turn_for_runs(self._storage, self._id) if table == schemas.RUNS.name else nullcontext()

    def _publish(self, root: Root, state: journal.JournalState, changed: list[str], reason: str) -> None:
        """Record the new versions of some tables, if any, so that readers see them."""
        latest = {table: delta_log.latest_version(self._storage, table) for table in changed if table in state.versions}
        versions = {**state.versions, **latest}
        if versions == state.versions:
            return
        failpoint("before_maintained")
        today = NightKey(journal.MAINTENANCE, datetime.now(UTC).date())
        facts = self._facts(today, self._id)
        event = journal.RunEvent(facts, journal.MAINTAINED, reason=reason, table_versions=versions)
        journal.record(self._spark, self._storage, event, after=state.last_recorded, held=[root.lock])

    def _newest(self, evaluation: str | None) -> date | None:
        """Return the newest published date; InputError for an evaluation without one."""
        newest = journal.newest_date(self._spark, self._storage, evaluation)
        if newest is None and evaluation is not None:
            found = f"{evaluation!r}, of which nothing was published"
            raise InputError(Fault("--evaluation", found, "a published evaluation"))
        return newest

    def _facts(self, night: NightKey, run_id: str) -> RunRecord:
        return RunRecord(night.evaluation, night.evaluation_date, run_id, code_version=self._code_version)


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
