"""Gains that are discounted and added up over the ranks, also relative to the best order there could be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import (
    BoolMatrix,
    FloatMatrix,
    FloatVector,
    IntVector,
    Ratio,
    divide_or_zero,
    median_by_list,
    nan_unless,
    positions_in_list,
    prefix_sums,
    sum_by_list,
)
from rankeval_spark.measures.definition import Cutoff, Definition, OptionRule, only_with
from rankeval_spark.measures.lists import CutLists, Lists, memoised
from rankeval_spark.measures.options import Above, GainMap, Level, NotOffered, Persistence, option_text
from rankeval_spark.measures.required_facts import VALUES

_Discount: TypeAlias = Literal["log2", "ln", "log10", "jk2", "jk10", "inverse", "sqrt", "geometric", "none"]
_RaisedAndDiscounted: TypeAlias = Literal[
    "exp-log2", "exp-ln", "exp-log10", "exp-jk2", "exp-jk10", "exp-inverse", "exp-sqrt", "exp-geometric", "exp-none"
]

Dcg: TypeAlias = Annotated[
    Literal[_Discount, _RaisedAndDiscounted],
    "Discount of an item of gain g at rank i. `log2`, `ln` and `log10` divide g by that logarithm of i + 1; `jk2` and "
    "`jk10` by the logarithm of i to base 2 or 10 from that rank; `inverse` by i; `sqrt` by the root of i. "
    "`geometric` multiplies with p**(i - 1), `none` does nothing. After `exp-` the gain is 2**g - 1; a gain above 1000 "
    "is an error there.",
    NotOffered("zipf", "the discount 1 / i is dcg='inverse'"),
    NotOffered("linear", "the discount 1 / i is dcg='inverse'"),
    NotOffered("log", "the natural logarithm is dcg='ln'; its base changes no nDCG"),
    NotOffered("rbp", "the discount p**(i - 1) is dcg='geometric' with p=0.8"),
    NotOffered("exp", "2**g - 1 goes with a discount: dcg='exp-log2'"),
]

GeometricFactor: TypeAlias = Annotated[
    Persistence | None, "Ratio of a discount to that of the rank above, of `dcg='geometric'` alone."
]

Gains: TypeAlias = Annotated[
    Literal["grade", "binary", "value"] | GainMap,
    "Gain of an item: its own, 0 where that is negative; 1 where it is relevant; the value that the held-out table "
    "has next to the gain, 0 where either is negative; what the map gives its grade. A grade above 0 that the map "
    "does not hold is an error; 0 may have a gain, which judged items then have and others have not.",
]

Ideal: TypeAlias = Annotated[
    Literal["judged", "k_ones", "retrieved", "len"],
    "The best order: of all judgements; k relevant items; the list's own first k items sorted; the judgements, as "
    "many as the list is long.",
]

Unjudged: TypeAlias = Annotated[
    Literal["zero", "mean", "median"] | float,
    Above(0),
    "Gain of an item without a judgement, or with a negative gain: 0; the mean or the median of the gains of the "
    "user's other judged items; this number.",
]

_RAISED: Final = "exp-"  # start of the names of discounts of 2**gain - 1

_DISCOUNTS: Final[Mapping[str, Callable[[IntVector], FloatVector]]] = {
    "none": lambda rank: np.ones(len(rank)),
    "log2": lambda rank: 1 / np.log2(rank + 1),
    "ln": lambda rank: 1 / np.log(rank + 1),
    "log10": lambda rank: 1 / np.log10(rank + 1),
    "jk2": lambda rank: 1 / np.log2(np.maximum(rank, 2)),
    "jk10": lambda rank: 1 / np.log10(np.maximum(rank, 10)),
    "inverse": lambda rank: 1 / rank,
    "sqrt": lambda rank: 1 / np.sqrt(rank),
}

_MAX_RAISED: Final = 1000.0  # greatest gain that is raised: 10,000 times 2**1000 fits into a double, 2**1024 does not

_SMALLER: Final = -512  # exponent of the power of two that scales gains whose sums do not fit into a double


@dataclass(frozen=True)
class Weighting:
    """A gain and a discount; measures with the same ones share their sums.

    >>> Weighting("exp-log2", "grade", 1).gain(np.array([3.0, -1.0]))
    array([7., 0.])
    >>> Weighting("inverse", "binary", 1).discount(np.array([1, 2]))
    array([1. , 0.5])
    """

    dcg: str  # one of :data:`Dcg`
    gains: Gains  # one of :data:`Gains`
    rel: float  # lowest gain of a relevant item; used by ``gains='binary'`` only
    unjudged: Unjudged = "zero"
    power: int = 0  # power of two by which gains are multiplied, so that their sums are doubles
    p: float | None = None  # ratio of the discounts of two ranks; used by ``geometric`` only

    @property
    def is_raised(self) -> bool:
        """Whether an item is worth 2 to the power of its gain, minus 1."""
        return self.dcg.startswith(_RAISED)

    def gain(self, grades: FloatVector) -> FloatVector:
        """Worth of an item with each of these gains or values, before the discount.

        JudgementError for a gain above 0 that the map of ``gains`` does not hold, or above 1000 after ``exp-``.
        """
        return self._raise_to_power(self._gain_before_power(grades))

    def _gain_before_power(self, grades: FloatVector) -> FloatVector:
        """Return the gain of each grade as ``gains`` says, scaled by 2 to the power of :attr:`power`."""
        if self.gains == "binary":
            gain = (grades >= self.rel).astype(np.float64)
        elif isinstance(self.gains, GainMap):
            gain = _look_up_grades(self.gains, grades)
        else:
            gain = np.maximum(grades, 0.0)
        return np.ldexp(gain, self.power) if self.power and not self.is_raised else gain

    def _raise_to_power(self, gain: FloatVector) -> FloatVector:
        """Return 2**gain - 1 after ``exp-``, else the gain; JudgementError for a gain above 1000."""
        if not self.is_raised:
            return gain
        greatest = float(gain.max(initial=0.0))
        if greatest > _MAX_RAISED:
            found = f"a gain of {option_text(greatest)}"
            expected = f"none above {option_text(_MAX_RAISED)}: 2**gain - 1 overflows"
            plain = self.dcg.removeprefix(_RAISED)
            fix = f"take dcg='{plain}', give the grades other gains (gains={{...}}), or correct the grades"
            raise JudgementError(Fault(f"measures, dcg='{self.dcg}'", found, expected, fix))
        raised: FloatVector = np.ldexp(np.exp2(gain) - 1, self.power)
        return raised

    def of_hits(self, lists: Lists) -> FloatVector:
        """Worth of each hit: float64, shape (n_hits,)."""
        return self._worth(lists, 0)

    def rank_judged(self, lists: Lists) -> tuple[FloatVector, IntVector | None]:
        """Rank the judgements of each user by worth: float64, shape (n_judged,), weights included; and which each is.

        None instead of their positions where they come in the order of their gains.
        """
        worth = self._worth(lists, 1)
        if not lists.is_weighted and self.gains != "value":
            return worth, None
        worth = worth * lists.weights[1] if lists.is_weighted else worth
        order = np.lexsort((-worth, lists.judged_list))
        return worth[order], order

    def of_unjudged(self, lists: Lists) -> FloatMatrix:
        """Worth of an item without a judgement: float64, shape (n_lists, 1); 0 for a user without any judgement."""
        key = ("unjudged", replace(self, dcg=_RAISED * self.is_raised, p=None))
        return lists.once(key, lambda: self._raise_to_power(self._average_judged(lists))[:, None])

    def _worth(self, lists: Lists, side: int) -> FloatVector:
        """Worth of the hits (0) or the judgements (1), computed once for all discounts."""
        gains = lists.values[side] if self.gains == "value" else (lists.hit_gain, lists.judged_gain)[side]
        key = ("worth", side, self.gains, self.rel, self.is_raised, self.power)
        return lists.once(key, lambda: self.gain(gains))

    def _average_judged(self, lists: Lists) -> FloatVector:
        """Mean or median, before it is raised, of what the judged items of each user are worth; or a number."""
        if isinstance(self.unjudged, float):
            return np.full(lists.n_lists, math.ldexp(self.unjudged, 0 if self.is_raised else self.power))
        is_judged, n_lists = lists.judged_gain >= 0, lists.n_lists
        owner = lists.judged_list[is_judged]
        worth = self._gain_before_power((lists.values[1] if self.gains == "value" else lists.judged_gain)[is_judged])
        if self.unjudged == "median":
            middle = median_by_list(owner, worth, n_lists=n_lists)
            return np.where(np.isnan(middle), 0.0, middle)
        best_first = worth[np.lexsort((-worth, owner))]
        n_judged = np.bincount(owner, minlength=n_lists)
        return sum_by_list(owner, best_first, n_lists=n_lists) / np.maximum(n_judged, 1)

    def discount(self, ranks: IntVector) -> FloatVector:
        """Weight of each of these ranks."""
        name = self.dcg.removeprefix(_RAISED)
        if name == "geometric":
            return np.power(self.p or math.nan, ranks - 1, dtype=np.float64)
        return _DISCOUNTS[name](ranks)

    def total(self, cut: CutLists) -> FloatMatrix:
        """Sum of discounted gains at ranks 1..k of each list; infinite where it is beyond a double."""
        total = cut.once(("total", self), lambda: self._sum_discounted(cut))
        if not self.power and np.isnan(total).any():  # infinity times 0, the number of unjudged items
            return np.ldexp(replace(self, power=_SMALLER).total(cut), -_SMALLER)
        return total

    def ideal_total(self, cut: CutLists, ideal: Ideal) -> FloatMatrix:
        """Sum of discounted gains at ranks 1..k of the best order; infinite where it is beyond a double."""
        best = _ideal_total(cut, self, ideal)
        if not self.power and np.isnan(best).any():
            return np.ldexp(replace(self, power=_SMALLER).ideal_total(cut, ideal), -_SMALLER)
        return best

    def _sum_discounted(self, cut: CutLists) -> FloatMatrix:
        """Sum the discounted gains of hits and, where these are worth something, of unjudged items."""
        lists = cut.lists
        discounts = self.discount(lists.hit_rank)
        total = cut.sum_hits(self.of_hits(lists), discount=discounts)
        if self.unjudged == "zero":
            return total
        of_items = self.discounts_to(cut.depth) - cut.sum_empty(self.discounts_to)
        return total + self.of_unjudged(lists) * (of_items - cut.sum_hits(discounts * lists.is_judged_hit))

    def discounts_to(self, depth: FloatMatrix) -> FloatMatrix:
        """Sum of the weights of ranks 1 to ``depth``."""
        places = depth.astype(np.int64)
        return prefix_sums(self.discount(np.arange(1, places.max(initial=0) + 1)))[places]

    def share_of_ideal(self, cut: CutLists, ideal: Ideal = "judged") -> Ratio:
        """Divide the sum by that of the best order; 0 where a list without any gain is compared with itself.

        Where a sum is beyond a double, the value is the ratio of the sums of smaller gains.
        """
        total, best = self.total(cut), _ideal_total(cut, self, ideal)
        share, is_known = None, np.isfinite(total) & np.isfinite(best)
        if self.gains != "binary" and not is_known.all():
            smaller = replace(self, power=_SMALLER)
            of_smaller = divide_or_zero(smaller.total(cut), _ideal_total(cut, smaller, ideal))
            share = np.where(is_known, divide_or_zero(total, best), of_smaller)
        return Ratio(total, best, where=self.has_gain(cut), value=share)

    def has_gain(self, cut: CutLists) -> BoolMatrix:
        """Return True if any judgement of the list's user is worth more than 0: shape (n_lists, 1)."""
        lists = cut.lists

        def compute() -> BoolMatrix:
            best = self.rank_judged(lists)[0].astype(np.float64)
            return sum_by_list(lists.judged_list, (best > 0).astype(np.float64), n_lists=lists.n_lists)[:, None] > 0

        return lists.once(("has gain", self), compute)


