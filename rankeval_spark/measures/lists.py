"""Ranked lists as ragged arrays: what every kernel works on.

A batch holds only the *hits* (judged items that were recommended) and the judgements, each with the list it belongs
to. Work therefore grows with the hits, not with lists x k, and facts that several measures share are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import places_of, positions, running_count_by_list, sum_by_list
from rankeval_spark.measures.groups import Groups, bits_of
from rankeval_spark.measures.items import NOTHING_KNOWN, Background, Item, ItemFacts, Shared
from rankeval_spark.measures.memo import Remembers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import BoolMatrix, FloatMatrix, FloatVector, IntVector


class Ranking(NamedTuple):
    """One list written down by hand, for examples and tests.

    Parameters
    ----------
    gains
        Gain of the item at rank 1, 2, ...; ``None`` for an item without a judgement. Empty: the model gave no list.
    missed
        Gains of the judged items that the list does not hold.
    scores
        Score of the item at rank 1, 2, ..., descending; where it is left out 1, (n - 1) / n, ..., 1 / n.
    items
        What is known of the item at rank 1, 2, ...; nothing of those that are left out.
    background
        What is known of the training data and of the user.
    values, missed_values
        Value of the item at each rank, and of the judged items that the list does not hold; where they are left out
        the gains.
    groups, missed_groups
        Groups of the same items, separated by blanks; of those that are left out, none.
    empty
        Ranks at which the list has no item, though it has one further down; their gain is ``None``.
    """

    gains: Sequence[float | None]
    missed: Sequence[float] = ()
    scores: Sequence[float] = ()
    items: Sequence[Item] = ()
    background: Background = NOTHING_KNOWN
    values: Sequence[float] = ()
    missed_values: Sequence[float] = ()
    groups: Sequence[str] = ()
    missed_groups: Sequence[str] = ()
    empty: Sequence[int] = ()

    @property
    def score_at(self) -> Sequence[float]:
        """Score at each rank."""
        return self.scores or [rank / len(self.gains) for rank in range(len(self.gains), 0, -1)]

    @property
    def hits(self) -> list[Judgement]:
        """The judged items that the list holds, by rank."""
        values = self.values or [gain or 0 for gain in self.gains]
        groups = [*self.groups, *[""] * len(self.gains)]
        places = zip(count(1), self.gains, values, groups, self.score_at, strict=False)
        return [
            Judgement(gain, value, own, rank, score) for rank, gain, value, own, score in places if gain is not None
        ]

    @property
    def missing(self) -> list[Judgement]:
        """The judged items that the list does not hold."""
        groups = [*self.missed_groups, *[""] * len(self.missed)]
        judged = zip(self.missed, self.missed_values or self.missed, groups, strict=False)
        return [Judgement(*one) for one in judged]


class Judgement(NamedTuple):
    """One judged item written down by hand; rank and score are 0 where the list does not hold it."""

    gain: float
    value: float
    groups: str
    rank: int = 0
    score: float = 0


class Empty(NamedTuple):
    """Ranks at which lists have no item, though they have one further down.

    Attributes
    ----------
    owner : int, shape (n_runs,)
        List of each run of such ranks, ascending.
    first, last : int, shape (n_runs,)
        First and last rank of the run.
    """

    owner: IntVector
    first: IntVector
    last: IntVector

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Empty:
        """Write those of lists written down by hand: each rank is a run of its own."""
        ranks = [(owner, rank) for owner, one in enumerate(rankings) for rank in sorted(one.empty)]
        owner, rank = np.array(ranks, dtype=np.int64).reshape(-1, 2).T
        return cls(owner, rank, rank)


class Relevance(NamedTuple):
    """What a relevance level makes of a batch.

    Attributes
    ----------
    is_relevant : float64, shape (n_hits,)
        1 for a hit whose gain reaches the level, else 0.
    n_above : float64, shape (n_hits,)
        Relevant hits at the rank of the hit or above it: h_i.
    is_first : float64, shape (n_hits,)
        1 for the first relevant hit of its list, else 0.
    n_relevant : float64, shape (n_lists, 1)
        Relevant judgements of the list's user: R.
    """

    is_relevant: FloatVector
    n_above: FloatVector
    is_first: FloatVector
    n_relevant: FloatMatrix


@dataclass(frozen=True, eq=False)
class Lists(Remembers):
    """A batch of ranked lists, joined with the judgements of their users.

    Parameters
    ----------
    n_recommended : int, shape (n_lists,)
        Length of each list, its last rank; 0 where the model gave none.
    hit_list, hit_rank : int, shape (n_hits,)
        List (0-based position in the batch) and rank (1-based) of each judged item that was recommended, sorted by
        (list, rank).
    hit_gain : float64, shape (n_hits,)
        Gain of that item.
    judged_list : int, shape (n_judged,)
        List of each judgement; the judgements of a user are repeated for each of their lists.
    judged_gain : float64, shape (n_judged,)
        Gain of the judgement, sorted by (list, gain descending).
    hit_score : float64, shape (n_hits,), optional
        Score of each hit in the log; only there where a measure needs it, see :attr:`scores`.
    items : ItemFacts, optional
        What is known of the recommended items; only there where a measure needs it, see :attr:`known_items`.
    hit_value, judged_value : float64, shape (n_hits,) and (n_judged,), optional
        Values of the hits and of the judgements, in the order of their gains; only there where a measure needs them.
    groups : Groups, optional
        Item groups of the hits and of the judgements; only there where a measure is restricted to one.
    names : sequence of str, length n_lists, optional
        What each list is called in a message; only there where a measure that refuses lists needs it.
    empty : Empty, optional
        Ranks without an item; only there where lists keep the ranks of the log.

    Examples
    --------
    Two users: hits at ranks 2 and 3 of a list of 3; and one judged item that no list holds.

    >>> batch = Lists.of([Ranking([None, 1, 1]), Ranking([], missed=[1])])
    >>> batch.n_lists, batch.hit_rank, batch.n_recommended
    (2, array([2, 3]), array([3, 0]))
    """

    n_recommended: IntVector
    hit_list: IntVector
    hit_rank: IntVector
    hit_gain: FloatVector
    judged_list: IntVector
    judged_gain: FloatVector
    hit_score: FloatVector | None = None
    items: ItemFacts | None = None
    hit_value: FloatVector | None = None
    judged_value: FloatVector | None = None
    groups: Groups | None = None
    names: Sequence[str] | None = None
    empty: Empty | None = None

    @classmethod
    def from_ragged(  # noqa: PLR0913, PLR0917 - the buffers of the Arrow columns
        cls,
        n_recommended: IntVector,
        hit_offsets: IntVector,
        hit_ranks: IntVector,
        hit_gains: FloatVector,
        judged_offsets: IntVector,
        judged_gains: FloatVector,
        hit_scores: FloatVector | None = None,
        items: ItemFacts | None = None,
    ) -> Lists:
        """Build a batch from list columns: values and offsets, as in Arrow's ``ListArray.values`` and ``.offsets``.

        Parameters
        ----------
        n_recommended : int, shape (n_lists,)
            Length of each list.
        hit_offsets, judged_offsets : int, shape (n_lists + 1,)
            List ``i`` owns the values ``offsets[i]:offsets[i + 1]``. They need not begin at 0 (a sliced column).
        hit_ranks, hit_gains, judged_gains
            The values: ranks ascending within a list, judged gains descending.
        hit_scores
            Scores of the hits, where a measure needs them, with the offsets of the other values of hits.
        items
            What is known of the recommended items.

        Examples
        --------
        >>> gains = np.array([1.0, 1.0, 1.0])
        >>> Lists.from_ragged(
        ...     np.array([3, 0]), np.array([0, 2, 2]), np.array([2, 3]), gains[:2], np.array([0, 2, 3]), gains
        ... ).judged_list
        array([0, 0, 1])
        """
        hits = slice(hit_offsets[0], hit_offsets[-1])
        judged = slice(judged_offsets[0], judged_offsets[-1])
        return cls(
            n_recommended,
            _owners(hit_offsets),
            hit_ranks[hits],
            hit_gains[hits],
            _owners(judged_offsets),
            judged_gains[judged],
            None if hit_scores is None else hit_scores[hits],
            items,
        )

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Lists:
        """Build a batch from lists written down by hand."""
        ranked = [one.hits for one in rankings]
        judged = [sorted([*one.hits, *one.missing], reverse=True) for one in rankings]
        hits, judgements = [one for row in ranked for one in row], [one for row in judged for one in row]
        backgrounds = [one.background for one in rankings], [one.empty for one in rankings]
        names = tuple(sorted({name for one in judgements for name in one.groups.split()}))
        lists = cls.from_ragged(
            np.array([len(one.gains) for one in rankings], dtype=np.int64),
            _offsets(ranked),
            np.array([one.rank for one in hits], dtype=np.int64),
            _floats(one.gain for one in hits),
            _offsets(judged),
            _floats(one.gain for one in judgements),
            _floats(one.score for one in hits),
            ItemFacts.of([_items_of(one) for one in rankings], *backgrounds),
        )
        return replace(
            lists,
            empty=Empty.of(rankings) if any(one.empty for one in rankings) else None,
            hit_value=_floats(one.value for one in hits),
            judged_value=_floats(one.value for one in judgements),
            groups=Groups(names, _bits(names, hits), _bits(names, judgements)),
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
        if self.hit_score is None:
            message = "the batch has no scores; a measure that reads them declares needs=(HIT_SCORES,)"
            raise ValueError(message)
        return self.hit_score

    @property
    def known_items(self) -> ItemFacts:
        """What is known of the recommended items."""
        if self.items is None:
            message = "the batch holds no facts of items; a measure that reads them says so in its needs"
            raise ValueError(message)
        return self.items

    @property
    def values(self) -> tuple[FloatVector, FloatVector]:
        """Value of each hit and of each judgement, in the order of their gains."""
        if self.hit_value is None or self.judged_value is None:
            message = "the batch has no values; a measure that reads them declares needs=(needs.VALUES,)"
            raise ValueError(message)
        return self.hit_value, self.judged_value

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
        >>> batch = Lists.of([Ranking([None, 1, -1, 0, None])]).judged_only()
        >>> batch.n_recommended, batch.hit_rank, batch.hit_gain, batch.judged_gain
        (array([2]), array([1, 2]), array([1., 0.]), array([ 1.,  0., -1.]))
        """
        return self.once("judged only", self._judged_only)

    def _judged_only(self) -> Lists:
        is_kept = self.hit_gain >= 0
        owner = self.hit_list[is_kept]
        groups = self.groups
        return Lists(
            np.bincount(owner, minlength=self.n_lists),
            owner,
            positions(owner, n_lists=self.n_lists),
            self.hit_gain[is_kept],
            self.judged_list,
            self.judged_gain,
            None if self.hit_score is None else self.hit_score[is_kept],
            None,
            None if self.hit_value is None else self.hit_value[is_kept],
            self.judged_value,
            None if groups is None else groups._replace(of_hits=groups.of_hits[is_kept]),
        )

    def within(self, group: str) -> Lists:
        """View the batch with the judgements of one item group alone; other items keep their ranks, unjudged."""
        return self.once(("within", group), lambda: self._within(group))

    def _within(self, group: str) -> Lists:
        if self.groups is None:
            message = "the batch has no item groups; a measure that is restricted to one says so in its needs"
            raise ValueError(message)
        of_hits, of_judged = self.groups.members(group)
        return Lists(
            self.n_recommended,
            self.hit_list[of_hits],
            self.hit_rank[of_hits],
            self.hit_gain[of_hits],
            self.judged_list[of_judged],
            self.judged_gain[of_judged],
            None if self.hit_score is None else self.hit_score[of_hits],
            None,
            None if self.hit_value is None else self.hit_value[of_hits],
            None if self.judged_value is None else self.judged_value[of_judged],
            names=self.names,
            empty=self.empty,
        )

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
        """Return what each hit adds to a sum of such weights: all of it, unless its rank is one of several."""
        return weights

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

    def count_judged(self, is_counted: NDArray[np.bool_]) -> FloatMatrix:
        """Count some of the judgements of each list: float64, shape (n_lists, 1)."""
        return sum_by_list(self.judged_list, is_counted.astype(np.float64), n_lists=self.n_lists)[:, None]

    def cut(self, ks: Sequence[int]) -> CutLists:
        """View the batch at the cutoffs ``ks``, ascending; 0 = whole list comes last.

        Examples
        --------
        >>> Lists.of([Ranking([1, None, 1])]).cut([1, 2, 0]).hits(rel=1)
        array([[1., 1., 2.]])
        """
        bounds = np.array([np.inf if k == WHOLE_LIST else k for k in ks], dtype=np.float64)
        if not all(low < high for low, high in pairwise(bounds)):
            message = f"cutoffs must ascend, with 0 (the whole list) last: {list(ks)}"
            raise ValueError(message)
        return CutLists(self, bounds[None, :])  # not memoised: a cycle would keep batches alive until a collection


