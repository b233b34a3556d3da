"""A list as plain Python sees it, and where the reference of each measure is found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from rankeval_spark.measures import Background, Item, Ranking

Number = Fraction | float
Naive = Callable[..., Number | None]
Reference = TypeVar("Reference")


class References(dict[str, Reference]):
    """References by the names of their measures; the error for a missing one says where it belongs."""

    def __init__(self, place: str) -> None:  # the error, with {name}
        super().__init__()
        self.place = place

    def __missing__(self, name: str) -> Reference:
        """Raise AssertionError."""
        message = self.place.format(name=name)
        raise AssertionError(message)


NAIVE: References[Naive] = References(
    "no naive reference of {name}; add @naive({name!r}) to tests/support/oracles, in a module that __init__ imports, "
    "above a function of (one: PlainList, k: int, **options) that returns the value of a list"
)
"""Reference of each measure: ``reference(list, k, **options)``, None where the measure is undefined."""


@dataclass(frozen=True)
class PlainList:
    """One list: gain at each rank (0 without a judgement), all judged gains, best first, and which ranks have one.

    ``scores`` has the score at each rank, ``values`` the value (0 without a judgement or with a negative gain);
    ``judged_gains`` and ``judged_values`` are those of all judgements in one order.
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
    propensities: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    user_values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, ranking: Ranking) -> PlainList:
        """Turn the builder's notation into plain lists."""
        recommended = [gain for gain in ranking.gains if gain is not None]
        values, missed_values = (
            [0 if gain is None or gain < 0 else value for gain, value in zip(gains, given or gains, strict=True)]
            for gains, given in ((ranking.gains, ranking.values), (ranking.missed, ranking.missed_values))
        )
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
            [value or 0 for value in of_hits] + [value or 0 for value in missed_values],
            list(ranking.propensities or [1.0] * len(ranking.gains)),
            list(ranking.predictions or [0.0] * len(ranking.gains)),
            dict(ranking.user_values),
        )

    @property
    def is_known(self) -> list[bool]:
        """Whether the item at each rank was judged; one with a negative gain was only pooled."""
        return [is_judged and gain >= 0 for gain, is_judged in zip(self.gains, self.is_judged, strict=True)]

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


def judged_only(ranking: Ranking) -> Ranking:
    """Take the items out of a list that have no judgement or a negative one, which is missed then."""
    values = ranking.values or [gain or 0 for gain in ranking.gains]
    groups = [*ranking.groups, *[""] * len(ranking.gains)]
    kept = [place for place, gain in enumerate(ranking.gains) if gain is not None and gain >= 0]
    weights = ranking.weights or [1.0] * len(ranking.gains)
    weights_of_missed = ranking.missed_weights or [1.0] * len(ranking.missed)
    left = [(gain, place) for place, gain in enumerate(ranking.gains) if gain is not None and gain < 0]
    of_missed = [*ranking.missed_groups, *[""] * len(ranking.missed)][: len(ranking.missed)]
    return ranking._replace(
        gains=[ranking.gains[place] for place in kept],
        values=[values[place] for place in kept],
        groups=[groups[place] for place in kept],
        scores=[ranking.score_at[place] for place in kept],
        propensities=[(ranking.propensities or [1.0] * len(ranking.gains))[place] for place in kept],
        weights=[weights[place] for place in kept],
        items=(),
        missed=[*ranking.missed, *(gain for gain, _ in left)],
        missed_values=[*(ranking.missed_values or ranking.missed), *(values[place] for _, place in left)],
        missed_groups=[*of_missed, *(groups[place] for _, place in left)],
        missed_weights=[*weights_of_missed, *(weights[place] for _, place in left)],
    )


def within(ranking: Ranking, group: str) -> Ranking:
    """Forget the judgements of all items that are not in a group."""
    of_hits = [group in groups.split() for groups in ranking.groups] + [False] * len(ranking.gains)
    of_missed = [group in groups.split() for groups in ranking.missed_groups] + [False] * len(ranking.missed)
    return forget(ranking, of_hits[: len(ranking.gains)], of_missed)


def forget(ranking: Ranking, of_hits: Sequence[object], of_missed: Sequence[object]) -> Ranking:
    """Keep the judgements that are true in a list, and of the items that it misses; the other items are unjudged."""
    return ranking._replace(
        gains=[gain if is_kept else None for gain, is_kept in zip(ranking.gains, of_hits, strict=True)],
        missed=list(itertools.compress(ranking.missed, of_missed)),
        missed_values=list(itertools.compress(ranking.missed_values, of_missed)),
        missed_weights=list(itertools.compress(ranking.missed_weights, of_missed)),
        missed_groups=list(itertools.compress(ranking.missed_groups, of_missed)),
    )


def least(k: int, *others: int) -> int:
    """Minimum of k and the others, where k = 0 stands for no limit."""
    return min(others) if k == 0 else min(k, *others)


def share(part: Number, whole: Number) -> Number:
    """Quotient; 0 where there is nothing to divide by."""
    return part / whole if part and whole else Fraction(0)


def mean(values: Sequence[Number]) -> Number | None:
    """Mean; None of nothing."""
    return sum(values) / len(values) if values else None


def has_gain(one: PlainList, rel: float | None) -> bool:
    """Tell whether a judgement is relevant, or above 0 where no level is said."""
    return any(gain >= rel if rel else gain > 0 for gain in one.judged)


def top_items(one: PlainList, k: int) -> list[Item]:
    """Items at ranks 1..k; all of them for k = 0."""
    return one.items[: k or None]


def trec_order(run: Mapping[str, float]) -> list[str]:
    """Order in which trec_eval ranks: score descending, ties by the bytes of the id, descending."""
    return sorted(run, key=lambda item: (run[item], item.encode()), reverse=True)


def ranking_of(run: Mapping[str, float], judged: Mapping[str, int]) -> Ranking:
    """Build the list that trec_eval sees: ``run`` and ``judged`` map item ids to scores and gains."""
    missed = [gain for item, gain in judged.items() if item not in run]
    return Ranking([judged.get(item) for item in trec_order(run)], missed)
