"""Gains and discounts: what an item is worth at a rank, for the measures that add up discounted gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import positions, sum_by_list
from rankeval_spark.measures.options import GainMap, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rankeval_spark.measures.arrays import BoolMatrix, FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.lists import CutLists

Dcg: TypeAlias = Literal["log2", "exp-log2", "jk2", "inverse"]
"""How a gain is discounted; ``exp-log2`` also raises it to 2**gain - 1."""

Gains: TypeAlias = Literal["grade", "binary"] | GainMap
"""What an item is worth: its gain (0 where that is negative), 1 where the gain reaches ``rel``, or what a map says."""

Ideal: TypeAlias = Literal["judged", "k_ones", "retrieved", "len"]
"""The order that a list is compared with."""

_DISCOUNTS: Final[Mapping[str, Callable[[IntVector], FloatVector]]] = {
    "none": lambda rank: np.ones(len(rank)),
    "log2": lambda rank: 1 / np.log2(rank + 1),
    "exp-log2": lambda rank: 1 / np.log2(rank + 1),
    "jk2": lambda rank: 1 / np.log2(np.maximum(rank, 2)),
    "inverse": lambda rank: 1 / rank,
}


@dataclass(frozen=True)
class Weighting:
    """A gain and a discount; measures with the same ones share their sums.

    Parameters
    ----------
    dcg
        One of :data:`Dcg`, or ``none`` for no discount.
    gains
        One of :data:`Gains`.
    rel
        Gain from which on an item is relevant; used by ``gains='binary'`` only.

    Examples
    --------
    >>> Weighting("exp-log2", "grade", 1).gain(np.array([3.0, -1.0]))
    array([7., 0.])
    >>> Weighting("inverse", "binary", 1).discount(np.array([1, 2]))
    array([1. , 0.5])
    """

    dcg: str
    gains: Gains
    rel: float

    def gain(self, grades: FloatVector) -> FloatVector:
        """Worth of an item with each of these gains, before the discount. ``exp-log2`` overflows above 1023.

        Raises
        ------
        JudgementError
            A gain above 0 that the map of ``gains`` does not hold.
        """
        match self.gains:
            case "binary":
                gain = (grades >= self.rel).astype(np.float64)
            case GainMap() as gain_map:
                gain = _mapped(gain_map, grades)
            case _:
                gain = np.maximum(grades, 0.0)
        return np.exp2(gain) - 1 if self.dcg == "exp-log2" else gain

    def discount(self, ranks: IntVector) -> FloatVector:
        """Weight of each of these ranks."""
        return _DISCOUNTS[self.dcg](ranks)

    def total(self, cut: CutLists) -> FloatMatrix:
        """Sum of discounted gains at ranks 1..k of each list."""
        lists = cut.lists
        return cut.once(
            ("total", self), lambda: cut.sum_hits(self.gain(lists.hit_gain) * self.discount(lists.hit_rank))
        )

    def ideal_total(self, cut: CutLists, ideal: Ideal = "judged") -> FloatMatrix:
        """Return the same sum for an ideal order.

        Parameters
        ----------
        cut
            The lists and the cutoffs.
        ideal
            ``judged``: all judgements, best first, cut at k; ``len``: the same, cut at min(k, n); ``retrieved``: the
            recommended items at ranks 1..k, best first; ``k_ones``: a gain of 1 at each of the k ranks.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs) or (1, n_cutoffs)
        """
        return cut.once(("ideal total", self, ideal), lambda: _IDEALS[ideal](self, cut))

    def has_gain(self, cut: CutLists) -> BoolMatrix:
        """Whether any judgement of the list's user is worth more than 0: shape (n_lists, 1)."""
        lists = cut.lists
        return lists.once(("has gain", self), lambda: lists.count_judged(self.gain(lists.judged_gain) > 0) > 0)


def _mapped(gain_map: GainMap, grades: FloatVector) -> FloatVector:
    """Look the grades up; those up to 0 are worth 0, like an item without a judgement."""
    known = np.array((0.0, *gain_map.grades))
    sought = np.maximum(grades, 0.0)
    position = np.minimum(np.searchsorted(known, sought), known.size - 1)
    is_unknown = known[position] != sought
    if is_unknown.any():
        grade = show(float(sought[is_unknown].max()))
        place, known_grades = f"measures, gains={show(gain_map)}", ", ".join(map(show, gain_map.grades))
        expected, fix = f"only {known_grades} above 0", f"give {grade} a gain in the map, or correct the grades"
        raise JudgementError(Fault(place, f"a judgement with grade {grade}", expected, fix))
    return np.array((0.0, *gain_map.gains))[position]


def _of_judged(weighting: Weighting, cut: CutLists) -> FloatMatrix:
    return cut.sum_ideal(_ideal_worth(weighting, cut))


def _of_judged_as_long_as_list(weighting: Weighting, cut: CutLists) -> FloatMatrix:
    lists = cut.lists
    is_within_list = lists.ideal_rank <= lists.n_recommended[lists.judged_list]
    return cut.sum_ideal(_ideal_worth(weighting, cut) * is_within_list)


def _of_ones(weighting: Weighting, cut: CutLists) -> FloatMatrix:
    """Infinite for the whole list, which has no k."""
    k = cut.k[0]
    is_finite = np.isfinite(k)
    running = np.cumsum(weighting.discount(np.arange(1, int(k[is_finite].max(initial=0)) + 1)))
    totals = np.full((1, k.size), np.inf)
    totals[0, is_finite] = running[k[is_finite].astype(np.int64) - 1]
    return totals


def _of_retrieved(weighting: Weighting, cut: CutLists) -> FloatMatrix:
    """Sort the hits of each list by gain once; then each cutoff keeps its own and numbers them anew."""
    lists = cut.lists
    best_first = np.lexsort((-lists.hit_gain, lists.hit_list))
    owner, rank = lists.hit_list[best_first], lists.hit_rank[best_first]
    worth = weighting.gain(lists.hit_gain[best_first])

    def total_at(k: float) -> FloatVector:
        is_kept = rank <= k
        kept = owner[is_kept]
        discount = weighting.discount(positions(kept, n_lists=lists.n_lists))
        return sum_by_list(kept, worth[is_kept] * discount, n_lists=lists.n_lists)

    return np.stack([total_at(k) for k in cut.k[0]], axis=1)


def _ideal_worth(weighting: Weighting, cut: CutLists) -> FloatVector:
    return weighting.gain(cut.lists.judged_gain) * weighting.discount(cut.lists.ideal_rank)


_IDEALS: Final[Mapping[Ideal, Callable[[Weighting, CutLists], FloatMatrix]]] = {
    "judged": _of_judged,
    "len": _of_judged_as_long_as_list,
    "retrieved": _of_retrieved,
    "k_ones": _of_ones,
}
