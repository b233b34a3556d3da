"""Measures that a config requests, and checks across its keys: inputs, measures, policies, slices, gates fit together.

Each check is called at the last key that it reads, with the valid values of the keys before it
(``ValidationInfo.data`` of pydantic). If one of those is missing, because it is not valid itself, the check is skipped.
``where`` of a fault is relative to the key at which the function is called; with a leading ``/`` it is another key.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.config import gates as gating, inference
from rankeval_spark.config.inference import Band, segments_from_train
from rankeval_spark.config.policies import TIES_BY_GAIN, lacking_inputs
from rankeval_spark.config.presets import measure_gap_faults, options_of
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.required_facts import GROUP_RELEVANT, JUDGED_CATEGORIES, PROPENSITIES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rankeval_spark.config.gates import Gate
    from rankeval_spark.config.inputs import Inputs
    from rankeval_spark.config.policies import Policies
    from rankeval_spark.config.presets import MeasureOptions

WHOLE_LIST_WORD: Final = "all"  # the cutoff that means the whole list in a config

_OF_ALL_JUDGEMENTS: Final = frozenset({GROUP_RELEVANT, JUDGED_CATEGORIES})
"""Facts that are made of all judgements of a user."""

_BOUNDED: Final = (
    "measures for which ordering ties by gain is best or worst (not group=, gains='value', unjudged='mean' or "
    "'median', AP(denom='hits'), ideal='retrieved', FirstHit, or measures that read other facts of the items)"
)


def measure_set(
    texts: Sequence[str], cutoffs: Sequence[int | str], *, defaults: MeasureOptions = MappingProxyType({})
) -> MeasureSet:
    """Combine measures and cutoffs; a measure that occurs twice counts once.

    ``defaults`` are the options of a preset. ConfigError with all faults, ``where`` relative to the list of measures.
    """
    measures: list[Measure] = []
    faults: list[Fault] = []
    for index, text in enumerate(texts):
        try:
            measures += _at_cutoffs(_read(text, defaults), cutoffs, defaults)
        except ConfigError as error:
            faults += (_place(fault, f"[{index}]", text) for fault in error.faults)
    if faults:
        raise ConfigError(*faults)
    try:
        return MeasureSet.of(measures)
    except ConfigError as error:
        raise ConfigError(*(Fault("", fault.found, fault.expected, fault.fix) for fault in error.faults)) from None


def with_item_slices(measures: MeasureSet, item_slices: Sequence[str]) -> MeasureSet:
    """Add each measure that reads judgements once per group of items, by its option ``group``.

    ConfigError where no measure has this option, or there are too many groups.

    >>> measures = with_item_slices(MeasureSet.parse(["R@5", "ItemCoverage@5"]), ["drama"])
    >>> [str(one) for one in measures.measures]
    ['R@5', 'ItemCoverage@5', "R(group='drama')@5"]
    """
    whole = [one for one in measures.measures if GROUP in one.options and one.group is None]
    if item_slices and not whole:
        labels = dict.fromkeys(one.label for one in measures.measures)
        found = f"{', '.join(labels)}, none of which reads judgements"
        raise ConfigError(Fault("", found, "a measure that can be restricted to a group of items, such as R@10"))
    within = [Measure.of(one.name, k=one.k, **{**one.options, GROUP: group}) for group in item_slices for one in whole]
    return MeasureSet.of([*measures.measures, *within])


def tie_faults(measures: MeasureSet, ties: str) -> list[Fault]:
    """Find measures that the policy for ties does not support: no mean over all orders, or no bounds by gain."""
    if ties == "expected":
        known = ", ".join(entry.name for entry in registry.entries() if entry.ties.has_mean)
        expected = f"measures with a mean over all orders of ties: {known} (not AP(denom='hits'), ideal='retrieved')"
        supported = {one for one in measures.measures if one.has_mean_over_ties}
    elif ties in TIES_BY_GAIN:
        expected, supported = _BOUNDED, {one for one in measures.measures if one.is_bounded_by_gains}
    else:
        return []
    refused = {one.label: _other_ties(one) for one in measures.measures if one not in supported}
    return [Fault("", f"{label} with ties {ties!r}", expected, fix) for label, fix in refused.items()]


def judgement_faults(measures: MeasureSet, policies: Policies) -> list[Fault]:
    """Find measures that do not go with whose judgements count: by time of a list, or without a reward."""
    faults = []
    for one in measures.measures:
        if policies.is_attributed and not _OF_ALL_JUDGEMENTS.isdisjoint(one.needs):
            found = f"{one.label} with attribution {policies.attribution!r}"
            expected = "measures of the judgements of a list; this one reads all judgements of a user"
            faults.append(Fault("", found, expected, "leave it out, or evaluate it without attribution"))
        if policies.population != "judged" and PROPENSITIES in one.needs:
            found = f"{one.label} with population {policies.population!r}"
            expected = "population 'judged', because impressions without a reward count too"
            faults.append(Fault("", found, expected, "set population to judged"))
    return faults


def model_faults(measures: MeasureSet, models: Sequence[str] | None) -> list[Fault]:
    """Find measures that compare with the lists of a model that is not among the named models."""
    if models is None:
        return []
    unknown = {one.label: one.other_model for one in measures.per_list if one.other_model not in (None, *models)}
    return [
        Fault("", f"model {name!r} in {label}", f"one of the models: {', '.join(models)}", nearest(name or "", models))
        for label, name in unknown.items()
    ]


def check(text: str, *, defaults: MeasureOptions = MappingProxyType({})) -> list[Fault]:
    """Return the faults of a measure by itself, before its cutoffs are known."""
    try:
        _read(text, defaults)
    except ConfigError as error:
        return [_place(fault, "", text) for fault in error.faults]
    return []


def _other_ties(measure: Measure) -> str:
    """Suggest a policy for ties that supports the measure."""
    if measure.has_mean_over_ties:
        return "leave it out, or choose other ties, such as expected for its mean over all orders"
    if GROUP in measure.options and measure.is_bounded_by_gains:  # other measures do not depend on gains
        return "leave it out, or choose other ties, such as optimistic and pessimistic for its bounds"
    return "leave it out, or choose other ties, such as item_asc"


def _read(text: str, defaults: MeasureOptions) -> Measure | str:
    """Read a measure; return the text unchanged where only its cutoff is missing."""
    try:
        return Measure.parse(text, defaults=defaults)
    except ConfigError as error:
        try:
            Measure.parse(f"{text}@1", defaults=defaults)
        except ConfigError:
            raise error from None
        return text


def _at_cutoffs(measure: Measure | str, cutoffs: Sequence[int | str], defaults: MeasureOptions) -> list[Measure]:
    """Return a measure at the cutoffs that it supports: P needs one, other measures have only the whole list."""
    if isinstance(measure, str):
        ks = [k for k in cutoffs if k != WHOLE_LIST_WORD]
        return [Measure.parse(at, defaults=defaults) for at in [f"{measure}@{k}" for k in ks] or [measure]]
    if measure.k != WHOLE_LIST:
        return [measure]
    found = []
    for k in cutoffs:
        with suppress(ConfigError):
            found.append(measure.at(WHOLE_LIST if k == WHOLE_LIST_WORD else int(k)))
    return found or [measure]


def _place(fault: Fault, where: str, text: str) -> Fault:
    found = fault.found if text.strip() in fault.found else f"{fault.found} in {text!r}"
    return Fault(where, found, fault.expected, fault.fix)


Keys: TypeAlias = Mapping[str, Any]  # values of the valid keys

_OF_MEASURES: Final = ("preset", "cutoffs", "measures")
_OF_ALL_MEASURES: Final = (*_OF_MEASURES, "item_slices")  # keys that together say what is measured


def segment_faults(bands: Mapping[str, Band], keys: Keys) -> list[Fault]:
    """Find slices and bands without their input; called at ``bands``."""
    if not _has(("inputs", "slices"), keys):
        return []
    slices, made, faults = keys["slices"], segments_from_train(bands), []
    if keys["inputs"].segments is None and any(name not in made for one in slices for name in one):
        fix = "add inputs.segments"
        if any("activity" in one for one in slices):
            fix += ", or bands: {activity: {of: train}} for the activity in the training data"
        faults = [Fault("/slices", "slices, but no inputs.segments", "an input with the users' segments", fix)]
    found = inference.band_faults(bands, slices=slices, given=_given(keys["inputs"]))
    return [*faults, *(replace(fault, where=f".{name}") for name, fault in found)]


def measure_faults(item_slices: Sequence[str], keys: Keys) -> list[Fault]:
    """Find measures without their input, or that contradict a policy; called at ``item_slices``."""
    if not _has(_OF_MEASURES, keys):
        return []
    try:
        measures = requested_measures({**keys, "item_slices": item_slices})
    except ConfigError as error:  # the measures themselves are valid, so the fault is in the item slices
        return [replace(fault, where="") for fault in error.faults]
    faults = []
    if "inputs" in keys:
        given = _given(keys["inputs"])
        faults += [
            Fault("", f"{', '.join(labels)}, but no inputs.{name}", "the input", f"add inputs.{name}")
            for name, labels in measures.lacking(["evaluation_date", *given]).items()
        ]
        needing = dict.fromkeys(one.label for one in measures.measures if one.needs_catalogue)
        if needing and not {"items", "train"} & {*given}:
            found = f"{', '.join(needing)}, but no catalogue"
            faults.append(Fault("", found, "inputs.items, or inputs.train", "add inputs.items"))
    if "models" in keys:
        faults += model_faults(measures, _models(keys))
    if "policies" in keys:
        faults += tie_faults(measures, keys["policies"].ties)
        faults += judgement_faults(measures, keys["policies"])
        faults += measure_gap_faults(measures, keys["policies"], keys["preset"])
    return [replace(fault, where="/measures") for fault in faults]


def policy_faults(policies: Policies, keys: Keys) -> list[Fault]:
    """Find policies that need an input that is missing, and settings of inputs that need a policy; at ``policies``."""
    if "inputs" not in keys:
        return []
    inputs = keys["inputs"]
    faults = [
        Fault(
            f".{name}",
            f"{name} 'drop', but no {' or '.join(f'inputs.{one}' for one in names)}",
            "the input that says which items to drop",
            f"add inputs.{names[0]}, or set {name} to keep",
        )
        for name, names in lacking_inputs(policies, _given(inputs)).items()
    ]
    grace = inputs.held_out.late_data_grace
    if grace is not None and not policies.is_attributed:
        found, fix = f"{grace!r} with attribution 'none'", "set policies.attribution, or remove it"
        faults.append(Fault("/inputs.held_out.late_data_grace", found, "a way of attribution", fix))
    if C.LIST_ID in inputs.held_out.columns and policies.is_attributed and policies.lists != "pooled":
        found = "a list of each judgement, and policies.attribution, which finds lists by time"
        faults.append(Fault("/inputs.held_out.columns.list_id", found, "one of the two", "remove one of them"))
    return faults


def comparison_faults(comparisons: object, keys: Keys) -> list[Fault]:
    """Find comparisons without their baseline or a comparable measure; called at ``comparisons``, before validation."""
    if not isinstance(comparisons, Mapping):
        return []
    baseline = comparisons.get("baseline")
    unknown = inference.baseline_faults(baseline, _models(keys)) if isinstance(baseline, str) else []
    unfit = inference.comparison_measure_faults(requested_measures(keys)) if _has(_OF_ALL_MEASURES, keys) else []
    return [*(replace(one, where=".baseline") for one in unknown), *(replace(one, where="/measures") for one in unfit)]


def gate_faults(gate: Gate, keys: Keys) -> list[Fault]:
    """Find rules about a measure, slice, baseline or model that the evaluation does not have; called at each gate."""
    faults = []
    if _has(_OF_ALL_MEASURES, keys):
        faults += gating.gate_measure_faults(gate, keys["preset"], requested_measures(keys))
    if "slices" in keys:
        faults += gating.gate_slice_faults(gate, [C.CROSSING.join(one) for one in keys["slices"]])
    if "comparisons" in keys:
        comparisons = keys["comparisons"]
        faults += gating.gate_baseline_faults(gate, comparisons.baseline if comparisons else None)
    return [*faults, *gating.gate_model_faults(gate, _models(keys))]


def _models(keys: Keys) -> Sequence[str] | None:
    """Models that the config names: under ``models``, or as keys of ``paths``."""
    if keys.get("models") is not None:
        return tuple(keys["models"])
    paths = keys["inputs"].recommendations.paths if "inputs" in keys else None
    return tuple(paths) if paths else None


def requested_measures(keys: Keys) -> MeasureSet:
    """Every measure at every requested cutoff, each once, in order of first mention, then in item slices."""
    defaults = options_of(keys["preset"])
    whole = measure_set(keys["measures"], keys["cutoffs"], defaults=defaults)
    return with_item_slices(whole, keys["item_slices"])


def _given(inputs: Inputs) -> list[str]:
    return [name for name, config in inputs if config is not None]


def _has(names: Collection[str], keys: Keys) -> bool:
    return keys.keys() >= set(names)
