"""What a run asks the nights before it: is there as much as then, did means drift, and what changed since the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.history import drift_check, night_changes, volume_check
from rankeval_spark.apps.history.published_runs import PastNight, earlier_nights, means_of, run_with_means
from rankeval_spark.apps.notebook.hosts import is_of_spark
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.limits import LEAST_NIGHTS
from rankeval_spark.results import Results
from rankeval_spark.results.local_tables import DamagedResultsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.gates import Previous
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.results import RunRecord, StagedRun
    from rankeval_spark.results.run_record import NightKey


LEFT_OUT: Final = "an earlier night is left out"
"""What a warning about damaged results begins with."""


@dataclass(frozen=True)
class RunHistory:
    """The nights that were published before a run; looked up once, when the first question is asked.

    Attributes
    ----------
    is_alone : bool
        Take the run for the first of its evaluation, whatever was published.
    wait : callable, optional
        Called before they are looked up: one of them may be about to be published.
    warnings : list of str
        Which of them were left out, because their files are missing or damaged.
    """

    spark: SparkSession
    config: EvaluationConfig
    facts: RunRecord
    is_alone: bool = False
    wait: Callable[[], None] | None = None
    warnings: list[str] = field(default_factory=list)

    def volume(self, counts: Mapping[str, int]) -> list[CheckCount]:
        """Hold the rows of the inputs against those of the nights before; no fact where these are too few."""
        return volume_check.to_volume_facts(counts, self.facts, self._within(self.config.checks.volume.window_days))

    def of_means(self, metrics: pa.Table) -> list[CheckCount]:
        """Count the means of a run that left the band of the nights before, and models that are absent or shrank.

        No fact where these nights are too few.
        """
        within = self._within(self.config.checks.drift.window_days)
        band = within if len(within) >= LEAST_NIGHTS else []
        last = volume_check.last_alike(self.facts, self._nights)
        read = [*band, *([last] if last and last not in band else [])]
        if not read:
            return []
        rows, damaged = self._means_of(read)
        band, last = [night for night in band if night not in damaged], None if last in damaged else last
        tonight = metrics.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist()
        drifted = drift_check.to_fact(self.facts, tonight, rows, band)
        if last is None:
            return [drifted] if drifted else []
        before = [row for row in rows if row[C.EVALUATION_DATE] == last.evaluation_date]
        of_models = volume_check.to_model_facts(self.facts, tonight, before, last)
        return [*([drifted] if drifted else []), *of_models]

    def _means_of(self, nights: list[PastNight]) -> tuple[list[dict[str, Any]], list[PastNight]]:
        """Read the means of nights that can be read; return them, and the nights that cannot."""
        try:
            return means_of(self.spark, self._root, self.facts.evaluation, nights), []
        except DamagedResultsError as error:
            damaged = [night for night in nights if (night.evaluation, night.evaluation_date) in error.nights]
            if not damaged:
                raise
            self.warnings.extend(f"{LEFT_OUT}: {fault}" for fault in error.faults)
            return means_of(
                self.spark, self._root, self.facts.evaluation, [one for one in nights if one not in damaged]
            ), damaged

    def previous(self, run: StagedRun) -> Previous | None:
        """Compare the users of a run with those of the last night, as far as rules ask for it."""
        if not night_changes.rules_of(self.config) or schemas.USER_METRICS.name not in run.n_rows:
            return None
        users = run.scan(schemas.USER_METRICS.name)
        tonight = night_changes.NightSide(
            self.facts.definitions, night_changes.segments_by_slice(self.config), users, self.config.policies.unit
        )
        results = Results(self.spark, self._root) if is_of_spark(users) else Results(self._root)
        found = night_changes.since_previous(results, self.config, tonight, self._nights)
        self.warnings.extend(f"{LEFT_OUT}: {fault}" for fault in (found.damage if found else ()))
        return found

    def require_no_means(self, reason: str) -> None:
        """Refuse to replace the published means of this night by none, as the function of this name does."""
        if not self.is_alone:
            require_no_means(self.spark, self._root, self.facts.night, reason)

    @cached_property
    def _nights(self) -> list[PastNight]:
        """As many as any question looks at, oldest first."""
        if self.is_alone:
            return []
        if self.wait is not None:
            self.wait()
        checks = self.config.checks
        days = max(checks.drift.window_days, checks.volume.window_days)
        return earlier_nights(self.spark, self._root, self.facts, at_most=days, is_lenient=False)

    def _within(self, days: int) -> list[PastNight]:
        first = self.facts.evaluation_date - timedelta(days=days)
        return [night for night in self._nights if night.evaluation_date >= first]

    @property
    def _root(self) -> str:
        return self.config.results.location


def require_no_means(spark: SparkSession | None, root: str, night: NightKey, reason: str) -> None:
    """Refuse to replace the published means of a night by none; ``reason`` says why there is nothing to measure.

    Raises
    ------
    InputError
        The newest published run of the night has means.
    """
    run_id = run_with_means(spark, root, night)
    if run_id is not None:
        expected = f"rows as those that run {run_id} measured, whose results stay published"
        raise InputError(Fault(str(night), reason, expected, "run the date again when they are back"))
