"""Presets: the conventions of other tools, as policies and options of measures.

A preset reproduces the numbers of its tool. What a config sets itself takes precedence. ``docs/presets.md`` is
generated from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from rankeval_spark.config.policies import HANDLINGS, Policies
from rankeval_spark.errors import Fault
from rankeval_spark.measures.options import OptionValue

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

PresetName = Literal["trec_eval", "ir_measures", "ranx", "rectools", "recbole", "elliot", "lenskit", "kaggle", "spark"]

MeasureOptions = Mapping[str, Mapping[str, OptionValue]]  # options that replace the defaults, by canonical name


@dataclass(frozen=True)
class Preset:
    """Conventions of a tool: policies and options of measures that differ from the defaults."""

    tool: str  # its name and version
    policies: Mapping[str, OptionValue] = field(default_factory=dict)
    options: MeasureOptions = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # which names differ, and which behaviour cannot be reproduced


_TREC_POLICIES: Final[Mapping[str, OptionValue]] = {
    "population": "judged",
    "ties": "item_desc_bytes",
    "score_precision": "single",
}
_BINARY: Final[Mapping[str, OptionValue]] = {"gains": "binary"}
_INTERPOLATED: Final = ("IPrec", "IPrecAvg", "IPrecArea")


PRESETS: Final[Mapping[str, Preset]] = {
    "trec_eval": Preset(
        "trec_eval 10 with -c: the mean is over all topics of the judgements",
        {**_TREC_POLICIES, "duplicates": "error", "held_out_duplicates": "error"},
        {name: {"need": "v10"} for name in _INTERPOLATED},
        (
            "-J is the policy judged_only, or for one measure the option judged_only=True. -l is the option rel, -M "
            "the cutoff.",
            "Scores are compared in single precision, as in trec_eval up to version 9 and the tools built on it. "
            "Version 10 compares doubles: set score_precision to double to reproduce it.",
        ),
    ),
    "ir_measures": Preset(
        "ir_measures with its provider pytrec_eval, which is trec_eval 9",
        _TREC_POLICIES,
        {name: {"need": "v9"} for name in _INTERPOLATED},
        (
            "judged_only=True is an option of a measure here too; the policy judged_only applies to all measures.",
            "Its SetF(beta=b) reads b as the square of beta: SetF(beta=4.0) there is SetF(beta=2) here.",
            "Its Judged counts an item with a negative gain as judged; here, as in trec_eval's unj, it is not.",
            "In one call with nDCG(gains=...), its plain nDCG may take those gains, or may not.",
            "Its RR@k and Judged@k, which are not trec_eval's, order equal scores by ascending id, all other measures "
            "by descending id. Example: a list a, b with equal scores, only a relevant, has RR 1/2 and RR@2 1. Here "
            "all are descending; set ties to item_asc for those two, with ids as text.",
        ),
    ),
    "ranx": Preset(
        "ranx.evaluate with make_comparable=True",
        {"population": "judged"},
        {"RBP": {"rel": 1.0}},
        (
            "The order of equal scores depends on their number and on the input there, so a run with ties has no "
            "reproducible value.",
            "Its ndcg_burges is nDCG(dcg='exp-log2'), its hits NumHits.",
            "Its rbp adds grades, and can exceed 1; here an item is relevant or not.",
        ),
    ),
    "rectools": Preset(
        "rectools.metrics",
        {"rank_gaps": "keep"},
        {"nDCG": {"gains": "binary", "ideal": "k_ones"}, "DCG": _BINARY},
        (
            "Every interaction is relevant there: use gains of 1, or set the option rel.",
            "Ranks of the log order the lists, with their gaps. A log with scores only is ordered by them, equal ones "
            "by item: its ranks are 1, 2, 3.",
            "Its Intersection divides by the length of the list: Overlap(denom='len'). denom='min' divides by the "
            "length of the shorter list.",
            "Its IntraListDiversity of a list of one item is 0. Here it is undefined and not in the mean; n_undefined "
            "counts the user.",
            "Its catalog is the input items or, without that input, the items of train.",
        ),
    ),
    "recbole": Preset(
        "recbole.evaluator",
        {},
        {"AP": {"denom": "min"}, "nDCG": _BINARY, "DCG": _BINARY},
        ("It rounds the means to four digits.",),
    ),
    "elliot": Preset(
        "elliot.evaluation with relevance_threshold 1",
        {"population": "intersection"},
        {"nDCG": {"dcg": "exp-log2"}, "DCG": {"dcg": "exp-log2"}, "MAR": {"kind": "cutoffs"}},
        (
            "Its MAP is MeanP here.",
            "With another threshold t, its gain of a grade g is 2**(g - t + 1) - 1: use gains={...} and dcg='log2'.",
        ),
    ),
    "lenskit": Preset(
        "lenskit.metrics with a list length n, averaged by RunAnalysis",
        {"population": "run", "zero_relevant": "zero"},
        {
            "P": {"denom": "len"},
            "R": {"denom": "min"},
            "AP": {"denom": "len"},
            "nDCG": {"dcg": "jk2", "gains": "binary"},
            "DCG": {"dcg": "jk2", "gains": "binary"},
            "RBP": {"rel": 1.0, "p": 0.85},
        },
        ("Before release 2025, users without a relevant item were excluded: set zero_relevant to exclude.",),
    ),
    "kaggle": Preset(
        "ml_metrics.mapk, as competitions on Kaggle score",
        {"population": "judged"},
        {"AP": {"denom": "min"}},
        ("A repeated item keeps its rank there, as a miss; here it is removed and later items move up.",),
    ),
    "spark": Preset(
        "pyspark.mllib.evaluation.RankingMetrics",
        {"population": "judged"},
        {"AP": {"denom": "min"}, "nDCG": _BINARY, "DCG": _BINARY},
        ("meanAveragePrecision is AP, meanAveragePrecisionAt(k) AP@k.",),
    ),
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
    return PRESETS.get(name or "", _NONE)
