"""Other ways to the same numbers: each measure as a few lines of plain Python, and trec_eval.

The naive references follow the formulas of the measure sheet, one list at a time, with exact fractions where they can;
they share no code with the kernels.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Background, Item, Measure, Ranking, registry
from rankeval_spark.measures.options import GainMap
from tests.support.rankings import GRADES

if TYPE_CHECKING:
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.registry import Entry

Number = Fraction | float
Naive = Callable[..., Number | None]

NAIVE: dict[str, Naive] = {}
"""Reference of each measure: ``reference(list, k, **options)``, None where the measure is undefined."""


@dataclass(frozen=True)
class PlainList:
    """One list: gain at each rank (0 without a judgement), all judged gains, best first, and which ranks are judged.

    ``scores`` has the score at each rank, ``values`` the value (0 without a judgement); ``judged_gains`` and
    ``judged_values`` are those of all judgements in one order.
    """

    gains: list[float]
    judged: list[float]
    is_judged: list[bool]
    scores: list[float]
    items: list[Item] = field(default_factory=list)
    background: Background = field(default_factory=Background)
    values: list[float] = field(default_factory=list)
    judged_gains: list[float] = field(default_factory=list)
    judged_values: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, ranking: Ranking) -> PlainList:
        """Turn the builder's notation into plain lists."""
        recommended = [gain for gain in ranking.gains if gain is not None]
        values = [
            0 if gain is None else value
            for gain, value in zip(ranking.gains, ranking.values or ranking.gains, strict=True)
        ]
        of_hits = [value for gain, value in zip(ranking.gains, values, strict=True) if gain is not None]
        return cls(
            [gain or 0 for gain in ranking.gains],
            sorted([*recommended, *ranking.missed], reverse=True),
            [gain is not None for gain in ranking.gains],
            list(ranking.score_at),
            [*ranking.items, *[Item()] * (len(ranking.gains) - len(ranking.items))],
            ranking.background,
            [value or 0 for value in values],
            [*recommended, *ranking.missed],
            [value or 0 for value in of_hits] + list(ranking.missed_values or ranking.missed),
        )

    @property
    def predictions(self) -> list[tuple[float, float]]:
        """Score and gain of each judged item of the list."""
        rows = zip(self.scores, self.gains, self.is_judged, strict=True)
        return [(score, gain) for score, gain, is_judged in rows if is_judged]

    def top(self, k: int) -> list[float]:
        """Gains at ranks 1..k; all of them for k = 0."""
        return self.gains[: k or None]

    def hits(self, k: int, rel: float) -> int:
        """Relevant items at ranks 1..k."""
        return sum(gain >= rel for gain in self.top(k))

    def n_relevant(self, rel: float) -> int:
        """Relevant judgements."""
        return sum(gain >= rel for gain in self.judged)


def naive(name: str) -> Callable[[Naive], Naive]:
    """Name the measure that a reference stands for."""

    def register(reference: Naive) -> Naive:
        NAIVE[name] = reference
        return reference

    return register


def expected(measure: Measure, ranking: Ranking) -> float:
    """Value of one list by the naive reference; NaN where undefined."""
    if measure.group is not None:
        ranking = within(ranking, measure.group)
        if not ranking.missed and all(gain is None for gain in ranking.gains):
            return math.nan
    value = NAIVE[measure.name](PlainList.of(ranking), measure.k, **measure.kernel_options)
    if value is None:
        return math.nan
    return float(value) ** 2 if measure.link == "square" else float(value)


def within(ranking: Ranking, group: str) -> Ranking:
    """Forget the judgements of all items that are not in a group."""
    of_hits = [group in groups.split() for groups in ranking.groups] + [False] * len(ranking.gains)
    of_missed = [group in groups.split() for groups in ranking.missed_groups] + [False] * len(ranking.missed)
    return ranking._replace(
        gains=[gain if is_in else None for gain, is_in in zip(ranking.gains, of_hits, strict=False)],
        missed=[gain for gain, is_in in zip(ranking.missed, of_missed, strict=False) if is_in],
        missed_values=[value for value, is_in in zip(ranking.missed_values, of_missed, strict=False) if is_in],
    )


def least(k: int, *others: int) -> int:
    """Minimum of k and the others, where k = 0 stands for no limit."""
    return min(others) if k == 0 else min(k, *others)


def share(part: Number, whole: Number) -> Number:
    """Quotient; 0 where there is nothing to divide by."""
    return part / whole if whole else Fraction(0)