def _look_up_grades(gain_map: GainMap, grades: FloatVector) -> FloatVector:
    """Look the grades up; a negative one is worth 0, like an item without a judgement, and so is 0 without a gain."""
    pairs = gain_map.pairs if gain_map.pairs[0][0] == 0 else ((0.0, 0.0), *gain_map.pairs)
    known, gains = np.array(pairs).T
    sought = np.maximum(grades, 0.0)
    position = np.minimum(np.searchsorted(known, sought), known.size - 1)
    is_unknown = known[position] != sought
    if is_unknown.any():
        grade = option_text(float(sought[is_unknown].max()))
        expected = f"only {', '.join(option_text(mapped_grade) for mapped_grade, _ in gain_map.pairs)} above 0"
        place = f"measures, gains={option_text(gain_map)}"
        fix = f"give {grade} a gain in the map, or correct the grades"
        raise JudgementError(Fault(place, f"a judgement with grade {grade}", expected, fix))
    return np.where(grades < 0, 0.0, gains[position])


def relevance_levels(gains: str | GainMap, rel: float, lists: Lists) -> list[tuple[float, float]]:
    """Return the levels from which an item is relevant, each with its weight: the gain that a map adds at this grade.

    JudgementError for a gain above 0 that the map does not hold.
    """
    if not isinstance(gains, GainMap):
        return [(rel, 1.0)]
    _look_up_grades(gains, lists.judged_gain)
    steps = pairwise([(0.0, 0.0), *gains.pairs])
    return [(grade, gain - before) for (_, before), (grade, gain) in steps if gain > before]


