"""Numbers of several groups, published in addition to the measures and not requested in ``measures``.

They are documented like measures. A config that requests one gets an error that says how to obtain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FEW_GROUPS: Final = "fewer than two groups that are not small, whose segment is known and which have a value"

_IN_METRICS: Final = "with {key} the table group_metrics has it of every measure, as {{name}}(nDCG); docs/slices.md"
WITH_SLICES: Final = _IN_METRICS.format(key="slices")
WITH_ITEM_SLICES: Final = _IN_METRICS.format(key="item_slices")


@dataclass(frozen=True)
class Beside:
    """One such number.

    Parameters
    ----------
    name
        As ``group_metrics`` name it, before a measure in brackets.
    summary
        What it is, in a sentence.
    formula
        M(g) is the value of the measure for group g.
    range, undefined, interval, source
        As for a measure.
    way
        How it is obtained; ``{name}`` is replaced by its name.
    """

    name: str
    summary: str
    formula: str
    range: str
    undefined: str
    interval: str
    source: str
    way: str

    @property
    def comes(self) -> str:
        """Where its values are.

        Examples
        --------
        >>> find("GroupGap").comes
        'with slices the table group_metrics has it of every measure, as GroupGap(nDCG); docs/slices.md'
        """
        return self.way.format(name=self.name)

    @property
    def fix(self) -> str:
        """What to do instead of requesting it in ``measures``."""
        return f"leave it out: {self.comes}"


ALL: Final = (
    Beside(
        name="GroupGap",
        summary="How far the groups of users of a slicing lie apart.",
        formula="max_g M(g) - min_g M(g)",
        range="from 0, in units of the measure",
        undefined=_FEW_GROUPS,
        interval="simultaneous over all pairs of groups",
        source="the interval: Games & Howell (1976), Pairwise multiple comparison procedures with unequal n's",
        way=WITH_SLICES,
    ),
    Beside(
        name="GroupRatio",
        summary="What the group of users that is served worst has of what the one served best has.",
        formula="min_g M(g) / max_g M(g)",
        range="[0, 1]",
        undefined=f"{_FEW_GROUPS}; the greatest value is not above 0, or the least is below it",
        interval="from bounds that hold for all groups at once",
        source="the ratio that goes with GroupGap",
        way=WITH_SLICES,
    ),
    Beside(
        name="UserMAD",
        summary="Mean distance between two groups of users, over all pairs.",
        formula="mean over pairs g < h of |M(g) - M(h)|",
        range="from 0, in units of the measure",
        undefined=_FEW_GROUPS,
        interval="none",
        source="Elliot UserMADranking and UserMADrating",
        way=WITH_SLICES,
    ),
    Beside(
        name="WorstGroup",
        summary="Value of the group of users that is served worst, named in slice_values.",
        formula="min_g M(g); max_g M(g) of an error",
        range="that of the measure",
        undefined=_FEW_GROUPS,
        interval="from bounds that hold for all groups at once",
        source="the worst slice, published with its users",
        way=WITH_SLICES,
    ),
    Beside(
        name="ItemMAD",
        summary="Mean distance between the values within two groups of items, over all pairs.",
        formula="mean over pairs g < h of |M(g) - M(h)|, M(g) being the measure with group=g",
        range="from 0, in units of the measure",
        undefined=_FEW_GROUPS.replace(", whose segment is known", ""),
        interval="none",
        source="Elliot ItemMADranking and ItemMADrating",
        way=WITH_ITEM_SLICES,
    ),
)


def find(text: str) -> Beside | None:
    """Look one up, in any case, with a measure in brackets and a cutoff or without; None where there is none.

    Examples
    --------
    >>> find("groupgap(nDCG)@10").name, find("nDCG")
    ('GroupGap', None)
    """
    name = text.partition("(")[0].partition("@")[0].strip().casefold()
    return next((one for one in ALL if one.name.casefold() == name), None)


def names() -> tuple[str, ...]:
    """Names of all of them."""
    return tuple(one.name for one in ALL)
