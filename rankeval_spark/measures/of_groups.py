"""Names of what is said of a measure and the groups of a slicing together, such as ``GroupGap(nDCG)``.

The cutoff stands beside the name, as it does beside that of the measure.
"""

from __future__ import annotations

import re
from typing import Final

from rankeval_spark.errors import ConfigError
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

PATTERN: Final = f"^({'|'.join(KINDS)})\\(.*\\)$"
"""Regular expression of the names, as Spark reads it too."""


def name_of(kind: str, label: str) -> str:
    """Name one of :data:`KINDS` of a measure.

    Examples
    --------
    >>> name_of(GROUP_GAP, "AP(denom='min')")
    "GroupGap(AP(denom='min'))"
    """
    return f"{kind}({label})"


def parts_of(text: str) -> tuple[str, str] | None:
    """Take such a name apart into kind and measure; None where it is none. Kinds are read in any case, no cutoff.

    Examples
    --------
    >>> parts_of("groupgap( ndcg )@10"), parts_of("nDCG")
    (('GroupGap', 'ndcg'), None)
    """
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*(?:@.*)?", text, re.DOTALL)
    kinds = {kind.casefold(): kind for kind in KINDS}
    if found is None or found[1].casefold() not in kinds:
        return None
    return kinds[found[1].casefold()], found[2].strip()


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
