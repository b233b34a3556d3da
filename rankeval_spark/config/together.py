"""Whether the keys of a config fit one another.

Each function is called at the last key that it reads, with the keys before it that are valid by themselves
(``ValidationInfo.data`` of pydantic). It finds no fault where one that it reads is not among them. A place that begins
with ``/`` is that of another key than the one at which the function is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.config import asked, comparisons as comparing, gates as gating
from rankeval_spark.config.bands import Band, band_faults, of_train
from rankeval_spark.config.policies import lacking_inputs
from rankeval_spark.config.presets import measure_gap_faults, options_of
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rankeval_spark.config.gates import Gate
    from rankeval_spark.config.inputs import Inputs
    from rankeval_spark.config.policies import Policies
    from rankeval_spark.measures import MeasureSet

Keys: TypeAlias = Mapping[str, Any]
"""Values of the valid keys."""

MEASURED: Final = ("preset", "cutoffs", "measures")
IN_SLICES: Final = (*MEASURED, "item_slices")
"""Keys that say together what is measured."""


def segment_faults(bands: Mapping[str, Band], keys: Keys) -> list[Fault]:
    """Name slices and bands that lack the input they are made of; called at ``bands``."""
    if not _are_there(("inputs", "slices"), keys):
        return []
    found = band_faults(bands, slices=keys["slices"], given=_given(keys["inputs"]))
    return [*_slice_faults(bands, keys), *(replace(fault, where=f".{name}") for name, fault in found)]


def _slice_faults(bands: Mapping[str, Band], keys: Keys) -> list[Fault]:
    made, slices = of_train(bands), keys["slices"]
    if keys["inputs"].segments is not None or all(name in made for one in slices for name in one):
        return []
    found, fix = "slices, but no inputs.segments", "add inputs.segments"
    if any("activity" in one for one in slices):
        fix += ", or bands: {activity: {of: train}} for the activity in the training data"
    return [Fault("/slices", found, "an input with the users' segments", fix)]


def measure_faults(item_slices: Sequence[str], keys: Keys) -> list[Fault]:
    """Name measures that lack an input, or do not go with a policy; called at ``item_slices``."""
    if not _are_there(MEASURED, keys):
        return []
    try:
        measures = _measure_set({**keys, "item_slices": item_slices})
    except ConfigError as error:  # the measures by themselves are valid by now
        return [replace(fault, where="") for fault in error.faults]
    faults = []
    if "inputs" in keys:
        faults += [*_input_faults(measures, keys["inputs"]), *_catalogue_faults(measures, keys["inputs"])]
    if "models" in keys:
        faults += asked.model_faults(measures, keys["models"])
    if "policies" in keys:
        faults += asked.tie_faults(measures, keys["policies"].ties)
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
    """Name policies that lack the input by which they leave items out; called at ``policies``."""
    if "inputs" not in keys:
        return []
    return [
        Fault(
            f".{name}",
            f"{name} 'drop', but no {_any_of(inputs)}",
            "the input that says which items",
            f"add inputs.{inputs[0]}, or set {name} to keep",
        )
        for name, inputs in lacking_inputs(policies, _given(keys["inputs"])).items()
    ]


def _any_of(inputs: Sequence[str]) -> str:
    return " or ".join(f"inputs.{name}" for name in inputs)


def comparison_faults(comparisons: object, keys: Keys) -> list[Fault]:
    """Say what of the evaluation the comparisons do not fit; called at ``comparisons``, before these are valid."""
    if not isinstance(comparisons, Mapping):
        return []
    faults = []
    if "models" in keys:
        baseline = comparisons.get("baseline")
        found = comparing.baseline_faults(baseline, keys["models"]) if isinstance(baseline, str) else []
        faults += [replace(fault, where=".baseline") for fault in found]
    if _are_there(IN_SLICES, keys):
        faults += [replace(fault, where="/measures") for fault in comparing.measure_faults(_measure_set(keys))]
    return faults


def gate_faults(gate: Gate, keys: Keys) -> list[Fault]:
    """Say what of the evaluation a rule does not fit; called at each of ``gates``."""
    faults = []
    if _are_there(IN_SLICES, keys):
        faults += gating.measure_faults(gate, keys["preset"], _measure_set(keys))
    if "slices" in keys:
        faults += gating.slice_faults(gate, [C.CROSSING.join(one) for one in keys["slices"]])
    if "comparisons" in keys:
        asked_for = keys["comparisons"]
        baseline = asked_for.baseline if asked_for else None
        faults += gating.baseline_faults(gate, baseline)
    if "models" in keys:
        faults += gating.model_faults(gate, keys["models"])
    return faults


def _measure_set(keys: Keys) -> MeasureSet:
    whole = asked.measure_set(keys["measures"], keys["cutoffs"], defaults=options_of(keys["preset"]))
    return asked.with_item_slices(whole, keys["item_slices"])


def _given(inputs: Inputs) -> list[str]:
    return [name for name, config in inputs if config is not None]


def _are_there(names: Collection[str], keys: Keys) -> bool:
    return keys.keys() >= set(names)
