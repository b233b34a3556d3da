"""The results root for writing: open it, lock the night, start the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsBusyError, ResultsError
from rankeval_spark.results import journal
from rankeval_spark.results.maintenance.maintenance import Maintenance
from rankeval_spark.results.publishing.publish import recover
from rankeval_spark.results.publishing.run import Run
from rankeval_spark.results.publishing.staging import STAGING_FOLDER
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.storage import delta_log, local_tables, roots, tables
from rankeval_spark.results.storage.commits import Root, fence, turn_for_runs
from rankeval_spark.results.storage.file_store import (
    LocalStorage,
    Storage,
    normalise,
    open_storage,
    require_locks,
    scheme_of,
)
from rankeval_spark.results.storage.locks import Lock, LockTimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PUBLISH_LOCK: Final = "publish"
PUBLISH_WAIT_SECONDS: Final = 600.0
"""Patience with another run's publish, which takes seconds."""


def check_root(root: str, *, one_run_per_root: bool) -> None:
    """Refuse a root that :meth:`ResultsStore.open` would refuse, as far as this is known without Spark; make nothing.

    Raises
    ------
    ConfigError
        It is not ours, or cannot be used.
    """
    require_locks(root, one_run_per_root=one_run_per_root)
    location = normalise(root)
    if not scheme_of(location):
        roots.check_local(LocalStorage(location))


