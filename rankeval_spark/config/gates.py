"""Gates: rules that a model must meet before it may ship."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from rankeval_spark import columns as C, wording
from rankeval_spark.config.base import Flag, Model, Number, Whole, refuse_faults
from rankeval_spark.config.inference import Models
from rankeval_spark.config.presets import options_of
from rankeval_spark.config.requested_measures import measures_of
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, group_statistics, with_cutoff
from rankeval_spark.measures.names import split_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rankeval_spark.config.presets import PresetName
    from rankeval_spark.measures import MeasureSet

Kind: TypeAlias = Literal["bounds", "gain", "margin", "regression"]
# Kind of rule that each key makes.
KINDS: Final[dict[str, Kind]] = {
    **{"at_least": "bounds", "at_most": "bounds"},
    **{"least_gain": "gain", "margin": "margin", "alpha": "regression"},
}

NIGHTS: Final = 30  # default of `horizon`, a month


class Gate(Model):
    """A rule of one kind: bounds of a value, or its comparison with the baseline or the previous night."""

    measure: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """A measure of the evaluation with its cutoff, such as nDCG@10. For bounds it may be a group statistic, such as
    GroupGap(nDCG)@10."""
    models: Models | None = None
    """Models that must meet the rule. Without this key: every model, except the baseline in a comparison, and except
    the model with whose lists Overlap, Jaccard or RBO compares."""
    against: Literal["baseline", "previous"] = "baseline"
    """Reference for a gain, margin or regression: `baseline` is the baseline on the same users, `previous` the
    same model on the newest night published before."""
    slice: str = C.ALL_USERS
    """All users, or a segment or crossing of `slices` (`country`, `country*device`). Each of its values must meet the
    rule."""
    slice_values: Annotated[tuple[str | None, ...], Field(min_length=1)] | None = None
    """A single value of `slice`: one entry per segment, such as [DE] or [DE, phone]; null is the unknown value. Without
    this key: every value."""
    at_least: Number | None = None
    """Lower bound of the mean."""
    at_most: Number | None = None
    """Upper bound of the mean."""
    certainty: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """Level of the interval that has to clear `at_least` and `at_most`, that of `intervals.confidence`; where it holds
    a bound, the rule is undecided. Without this key the mean itself is judged."""
    least_gain: Number | None = None
    """Gain that the lower end of its interval must reach. 0 means better: the interval lies above 0, and a copy of the
    baseline fails. A negative number allows a loss."""
    margin: Annotated[Number, Field(json_schema_extra={"exclusiveMinimum": 0})] | None = None
    """Non-inferiority: the interval of the gain must lie above minus this margin, which is above 0."""
    alpha: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """No significant regression: one-sided tests at this level, with Holm's correction over the rows of the rule."""
    relative: Flag = False
    """Whether `least_gain` or `margin` is a share of the baseline's value, such as 0.01."""
    sequential: Flag = False
    """Whether the errors of `least_gain`, `margin` or `alpha` hold for all of `horizon` nights together instead of each
    night alone: a night is judged at `alpha` / `horizon`, or by an interval with that share of the error."""
    horizon: Annotated[Whole, Field(ge=2, le=1000)] = NIGHTS
    """Nights in a row for which the errors of a `sequential` rule hold."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Gate:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len({KINDS[name] for name in given}) != 1:
            expected = "one of: at_least and at_most, least_gain, margin, alpha"
            refuse_faults([Fault("", f"a rule with {' and '.join(given) or 'no bound'}", expected)])
        refuse_faults([*self._key_faults(given[0]), *self._slice_value_faults()][:1])
        return self

    def _key_faults(self, rule: str) -> Iterator[Fault]:
        """Find keys that do not apply to the rule that the key ``rule`` makes."""
        if self.margin is not None and self.margin <= 0:
            expected = "a loss above 0 that is allowed"
            fix = "set least_gain: 0 to ask for a gain" if self.margin == 0 else f"set margin: {-self.margin:g}"
            yield Fault(".margin", f"{self.margin:g}", expected, fix)
        if self.certainty is not None and self.kind != "bounds":
            found = f"certainty with {rule}"
            fix = "remove it: the interval is judged already" if self.kind != "regression" else "remove it"
            yield Fault(".certainty", found, "certainty only with at_least or at_most", fix)
        if self.certainty is not None and self.group_kind in {group_statistics.USER_MAD, group_statistics.ITEM_MAD}:
            found = f"certainty with {self.measure}, which has no interval"
            yield Fault(".certainty", found, "a measure with an interval", "remove it, or bound GroupGap")
        if self.relative and self.kind not in ("gain", "margin"):
            yield Fault(".relative", f"relative with {rule}", "relative only with least_gain or margin", "remove it")
        of_gains = {
            "sequential": "sequential" if self.sequential else "",
            "against": "" if self.against == "baseline" else f"against: {self.against}",
        }
        for key, found in of_gains.items() if self.kind == "bounds" else ():
            if found:
                expected = f"{key} only with least_gain, margin or alpha"
                yield Fault(f".{key}", f"{found} with {rule}", expected, "remove it")
        # A recorded config has every key, with its default where it was not given.
        is_given = "horizon" in self.model_fields_set and "sequential" not in self.model_fields_set
        if not self.sequential and (is_given or self.horizon != NIGHTS):
            expected = "sequential: true next to it, without which it has no effect"
            yield Fault(".horizon", f"horizon {self.horizon} alone", expected, "set sequential: true")
        if self.group_kind and self.is_comparison:
            fix = "group statistics are not compared"
            yield Fault("", f"{rule} with {self.measure}", "at_least or at_most", fix)
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            found = f"at_least {self.at_least:g} above at_most {self.at_most:g}"
            yield Fault("", found, "the lower bound first", "exchange them")

    def _slice_value_faults(self) -> Iterator[Fault]:
        """Find values that the slice does not have, or that the rule does not read."""
        if self.slice_values is not None:
            n_segments = 0 if self.slice == C.ALL_USERS else len(self.slice.split(C.CROSSING))
            of = self.measure if self.compares_groups else f"slice {self.slice}"
            found = f"slice_values {list(self.slice_values)} with {of}"
            if self.compares_groups:
                expected = "no slice_values, because the rule compares all values"
                yield Fault(".slice_values", found, expected, "remove it")
            elif n_segments == 0:
                yield Fault(".slice_values", found, "the segment that has these values", "name it as slice")
            elif len(self.slice_values) != n_segments:
                yield Fault(".slice_values", found, f"one value per segment, {n_segments} in all")

    @property
    def kind(self) -> Kind:
        """Kind of the rule."""
        return next(kind for name, kind in KINDS.items() if getattr(self, name) is not None)

    @property
    def is_comparison(self) -> bool:
        """True if the rule is about a difference instead of a value."""
        return self.kind != "bounds"

    @property
    def needs_baseline(self) -> bool:
        """True if the rule compares a model with another one."""
        return self.is_comparison and self.against == "baseline"

    @property
    def needs_previous(self) -> bool:
        """True if the rule compares a model with itself on the previous night."""
        return self.is_comparison and self.against == "previous"

    @property
    def error_share(self) -> float:
        """Share of the rule's error that a single night may spend."""
        return 1 / self.horizon if self.sequential else 1.0

    @property
    def group_kind(self) -> str | None:
        """Group statistic of the rule, such as GroupGap; None for a measure."""
        parts = group_statistics.at_cutoff(self.measure)
        return None if parts is None else parts[0]

    @property
    def slice_value(self) -> str:
        """Slice value as ``metrics`` writes it; empty where the rule is about every value."""
        return C.CROSSING.join(map(C.readable_value, self.slice_values or ()))

    @property
    def compares_groups(self) -> bool:
        """True if the rule compares all values of a slice with each other."""
        return self.group_kind in group_statistics.KINDS

    def parse_measure(self, preset: PresetName | None) -> Measure:
        """Parse the measure with the options of the preset; for a group statistic, the measure that it is about."""
        parts = group_statistics.at_cutoff(self.measure)
        text = self.measure if parts is None else parts[1]
        return Measure.parse(text, where=".measure", defaults=options_of(preset))

    def label(self, preset: PresetName | None) -> str:
        """Return the measure or group statistic as ``metrics`` writes it, without the cutoff."""
        return self.full_name(self.parse_measure(preset).label)

    def full_name(self, label: str) -> str:
        """Return the measure or group statistic as ``metrics`` writes it, from the label of the measure."""
        return label if self.group_kind is None else group_statistics.name_of(self.group_kind, label)

    @property
    def meaning(self) -> str:
        """The rule in words, such as ``better than the baseline: ...``."""
        if not self.is_comparison:
            if self.certainty is None:
                return "the mean itself meets the bound, whatever its interval"
            return (
                f"the whole {100 * self.certainty:g} % interval meets the bound; undecided, and not met, if it holds it"
            )
        nights = f"; its error holds for {self.horizon} nights in a row" if self.sequential else ""
        return f"{self._meaning_of_a_night}{nights}"

    @property
    def _meaning_of_a_night(self) -> str:
        """A rule of a gain in words, of a single night."""
        other = "itself on the previous night" if self.needs_previous else "the baseline"
        of_base = f" of the value of {other}" if self.relative else ""
        if self.margin is not None:
            return f"not worse than {other} by {self.margin:g}{of_base}: the interval of the gain lies above minus that"
        if self.alpha is not None:
            return f"no loss to {other} that a test finds; few users pass easily"
        gain = self.least_gain or 0.0
        if gain == 0:
            return f"better than {other}: the interval of the gain lies above 0, and an equal model fails"
        words = f"better than {other} by at least" if gain > 0 else f"worse than {other} by at most"
        return f"{words} {abs(gain):g}{of_base}, with the whole interval of the gain"

    @property
    def title(self) -> str:
        """The rule as a short sentence, such as ``No age band gets worse in nDCG@10``."""
        named = "model" if self.needs_previous or not self.is_comparison else "candidate"
        prefix = ""
        if self.slice != C.ALL_USERS and not self.compares_groups:
            named = wording.crossed(self.slice).replace("_", " ")
            prefix = f"{wording.listed(self.models)}: " if self.models else ""
        one = "" if self.models is None or prefix else wording.listed(self.models)
        if self.slice_values is not None:
            one = wording.slice_name(self.slice, self.slice_value)
        is_several = not prefix and self.slice_values is None and len(self.models or ()) > 1
        since = " since the previous night" if self.needs_previous else ""

        def amount(bound: float) -> str:
            return f"{100 * bound:.4g} %" if self.relative else f"{bound:.4g}"

        def say(verb: str, verbs: str, rest: str = "", *, without: str = "") -> str:
            """Write what every one does; or, by ``without``, what none of them does."""
            if one:
                return f"{prefix}{one} {verbs if is_several else verb}{rest}{since}"
            return f"{prefix}{f'No {named} {without}' if without else f'Every {named} {verb}{rest}'}{since}"

        of = f" in {self.measure}"
        if self.alpha is not None:
            return say("does", "do", f" not get worse{of}", without=f"gets worse{of}")
        if self.margin is not None:
            rest, lost = f" less than {amount(self.margin)}{of}", f"loses {amount(self.margin)} or more{of}"
            return say("loses", "lose", rest, without=lost)
        if self.least_gain == 0:
            return say("is", "are", f" better{of}")
        if self.least_gain is not None:
            bound = f"{amount(abs(self.least_gain))}{of}"
            if self.least_gain > 0:
                return say("gains", "gain", f" at least {bound}")
            return say("loses", "lose", f" at most {bound}", without=f"loses more than {bound}")
        ends = [
            f"at {name} {bound:.4g}"
            for name, bound in (("least", self.at_least), ("most", self.at_most))
            if bound is not None
        ]
        by = f" by {self.slice}" if self.compares_groups else ""
        certain = "" if self.certainty is None else f", with {100 * self.certainty:g} % certainty"
        return say("has", "have", f" {self.measure}{by} of {' and '.join(ends)}{certain}")

    def __str__(self) -> str:
        """Write the rule for a message."""
        parts = [f"{name} {getattr(self, name) + 0.0:g}" for name in KINDS if getattr(self, name) is not None]
        parts += ["relative"] if self.relative else []
        parts += [] if self.certainty is None else [f"certainty {self.certainty:g}"]
        parts += [f"sequential over {self.horizon} nights"] if self.sequential else []
        where = "" if self.slice == C.ALL_USERS else f" by {self.slice}"
        if self.slice_values is not None:
            where = f", {wording.slice_name(self.slice, self.slice_value)}"
        models = f" of {', '.join(self.models)}" if self.models else ""
        against = " against the previous night" if self.needs_previous else ""
        return f"{self.measure}{models}{where}: {', '.join(parts)}{against}"


