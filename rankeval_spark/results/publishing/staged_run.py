"""What a run keeps in its staging area, and the look at it before anything is published."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import schemas
from rankeval_spark.errors import ChecksFailedError, Fault, ResultsError
from rankeval_spark.results import conformed_rows
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.publishing import audit, quarantine, staging
from rankeval_spark.results.publishing.failpoints import failpoint
from rankeval_spark.results.publishing.staged_rows_arrow import RowsInProcess
from rankeval_spark.results.storage.file_store import open_storage

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from rankeval_spark.results.journal import EventDetails
    from rankeval_spark.results.publishing.staged_rows import StagedRows
    from rankeval_spark.results.run_record import InputRecord, RunRecord
    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.schemas import Field


class StagedRun(ABC):
    """A run as those see it who compute its tables.

    Attributes
    ----------
    n_rows : dict
        Rows staged for each published table.
    """

    def __init__(self, spark: SparkSession, storage: Storage, facts: RunRecord) -> None:
        self.facts = facts
        self.n_rows: dict[str, int] = {}
        self._spark = spark
        self._storage = storage
        self._staging = staging.Staging(spark, storage, facts.night, facts.run_id)
        self._rows: dict[str, pa.Table] = {}

    def stage(self, table: str, rows: DataFrame | pa.Table) -> None:
        """Stage a table as it will be published, in one write.

        Parameters
        ----------
        table : str
            Name of one of :data:`rankeval_spark.schemas.PUBLISHED`.
        rows : DataFrame or pa.Table
            Its declared columns in any order, those of :data:`rankeval_spark.columns.RUN_KEY` left out, which are
            added; ``user_metrics`` also has the column of every measure of the run. A missing, surplus or mistyped
            column is an error. Spark computes and writes a frame of users; other tables are few rows, which are kept
            here, too.
        """
        fields, where = self._fields(table), f"table {table}"
        if table in OF_USERS and not isinstance(rows, pa.Table):
            from rankeval_spark.results.publishing import writes_on_spark  # noqa: PLC0415 - imports pyspark

            self._staging.write(table, writes_on_spark.conform_frame(rows, fields, self.facts, where=where))
        else:
            given = rows if isinstance(rows, pa.Table) else rows.toArrow()
            conformed = conformed_rows.conform_rows(given, fields, self.facts, where=where)
            self._staging.write(table, conformed)
            if table not in OF_USERS:
                self._rows[table] = conformed
        self.n_rows[table] = self._staging.n_rows(table)

    @contextmanager
    def staged_in_parts(self, table: str) -> Iterator[Callable[[pa.Table], None]]:
        """Stage a table on a disk of this machine in parts, with the function that adds one, from any thread.

        Parts are as :meth:`stage` takes them. All of it is there at the end of the block, and nothing where that fails.
        """
        fields, where = self._fields(table), f"table {table}"
        new = self._staging.new(table, conformed_rows.declared(fields))
        yield lambda rows: new.add(conformed_rows.conform_rows(rows, fields, self.facts, where=where))
        new.commit()
        self.n_rows[table] = self._staging.n_rows(table)

    def discard(self) -> None:
        """Forget what was staged so far: none of it is published."""
        self._staging.remove()
        self._rows.clear()
        self.n_rows.clear()

    def staged(self, table: str) -> DataFrame | None:
        """Return a frame that reads what was staged of a table; None where nothing was."""
        return self.frame(table) if table in self.n_rows else None

    def frame(self, table: str) -> DataFrame:
        """Return a frame that reads a table that was staged."""
        return self._staging.read(table)

    def scan(self, table: str) -> DataFrame | ds.Dataset:
        """Read a table that was staged: as a dataset of Arrow where this process can."""
        return self._staging.scan(table)

    def rows(self, table: str) -> pa.Table | None:
        """Return what was staged of a table of few rows, none of single users; None likewise."""
        return self._rows.get(table)

    def quarantine(self, rows: DataFrame | None) -> None:
        """Keep rows of the inputs that could not be used, instead of those of the night's last run; None: none.

        At once, whatever becomes of the run: most often they are why it fails.
        """
        quarantine.replace(self._storage, self.facts.night, rows)

    @property
    def quarantine_path(self) -> str:
        """Where such rows are kept."""
        return quarantine.quarantine_path(self._storage, self.facts.night)

    def audit(self) -> None:
        """Look at what was staged; :class:`ChecksFailedError` names all that is wrong."""
        failpoint("after_staging")
        staged = {table: self._staged_rows(table) for table in self.n_rows}
        checks, metrics = (self._rows.get(schema.name) for schema in (schemas.CHECKS, schemas.METRICS))
        faults = [] if checks is None else audit.failed_checks(checks)
        faults += audit.refused_rows(staged, schemas.PUBLISHED)
        if schemas.USER_METRICS.name in staged:
            faults += audit.user_metrics(staged[schemas.USER_METRICS.name], metrics, self.facts.measures)
        if metrics is not None:
            faults += audit.exposures(metrics, self.facts.measures)
        if faults:
            raise ChecksFailedError(*faults)

    def _staged_rows(self, table: str) -> StagedRows:
        return RowsInProcess([self._rows[table]]) if table in self._rows else self._staging.staged_rows(table)

    @abstractmethod
    def publish(self, *, reason: str | None = None, **details: Unpack[EventDetails]) -> dict[str, int]:
        """Do what is to be done with what was staged; return the Delta version of every table it went to."""

    @abstractmethod
    def fail(
        self, stage: str, error: BaseException, *, failed_checks: Sequence[str] = (), **details: Unpack[EventDetails]
    ) -> None:
        """Hear that the run failed."""

    def _fields(self, table: str) -> tuple[Field, ...]:
        """Columns that a table is staged with."""
        published = {schema.name: schema.fields for schema in schemas.PUBLISHED}
        if table not in published:
            raise ResultsError(Fault("staging", repr(table), f"one of {', '.join(published)}"))
        return (*published[table], *(self.facts.measure_fields() if table == schemas.USER_METRICS.name else ()))


class Rehearsal(StagedRun):
    """A run that is computed, looked at and never published: no results root is touched.

    Attributes
    ----------
    inputs : tuple of InputRecord
        What was read; empty before the end.
    """

    def __init__(self, spark: SparkSession, folder: str, facts: RunRecord) -> None:
        """Stage in ``folder``, which the caller made; no other run knows of it, so no lock is needed."""
        super().__init__(spark, open_storage(spark, folder, one_run_per_root=True), facts)
        self.inputs: tuple[InputRecord, ...] = ()

    def publish(self, *, inputs: Sequence[InputRecord] = (), **_: object) -> dict[str, int]:
        """Keep what was read, and publish nothing."""
        self.inputs = tuple(inputs)
        return {}

    def quarantine(self, rows: DataFrame | None) -> None:
        """Keep no row: the run that is rehearsed kept them."""

    def fail(self, stage: str, error: BaseException, **_: object) -> None:
        """Record nothing; the error reaches the caller."""

    def remove(self) -> None:
        """Remove what was staged."""
        self._staging.remove()
