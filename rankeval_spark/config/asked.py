"""Which measures a config requests: each at its own cutoff, or at all those given for the rest."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.measures.shared_options import GROUP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.presets import MeasureOptions

WHOLE_LIST_WORD: Final = "all"
"""The cutoff that means no cutoff in a config."""

BY_GAIN: Final = ("optimistic", "pessimistic")
"""Policies for ties that put them in the order of their gains."""

_BOUNDED: Final = (
    "measures whose best and worst order of ties are those of the gains (not group=, gains='value', unjudged='mean' or "
    "'median', AP(denom='hits'), ideal='retrieved', FirstHit, or what also reads other facts of the items)"
)


def measure_set(
    texts: Sequence[str], cutoffs: Sequence[int | str], *, defaults: MeasureOptions = MappingProxyType({})
) -> MeasureSet:
    """Put measures and cutoffs together; a measure that comes up twice counts once.

    ``defaults`` are the options of a preset.

    Raises
    ------
    ConfigError
        All faults, ``where`` relative to the list of measures.
    """
    asked: list[Measure] = []
    faults: list[Fault] = []
    for index, text in enumerate(texts):
        try:
            asked += _at_cutoffs(read(text, defaults), cutoffs, defaults)
        except ConfigError as error:
            faults += (_place(fault, f"[{index}]", text) for fault in error.faults)
    if faults:
        raise ConfigError(*faults)
    try:
        return MeasureSet.of(asked)
    except ConfigError as error:
        raise ConfigError(*(Fault("", fault.found, fault.expected, fault.fix) for fault in error.faults)) from None


def with_item_slices(measures: MeasureSet, item_slices: Sequence[str]) -> MeasureSet:
    """Ask for each measure that reads judgements within each group of items too: with its option ``group``.

    Raises
    ------
    ConfigError
        If no measure can be restricted, or there are too many groups.

    Examples
    --------
    >>> asked = with_item_slices(MeasureSet.parse(["R@5", "ItemCoverage@5"]), ["drama"])
    >>> [str(one) for one in asked.measures]
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
    """Name the measures that have no mean over all orders of ties, or no bounds by gain, where ``ties`` needs them."""
    if ties == "expected":
        known = ", ".join(entry.name for entry in registry.entries() if entry.definition.ties.has_mean)
        expected = f"measures with a mean over all orders of ties: {known} (not AP(denom='hits'), ideal='retrieved')"
        takes = _has_mean
    elif ties in BY_GAIN:
        expected, takes = _BOUNDED, _is_bounded
    else:
        return []
    refused = {one.label: _other_ties(one) for one in measures.measures if not takes(one)}
    return [Fault("", f"{label} with ties {ties!r}", expected, fix) for label, fix in refused.items()]


def model_faults(measures: MeasureSet, models: Sequence[str] | None) -> list[Fault]:
    """Name the measures that look at the lists of a model that is none of the evaluation's, where these are named."""
    if models is None:
        return []
    unknown = {one.label: one.other_model for one in measures.per_list if one.other_model not in (None, *models)}
    return [
        Fault("", f"model {name!r} in {label}", f"one of the models: {', '.join(models)}", nearest(name or "", models))
        for label, name in unknown.items()
    ]


def _other_ties(measure: Measure) -> str:
    """Advise on a measure that does not go with a policy that is about all orders of ties: another may be too."""
    if _has_mean(measure):
        return "leave it out, or choose other ties, such as expected for its mean over all orders"
    if GROUP in measure.options and _is_bounded(measure):  # without that option gains have no part in it
        return "leave it out, or choose other ties, such as optimistic and pessimistic for its bounds"
    return "leave it out, or choose other ties, such as item_asc"


def _has_mean(measure: Measure) -> bool:
    return measure.entry.takes_expected_ties(measure.options)


def _is_bounded(measure: Measure) -> bool:
    return measure.entry.is_bounded_by_gains(measure.options)


def check(text: str, *, defaults: MeasureOptions = MappingProxyType({})) -> list[Fault]:
    """Return what is wrong with a measure by itself, before it is known whether it gets a cutoff."""
    try:
        read(text, defaults)
    except ConfigError as error:
        return [_place(fault, "", text) for fault in error.faults]
    return []


def read(text: str, defaults: MeasureOptions) -> Measure | str:
    """Read a measure; give the text back where it is one that only lacks the cutoff it needs.

    Raises
    ------
    ConfigError
        If it is not a measure.
    """
    try:
        return Measure.parse(text, defaults=defaults)
    except ConfigError as error:
        try:
            Measure.parse(f"{text}@1", defaults=defaults)
        except ConfigError:
            raise error from None
        return text


def _at_cutoffs(measure: Measure | str, cutoffs: Sequence[int | str], defaults: MeasureOptions) -> list[Measure]:
    """Put a measure at the cutoffs that it can have: P has no value for the whole list, others only that one."""
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
