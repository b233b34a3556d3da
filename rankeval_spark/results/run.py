"""One run, from its first row in ``runs`` to its last: staging, audit and publish."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rankeval_spark import schemas
from rankeval_spark.errors import (
    ChecksFailedError,
    Fault,
    ResultsError,
    exit_code_of,
    first_line,
    note,
    without_secrets,
)
from rankeval_spark.results import audit, journal
from rankeval_spark.results.audit import StagedRows
from rankeval_spark.results.data_files import create_table
from rankeval_spark.results.failpoints import failpoint
from rankeval_spark.results.publish import publish
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.roots import storage_at
from rankeval_spark.results.staging import Staging, quarantine_path, replace_quarantined
from rankeval_spark.results.tables import arrow_schema, conform_rows
from rankeval_spark.wording import FAILED_IN

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from rankeval_spark.results.data_files import FileWriter
    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.run_record import InputRecord, RunRecord
    from rankeval_spark.schemas import Field

MAX_MESSAGE: Final = 2000  # characters of an error message that are kept in `runs`


class StagedRun(ABC):
    """A run for the code that computes its tables."""

    def __init__(self, tables: ResultTables, facts: RunRecord) -> None:
        self.facts = facts
        self.n_rows: dict[str, int] = {}  # staged rows by published table
        self.inputs: tuple[InputRecord, ...] = ()  # read inputs; empty before the end
        self._tables = tables
        self.staging = Staging(tables.storage, facts.night, facts.run_id)
        self.rows: dict[str, pa.Table] = {}  # staged rows of small tables
        self._is_announced = False
        self._is_published = False

    def stage(self, table: str, rows: pa.Table) -> None:
        """Stage a table as it will be published, in one write.

        ``rows`` have the declared columns in any order, without those of :data:`rankeval_spark.columns.RUN_KEY`, which
        are added; ``user_metrics`` also has the column of every measure of the run. A missing, surplus or mistyped
        column is an error. Few rows of other tables than those of users are kept here, too.
        """
        conformed = conform_rows(rows, self._fields(table), self.facts, where=f"table {table}")
        written = self.staging.writer(table)
        written.add(conformed)
        if table not in OF_USERS:
            self.rows[table] = conformed
        self.n_rows[table] = self.staging.add(table, written, conformed.schema)

    @contextmanager
    def staged_in_parts(self, table: str) -> Iterator[FileWriter]:
        """Yield the writer of a table to be staged, to which any thread adds parts, or workers of Spark.

        Parts are as :meth:`stage` takes them. All are there at the end of the block, or none if it fails.
        """
        fields = self._fields(table)
        conform = partial(conform_rows, fields=fields, facts=self.facts, where=f"table {table}")
        written = self.staging.writer(table, conform)
        yield written
        self.n_rows[table] = self.staging.add(table, written, arrow_schema(fields))

    def _fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a staged table."""
        published = {schema.name: schema.fields for schema in schemas.PUBLISHED}
        if table not in published:
            raise ResultsError(Fault("staging", repr(table), f"one of {', '.join(published)}"))
        return (*published[table], *(self.facts.measure_fields() if table == schemas.USER_METRICS.name else ()))

    def discard(self) -> None:
        """Remove what was staged so far."""
        self.staging.discard()
        self.rows.clear()
        self.n_rows.clear()

    @property
    def quarantine_path(self) -> str:
        """Path of the input rows that the night could not use."""
        return quarantine_path(self._tables.storage, self.facts.night)

    def audit(self) -> None:
        """Check what was staged; ChecksFailedError names all faults."""
        failpoint("after_staging")
        staged = {
            table: StagedRows([self.rows[table]]) if table in self.rows else self.staging.staged_rows(table)
            for table in self.n_rows
        }
        checks, metrics = (self.rows.get(schema.name) for schema in (schemas.CHECKS, schemas.METRICS))
        faults = [] if checks is None else audit.failed_checks(checks)
        faults += audit.refused_rows(staged, schemas.PUBLISHED)
        if schemas.USER_METRICS.name in staged:
            faults += audit.user_metrics(staged[schemas.USER_METRICS.name], metrics, self.facts.measures)
        if metrics is not None:
            faults += audit.exposures(metrics, self.facts.measures)
        if faults:
            raise ChecksFailedError(*faults)

    def publish(
        self,
        *,
        inputs: Sequence[InputRecord] = (),
        timings: Mapping[str, float] = MappingProxyType({}),
        reason: str | None = None,
    ) -> dict[str, int]:
        """Publish the staged tables; return the version of each. Tables that were not staged lose the night's rows."""
        self.inputs = tuple(inputs)
        of_run = {"reason": reason, "timings": dict(timings), "n_rows": dict(self.n_rows)}
        return self._publish(journal.run_event(self.facts, journal.PUBLISHING, inputs=inputs, **of_run))

    def fail(
        self,
        stage: str,
        error: BaseException,
        *,
        failed_checks: Sequence[str] = (),
        inputs: Sequence[InputRecord] = (),
        timings: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Record that the run failed, and remove its staging unless an announced publish may need it."""
        if self._is_published:
            note(error, f"run {self.facts.run_id} was published before that")
            return
        try:
            if not self._is_announced:
                with suppress(Exception):  # first: on a full disk, it makes room for the row
                    self.staging.discard()
            message = without_secrets(str(error))[:MAX_MESSAGE]
            event = journal.run_event(
                self.facts,
                journal.FAILED,
                inputs=inputs,
                reason=f"{FAILED_IN}{stage}, code {exit_code_of(error)}",
                error={"stage": stage, "type": type(error).__name__, "message": message},
                failed_checks=list(failed_checks),
                timings=dict(timings),
            )
            self._record(event)
        except Exception as failure:
            note(error, f"run {self.facts.run_id} could not be recorded as FAILED: {first_line(str(failure))}")

    @abstractmethod
    def quarantine(self, write: Callable[[FileWriter], None] | None) -> None:
        """Replace the unusable input rows of the night's last run, at once: they may be why the run fails.

        ``write`` adds these rows to a table; None if there are none.
        """

    @abstractmethod
    def _publish(self, event: journal.Event) -> dict[str, int]:
        """Publish the staged tables; return the version of each."""

    @abstractmethod
    def _record(self, event: journal.Event) -> None:
        """Append an event to ``runs``."""


class Rehearsal(StagedRun):
    """A run that is computed, audited and never published: no results root is touched."""

    def __init__(self, folder: str, facts: RunRecord) -> None:
        """Stage below ``folder`` of the caller, where no other run does, so that no lock is needed."""
        self.root = f"{folder.rstrip('/')}/rehearsal-{facts.run_id}"
        super().__init__(ResultTables(storage_at(self.root)), facts)

    def quarantine(self, write: Callable[[FileWriter], None] | None) -> None:
        """Write no row: the original run wrote them."""

    def _publish(self, event: journal.Event) -> dict[str, int]:  # noqa: ARG002 - nothing is recorded
        for table in self.n_rows:
            schema, files = arrow_schema(self._fields(table)), self.staging.files(table)
            create_table(self._tables.storage, table, schema, files)
        return {}

    def remove(self) -> None:
        """Remove what was computed."""
        for table in self.n_rows:
            self._tables.storage.remove(table)
        with suppress(OSError):
            Path(self._tables.storage.root).rmdir()

    def _record(self, event: journal.Event) -> None:
        """Record nothing; an error reaches the caller."""


class Run(StagedRun):
    """A run that is recorded from its start to its end; made by :meth:`ResultsStore.start`."""

    def __init__(
        self,
        tables: ResultTables,
        facts: RunRecord,
        *,
        run_lock: Lock,
        publish_lock: Callable[[str], AbstractContextManager[ResultTables]],
    ) -> None:
        super().__init__(tables, facts)
        self._run_lock = run_lock
        self._publish_lock = publish_lock

    def begin(self) -> None:
        """Record the start of the run."""
        try:
            self._record(journal.run_event(self.facts, journal.RUNNING))
            failpoint("before_staging")
        except (Exception, KeyboardInterrupt) as error:
            self.fail("start", error)
            raise

    def quarantine(self, write: Callable[[FileWriter], None] | None) -> None:
        self._run_lock.assert_held()
        replace_quarantined(self._tables.storage, self.facts.night, write)

    def _record(self, event: journal.Event) -> None:
        journal.record(self._tables, event)

    def _publish(self, event: journal.Event) -> dict[str, int]:
        self._run_lock.assert_held()
        with self._publish_lock(self.facts.run_id) as tables:
            versions = publish(tables, event, self.staging, on_intent=self._announce)
            self._is_published = True
        with suppress(Exception):  # the run is published; what stays is removed by the next run of the night
            self.staging.close()
        return versions

    def _announce(self) -> None:
        """Check that the run still holds its lock and its files, and list them.

        While it waited, it may have been taken for dead.
        """
        self._run_lock.assert_held()
        if lost := self.staging.lacking(self.n_rows):
            found = f"no {' and no '.join(lost)} in its staging"
            raise ResultsError(Fault(f"run {self.facts.run_id}", found, "what it staged", "run the date again"))
        self.staging.save()
        failpoint("after_list")
        self._is_announced = True