@dataclass(frozen=True, eq=False)
class CutLists(Remembers):
    """A batch of lists seen at several cutoffs.

    Parameters
    ----------
    lists
        The batch.
    k : float64, shape (1, n_cutoffs)
        Cutoffs, ascending. The whole list is the cutoff infinity, so no kernel treats it separately:
        ``min(k, n)`` and ``min(k, R)`` come out right.
    """

    lists: Lists
    k: FloatMatrix

    @cached_property
    def depth(self) -> FloatMatrix:
        """Places of the list at ranks <= k: min(k, n), float64, shape (n_lists, n_cutoffs); some may be empty."""
        return np.minimum(self.k, self.n_recommended)

    @cached_property
    def n_items(self) -> FloatMatrix:
        """Recommended items at ranks <= k: m, float64, shape (n_lists, n_cutoffs).

        m is min(k, n) where no rank above the last is empty; what is a mean of items is divided by m, never by
        :attr:`depth` or k.

        Examples
        --------
        One item, at rank 2:

        >>> cut = Lists.of([Ranking([None, 1], empty=[1])]).cut([1, 2, 3])
        >>> cut.n_items, cut.depth
        (array([[0., 1., 1.]]), array([[1., 2., 2.]]))
        """
        return self.depth - self.sum_empty(lambda places: places)

    def sum_empty(self, up_to: Callable[[FloatVector], FloatVector]) -> FloatMatrix:
        """Sum the weights of the empty ranks up to every cutoff.

        Parameters
        ----------
        up_to : callable
            Function of ranks: the sum of the weights of all ranks from 1 to each of them.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs)
            0 for a list without empty ranks.
        """
        total = np.zeros((self.lists.n_lists, self.k.size))
        if self.lists.empty is not None:
            owner, first, last = self.lists.empty
            for column, k in enumerate(self.k[0]):
                weights = up_to(np.minimum(last, k)) - up_to(np.minimum(first - 1.0, k))
                total[:, column] = sum_by_list(owner, weights, n_lists=self.lists.n_lists)
        return total

    @cached_property
    def n_recommended(self) -> FloatMatrix:
        """Length of each list: float64, shape (n_lists, 1)."""
        return self.lists.n_recommended[:, None].astype(np.float64)

    def n_relevant(self, rel: float) -> FloatMatrix:
        """Relevant judgements R: float64, shape (n_lists, 1)."""
        return self.lists.relevance(rel).n_relevant

    def hits(self, rel: float) -> FloatMatrix:
        """Relevant items at ranks <= k: h_k, float64, shape (n_lists, n_cutoffs)."""
        return self.once(("hits", rel), lambda: self.sum_hits(self.lists.relevance(rel).is_relevant))

    def sum_hits(self, weights: FloatVector, *, at: FloatVector | None = None) -> FloatMatrix:
        """Sum the weight of each hit up to every cutoff.

        Parameters
        ----------
        weights : float64, shape (n_hits,)
            What a hit adds to the sum of its list.
        at : float64, shape (n_hits,), optional
            What is compared with the cutoff; the rank of the hit where it is left out.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs)
            0 for a list without hits.

        Examples
        --------
        Hits at ranks 1 and 3, each worth its rank:

        >>> batch = Lists.of([Ranking([1, None, 1])])
        >>> batch.cut([2, 3]).sum_hits(batch.hit_rank)
        array([[1., 4.]])
        """
        cells = self._hit_cell if at is None else self._cells(self.lists.hit_list, at)
        return self._sum_cells(cells, self.lists.weighed(weights))

    def sum_items(self, weights: FloatVector, *, of: IntVector | slice = slice(None)) -> FloatMatrix:
        """Sum the weights of recommended items, judged or not, up to every cutoff.

        Parameters
        ----------
        weights : float64, shape (n_items,) or that of ``of``
            What an item adds to the sum of its list.
        of : int, optional
            Positions of the items that the weights belong to; all items where it is left out.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs)
            0 for a list without items.
        """
        facts = self.lists.known_items
        cells = self.once("items", lambda: self._cells(facts.item_list, facts.item_rank))
        return self._sum_cells(cells[of], weights)

    def sum_shared(self, shared: Shared, weights: FloatVector) -> FloatMatrix:
        """Sum the weights of the items that lists share with others up to every cutoff at which both lists hold them.

        Parameters
        ----------
        shared : Shared
            Of the same batch, from :meth:`Lists.shared_with`.
        weights : float64, shape (n_shared,)
            What a common item adds to the sum of its list.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs)
            0 for a list without common items.
        """
        return self._sum_cells(self._cells(shared.owner, shared.depth), weights)

    def n_items_of_other(self, shared: Shared) -> FloatMatrix:
        """Items of the other lists at ranks <= k: float64, shape (n_lists, n_cutoffs)."""
        return self._sum_cells(self._cells(shared.other_owner, shared.other_rank), np.ones(len(shared.other_rank)))

    def sum_ideal(self, weights: FloatVector) -> FloatMatrix:
        """Sum the weight of each judgement up to every cutoff, in the ideal order (gain descending).

        Parameters
        ----------
        weights : float64, shape (n_judged,)
            What a judgement adds to the sum of its list.

        Returns
        -------
        float64, shape (n_lists, n_cutoffs)
            0 for a list without judgements.
        """
        return self._sum_cells(self._judged_cell, weights)

    @cached_property
    def _hit_cell(self) -> IntVector:
        return self._cells(self.lists.hit_list, self.lists.hit_rank)

    @cached_property
    def _judged_cell(self) -> IntVector:
        return self._cells(self.lists.judged_list, self.lists.ideal_rank)

    def _cells(self, owner: IntVector, rank: IntVector | FloatVector) -> IntVector:
        """Return the (list, first cutoff that reaches the rank) of each item as one number.

        The bucket after the last cutoff takes the ranks that no cutoff reaches.
        """
        return owner * (self.k.size + 1) + np.searchsorted(self.k[0], rank)

    def _sum_cells(self, cells: IntVector, weights: FloatVector) -> FloatMatrix:
        """One count over (list, bucket) and one running sum, whatever the number of cutoffs."""
        shape = (self.lists.n_lists, self.k.size + 1)
        in_bucket = sum_by_list(cells, weights, n_lists=shape[0] * shape[1]).reshape(shape)
        return np.cumsum(in_bucket[:, :-1], axis=1)


def _items_of(ranking: Ranking) -> list[Item]:
    """List what is known of every item; of those that the notation leaves out, nothing."""
    return [*ranking.items, *[Item()] * (len(ranking.gains) - len(ranking.items))]


def _floats(numbers: Iterable[float]) -> FloatVector:
    return np.array(list(numbers), dtype=np.float64)


def _bits(names: Sequence[str], judgements: Sequence[Judgement]) -> IntVector:
    return np.array([bits_of(names, one.groups) for one in judgements], dtype=np.int64)


def _owners(offsets: IntVector) -> IntVector:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _offsets(rows: Sequence[Sequence[object]]) -> IntVector:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