@naive("P")
def _(one: PlainList, k: int, *, denom: str, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    possible = {"k": k, "len": len(one.top(k)), "min": least(k, n_relevant)}[denom]
    return share(Fraction(one.hits(k, rel)), possible) if n_relevant else None


@naive("R")
def _(one: PlainList, k: int, *, denom: str, gains: str, rel: float) -> Number | None:
    if gains == "value":
        total = sum(max(v, 0) for g, v in zip(one.judged_gains, one.judged_values, strict=True) if g >= rel)
        found = sum(max(v, 0) for g, v in zip(one.top(k), one.values, strict=False) if g >= rel)
        return share(found, total) if total else None
    n_relevant = one.n_relevant(rel)
    possible = n_relevant if denom == "R" else least(k, n_relevant)
    return Fraction(one.hits(k, rel), possible) if n_relevant else None


@naive("F")
def _(one: PlainList, k: int, *, beta: float, rel: float) -> Number | None:
    precision = NAIVE["P"](one, k, denom="k", rel=rel)
    recall = NAIVE["R"](one, k, denom="R", gains="binary", rel=rel)
    if precision is None or recall is None:
        return None
    weight = Fraction(beta) ** 2
    return share((1 + weight) * precision * recall, weight * precision + recall)


@naive("Rprec")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    depth = least(k, one.n_relevant(rel))
    return Fraction(one.hits(depth, rel), depth) if depth else None


@naive("Rprec_mult")
def _(one: PlainList, _: int, *, rel: float, x: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    depth = int(x * n_relevant + 0.9)
    return (Fraction(one.hits(depth, rel), depth) if depth else Fraction(0)) if n_relevant else None


@naive("NumHits")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    return Fraction(one.hits(k, rel)) if one.n_relevant(rel) else None


@naive("MAR")
def _(one: PlainList, k: int, *, kind: str, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    if not n_relevant:
        return None
    if kind == "cutoffs":
        return sum(Fraction(one.hits(j, rel), n_relevant) for j in range(1, k + 1)) / k
    at_hits = sum(Fraction(one.hits(i, rel), n_relevant) for i, gain in enumerate(one.top(k), 1) if gain >= rel)
    return at_hits / (n_relevant if kind == "hits_R" else least(k, n_relevant))


def confusion(one: PlainList, k: int, rel: float) -> tuple[int, int, int, int] | None:
    """Count true and false positives, false and true negatives; None where there are none to speak of."""
    found, n_relevant = one.hits(k, rel), one.n_relevant(rel)
    right_below = int(one.background.catalogue) - k - (n_relevant - found)
    return (found, k - found, n_relevant - found, right_below) if n_relevant and right_below >= 0 else None


@naive("ClassAccuracy")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    counts = confusion(one, k, rel)
    return Fraction(counts[0] + counts[3], sum(counts)) if counts else None


@naive("MCC")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    counts = confusion(one, k, rel)
    if counts is None:
        return None
    tp, fp, fn, tn = counts
    return share(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


@naive("MeanP")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    return sum(Fraction(one.hits(j, rel), j) for j in range(1, k + 1)) / k if one.n_relevant(rel) else None


@naive("SetP")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    return share(Fraction(one.hits(0, rel)), len(one.gains)) if one.n_relevant(rel) else None


@naive("SetR")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    return Fraction(one.hits(0, rel), one.n_relevant(rel)) if one.n_relevant(rel) else None


@naive("SetF")
def _(one: PlainList, _: int, *, beta: float, rel: float) -> Number | None:
    precision, recall = NAIVE["SetP"](one, 0, rel=rel), NAIVE["SetR"](one, 0, rel=rel)
    if precision is None or recall is None:
        return None
    weight = Fraction(beta) ** 2
    return share((1 + weight) * precision * recall, weight * precision + recall)


@naive("IPrec")
def _(one: PlainList, _: int, *, need: str, recall: float, rel: float) -> Number | None:
    return precision_at_recall(one, need, Fraction(str(recall)), rel)


def precision_at_recall(one: PlainList, need: str, level: Fraction, rel: float) -> Number | None:
    """Highest precision from where a level of recall is reached; None where it is undefined."""
    n_relevant, recall = one.n_relevant(rel), level.numerator / level.denominator
    nearest = int(Decimal(recall * n_relevant).to_integral_value(ROUND_HALF_UP))
    items = {"ceil": math.ceil(level * n_relevant), "v9": int(recall * n_relevant + 0.9), "v10": nearest}
    hits = {rank: one.hits(rank, rel) for rank in range(1, len(one.gains) + 1)}
    reached = (Fraction(found, rank) for rank, found in hits.items() if found >= items[need])
    return max(reached, default=Fraction(0)) if n_relevant else None


def points(one: PlainList, n: float, need: str, rel: float) -> list[Number]:
    """Interpolated precision at n levels of recall from 0 to 1; empty where it is undefined."""
    levels = [precision_at_recall(one, need, Fraction(step, int(n) - 1), rel) for step in range(int(n))]
    return [value for value in levels if value is not None]


@naive("IPrecAvg")
def _(one: PlainList, _: int, *, levels: float, need: str, rel: float) -> Number | None:
    return mean(points(one, levels, need, rel))


@naive("IPrecArea")
def _(one: PlainList, _: int, *, levels: float, need: str, rel: float) -> Number | None:
    return mean([(left + right) / 2 for left, right in itertools.pairwise(points(one, levels, need, rel))])


@naive("RecallCeiling")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    return Fraction(min(n_relevant, len(one.top(k))), n_relevant) if n_relevant else None


def roc_area(one: PlainList, k: int, rel: float, n_hits: int) -> int:
    """For each of the first hits, count those of the first k other items that are not above it."""
    hit_ranks = [rank for rank, gain in enumerate(one.gains, 1) if gain >= rel]
    others_above = [rank - position for position, rank in enumerate(hit_ranks, 1)]
    return sum(max(k - others, 0) for others in others_above[:n_hits])


@naive("PAUC")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    return Fraction(roc_area(one, k, rel, n_relevant), n_relevant * k) if n_relevant else None


@naive("PAP")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    n_counted = min(one.n_relevant(rel), k)
    return Fraction(roc_area(one, k, rel, n_counted), n_counted * k) if n_counted else None


@naive("UserCoverage")
def _(one: PlainList, k: int, *, min_items: float) -> Number:
    return int(len(one.top(k)) >= min_items)


@naive("Judged")
def _(one: PlainList, k: int, *, denom: str) -> Number | None:
    n_judged = sum(one.is_judged[: k or None])
    return share(Fraction(n_judged), k if denom == "k" else len(one.top(k)))


@naive("unj")
def _(one: PlainList, k: int) -> Number | None:
    pairs = zip(one.gains[:k], one.is_judged, strict=False)
    return Fraction(sum(gain < 0 or not is_judged for gain, is_judged in pairs), k)


@naive("Bpref")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    n_nonrelevant = sum(0 <= gain < rel for gain in one.judged)
    total: Number = Fraction(0)
    above = 0
    for gain, is_judged in zip(one.gains, one.is_judged, strict=True):
        if gain >= rel:
            total += 1 - share(Fraction(min(above, n_relevant)), min(n_nonrelevant, n_relevant))
        above += is_judged and 0 <= gain < rel
    return total / n_relevant if n_relevant else None


@naive("infAP")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    n_relevant, e = one.n_relevant(rel), Fraction("1e-5")
    total: Number = Fraction(0)
    for rank, gain in enumerate(one.gains, 1):
        pool = [other for other, is_judged in zip(one.gains[: rank - 1], one.is_judged, strict=False) if is_judged]
        relevant, judged = sum(other >= rel for other in pool), sum(other >= 0 for other in pool)
        inferred = Fraction(len(pool), rank) * (relevant + e) / (judged + 2 * e)
        total += (Fraction(1, rank) + inferred) * (gain >= rel)
    return total / n_relevant if n_relevant else None


@naive("Success")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    return Fraction(any(gain >= rel for gain in one.top(k))) if one.n_relevant(rel) else None


@naive("RR")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    inverse_ranks = (Fraction(1, rank) for rank, gain in enumerate(one.top(k), 1) if gain >= rel)
    return next(inverse_ranks, Fraction(0)) if one.n_relevant(rel) else None


@naive("FirstHit")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    is_first_at_k = one.hits(k, rel) == 1 and (k == 1 or one.hits(k - 1, rel) == 0)
    return Fraction(is_first_at_k) if one.n_relevant(rel) else None


@naive("RBP")
def _(one: PlainList, k: int, *, max_rel: float, p: float, rel: float | None) -> Number | None:
    shares = [(gain >= rel) if rel else Fraction(max(gain, 0)) / Fraction(max_rel) for gain in one.top(k)]
    total = (1 - Fraction(p)) * sum(share * Fraction(p) ** i for i, share in enumerate(shares))
    return total if _has_gain(one, rel) else None


@naive("RBPResidual")
def _(one: PlainList, k: int, *, p: float, rel: float | None) -> Number | None:
    is_judged = one.is_judged[: k or None]
    unknown = sum((1 - Fraction(p)) * Fraction(p) ** i for i, judged in enumerate(is_judged) if not judged)
    return Fraction(p) ** len(is_judged) + unknown if _has_gain(one, rel) else None


@naive("ERR")
def _(one: PlainList, k: int, *, max_rel: float) -> Number | None:
    return cascade(one.top(k), max_rel) if _has_gain(one, None) else None


@naive("nERR")
def _(one: PlainList, k: int, *, max_rel: float) -> Number | None:
    ideal = cascade(one.judged[: k or None], max_rel)
    return share(cascade(one.top(k), max_rel), ideal) if _has_gain(one, None) else None


def cascade(gains: Sequence[float], max_rel: float) -> float:
    """Walk down a list until satisfied."""
    total, still_looking = 0.0, 1.0
    for rank, gain in enumerate(gains, 1):
        satisfied = (2 ** max(gain, 0) - 1) / 2**max_rel
        total += still_looking * satisfied / rank
        still_looking *= 1 - satisfied
    return total


def mean(values: Sequence[Number]) -> Number | None:
    """Mean; None of nothing."""
    return sum(values) / len(values) if values else None


@naive("MSE")
def _(one: PlainList, _: int) -> Number | None:
    return mean([Fraction(score - gain) ** 2 for score, gain in one.predictions])


@naive("RMSE")
def _(one: PlainList, _: int) -> Number | None:
    squared = NAIVE["MSE"](one, 0)
    return None if squared is None else math.sqrt(squared)


@naive("MAE")
def _(one: PlainList, _: int) -> Number | None:
    return mean([abs(Fraction(score - gain)) for score, gain in one.predictions])


@naive("PredictedShare")
def _(one: PlainList, _: int) -> Number | None:
    return Fraction(len(one.predictions), len(one.judged)) if one.judged else None


@naive("LogLoss")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    of_truth = [score if gain >= rel else 1 - score for score, gain in one.predictions]
    return mean([-math.log(min(max(p, 1e-15), 1 - 1e-15)) for p in of_truth])


def judged_pairs(one: PlainList) -> list[tuple[int, int]]:
    """Sign of the difference in score and in gain of every pair of judged items of the list."""
    return [
        (_sign(score - other_score), _sign(gain - other_gain))
        for (score, gain), (other_score, other_gain) in itertools.combinations(one.predictions, 2)
    ]


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


@naive("FCP")
def _(one: PlainList, _: int, *, ties: str) -> Number | None:
    pairs = [score * gain for score, gain in judged_pairs(one) if gain and (score or ties != "ignore")]
    worth = {1: Fraction(1), 0: Fraction(ties == "half") / 2, -1: Fraction(0)}
    return mean([worth[sign] for sign in pairs])


@naive("KendallTau")
def _(one: PlainList, _: int) -> Number | None:
    pairs = judged_pairs(one)
    untied = [sum(score != 0 for score, _ in pairs), sum(gain != 0 for _, gain in pairs)]
    return sum(score * gain for score, gain in pairs) / math.sqrt(math.prod(untied)) if all(untied) else None


@naive("Spearman")
def _(one: PlainList, _: int) -> Number | None:
    sides = [middle_ranks(side) for side in zip(*one.predictions, strict=True)] or [[], []]
    centred = [[rank - Fraction(len(side) + 1, 2) for rank in side] for side in sides]
    squares = [sum(deviation**2 for deviation in side) for side in centred]
    product = sum(left * right for left, right in zip(*centred, strict=True))
    return product / math.sqrt(math.prod(squares)) if all(squares) else None


def middle_ranks(values: Sequence[float]) -> list[Fraction]:
    """Rank of each value from 1, the smallest; equal ones share the mean of their ranks."""
    return [
        Fraction(2 * sum(other < value for other in values) + sum(other == value for other in values) + 1, 2)
        for value in values
    ]


@naive("AUC")
@naive("GAUC")
def _(one: PlainList, _: int, *, rel: float, ties: str) -> Number | None:
    good = [score for score, gain in one.predictions if gain >= rel]
    bad = [score for score, gain in one.predictions if gain < rel]
    tied = Fraction(ties == "half") / 2
    return mean([Fraction(high > low) + tied * (high == low) for high in good for low in bad])


def _has_gain(one: PlainList, rel: float | None) -> bool:
    return any(gain >= rel if rel else gain > 0 for gain in one.judged)


@naive("AP")
def _(one: PlainList, k: int, *, denom: str, rel: float) -> Number | None:
    n_relevant, hits = one.n_relevant(rel), one.hits(k, rel)
    gained = sum(Fraction(one.hits(rank, rel), rank) for rank, gain in enumerate(one.top(k), 1) if gain >= rel)
    possible = {
        "R": n_relevant,
        "min": least(k, n_relevant),
        "k": k,
        "len": min(n_relevant, len(one.top(k))),
        "hits": hits,
    }[denom]
    return share(gained, possible) if n_relevant else None


@naive("LogAP")
@naive("GMAP")
def _(one: PlainList, k: int, *, floor: float, rel: float) -> Number | None:
    precision = NAIVE["AP"](one, k, denom="R", rel=rel)
    return None if precision is None else math.log(max(precision, floor))


@naive("ARHR")
def _(one: PlainList, k: int, *, denom: str, gains: str, rel: float) -> Number | None:
    worth = worth_of("inverse", gains, rel)
    n_relevant = one.n_relevant(rel)
    is_defined = n_relevant if denom == "R" else any(worth(gain) > 0 for gain in one.judged)
    total = discounted(one.top(k), worth, "inverse")
    divisor = {"none": 1, "R": n_relevant, "ideal": discounted(one.judged[: k or None], worth, "inverse")}[denom]
    return share(total, divisor) if is_defined else None


@naive("CG")
@naive("nCG")
@naive("DCG")
@naive("nDCG")
def _(  # noqa: PLR0913 - the list, the cutoff and the options of the family
    one: PlainList,
    k: int,
    *,
    gains: str | GainMap,
    rel: float,
    unjudged: str,
    dcg: str = "none",
    ideal: str | None = None,
) -> Number | None:
    is_value = gains == "value"
    plain = worth_of("none", "grade" if is_value else gains, rel)
    raised: Callable[[float], float] = (lambda worth: 2**worth - 1) if dcg == "exp-log2" else float
    of_judged = [plain(gain) for gain in (one.judged_values if is_value else one.judged_gains)]
    if not any(worth > 0 for worth in of_judged):
        return None
    usual = {"zero": 0.0, "mean": statistics.fmean(of_judged), "median": statistics.median(of_judged)}[unjudged]
    places = zip(one.values if is_value else one.gains, one.is_judged, strict=True)
    worths = [raised(plain(gain) if is_judged else usual) for gain, is_judged in places][: k or None]
    total = discounted(worths, float, dcg)
    depth = len(worths) if ideal == "len" else (k or len(of_judged))
    best = sorted([*map(raised, of_judged), *[raised(usual)] * depth], reverse=True)[:depth]
    match ideal:
        case None:
            return total
        case "k_ones":
            return share(total, discounted([rel] * k, worth_of(dcg, gains, rel), dcg))
        case "retrieved":
            return share(total, discounted(sorted(worths, reverse=True), float, dcg))
        case _:
            return share(total, discounted(best, float, dcg))


def worth_of(dcg: str, gains: str | GainMap, rel: float) -> Callable[[float], float]:
    """Worth of an item with a given gain, before the discount."""
    plain: Callable[[float], float] = (lambda gain: gain >= rel) if gains == "binary" else (lambda gain: max(gain, 0))
    if isinstance(gains, GainMap):
        table = dict(gains.pairs)
        plain = lambda gain: table[gain] if gain > 0 else 0  # noqa: E731 - like the other two
    return (lambda gain: 2 ** plain(gain) - 1) if dcg == "exp-log2" else plain


def discounted(gains: Sequence[float], worth: Callable[[float], float], dcg: str) -> float:
    """Sum of discounted worths in the order given."""
    discounts: Mapping[str, Callable[[int], float]] = {
        "none": lambda _: 1,
        "log2": lambda rank: 1 / math.log2(rank + 1),
        "exp-log2": lambda rank: 1 / math.log2(rank + 1),
        "jk2": lambda rank: 1 / math.log2(max(rank, 2)),
        "inverse": lambda rank: 1 / rank,
    }
    return math.fsum(worth(gain) * discounts[dcg](rank) for rank, gain in enumerate(gains, 1))


NUMBERS: Mapping[str, Sequence[float]] = {"levels": (11, 2, 7), "recall": (0, 0.1, 0.7, 1), "x": (0.1, 0.2, 1, 2)}
"""Values tried of numeric options, where more than the default and another are."""

OTHER_NUMBERS = {"alpha": 0.5, "p": 0.5, "max_rel": 3.0, "floor": 0.1}
"""A second value of each numeric option for which 2 would not do."""

OTHER_MAP = GainMap(((0.5, 0.0), (1.0, 1.0), (2.0, 1.5), (3.0, 4.0)))
"""A gain for each grade that the strategies draw."""


TEXT = "Drama"
"""A text for options that cannot be left out."""

GROUPS = frozenset({"tail"})
"""Item groups tried; lists drawn by the strategies have items of it."""


ANYWHERE: Mapping[str, int] = {"tail": 1, "mean": 2, "median": 2, "value": 2}
"""Values of options that are tried only where so many options, they among them, are not at their defaults."""


def variants(entry: Entry, ks: Sequence[int]) -> Iterator[Measure]:
    """Every valid combination of a measure's options (a few values of each number) at each cutoff.

    :data:`ANYWHERE` says what is tried with few others.
    """
    values = [_values(option) for option in entry.options]
    names = [option.name for option in entry.options]
    for chosen, k in itertools.product(filter(partial(_is_tried, entry), itertools.product(*values)), ks):
        try:
            yield Measure.of(entry.name, k=k, **dict(zip(names, chosen, strict=True)))
        except ConfigError:
            continue  # a combination without meaning; test_names.py says which those are


def _is_tried(entry: Entry, chosen: Sequence[Any]) -> bool:
    """Leave out most combinations of what goes with everything, and would multiply their number."""
    others = [value for option, value in zip(entry.options, chosen, strict=True) if value != option.default]
    return len(others) <= min((ANYWHERE.get(str(value), len(others)) for value in others), default=0)


def _values(option: Option) -> Sequence[Any]:
    """All choices, or the numbers to try: the default and another value where no others are named."""
    if option.name == registry.GROUP:
        return (None, *sorted(GROUPS))
    if option.is_required:
        return (TEXT,)
    if option.choices:
        return (*option.choices, *([OTHER_MAP] if option.takes_map else []))
    return NUMBERS.get(option.name, (option.default, OTHER_NUMBERS.get(option.name, 2.0)))


def top_items(one: PlainList, k: int) -> list[Item]:
    """Items at ranks 1..k; all of them for k = 0."""
    return one.items[: k or None]


@naive("ARP")
def _(one: PlainList, k: int, *, norm: str, unseen: str) -> Number | None:
    counts = [Fraction(item.interactions) for item in top_items(one, k) if item.interactions or unseen == "zero"]
    scale = {"none": 1, "C": one.background.interactions, "max": one.background.most_interactions}[norm]
    return mean([count / Fraction(scale) for count in counts]) if scale else None


@naive("PopLift")
def _(one: PlainList, k: int) -> Number | None:
    counts = [Fraction(item.interactions) for item in top_items(one, k)]
    has = Fraction(one.background.profile_interactions)
    return (sum(counts) / len(counts) - has) / has if counts and has else None


@naive("MeanPopRank")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(item.quantile) for item in top_items(one, k)])


@naive("MIUF")
def _(one: PlainList, k: int, *, unseen: str) -> Number | None:
    users = [item.users for item in top_items(one, k) if item.users or unseen == "one"]
    total = one.background.users
    return mean([-math.log2((n or 1) / total) for n in users]) if users and total else None


@naive("SelfInfo")
def _(one: PlainList, k: int) -> Number | None:
    counts, total = [item.interactions for item in top_items(one, k)], one.background.interactions
    return mean([-math.log2((n or 1) / total) for n in counts]) if counts and total else None


@naive("EPC")
def _(one: PlainList, k: int, *, rel: float, relevance: str) -> Number | None:
    total = one.background.users
    return novelty(one, k, rel, relevance, lambda item: 1 - item.users / total) if total else None


@naive("EFD")
def _(one: PlainList, k: int, *, rel: float, relevance: str) -> Number | None:
    total, least = one.background.interactions, one.background.least_interactions
    worth = lambda item: -math.log2((item.interactions or least) / total)  # noqa: E731 - as short as the formula
    return novelty(one, k, rel, relevance, worth) if total else None


def novelty(one: PlainList, k: int, rel: float, relevance: str, worth: Callable[[Item], float]) -> float | None:
    """Mean worth of the items that count, weighted by the discount of their places."""
    discounts = [1 / math.log2(rank + 1) for rank in range(1, len(top_items(one, k)) + 1)]
    counts = [relevance == "off" or gain >= rel for gain in one.top(k)]
    worths = [worth(item) for item in top_items(one, k)]
    total = math.fsum(d * w for d, w, is_counted in zip(discounts, worths, counts, strict=True) if is_counted)
    return total / math.fsum(discounts) if discounts else None


@naive("APLT")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(item.is_tail) for item in top_items(one, k)])