@memoised
def _ideal_total(cut: CutLists, weighting: Weighting, ideal: Ideal) -> FloatMatrix:
    """Sum the discounted gains of the best order, as :data:`Ideal` says: shape (1, n_cutoffs) for ``k_ones``.

    Items without a judgement come before judged ones that are worth less.
    """
    lists = cut.lists
    if ideal == "retrieved":
        return _total_of_retrieved(weighting, cut)
    if ideal == "k_ones":  # infinite for the whole list, which has no k
        is_finite = np.isfinite(cut.k)
        return np.where(is_finite, weighting.discounts_to(np.where(is_finite, cut.k, 0.0)), np.inf)
    (worth, order), discounts = weighting.rank_judged(lists), weighting.discount(lists.ideal_rank)  # (n_judged,)
    # The whole list has no ideal where items without a judgement are worth something; it is never requested.
    depth = np.where(np.isfinite(cut.k), cut.k, 0.0)
    if ideal == "len":
        depth = np.minimum(cut.k, lists.n_items[:, None])
        discounts *= lists.ideal_rank <= lists.n_items[lists.judged_list]
    if weighting.unjudged == "zero":
        return cut.sum_ideal(worth, discount=discounts, of=order)
    unjudged = weighting.of_unjudged(lists)  # (n_lists, 1)
    discounts *= worth > unjudged[lists.judged_list, 0]
    of_worth = cut.sum_ideal(worth, discount=discounts, of=order)
    return of_worth + unjudged * (weighting.discounts_to(depth) - cut.sum_ideal(discounts))


