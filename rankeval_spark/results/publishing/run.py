"""One run, from its first row in ``runs`` to its last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import Fault, ResultsError, exit_code_of, first_line, note, without_secrets
from rankeval_spark.report.wording import FAILED_IN
from rankeval_spark.results import journal
from rankeval_spark.results.publishing import staging
from rankeval_spark.results.publishing.failpoints import failpoint
from rankeval_spark.results.publishing.publish import publish
from rankeval_spark.results.publishing.staged_run import StagedRun
from rankeval_spark.results.run_record import Failure, RunRecord
from rankeval_spark.results.storage.commits import Root

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from rankeval_spark.results.journal import EventDetails
    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.results.storage.locks import Lock

LONGEST_MESSAGE: Final = 2000
"""Characters of an error message that are kept in ``runs``."""


class Run(StagedRun):
    """A run that is recorded from its start to its end; made by :meth:`ResultsStore.start`."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        facts: RunRecord,
        *,
        run_lock: Lock,
        publish_lock: Callable[[str], AbstractContextManager[Lock]],
    ) -> None:
        super().__init__(spark, storage, facts)
        self._run_lock = run_lock
        self._publish_lock = publish_lock
        self._is_announced = False
        self._is_published = False

    def begin(self) -> None:
        """Record that the run has started."""
        try:
            journal.record(self._spark, self._storage, journal.RunEvent(self.facts, journal.RUNNING))
            failpoint("before_staging")
        except (Exception, KeyboardInterrupt) as error:
            self.fail("start", error)
            raise

    def publish(self, *, reason: str | None = None, **details: Unpack[EventDetails]) -> dict[str, int]:
        """Publish what was staged; a table that was not staged has no rows for this night afterwards.

        Returns
        -------
        dict
            Delta version of every table as published.
        """
        self._run_lock.assert_held()
        event = journal.RunEvent(self.facts, journal.PUBLISHING, reason=reason, n_rows=self.n_rows, **details)
        with self._publish_lock(self.facts.run_id) as lock:
            root = Root(self._spark, self._storage, lock)
            versions = publish(root, event, self._staging, on_intent=self._announce)
            self._is_published = True
        with suppress(Exception):  # the run is published; what stays is removed by the next run of the night
            if self._run_lock.is_held:
                staging.remove_all(self._storage, self.facts.night)
        return versions

    def quarantine(self, rows: DataFrame | None) -> None:
        """Keep rows that could not be used, while no other run has the night."""
        self._run_lock.assert_held()
        super().quarantine(rows)

    def fail(
        self, stage: str, error: BaseException, *, failed_checks: Sequence[str] = (), **details: Unpack[EventDetails]
    ) -> None:
        """Record that the run failed, and remove its staging unless a publish may have been announced that needs it.

        Whatever goes wrong here, ``error`` stays what the run ends with: a note says what could not be recorded.
        """
        if self._is_published:
            note(error, f"run {self.facts.run_id} was published before that")
            return
        try:
            if not self._is_announced:
                with suppress(Exception):  # first: on a full disk, it makes room for the row
                    self._staging.remove()
            event = journal.RunEvent(
                self.facts,
                journal.FAILED,
                reason=f"{FAILED_IN}{stage}, code {exit_code_of(error)}",
                error=Failure(stage, type(error).__name__, without_secrets(str(error))[:LONGEST_MESSAGE]),
                failed_checks=failed_checks,
                **details,
            )
            journal.record(self._spark, self._storage, event)
        except Exception as failure:
            note(error, f"run {self.facts.run_id} could not be recorded as FAILED: {first_line(str(failure))}")

    def _announce(self) -> None:
        """Make sure that the run may publish, and what: while it waited, it may have been taken for dead."""
        self._run_lock.assert_held()
        if lost := self._staging.lacking(self.n_rows):
            found = f"no {' and no '.join(lost)} in its staging"
            raise ResultsError(Fault(f"run {self.facts.run_id}", found, "what it staged", "run the date again"))
        self._is_announced = True
