"""Keeping a results root small and in order, at any time: next to runs, and after a crash at any point.

Each step takes the root's publish lock for itself, finishes what another run left unfinished, and publishes the table
versions it made with a MAINTAINED row, so that no publish waits for more than one of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.results import journal
from rankeval_spark.results.maintenance import retention
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.publishing import quarantine
from rankeval_spark.results.publishing.announced_deletions import finish_deletions
from rankeval_spark.results.publishing.failpoints import failpoint
from rankeval_spark.results.publishing.publish import recover
from rankeval_spark.results.publishing.staging import STAGING_FOLDER
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.storage import data_files, delta_log, local_tables
from rankeval_spark.results.storage.commits import Root, retried, turn_for_runs
from rankeval_spark.results.table_changes.changes import changes_of
from rankeval_spark.results.table_changes.named_users import NAMED_IN

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.results.storage.locks import Lock

ALL: Final = (*(schema.name for schema in schemas.PUBLISHED), schemas.RUNS.name)
"""Tables that can be compacted and cleaned; ``runs``, to which each step adds a row, comes last."""


@dataclass(frozen=True)
class Staged:
    """Staging folders: those that were removed, and those that a live run still needs."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class DeletedNights:
    """Nights whose rows of single users were deleted.

    Attributes
    ----------
    before : date or None
        The first date that is kept; None where nothing was ever published.
    """

    before: date | None
    nights: tuple[NightKey, ...]


@dataclass(frozen=True)
class Compacted:
    """Small files that became larger ones."""

    n_before: int
    n_after: int


class Maintenance:
    """Steps of maintenance of one root; made by :meth:`ResultsStore.maintenance`.

    Parameters
    ----------
    publish_lock : callable
        Gives the root's publish lock for an owner.
    take_over : callable
        Whether no live run holds the night of a slug. The lock of a dead one is taken from it, and it and the runs
        given, which said nothing of their end, are recorded as FAILED.
    code_version : str
        Written into ``runs``.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        *,
        publish_lock: Callable[[str], AbstractContextManager[Lock]],
        take_over: Callable[[str, Sequence[str]], bool],
        code_version: str,
    ) -> None:
        self._spark = spark
        self._storage = storage
        self._publish_lock = publish_lock
        self._take_over = take_over
        self._code_version = code_version
        self._id = f"maintain-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"

    def give_up_events(self) -> list[str]:
        """Remove damaged files from ``runs``, on a disk of this machine; return what is wrong with each.

        Nothing can be published or read while there are any. A night whose publish is no longer recorded has to be run
        again.
        """
        storage, table = self._storage, schemas.RUNS.name
        if not local_tables.are_at(storage):
            return []
        with self._publish_lock(self._id) as lock, turn_for_runs(storage, self._id) as turn:
            return retried(
                storage,
                table,
                lambda seen: data_files.give_up_damaged(storage, table, after=seen),
                held=[lock, turn],
            )

    def remove_staging(self) -> Staged:
        """Remove the staging folders that are not needed: no live run has them, and no announced publish.

        Runs that ended silently, and without a folder, are recorded as FAILED likewise.
        """
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
        """Delete rows of ``lists`` and ``user_metrics`` of dates more than ``days`` before the newest one.

        Quarantined rows of these dates go with them.

        Parameters
        ----------
        days : int
            How many days are kept in addition to the newest date.
        newest : date, optional
            Count from this date; from the newest published one by default.
        evaluation : str, optional
            Only of this evaluation; of all by default.
        """
        with self._turn() as (root, state):
            published = self._newest(evaluation)
            newest = newest or published
            if published is None or newest is None:
                return DeletedNights(None, ())
            oldest_kept = newest - timedelta(days=days)
            quarantine.remove(self._storage, evaluation=evaluation, before=oldest_kept)
            tables_by_night = self._tables_by_night(root, oldest_kept, evaluation)
            if tables_by_night:
                reason = f"{' and '.join(OF_USERS)} deleted: of dates before {oldest_kept}"
                intents = [self._intent(night, names, reason) for night, names in tables_by_night.items()]
                announced = journal.record_all(
                    self._spark, self._storage, intents, after=state.last_recorded, held=[root.lock]
                )
                failpoint("after_maintaining")
                finish_deletions(root, intents, after=announced)
        return DeletedNights(oldest_kept, tuple(tables_by_night))

    def erase_user(self, user: str, *, evaluation: str | None = None) -> dict[str, int]:
        """Erase a user from every table that names users; return how many rows of each did.

        Older versions of the tables hold the user until their files are older than the retention and VACUUM has run.
        Means stay as they are. The id is written nowhere. Quarantined rows go altogether: a row that could not be read
        may name anybody.
        """
        with self._turn() as (root, state):
            self._newest(evaluation)
            quarantine.remove(self._storage, evaluation=evaluation)
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
        """Count the files that no version within the table's retention needs.

        Parameters
        ----------
        deletes : bool
            Whether they are deleted, too.

        Raises
        ------
        ConfigError
            The retention is shorter than what pinned readers need.
        """
        with self._turn() as (root, state):
            changes = changes_of(root)
            retention.require_enough(table, changes.properties(table))
            n_files = changes.unneeded_files(table)
            if deletes and n_files:
                with self._turn_for(table):
                    changes.delete_unneeded(table)
                self._publish(root, state, [table], "files that no version needs deleted")
        return n_files

    @contextmanager
    def _turn(self) -> Iterator[tuple[Root, journal.JournalState]]:
        """Hold the publish lock for one step; nothing that another run announced is pending within it."""
        with self._publish_lock(self._id) as lock:
            root = Root(self._spark, self._storage, lock)
            yield root, recover(root)

    def _turn_for(self, table: str) -> AbstractContextManager[object]:
        """Keep runs from committing to ``runs`` meanwhile; the other tables have no writer but us."""
        return turn_for_runs(self._storage, self._id) if table == schemas.RUNS.name else nullcontext()

    def _publish(self, root: Root, state: journal.JournalState, changed: list[str], reason: str) -> None:
        """Move the pin of readers to the new versions of some tables, if they have any."""
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
        """Newest published date; an evaluation that has none is an error, for it may be misspelt."""
        newest = journal.newest_date(self._spark, self._storage, evaluation)
        if newest is None and evaluation is not None:
            found = f"{evaluation!r}, of which nothing was published"
            raise InputError(Fault("--evaluation", found, "a published evaluation"))
        return newest

    def _tables_by_night(self, root: Root, day: date, evaluation: str | None) -> dict[NightKey, list[str]]:
        """Find the nights of earlier dates that have rows of single users, with the tables that do."""
        found: dict[NightKey, list[str]] = {}
        for table in OF_USERS:
            for night in changes_of(root).nights_before(table, day, evaluation):
                found.setdefault(night, []).append(table)
        return dict(sorted(found.items(), key=lambda item: (item[0].evaluation_date, item[0].evaluation)))

    def _intent(self, night: NightKey, names: list[str], reason: str) -> dict[str, object]:
        # Of an id of its own: what is pending is known by the id, and other steps publish in between.
        facts = self._facts(night, f"{self._id}-delete")
        event = journal.RunEvent(facts, journal.MAINTAINING, reason=reason, n_rows=dict.fromkeys(names, 0))
        return event.values(datetime.now(UTC))

    def _facts(self, night: NightKey, run_id: str) -> RunRecord:
        return RunRecord(night.evaluation, night.evaluation_date, run_id, code_version=self._code_version)
