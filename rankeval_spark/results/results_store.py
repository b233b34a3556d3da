"""The results root for writing: open it, lock the night, start the run."""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from rankeval_spark import schemas
from rankeval_spark.errors import ConfigError, Fault, ResultsBusyError, ResultsError
from rankeval_spark.results import delta_log, journal, local_tables
from rankeval_spark.results.file_store import LocalStorage, Storage, normalise
from rankeval_spark.results.local_writes import open_tables
from rankeval_spark.results.locks import LOCKS_FOLDER, Lock, LockTimes
from rankeval_spark.results.maintenance import Maintenance
from rankeval_spark.results.publish import recover
from rankeval_spark.results.run import Run
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.staging import STAGING_FOLDER
from rankeval_spark.results.stores import open_native, open_storage
from rankeval_spark.results.tables import TABLES, create_table, missing_tables, require_reader_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.table_store import TableStore

PUBLISH_LOCK: Final = "publish"
PUBLISH_WAIT_SECONDS: Final = 600.0  # patience with another run's publish, which takes seconds
MARKER: Final = "_rankeval.json"
LAYOUT: Final = 1  # number of the layout of a results root; raised when older code must not write to it any more


def check_root(root: str) -> None:
    """Raise ConfigError for a root that is not ours or cannot be used, as far as known without Spark."""
    storage = open_native(normalise(root))
    if storage is None:
        return
    try:
        if not _is_ours(storage) and (names := _names(storage)):
            raise _with_other_things(storage, names)
        storage.require_writable()
    except OSError as error:
        raise _unusable_root(storage, error) from error


def refuse_busy_night(root: str, night: NightKey) -> None:
    """Raise ResultsBusyError if a run holds a night of a root on this machine; nothing changes."""
    if storage := open_native(normalise(root)):
        Lock(storage, f"run-{night.slug}", owner="").refuse_holder()


def claim_root(storage: Storage, *, create: bool) -> None:
    """Check that the root is ours; with ``create`` an empty or missing folder becomes ours, and never another."""
    try:
        if _is_ours(storage):
            return
        names = _names(storage)
        if not names and not create:
            raise _refused(storage, ", where there are no results", "the root of an earlier run")
        if not names:
            storage.create(MARKER, json.dumps({"product": "rankeval-spark", "layout": LAYOUT}).encode())
        if not _is_ours(storage):  # another process may have made it meanwhile
            raise _with_other_things(storage, names)
    except OSError as error:
        raise _unusable_root(storage, error) from error


def _names(storage: Storage) -> list[str]:
    """Return the names in a root, without a draft of the marker and what a probe of the locks left."""
    names = [name for name in storage.names("") if not name.startswith(f".{MARKER}.")]
    return [] if names == [LOCKS_FOLDER] else names


def _is_ours(storage: Storage) -> bool:
    """Return whether a root has our marker; ConfigError if it is in a newer layout."""
    try:
        # Another process may be writing the marker this moment: an empty one is as good as a new one.
        content = storage.read(MARKER) or b"{}"
    except FileNotFoundError:
        return False
    try:
        layout = int(json.loads(content).get("layout", LAYOUT))
    except (ValueError, TypeError, AttributeError, RecursionError):
        found, expected = f", whose {MARKER} cannot be read", f'{{"layout": {LAYOUT}}} in it'
        raise _refused(storage, found, expected, "write it again, if these are our tables") from None
    if layout > LAYOUT:
        expected = f"layout {LAYOUT}, the newest that this version knows"
        fix = "run the version of rankeval-spark that wrote it, or a newer one"
        raise _refused(storage, f" in layout {layout}", expected, fix)
    return True


def _with_other_things(storage: Storage, names: list[str]) -> ConfigError:
    found = f", a folder that holds other things ({', '.join(names[:3])})"
    expected, fix = "an empty folder or the results of earlier runs", "choose a folder of its own for the results"
    return _refused(storage, found, expected, fix)


