"""Intervals of means, comparisons of models, and segments that are bands of numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, assert_never

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator, model_validator

from rankeval_spark.config.base import Model, Number, Whole, each_once, fault_error, refuse_faults, repeated_faults
from rankeval_spark.errors import Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.statistics.resampling import Draws


def _some(models: tuple[str, ...]) -> tuple[str, ...]:
    if not models:
        raise fault_error(Fault("", "an empty list", "at least one model", "leave it out for every model"))
    return models


ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Models = Annotated[tuple[ModelName, ...], AfterValidator(_some), each_once("model")]
Replicates = Annotated[Whole, Field(ge=100, le=100_000)]
Quantiles = Annotated[tuple[Annotated[Number, Field(ge=0, le=1)], ...], each_once("quantile")]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]

TestName: TypeAlias = Literal["t", "randomization", "bootstrap", "wilcoxon", "sign", "tukey", "randomized_tukey"]

OF_ALL_MODELS: Final = frozenset({"tukey", "randomized_tukey"})  # tests of all pairs of models at once


class Intervals(Model):
    """Intervals of means and micro averages; `confidence` is their level."""

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
    wilcoxon_zeros: Literal["wilcox", "pratt"] = "wilcox"
    """How wilcoxon treats users without a difference: `wilcox` leaves them out before ranking, `pratt` ranks them and
    drops their ranks."""
    margin: Annotated[Number, Field(gt=0)] | None = None
    """Difference of a user's two values, such as 0.05: `comparisons` has the share of users who win, and of those who
    lose, by more. Without this key, it has neither."""
    correction: Literal["holm", "bonferroni", "benjamini-hochberg", "none"] = "holm"
    """Correction for the number of tests. All rows of one test in a run are one family."""

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

    @property
    def all_pairs(self) -> bool:
        """Whether every two models are compared."""
        return self.pairs == "all"


def baseline_faults(baseline: str, models: Sequence[str]) -> list[Fault]:
    """Find a baseline that is not among the named models."""
    if baseline in models:
        return []
    expected = f"one of the models: {', '.join(models)}"
    return [Fault("/comparisons.baseline", repr(baseline), expected, nearest(baseline, models))]


def comparison_measure_faults(measures: MeasureSet) -> list[Fault]:
    """Find comparisons without a measure that can be compared."""
    if measures.comparable:
        return []
    found = f"{', '.join(map(str, measures.measures))}, none of which can be compared"
    return [Fault("/measures", found, "at least one measure that is a mean or a ratio of sums over users")]


NO_INTERACTION: Final = "none"  # band of a user without an interaction in the training data

TIERS: Final = ("low", "middle", "high")
"""Bands of the other users, where there are three bands and no labels are given."""

BandLabel = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Band(Model):
    """Bands that group the numbers of a segment column, or the users' numbers of training interactions."""

    of: Literal["train"] | None = None
    """`train` counts the user's interactions in inputs.train; users without any are in the band `none`. Without this
    key, the numbers are those of the segment column of the same name."""
    edges: Annotated[tuple[Number, ...], Field(min_length=1, max_length=100)] | None = None
    """Lower edge of each band but the first, ascending: [18, 25, 40] makes the bands < 18, [18, 25), [25, 40) and
    >= 40."""
    quantiles: Annotated[Whole, Field(ge=2, le=100)] | None = None
    """Number of bands with about as many users each. With `of: train` the default is 3."""
    labels: Annotated[tuple[BandLabel, ...], Field(min_length=1)] | None = None
    """Names of the bands, lowest first. Without this key, three bands of `of: train` are called low, middle and high,
    and all others by their bounds."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Band:
        faults, edges = [], self.edges or ()
        if self.edges is not None and self.quantiles is not None:
            faults.append(Fault("", "both edges and quantiles", "one of them", "remove one"))
        elif self.edges is None and self.quantiles is None and self.input != "train":
            faults.append(Fault("", "neither edges nor quantiles", "one of them", "write edges: [18, 25, 40]"))
        if any(low >= high for low, high in pairwise(edges)):
            faults.append(Fault(".edges", f"{list(edges)}", "numbers in ascending order, each once"))
        elif self.input == "train" and edges and edges[0] <= 1:
            fix = f"users without an interaction are {NO_INTERACTION!r}, the first band begins at 1"
            faults.append(Fault(".edges", f"{edges[0]:g}", "numbers above 1", fix))
        refuse_faults(faults)
        labels = self.labels or ()
        if labels and len(labels) != self.n_bands:
            refuse_faults([Fault(".labels", f"{len(labels)} labels", f"{self.n_bands}, one for each band")])
        taken = {NO_INTERACTION} if self.input == "train" else set()
        expected = "each label once, other than that of users without an interaction"
        again = [index for index, label in enumerate(labels) if label in labels[:index] or label in taken]
        refuse_faults([Fault(f".labels[{index}]", repr(labels[index]), expected) for index in again])
        return self

    @property
    def input(self) -> Literal["segments", "train"]:
        """Input that the numbers are of."""
        match self.of:
            case None:
                return "segments"
            case "train":
                return "train"
            case _:
                assert_never(self.of)

    @property
    def n_bands(self) -> int:
        """Number of bands, without the band of users without an interaction."""
        return len(self.edges) + 1 if self.edges is not None else self.quantiles or len(TIERS)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the bands; None where their bounds are their names."""
        if self.labels is None and self.input == "train" and self.n_bands == len(TIERS):
            return TIERS
        return self.labels

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the users below each edge, where the edges are quantiles."""
        return tuple(index / self.n_bands for index in range(1, self.n_bands))


def band_faults(
    bands: Mapping[str, Band], *, slices: Iterable[Sequence[str]], given: Collection[str]
) -> Iterator[Fault]:
    """Find bands without a slice or without their input."""
    sliced = list(dict.fromkeys(name for one in slices for name in one))
    for name in (name for name in bands if name not in sliced):
        found = f"bands of {name!r}, which no slice names"
        yield Fault(f"/bands.{name}", found, "a segment of slices", nearest(name, sliced))
    for name, band in bands.items():
        if band.input not in given:
            found = f"bands of {name!r}, but no {band.input}"
            yield Fault(f"/bands.{name}", found, f"the input {band.input}", f"add the input {band.input}")


def segments_from_train(bands: Mapping[str, Band]) -> tuple[str, ...]:
    """Names of the segments that are made of the training data."""
    return tuple(name for name, band in bands.items() if band.input == "train")
