"""Intervals of means, comparisons of models, and tests of gaps between groups."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator, model_validator

from rankeval_spark import columns as C
from rankeval_spark.config.base import Model, Number, Whole, each_once, fault_error, refuse_faults, repeated_faults
from rankeval_spark.errors import Fault, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.statistics import Correction, FewDifferences, Zeros

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rankeval_spark.statistics.resampling import Draws


def _require_models(models: tuple[str, ...]) -> tuple[str, ...]:
    if not models:
        raise fault_error(Fault("", "an empty list", "at least one model", "leave it out for every model"))
    return models


MAX_NAME: Final = 200  # characters of the name of a model
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
Models = Annotated[tuple[ModelName, ...], AfterValidator(_require_models), each_once("model")]
MeasureText = Annotated[str, StringConstraints(min_length=1, max_length=200)]
SplitShare = Annotated[Number, Field(gt=0, lt=1)]
Replicates = Annotated[Whole, Field(ge=100, le=100_000)]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]

TestName: TypeAlias = Literal["t", "randomization", "bootstrap", "wilcoxon", "sign", "tukey", "randomized_tukey"]
Family: TypeAlias = Literal["primary", "slices", "exploratory"]
_ROUNDING: Final = 1e-9  # by which shares that were rounded may miss their sum
OF_ALL_MODELS: Final = frozenset({"tukey", "randomized_tukey"})  # tests of all pairs of models at once


class Intervals(Model):
    """Intervals of means and micro averages."""

    confidence: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    """Nominal coverage of all intervals; verdicts of comparisons are taken at 1 - confidence."""
    method: Literal["analytic", "bootstrap"] = "analytic"
    """`analytic` computes them by formula: Hall's t, which allows for skewness, Wilson for shares of users, the delta
    method for micro averages. `bootstrap` takes percentiles of a Poisson bootstrap over users. Measures of all lists
    together always use the jackknife."""
    replicates: Replicates = 1000
    """Replicates of the bootstrap."""
    seed: Seed = 0
    """Seed of the bootstrap. A user has the same weight in the same replicate whenever the seed is the same."""

    @property
    def draws(self) -> Draws | None:
        """Random draws of the bootstrap; None for intervals by formula."""
        from rankeval_spark.statistics.resampling import Draws  # noqa: PLC0415 - imports scipy, which takes 0.2 s

        return Draws(self.replicates, self.seed) if self.method == "bootstrap" else None


class Comparisons(Model):
    """Comparisons of models on the same users, published in the table `comparisons`."""

    baseline: ModelName | None = None
    """Model with which every other model is compared. It is optional with `pairs: all`."""
    pairs: Literal["baseline", "all"] = "baseline"
    """Compare each model with the baseline, or every two models."""
    tests: Annotated[tuple[TestName, ...], Field(min_length=1)] = ("t",)
    """Tests, each with its own rows. The list must contain t, because verdicts and gates read it. Randomization and
    bootstrap compute `replicates` sums per user. tukey and randomized_tukey need `pairs: all`."""
    replicates: Replicates = 1000
    """Random draws of randomization, bootstrap and randomized_tukey."""
    seed: Seed = 0
    """Seed of these draws. They are hashes of the seed and the user, so partitioning does not change them."""
    few_differences: FewDifferences = "exact"
    """Test `t` where at most 20 users differ: `exact` counts all assignments of signs and needs 6 such users, `t` is
    Student's t all the same, as in textbooks. Below `slicing.min_slice_size` users neither has a p-value."""
    wilcoxon_zeros: Zeros = "wilcox"
    """Treatment of users without a difference by wilcoxon: `wilcox` leaves them out before ranking, `pratt` ranks them
    and drops their ranks."""
    split: Annotated[dict[ModelName, SplitShare], Field(min_length=2)] | None = None
    """Models of an A/B test, each with the share of the users that it is meant to serve, such as {control: 0.5,
    treatment: 0.5}. Two of them are compared by the test `unpaired`, over the users with a list of each, and the check
    `sample_ratio` compares the users of each with its share."""
    covariate: dt.date | None = None
    """Published night before the A/B test of `split`, such as 2026-01-31: what the values of the same users explained
    then is taken out of their differences, so that intervals are narrower (CUPED)."""
    margin: Annotated[Number, Field(gt=0)] | None = None
    """Difference of a user's two values, such as 0.05: `comparisons` has the share of users who win, and of those who
    lose, by more. Without this key, it has neither."""
    primary: Annotated[tuple[MeasureText, ...], Field(min_length=1), each_once("measure")] | None = None
    """Measures with their cutoffs, such as [nDCG@10], that decide. Without this key: the first measure that can be
    compared, at its first cutoff. On all users they are a family of tests of their own, and in slices another; all
    other measures and cutoffs are exploratory."""
    correction: Correction = "holm"
    """Correction for the number of tests, within each family of each test."""
    nights: Annotated[Whole, Field(ge=1, le=366)] = 1
    """Newest nights, this one included, over which `comparisons` has rows of the test `pooled`: each user's difference
    is averaged over the nights that have it. 1: none. A night reads `user_metrics` of those before it."""

    @field_validator("tests")
    @classmethod
    def _tests_fit_the_pairs(cls, tests: tuple[TestName, ...], info: ValidationInfo) -> tuple[TestName, ...]:
        faults = repeated_faults(tests, "test")
        if "t" not in tests:
            faults.append(Fault("", ", ".join(tests), "a list with t, which verdicts and gates read", "add t"))
        of_all = [name for name in tests if name in OF_ALL_MODELS]
        if of_all and info.data.get("pairs") == "baseline":
            found = f"{' and '.join(of_all)}, but pairs: baseline"
            faults.append(Fault("", found, "tests of a model against the baseline", "set pairs to all"))
        refuse_faults(faults)
        return tests

    @model_validator(mode="after")
    def _has_a_baseline(self) -> Comparisons:
        if self.baseline is None and self.pairs == "baseline":
            raise fault_error(Fault(".baseline", "none", "the model to compare with", "name it, or set pairs to all"))
        return self

    @model_validator(mode="after")
    def _splits_all_users(self) -> Comparisons:
        faults, total = list[Fault](), sum((self.split or {"": 1.0}).values())
        if self.split and self.baseline is not None:
            faults += _model_faults(".baseline", self.baseline, tuple(self.split), "models of split")
        if abs(total - 1) > _ROUNDING:
            faults.append(Fault(".split", f"shares that add up to {total:g}", "shares that add up to 1"))
        if self.split and self.nights > 1:
            expected = "one night with split, as users who have one model have no differences to pool"
            faults.append(Fault(".nights", f"{self.nights}", expected, "remove it"))
        if self.covariate is not None and not self.split:
            expected = "the models of an A/B test in split, as differences of the same users have no use for it"
            faults.append(Fault(".covariate", str(self.covariate), expected, "remove it, or add split"))
        if self.split and (of_all := [name for name in self.tests if name in OF_ALL_MODELS]):
            found, expected = f"{' and '.join(of_all)} with split", "tests of two models: no user has all models"
            faults.append(Fault(".tests", found, expected, "remove it"))
        refuse_faults(faults)
        return self

    @property
    def all_pairs(self) -> bool:
        """True if every two models are compared."""
        return self.pairs == "all"


