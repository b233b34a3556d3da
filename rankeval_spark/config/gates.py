"""Rules that a model must meet before it may ship."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints, field_validator, model_validator

from rankeval_spark import columns as C
from rankeval_spark.config.base import Flag, Model, Number, fault_error, some_models_once
from rankeval_spark.config.comparisons import ModelName
from rankeval_spark.config.presets import options_of
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, group_statistics, with_cutoff
from rankeval_spark.measures.names import split_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.presets import PresetName
    from rankeval_spark.measures import MeasureSet

Kind: TypeAlias = Literal["bounds", "gain", "margin", "regression"]

KINDS: Final[dict[str, Kind]] = {
    "at_least": "bounds",
    "at_most": "bounds",
    "least_gain": "gain",
    "margin": "margin",
    "alpha": "regression",
}
"""What each key that makes a rule requires."""


class Gate(Model):
    """One rule, of one kind: bounds of the value, or one of three ways to hold it against the baseline or the past."""

    measure: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """A measure that is computed, with its cutoff, such as nDCG@10; with bounds also one of groups, such as
    GroupGap(nDCG)@10."""
    models: tuple[ModelName, ...] | None = None
    """Models that must meet it; where this is left out every one, but for the baseline where it is compared with, and
    the model that Overlap, Jaccard or RBO compares others with."""
    against: Literal["baseline", "previous"] = "baseline"
    """What a gain, a margin or a regression is measured from: the baseline on the same users, or the same model on the
    newest night that was published before."""
    slice: str = C.ALL_USERS
    """Everyone, or a segment or crossing of `slices` (`country`, `country*device`): each of its values must meet it."""
    slice_values: Annotated[tuple[str | None, ...], Field(min_length=1)] | None = None
    """One slice: a value of each segment in `slice`, such as [DE], or [DE, phone]; null is an unknown one. Every value
    of `slice` where this is left out."""
    at_least: Number | None = None
    """Least value of the mean."""
    at_most: Number | None = None
    """Greatest value of the mean."""
    least_gain: Number | None = None
    """Gain over the baseline that the whole interval must reach; below 0, a loss that is accepted."""
    margin: Annotated[Number, Field(gt=0)] | None = None
    """Not inferior: the interval of the gain must lie above minus this."""
    alpha: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """No significant regression: one-sided tests at this level, Holm over the rows of the rule."""
    relative: Flag = False
    """Whether `least_gain` and `margin` are shares of the baseline's value, such as 0.01."""

    @field_validator("models")
    @classmethod
    def _models_once(cls, models: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_models_once(models, every="leave the key out for every model")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Gate:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len({KINDS[name] for name in given}) != 1:
            expected = "one of: at_least and at_most, least_gain, margin, alpha"
            raise fault_error(Fault("", f"a rule with {' and '.join(given) or 'no bound'}", expected))
        if self.relative and self.kind not in ("gain", "margin"):
            raise fault_error(Fault(".relative", f"true beside {given[0]}", "it beside least_gain or margin"))
        if self.kind == "bounds" and self.against != "baseline":
            found, expected = f"{self.against} beside {given[0]}", "it beside least_gain, margin or alpha"
            raise fault_error(Fault(".against", found, expected))
        if self.group_kind and self.is_of_change:
            raise fault_error(Fault("", f"{given[0]} beside {self.measure}", "at_least or at_most: it is not compared"))
        if self.slice_values is not None:
            self._fit_the_slice(self.slice_values)
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            found = f"at_least {self.at_least:g} above at_most {self.at_most:g}"
            raise fault_error(Fault("", found, "the lower bound first", "exchange them"))
        return self

    def _fit_the_slice(self, values: Sequence[str | None]) -> None:
        """Refuse values of no slice, of a slicing as a whole, or not one for each segment."""
        found = f"{list(values)} beside slice {self.slice}"
        if self.is_of_slicing:
            raise fault_error(
                Fault(".slice_values", f"{list(values)} beside {self.measure}", "every value: it is left out")
            )
        n_segments = 0 if self.slice == C.ALL_USERS else len(self.slice.split(C.CROSSING))
        if not n_segments:
            raise fault_error(Fault(".slice_values", found, "the segment that they are of", "name it as slice"))
        if len(values) != n_segments:
            raise fault_error(Fault(".slice_values", found, f"{n_segments} of them, one for each segment"))

    @property
    def kind(self) -> Kind:
        """What is required."""
        return next(kind for name, kind in KINDS.items() if getattr(self, name) is not None)

    @property
    def is_of_change(self) -> bool:
        """Whether the rule is about a difference, not the value itself."""
        return self.kind != "bounds"

    @property
    def needs_baseline(self) -> bool:
        """Whether the rule holds a model against another one."""
        return self.is_of_change and self.against == "baseline"

    @property
    def needs_previous(self) -> bool:
        """Whether the rule holds a model against itself on the night before."""
        return self.is_of_change and self.against == "previous"

    @property
    def group_kind(self) -> str | None:
        """What is said of several groups together, such as GroupGap; None where the rule is about a measure."""
        parts = group_statistics.at_cutoff(self.measure)
        return None if parts is None else parts[0]

    @property
    def slice_value(self) -> str:
        """The one slice as ``metrics`` writes it, empty where the rule is about each value."""
        return C.CROSSING.join(map(C.readable_value, self.slice_values or ()))

    @property
    def is_of_slicing(self) -> bool:
        """Whether the rule is about a slicing as a whole, not about each of its values."""
        return self.group_kind in group_statistics.KINDS

    def measured(self, preset: PresetName | None) -> Measure:
        """Read the measure as the config reads its own: with the options of its preset where it says nothing else.

        Of a rule about groups, the measure of which they have values.
        """
        parts = group_statistics.at_cutoff(self.measure)
        text = self.measure if parts is None else parts[1]
        return Measure.parse(text, where=".measure", defaults=options_of(preset))

    def label(self, preset: PresetName | None) -> str:
        """Name what the rule is about as ``metrics`` does, without the cutoff."""
        return self.named(self.measured(preset).label)

    def named(self, label: str) -> str:
        """Name what the rule is about: the measure itself, or how groups differ in it."""
        return label if self.group_kind is None else group_statistics.name_of(self.group_kind, label)

    def __str__(self) -> str:
        """Write the rule for a message."""
        asked = [f"{name} {getattr(self, name):g}" for name in KINDS if getattr(self, name) is not None]
        asked += ["relative"] if self.relative else []
        where = "" if self.slice == C.ALL_USERS else f" by {self.slice}"
        if self.slice_values is not None:
            where = f", {self.slice} = {self.slice_value}"
        whose = f" of {', '.join(self.models)}" if self.models else ""
        since = " against the previous night" if self.needs_previous else ""
        return f"{self.measure}{whose}{where}: {', '.join(asked)}{since}"


def measure_faults(gate: Gate, preset: PresetName | None, computed: MeasureSet) -> list[Fault]:
    """Say whether a rule is about a measure that is not computed, or cannot be compared as it asks.

    Parameters
    ----------
    preset : str or None
        Preset of the evaluation.
    computed : MeasureSet
        Its measures.
    """
    try:
        measure = gate.measured(preset)
    except ConfigError as error:
        return list(error.faults)
    known = _known(gate, computed)
    if (measure.label, measure.k) not in known:
        expected = "a measure and cutoff that this evaluation computes"
        if gate.group_kind == group_statistics.ITEM_MAD:
            expected += " for two groups of items or more"
        written = [with_cutoff(gate.named(label), k) for label, k in known]
        return [Fault(".measure", repr(gate.measure), expected, nearest(gate.measure, written))]
    if measure.other_model in (gate.models or ()):
        found = f"{measure.other_model!r}, whose lists {gate.measure} compares others with"
        return [Fault(".models", found, "models whose lists have a value", "leave it out")]
    is_compared = measure.is_mean_of_users if gate.needs_previous else measure.column in computed.comparable
    if gate.is_of_change and not is_compared:
        kind = "a mean over users" if gate.needs_previous else "a mean or a ratio of sums over users"
        return [Fault(".measure", repr(gate.measure), f"{kind}, as only these are compared")]
    return []


def _known(gate: Gate, computed: MeasureSet) -> list[tuple[str, int]]:
    """Give label and cutoff of the measures that a rule of its kind may be about."""
    if gate.group_kind != group_statistics.ITEM_MAD:
        return [(one.label, one.k) for one in computed.measures]
    wholes = [(split_group(one.label), one.k) for one in computed.measures]
    n_groups = Counter((whole[0], k) for whole, k in wholes if whole)
    return [found for found, n in n_groups.items() if n > 1]


def slice_faults(gate: Gate, slices: Sequence[str]) -> list[Fault]:
    """Say whether a rule is about a slice that is none of those of the evaluation."""
    if gate.is_of_slicing and gate.slice == C.ALL_USERS:
        known = f"one of: {', '.join(slices)}" if slices else "a segment, but there are no slices"
        return [Fault(".slice", f"none beside {gate.measure}", known, "name the slice whose groups are compared")]
    if gate.slice in (C.ALL_USERS, *slices):
        return []
    expected = f"one of: {', '.join((C.ALL_USERS, *slices))}"
    same = [one for one in slices if sorted(one.split(C.CROSSING)) == sorted(gate.slice.split(C.CROSSING))]
    return [Fault(".slice", repr(gate.slice), expected, nearest(gate.slice, same or slices))]


def baseline_faults(gate: Gate, baseline: str | None) -> list[Fault]:
    """Say whether a rule lacks the model that others are compared with, or is about that model itself."""
    if not gate.needs_baseline:
        return []
    if baseline is None:
        fix = "name it under comparisons.baseline, or set against: previous"
        return [Fault("", f"{gate}, but no comparisons.baseline", "the model to compare with", fix)]
    if baseline in (gate.models or ()):
        return [Fault(".models", f"the baseline {baseline!r}", "models that are compared with it")]
    return []


def model_faults(gate: Gate, models: Sequence[str] | None) -> list[Fault]:
    """Name the models of a rule that are none of those of the evaluation, where these are named."""
    return [
        Fault(".models", repr(name), f"of the models: {', '.join(models)}", nearest(name, models))
        for name in gate.models or ()
        if models is not None and name not in models
    ]
