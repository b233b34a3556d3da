"""Measures of a request: texts, cutoffs and item slices become measures, and what does not fit them is found."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, assert_never

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.config.presets import options_of
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.required_facts import GROUP_RELEVANT, JUDGED_CATEGORIES, PROPENSITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankeval_spark.config.policies import Policies

WHOLE_LIST_WORD: Final = "all"  # the cutoff that means the whole list in a config

_OF_ALL_JUDGEMENTS: Final = frozenset({GROUP_RELEVANT, JUDGED_CATEGORIES})
"""Facts that are made of all judgements of a user."""

_BOUNDED: Final = (
    "measures for which ordering ties by gain is best or worst (not group=, gains='value', unjudged='mean' or "
    "'median', AP(denom='hits'), ideal='retrieved', FirstHit, or measures that read other facts of the items)"
)


def measures_of(keys: Mapping[str, Any]) -> MeasureSet | None:
    """Return the measures that the valid keys of a request ask for; None where one of these keys is not valid."""
    if not keys.keys() >= {"preset", "cutoffs", "measures", "slicing"}:
        return None
    return measure_set(keys["measures"], keys["cutoffs"], keys["preset"], keys["slicing"].item_slices)


@lru_cache(maxsize=64)  # every check of a request reads them
def measure_set(
    texts: tuple[str, ...], cutoffs: tuple[int | str, ...], preset: str | None, item_slices: tuple[str, ...] = ()
) -> MeasureSet:
    """Combine measures, cutoffs and item slices; a measure that occurs twice counts once.

    ConfigError with all faults of the measures, ``where`` relative to their list, or of item slices that do not fit.
    """
    measures: list[Measure] = []
    faults: list[Fault] = []
    for index, text in enumerate(texts):
        try:
            measures += _at_cutoffs(text, cutoffs, preset)
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
        Fault(where, one.found if text.strip() in one.found else f"{one.found} in {text!r}", one.expected, one.fix)
        for one in error.faults
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


def _at_cutoffs(text: str, cutoffs: Sequence[int | str], preset: str | None) -> list[Measure]:
    """Return a measure at the cutoffs that it supports: P needs one, other measures have only the whole list."""
    measure = read_measure(text, preset)
    if measure is None:
        ks = [k for k in cutoffs if k != WHOLE_LIST_WORD]
        defaults = options_of(preset)
        return [Measure.parse(at, defaults=defaults) for at in [f"{text}@{k}" for k in ks] or [text]]
    if measure.k != WHOLE_LIST:
        return [measure]
    found = []
    for k in cutoffs:
        with suppress(ConfigError):
            found.append(measure.at(WHOLE_LIST if k == WHOLE_LIST_WORD else int(k)))
    return found or [measure]


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
    match tie_rule(ties).value:
        case "mean":
            known = ", ".join(entry.name for entry in registry.entries() if entry.has_mean_over_ties)
            expected = (
                f"measures with a mean over all orders of ties: {known} (not AP(denom='hits'), ideal='retrieved')"
            )
            supported = {one for one in measures.measures if one.has_mean_over_ties}
        case "bound":
            expected, supported = _BOUNDED, {one for one in measures.measures if one.is_bounded_by_gains}
        case "order" | "refused":
            return []
        case value:
            assert_never(value)
    refused = {one.label: _other_ties(one) for one in measures.measures if one not in supported}
    return [Fault("/measures", f"{label} with ties {ties!r}", expected, fix) for label, fix in refused.items()]


def _other_ties(measure: Measure) -> str:
    """Suggest a policy for ties that supports the measure."""
    if measure.has_mean_over_ties:
        return "leave it out, or choose other ties, such as expected for its mean over all orders"
    if GROUP in measure.options and measure.is_bounded_by_gains:  # other measures do not depend on gains
        return "leave it out, or choose other ties, such as optimistic and pessimistic for its bounds"
    return "leave it out, or choose other ties, such as item_asc"


def judgement_faults(measures: MeasureSet, policies: Policies) -> list[Fault]:
    """Find measures that do not go with whose judgements count: by time of a list, or without a reward."""
    faults = []
    for one in measures.measures:
        if policies.is_attributed and not _OF_ALL_JUDGEMENTS.isdisjoint(one.needs):
            found = f"{one.label} with attribution {policies.attribution!r}"
            expected = "measures of the judgements of a list; this one reads all judgements of a user"
            faults.append(Fault("/measures", found, expected, "leave it out, or evaluate it without attribution"))
        if policies.population != "judged" and PROPENSITIES in one.needs:
            found = f"{one.label} with population {policies.population!r}"
            expected = "population 'judged', because impressions without a reward count too"
            faults.append(Fault("/measures", found, expected, "set population to judged"))
    return faults


def model_faults(measures: MeasureSet, models: Sequence[str]) -> list[Fault]:
    """Find measures that compare with the lists of a model that is not among the named models."""
    unknown = {one.label: one.other_model for one in measures.per_list if one.other_model not in (None, *models)}
    return [
        Fault(
            "/measures",
            f"model {name!r} in {label}",
            f"one of the models: {', '.join(models)}",
            nearest(name or "", models),
        )
        for label, name in unknown.items()
    ]