def family_of(label: str, k: int, slice_: str, primary: Collection[tuple[str, int]]) -> Family:
    """Return the family of a comparison, by the names and cutoffs of the primary measures.

    >>> family_of("nDCG", 10, "country", {("nDCG", 10)})
    'slices'
    """
    if (label, k) not in primary:
        return "exploratory"
    return "primary" if slice_ == C.ALL_USERS else "slices"


class GapTests(Model):
    """Arguments of ``gap_tests``."""

    measures: tuple[str, ...] | None = None
    """Measures of the evaluation with their cutoffs; None: all that can be tested."""
    replicates: Replicates = 1000
    """Random draws."""
    seed: Seed = 0
    """Seed of the draws."""
    correction: Correction = "holm"
    """Correction for the number of tests."""

    @property
    def draws(self) -> Draws:
        """Random draws of the users."""
        from rankeval_spark.statistics.resampling import Draws  # noqa: PLC0415 - imports scipy, which takes 0.2 s

        return Draws(self.replicates, self.seed)

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row of ``metrics`` belongs to one of the measures at its cutoff."""
        return with_cutoff(row["measure"], row["k"]) in (self.measures or ())


def absent_model_faults(comparisons: Mapping[str, Any], models: Sequence[str]) -> list[Fault]:
    """Find a baseline, and models of a split, that are not among the named models."""
    baseline, split = comparisons.get("baseline"), comparisons.get("split")
    faults = _model_faults("/comparisons.baseline", baseline, models) if isinstance(baseline, str) else []
    for name in split if isinstance(split, dict) else ():
        faults += _model_faults(f"/comparisons.split.{name}", name, models)
    return faults


def _model_faults(where: str, name: str, models: Sequence[str], what: str = "models") -> list[Fault]:
    if name in models:
        return []
    return [Fault(where, repr(name), f"one of the {what}: {', '.join(models)}", nearest(name, models))]
