"""One run, from its first row in ``runs`` to its last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ChecksFailedError, Fault, ResultsError
from rankeval_spark.results import audit, journal, staging, tables
from rankeval_spark.results.commits import Root
from rankeval_spark.results.facts import Failure, InputFact, RunFacts
from rankeval_spark.results.failpoints import reach
from rankeval_spark.results.publish import publish

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.storage import Storage
    from rankeval_spark.schemas import Field, Schema

LONGEST_MESSAGE: Final = 2000
"""Characters of an error message that are kept in ``runs``."""


class Run:
    """A run that has been recorded as RUNNING; made by :meth:`ResultsStore.start`.

    Attributes
    ----------
    n_rows : dict
        Rows staged for each published table.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        facts: RunFacts,
        *,
        run_lock: Lock,
        publish_lock: Callable[[str], AbstractContextManager[Lock]],
    ) -> None:
        self.facts = facts
        self.n_rows: dict[str, int] = {}
        self._spark = spark
        self._storage = storage
        self._run_lock = run_lock
        self._publish_lock = publish_lock
        self._staging = staging.Staging(spark, storage, facts.night, facts.run_id)
        self._staged: dict[str, DataFrame] = {}
        self._is_announced = False
        self._record(journal.RunEvent(facts, journal.RUNNING))
        reach("before_staging")

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
        staged = self._staging.write(table, tables.conform(keyed, fields, where=f"table {table}"))
        self._staged[table] = staged
        self.n_rows[table] = self._staging.n_rows(table)
        return staged

    def staged(self, table: str) -> DataFrame | None:
        """Return a frame that reads what was staged of a table; None where nothing was."""
        return self._staged.get(table)

    def stage_temporary(self, name: str, frame: DataFrame) -> DataFrame:
        """Keep a frame beside the staged tables, to be read several times; it is not published."""
        return self._staging.write(f"{staging.TEMPORARY}{name}", frame)

    def audit(self) -> None:
        """Look at what was staged; :class:`ChecksFailedError` names all that is wrong."""
        reach("after_staging")
        staged = self._staged
        faults = audit.failed_checks(staged["checks"]) if "checks" in staged else []
        faults += audit.duplicate_keys(staged, [schema for schema in schemas.PUBLISHED if schema.name in staged])
        if "user_metrics" in staged:
            faults += audit.user_metrics(staged["user_metrics"], staged.get("metrics"), self.facts.measures)
        if "metrics" in staged:
            faults += audit.exposures(staged["metrics"], self.facts.measures)
        if faults:
            raise ChecksFailedError(*faults)

    def publish(
        self,
        *,
        inputs: Sequence[InputFact] = (),
        timings: Mapping[str, float] | None = None,
        reason: str | None = None,
    ) -> dict[str, int]:
        """Publish what was staged; a table that was not staged has no rows for this night afterwards.

        Returns
        -------
        dict
            Delta version of every table as published.
        """
        self._run_lock.assert_held()
        event = journal.RunEvent(
            self.facts,
            journal.PUBLISHING,
            reason=reason,
            inputs=tuple(inputs),
            timings=timings or {},
            n_rows=self.n_rows,
        )
        with self._publish_lock(self.facts.run_id) as lock:
            root = Root(self._spark, self._storage, lock)
            versions = publish(root, event, self._staging, on_intent=self._announce)
        staging.remove_all(self._storage, self.facts.night)
        return versions

    def fail(
        self,
        stage: str,
        error: BaseException,
        *,
        failed_checks: Sequence[str] = (),
        inputs: Sequence[InputFact] = (),
        timings: Mapping[str, float] | None = None,
    ) -> None:
        """Record that the run failed; staging goes unless the publish had begun, for it then completes the run."""
        failure = Failure(stage, type(error).__name__, str(error)[:LONGEST_MESSAGE])
        self._record(
            journal.RunEvent(
                self.facts,
                journal.FAILED,
                reason=f"failed in {stage}",
                inputs=tuple(inputs),
                timings=timings or {},
                error=failure,
                failed_checks=tuple(failed_checks),
            )
        )
        if not self._is_announced:
            self._staging.remove()

    def _record(self, event: journal.RunEvent) -> None:
        journal.record(self._spark, self._storage, event)

    def _announce(self) -> None:
        self._is_announced = True

    def _fields(self, schema: Schema) -> tuple[Field, ...]:
        extra = self.facts.measure_fields() if schema is schemas.USER_METRICS else ()
        return (*schema.fields, *extra)

    @staticmethod
    def _schema(table: str) -> Schema:
        published = {schema.name: schema for schema in schemas.PUBLISHED}
        if table not in published:
            raise ResultsError(Fault("staging", repr(table), f"one of {', '.join(published)}", "or stage_temporary"))
        return published[table]
