"""Other ways to the same numbers: each measure as a few lines of plain Python, and trec_eval.

The naive references follow the formulas of the measure sheet, one list at a time, with exact fractions where they can;
they share no code with the kernels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, Ranking, registry
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
    """One list: gain at each rank (0 without a judgement), all judged gains, best first, and which ranks are judged."""

    gains: list[float]
    judged: list[float]
    is_judged: list[bool]

    @classmethod
    def of(cls, ranking: Ranking) -> PlainList:
        """Turn the builder's notation into plain lists."""
        recommended = [gain for gain in ranking.gains if gain is not None]
        return cls(
            [gain or 0 for gain in ranking.gains],
            sorted([*recommended, *ranking.missed], reverse=True),
            [gain is not None for gain in ranking.gains],
        )

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
    value = NAIVE[measure.name](PlainList.of(ranking), measure.k, **measure.options)
    return math.nan if value is None else float(value)


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
def _(one: PlainList, k: int, *, denom: str, rel: float) -> Number | None:
    n_relevant = one.n_relevant(rel)
    possible = n_relevant if denom == "R" else least(k, n_relevant)
    return Fraction(one.hits(k, rel), possible) if n_relevant else None


@naive("F")
def _(one: PlainList, k: int, *, beta: float, rel: float) -> Number | None:
    precision = NAIVE["P"](one, k, denom="k", rel=rel)
    recall = NAIVE["R"](one, k, denom="R", rel=rel)
    if precision is None or recall is None:
        return None
    weight = Fraction(beta) ** 2
    return share((1 + weight) * precision * recall, weight * precision + recall)


@naive("Rprec")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    depth = least(k, one.n_relevant(rel))
    return Fraction(one.hits(depth, rel), depth) if depth else None


@naive("NumHits")
def _(one: PlainList, k: int, *, rel: float) -> Number | None:
    return Fraction(one.hits(k, rel)) if one.n_relevant(rel) else None


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
def _(  # noqa: PLR0913 - the list, the cutoff and the four options of the family
    one: PlainList, k: int, *, gains: str | GainMap, rel: float, dcg: str = "none", ideal: str | None = None
) -> Number | None:
    worth = worth_of(dcg, gains, rel)
    if not any(worth(gain) > 0 for gain in one.judged):
        return None
    total = discounted(one.top(k), worth, dcg)
    match ideal:
        case None:
            return total
        case "k_ones":
            return share(total, discounted([rel] * k, worth, dcg))
        case "retrieved":
            return share(total, discounted(sorted(one.top(k), reverse=True), worth, dcg))
        case _:
            depth = len(one.top(k)) if ideal == "len" else (k or len(one.judged))
            return share(total, discounted(one.judged[:depth], worth, dcg))


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


OTHER_NUMBERS = {"p": 0.5, "max_rel": 3.0, "floor": 0.1}
"""A second value of each numeric option for which 2 would not do."""

OTHER_MAP = GainMap(((0.5, 0.0), (1.0, 1.0), (2.0, 1.5), (3.0, 4.0)))
"""A gain for each grade that the strategies draw."""


def variants(entry: Entry, ks: Sequence[int]) -> Iterator[Measure]:
    """Every valid combination of a measure's options (a few values of each number) at each cutoff."""
    values = [_values(option) for option in entry.options]
    names = [option.name for option in entry.options]
    for chosen, k in itertools.product(itertools.product(*values), ks):
        try:
            yield Measure.of(entry.name, k=k, **dict(zip(names, chosen, strict=True)))
        except ConfigError:
            continue  # a combination without meaning; test_names.py says which those are


def _values(option: Option) -> Sequence[Any]:
    """All choices, or the default and another value."""
    return (*option.choices, *([OTHER_MAP] if option.takes_map else [])) or (
        option.default,
        OTHER_NUMBERS.get(option.name, 2.0),
    )


def takes_every_grade(measure: Measure) -> bool:
    """Whether no gain that the strategies draw is an error."""
    max_rel = measure.options.get("max_rel", math.inf)
    return measure.options.get("rel") is not None or (isinstance(max_rel, float) and max_rel >= max(GRADES))


def all_variants(ks: Sequence[int]) -> list[Measure]:
    """Every valid combination of every measure."""
    return [measure for entry in registry.entries() for measure in variants(entry, ks)]


def trec_order(run: Mapping[str, float]) -> list[str]:
    """Order in which trec_eval ranks: score descending, ties by the bytes of the id, descending."""
    return sorted(run, key=lambda item: (run[item], item.encode()), reverse=True)


def ranking_of(run: Mapping[str, float], judged: Mapping[str, int]) -> Ranking:
    """Build the list that trec_eval sees: ``run`` and ``judged`` map item ids to scores and gains."""
    missed = [gain for item, gain in judged.items() if item not in run]
    return Ranking([judged.get(item) for item in trec_order(run)], missed)
