"""Which models are compared with which, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from rankeval_spark.config.base import Model, Whole, fault_error, repeated_faults
from rankeval_spark.errors import Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures import MeasureSet

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200)]

TestName: TypeAlias = Literal["t", "randomization", "bootstrap", "wilcoxon", "sign", "tukey", "randomized_tukey"]

OF_ALL_MODELS: Final = frozenset({"tukey", "randomized_tukey"})
"""Tests of all pairs of models at once."""


class Comparisons(Model):
    """Comparisons of models on the same users, published in the table `comparisons`."""

    baseline: ModelName | None = None
    """Model that every other one is compared with; it may be left out where all pairs are compared."""
    pairs: Literal["baseline", "all"] = "baseline"
    """Compare each model with the baseline, or every two models."""
    tests: Annotated[tuple[TestName, ...], Field(min_length=1)] = ("t",)
    """Tests, each with rows of its own; t is always one, as verdicts and gates read it. The randomization test and the
    bootstrap cost `replicates` sums a user; the two of Tukey are for all pairs."""
    replicates: Annotated[Whole, Field(ge=100, le=100_000)] = 1000
    """Random draws of the randomization test, of the bootstrap and of the randomized Tukey test."""
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = 0
    """Seed of these draws, which are hashes of it and the user: the same on every partitioning."""
    wilcoxon_zeros: Literal["wilcox", "pratt"] = "wilcox"
    """What wilcoxon does with users whose values are equal: `wilcox` leaves them out before ranking, `pratt` ranks them
    and leaves their ranks out."""
    correction: Literal["holm", "bonferroni", "benjamini-hochberg", "none"] = "holm"
    """What is done about the number of tests: every row of one test in a run is one family."""

    @field_validator("tests")
    @classmethod
    def _tests_fit_the_pairs(cls, tests: tuple[TestName, ...], info: ValidationInfo) -> tuple[TestName, ...]:
        faults = repeated_faults(tests, "test")
        if "t" not in tests:
            faults.append(Fault("", ", ".join(tests), "t among them, as verdicts and gates read it", "add t"))
        of_all = [name for name in tests if name in OF_ALL_MODELS]
        if of_all and info.data.get("pairs") == "baseline":
            found = f"{' and '.join(of_all)}, but pairs: baseline"
            faults.append(Fault("", found, "tests of a model against the baseline", "set pairs to all"))
        if faults:
            raise fault_error(*faults)
        return tests

    @model_validator(mode="after")
    def _have_a_baseline(self) -> Comparisons:
        if self.baseline is None and self.pairs == "baseline":
            raise fault_error(Fault(".baseline", "none", "the model to compare with", "name it, or set pairs to all"))
        return self

    @property
    def all_pairs(self) -> bool:
        """Whether every two models are compared."""
        return self.pairs == "all"


def baseline_faults(baseline: str, models: Sequence[str] | None) -> list[Fault]:
    """Say whether the baseline is none of the models, where these are named."""
    if models is None or baseline in models:
        return []
    return [Fault("", repr(baseline), f"one of the models: {', '.join(models)}", nearest(baseline, models))]


def measure_faults(measures: MeasureSet) -> list[Fault]:
    """Say whether there is nothing to compare."""
    if measures.comparable:
        return []
    found = f"{', '.join(map(str, measures.measures))}, none of which can be compared"
    return [Fault("", found, "at least one measure that is a mean or a ratio of sums over users")]
