"""What is requested of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rankeval_spark.config.bands import NO_INTERACTION, of_train
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER
from rankeval_spark.measures import Measure, MeasureSet

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config.bands import Band
    from rankeval_spark.config.comparisons import Comparisons
    from rankeval_spark.config.policies import Policies
    from rankeval_spark.statistics.replicates import Draws


@dataclass(frozen=True)
class Request:
    """What an evaluation computes.

    Attributes
    ----------
    measures : MeasureSet
        Measures and cutoffs.
    policies : Policies
        What happens in the awkward cases.
    models : sequence of str or None
        The models expected; None: those in the log.
    slices : sequence of sequences of str
        Segments and crossings to report on, in addition to all users.
    min_slice_size : int
        Slices with fewer users are marked as small.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    evaluation_date : date or None
        Day at which the age of items is taken.
    comparisons : Comparisons or None
        Which models are compared with which; None: none.
    draws : Draws or None
        Of the bootstrap that makes the intervals of means; None: they are made by formula.
    bands : mapping
        How segments are made of numbers, by name.
    counts_seen : bool
        Whether items that the user has in the training data are counted though no measure needs it; costs a join.
    max_rows_per_user : int
        Rows of a user in all inputs together above which the job fails.
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

    @property
    def segments(self) -> tuple[str, ...]:
        """Names of the segments that the slices use, each once, in order of first mention."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))

    @property
    def every_slice(self) -> list[tuple[str, ...]]:
        """Names of the segments of each slice, everyone first."""
        return [(), *(tuple(one) for one in self.slices)]

    @property
    def absent(self) -> Mapping[str, str]:
        """Segment values of a user without a row, by segment, where the absence is a value."""
        return dict.fromkeys(of_train(self.bands), NO_INTERACTION)


def agreement_request(request: Request, *, baseline: str, k: int, p: float) -> tuple[Request, dict[str, Measure]]:
    """Ask how much the lists of each model agree with those of a baseline, whoever is in the population.

    Returns
    -------
    request : Request
    measures : dict of str to Measure
        ``overlap``, ``jaccard`` and ``rbo``.
    """
    option = ("model", baseline)
    # Made without parsing a name: a model may have any name.
    measures = {
        "overlap": Measure("Overlap", (option,), k),
        "jaccard": Measure("Jaccard", (option,), k),
        "rbo": Measure("RBO", (option, ("p", p)), k),
    }
    policies = request.policies.model_copy(update={"population": "run", "missing": "exclude"})
    asked = MeasureSet.of([*measures.values()])
    return replace(request, measures=asked, policies=policies, slices=(), counts_seen=False, draws=None), measures
