"""Statistics of a measure and several groups together, such as ``GroupGap(nDCG)``: what they are, and their names.

They are published in addition to the measures, of the groups of users of a slicing or of items as the option ``group``
names them, and documented like measures. A config that requests one gets an error that says how to obtain it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GROUP_GAP: Final = "GroupGap"
GROUP_RATIO: Final = "GroupRatio"
USER_MAD: Final = "UserMAD"
WORST_GROUP: Final = "WorstGroup"
ITEM_MAD: Final = "ItemMAD"

KINDS: Final = (GROUP_GAP, GROUP_RATIO, USER_MAD, WORST_GROUP)  # those of groups of users

_FEW_GROUPS: Final = "fewer than two groups that are not small, whose segment is known and which have a value"


@dataclass(frozen=True)
class GroupStatistic:
    """One such number."""

    name: str  # as ``group_metrics`` name it, before a measure in brackets
    words: str  # full names and words of textbooks, as of a measure
    summary: str  # what it is, in a sentence
    formula: str  # M(g) is the value of the measure for group g
    # As of a measure
    range: str
    interval: str
    source: str
    undefined: str = _FEW_GROUPS
    setting: str = "slices"  # setting with which it is published

    @property
    def way(self) -> str:
        """Setting and table that give it, in words."""
        table = f"the table group_metrics has it of every measure, as {self.name}(nDCG)"
        return f"with {self.setting} {table}; docs/slices.md"


ALL: Final = (
    GroupStatistic(
        name=GROUP_GAP,
        words="gap between groups, difference between groups of users, group fairness, disparity",
        summary="Greatest value of a group of users less the least.",
        formula="max_g M(g) - min_g M(g)",
        range="from 0, in units of the measure",
        interval="simultaneous over all pairs of groups",
        source="the interval: Games & Howell (1976), Pairwise multiple comparison procedures with unequal n's; Zou & "
        "Donner (2008), Construction of confidence limits about effect measures",
    ),
    GroupStatistic(
        name=GROUP_RATIO,
        words="ratio between groups, disparate impact, group fairness",
        summary="Ratio of the least value of a group of users to the greatest.",
        formula="min_g M(g) / max_g M(g)",
        range="[0, 1]",
        undefined=f"{_FEW_GROUPS}; the greatest value is not above 0, or the least is below it",
        interval="simultaneous over all pairs of groups",
        source="the ratio that goes with GroupGap; the interval: Donner & Zou (2012), Closed-form confidence intervals "
        "for functions of the normal mean and standard deviation",
    ),
    GroupStatistic(
        name=USER_MAD,
        words="mean absolute difference between groups of users, user fairness, UserMADranking, UserMADrating",
        summary="Mean absolute difference between two groups of users, over all pairs.",
        formula="mean over pairs g < h of |M(g) - M(h)|",
        range="from 0, in units of the measure",
        interval="none",
        source="Elliot UserMADranking and UserMADrating",
    ),
    GroupStatistic(
        name=WORST_GROUP,
        words="worst slice, worst group of users, least value of a group",
        summary="Value of the group of users with the worst one, which slice_values names.",
        formula="min_g M(g); max_g M(g) of an error",
        undefined=f"{_FEW_GROUPS}; neither side of the measure is better",
        range="that of the measure",
        interval="from limits that hold for all groups at once",
        source="the worst slice, published with its users",
    ),
    GroupStatistic(
        name=ITEM_MAD,
        words="mean absolute difference between groups of items, item fairness, ItemMADranking, ItemMADrating",
        summary="Mean absolute difference between the values within two groups of items, over all pairs.",
        formula="mean over pairs g < h of |M(g) - M(h)|, M(g) being the measure with group=g",
        range="from 0, in units of the measure",
        undefined=_FEW_GROUPS.replace(", whose segment is known", ""),
        interval="none",
        source="Elliot ItemMADranking and ItemMADrating",
        setting="slicing.item_slices",
    ),
)


def find_statistic(text: str) -> GroupStatistic | None:
    """Return the statistic of a name, in any case, with or without a measure in brackets and a cutoff; else None.

    >>> find_statistic("groupgap(nDCG)@10").name, find_statistic("nDCG")
    ('GroupGap', None)
    """
    name = text.partition("(")[0].partition("@")[0].strip().casefold()
    return next((statistic for statistic in ALL if statistic.name.casefold() == name), None)


def name_of(kind: str, label: str) -> str:
    """Return the name of the statistic of a measure.

    >>> name_of(GROUP_GAP, "AP(denom='min')")
    "GroupGap(AP(denom='min'))"
    """
    return f"{kind}({label})"


def parts_of(text: str) -> tuple[str, str] | None:
    """Split such a name into kind and measure; None for another name. Kinds are read in any case, no cutoff.

    >>> parts_of("groupgap( ndcg )@10"), parts_of("nDCG")
    (('GroupGap', 'ndcg'), None)
    """
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*(?:@.*)?", text, re.DOTALL)
    statistic = find_statistic(found[1]) if found else None
    return None if found is None or statistic is None else (statistic.name, found[2].strip())


def at_cutoff(text: str) -> tuple[str, str] | None:
    """Split a statistic's name with its cutoff into kind and measure with that cutoff; None for another name.

    >>> at_cutoff("GroupGap(nDCG)@10"), at_cutoff("groupgap(nDCG@10)"), at_cutoff("nDCG@10")
    (('GroupGap', 'nDCG@10'), ('GroupGap', 'nDCG@10'), None)
    """
    parts = parts_of(text)
    if parts is None:
        return None
    _, at, cutoff = text[text.rindex(")") :].partition("@")
    return parts[0], f"{parts[1]}{at}{cutoff.strip()}"
