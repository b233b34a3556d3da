"""Presets: the conventions of other tools, as policies and options of measures.

A preset reproduces the numbers of its tool. What a config sets itself takes precedence. They are in
``measures/other_tools.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from rankeval_spark.config.policies import HANDLINGS, Policies
from rankeval_spark.errors import Fault
from rankeval_spark.measures.options import OptionValue
from rankeval_spark.measures.other_tools import read_tools

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

PresetName = Literal[
    "trec_eval",
    "ir_measures",
    "ranx",
    "rectools",
    "recbole",
    "elliot",
    "lenskit",
    "recommenders",
    "spark",
    "kaggle",
    "cornac",
    "tf_ranking",
    "xgboost",
    "lightgbm",
    "catboost",
    "torchmetrics",
    "sklearn",
    "elasticsearch",
]

MeasureOptions = Mapping[str, Mapping[str, OptionValue]]  # options that replace the defaults, by canonical name


@dataclass(frozen=True)
class Preset:
    """Conventions of a tool: policies and options of measures that differ from the defaults."""

    tool: str  # its name and version
    policies: Mapping[str, OptionValue] = field(default_factory=dict)
    options: MeasureOptions = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # which names differ, and which behaviour cannot be reproduced


@cache
def presets() -> Mapping[str, Preset]:
    """Return the presets by name, as the file of other tools has them.

    >>> presets()["kaggle"].options
    {'AP': {'denom': 'min'}}
    """
    return {
        name: Preset(tool["tool"], tool.get("policies", {}), tool.get("options", {}), tuple(tool.get("notes", ())))
        for name, tool in read_tools().items()
        if tool.get("preset")
    }


_NONE: Final = Preset("no tool")
_NEW_RANKS: Final = "rank_gaps 'renumber', because removing items changes the ranks"
_RENUMBER: Final = "set rank_gaps to renumber, or leave judged_only out"


def apply_preset(preset: str | None, policies: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the given policies with those of a preset; None marks a policy that is not given.

    Policies of the preset that the given population does not allow are left out.
    """
    given = {name: value for name, value in policies.items() if value is not None}
    handling = HANDLINGS.get(given.get("population", ""))
    allowed = handling._asdict() if handling else {}  # values that the population allows, by policy
    of_preset = _find_preset(preset).policies
    fitting = {name: value for name, value in of_preset.items() if name not in allowed or value in allowed[name]}
    return {**fitting, **given}


def rank_gap_faults(policies: Policies, preset: str | None) -> list[Fault]:
    """Find the policy judged_only together with kept ranks."""
    if not (policies.judged_only and policies.rank_gaps == "keep"):
        return []
    return [Fault("/policies.rank_gaps", f"{_kept_gaps(preset)} with judged_only", _NEW_RANKS, _RENUMBER)]


def measure_gap_faults(measures: MeasureSet, policies: Policies, preset: str | None) -> list[Fault]:
    """Find measures with the option judged_only together with kept ranks."""
    if policies.rank_gaps != "keep":
        return []
    labels = dict.fromkeys(measure.label for measure in measures.measures if measure.is_judged_only)
    found = _kept_gaps(preset).rstrip(",")
    return [Fault("/measures", f"{label} with {found}", _NEW_RANKS, _RENUMBER) for label in labels]


def _kept_gaps(preset: str | None) -> str:
    """Write the policy that keeps ranks, with the preset that sets it, for a message."""
    return "rank_gaps 'keep'" + (f", which preset {preset!r} sets," if keeps_gaps(preset) else "")


def keeps_gaps(preset: str | None) -> bool:
    """Return True if a preset keeps the ranks of the log, where it has some."""
    return _find_preset(preset).policies.get("rank_gaps") == "keep"


def options_of(preset: str | None) -> MeasureOptions:
    """Return the default options of measures under a preset."""
    return _find_preset(preset).options


def _find_preset(name: str | None) -> Preset:
    """Look up a preset; an unknown one sets nothing, because validation of the name reports it."""
    return presets().get(name, _NONE) if name else _NONE
