"""Ranked lists as ragged arrays: what every kernel works on.

A batch holds only the *hits* (judged items that were recommended) and the judgements, each with the list it belongs
to. Work therefore grows with the hits, not with lists x k, and facts that several measures share are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import places_of, positions, running_count_by_list, sum_by_list
from rankeval_spark.measures.item_groups import Groups, bits_of
from rankeval_spark.measures.kernel_inputs.cut_lists import CutLists
from rankeval_spark.measures.kernel_inputs.example_facts import item_facts_of
from rankeval_spark.measures.kernel_inputs.item_facts import Shared
from rankeval_spark.measures.kernel_inputs.memo import Remembers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rankeval_spark.measures.arrays import BoolMatrix, BoolVector, FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.kernel_inputs.example_lists import Judgement, Ranking
    from rankeval_spark.measures.kernel_inputs.item_facts import ItemFacts

T = TypeVar("T")


class Empty(NamedTuple):
    """Ranks at which lists have no item, though they have one further down."""

    owner: IntVector  # shape (n_runs,): list of each run of such ranks, ascending
    # Shape (n_runs,): first and last rank of the run
    first: IntVector
    last: IntVector

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Empty:
        """Write those of lists written down by hand: each rank is a run of its own."""
        ranks = [(owner, rank) for owner, one in enumerate(rankings) for rank in sorted(one.empty)]
        owner, rank = np.array(ranks, dtype=np.int64).reshape(-1, 2).T
        return cls(owner, rank, rank)


class Relevance(NamedTuple):
    """What a relevance level makes of a batch."""

    is_relevant: FloatVector  # shape (n_hits,): 1 for a hit whose gain reaches the level, else 0
    n_above: FloatVector  # shape (n_hits,): relevant hits at the rank of the hit or above it: h_i
    is_first: FloatVector  # shape (n_hits,): 1 for the first relevant hit of its list, else 0
    n_relevant: FloatMatrix  # shape (n_lists, 1): relevant judgements of the list's user: R


class RaggedHits(NamedTuple):
    """The hits of several lists as Arrow holds list columns: list ``i`` owns the values ``offsets[i]:offsets[i + 1]``.

    Offsets need not begin at 0, as those of a sliced column do not.
    """

    offsets: IntVector
    ranks: IntVector
    gains: FloatVector
    scores: FloatVector | None = None


class RaggedGains(NamedTuple):
    """The gains of all judgements of several lists, likewise."""

    offsets: IntVector
    gains: FloatVector


@dataclass(frozen=True, eq=False)
class Lists(Remembers):
    """A batch of ranked lists, joined with the judgements of their users.

    Examples
    --------
    Two users: hits at ranks 2 and 3 of a list of 3; and one judged item that no list holds.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> batch = Lists.of([Ranking([None, 1, 1]), Ranking([], missed=[1])])
    >>> batch.n_lists, batch.hit_rank, batch.n_recommended
    (2, array([2, 3]), array([3, 0]))
    """

    n_recommended: IntVector  # shape (n_lists,): length of each list, its last rank; 0 where the model gave none
    # Shape (n_hits,): list (0-based position in the batch) and rank (1-based) of each judged item that was
    # recommended, sorted by (list, rank)
    hit_list: IntVector
    hit_rank: IntVector
    hit_gain: FloatVector  # shape (n_hits,): gain of that item
    # Shape (n_judged,): list of each judgement; the judgements of a user are repeated for each of their lists
    judged_list: IntVector
    judged_gain: FloatVector  # shape (n_judged,): gain of the judgement, sorted by (list, gain descending)
    # Shape (n_hits,): score of each hit in the log; only there where a measure needs it, see :attr:`scores`
    hit_score: FloatVector | None = None
    # What is known of the recommended items; only there where a measure needs it, see :attr:`known_items`
    items: ItemFacts | None = None
    # Shape (n_hits,) and (n_judged,): values of the hits and of the judgements, in the order of their gains; only
    # there where a measure needs them
    hit_value: FloatVector | None = None
    judged_value: FloatVector | None = None
    # Shape (n_hits,) and (n_judged,): weights of the hits and of the judgements, likewise
    hit_weight: FloatVector | None = None
    judged_weight: FloatVector | None = None
    is_weighted: bool = False  # whether sums over hits and judgements take the weights; see :meth:`weighted`
    # Shape (n_hits,): propensity of each hit; only there where a measure needs it
    hit_propensity: FloatVector | None = None
    # Shape (n_hits,): predicted reward of each hit; and shape (n_lists,): sum over the items of a list of score times
    # predicted reward; only there where a measure needs them
    hit_prediction: FloatVector | None = None
    predicted_value: FloatVector | None = None
    # Item groups of the hits and of the judgements; only there where a measure is restricted to one
    groups: Groups | None = None
    # What each list is called in a message; only there where a measure that refuses lists needs it
    names: Sequence[str] | None = None
    empty: Empty | None = None  # ranks without an item; only there where lists keep the ranks of the log

    @classmethod
    def from_ragged(cls, n_recommended: IntVector, hits: RaggedHits, judged: RaggedGains) -> Lists:
        """Build a batch from list columns. Ranks ascend within a list and judged gains descend.

        Examples
        --------
        >>> gains = np.array([1.0, 1.0, 1.0])
        >>> hits = RaggedHits(np.array([0, 2, 2]), np.array([2, 3]), gains[:2])
        >>> Lists.from_ragged(np.array([3, 0]), hits, RaggedGains(np.array([0, 2, 3]), gains)).judged_list
        array([0, 0, 1])
        """
        of_hits = slice(hits.offsets[0], hits.offsets[-1])
        return cls(
            n_recommended,
            _owners(hits.offsets),
            hits.ranks[of_hits],
            hits.gains[of_hits],
            _owners(judged.offsets),
            judged.gains[judged.offsets[0] : judged.offsets[-1]],
            None if hits.scores is None else hits.scores[of_hits],
        )

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Lists:
        """Build a batch from lists written down by hand."""
        ranked = [one.hits for one in rankings]
        judged = [sorted([*one.hits, *one.missing], reverse=True) for one in rankings]
        hits, judgements = [one for row in ranked for one in row], [one for row in judged for one in row]
        names = tuple(sorted({name for one in judgements for name in one.groups.split()}))
        return cls(
            np.array([len(one.gains) for one in rankings], dtype=np.int64),
            _owners_of(ranked),
            np.array([one.rank for one in hits], dtype=np.int64),
            _floats(one.gain for one in hits),
            _owners_of(judged),
            _floats(one.gain for one in judgements),
            hit_score=_floats(one.score for one in hits),
            items=item_facts_of(rankings),
            hit_value=_floats(one.value for one in hits),
            judged_value=_floats(one.value for one in judgements),
            hit_propensity=_floats(one.propensity for one in hits),
            hit_prediction=_floats(one.prediction for one in hits),
            predicted_value=_floats(one.predicted_value for one in rankings),
            hit_weight=_floats(one.weight for one in hits),
            judged_weight=_floats(one.weight for one in judgements),
            groups=Groups(names, _bits(names, hits), _bits(names, judgements)),
            empty=Empty.of(rankings) if any(one.empty for one in rankings) else None,
        )

    @property
    def n_lists(self) -> int:
        """Number of lists in the batch."""
        return len(self.n_recommended)

    @cached_property
    def n_items(self) -> IntVector:
        """Items of each list: int64, shape (n_lists,); fewer than its ranks where some are empty."""
        if self.empty is None:
            return self.n_recommended
        owner, first, last = self.empty
        n_empty = sum_by_list(owner, (last - first + 1).astype(np.float64), n_lists=self.n_lists)
        return self.n_recommended - n_empty.astype(np.int64)

    @property
    def scores(self) -> FloatVector:
        """Score of each hit: float64, shape (n_hits,)."""
        return _collected(self.hit_score, "has no scores")

    @property
    def known_items(self) -> ItemFacts:
        """What is known of the recommended items."""
        return _collected(self.items, "holds no facts of items")

    @property
    def values(self) -> tuple[FloatVector, FloatVector]:
        """Value of each hit and of each judgement, in the order of their gains."""
        return _collected(self.hit_value, "has no values"), _collected(self.judged_value, "has no values")

    @property
    def propensities(self) -> FloatVector:
        """Propensity of each hit: float64, shape (n_hits,)."""
        return _collected(self.hit_propensity, "has no propensities")

    @property
    def predictions(self) -> tuple[FloatVector, FloatVector]:
        """Predicted reward of each hit, shape (n_hits,); and of each list the expected one, shape (n_lists,)."""
        lack = "has no predicted rewards"
        return _collected(self.hit_prediction, lack), _collected(self.predicted_value, lack)

    @property
    def weights(self) -> tuple[FloatVector, FloatVector]:
        """Weight of each hit and of each judgement, in the order of their gains."""
        return _collected(self.hit_weight, "has no weights"), _collected(self.judged_weight, "has no weights")

    @cached_property
    def ideal_values(self) -> FloatVector:
        """Value of each judgement, the greatest of each list first: float64, shape (n_judged,)."""
        of_judged = self.values[1]
        return of_judged[np.lexsort((-of_judged, self.judged_list))]

    @cached_property
    def has_judgements(self) -> BoolMatrix:
        """Whether the list's user has any judgement: shape (n_lists, 1)."""
        n_judged: BoolMatrix = np.bincount(self.judged_list, minlength=self.n_lists)[:, None] > 0
        return n_judged

    def judged_only(self) -> Lists:
        """View the batch without the items that have no judgement or a negative gain; the rest is renumbered.

        Judgements stay what they are, those of items that left the lists too. As of trec_eval, a negative gain marks
        an item of the pool that was not judged.

        Examples
        --------
        >>> from rankeval_spark.measures import Lists, Ranking
        >>> batch = Lists.of([Ranking([None, 1, -1, 0, None])]).judged_only()
        >>> batch.n_recommended, batch.hit_rank, batch.hit_gain, batch.judged_gain
        (array([2]), array([1, 2]), array([1., 0.]), array([ 1.,  0., -1.]))
        """
        return self.once("judged only", self._judged_only)

    def _judged_only(self) -> Lists:
        is_kept = self.hit_gain >= 0
        owner = self.hit_list[is_kept]
        return Lists(
            np.bincount(owner, minlength=self.n_lists),
            owner,
            positions(owner, n_lists=self.n_lists),
            self.hit_gain[is_kept],
            self.judged_list,
            self.judged_gain,
            hit_score=_at(self.hit_score, is_kept),
            hit_value=_at(self.hit_value, is_kept),
            judged_value=self.judged_value,
            hit_weight=_at(self.hit_weight, is_kept),
            judged_weight=self.judged_weight,
            groups=None if self.groups is None else self.groups._replace(of_hits=self.groups.of_hits[is_kept]),
        )

    def within(self, group: str) -> Lists:
        """View the batch with the judgements of one item group alone; other items keep their ranks, unjudged."""
        return self.once(("within", group), lambda: self._within(group))

    def _within(self, group: str) -> Lists:
        of_hits, of_judged = _collected(self.groups, "has no item groups").members(group)
        return Lists(
            self.n_recommended,
            self.hit_list[of_hits],
            self.hit_rank[of_hits],
            self.hit_gain[of_hits],
            self.judged_list[of_judged],
            self.judged_gain[of_judged],
            hit_score=_at(self.hit_score, of_hits),
            hit_value=_at(self.hit_value, of_hits),
            judged_value=_at(self.judged_value, of_judged),
            hit_weight=_at(self.hit_weight, of_hits),
            judged_weight=_at(self.judged_weight, of_judged),
            names=self.names,
            empty=self.empty,
        )

    def weighted(self) -> Lists:
        """View the batch with judgements that count as often as their weights say, in every sum over them.

        Examples
        --------
        The hit has weight 3, the judgement that the list misses 1:

        >>> from rankeval_spark.measures import Lists, Ranking
        >>> batch = Lists.of([Ranking([1], missed=[1], weights=[3], missed_weights=[1])]).weighted()
        >>> batch.cut([0]).hits(rel=1), batch.cut([0]).n_relevant(rel=1)
        (array([[3.]]), array([[4.]]))
        """
        return self.once("weighted", lambda: replace(self, is_weighted=True))

    @cached_property
    def ideal_rank(self) -> IntVector:
        """Rank of each judgement in the ideal order of its user: int64, shape (n_judged,), 1-based."""
        return positions(self.judged_list, n_lists=self.n_lists)

    def relevance(self, rel: float) -> Relevance:
        """Hits and judgements with a gain of at least ``rel``; computed once for each level."""
        return self.once(("relevance", rel), lambda: self._relevance(rel))

    def _relevance(self, rel: float) -> Relevance:
        is_relevant = (self.hit_gain >= rel).astype(np.float64)
        n_above = running_count_by_list(is_relevant, self.hit_list, n_lists=self.n_lists)
        is_first = is_relevant * (n_above == 1)
        return Relevance(is_relevant, n_above, is_first, self.count_judged(self.judged_gain >= rel))

    def weighed(self, weights: FloatVector) -> FloatVector:
        """Return what each hit adds to a sum of such weights: all of it, unless the judgements have weights."""
        return weights * self.weights[0] if self.is_weighted else weights

    def relevant_items(self, rel: float) -> FloatVector:
        """Return 1 for each relevant item of :attr:`known_items`, 0 for the others: float64, shape (n_items,)."""
        facts = self.known_items

        def compute() -> FloatVector:
            place = places_of(self.hit_list, self.hit_rank, among=(facts.item_list, facts.item_rank))
            is_known = place >= 0
            flags = np.zeros(len(facts.item_list))
            flags[place[is_known]] = self.relevance(rel).is_relevant[is_known]
            return flags

        return self.once(("relevant items", rel), compute)

    def shared_with(self, model: str) -> Shared:
        """Return what the lists share with those of another model; a model that does not occur gave no lists."""
        nothing = np.zeros(0, dtype=np.int64)
        none = Shared(nothing, nothing, np.zeros(self.n_lists), nothing, nothing)
        return self.known_items.known_shared.get(model, none)

    def count_judged(self, is_counted: BoolVector) -> FloatMatrix:
        """Count some of the judgements of each list: float64, shape (n_lists, 1)."""
        return self.sum_judged(is_counted.astype(np.float64))

    def sum_judged(self, numbers: FloatVector) -> FloatMatrix:
        """Sum what each judgement adds to its list, shape (n_judged,): float64, shape (n_lists, 1)."""
        weighed = numbers * self.weights[1] if self.is_weighted else numbers
        return sum_by_list(self.judged_list, weighed, n_lists=self.n_lists)[:, None]

    def cut(self, ks: Sequence[int]) -> CutLists:
        """View the batch at the cutoffs ``ks``, ascending; 0 = whole list comes last.

        Examples
        --------
        >>> from rankeval_spark.measures import Lists, Ranking
        >>> Lists.of([Ranking([1, None, 1])]).cut([1, 2, 0]).hits(rel=1)
        array([[1., 1., 2.]])
        """
        bounds = np.array([np.inf if k == WHOLE_LIST else k for k in ks], dtype=np.float64)
        if not all(low < high for low, high in pairwise(bounds)):
            message = f"cutoffs must ascend, with 0 (the whole list) last: {list(ks)}"
            raise ValueError(message)
        return CutLists(self, bounds[None, :])  # not memoised: a cycle would keep batches alive until a collection


def _collected(fact: T | None, lack: str) -> T:
    if fact is None:
        message = f"the batch {lack}; a measure that reads them says so in its needs"
        raise ValueError(message)
    return fact


def _at(values: FloatVector | None, is_kept: BoolVector) -> FloatVector | None:
    return None if values is None else values[is_kept]


def _floats(numbers: Iterable[float]) -> FloatVector:
    return np.array(list(numbers), dtype=np.float64)


def _bits(names: Sequence[str], judgements: Sequence[Judgement]) -> IntVector:
    return np.array([bits_of(names, one.groups) for one in judgements], dtype=np.int64)


def _owners(offsets: IntVector) -> IntVector:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _owners_of(rows: Sequence[Sequence[object]]) -> IntVector:
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows])
