"""A night compared with an earlier one, from their published users, for rules against the previous night."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.gates import Previous
from rankeval_spark.config.request import ReportedSlices
from rankeval_spark.measures import Measure, MeasureSet
from rankeval_spark.result_rows.night_change_rows import NightChanges
from rankeval_spark.results.local_tables import DamagedResultsError, to_rows

if TYPE_CHECKING:
    from rankeval_spark.apps.history.published_runs import Definitions, PastNight
    from rankeval_spark.config import EvaluationConfig, Gate
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.results import Results


@dataclass(frozen=True)
class NightSide:
    """One of two nights.

    Attributes
    ----------
    definitions : mapping
        What it computed, by measure and cutoff.
    slices : mapping
        Segments of each of its slices, by the name of the slice.
    user_metrics : DataFrame or pyarrow.dataset.Dataset
        Its rows of this table; of both nights on one host.
    unit : {"user", "list"}
        Of what its means were taken; on nights that define a measure alike, of the same.
    """

    definitions: Definitions
    slices: Mapping[str, tuple[str, ...]]
    user_metrics: Any
    unit: Unit

    @classmethod
    def of(cls, results: Results[Any], night: PastNight, *, models: Sequence[str] = ()) -> NightSide:
        """Read a published night; of some models, where any are named."""
        equal = {C.MODEL_ID: list(models)} if models else {}
        of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation, **equal}
        user_metrics = results.scan(schemas.USER_METRICS.name, **of_night)
        config = night.config
        return cls(night.definitions, segments_by_slice(config), user_metrics, config.policies.unit)

    def defines(self, measure: Measure, as_on: NightSide) -> bool:
        """Return True if a measure was computed with the same options and policies on both nights."""
        key = (measure.label, measure.k)
        return key in self.definitions and self.definitions[key] == as_on.definitions.get(key)

    def makes(self, name: str, as_on: NightSide) -> bool:
        """Return True if a slice was made of the same segments on both nights."""
        return name in self.slices and self.slices[name] == as_on.slices.get(name)


def segments_by_slice(config: EvaluationConfig) -> dict[str, tuple[str, ...]]:
    """Give the segments of each slice, everyone included, by its name."""
    return {C.ALL_USERS: (), **{C.CROSSING.join(one): tuple(one) for one in config.slices}}


def changes_between(
    now: NightSide, before: NightSide, config: EvaluationConfig, *, measures: Iterable[Measure], slices: Iterable[str]
) -> list[dict[str, Any]]:
    """Compare each model with itself: rows of :mod:`rankeval_spark.result_rows.night_change_rows`.

    There are none of a measure that is no mean or was defined otherwise then, nor of a slice that one of the
    nights does not have.

    Parameters
    ----------
    config : EvaluationConfig
        Which slices are small, and the confidence of the intervals.
    slices : iterable of str
        Names of slices.
    """
    same = [one for one in measures if now.defines(one, before) and one.is_mean_of_users]
    made = [now.slices[name] for name in dict.fromkeys(slices) if now.makes(name, before)]
    if not same or not made:
        return []
    reported = ReportedSlices(made, config.min_slice_size, config.confidence)
    changes = NightChanges.of(MeasureSet.of(same), reported, now.unit)
    from rankeval_spark.apps.user_totals import totals_of_users  # noqa: PLC0415 - imports the engine
    from rankeval_spark.sums.published import NIGHT_CHANGES, NightDifferences, UserTotals  # noqa: PLC0415 - as above

    differences = NightDifferences(changes)
    totals = UserTotals(changes.measures, {NIGHT_CHANGES: differences}, differences.segments, n_nights=2)
    return to_rows(totals_of_users([now.user_metrics, before.user_metrics], totals)[NIGHT_CHANGES])


def rules_of(config: EvaluationConfig) -> list[Gate]:
    """Give the rules that hold a night against the one before it."""
    return [gate for gate in config.gates if gate.needs_previous]


def since_previous(
    results: Results[Any], config: EvaluationConfig, now: NightSide, earlier: Sequence[PastNight]
) -> Previous | None:
    """Compare a night with the last one before it, by what the rules of the config are about.

    Parameters
    ----------
    results : Results
        The published nights, on the host that has the rows of ``now``.
    earlier : sequence of PastNight
        Published nights before it, oldest first; None comes back where there are none.
    """
    rules = rules_of(config)
    if not rules or not earlier:
        return None
    night = earlier[-1]
    gone = results.deleted(date=night.evaluation_date, evaluation=night.evaluation)
    if schemas.USER_METRICS.name in gone.get((night.evaluation, night.evaluation_date), ()):
        return Previous(night.evaluation_date, (), has_users=False)
    try:
        rows = changes_between(
            now,
            NightSide.of(results, night),
            config,
            measures=[gate.measured(config.preset) for gate in rules],
            slices=[gate.slice for gate in rules],
        )
    except DamagedResultsError as error:
        if (night.evaluation, night.evaluation_date) not in error.nights:
            raise
        return Previous(night.evaluation_date, (), damage=error.faults)
    return Previous(night.evaluation_date, rows)