@naive("ACLT")
def _(one: PlainList, k: int) -> Number | None:
    return sum(item.is_tail for item in top_items(one, k)) if one.items else None


@naive("SufficientReco")
def _(one: PlainList, k: int, *, kind: str) -> Number | None:
    filled = Fraction(len(one.top(k)), k)
    return (filled if kind == "share" else int(filled)) if one.gains else None


@naive("NotInTrain")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(not item.is_seen) for item in top_items(one, k)])


@naive("UnrepeatedReco")
def _(one: PlainList, k: int, *, kind: str) -> Number | None:
    copies = [int(item.copies) for item in top_items(one, k)]
    if not copies:
        return None
    return int(max(copies) == 1) if kind == "full" else Fraction(len(copies), sum(copies))


@naive("Freshness")
def _(one: PlainList, k: int, *, days: float, stat: str, unknown: str) -> Number | None:
    ages = [item.age for item in top_items(one, k)]
    known = [age for age in ages if not math.isnan(age)]
    if not known or (unknown == "null" and known != ages):
        return None
    if stat == "share":
        return mean([Fraction(age < days) for age in known])
    return statistics.median(known) if stat == "median" else mean([Fraction(age) for age in known])


IS_KNOWN: dict[str, Callable[[Item], object]] = {
    "vector": lambda item: any(item.vector or ()),
    "jaccard": lambda item: item.categories,
    "cooccurrence": lambda item: item.users,
}
"""Whether anything is known of what an item is similar to."""