def _total_of_retrieved(weighting: Weighting, cut: CutLists) -> FloatMatrix:
    """Sort the hits of each list by gain once; then each cutoff keeps its own and renumbers them."""
    lists = cut.lists
    worth = weighting.of_hits(lists)
    best_first = np.lexsort((-worth, lists.hit_list))
    owner, rank, worth = lists.hit_list[best_first], lists.hit_rank[best_first], worth[best_first]
    totals = []
    for k in cut.k[0]:
        kept = owner[rank <= k]
        discount = weighting.discount(positions_in_list(kept, n_lists=lists.n_lists))
        totals.append(sum_by_list(kept, worth[rank <= k] * discount, n_lists=lists.n_lists))
    return np.stack(totals, axis=1)


def require_no_gain_above(max_rel: float, lists: Lists, *, measure: str) -> None:
    """Raise JudgementError for a batch with a judgement above the scale, whether it was recommended or not."""
    greatest = float(lists.judged_gain.max(initial=0.0))
    if greatest > max_rel:
        found = f"a judgement with grade {option_text(greatest)}"
        expected = f"none above max_rel={option_text(max_rel)}"
        fix = "set max_rel to the greatest grade there can be, or correct the grades"
        raise JudgementError(Fault(f"measures, {measure}", found, expected, fix))


_NO_GAIN = (
    "no judgement with a positive gain; with gains='binary': no relevant one (R = 0); with 'value': no such value"
)
_JARVELIN = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques"
_WANG = "Wang et al. (2013), A theoretical analysis of NDCG type ranking measures"
MOFFAT = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness"
_BURGES = "Burges et al. (2005), Learning to rank using gradient descent"

