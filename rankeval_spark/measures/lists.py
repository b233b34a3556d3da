"""Ranked lists as ragged arrays, and the sums at several cutoffs that kernels are made of.

A batch holds only the *hits* (judged items that were recommended) and the judgements, each with the list it belongs
to. Work therefore grows with the hits, not with lists x k, and facts that several measures share are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import (
    BoolMatrix,
    BoolVector,
    FloatMatrix,
    FloatVector,
    IntVector,
    find_in_lists,
    positions_in_list,
    running_count_by_list,
    sum_by_list,
)
from rankeval_spark.measures.example_lists import build_fields
from rankeval_spark.measures.item_facts import RequiredFact, Shared, require_fact

if TYPE_CHECKING:
    from rankeval_spark.measures.example_lists import Ranking
    from rankeval_spark.measures.item_facts import Empty, ItemFacts
    from rankeval_spark.measures.required_facts import Groups

P = ParamSpec("P")
T = TypeVar("T")

_OF_HITS: Final = ("hit_list", "hit_rank", "hit_gain", "hit_score", "hit_value", "hit_weight", "hit_place")
_OF_JUDGED: Final = ("judged_list", "judged_gain", "judged_value", "judged_weight", "judged_place")


@dataclass(frozen=True, eq=False)
class _Memo:
    """Memory of what was computed once, for as long as the object lives."""

    _memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, kw_only=True)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` returned at the first call with ``key``."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value


def memoised(method: Callable[P, T]) -> Callable[P, T]:
    """Return a function of a batch, or of its cuts, that computes once for the same other arguments."""

    @wraps(method)
    def recall(*args: P.args, **options: P.kwargs) -> T:
        owner: Any = args[0]
        key = (method.__name__, *args[1:], *options.values())
        value: T = owner.once(key, lambda: method(*args, **options))
        return value

    return recall


class Relevance(NamedTuple):
    """Relevance in a batch at one level."""

    is_relevant: FloatVector  # shape (n_hits,): 1 for a hit whose gain reaches the level, else 0
    n_above: FloatVector  # shape (n_hits,): relevant hits at the rank of the hit or above it: h_i
    is_first: FloatVector  # shape (n_hits,): 1 for the first relevant hit of its list, else 0
    n_relevant: FloatMatrix  # shape (n_lists, 1): relevant judgements of the list's user: R


@dataclass(frozen=True, eq=False)
class Lists(_Memo):
    """A batch of ranked lists, joined with the judgements of their users.

    Two users: hits at ranks 2 and 3 of a list of 3; and one judged item that no list holds.

    >>> batch = Lists.of([Ranking([None, 1, 1]), Ranking([], missed=[1])])
    >>> batch.n_lists, batch.hit_rank, batch.n_recommended
    (2, array([2, 3]), array([3, 0]))
    """

    n_recommended: IntVector  # shape (n_lists,): length of each list, its last rank; 0 where the model gave none
    # Shape (n_hits,): list (0-based position in the batch), rank (1-based) and gain of each judged item that was
    # recommended, sorted by (list, rank)
    hit_list: IntVector
    hit_rank: IntVector
    hit_gain: FloatVector
    # Shape (n_judged,): list and gain of each judgement, sorted by (list, gain descending); the judgements of a user
    # are repeated for each of their lists
    judged_list: IntVector
    judged_gain: FloatVector
    # What else is known; only there where a measure needs it. Of hits and judgements: the score in the log, values,
    # weights, the propensity and the predicted reward
    hit_score: FloatVector | None = None
    items: ItemFacts | None = None  # what is known of the recommended items
    hit_value: FloatVector | None = None
    judged_value: FloatVector | None = None
    hit_weight: FloatVector | None = None
    judged_weight: FloatVector | None = None
    is_weighted: bool = False  # whether sums over hits and judgements take the weights; see :meth:`weighted`
    hit_propensity: FloatVector | None = None
    hit_prediction: FloatVector | None = None
    # Of traces alone: rank of each hit, and position of each judgement, before items left and ties were spread
    hit_place: IntVector | None = None
    judged_place: IntVector | None = None
    predicted_value: FloatVector | None = None  # shape (n_lists,): sum over the items of score times predicted reward
    groups: Groups | None = None  # item groups of the hits and of the judgements
    names: Callable[[int], str] | None = None  # what a list is called in a message, by its place in the batch
    empty: Empty | None = None  # ranks without an item, where lists keep the ranks of the log
    # Own values of the user of each list by name, shape (n_lists,) each; NaN for a user without one
    user_values: Mapping[str, FloatVector] | None = None
    user_weight: FloatVector | None = None  # shape (n_lists,): weight of the user in the means; NaN without one

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Lists:
        """Build a batch from lists written down by hand."""
        return cls(**build_fields(rankings))

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

    scores = RequiredFact[FloatVector]("hit_score", "has no scores")  # shape (n_hits,)
    propensities = RequiredFact[FloatVector]("hit_propensity", "has no propensities")  # shape (n_hits,)
    known_items = RequiredFact["ItemFacts"]("items", "holds no facts of items")
    known_user_values = RequiredFact["Mapping[str, FloatVector]"]("user_values", "has no own values of users")

    @cached_property
    def values(self) -> tuple[FloatVector, FloatVector]:
        """Values of hits, and of judgements as their gains are sorted; 0 with a negative gain."""
        of_hits, of_judged = (require_fact(each, "has no values") for each in (self.hit_value, self.judged_value))
        return of_hits * self.is_judged_hit, np.where(self.judged_gain >= 0, of_judged, 0.0)

    @property
    def predictions(self) -> tuple[FloatVector, FloatVector]:
        """Predicted reward of each hit, shape (n_hits,); and of each list the expected one, shape (n_lists,)."""
        lack = "has no predicted rewards"
        return require_fact(self.hit_prediction, lack), require_fact(self.predicted_value, lack)

    @property
    def weights(self) -> tuple[FloatVector, FloatVector]:
        """Weight of each hit, and of each judgement as gains are sorted."""
        return require_fact(self.hit_weight, "has no weights"), require_fact(self.judged_weight, "has no weights")

    @cached_property
    def is_judged_hit(self) -> FloatVector:
        """1 for each hit, shape (n_hits,); 0 with a negative gain, which marks an unjudged item of trec_eval's pool."""
        return (self.hit_gain >= 0).astype(np.float64)

    @cached_property
    def has_judgements(self) -> BoolMatrix:
        """True if the list's user has a judgement whose gain is not negative: shape (n_lists, 1)."""
        return np.bincount(self.judged_list[self.judged_gain >= 0], minlength=self.n_lists)[:, None] > 0

    @memoised
    def judged_only(self) -> Lists:
        """View the batch without the items that have no judgement or a negative gain; the rest is renumbered.

        Judgements stay what they are, those of items that left the lists too.

        >>> batch = Lists.of([Ranking([None, 1, -1, 0, None])]).judged_only()
        >>> batch.n_recommended, batch.hit_rank, batch.hit_gain, batch.judged_gain
        (array([2]), array([1, 2]), array([1., 0.]), array([ 1.,  0., -1.]))
        """
        kept = self.subset_fields(self.is_judged_hit > 0, slice(None))
        kept["hit_rank"] = positions_in_list(kept["hit_list"], n_lists=self.n_lists)
        return Lists(np.bincount(kept["hit_list"], minlength=self.n_lists), **kept, names=self.names)

    @memoised
    def keep_group(self, group: str) -> Lists:
        """View the batch with the judgements of one item group alone; other items keep their ranks, unjudged."""
        members = require_fact(self.groups, "has no item groups").members(group)
        return Lists(self.n_recommended, **self.subset_fields(*members), names=self.names, empty=self.empty)

    def subset_fields(self, hits: BoolVector | IntVector, judged: BoolVector | slice) -> dict[str, Any]:
        """Subset the hits and the judgements, with their groups and weights; return the fields by name."""
        chosen = {**dict.fromkeys(_OF_HITS, hits), **dict.fromkeys(_OF_JUDGED, judged)}
        known = {name: getattr(self, name) for name in chosen}
        taken = {name: None if values is None else values[chosen[name]] for name, values in known.items()}
        groups = None if self.groups is None else self.groups.subset(hits, judged)
        of_users = {"user_values": self.user_values, "user_weight": self.user_weight}
        return {**taken, **of_users, "groups": groups, "is_weighted": self.is_weighted}

    @memoised
    def weighted(self) -> Lists:
        """View the batch with judgements that count as often as their weights say, in every sum over them.

        A weight of 0 takes the judgement out: its item keeps its rank, unjudged. A hit of weight 3 and a miss of 1:

        >>> batch = Lists.of([Ranking([1], missed=[1], weights=[3], missed_weights=[1])]).weighted()
        >>> batch.cut([0]).hits(rel=1), batch.cut([0]).n_relevant(rel=1)
        (array([[3.]]), array([[4.]]))
        """
        fields = self.subset_fields(*(weights > 0 for weights in self.weights)) | {"is_weighted": True}
        return Lists(self.n_recommended, **fields, names=self.names, empty=self.empty)

    @cached_property
    def ideal_rank(self) -> IntVector:
        """Rank of each judgement in the ideal order of its user: int64, shape (n_judged,), 1-based."""
        return positions_in_list(self.judged_list, n_lists=self.n_lists)

    @memoised
    def relevance(self, rel: float) -> Relevance:
        """Hits and judgements with a gain of at least ``rel``."""
        is_relevant = (self.hit_gain >= rel).astype(np.float64)
        n_above = running_count_by_list(is_relevant, self.hit_list, n_lists=self.n_lists)
        is_first = is_relevant * (n_above == 1)
        return Relevance(is_relevant, n_above, is_first, self.sum_judged(self.judged_gain >= rel))

    def apply_weights(self, weights: FloatVector) -> FloatVector:
        """Return what each hit adds to a sum of such weights: all of it, unless the judgements have weights."""
        return weights * self.weights[0] if self.is_weighted else weights

    @memoised
    def relevant_items(self, rel: float) -> FloatVector:
        """Return 1 for each relevant item of :attr:`known_items`, 0 for the others: float64, shape (n_items,)."""
        facts = self.known_items
        place = find_in_lists(self.hit_list, self.hit_rank, among=(facts.item_list, facts.item_rank))
        flags = np.zeros(len(facts.item_list))
        flags[place[place >= 0]] = self.relevance(rel).is_relevant[place >= 0]
        return flags

    def shared_with(self, model: str) -> Shared:
        """Return what the lists share with those of another model; a model that does not occur gave no lists."""
        nothing = np.zeros(0, dtype=np.int64)
        none = Shared(nothing, nothing, np.zeros(self.n_lists), nothing, nothing)
        return self.known_items.known_shared.get(model, none)

    def sum_judged(self, numbers: FloatVector | BoolVector) -> FloatMatrix:
        """Sum numbers of the judgements, shape (n_judged,), by list, weighted in weighted lists: shape (n_lists, 1)."""
        weighed = numbers * self.weights[1] if self.is_weighted else numbers.astype(np.float64)
        return sum_by_list(self.judged_list, weighed, n_lists=self.n_lists)[:, None]

    def sum_hits(self, numbers: FloatVector) -> FloatMatrix:
        """Sum a number of each hit, shape (n_hits,), whatever its rank and weight: float64, shape (n_lists, 1)."""
        return sum_by_list(self.hit_list, numbers, n_lists=self.n_lists)[:, None]

    @property
    def n_hits(self) -> FloatMatrix:
        """Judged items that the list holds: float64, shape (n_lists, 1)."""
        return self.sum_hits(np.ones(len(self.hit_list)))

    @property
    def n_judged(self) -> FloatMatrix:
        """Judgements of the list's user, of any gain: float64, shape (n_lists, 1)."""
        return self.sum_judged(np.ones(len(self.judged_list)))

    def cut(self, ks: Sequence[int]) -> CutLists:
        """View the batch at the cutoffs ``ks``, ascending; 0 = whole list comes last.

        >>> Lists.of([Ranking([1, None, 1])]).cut([1, 2, 0]).hits(rel=1)
        array([[1., 1., 2.]])
        """
        bounds = np.array([np.inf if k == WHOLE_LIST else k for k in ks], dtype=np.float64)
        if not all(low < high for low, high in pairwise(bounds)):
            message = f"cutoffs must ascend, with 0 (the whole list) last: {list(ks)}"
            raise ValueError(message)
        return CutLists(self, bounds[None, :])  # not memoised: a cycle would keep batches alive until a collection