@naive("ILD")
def _(  # noqa: PLR0913 - the list, the cutoff and the four options
    one: PlainList, k: int, *, discount: str, rel: float | None, sim: str, unknown: str
) -> Number | None:
    similarity = NAIVE["ILS"](one, k, sim=sim, unknown=unknown)
    if similarity is None or (rel is None and discount == "none"):
        return None if similarity is None else 1 - similarity
    worth = (lambda rank: 1 / math.log2(rank + 1)) if discount == "log2" else (lambda _: 1)
    known = [rank for rank, item in enumerate(top_items(one, k), 1) if IS_KNOWN[sim](item)]
    counted = [rank for rank in known if rel is None or one.gains[rank - 1] >= rel]

    def mean_distance(rank: int) -> float:
        others = [(worth(max(1, other - rank)), 1 - alike(one, rank, other, sim)) for other in counted if other != rank]
        return sum(w * d for w, d in others) / sum(w for w, _ in others) if others else 0

    return math.fsum(worth(rank) * mean_distance(rank) for rank in counted) / math.fsum(map(worth, known))


def alike(one: PlainList, rank: int, other: int, sim: str) -> Number:
    """Similarity of the items at two ranks."""
    first, second = sorted((rank, other))
    if sim == "cooccurrence":
        return sum(value for *ranks, value in one.background.pairs if ranks == [first, second])
    return (cosine if sim == "vector" else jaccard)(one.items[first - 1], one.items[second - 1])


