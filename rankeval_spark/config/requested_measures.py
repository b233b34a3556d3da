"""Measures that a request computes (texts, cutoffs and item slices), what does not fit them, and what runs recorded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, assert_never

from rankeval_spark import columns as C
from rankeval_spark.config.policies import Policies, tie_rule
from rankeval_spark.config.presets import options_of
from rankeval_spark.errors import ConfigError, Fault, InputError, listed, nearest
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.measures.names import expand_name
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.plugins import DEFINING, recall, record
from rankeval_spark.measures.required_facts import (
    GROUP_RELEVANT,
    JUDGED_CATEGORIES,
    PROFILE_UNJUDGED,
    PROPENSITIES,
    rule_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

WHOLE_LIST_WORD: Final = "all"  # the cutoff that means the whole list in a config
_OF_ALL_JUDGEMENTS: Final = frozenset(
    {GROUP_RELEVANT, JUDGED_CATEGORIES, PROFILE_UNJUDGED}
)  # facts made of all judgements of a user
_BOUNDED: Final = (
    "measures for which ordering ties by gain is best or worst (not group=, gains='value', unjudged='mean' or "
    "'median', denom='hits', ideal='retrieved', FirstHit, or measures that read other facts of the items)"
)


def measures_of(keys: Mapping[str, Any]) -> MeasureSet | None:
    """Return the measures of a request from the values of its valid keys; None where a key of measures is not valid."""
    if not keys.keys() >= {"preset", "cutoffs", "measures", "slicing"}:
        return None
    return measure_set(keys["measures"], keys["cutoffs"], keys["preset"], keys["slicing"].item_slices)


def measure_set(
    texts: tuple[str, ...], cutoffs: tuple[int | str, ...], preset: str | None, item_slices: tuple[str, ...] = ()
) -> MeasureSet:
    """Combine measures, cutoffs and item slices, each measure once; ConfigError with all faults of the texts."""
    # A function of a notebook may hold much, and another one has its name when its cell runs again: none is remembered.
    combine = _measure_set.__wrapped__ if registry.own_measures() else _measure_set
    return combine(texts, cutoffs, preset, item_slices)


@lru_cache(maxsize=64)  # every check of a request reads them
def _measure_set(
    texts: tuple[str, ...], cutoffs: tuple[int | str, ...], preset: str | None, item_slices: tuple[str, ...]
) -> MeasureSet:
    measures: list[Measure] = []
    faults: list[Fault] = []
    for index, text in enumerate(texts):
        try:
            for each in expand_name(text):
                measures += _parse_at_cutoffs(each, cutoffs, preset)
        except ConfigError as error:
            faults += measure_faults(error, text, where=f"[{index}]")
    if faults:
        raise ConfigError(*faults)
    try:
        return with_item_slices(MeasureSet.of(measures), item_slices)
    except ConfigError as error:
        raise ConfigError(*(replace(fault, where="") for fault in error.faults)) from None


def measure_faults(error: ConfigError, text: str, *, where: str = "") -> list[Fault]:
    """Return the faults of a measure, each with the text of the measure."""
    return [
        replace(fault, where=where, found=fault.found if text.strip() in fault.found else f"{fault.found} in {text!r}")
        for fault in error.faults
    ]


def read_measure(text: str, preset: str | None) -> Measure | None:
    """Read a measure; None where only its cutoff is missing."""
    defaults = options_of(preset)
    try:
        return Measure.parse(text, defaults=defaults)
    except ConfigError as error:
        try:
            Measure.parse(f"{text}@1", defaults=defaults)
        except ConfigError:
            raise error from None
        return None


def _parse_at_cutoffs(text: str, cutoffs: Sequence[int | str], preset: str | None) -> list[Measure]:
    """Return a measure at the cutoffs that it supports: P needs one, other measures have only the whole list."""
    measure = read_measure(text, preset)
    if measure is None:
        ks = [k for k in cutoffs if k != WHOLE_LIST_WORD]
        defaults = options_of(preset)
        return [Measure.parse(at, defaults=defaults) for at in [f"{text}@{k}" for k in ks] or [text]]
    if measure.k != C.WHOLE_LIST:
        return [measure]
    supported = []
    for k in cutoffs:
        with suppress(ConfigError):
            supported.append(measure.at(C.WHOLE_LIST if k == WHOLE_LIST_WORD else int(k)))
    return supported or [measure]


def with_item_slices(measures: MeasureSet, item_slices: Sequence[str]) -> MeasureSet:
    """Add each measure that reads judgements once per group of items, by its option ``group``.

    ConfigError where no measure has this option, or there are too many groups.

    >>> measures = with_item_slices(MeasureSet.parse(["R@5", "ItemCoverage@5"]), ["drama"])
    >>> [str(measure) for measure in measures.measures]
    ['R@5', 'ItemCoverage@5', "R(group='drama')@5"]
    """
    whole = [measure for measure in measures.measures if GROUP in measure.options and measure.group is None]
    if item_slices and not whole:
        labels = dict.fromkeys(measure.label for measure in measures.measures)
        found = f"{', '.join(labels)}, none of which reads judgements"
        raise ConfigError(Fault("", found, "a measure that can be restricted to a group of items, such as R@10"))
    within = [
        Measure.of(measure.name, k=measure.k, **{**measure.options, GROUP: group})
        for group in item_slices
        for measure in whole
    ]
    return MeasureSet.of([*measures.measures, *within])


def tie_faults(measures: MeasureSet, ties: str) -> list[Fault]:
    """Find measures that the policy for ties does not support: no mean over all orders, or no bounds by gain."""
    match tie_rule(ties).value:
        case "mean":
            known = ", ".join(entry.name for entry in registry.entries() if entry.has_mean_over_ties)
            expected = (
                f"measures with a mean over all orders of ties: {known} (not with denom='hits' or ideal='retrieved')"
            )
            refused = [measure for measure in measures.measures if not measure.has_mean_over_ties]
        case "bound":
            expected = _BOUNDED
            refused = [measure for measure in measures.measures if not measure.is_bounded_by_gains]
        case "order" | "refused":
            return []
        case value:
            assert_never(value)
    faults = {}
    for measure in refused:
        other = "item_asc"
        if measure.has_mean_over_ties:
            other = "expected for its mean over all orders"
        elif GROUP in measure.options and measure.is_bounded_by_gains:  # other measures do not depend on gains
            other = "optimistic and pessimistic for its bounds"
        fix = f"leave it out, or choose other ties, such as {other}"
        faults[measure.label] = Fault("/measures", f"{measure.label} with ties {ties!r}", expected, fix)
    return [*faults.values()]


def judgement_faults(measures: MeasureSet, policies: Policies) -> list[Fault]:
    """Find measures that do not go with whose judgements count: by time of a list, or without a reward."""
    faults = []
    for measure in measures.measures:
        if policies.is_attributed and not _OF_ALL_JUDGEMENTS.isdisjoint(measure.needs):
            found = f"{measure.label} with attribution {policies.attribution!r}"
            expected = "measures of the judgements of a list; this one reads all judgements of a user"
            faults.append(Fault("/measures", found, expected, "leave it out, or evaluate it without attribution"))
        if policies.population != "judged" and PROPENSITIES in measure.needs:
            found = f"{measure.label} with population {policies.population!r}"
            expected = "population 'judged', because impressions without a reward count too"
            faults.append(Fault("/measures", found, expected, "set population to judged"))
    return faults


def primary_faults(texts: object, measures: MeasureSet, preset: str | None) -> list[Fault]:
    """Find primary measures that cannot be read, are not computed at their cutoff, or cannot be compared."""
    faults, compared = list[Fault](), [str(each) for each in measures.measures if each.column in measures.comparable]
    for index, text in enumerate(texts if isinstance(texts, list | tuple) else ()):
        where = f".primary[{index}]"
        try:
            measure = Measure.parse(text, defaults=options_of(preset)) if isinstance(text, str) else None
        except ConfigError:
            measure = None  # unknown, or without the cutoff that it needs
        if str(measure) in compared or not isinstance(text, str):
            continue
        expected = "a measure and cutoff that this evaluation compares"
        if measure in measures.measures:
            expected = "a mean or a ratio of sums over users; other measures are not compared"
        label = text.rpartition("@")[0] or text
        fix = next((f"write {each}" for each in compared if each.startswith(f"{label}@")), nearest(text, compared))
        faults.append(Fault(where, repr(text), f"{expected}: {listed(text, compared)}", fix))
    return faults


def model_faults(measures: MeasureSet, models: Collection[str]) -> list[Fault]:
    """Find measures that compare with the lists of a model that is not among the named models."""
    others = {measure.label: measure.other_model for measure in measures.per_list}
    expected = f"one of the models: {', '.join(models)}"
    return [
        Fault("/measures", f"model {name!r} in {label}", expected, nearest(name, models))
        for label, name in others.items()
        if name is not None and name not in models
    ]


@dataclass(frozen=True)
class RecordedDefinition:
    """Definition of a measure, as a run computed it: values of two nights compare where they are the same."""

    name: str  # canonical, without options
    options: Mapping[str, str]  # every option that has a value, as text
    policies: Mapping[str, str] = field(default_factory=dict)  # every policy of the run, as text
    group_rule: str | None = None  # which items belong to the item group; None for all items
    own: Mapping[str, str] = field(default_factory=dict)  # of an own measure, what makes it another one
    described: Mapping[str, str] = field(default_factory=dict, compare=False)  # what else is recorded of it

    @classmethod
    def from_measure(cls, measure: Measure, policies: Policies) -> RecordedDefinition:
        """Describe a measure under the policies of a run."""
        values = {name: str(value) for name, value in policies.model_dump().items()}
        rule = None if measure.group is None else rule_of(measure.group)
        return cls(measure.name, measure.recorded_options, values, rule, *_split_own(record(measure.entry, measure)))

    def measure(self, k: int) -> Measure:
        """Return the measure at a cutoff; an :class:`UnknownMeasureError` if this version does not know it."""
        entry = recall(self.name, {**self.own, **self.described}) if self.own else None
        return Measure.recorded(self.name, self.options, k, entry)

    def differences_from(self, other: RecordedDefinition) -> list[str]:
        """List the name, options, policies and rule that another definition does not have."""
        parts = [self.name] if self.name != other.name else []
        parts += [f"{name}={value}" for name, value in self.options.items() if other.options.get(name) != value]
        parts += [f"{name}={value}" for name, value in self.policies.items() if other.policies.get(name) != value]
        parts += [f"{name}={value}" for name, value in self.own.items() if value and other.own.get(name) != value]
        has_other_group = self.group_rule and self.group_rule != other.group_rule
        return [*parts, f"group: {self.group_rule}"] if has_other_group else parts

    def __str__(self) -> str:
        """Write it for people: ``P(rel=1, agg=macro, denom=k); population=truth, ties=item_asc``."""
        options, policies = (
            ", ".join(f"{name}={value}" for name, value in values.items()) for values in (self.options, self.policies)
        )
        group = f"group: {self.group_rule}" if self.group_rule else ""
        return "; ".join(filter(None, (f"{self.name}({options})" if options else self.name, policies, group)))


def recorded_definitions(run: Mapping[str, Any]) -> dict[tuple[str, int], RecordedDefinition]:
    """Read the definitions in a row of ``runs``, by the measure's name in the tables and the cutoff.

    A policy that came with a later version counts as its default. InputError where an earlier build published the run
    and recorded definitions as text.
    """
    recorded = run.get("measures") or ()
    if "policies" not in run or any(not {"name", "options", "group_rule"} <= row.keys() for row in recorded):
        where = f"results, run {run.get(C.RUN_ID)} of {run.get(C.EVALUATION_DATE)}"
        found = f"definitions as rankeval-spark {run.get('code_version')} recorded them at that time"
        fix = "set results.root to a new folder and run the dates again"
        raise InputError(Fault(where, found, "the columns policies and measures of this version", fix))
    recall_own(run)
    later = {name: str(value) for name, value in Policies().model_dump().items()}
    policies = {**later, **dict(run["policies"])} if run["policies"] else {}
    return {
        (row["measure"], row["k"]): RecordedDefinition(
            row["name"],
            dict(row["options"] or {}),
            policies,
            row["group_rule"],
            *_split_own(dict(row.get("own") or {})),
        )
        for row in recorded
    }


def recall_own(run: Mapping[str, Any]) -> None:
    """Make the own measures of a row of ``runs`` known by their names, by what it recorded of them."""
    for row in run.get("measures") or ():
        if facts := row.get("own"):
            recall(row["name"], dict(facts))


def _split_own(facts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split what is recorded of an own measure: what defines it, and what only describes it."""
    defining = {name: facts[name] for name in DEFINING if name in facts}
    return defining, {name: text for name, text in facts.items() if name not in DEFINING}
