"""Checks across keys of a config: inputs, measures, policies, slices, comparisons and gates fit together.

Each function is called at the last key that it reads, with the valid values of the keys before it
(``ValidationInfo.data`` of pydantic). If one of those is missing, because it is not valid itself, the check is skipped.
``where`` of a fault is relative to the key at which the function is called; with a leading ``/`` it is another key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.config import measure_selection
from rankeval_spark.config.sections import gates as gating, inference
from rankeval_spark.config.sections.bands import Band, band_faults, segments_from_train
from rankeval_spark.config.sections.policies import lacking_inputs
from rankeval_spark.config.sections.presets import measure_gap_faults, options_of
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rankeval_spark.config.sections.gates import Gate
    from rankeval_spark.config.sections.inputs import Inputs
    from rankeval_spark.config.sections.policies import Policies
    from rankeval_spark.measures import MeasureSet

Keys: TypeAlias = Mapping[str, Any]
"""Values of the valid keys."""

_OF_MEASURES: Final = ("preset", "cutoffs", "measures")
_OF_ALL_MEASURES: Final = (*_OF_MEASURES, "item_slices")
"""Keys that together say what is measured."""


def segment_faults(bands: Mapping[str, Band], keys: Keys) -> list[Fault]:
    """Find slices and bands without their input; called at ``bands``."""
    if not _has(("inputs", "slices"), keys):
        return []
    found = band_faults(bands, slices=keys["slices"], given=_given(keys["inputs"]))
    return [*_slice_faults(bands, keys), *(replace(fault, where=f".{name}") for name, fault in found)]


def _slice_faults(bands: Mapping[str, Band], keys: Keys) -> list[Fault]:
    made, slices = segments_from_train(bands), keys["slices"]
    if keys["inputs"].segments is not None or all(name in made for one in slices for name in one):
        return []
    fix = "add inputs.segments"
    if any("activity" in one for one in slices):
        fix += ", or bands: {activity: {of: train}} for the activity in the training data"
    return [Fault("/slices", "slices, but no inputs.segments", "an input with the users' segments", fix)]


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
        faults += [*_input_faults(measures, keys["inputs"]), *_catalogue_faults(measures, keys["inputs"])]
    if "models" in keys:
        faults += measure_selection.model_faults(measures, _models(keys))
    if "policies" in keys:
        faults += measure_selection.tie_faults(measures, keys["policies"].ties)
        faults += measure_selection.judgement_faults(measures, keys["policies"])
        faults += measure_gap_faults(measures, keys["policies"], keys["preset"])
    return [replace(fault, where="/measures") for fault in faults]


def _input_faults(measures: MeasureSet, inputs: Inputs) -> list[Fault]:
    return [
        Fault("", f"{', '.join(labels)}, but no inputs.{name}", "the input", f"add inputs.{name}")
        for name, labels in measures.lacking(["evaluation_date", *_given(inputs)]).items()
    ]


def _catalogue_faults(measures: MeasureSet, inputs: Inputs) -> list[Fault]:
    needing = dict.fromkeys(one.label for one in measures.measures if one.needs_catalogue)
    if not needing or inputs.items is not None or inputs.train is not None:
        return []
    return [Fault("", f"{', '.join(needing)}, but no catalogue", "inputs.items, or inputs.train", "add inputs.items")]


def policy_faults(policies: Policies, keys: Keys) -> list[Fault]:
    """Find policies that need an input that is missing, and settings of inputs that need a policy; at ``policies``."""
    if "inputs" not in keys:
        return []
    inputs = keys["inputs"]
    return [*_dropping_faults(policies, inputs), *_grace_faults(policies, inputs), *_list_faults(policies, inputs)]


def _list_faults(policies: Policies, inputs: Inputs) -> list[Fault]:
    if C.LIST_ID not in inputs.held_out.columns or not policies.is_attributed or policies.lists == "pooled":
        return []
    found, fix = "a list of each judgement, and policies.attribution, which finds lists by time", "remove one of them"
    return [Fault("/inputs.held_out.columns.list_id", found, "one of the two", fix)]


def _grace_faults(policies: Policies, inputs: Inputs) -> list[Fault]:
    grace = inputs.held_out.late_data_grace
    if grace is None or policies.is_attributed:
        return []
    found, fix = f"{grace!r} with attribution 'none'", "set policies.attribution, or remove it"
    return [Fault("/inputs.held_out.late_data_grace", found, "a way of attribution", fix)]


def _dropping_faults(policies: Policies, inputs: Inputs) -> list[Fault]:
    return [
        Fault(
            f".{name}",
            f"{name} 'drop', but no {' or '.join(f'inputs.{one}' for one in names)}",
            "the input that says which items to drop",
            f"add inputs.{names[0]}, or set {name} to keep",
        )
        for name, names in lacking_inputs(policies, _given(inputs)).items()
    ]


def comparison_faults(comparisons: object, keys: Keys) -> list[Fault]:
    """Find comparisons without their baseline or a comparable measure; called at ``comparisons``, before validation."""
    if not isinstance(comparisons, Mapping):
        return []
    faults = []
    baseline = comparisons.get("baseline")
    if isinstance(baseline, str):
        unknown = inference.baseline_faults(baseline, _models(keys))
        faults += [replace(fault, where=".baseline") for fault in unknown]
    if _has(_OF_ALL_MEASURES, keys):
        faults += [
            replace(fault, where="/measures") for fault in inference.comparison_measure_faults(requested_measures(keys))
        ]
    return faults


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
    """Name the models where the config does: under ``models``, or as keys of ``paths``."""
    if keys.get("models") is not None:
        return tuple(keys["models"])
    paths = keys["inputs"].recommendations.paths if "inputs" in keys else None
    return tuple(paths) if paths else None


def requested_measures(keys: Keys) -> MeasureSet:
    """Every measure at every requested cutoff, each once, in order of first mention, then in item slices."""
    defaults = options_of(keys["preset"])
    whole = measure_selection.measure_set(keys["measures"], keys["cutoffs"], defaults=defaults)
    return measure_selection.with_item_slices(whole, keys["item_slices"])


def _given(inputs: Inputs) -> list[str]:
    return [name for name, config in inputs if config is not None]


def _has(names: Collection[str], keys: Keys) -> bool:
    return keys.keys() >= set(names)