@naive("ILS")
def _(one: PlainList, k: int, *, sim: str, unknown: str) -> Number | None:
    items = top_items(one, k)
    known = [item for item in items if IS_KNOWN[sim](item)]
    if unknown == "null" and len(known) < len(items):
        return None
    if sim == "cooccurrence":
        n_pairs = math.comb(len(known), 2)
        total = math.fsum(alike for _, later, alike in one.background.pairs if later <= len(items))
        return total / n_pairs if n_pairs else None
    pairs = itertools.combinations(known, 2)
    return mean([cosine(left, right) if sim == "vector" else jaccard(left, right) for left, right in pairs])


def cosine(left: Item, right: Item) -> float:
    """Cosine of the angle between the vectors of two items."""
    a, b = left.vector or (), right.vector or ()
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def jaccard(left: Item, right: Item) -> Fraction:
    """Share of the categories of two items that they have in common."""
    a, b = set(left.categories), set(right.categories)
    return Fraction(len(a & b), len(a | b))


@naive("SRecall")
def _(one: PlainList, k: int, *, of: str) -> Number | None:
    covered = {name for item in top_items(one, k) for name in item.categories}
    profile = {name for name, _, _ in one.background.profile}
    n_wanted = len(profile) if of == "user" else int(one.background.categories)
    return Fraction(len(covered & profile if of == "user" else covered), n_wanted) if n_wanted and one.items else None


