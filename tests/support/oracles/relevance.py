"""Naive references of the measures of relevance: binary, graded, with gaps in the judgements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rankeval_spark.measures.options import GainMap
from tests.support.oracles import number
from tests.support.oracles.plain import NAIVE, Naive, Number, PlainList, has_gain, least, mean, naive, share

if TYPE_CHECKING:
    from rankeval_spark.measures.accuracy.cumulated_gain import Unjudged

Worth = Callable[[Any], Number]


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
    recalls = [Fraction(one.hits(i, rel), n_relevant) for i, gain in enumerate(one.top(k), 1) if gain >= rel]
    return sum(recalls, Fraction(0)) / (n_relevant if kind == "hits_R" else least(k, n_relevant))


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
    return share(tp * tn - fp * fn, number.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


@naive("MeanP")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    return sum(Fraction(one.hits(j, rel), j) for j in range(1, k + 1)) / k if one.n_relevant(rel) else None


@naive("SetP")
def _(one: PlainList, _: int, *, rel: float, relative: bool = False) -> Number | None:
    n_relevant = one.n_relevant(rel)
    possible = least(n_relevant, len(one.gains)) if relative else len(one.gains)
    return share(Fraction(one.hits(0, rel)), possible) if n_relevant else None


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


@naive("CatalogAUC")
def _(one: PlainList, k: int, *, negatives: str, rel: float, ties: str) -> Number | None:
    shown = list(zip(one.gains, one.is_known, one.items, strict=True))[: k or None]
    is_hit = [gain >= rel for gain, known, item in shown if negatives == "catalogue" or known or not item.is_seen]
    n_relevant, left_out = one.n_relevant(rel), one.background.profile_unjudged if negatives == "unseen" else 0
    n_others, n_listed = int(one.background.catalogue - left_out) - n_relevant, is_hit.count(False)
    if not n_relevant or n_others < max(n_listed, 1):
        return None
    nowhere = len(is_hit)
    hits = [rank for rank, hit in enumerate(is_hit) if hit]
    others = [rank for rank, hit in enumerate(is_hit) if not hit] + [nowhere] * (n_others - n_listed)
    tied = Fraction(ties == "half") / 2
    hits += [nowhere] * (n_relevant - len(hits))
    return mean([Fraction(hit < other) + tied * (hit == other) for hit in hits for other in others])


@naive("UserCoverage")
def _(one: PlainList, k: int, *, min_items: float) -> Number:
    return int(len(one.top(k)) >= min_items)


@naive("Judged")
def _(one: PlainList, k: int, *, denom: str) -> Number | None:
    n_judged = sum(one.is_known[: k or None])
    return share(Fraction(n_judged), k if denom == "k" else len(one.top(k)))


@naive("unj")
def _(one: PlainList, k: int) -> Number | None:
    return Fraction(sum(not is_known for is_known in one.is_known[:k]), k)


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
def _(one: PlainList, k: int, *, gains: str | GainMap, rel: float) -> Number | None:
    """Walk down the list: where an item is worth more than all above it, what it adds counts by its rank."""
    worth = worth_of("none", gains, rel)
    best, total = Fraction(0), Fraction(0)
    for rank, (gain, is_known) in enumerate(list(zip(one.gains, one.is_known, strict=True))[: k or None], 1):
        found = max(best, Fraction(worth(gain) if is_known else 0))
        best, total = found, total + (found - best) / rank
    greatest = best_worth(one, gains, rel)
    return total / greatest if greatest else None


def best_worth(one: PlainList, gains: str | GainMap, rel: float) -> Fraction:
    """Give the worth of the best judgement."""
    return Fraction(max((worth_of("none", gains, rel)(gain) for gain in one.judged if gain >= 0), default=0))


@naive("FirstHit")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    is_first_at_k = one.hits(k, rel) == 1 and (k == 1 or one.hits(k - 1, rel) == 0)
    return Fraction(is_first_at_k) if one.n_relevant(rel) else None


@naive("HitRank")
def _(one: PlainList, k: int, *, missed: str, rel: float, stat: str) -> Number | None:
    ranks = [rank for rank, gain in enumerate(one.top(k), 1) if gain >= rel]
    ranks += [k + 1] * (one.n_relevant(rel) - len(ranks)) if missed == "next" else []
    if not ranks:
        return None
    found = {"mean": Fraction(sum(ranks), len(ranks)), "first": Fraction(min(ranks)), "last": Fraction(max(ranks))}
    return found[stat]


@naive("RBP")
def _(one: PlainList, k: int, *, max_rel: float, p: float, rel: float | None, unjudged: Unjudged) -> Number | None:
    gained = filled(one, k, (lambda gain: gain >= rel) if rel else itself, unjudged)
    shares = [Fraction(gain) / Fraction(max_rel) for gain in gained]
    total = (1 - Fraction(p)) * sum(share * Fraction(p) ** i for i, share in enumerate(shares))
    return total if has_gain(one, rel) else None


@naive("RBPResidual")
def _(one: PlainList, k: int, *, p: float, rel: float | None) -> Number | None:
    is_judged = one.is_known[: k or None]
    unknown = sum((1 - Fraction(p)) * Fraction(p) ** i for i, judged in enumerate(is_judged) if not judged)
    return Fraction(p) ** len(is_judged) + unknown if has_gain(one, rel) else None


@naive("ERR")
def _(one: PlainList, k: int, *, max_rel: float, unjudged: Unjudged) -> Number | None:
    return cascade(filled(one, k, itself, unjudged), max_rel) if has_gain(one, None) else None


def filled(one: PlainList, k: int, worth: Worth, unjudged: Unjudged) -> list[Number]:
    """Give the worth of the items at ranks 1..k, also of those without a judgement."""
    of_judged = [Fraction(worth(gain)) for gain in one.judged if gain >= 0]
    usual = usual_worth(of_judged, unjudged)
    known = zip(one.gains, one.is_known, strict=True)
    return [worth(gain) if is_known else usual for gain, is_known in known][: k or None]


def usual_worth(of_judged: Sequence[Number], unjudged: Unjudged) -> Number:
    """Give what an item without a judgement is worth."""
    if not isinstance(unjudged, str):  # in exact arithmetic it is a fraction
        return unjudged
    if unjudged == "zero" or not of_judged:
        return 0
    return middle(of_judged) if unjudged == "median" else sum(of_judged) / len(of_judged)


@naive("nERR")
def _(one: PlainList, k: int, *, max_rel: float) -> Number | None:
    ideal = cascade(one.judged[: k or None], max_rel)
    return share(cascade(one.top(k), max_rel), ideal) if has_gain(one, None) else None


def cascade(gains: Sequence[Number], max_rel: float) -> Number:
    """Walk down a list until satisfied."""
    total, still_looking = Fraction(0), Fraction(1)
    for rank, gain in enumerate(gains, 1):
        satisfied = Fraction(number.power(2, max(gain, 0)) - 1) / Fraction(2**max_rel)
        total += still_looking * satisfied / rank
        still_looking *= 1 - satisfied
    return total


@naive("AP")
def _(one: PlainList, k: int, *, denom: str, gains: str | GainMap, rel: float) -> Number | None:
    """Sum what each item shares with those above it: of grades, GAP as its authors write it."""
    worth = worth_of("none", gains, rel)
    found = [Fraction(worth(gain) if is_known else 0) for gain, is_known in zip(one.gains, one.is_known, strict=True)]
    shared = [sum(min(above, own) for above in found[:rank]) / rank for rank, own in enumerate(found, 1)]
    has_any = any(worth(gain) > 0 for gain in one.judged if gain >= 0)
    return share(sum(shared[: k or None]), graded_divisor(one, k, denom, gains, rel)) if has_any else None


def graded_divisor(one: PlainList, k: int, denom: str, gains: str | GainMap, rel: float) -> Number:
    """Give what a sum over hits is divided by, of each level of relevance as often as the map says."""
    if denom == "none" or not isinstance(gains, GainMap):
        return hit_divisor(one, k, denom, rel)
    steps = itertools.pairwise([(0.0, 0.0), *gains.pairs])
    of_levels = (Fraction(gain - below) * hit_divisor(one, k, denom, grade) for (_, below), (grade, gain) in steps)
    return sum(of_levels, Fraction(0))


def hit_divisor(one: PlainList, k: int, denom: str, rel: float) -> int:
    """Give what a sum over hits is divided by."""
    n_relevant = one.n_relevant(rel)
    return {
        "R": n_relevant,
        "min": least(k, n_relevant),
        "k": k,
        "len": min(n_relevant, len(one.top(k))),
        "hits": one.hits(k, rel),
        "none": 1,
    }[denom]


@naive("LogAP")
@naive("GMAP")
def _(one: PlainList, k: int, *, floor: float, rel: float) -> Number | None:
    precision = NAIVE["AP"](one, k, denom="R", gains="binary", rel=rel)
    return None if precision is None else number.log(max(precision, floor))


@naive("ARHR")
def _(one: PlainList, k: int, *, denom: str, gains: str, rel: float) -> Number | None:
    worth = worth_of("inverse", gains, rel)
    n_relevant = one.n_relevant(rel)
    is_defined = any(worth(gain) > 0 for gain in one.judged) if denom in {"none", "ideal"} else n_relevant
    total = discounted(one.top(k), worth, "inverse")
    if denom == "ideal":
        return share(total, discounted(one.judged[: k or None], worth, "inverse")) if is_defined else None
    return share(total, hit_divisor(one, k, denom, rel)) if is_defined else None


def of_sums(value: Callable[[Number, Number], Number]) -> Naive:
    """Return the reference of a measure made of the sum of a list and that of the best order."""

    def reference(one: PlainList, k: int, **options: Any) -> Number | None:  # noqa: ANN401 - options of any type
        sums = sums_of_gains(one, k, **options)
        return sums and value(*sums)

    return reference


NAIVE.update(dict.fromkeys(("CG", "DCG"), of_sums(lambda total, _: total)))
NAIVE.update({"IDCG": of_sums(lambda _, best: best), **dict.fromkeys(("nCG", "nDCG"), of_sums(share))})


def sums_of_gains(
    one: PlainList,
    k: int,
    *,
    gains: str | GainMap,
    rel: float,
    unjudged: Unjudged,
    dcg: str = "none",
    ideal: str = "judged",
    p: float | None = None,
) -> tuple[Number, Number] | None:
    """Give the sums of discounted gains of a list, and of the best order; None without a gain."""
    is_value = gains == "value"
    plain = worth_of("none", "grade" if is_value else gains, rel)
    raised: Worth = (lambda worth: number.power(2, worth) - 1) if dcg.startswith("exp-") else itself
    pairs = zip(one.judged_gains, one.judged_values if is_value else one.judged_gains, strict=True)
    of_judged = [plain(read) for gain, read in pairs if gain >= 0]
    if not any(worth > 0 for worth in of_judged):
        return None
    usual = usual_worth(of_judged, unjudged)
    places = zip(one.values if is_value else one.gains, one.is_known, strict=True)
    worths = [raised(plain(gain) if is_known else usual) for gain, is_known in places][: k or None]
    total = discounted(worths, itself, dcg, p)
    depth = len(worths) if ideal == "len" else (k or len(of_judged))
    best = sorted([*map(raised, of_judged), *[raised(usual)] * depth], reverse=True)[:depth]
    if ideal == "k_ones":
        return total, discounted([rel] * k, worth_of(dcg, gains, rel), dcg, p)
    return total, discounted(sorted(worths, reverse=True) if ideal == "retrieved" else best, itself, dcg, p)


def worth_of(dcg: str, gains: str | GainMap, rel: float) -> Worth:
    """Worth of an item with a given gain, before the discount."""
    plain: Worth = (lambda gain: gain >= rel) if gains == "binary" else (lambda gain: max(gain, 0))
    if isinstance(gains, GainMap):
        table = dict(gains.pairs)
        plain = lambda gain: table[gain] if gain > 0 else table.get(gain, 0)  # noqa: E731 - like the other two
    return (lambda gain: number.power(2, plain(gain)) - 1) if dcg.startswith("exp-") else plain


def middle(values: Sequence[Number]) -> Number:
    """Return the median."""
    ordered, n = sorted(values), len(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def itself(worth: Number) -> Number:
    """Return what an item is worth."""
    return worth


def discounted(gains: Sequence[Number], worth: Worth, dcg: str, p: float | None = None) -> Number:
    """Sum of discounted worths in the order given."""
    discounts: Mapping[str, Callable[[int], Number]] = {
        "none": lambda _: 1,
        "log2": lambda rank: 1 / number.log2(rank + 1),
        "jk2": lambda rank: Fraction(1) / max(Fraction(1), number.log2(rank)),
        "jk10": lambda rank: Fraction(1) / max(Fraction(1), number.log(rank, 10)),
        "ln": lambda rank: 1 / number.log(rank + 1),
        "log10": lambda rank: 1 / number.log(rank + 1, 10),
        "inverse": lambda rank: Fraction(1, rank),
        "sqrt": lambda rank: 1 / number.sqrt(rank),
        "geometric": lambda rank: Fraction(p or 0) ** (rank - 1),
    }
    discount = discounts[dcg.removeprefix("exp-")]
    return number.total(worth(gain) * discount(rank) for rank, gain in enumerate(gains, 1))
