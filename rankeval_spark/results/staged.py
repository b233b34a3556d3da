"""What a run keeps in its staging area, and the look at it before anything is published."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ChecksFailedError, Fault, ResultsError
from rankeval_spark.results import audit, quarantine, staging, tables
from rankeval_spark.results.failpoints import reach
from rankeval_spark.results.reader import OF_USERS
from rankeval_spark.results.storage import open_storage

if TYPE_CHECKING:
    from rankeval_spark.results.facts import InputFact, RunFacts
    from rankeval_spark.results.storage import Storage
    from rankeval_spark.schemas import Field, Schema


class StagedRun(ABC):
    """A run as those see it who compute its tables.

    Attributes
    ----------
    n_rows : dict
        Rows staged for each published table.
    """

    def __init__(self, spark: SparkSession, storage: Storage, facts: RunFacts) -> None:
        self.facts = facts
        self.n_rows: dict[str, int] = {}
        self._spark = spark
        self._storage = storage
        self._staging = staging.Staging(spark, storage, facts.night, facts.run_id)
        self._staged: dict[str, DataFrame] = {}

    def stage(self, table: str, frame: DataFrame) -> DataFrame:
        """Stage a table as it will be published, in one write, and return a frame that reads it.

        Parameters
        ----------
        table : str
            Name of one of :data:`rankeval_spark.schemas.PUBLISHED`.
        frame : DataFrame
            Its declared columns in any order, those of :data:`rankeval_spark.columns.RUN_KEY` left out, which are
            added; ``user_metrics`` also has the column of every measure of the run. A missing, surplus or mistyped
            column is an error.
        """
        schema = self._schema(table)
        fields = self._fields(schema)
        keyed = frame.select(
            F.lit(self.facts.evaluation).alias(C.EVALUATION),
            F.lit(self.facts.evaluation_date).alias(C.EVALUATION_DATE),
            F.lit(self.facts.run_id).alias(C.RUN_ID),
            *(name for name in frame.columns if name not in C.RUN_KEY),
        )
        write = self._staging.write if table in OF_USERS else self._staging.write_small
        staged = write(table, tables.conform(keyed, fields, where=f"table {table}"))
        self._staged[table] = staged
        self.n_rows[table] = self._staging.n_rows(table)
        return staged

    def discard(self) -> None:
        """Forget what was staged so far: none of it is published."""
        self._staging.remove()
        self._staged.clear()
        self.n_rows.clear()

    def staged(self, table: str) -> DataFrame | None:
        """Return a frame that reads what was staged of a table; None where nothing was."""
        return self._staged.get(table)

    def quarantine(self, rows: DataFrame | None) -> None:
        """Keep rows of the inputs that could not be used, instead of those of the night's last run; None: none.

        At once, whatever becomes of the run: most often they are why it fails.
        """
        quarantine.replace(self._storage, self.facts.night, rows)

    @property
    def quarantine_path(self) -> str:
        """Where such rows are kept."""
        return quarantine.path_of(self._storage, self.facts.night)

    def audit(self) -> None:
        """Look at what was staged; :class:`ChecksFailedError` names all that is wrong."""
        reach("after_staging")
        staged = self._staged
        faults = audit.failed_checks(staged["checks"]) if "checks" in staged else []
        faults += audit.refused_rows(staged, [schema for schema in schemas.PUBLISHED if schema.name in staged])
        if "user_metrics" in staged:
            faults += audit.user_metrics(staged["user_metrics"], staged.get("metrics"), self.facts.measures)
        if "metrics" in staged:
            faults += audit.exposures(staged["metrics"], self.facts.measures)
        if faults:
            raise ChecksFailedError(*faults)

    @abstractmethod
    def publish(
        self,
        *,
        inputs: Sequence[InputFact] = (),
        timings: Mapping[str, float] | None = None,
        reason: str | None = None,
    ) -> dict[str, int]:
        """Do what is to be done with what was staged; return the Delta version of every table it went to."""

    @abstractmethod
    def fail(
        self,
        stage: str,
        error: BaseException,
        *,
        failed_checks: Sequence[str] = (),
        inputs: Sequence[InputFact] = (),
        timings: Mapping[str, float] | None = None,
    ) -> None:
        """Hear that the run failed."""

    def _fields(self, schema: Schema) -> tuple[Field, ...]:
        extra = self.facts.measure_fields() if schema is schemas.USER_METRICS else ()
        return (*schema.fields, *extra)

    @staticmethod
    def _schema(table: str) -> Schema:
        published = {schema.name: schema for schema in schemas.PUBLISHED}
        if table not in published:
            raise ResultsError(Fault("staging", repr(table), f"one of {', '.join(published)}"))
        return published[table]


class Rehearsal(StagedRun):
    """A run that is computed, looked at and never published: no results root is touched.

    Attributes
    ----------
    inputs : tuple of InputFact
        What was read; empty before the end.
    """

    def __init__(self, spark: SparkSession, folder: str, facts: RunFacts) -> None:
        """Stage in ``folder``, which belongs to whoever made it; no other run knows of it, so no lock is needed."""
        super().__init__(spark, open_storage(spark, folder, one_run_per_root=True), facts)
        self.inputs: tuple[InputFact, ...] = ()

    def publish(
        self,
        *,
        inputs: Sequence[InputFact] = (),
        timings: Mapping[str, float] | None = None,  # noqa: ARG002 - of the runs that are recorded
        reason: str | None = None,  # noqa: ARG002 - as above
    ) -> dict[str, int]:
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