@naive("alpha_nDCG")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number | None:
    left = relevant_categories(one, rel)
    ideal: list[set[str]] = []
    while left:
        best = max(left, key=lambda each: sum(new_categories([*ideal, each], alpha)[-1:]))
        left.remove(best)
        ideal.append(best)
    sums = [
        math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(new_categories(each, alpha)[: k or None], 1))
        for each in (shown_categories(one, rel), ideal)
    ]
    return sums[0] / sums[1] if ideal and one.items else None


@naive("ERR_IA")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number | None:
    n_wanted = len(set().union(*relevant_categories(one, rel)))
    gains = new_categories(shown_categories(one, rel), alpha)[:k]
    found = math.fsum(gain / rank for rank, gain in enumerate(gains, 1))
    best = math.fsum(n_wanted * (1 - alpha) ** (rank - 1) / rank for rank in range(1, k + 1))
    return found / best if n_wanted and one.items else None


def relevant_categories(one: PlainList, rel: float) -> list[set[str]]:
    """Categories of each relevant judged item that has any."""
    return [set(categories) for gain, categories in one.background.judged if gain >= rel]


def shown_categories(one: PlainList, rel: float) -> list[set[str]]:
    """Categories at each rank, none of an item that is not relevant."""
    return [set(item.categories) if gain >= rel else set() for item, gain in zip(one.items, one.gains, strict=True)]