class ResultsStore:
    """Published tables under one results root, for writing."""

    def __init__(self, spark: SparkSession, storage: Storage, *, times: LockTimes | None = None) -> None:
        self._spark = spark
        self._storage = storage
        self._times = times or LockTimes()
        self._run_locks: dict[NightKey, Lock] = {}

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        root: str,
        *,
        create: bool = True,
        one_run_per_root: bool = False,
        times: LockTimes | None = None,
    ) -> ResultsStore:
        """Open a results root, check that it is ours and make what it lacks.

        Parameters
        ----------
        spark : SparkSession
            Session with Delta.
        root : str
            Local path or URI of a folder of its own.
        create : bool
            Whether an empty or missing folder becomes a results root; otherwise it is an error.
        one_run_per_root : bool
            The scheduler promises that no two runs use the root at once; for stores on which no lock can be taken.
        times : LockTimes, optional
            Heartbeat and patience of the locks.
        """
        storage = open_storage(spark, root, one_run_per_root=one_run_per_root)
        roots.claim(storage, create=create)
        store = cls(spark, storage, times=times)
        store._create_tables()
        return store

    @contextmanager
    def run_lock(
        self,
        evaluation: str,
        evaluation_date: date,
        run_id: str,
        *,
        on_busy: Literal["fail", "wait"] = "fail",
        wait_seconds: float = 600.0,
    ) -> Iterator[Lock]:
        """Keep one evaluation and date to one run within the block.

        :class:`ResultsBusyError` says who holds it, at once or after ``wait_seconds``.
        """
        night = NightKey(evaluation, evaluation_date)
        patience = wait_seconds if on_busy == "wait" else 0.0
        with self._lock(f"run-{night.slug}", run_id, patience) as lock:
            self._run_locks[night] = lock
            try:
                yield lock
            except Exception as error:
                if lock.is_lost():  # whoever took it also removed what this run had staged
                    raise lock.busy() from error
                raise
            finally:
                del self._run_locks[night]

    @contextmanager
    def publish_lock(self, owner: str) -> Iterator[Lock]:
        """Keep the tables of the root to one writer: a publish or maintenance.

        A holder before that may wake up cannot commit any more. Where that fails, the lock stays as it would after a
        crash, so that whoever comes next does it.
        """
        with self._lock(PUBLISH_LOCK, owner, PUBLISH_WAIT_SECONDS) as lock:
            if lock.may_return:
                try:
                    fence(self._storage, owner)
                except BaseException:
                    lock.abandon()
                    raise
            yield lock

    def start(self, facts: RunRecord, *, publishing: Collection[str] = ()) -> Run:
        """Record that a run has started; the caller is inside :meth:`run_lock` of its evaluation and date.

        Parameters
        ----------
        publishing : collection of str
            Runs that this process publishes meanwhile, by their ids: they finish that themselves.
        """
        lock = self._run_locks.get(facts.night)
        if lock is None:
            raise ResultsError(Fault(f"run {facts.run_id}", "no run lock", f"to be inside run_lock of {facts.night}"))
        self._update_runs(facts.run_id)
        self._record_death(lock, found_by=f"run {facts.run_id}")
        run = Run(self._spark, self._storage, facts, run_lock=lock, publish_lock=self.publish_lock)
        run.begin()
        try:
            self.finish_pending(facts.run_id, publishing=publishing)
        except (Exception, KeyboardInterrupt) as error:
            run.fail("start", error)
            raise
        return run

    def finish_pending(self, owner: str, *, publishing: Collection[str] = ()) -> None:
        """Finish what runs announced and did not complete, so that the nights before are those that will be seen.

        Whoever announced a publish has a staging folder, unless that was lost; the next publish finds out.
        """
        if any(name.rpartition(".")[2] not in publishing for name in self._storage.names(STAGING_FOLDER)):
            with self.publish_lock(owner) as lock:
                recover(Root(self._spark, self._storage, lock))

    def maintenance(self, *, code_version: str = "") -> Maintenance:
        """Give the steps that keep the root small and in order."""
        self._update_runs("maintenance")
        return Maintenance(
            self._spark,
            self._storage,
            publish_lock=self.publish_lock,
            take_over=self._take_over,
            code_version=code_version,
        )

    def _take_over(self, slug: str, silent: Sequence[str]) -> bool:
        """Take the lock of a night and give it back; False where a live run holds it.

        A run that was only suspended finds that it lost the lock, and publishes nothing. Of the ``silent`` runs of the
        night none is at work then: those that lost their JVM released the lock, but could not say that they failed.
        """
        try:
            with self._lock(f"run-{slug}", "maintenance", 0.0) as lock:
                self._record_death(lock, found_by="rankeval maintain")
                for run_id in silent:
                    journal.record_death(
                        self._spark, self._storage, run_id, found_by="rankeval maintain", holder=f"run {run_id}"
                    )
                return True
        except ResultsBusyError:
            return False

    def _record_death(self, lock: Lock, *, found_by: str) -> None:
        """Record what became of the run whose lock was taken over, if it did not say so itself."""
        if (dead := lock.taken_from) is not None:
            journal.record_death(self._spark, self._storage, dead.owner, found_by=found_by, holder=str(dead))

    @contextmanager
    def _lock(self, name: str, owner: str, wait_seconds: float) -> Iterator[Lock]:
        lock = Lock(self._storage, name, owner=owner, wait_seconds=wait_seconds, times=self._times)
        try:
            lock.acquire()
        except OSError as error:
            raise roots.unusable_root(self._storage, error) from error
        try:
            yield lock
        finally:
            lock.release()

    def _update_runs(self, owner: str) -> None:
        """Give ``runs`` the columns of this version; the other tables get theirs where they are written."""
        if lacking := tables.lacking_columns(self._spark, self._storage, schemas.RUNS):
            with turn_for_runs(self._storage, owner) as turn:
                tables.add_columns(Root(self._spark, self._storage, turn), schemas.RUNS.name, lacking)

    def _create_tables(self) -> None:
        if local_tables.are_at(self._storage):
            for schema in tables.TABLES:
                delta_log.repair(self._storage, schema.name)
        if tables.missing_tables(self._storage):
            with self.publish_lock("set-up"):  # two first runs at once: the second finds the tables made
                for schema in tables.missing_tables(self._storage):
                    tables.create_table(self._storage, schema)
                    tables.require_reader_version(self._storage, schema.name)