_REL_IS_BINARY: Final = only_with("rel", 1, "gains", "binary")
_ONES_ARE_BINARY: Final = OptionRule(
    "ideal='k_ones' only with gains='binary'",
    lambda options: options["ideal"] == "k_ones" and options["gains"] != "binary",
)
_VALUES_ARE_NOT_RAISED: Final = OptionRule(
    "gains='value' with a dcg without exp-: 2 to the power of an amount says nothing",
    lambda options: str(options["dcg"]).startswith(_RAISED) and options["gains"] == "value",
)
_P_IS_GEOMETRIC: Final = OptionRule(
    "p with dcg='geometric', which needs one such as p=0.8, and with no other",
    lambda options: str(options["dcg"]).endswith("geometric") != (options["p"] is not None),
)
_UNJUDGED_IN_IDEAL: Final = OptionRule(
    "unjudged='mean', 'median' or a number only with ideal='judged' and 'len'",
    lambda options: options["unjudged"] != "zero" and options["ideal"] not in {"judged", "len"},
)
_NONE_IS_LEFT: Final = OptionRule(
    "judged_only=True not with unjudged='mean', 'median' or a number: the lists then hold no item without a judgement",
    lambda options: options["judged_only"] is True and options["unjudged"] != "zero",
)
OF_UNJUDGED: Final = (_NONE_IS_LEFT, only_with("weighted", None, "unjudged", "zero"))
_RULES: Final = (_REL_IS_BINARY, *OF_UNJUDGED)
_DISCOUNT_RULES: Final = (*_RULES, _VALUES_ARE_NOT_RAISED, _P_IS_GEOMETRIC)
_OF_IDEAL: Final = (_ONES_ARE_BINARY, _UNJUDGED_IN_IDEAL, only_with("weighted", None, "ideal", "judged", "len"))
_IDEAL_CUTOFF: Final = Cutoff("optional").but("required", ideal="k_ones").but("required", unjudged="mean")
_NORMALISED_CUTOFF: Final = _IDEAL_CUTOFF.but("required", unjudged="median").but("required", unjudged=float)
"""An ideal list of ones, or of items without a judgement that are worth something, has no end of its own."""


def _is_bounded_by_gains(  # every other option leaves the better item the one with the greater gain
    *, gains: Gains, unjudged: Unjudged, group: str | None, ideal: Ideal = "judged", **_: object
) -> bool:
    """Return True if descending gains are the best order of tied items, and ascending gains the worst.

    Where a map gives grade 0 a gain it is not: an item without a judgement has gain 0 too.
    """
    if isinstance(gains, GainMap) and gains.pairs[0][0] == 0:
        return False
    return gains != "value" and unjudged == "zero" and ideal != "retrieved" and group is None


gain_measure = partial(
    Definition,
    undefined=_NO_GAIN,
    needs=lambda gains, **_: (VALUES,) if gains == "value" else (),
    weighted=True,
    has_mean_over_ties=True,
    is_bounded_by_gains=_is_bounded_by_gains,
)