def new_categories(by_rank: Sequence[set[str]], alpha: float) -> list[float]:
    """Gain at each rank: of each category less by alpha for every time that it stood above."""
    return [
        sum((1 - alpha) ** sum(name in above for above in by_rank[:place]) for name in sorted(categories))
        for place, categories in enumerate(by_rank)
    ]


@naive("Unexpectedness")
def _(one: PlainList, k: int, *, sim: str, unknown: str) -> Number | None:
    return distance_from_profile(one, k, sim, unknown, lambda _: True)


@naive("Serendipity")
def _(  # noqa: PLR0913 - the list, the cutoff and the four options
    one: PlainList, k: int, *, kind: str, rel: float, sim: str, unknown: str
) -> Number | None:
    if kind == "content":
        return distance_from_profile(one, k, sim, unknown, lambda gain: gain >= rel)
    relevant = [(rank, item) for rank, item in enumerate(top_items(one, k), 1) if one.gains[rank - 1] >= rel]
    depth, n = len(top_items(one, k)), one.background.items
    if not depth or (kind == "pop" and not n):
        return None
    if kind == "ge":
        return Fraction(sum(item.place > k for _, item in relevant), depth)
    return math.fsum(max((n + 1 - rank) / n - item.popularity, 0) for rank, item in relevant) / depth


