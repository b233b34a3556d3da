"""A night beside an earlier one, from their published users: what rules against the previous night go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankeval_spark import columns as C, schemas
from rankeval_spark.app.gates import Previous
from rankeval_spark.measures import Measure, MeasureSet
from rankeval_spark.results import Results
from rankeval_spark.stages import nights
from rankeval_spark.stages.summarise import EVERYONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.app.past import Definitions, PastNight
    from rankeval_spark.config import EvaluationConfig, Gate
    from rankeval_spark.config.policies import Unit


@dataclass(frozen=True)
class Side:
    """One of two nights.

    Attributes
    ----------
    definitions : mapping
        What it was asked for, by measure and cutoff.
    slices : mapping
        Segments of each of its slices, by the name of the slice.
    user_metrics : DataFrame
        Its rows of this table.
    unit : {"user", "list"}
        Of what its means were taken; on nights that define a measure alike, of the same.
    """

    definitions: Definitions
    slices: Mapping[str, tuple[str, ...]]
    user_metrics: DataFrame
    unit: Unit

    @classmethod
    def of(cls, results: Results, night: PastNight) -> Side:
        """Read a published night."""
        user_metrics = results.user_metrics(date=night.evaluation_date, evaluation=night.evaluation)
        config = night.config
        return cls(night.definitions, slices_of(config), user_metrics, config.policies.unit)

    def defines(self, measure: Measure, as_on: Side) -> bool:
        """Tell whether a measure was asked for with the same options and policies on both nights."""
        key = (measure.label, measure.k)
        return key in self.definitions and self.definitions[key] == as_on.definitions.get(key)

    def makes(self, name: str, as_on: Side) -> bool:
        """Tell whether a slice was made of the same segments on both nights."""
        return name in self.slices and self.slices[name] == as_on.slices.get(name)


def slices_of(config: EvaluationConfig) -> dict[str, tuple[str, ...]]:
    """Give the segments of each slice, everyone included, by its name."""
    return {C.ALL_USERS: EVERYONE, **{C.CROSSING.join(one): tuple(one) for one in config.slices}}


def changes(  # noqa: PLR0913 - what is compared, and how
    now: Side,
    before: Side,
    *,
    measures: Iterable[Measure],
    slices: Iterable[str],
    min_slice_size: int,
    confidence: float,
) -> list[dict[str, Any]]:
    """Compare each model with itself: rows of :mod:`rankeval_spark.stages.nights`.

    There are none of a measure that is no mean or was defined otherwise then, nor of a slice that one of the
    nights does not have.
    """
    same = [one for one in measures if now.defines(one, before) and one.is_mean_of_users]
    made = [now.slices[name] for name in dict.fromkeys(slices) if now.makes(name, before)]
    if not same or not made:
        return []
    frame = nights.to_changes(
        now.user_metrics,
        before.user_metrics,
        measures=MeasureSet.of(same),
        slices=made,
        min_slice_size=min_slice_size,
        confidence=confidence,
        unit=now.unit,
    )
    return [row.asDict() for row in frame.collect()]


def rules_of(config: EvaluationConfig) -> list[Gate]:
    """Give the rules that hold a night against the one before it."""
    return [gate for gate in config.gates if gate.needs_previous]


def since_previous(
    spark: SparkSession, root: str, config: EvaluationConfig, now: Side, earlier: Sequence[PastNight]
) -> Previous | None:
    """Compare a night with the last one before it, by what the rules of the config ask for.

    Parameters
    ----------
    earlier : sequence of PastNight
        Published nights before it, oldest first; None comes back where there are none.
    """
    rules = rules_of(config)
    if not rules or not earlier:
        return None
    night, results = earlier[-1], Results(spark, root)
    gone = results.deleted(date=night.evaluation_date, evaluation=night.evaluation)
    if schemas.USER_METRICS.name in gone.get((night.evaluation, night.evaluation_date), ()):
        return Previous(night.evaluation_date, (), has_users=False)
    rows = changes(
        now,
        Side.of(results, night),
        measures=[gate.measured(config.preset) for gate in rules],
        slices=[gate.slice for gate in rules],
        min_slice_size=config.min_slice_size,
        confidence=config.confidence,
    )
    return Previous(night.evaluation_date, rows)
