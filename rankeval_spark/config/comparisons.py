"""Which models are compared with which, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import StringConstraints, model_validator

from rankeval_spark.config.base import Model, fault_error
from rankeval_spark.errors import Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures import MeasureSet

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Comparisons(Model):
    """Comparisons of models on the same users, published in the table `comparisons`."""

    baseline: ModelName | None = None
    """Model that every other one is compared with; it may be left out where all pairs are compared."""
    pairs: Literal["baseline", "all"] = "baseline"
    """Compare each model with the baseline, or every two models."""
    correction: Literal["holm", "bonferroni", "benjamini-hochberg", "none"] = "holm"
    """What is done about the number of tests: every test of the run is one family."""

    @model_validator(mode="after")
    def _have_a_baseline(self) -> Comparisons:
        if self.baseline is None and self.pairs == "baseline":
            raise fault_error(Fault(".baseline", "none", "the model to compare with", "name it, or set pairs to all"))
        return self

    @property
    def all_pairs(self) -> bool:
        """Whether every two models are compared."""
        return self.pairs == "all"


def comparison_faults(comparisons: Comparisons, *, measures: MeasureSet, models: Sequence[str] | None) -> list[Fault]:
    """Say what of the evaluation the comparisons do not fit; ``where`` is ``baseline`` or ``measures``."""
    faults = []
    baseline = comparisons.baseline
    if baseline is not None and models is not None and baseline not in models:
        expected = f"one of the models: {', '.join(models)}"
        faults.append(Fault("baseline", repr(baseline), expected, nearest(baseline, models)))
    if not measures.comparable:
        found = f"{', '.join(map(str, measures.measures))}, none of which can be compared"
        faults.append(Fault("measures", found, "at least one measure that is a mean over users"))
    return faults