def _unusable_root(storage: Storage, error: OSError) -> Exception:
    expected, fix = "a folder that can be read and written", "check its permissions and the free space"
    if isinstance(storage, LocalStorage) and storage.is_mirror:
        if error.errno == errno.EIO:  # no fault of the config
            return error
        expected, fix = "a store that can be read and written", "check address, endpoint, and rights of the credentials"
    return _refused(storage, f" ({error.strerror or error})", expected, fix)


def _refused(storage: Storage, found: str, expected: str, fix: str = "") -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.address!r}{found}", expected, fix))


class ResultsStore:
    """Published tables under one results root, for writing."""

    def __init__(self, spark: SparkSession, storage: Storage, *, times: LockTimes | None = None) -> None:
        self.storage = storage
        self.tables = open_tables(spark, storage)
        self._times = times or LockTimes()
        self._run_locks: dict[NightKey, Lock] = {}

    @classmethod
    def open(
        cls,
        spark: SparkSession,  # session with Delta
        root: str,  # local path or URI of a folder of its own
        *,
        create: bool = True,  # whether an empty or missing folder becomes a results root; otherwise it is an error
        one_run_per_root: bool = False,  # the scheduler promises that no two runs use the root at once
        times: LockTimes | None = None,  # heartbeat and patience of the locks
    ) -> ResultsStore:
        """Open a results root, check that it is ours and create what it lacks."""
        storage = open_storage(spark, root, one_run_per_root=one_run_per_root)
        claim_root(storage, create=create)
        store = cls(spark, storage, times=times)
        if local_tables.are_at(storage) and not storage.is_mirror:  # a store writes a file whole or not at all
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
    def publish_lock(self, owner: str) -> Iterator[TableStore]:
        """Lock the tables of the root for one writer, a publish or maintenance, and yield them.

        An earlier holder that may wake up is fenced off: it cannot commit any more. If that fails, the lock stays as
        after a crash, so that the next holder does it.
        """
        with self._lock(PUBLISH_LOCK, owner, PUBLISH_WAIT_SECONDS) as lock:
            if lock.may_return:
                try:
                    self.tables.fence(owner)
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
            raise _unusable_root(self.storage, error) from error
        try:
            yield lock
        finally:
            lock.release()

    def start(self, facts: RunRecord, *, publishing: Collection[str] = ()) -> Run:
        """Record that a run starts, under its run lock; runs ``publishing`` in this process finish that themselves."""
        lock = self._run_locks.get(facts.night)
        if lock is None:
            raise ResultsError(Fault(f"run {facts.run_id}", "no run lock", f"to be inside run_lock of {facts.night}"))
        self._update_runs(facts.run_id)
        self._record_death(lock, found_by=f"run {facts.run_id}")
        run = Run(self.tables, facts, run_lock=lock, publish_lock=self.publish_lock)
        run.begin()
        try:
            self.finish_pending(facts.run_id, publishing=publishing)
        except (Exception, KeyboardInterrupt) as error:
            run.fail("start", error)
            raise
        return run

    def finish_pending(self, owner: str, *, publishing: Collection[str] = ()) -> None:
        """Finish publishes that were announced and not completed, so that earlier nights are as they will be seen.

        A run that announced a publish has a staging folder, unless that was lost; then the next publish finds out.
        """
        if any(name.rpartition(".")[2] not in publishing for name in self.storage.names(STAGING_FOLDER)):
            with self.publish_lock(owner) as tables:
                recover(tables)

    def maintenance(self, *, code_version: str = "") -> Maintenance:
        """Return the steps of maintenance."""
        self._update_runs("maintenance")
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

    def _update_runs(self, owner: str) -> None:
        """Add the columns of this version to ``runs``; other tables get theirs when they are written."""
        if lacking := self.tables.lacking_columns(schemas.RUNS):
            with self.tables.turn_for(schemas.RUNS.name, owner) as tables:
                tables.add_columns(schemas.RUNS.name, lacking)
