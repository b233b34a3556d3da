"""The results root for writing: open it, lock the night, start the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from rankeval_spark.errors import Fault, ResultsBusyError, ResultsError
from rankeval_spark.results import delta_log, journal
from rankeval_spark.results.locks import Lock, LockTimes
from rankeval_spark.results.maintenance import Maintenance
from rankeval_spark.results.publish import recover
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.roots import claim_root, storage_at, unusable_root
from rankeval_spark.results.run import Run
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.staging import discard_run, staged_runs
from rankeval_spark.results.tables import TABLES, create_table, missing_tables, require_reader_version

if TYPE_CHECKING:
    from rankeval_spark.results.storage import Storage

PUBLISH_LOCK: Final = "publish"
PUBLISH_WAIT_SECONDS: Final = 600.0  # patience with another run's publish, which takes seconds


def refuse_busy_night(root: str, night: NightKey) -> None:
    """Raise ResultsBusyError if a run holds a night of a root; nothing changes."""
    Lock(storage_at(root), f"run-{night.slug}", owner="").refuse_holder()


class ResultsStore:
    """Published tables under one results root, for writing."""

    def __init__(self, storage: Storage, *, times: LockTimes | None = None) -> None:
        self.storage = storage
        self.tables = ResultTables(storage)
        self._times = times or LockTimes()
        self._run_locks: dict[NightKey, Lock] = {}

    @classmethod
    def open(
        cls,
        root: str,  # local path or URI of a folder of its own
        *,
        create: bool = True,  # whether an empty or missing folder becomes a results root; otherwise it is an error
        one_run_per_root: bool = False,  # the scheduler promises that no two runs use the root at once
        times: LockTimes | None = None,  # heartbeat and patience of the locks
    ) -> ResultsStore:
        """Open a results root, check that it is ours and create what it lacks."""
        storage = storage_at(root)
        storage.prove_locks(one_run_per_root=one_run_per_root)
        claim_root(storage, create=create)
        store = cls(storage, times=times)
        if not storage.is_mirror:  # a store writes a file whole or not at all
            for schema in TABLES:
                delta_log.repair(storage, schema.name)
        if missing_tables(storage):
            with store.publish_lock("set-up"):  # two first runs at once: the second finds the tables made
                for schema in missing_tables(storage):
                    create_table(storage, schema)
                    require_reader_version(storage, schema.name)
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
        """Lock one evaluation and date for one run; ResultsBusyError at once or after ``wait_seconds``."""
        night = NightKey(evaluation, evaluation_date)
        with self._lock(f"run-{night.slug}", run_id, wait_seconds if on_busy == "wait" else 0.0) as lock:
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
    def publish_lock(self, owner: str) -> Iterator[ResultTables]:
        """Lock the tables of the root for one writer, a publish or maintenance, and yield them.

        An earlier holder that may wake up is fenced off: it cannot commit any more. If that fails, the lock stays as
        after a crash, so that the next holder does it.
        """
        with self._lock(PUBLISH_LOCK, owner, PUBLISH_WAIT_SECONDS) as lock:
            if lock.may_return:
                try:
                    self.tables.holding(lock).fence(owner)
                except BaseException:
                    lock.abandon()
                    raise
            yield self.tables.holding(lock)

    @contextmanager
    def _lock(self, name: str, owner: str, wait_seconds: float) -> Iterator[Lock]:
        lock = Lock(self.storage, name, owner=owner, wait_seconds=wait_seconds, times=self._times)
        try:
            lock.acquire()
        except OSError as error:
            raise unusable_root(self.storage, error) from error
        try:
            yield lock
        finally:
            lock.release()

    def start(self, facts: RunRecord, *, publishing: Collection[str] = ()) -> Run:
        """Record that a run starts, under its run lock; runs ``publishing`` in this process finish that themselves."""
        lock = self._run_locks.get(facts.night)
        if lock is None:
            raise ResultsError(Fault(f"run {facts.run_id}", "no run lock", f"to be inside run_lock of {facts.night}"))
        self._record_death(lock, found_by=f"run {facts.run_id}")
        run = Run(self.tables, facts, run_lock=lock, publish_lock=self.publish_lock)
        run.begin()
        try:
            self.finish_pending(facts.run_id, publishing=publishing, night=facts.night)
        except (Exception, KeyboardInterrupt) as error:
            run.fail("start", error)
            raise
        return run

    def finish_pending(self, owner: str, *, publishing: Collection[str] = (), night: NightKey | None = None) -> None:
        """Finish publishes that were announced and not completed, so that earlier nights are as they will be seen.

        A run that announced a publish has a list of files, unless that was lost; then the next publish finds out.
        ``night`` is one that the owner holds: what dead runs of it staged and did not announce is removed.
        """
        listed = [run for run in staged_runs(self.storage) if run[1] not in publishing]
        dead = [run for run in listed if night is not None and run[0] == night.slug]
        if night is not None and (holder := self._run_locks[night].taken_from) is not None:
            dead.append((night.slug, holder.owner))
        if listed or dead:
            with self.publish_lock(owner) as tables:
                recover(tables)
                for slug, run_id in dict.fromkeys(dead):
                    discard_run(tables, slug, run_id)

    def maintenance(self, *, code_version: str = "") -> Maintenance:
        """Return the steps of maintenance."""
        return Maintenance(self, code_version)

    def take_over(self, slug: str, silent: Sequence[str]) -> bool:
        """Lock a night for a moment, and record dead runs, and the ``silent`` ones; False if a live run holds it."""
        found_by = "rankeval maintain"
        try:
            with self._lock(f"run-{slug}", "maintenance", 0.0) as lock:
                self._record_death(lock, found_by=found_by)
                for run_id in silent:
                    journal.record_death(self.tables, run_id, found_by=found_by, holder=f"run {run_id}")
        except ResultsBusyError:
            return False
        return True

    def _record_death(self, lock: Lock, *, found_by: str) -> None:
        """Record the run from which a lock was taken as dead, if any."""
        if (dead := lock.taken_from) is not None:
            journal.record_death(self.tables, dead.owner, found_by=found_by, holder=str(dead))
