"""What a run asks the nights before it: whether its means drifted, and how it differs from the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from rankeval_spark.app import changes, drift
from rankeval_spark.app.past import PastNight, earlier_nights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from rankeval_spark.app.gates import Previous
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.results import RunFacts


@dataclass(frozen=True)
class Before:
    """The nights that were published before a run; looked up once, when the first question is asked.

    Attributes
    ----------
    is_alone : bool
        Take the run for the first of its evaluation, whatever was published.
    """

    spark: SparkSession
    config: EvaluationConfig
    facts: RunFacts
    is_alone: bool = False

    def drift(self, metrics: DataFrame) -> list[Row]:
        """Count the means of a run that left the band of the nights before; no fact where these are too few."""
        first = self.facts.evaluation_date - timedelta(days=self.config.checks.drift.window_days)
        recent = [night for night in self._nights if night.evaluation_date >= first]
        fact = drift.to_fact(self.spark, self._root, self.facts, metrics, recent)
        return [fact] if fact else []

    def previous(self, user_metrics: DataFrame) -> Previous | None:
        """Compare the users of a run with those of the last night, as far as rules ask for it."""
        if not changes.rules_of(self.config):
            return None
        definitions = {(one.measure, one.k): one.definition for one in self.facts.measures}
        tonight = changes.Side(definitions, changes.slices_of(self.config), user_metrics)
        return changes.since_previous(self.spark, self._root, self.config, tonight, self._nights)

    @cached_property
    def _nights(self) -> list[PastNight]:
        """As many as the band of drift can hold, oldest first."""
        if self.is_alone:
            return []
        days = self.config.checks.drift.window_days
        return earlier_nights(self.spark, self._root, self.facts, at_most=days)

    @property
    def _root(self) -> str:
        return self.config.results.location
