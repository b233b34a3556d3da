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
    from rankeval_spark.statistics.replicate_sums import Draws


@dataclass(frozen=True)
class ReportedSlices:
    """Slices that rows are made of, and what holds for the rows of each."""

    segments: Sequence[Sequence[str]]  # of each slice; ``()`` is all users
    min_size: int  # number of users below which a slice is small
    confidence: float  # nominal coverage of the intervals, in (0, 1)
    quantiles: Sequence[float] = ()  # shares of the users up to whose values quantiles are reported

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each slice."""
        return slice_names(self.segments)


def slice_names(slices: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the name of each slice, its segments; that of no segment is all users."""
    return tuple(C.CROSSING.join(one) or C.ALL_USERS for one in slices)


@dataclass(frozen=True)
class Request:
    """Everything an evaluation needs from a config or a call, independent of files."""

    measures: MeasureSet
    policies: Policies
    models: Sequence[str] | None = None  # expected ones; None: those in the log
    slices: Sequence[Sequence[str]] = ()  # segments and crossings to report on, in addition to all users
    min_slice_size: int = LEAST_USERS  # number of users below which a slice is small
    confidence: float = 0.95  # nominal coverage of the intervals, in (0, 1)
    evaluation_date: date | None = None  # for the age of items
    comparisons: Comparisons | None = None  # of models; None: none
    draws: Draws | None = None  # of bootstrap intervals; None: intervals by formula
    bands: Mapping[str, Band] = field(default_factory=dict)  # by segment
    # Whether to count recommended items that the user has in the training data, even if no measure needs the count; it
    # costs a join
    counts_seen: bool = False
    max_rows_per_user: int = MAX_ROWS_PER_USER  # in all inputs together
    events_until: datetime | None = None  # moment up to which all events are there, with attribution by time
    quantiles: Sequence[float] = ()  # shares of the users up to whose values quantiles are reported
    # Notes on names with several meanings, of measures that a notebook wrote, see :func:`measures.names.notes_on`
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
    """Return the request of a config for one date."""
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
    """Return the request that drops scores which the policy refuses, for a caller who counts them instead."""
    return replace(request, policies=request.policies.model_copy(update={"invalid_scores": "drop"}))


def agreement_request(request: Request, *, baseline: str, k: int, p: float) -> tuple[Request, dict[str, Measure]]:
    """Build the request that compares the lists of each model with a baseline's, for all users with a list.

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
