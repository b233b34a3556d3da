"""What stands beside the measures: numbers of several groups, or of two models, that are not asked for in ``measures``.

They are explained like measures, and a config that asks for one is told how it is had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FEW_GROUPS: Final = "fewer than two groups that are not small, whose segment is known and which have a value"
_NO_TWO_LISTS: Final = "a user to whom one of the two models gave no list has no row"

_IN_METRICS: Final = "with {key} it stands in metrics beside every measure, as {{name}}(nDCG); docs/slices.md"
WITH_SLICES: Final = _IN_METRICS.format(key="slices")
WITH_ITEM_SLICES: Final = _IN_METRICS.format(key="item_slices")
OF_MODELS: Final = "ask evaluate(...).agreement(baseline) for the column {column}"


@dataclass(frozen=True)
class Beside:
    """One such number.

    Parameters
    ----------
    name
        As it stands in ``metrics`` before a measure in brackets, or as papers call it.
    summary
        What it is, in a sentence.
    formula
        M(g) is the value of the measure for group g; S and L are the first k items of two models.
    range, undefined, interval, source
        As for a measure.
    way
        How it is had; ``{name}`` and ``{column}`` stand for its own.
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
        """How it is had.

        Examples
        --------
        >>> find("RBO").comes
        'ask evaluate(...).agreement(baseline) for the column rbo'
        """
        return self.way.format(name=self.name, column=self.name.casefold())

    @property
    def fix(self) -> str:
        """What to do instead of asking for it in ``measures``."""
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
    Beside(
        name="Overlap",
        summary="Share of the first k places that the lists of two models have in common, user by user.",
        formula="|S and L| / k",
        range="[0, 1]",
        undefined=_NO_TWO_LISTS,
        interval="none: a value for each user",
        source="RecTools Intersection",
        way=OF_MODELS,
    ),
    Beside(
        name="Jaccard",
        summary="Share of the items of either list that both models show, user by user.",
        formula="|S and L| / |S or L|",
        range="[0, 1]",
        undefined=_NO_TWO_LISTS,
        interval="none: a value for each user",
        source="Jaccard (1901)",
        way=OF_MODELS,
    ),
    Beside(
        name="RBO",
        summary="Rank-biased overlap of the lists of two models, extrapolated, user by user.",
        formula="(1 - p) sum_{d>=1} p^(d-1) |S_d and L_d| / d, extrapolated beyond the lists; p = 0.9",
        range="[0, 1]",
        undefined=_NO_TWO_LISTS,
        interval="none: a value for each user",
        source="Webber, Moffat & Zobel (2010), A similarity measure for indefinite rankings, equation 32; LensKit RBO",
        way=OF_MODELS,
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