def discounted(weights: FloatVector, discount: FloatVector | None) -> FloatVector:
    """Multiply weights by the discounts of their ranks, if there are any."""
    return weights if discount is None else weights * discount


@dataclass(frozen=True, eq=False)
class CutLists(_Memo):
    """A batch of lists seen at several cutoffs; sums have shape (n_lists, n_cutoffs), and 0 where there is no term."""

    lists: Lists  # the batch
    # Shape (1, n_cutoffs): cutoffs, ascending. The whole list is the cutoff infinity, so no kernel treats it
    # separately: ``min(k, n)`` and ``min(k, R)`` come out right.
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

        One item, at rank 2:

        >>> cut = Lists.of([Ranking([None, 1], empty=[1])]).cut([1, 2, 3])
        >>> cut.n_items, cut.depth
        (array([[0., 1., 1.]]), array([[1., 2., 2.]]))
        """
        return self.depth - self.sum_empty(lambda places: places)

    def sum_empty(self, up_to: Callable[[FloatVector], FloatVector]) -> FloatMatrix:
        """Sum the weights of the empty ranks up to every cutoff: (n_lists, n_cutoffs).

        ``up_to(r)`` is the sum of the weights of ranks 1 to r, such as r itself to count the ranks.
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

    @memoised
    def hits(self, rel: float) -> FloatMatrix:
        """Relevant items at ranks <= k: h_k, float64, shape (n_lists, n_cutoffs)."""
        return self.sum_hits(self.lists.relevance(rel).is_relevant)

    def sum_hits(
        self, weights: FloatVector, *, discount: FloatVector | None = None, at: FloatVector | None = None
    ) -> FloatMatrix:
        """Sum what each hit adds to its list, shape (n_hits,), up to every cutoff: by its rank, or by ``at`` instead.

        Here and below, ``discount`` is a factor of each weight, which explanations show next to it. Hits at ranks 1
        and 3, each worth its rank:

        >>> batch = Lists.of([Ranking([1, None, 1])])
        >>> batch.cut([2, 3]).sum_hits(batch.hit_rank)
        array([[1., 4.]])
        """
        owner, rank = self.lists.hit_list, self.lists.hit_rank
        cells = self.once("hits", lambda: self._cells(owner, rank)) if at is None else self._cells(owner, at)
        return self._sum_cells(cells, self.lists.apply_weights(discounted(weights, discount)))

    def sum_items(
        self, weights: FloatVector, *, of: IntVector | slice = slice(None), discount: FloatVector | None = None
    ) -> FloatMatrix:
        """Sum what recommended items, judged or not, add to their lists up to every cutoff.

        The weights are those of all items, or of the items at the positions ``of``.
        """
        facts = self.lists.known_items
        cells = self.once("items", lambda: self._cells(facts.item_list, facts.item_rank))
        return self._sum_cells(cells[of], discounted(weights, discount))

    def sum_shared(self, shared: Shared, weights: FloatVector) -> FloatMatrix:
        """Sum what items that two lists share add, shape (n_shared,), up to every cutoff at which both hold them."""
        return self._sum_cells(self._cells(shared.owner, shared.depth), weights)

    def n_items_of_other(self, shared: Shared) -> FloatMatrix:
        """Items of the other lists at ranks <= k: float64, shape (n_lists, n_cutoffs)."""
        return self._sum_cells(self._cells(shared.other_owner, shared.other_rank), np.ones(len(shared.other_rank)))

    def sum_ideal(
        self,
        weights: FloatVector,
        *,
        discount: FloatVector | None = None,
        of: IntVector | None = None,  # noqa: ARG002 - which judgement each is, where not by gain: for `traces`
    ) -> FloatMatrix:
        """Sum what each judgement adds, shape (n_judged,), up to every cutoff, in the ideal order (gain descending)."""
        cells = self.once("judged", lambda: self._cells(self.lists.judged_list, self.lists.ideal_rank))
        return self._sum_cells(cells, discounted(weights, discount))

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