@gain_measure(
    name="CG",
    words="cumulative gain, cumulated gain, sum of gains",
    aliases={"CumulativeGain": {}, "CumulatedGain": {}},
    formula="sum_{i<=k} g_i",
    bounds=(0, math.inf),
    source=_JARVELIN,
    rules=_RULES,
)
def cumulated_gain(
    cut: CutLists, *, gains: Gains = "grade", rel: Level = 1, unjudged: Unjudged = "zero"
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations.

    In units of gain.

    >>> cumulated_gain(Lists.of([Ranking([3, 1, 0, 2, 0])]).cut([1, 2, 0]))
    array([[3., 4., 6.]])
    """
    return _defined_total(cut, Weighting("none", gains, rel, unjudged))


@gain_measure(
    name="nCG",
    words="normalized cumulative gain",
    aliases={"NormalizedCumulativeGain": {}, "NormalizedCumulatedGain": {}},
    formula="CG@k / (CG@k of the ideal order)",
    source=_JARVELIN,
    cutoff=_NORMALISED_CUTOFF,
    rules=(*_RULES, *_OF_IDEAL),
    has_mean_over_ties=lambda ideal, **_: ideal != "retrieved",
)
def normalised_cumulated_gain(
    cut: CutLists, *, gains: Gains = "grade", ideal: Ideal = "judged", rel: Level = 1, unjudged: Unjudged = "zero"
) -> Ratio:
    """Sum of the gains of the first k recommendations, relative to the best k there could be.

    >>> normalised_cumulated_gain(Lists.of([Ranking([1, 5, 3])]).cut([1, 2])).values
    array([[0.2 , 0.75]])
    """
    return Weighting("none", gains, rel, unjudged).share_of_ideal(cut, ideal)


@gain_measure(
    name="DCG",
    words="discounted cumulative gain",
    aliases={"DiscountedCumulativeGain": {}, "DiscountedCumulatedGain": {}, "dcg_burges": {"dcg": "exp-log2"}},
    formula="sum_{i<=k} g_i / log2(i + 1)",
    bounds=(0, math.inf),
    source=f"{_BURGES}; dcg='jk2' and 'jk10': {_JARVELIN}; dcg='ln' and 'log10': scikit-learn dcg_score with log_base; "
    f"dcg='inverse' and 'sqrt': {_WANG}; dcg='geometric': {MOFFAT}",
    rules=_DISCOUNT_RULES,
)
def discounted_cumulated_gain(
    cut: CutLists,
    *,
    dcg: Dcg = "log2",
    gains: Gains = "grade",
    p: GeometricFactor = None,
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations, each discounted by its rank.

    In units of gain. Gains 3 and 1 at ranks 1 and 3: 3 / log2(2) + 1 / log2(4).

    >>> discounted_cumulated_gain(Lists.of([Ranking([3, None, 1])]).cut([1, 3]))
    array([[3. , 3.5]])
    """
    return _defined_total(cut, Weighting(dcg, gains, rel, unjudged, p=p))


@gain_measure(
    name="nDCG",
    words="normalized discounted cumulative gain, normalized DCG, normalised discounted cumulated gain",
    aliases={
        "ndcg_cut": {},
        "NormalizedDiscountedCumulativeGain": {},
        "NormalizedDiscountedCumulatedGain": {},
        "ndcg_burges": {"dcg": "exp-log2"},
    },
    formula="DCG@k / IDCG@k",
    source=f"trec_eval ndcg and ndcg_cut; {_JARVELIN}; {_BURGES}",
    cutoff=_NORMALISED_CUTOFF,
    rules=(*_DISCOUNT_RULES, *_OF_IDEAL),
    has_mean_over_ties=lambda ideal, **_: ideal != "retrieved",
)
def normalised_discounted_cumulated_gain(
    cut: CutLists,
    *,
    dcg: Dcg = "log2",
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    p: GeometricFactor = None,
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> Ratio:
    """Discounted cumulated gain relative to that of the best order there could be.

    Hits at ranks 2 and 3 are (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)).

    >>> normalised_discounted_cumulated_gain(Lists.of([Ranking([None, 1, 1])]).cut([1, 3])).values.round(4)
    array([[0.    , 0.6934]])
    """
    return Weighting(dcg, gains, rel, unjudged, p=p).share_of_ideal(cut, ideal)


@gain_measure(
    name="IDCG",
    words="ideal discounted cumulative gain, ideal DCG, best possible DCG, maximum DCG, divisor of nDCG",
    aliases={"IdealDCG": {}, "MaxDCG": {}, "ICG": {"dcg": "none"}},
    formula="sum_{i<=k} g*_i / log2(i + 1), g* the gains of all judgements, best first",
    bounds=(0, math.inf),
    source=f"{_JARVELIN}: the ideal vector",
    cutoff=_NORMALISED_CUTOFF,
    rules=(*_DISCOUNT_RULES, *_OF_IDEAL),
    has_mean_over_ties=lambda ideal, **_: ideal != "retrieved",
    better="neither",
    without_relevant=0.0,
)
def ideal_discounted_cumulated_gain(
    cut: CutLists,
    *,
    dcg: Dcg = "log2",
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    p: GeometricFactor = None,
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> FloatMatrix:
    """Discounted cumulated gain of the best order there could be: what nDCG divides by.

    In units of gain; it depends on the judgements, and only with ``ideal='retrieved'`` and ``'len'`` on the list. Gains
    5, 3 and 1 are 5 + 3 / log2(3) + 1 / 2.

    >>> ideal_discounted_cumulated_gain(Lists.of([Ranking([1, 5], missed=[3])]).cut([1, 0])).round(4)
    array([[5.    , 7.3928]])
    """
    weighting = Weighting(dcg, gains, rel, unjudged, p=p)
    return nan_unless(weighting.ideal_total(cut, ideal), weighting.has_gain(cut))


def _defined_total(cut: CutLists, weighting: Weighting) -> FloatMatrix:
    """Return the sum of discounted gains; NaN for a user without a gain."""
    return nan_unless(weighting.total(cut), weighting.has_gain(cut))