def gate_faults(gate: Gate, keys: Mapping[str, Any]) -> list[Fault]:
    """Find a rule about a measure, slice, baseline or model that the evaluation, by its valid keys, does not have."""
    faults = []
    if measures := measures_of(keys):
        faults += _measure_faults(gate, keys["preset"], measures)
    if gate.needs_previous and not faults and "inputs" in keys and keys["inputs"].user_weights is not None:
        found = f"{gate.measure}, whose users have weights"
        faults.append(Fault(".against", found, "means without inputs.user_weights", "compare with the baseline"))
    if "slices" in keys:
        faults += _slice_faults(gate, [C.CROSSING.join(names) for names in keys["slices"]])
    if gate.certainty is not None and "intervals" in keys and gate.certainty != keys["intervals"].confidence:
        expected = f"{keys['intervals'].confidence:g}, the level of the published intervals"
        fix = f"set intervals.confidence: {gate.certainty:g}"
        faults.append(Fault(".certainty", f"{gate.certainty:g}", expected, fix))
    if "comparisons" in keys and gate.needs_baseline:
        comparisons = keys["comparisons"]
        baseline = comparisons.baseline if comparisons else None
        if baseline is None:
            fix = "name it under comparisons.baseline, or set against: previous"
            faults.append(Fault("", f"{gate}, but no comparisons.baseline", "the model to compare with", fix))
        elif baseline in (gate.models or ()):
            found = f"the baseline {baseline!r}"
            faults.append(Fault(".models", found, "models that are compared with it", "leave it out"))
    models = keys.get("models") or (keys["inputs"].recommendations.paths if "inputs" in keys else None)
    if models:
        expected = f"one of the models: {', '.join(models)}"
        unknown = [name for name in gate.models or () if name not in models]
        faults += [Fault(".models", repr(name), expected, nearest(name, [*models])) for name in unknown]
    return faults


