"""Which measures a config requests: each at its own cutoff, or at all cutoffs of the config."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.config.sections.policies import TIES_BY_GAIN
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.required_facts import GROUP_RELEVANT, JUDGED_CATEGORIES, PROPENSITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.sections.policies import Policies
    from rankeval_spark.config.sections.presets import MeasureOptions

WHOLE_LIST_WORD: Final = "all"
"""The cutoff that means the whole list in a config."""

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

    ``defaults`` are the options of a preset.

    Raises
    ------
    ConfigError
        All faults, ``where`` relative to the list of measures.
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

    Raises
    ------
    ConfigError
        If no measure has this option, or there are too many groups.

    Examples
    --------
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
        known = ", ".join(entry.name for entry in registry.entries() if entry.definition.ties.has_mean)
        expected = f"measures with a mean over all orders of ties: {known} (not AP(denom='hits'), ideal='retrieved')"
        is_supported = _has_mean
    elif ties in TIES_BY_GAIN:
        expected, is_supported = _BOUNDED, _is_bounded
    else:
        return []
    refused = {one.label: _other_ties(one) for one in measures.measures if not is_supported(one)}
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
    """Return what is wrong with a measure by itself, before its cutoffs are known."""
    try:
        _read(text, defaults)
    except ConfigError as error:
        return [_place(fault, "", text) for fault in error.faults]
    return []


def _other_ties(measure: Measure) -> str:
    """Suggest a policy for ties that supports the measure."""
    if _has_mean(measure):
        return "leave it out, or choose other ties, such as expected for its mean over all orders"
    if GROUP in measure.options and _is_bounded(measure):  # other measures do not depend on gains
        return "leave it out, or choose other ties, such as optimistic and pessimistic for its bounds"
    return "leave it out, or choose other ties, such as item_asc"


def _has_mean(measure: Measure) -> bool:
    return measure.entry.takes_expected_ties(measure.options)


def _is_bounded(measure: Measure) -> bool:
    return measure.entry.is_bounded_by_gains(measure.options)


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
    return [at for k in cutoffs for at in _at(measure, WHOLE_LIST if k == WHOLE_LIST_WORD else int(k))] or [measure]


def _at(measure: Measure, k: int) -> list[Measure]:
    try:
        return [measure.at(k)]
    except ConfigError:
        return []


def _place(fault: Fault, where: str, text: str) -> Fault:
    found = fault.found if text.strip() in fault.found else f"{fault.found} in {text!r}"
    return Fault(where, found, fault.expected, fault.fix)
