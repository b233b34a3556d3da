"""Judgements that a graded measure can take: its scale of grades is given, never read off the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.options import show

if TYPE_CHECKING:
    from rankeval_spark.measures.lists import Lists


def require_no_gain_above(max_rel: float, lists: Lists, *, measure: str) -> None:
    """Refuse a batch with a judgement above the scale, whether it was recommended or not.

    Raises
    ------
    JudgementError
        The greatest gain of the batch is above ``max_rel``.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> require_no_gain_above(4, Lists.of([Ranking([4, None], missed=[1])]), measure="ERR")
    """
    greatest = float(lists.judged_gain.max(initial=0.0))
    if greatest > max_rel:
        found, expected = f"a judgement with grade {show(greatest)}", f"none above max_rel={show(max_rel)}"
        fix = "set max_rel to the greatest grade there can be, or correct the grades"
        raise JudgementError(Fault(f"measures, {measure}", found, expected, fix))
