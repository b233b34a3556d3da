"""Traces of values: the terms that the kernel of a measure adds up for a list, and what each makes of the value.

The kernel itself runs, on a batch of that one list, and every sum over hits or items that it takes is recorded. Whether
the value is a linear function of these sums is found by running it again with other sums in their place: then the terms
of a sum, times its slope, are contributions that add up to the value. No formula is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import FloatVector, IntVector, Ratio, sum_by_list
from rankeval_spark.measures.item_facts import require_fact
from rankeval_spark.measures.lists import Lists, discounted
from rankeval_spark.measures.measure_set import restrict_lists, values_of
from rankeval_spark.measures.required_facts import DESCRIBED

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix
    from rankeval_spark.measures.item_facts import Shared
    from rankeval_spark.measures.names import Measure

MAX_STEPS: Final = 100  # ranks after which a value is computed; the value of a longer list follows in one step
_MAX_SUMS: Final = 16  # of a kernel with more of them, such as one a feature of vectors, none is replaced
_KEPT: Final = 7 / 8  # share of a sum that takes its place: exact in binary, and near enough to stay within bounds
_NO_SUMS: Final[Mapping[int, float]] = MappingProxyType({})


class _Sum(NamedTuple):
    """A sum that a kernel took, by the terms up to the cutoff."""

    place: IntVector  # rank in the list of what each term belongs to; of a sum of judgements, which of them each is
    terms: FloatVector
    worth: FloatVector | None  # the terms without the discounts of their ranks, where the kernel has discounts
    total: float


@dataclass(frozen=True)
class Trace:
    """How the value of one list comes about; values by rank have NaN where there is none."""

    value: float  # of the kernel: NaN where the measure is undefined, whatever policies make of that
    # What leads from the terms to the value: ``sum of terms``, ``times``, ``divided by``, ``constant``, ``ratio``
    numbers: Mapping[str, float] = field(default_factory=dict)
    # (n_ranks,) by column: ``worth`` and ``term`` where one sum decides, and either ``contribution``, which with the
    # constant adds up to the value or the ratio, or ``after``: the value of the list down to each rank
    by_rank: Mapping[str, FloatVector] = field(default_factory=dict)
    # (n_ideal,) by column, of the ideal list: ``rank``, ``place`` (position of the judgement), ``gain``, ``worth`` and
    # ``term``
    ideal: Mapping[str, FloatVector] = field(default_factory=dict)


def with_places(lists: Lists) -> Lists:
    """Name the places of hits and judgements, so that they are known in views where items left or ties are spread."""
    return replace(lists, hit_place=lists.hit_rank, judged_place=np.arange(len(lists.judged_list)))


def trace_value(measure: Measure, lists: Lists, *, judged_only: bool = False) -> Trace:
    """Trace the value of a measure at its cutoff for a batch of one list; ``judged_only`` is that of ``score``.

    Hits at ranks 2 and 3 have discounts of 1 / log2(3) and 1/2, and the ideal order 1 + 1 / log2(3):

    >>> trace = trace_value(Measure.parse("nDCG@3"), Lists.of([Ranking([None, 1, 1])]))
    >>> trace.by_rank["contribution"].round(4), trace.ideal["term"].round(4)
    (array([0.    , 0.3869, 0.3066]), array([1.    , 0.6309]))
    >>> {name: round(number, 4) for name, number in trace.numbers.items()}
    {'sum of terms': 1.1309, 'divided by': 1.6309}
    """
    named = with_places(lists) if lists.hit_place is None else lists
    closes_up = measure.is_judged_only or (judged_only and measure.is_weighted)
    view = restrict_lists(named, closes_up, measure.group, measure.is_weighted)
    found, sums, ideal = _run(measure, view)
    value = _first(values_of(measure, view, found))
    traced = Trace(value, ideal=_ideal_columns(view, ideal))
    if np.isnan(value):
        return traced
    divisor = _first(found.denominator) if isinstance(found, Ratio) else 1.0
    if divisor == 0 or (ideal and not sums):  # nothing is divided, or the judgements alone decide
        numbers = {"divided by": 0.0} if divisor == 0 else {"constant": value}
        return replace(traced, numbers=numbers, by_rank={"contribution": np.zeros(_last_rank(measure, lists))})
    parts = _Parts(measure, view, divisor, [each.total for each in sums])
    slopes, is_linear = parts.find_slopes() if len(sums) <= _MAX_SUMS else ({}, False)
    active = [number for number, slope in slopes.items() if slope]
    n_ranks = max([_last_rank(measure, lists), *(int(sums[number].place.max(initial=0)) for number in active)])
    numbers, by_rank = {}, dict[str, FloatVector]()

    def spread(one: _Sum, terms: FloatVector) -> FloatVector:
        return sum_by_list(one.place - 1, terms, n_lists=n_ranks)

    if len(active) == 1:
        (only,) = active
        numbers["sum of terms"] = sums[only].total
        by_rank["term"] = spread(sums[only], sums[only].terms)
        if (worth := sums[only].worth) is not None:
            by_rank["worth"] = spread(sums[only], worth)
        times = slopes[only] * parts.divisor
        if is_linear and abs(times - 1) > _ROUNDING:
            numbers["times"] = times
        elif is_linear:
            slopes[only] = 1 / parts.divisor  # without the rounding of the way on which it was found
    if is_linear:
        contributions = [slopes[number] * spread(sums[number], sums[number].terms) for number in active]
        by_rank["contribution"] = np.sum(contributions, axis=0)
        constant = parts.value - sum(slopes[number] * sums[number].total for number in active)
        if abs(constant) > _ROUNDING * parts.scale(slopes):
            numbers["constant"] = constant
    else:
        by_rank["after"] = _values_after(measure, view, n_ranks, value)
    if isinstance(found, Ratio):
        numbers["divided by"] = divisor
        if abs(parts.value - value) > _ROUNDING * max(1.0, abs(value)):
            numbers["ratio"] = parts.value
    return replace(traced, numbers=numbers, by_rank=by_rank)


_ROUNDING: Final = 1e-13  # relative size of what is taken for an error of rounding
_BENT: Final = 1e-9  # relative distance from a line from which a value is no linear function


@dataclass(frozen=True)
class _Parts:
    """The value of a list as a function of the sums that its kernel takes; of a ratio its numerator is."""

    measure: Measure
    view: Lists
    divisor: float  # the denominator of a ratio, else 1
    totals: Sequence[float]

    def evaluate(self, sums: Mapping[int, float]) -> float:
        """Run the kernel with other numbers for some of its sums, in the order in which it takes them."""
        found, _, _ = _run(self.measure, self.view, sums)
        return _first(found.numerator) / self.divisor if isinstance(found, Ratio) else _first(found)

    @cached_property
    def value(self) -> float:
        """The value, or the ratio, as it is."""
        return self.evaluate(_NO_SUMS)

    def scale(self, slopes: Mapping[int, float]) -> float:
        """Return the size of what is added up, by which errors of rounding are measured."""
        return abs(self.value) + sum(abs(slope * self.totals[number]) for number, slope in slopes.items())

    def find_slopes(self) -> tuple[dict[int, float], bool]:
        """Find how the value grows with each sum, and whether it is a linear function of them.

        Either of all sums together; or of one alone that is a factor of the value, which is 0 with it whatever the
        other sums are: the numerator of a quotient of two sums.
        """
        slopes = {number: self._slope(number) for number in range(len(self.totals))}
        if self._is_linear(slopes):
            return slopes, True
        for number, slope in slopes.items():
            others = [{other: 0.75 * total} for other, total in enumerate(self.totals) if other != number]
            is_factor = not any(abs(self.evaluate({**other, number: 0.0})) > _ROUNDING for other in others)
            without = self.value - slope * self.totals[number]
            is_zero = abs(without) <= _ROUNDING * self.scale({number: slope})
            if is_factor and is_zero and self._is_linear({number: slope}):
                return {number: slope}, True
        return slopes, False

    def _slope(self, number: int) -> float:
        total, value = self.totals[number], self.value
        if total:
            return (value - self.evaluate({number: _KEPT * total})) / ((1 - _KEPT) * total)
        return self.evaluate({number: 1.0}) - value

    def _is_linear(self, slopes: Mapping[int, float]) -> bool:
        """Compare the value at a point away from the sums with the line through it."""
        moved = {number: (self.totals[number] or 1.0) * (1 - (1 + 2 * (number % 5)) / 32) for number in slopes}
        steps = {number: slope * (moved[number] - self.totals[number]) for number, slope in slopes.items()}
        distance = abs(self.evaluate(moved) - (self.value + sum(steps.values())))
        size = self.scale(slopes) + sum(map(abs, steps.values()))
        return any(slopes.values()) and bool(distance <= _BENT * size)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _run(
    measure: Measure, view: Lists, sums: Mapping[int, float] = _NO_SUMS
) -> tuple[FloatMatrix | Ratio, list[_Sum], list[_Sum]]:
    """Run the kernel on one list, with other numbers for some of its sums; return its sums, and those of the ideal."""
    lists = replace(view)  # remembers nothing
    cut = lists.cut([measure.k])
    taken, ideal = list[_Sum](), list[_Sum]()
    last, place = cut.k[0, 0], require_fact(lists.hit_place, "has no places")
    plain: dict[str, Callable[..., FloatMatrix]] = {
        name: getattr(cut, name) for name in ("sum_hits", "sum_items", "sum_shared", "sum_ideal")
    }
    sum_whole = lists.sum_hits

    def record(
        total: FloatMatrix,
        place: IntVector,
        rank: IntVector | FloatVector,
        terms: FloatVector,
        worth: FloatVector | None,
    ) -> FloatMatrix:
        counts, number = rank <= last, len(taken)
        taken.append(_Sum(place[counts], terms[counts], None if worth is None else worth[counts], float(total[0, 0])))
        return np.full_like(total, sums[number]) if number in sums else total

    def sum_hits(
        weights: FloatVector, *, discount: FloatVector | None = None, at: FloatVector | None = None
    ) -> FloatMatrix:
        total = plain["sum_hits"](weights, discount=discount, at=at)
        worth = None if discount is None else lists.apply_weights(weights)
        terms = lists.apply_weights(discounted(weights, discount))
        return record(total, place, lists.hit_rank if at is None else at, terms, worth)

    def sum_items(
        weights: FloatVector, *, of: IntVector | slice = slice(None), discount: FloatVector | None = None
    ) -> FloatMatrix:
        ranks = lists.known_items.item_rank[of]
        worth = None if discount is None else weights
        total = plain["sum_items"](weights, of=of, discount=discount)
        return record(total, ranks, ranks, discounted(weights, discount), worth)

    def sum_shared(shared: Shared, weights: FloatVector) -> FloatMatrix:
        return record(plain["sum_shared"](shared, weights), shared.depth, shared.depth, weights, None)

    def sum_ideal(
        weights: FloatVector, *, discount: FloatVector | None = None, of: IntVector | None = None
    ) -> FloatMatrix:
        terms, counts = discounted(weights, discount), lists.ideal_rank <= last
        judged = (np.arange(len(terms)) if of is None else of)[counts]
        ideal.append(_Sum(judged, terms[counts], weights[counts], 0.0))
        return plain["sum_ideal"](weights, discount=discount)

    def sum_hits_of_whole(numbers: FloatVector) -> FloatMatrix:
        return record(sum_whole(numbers), place, np.zeros(len(numbers)), numbers, None)

    vars(cut).update(sum_hits=sum_hits, sum_items=sum_items, sum_shared=sum_shared, sum_ideal=sum_ideal)
    vars(lists).update(sum_hits=sum_hits_of_whole)
    return measure.entry.kernel(cut, **measure.kernel_options), taken, ideal


def _first(values: FloatMatrix) -> float:
    """Return the only value of a matrix of one list and cutoff."""
    return float(values[0, 0])


def _last_rank(measure: Measure, lists: Lists) -> int:
    n_ranks = int(lists.n_recommended[0])
    return n_ranks if measure.k == WHOLE_LIST else min(measure.k, n_ranks)


def _ideal_columns(view: Lists, sums: Sequence[_Sum]) -> dict[str, FloatVector]:
    """Return the ideal list that the kernel adds up, if it does; of several sums the first is the list's."""
    if not sums or view.judged_place is None:
        return {}
    judged, worth, terms = sums[0].place, np.asarray(sums[0].worth), sums[0].terms
    of_list = {"place": view.judged_place[judged], "gain": view.judged_gain[judged]}
    return {"rank": np.arange(1, len(judged) + 1), **of_list, "worth": worth, "term": terms}


def _values_after(measure: Measure, view: Lists, n_ranks: int, value: float) -> FloatVector:
    """Compute the value of the list down to each rank: at cutoffs, or of shorter lists where there is no cutoff."""
    after, n_steps = np.full(n_ranks, np.nan), min(n_ranks, MAX_STEPS)
    if not n_ranks:
        return after
    if measure.entry.cutoff.need(measure.options) != "forbidden":
        cut = replace(view).cut(range(1, n_steps + 1))
        after[:n_steps] = measure.entry.values(cut, measure.kernel_options)[0]
    elif DESCRIBED.isdisjoint(measure.needs):
        for rank in range(1, n_steps + 1):
            fields = view.subset_fields(view.hit_rank <= rank, slice(None))
            shorter = Lists(np.minimum(view.n_recommended, rank), **fields, names=view.names)
            after[rank - 1] = _first(measure.entry.values(shorter.cut([WHOLE_LIST]), measure.kernel_options))
    after[-1] = value
    return after
