"""Names of what is said of a measure and several groups together, such as ``GroupGap(nDCG)``.

The groups are those of the users of a slicing, or of items, as the option ``group`` names them. The cutoff is
stored next to the name, as it is next to that of the measure.
"""

from __future__ import annotations

import re
from typing import Final

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import registry
from rankeval_spark.measures.names import Measure

GROUP_GAP: Final = "GroupGap"
"""Greatest value of a group less the least."""
GROUP_RATIO: Final = "GroupRatio"
"""Least value over the greatest."""
USER_MAD: Final = "UserMAD"
"""Mean over all pairs of groups of the absolute difference, as Elliot's."""
WORST_GROUP: Final = "WorstGroup"
"""Value of the group with the worst one."""

KINDS: Final = (GROUP_GAP, GROUP_RATIO, USER_MAD, WORST_GROUP)
"""Of groups of users."""

ITEM_MAD: Final = "ItemMAD"
"""Mean over all pairs of groups of items of the absolute difference of the measure within them, as Elliot's."""

_ALL: Final = (*KINDS, ITEM_MAD)


def name_of(kind: str, label: str) -> str:
    """Name one of :data:`KINDS` of a measure.

    Examples
    --------
    >>> name_of(GROUP_GAP, "AP(denom='min')")
    "GroupGap(AP(denom='min'))"
    """
    return f"{kind}({label})"


def parts_of(text: str) -> tuple[str, str] | None:
    """Split such a name into kind and measure; None where it is none. Kinds are read in any case, no cutoff.

    Examples
    --------
    >>> parts_of("groupgap( ndcg )@10"), parts_of("nDCG")
    (('GroupGap', 'ndcg'), None)
    """
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*(?:@.*)?", text, re.DOTALL)
    kinds = {kind.casefold(): kind for kind in _ALL}
    if found is None or found[1].casefold() not in kinds:
        return None
    return kinds[found[1].casefold()], found[2].strip()


def at_cutoff(text: str) -> tuple[str, str] | None:
    """Split such a name with its cutoff into kind and measure with that cutoff; None where it is none.

    Examples
    --------
    >>> at_cutoff("GroupGap(nDCG)@10"), at_cutoff("groupgap(nDCG@10)"), at_cutoff("nDCG@10")
    (('GroupGap', 'nDCG@10'), ('GroupGap', 'nDCG@10'), None)
    """
    parts = parts_of(text)
    if parts is None:
        return None
    _, at, cutoff = text[text.rindex(")") :].partition("@")
    return parts[0], f"{parts[1]}{at}{cutoff.strip()}"


def whole_of(label: str) -> tuple[str, str] | None:
    """Take the group of items out of a label: what is left, and the group; None where there is none.

    Examples
    --------
    >>> whole_of("nDCG(gains='binary',group='drama')"), whole_of("nDCG")
    (("nDCG(gains='binary')", 'drama'), None)
    """
    measure = measure_of(label)
    if measure is None or measure.group is None:
        return None
    options = {name: value for name, value in measure.options.items() if name != registry.GROUP}
    return Measure.of(measure.name, k=measure.k, **options).label, measure.group


def measure_of(label: str) -> Measure | None:
    """Read the measure of a label; None where this version does not know it.

    Examples
    --------
    >>> str(measure_of("P")), measure_of("Unheard")
    ('P@1', None)
    """
    for text in (label, f"{label}@1"):  # P has no meaning without a cutoff
        try:
            return Measure.parse(text)
        except ConfigError:
            continue
    return None
