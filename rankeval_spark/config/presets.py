"""Presets: the conventions of other tools, each only a setting of the policies and of the options of measures.

A number that a tool published is met by its preset; what a user writes himself wins over it. ``docs/presets.md`` is
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

MeasureOptions = Mapping[str, Mapping[str, OptionValue]]
"""Options by canonical name of a measure, in place of its defaults."""


@dataclass(frozen=True)
class Preset:
    """What a tool does, in our words.

    Attributes
    ----------
    tool : str
        The tool and what of it is meant.
    policies : mapping
        Policies that differ from the defaults.
    options : mapping
        Options, by measure, that differ from the defaults.
    notes : tuple of str
        What the tool calls otherwise, and where it cannot be followed.
    """

    tool: str
    policies: Mapping[str, OptionValue] = field(default_factory=dict)
    options: MeasureOptions = field(default_factory=dict)
    notes: tuple[str, ...] = ()


_TREC_POLICIES: Final[Mapping[str, OptionValue]] = {
    "population": "judged",
    "ties": "item_desc",
    "score_precision": "single",
}
_BINARY: Final[Mapping[str, OptionValue]] = {"gains": "binary"}
_INTERPOLATED: Final = ("IPrec", "IPrecAvg", "IPrecArea")


def _for(names: tuple[str, ...], **options: OptionValue) -> dict[str, Mapping[str, OptionValue]]:
    return dict.fromkeys(names, options)


PRESETS: Final[Mapping[str, Preset]] = {
    "trec_eval": Preset(
        "trec_eval 10 with -c: the mean is over all topics of the judgements",
        {**_TREC_POLICIES, "duplicates": "error", "held_out_duplicates": "error"},
        _for(_INTERPOLATED, need="v10"),
        (
            "-J is the policy judged_only, or of one measure its option judged_only=True; -l is its option rel, -M its "
            "cutoff.",
            "Scores are compared in single precision, as trec_eval up to version 9 does, and everything built on it; "
            "version 10 compares doubles: for its numbers set score_precision to double.",
        ),
    ),
    "ir_measures": Preset(
        "ir_measures with its provider pytrec_eval, which is trec_eval 9",
        _TREC_POLICIES,
        _for(_INTERPOLATED, need="v9"),
        (
            "judged_only=True of a measure is written so here too; the policy judged_only is that of all measures.",
            "Its SetF(beta=b) takes b for the square of beta: SetF(beta=4.0) there is SetF(beta=2) here.",
            "Its RR@k and Judged@k, which are not trec_eval's, put equal scores in ascending order of ids, all others "
            "in descending order: of a list a, b with equal scores and a alone relevant, RR is 1/2 and RR@2 is 1. Here "
            "all are descending; for those two set ties to item_asc.",
        ),
    ),
    "ranx": Preset(
        "ranx.evaluate with make_comparable=True",
        {"population": "judged"},
        {"RBP": {"rel": 1.0}},
        (
            "ranx leaves equal scores in an order that depends on their number and on the input: a run with ties has "
            "no value of its own there.",
            "Its ndcg_burges is nDCG(dcg='exp-log2'), its hits NumHits.",
            "Its rbp adds grades as they are, which can make more than 1; here an item is relevant or not.",
        ),
    ),
    "rectools": Preset(
        "rectools.metrics",
        {"rank_gaps": "keep"},
        {
            "nDCG": {"gains": "binary", "ideal": "k_ones"},
            "DCG": _BINARY,
        },
        (
            "It takes every interaction for relevant: gains are 1, or the measures need rel.",
            "A log must have ranks; with scores only, set rank_gaps to renumber.",
            "Its Intersection divides by the items of the list, Overlap(denom='len'); denom='min' by those of the "
            "shorter of the two lists.",
            "Its IntraListDiversity is 0 for a list of one item, which has no value and is left out of the mean here: "
            "n_undefined counts its user.",
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
            "What it calls MAP is MeanP.",
            "With another threshold t its gain of a grade g is 2**(g - t + 1) - 1: take gains={...} and dcg='log2'.",
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
        ("Before its release 2025 users without a relevant item were left out: zero_relevant exclude.",),
    ),
    "kaggle": Preset(
        "ml_metrics.mapk, as competitions on Kaggle score",
        {"population": "judged"},
        {"AP": {"denom": "min"}},
        ("An item that is recommended twice keeps its place there, as a miss; here the list closes up.",),
    ),
    "spark": Preset(
        "pyspark.mllib.evaluation.RankingMetrics",
        {"population": "judged"},
        {"AP": {"denom": "min"}, "nDCG": _BINARY, "DCG": _BINARY},
        ("meanAveragePrecision is AP, meanAveragePrecisionAt(k) AP@k.",),
    ),
}
"""The presets by their :data:`PresetName`."""


_NONE: Final = Preset("no tool")

_CLOSED_UP: Final = "ranks without gaps, so that a list closes up where an item leaves it"
_RENUMBER: Final = "set rank_gaps to renumber, or leave judged_only out"


def with_preset(preset: str | None, policies: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the written policies with those of a preset; None marks a policy that was not written.

    Where another population was written, what the preset does with users that this one has no room for is left out.
    """
    written = {name: value for name, value in policies.items() if value is not None}
    handling = HANDLINGS.get(written.get("population", ""))
    allowed = handling._asdict() if handling else {}
    own = _find(preset).policies.items()
    return {**{name: value for name, value in own if name not in allowed or value in allowed[name]}, **written}


def rank_gap_faults(policies: Policies, preset: str | None) -> list[Fault]:
    """Refuse lists that are cut down to judged items and keep the ranks they had among all of them."""
    if not (policies.judged_only and policies.rank_gaps == "keep"):
        return []
    return [Fault("", f"{_kept_gaps(preset)} with judged_only", _CLOSED_UP, _RENUMBER)]


def measure_gap_faults(measures: MeasureSet, policies: Policies, preset: str | None) -> list[Fault]:
    """Refuse the same of single measures, by their option."""
    if policies.rank_gaps != "keep":
        return []
    labels = dict.fromkeys(one.label for one in measures.measures if one.is_judged_only)
    return [Fault("", f"{label} with {_kept_gaps(preset).rstrip(',')}", _CLOSED_UP, _RENUMBER) for label in labels]


def _kept_gaps(preset: str | None) -> str:
    is_of_preset = _find(preset).policies.get("rank_gaps") == "keep"
    return "rank_gaps 'keep'" + (f", which preset {preset!r} sets," if is_of_preset else "")


def options_of(preset: str | None) -> MeasureOptions:
    """Return the options that measures have where a name does not say otherwise."""
    return _find(preset).options


def _find(name: str | None) -> Preset:
    """Look a preset up; one that does not exist sets nothing, and is reported by who validates the name."""
    return PRESETS.get(name or "", _NONE)
