"""Request of an evaluation, as both hosts compute it, and the slices that it reports on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import Threshold
from rankeval_spark.config.inference import NO_INTERACTION, segments_from_train
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER
from rankeval_spark.measures import Measure, MeasureSet

if TYPE_CHECKING:
    from datetime import date, datetime

    from rankeval_spark.config.evaluation_config import EvaluationConfig
    from rankeval_spark.config.inference import Band, Comparisons
    from rankeval_spark.config.policies import Policies
    from rankeval_spark.measures.registry import KindOfMeanings
    from rankeval_spark.statistics.resampling.replicate_sums import Draws


@dataclass(frozen=True)
class ReportedSlices:
    """Slices that rows are made of, and what holds for the rows of each.

    Attributes
    ----------
    segments : sequence of sequences of str
        Segments of each slice; ``()`` is all users.
    min_size : int
        Number of users below which a slice is small.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    quantiles : sequence of float
        Shares of the users up to whose values quantiles are reported.
    """

    segments: Sequence[Sequence[str]]
    min_size: int
    confidence: float
    quantiles: Sequence[float] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each slice."""
        return slice_names(self.segments)


def slice_names(slices: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Name each slice by its segments; that of no segment is all users."""
    return tuple(C.CROSSING.join(one) or C.ALL_USERS for one in slices)


@dataclass(frozen=True)
class Request:
    """What an evaluation computes.

    Attributes
    ----------
    measures : MeasureSet
        Measures and cutoffs.
    policies : Policies
        Rules for ties, duplicates, missing lists and so on.
    models : sequence of str or None
        Expected models; None: those in the log.
    slices : sequence of sequences of str
        Segments and crossings to report on, in addition to all users.
    min_slice_size : int
        Number of users below which a slice is small.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    evaluation_date : date or None
        Day for the age of items.
    comparisons : Comparisons or None
        Which models are compared; None: none.
    draws : Draws or None
        Random draws of bootstrap intervals; None: intervals by formula.
    bands : mapping
        Bands of segments made of numbers, by segment.
    counts_seen : bool
        Whether to count recommended items that the user has in the training data, even if no measure needs the count.
        It costs a join.
    max_rows_per_user : int
        Largest number of rows of one user in all inputs together.
    events_until : datetime or None
        Moment up to which all events are there, with attribution by time; None where that is unknown.
    quantiles : sequence of float
        Shares of the users up to whose values quantiles are reported.
    notes : mapping
        What names with several meanings are, of measures that a notebook wrote, see :func:`measures.names.notes_on`.
    """

    measures: MeasureSet
    policies: Policies
    models: Sequence[str] | None = None
    slices: Sequence[Sequence[str]] = ()
    min_slice_size: int = LEAST_USERS
    confidence: float = 0.95
    evaluation_date: date | None = None
    comparisons: Comparisons | None = None
    draws: Draws | None = None
    bands: Mapping[str, Band] = field(default_factory=dict)
    counts_seen: bool = False
    max_rows_per_user: int = MAX_ROWS_PER_USER
    events_until: datetime | None = None
    quantiles: Sequence[float] = ()
    notes: Mapping[str, KindOfMeanings] = field(default_factory=dict)

    @property
    def segments(self) -> tuple[str, ...]:
        """Segments of the slices, each once, in order of first mention."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))

    @property
    def every_slice(self) -> list[tuple[str, ...]]:
        """Segments of each slice; all users first."""
        return [(), *(tuple(one) for one in self.slices)]

    @property
    def reported(self) -> ReportedSlices:
        """Every slice, with what holds for its rows."""
        return ReportedSlices(self.every_slice, self.min_slice_size, self.confidence, self.quantiles)

    @property
    def absent(self) -> Mapping[str, str]:
        """Segment values of a user who is absent from the data, where absence has a value."""
        return dict.fromkeys(segments_from_train(self.bands), NO_INTERACTION)


def request_of(config: EvaluationConfig, evaluation_date: date) -> Request:
    """Take from a config what is requested of the pipeline, for one date."""
    return Request(
        config.measure_set(),
        config.policies,
        config.expected_models,
        config.slices,
        config.min_slice_size,
        config.confidence,
        evaluation_date,
        config.comparisons,
        draws=config.intervals.draws,
        bands=config.bands,
        counts_seen=config.checks.seen_in_train != Threshold() and config.policies.seen_in_train == "keep",
        max_rows_per_user=config.max_rows_per_user,
        quantiles=config.quantiles,
    )


def counting_invalid_scores(request: Request) -> Request:
    """Leave out scores that the policy refuses, for a caller who counts them instead of failing at them."""
    return replace(request, policies=request.policies.model_copy(update={"invalid_scores": "drop"}))


def agreement_request(request: Request, *, baseline: str, k: int, p: float) -> tuple[Request, dict[str, Measure]]:
    """Build the request of how much the lists of each model agree with those of a baseline, for all users with a list.

    Also returns its measures by name: ``overlap``, ``jaccard`` and ``rbo``.
    """
    option = ("model", baseline)
    # built without parsing, because a model may have any name
    measures = {
        "overlap": Measure("Overlap", (option,), k),
        "jaccard": Measure("Jaccard", (option,), k),
        "rbo": Measure("RBO", (option, ("p", p)), k),
    }
    policies = request.policies.model_copy(update={"population": "run", "missing": "exclude"})
    requested = MeasureSet.of([*measures.values()])
    return replace(request, measures=requested, policies=policies, slices=(), counts_seen=False, draws=None), measures