def _measure_faults(gate: Gate, preset: PresetName | None, computed: MeasureSet) -> list[Fault]:
    """Find a rule about a measure that is not computed, cannot be compared, or lacks the better side it needs."""
    try:
        measure = gate.parse_measure(preset)
    except ConfigError as error:
        return list(error.faults)
    computed_columns = [(other.label, other.k) for other in computed.measures]
    if gate.group_kind == group_statistics.ITEM_MAD:  # of measures with two groups of items or more
        wholes = [(split_group(label), k) for label, k in computed_columns]
        n_groups = Counter((whole[0], k) for whole, k in wholes if whole)
        computed_columns = [found for found, n in n_groups.items() if n > 1]
    if (measure.label, measure.k) not in computed_columns:
        expected = "a measure and cutoff that this evaluation computes"
        if gate.group_kind == group_statistics.ITEM_MAD:
            expected += " for two groups of items or more"
        written = [with_cutoff(gate.full_name(label), k) for label, k in computed_columns]
        return [Fault(".measure", repr(gate.measure), expected, nearest(gate.measure, written))]
    if measure.other_model in (gate.models or ()):
        found = f"{measure.other_model!r}, with whose lists {gate.measure} compares"
        return [Fault(".models", found, "models that have a value", "leave it out")]
    is_compared = measure.is_mean_of_users if gate.needs_previous else measure.column in computed.comparable
    if gate.is_comparison and not is_compared:
        kind = "a mean over users" if gate.needs_previous else "a mean or a ratio of sums over users"
        return [Fault(".measure", repr(gate.measure), f"{kind}; other measures are not compared", "set at_least")]
    why = f"{gate.measure}, where neither the higher nor the lower value is better"
    faults = []
    if measure.better == "neither" and gate.is_comparison:
        rule = next(name for name in KINDS if getattr(gate, name) is not None)
        faults.append(Fault("", f"{rule} with {why}", "at_least or at_most", "set bounds of the value"))
    elif measure.better == "neither" and gate.group_kind == group_statistics.WORST_GROUP:
        gap = with_cutoff(group_statistics.name_of(group_statistics.GROUP_GAP, measure.label), measure.k)
        faults.append(Fault(".measure", why, "GroupGap, GroupRatio or UserMAD", f"set at_most for {gap}"))
    return faults


def _slice_faults(gate: Gate, slices: Sequence[str]) -> list[Fault]:
    """Find a rule about a slice that the evaluation does not have."""
    if gate.compares_groups and gate.slice == C.ALL_USERS:
        expected = f"one of: {', '.join(slices)}" if slices else "a segment, but the evaluation has no slices"
        return [Fault(".slice", f"no slice for {gate.measure}", expected, "name the slice whose groups are compared")]
    if gate.slice in (C.ALL_USERS, *slices):
        return []
    expected = f"one of: {', '.join((C.ALL_USERS, *slices))}"
    segments = sorted(gate.slice.split(C.CROSSING))
    same = [name for name in slices if sorted(name.split(C.CROSSING)) == segments]
    return [Fault(".slice", repr(gate.slice), expected, nearest(gate.slice, same or slices))]