def distance_from_profile(
    one: PlainList, k: int, sim: str, unknown: str, counts: Callable[[float], bool]
) -> float | None:
    """Mean of 1 - similarity to the profile over the known items, those that do not count adding 0."""
    places = list(zip(top_items(one, k), one.top(k), strict=True))
    worth = [(similarity_to_profile(one, item, sim), gain) for item, gain in places]
    known = [(1 - alike, gain) for alike, gain in worth if alike is not None]
    if not known or (unknown == "null" and len(known) < len(places)):
        return None
    return math.fsum(distance for distance, gain in known if counts(gain)) / len(known)


def similarity_to_profile(one: PlainList, item: Item, sim: str) -> float | None:
    """Mean similarity of an item to those of the user; None where either is unknown."""
    if sim == "cooccurrence":
        return item.familiarity if item.users and not math.isnan(item.familiarity) else None
    profile, vector = one.background.profile_vector, item.vector or ()
    if profile is None or not any(vector):
        return None
    return sum(x * y for x, y in zip(vector, profile, strict=True)) / math.hypot(*vector)


@naive("Calibration")
def _(one: PlainList, k: int, *, alpha: float, distance: str, weights: str) -> Number | None:
    p: dict[str, float] = {}
    q: dict[str, float] = {}
    for name, n_categories, n_items in one.background.profile:
        p[name] = p.get(name, 0) + n_items / n_categories
    for rank, item in enumerate(top_items(one, k), 1):
        for name in item.categories:
            q[name] = q.get(name, 0) + (1 / math.log2(rank + 1) if weights == "log2" else 1) / len(item.categories)
    if not p or not q:
        return None
    pairs = [(p.get(name, 0) / sum(p.values()), q.get(name, 0) / sum(q.values())) for name in {*p, *q}]
    if distance == "KL":
        return divergence([(a, (1 - alpha) * b + alpha * a) for a, b in pairs])
    if distance == "JS":
        return sum(divergence([(pair[side], sum(pair) / 2) for pair in pairs]) for side in (0, 1)) / 2
    return math.hypot(*(math.sqrt(a) - math.sqrt(b) for a, b in pairs)) / math.sqrt(2)


def divergence(pairs: Sequence[tuple[float, float]]) -> float:
    """Kullback-Leibler divergence in bits."""
    return math.fsum(a * math.log2(a / b) for a, b in pairs if a)


def takes_every_grade(measure: Measure) -> bool:
    """Whether no gain that the strategies draw is an error."""
    max_rel = measure.options.get("max_rel", math.inf)
    return measure.options.get("rel") is not None or (isinstance(max_rel, float) and max_rel >= max(GRADES))


def all_variants(ks: Sequence[int]) -> list[Measure]:
    """Every valid combination of every measure that has a value for each list."""
    return [measure for entry in registry.entries("list") for measure in variants(entry, ks)]


def trec_order(run: Mapping[str, float]) -> list[str]:
    """Order in which trec_eval ranks: score descending, ties by the bytes of the id, descending."""
    return sorted(run, key=lambda item: (run[item], item.encode()), reverse=True)


def ranking_of(run: Mapping[str, float], judged: Mapping[str, int]) -> Ranking:
    """Build the list that trec_eval sees: ``run`` and ``judged`` map item ids to scores and gains."""
    missed = [gain for item, gain in judged.items() if item not in run]
    return Ranking([judged.get(item) for item in trec_order(run)], missed)
