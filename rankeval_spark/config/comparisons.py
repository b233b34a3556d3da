"""Which models are compared with which, and how."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import StringConstraints, model_validator

from rankeval_spark.config.base import Model, fault_error
from rankeval_spark.errors import Fault

NO_COMPARABLE: Final = "at least one measure that is a mean over users, which models can be compared by"

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
