"""What the measures of parity count: items of a group of popularity, or of a category, by model and user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import in_one_piece, to_numpy
from rankeval_spark.engine.codes import starts_of_runs
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.in_process.counting import codes_among, codes_of_runs, codes_together
from rankeval_spark.measures import needs as N
from rankeval_spark.measures.item_groups import BY_POPULARITY
from rankeval_spark.result_rows.parity_rows import is_disparity

if TYPE_CHECKING:
    from rankeval_spark.in_process.audience import Audience
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector

IntMatrix: TypeAlias = NDArray[np.int64]

_N_POPULARITY: Final = len(BY_POPULARITY)


@dataclass(frozen=True)
class Offer:
    """What could be recommended.

    Attributes
    ----------
    judgements : pa.Table
        ``user_id``, ``item_id`` and ``gain``, one row per (user, item).
    train : pa.Table
        ``user_id`` and ``item_id``: what users have already, each as often as it comes.
    popularity_groups : pa.Table
        ``item_id`` and the double ``needs.ITEM_POPULARITY_GROUP`` of each item of the training data; others are in the
        tail.
    catalogue : pa.Table or None
        ``item_id`` of all items, each as often as it comes; None where no measure needs it.
    items : pa.Table or None
        ``item_id`` and ``categories``; there where a measure is about a category.
    """

    judgements: pa.Table
    train: pa.Table
    popularity_groups: pa.Table
    catalogue: pa.Table | None = None
    items: pa.Table | None = None


@dataclass(frozen=True)
class Counts:
    """Counts for each pair of a model and a user, and for each user.

    Items are codes among those of all inputs, users codes among those with a list.

    Attributes
    ----------
    pair, item, rank : int64, shape (n_rows,)
        Of each ranked item.
    gain : float64, shape (n_rows,)
        NaN without a judgement.
    judged_user, judged_item : int64, shape (n_judged,)
        Of the judgements of users with a list.
    judged_gain : float64, shape (n_judged,)
    own : int64, shape (n_own,)
        ``user * n_items + item`` of what users with a list have in the training data, ascending, each once.
    group : int64, shape (n_items,)
        Group of popularity of each item.
    is_known : bool, shape (n_items,)
        Whether the catalogue has it; False where there is none.
    of_category : mapping of str to bool, shape (n_items,)
        Whether an item has each category that a measure is about.
    n_users, n_pairs : int
        Users with a list, and pairs.
    """

    pair: IntVector
    item: IntVector
    rank: IntVector
    gain: FloatVector
    judged_user: IntVector
    judged_item: IntVector
    judged_gain: FloatVector
    own: IntVector
    group: IntVector
    is_known: BoolVector
    of_category: Mapping[str, BoolVector]
    n_users: int
    n_pairs: int

    @property
    def n_items(self) -> int:
        """Items of all inputs."""
        return len(self.group)

    def taken(self, measure: Measure) -> IntMatrix:
        """Count the items of each group that lists hold and that count: int64, shape (n_pairs, 3)."""
        is_possible = self.gain >= rel_of(measure) if is_of_relevant(measure) else self.is_known[self.item]
        places = np.flatnonzero(is_possible & self._is_within(measure.k))
        pair, item = self.pair[places], self.item[places]
        counts = ~self._is_own(pair % (self.n_users or 1), item)
        return self._by_popularity(pair[counts], item[counts], n=self.n_pairs)

    def relevant(self, measure: Measure) -> IntMatrix:
        """Count the relevant judgements in each group, but for items that the user has already: (n_users, 3)."""
        counts = self.judged_gain >= rel_of(measure)
        counts &= ~self._is_own(self.judged_user, self.judged_item)
        return self._by_popularity(self.judged_user[counts], self.judged_item[counts], n=self.n_users)

    @cached_property
    def available(self) -> IntMatrix:
        """Count the items of the catalogue in each group that the user does not have already: (n_users, 3)."""
        user, item = self._own_pairs
        known = self.is_known[item]
        sizes = np.bincount(self.group[self.is_known], minlength=_N_POPULARITY)
        return sizes - self._by_popularity(user[known], item[known], n=self.n_users)

    def slots(self, measure: Measure) -> tuple[IntVector, IntVector]:
        """Count recommended items, of the category and all: each int64, shape (n_pairs,)."""
        within = np.flatnonzero(self._is_within(measure.k))
        pair, item = self.pair[within], self.item[within]
        has_category = self.of_category[str(measure.options["category"])][item]
        return np.bincount(pair[has_category], minlength=self.n_pairs), np.bincount(pair, minlength=self.n_pairs)

    def profiles(self, measure: Measure) -> tuple[IntVector, IntVector]:
        """Count the distinct items of the training data, of the category and all: each int64, shape (n_users,)."""
        user, item = self._own_pairs
        has_category = self.of_category[str(measure.options["category"])][item]
        return np.bincount(user[has_category], minlength=self.n_users), np.bincount(user, minlength=self.n_users)

    @cached_property
    def _own_pairs(self) -> tuple[IntVector, IntVector]:
        """Users and items of :attr:`own`."""
        user, item = np.divmod(self.own, self.n_items or 1)
        return user, item

    def _is_within(self, k: int) -> BoolVector:
        return np.ones(len(self.rank), dtype=np.bool_) if k == C.WHOLE_LIST else self.rank <= k

    def _is_own(self, user: IntVector, item: IntVector) -> BoolVector:
        """Return True for each user who has the item in the training data; fast where the users come in runs."""
        wanted = user * self.n_items + item
        place = np.searchsorted(self.own, wanted)
        is_own: BoolVector = np.append(self.own, -1)[place] == wanted
        return is_own

    def _by_popularity(self, owner: IntVector, item: IntVector, *, n: int) -> IntMatrix:
        cells = np.bincount(owner * _N_POPULARITY + self.group[item], minlength=n * _N_POPULARITY)
        return cells.reshape(n, _N_POPULARITY)


def is_of_relevant(measure: Measure) -> bool:
    """Return True if the items that count are the relevant ones, not those of the catalogue."""
    return N.GROUP_RELEVANT in measure.needs


def rel_of(measure: Measure) -> float:
    """Return the least gain that is relevant."""
    return cast("float", measure.options["rel"])


def to_counts(ranked: pa.Table, audience: Audience, offer: Offer, measures: Sequence[Measure]) -> Counts:
    """Encode the inputs together, and look up what is known of their items."""
    catalogue = [] if offer.catalogue is None else [offer.catalogue]
    tables = [ranked, offer.judgements, offer.train, *catalogue]
    codes, items = codes_together([one[C.ITEM_ID] for one in tables])
    shown, judged, trained = codes[:3]
    is_known = np.zeros(len(items), dtype=np.bool_)
    is_known[np.concatenate([np.zeros(0, dtype=np.int64), *(code[code >= 0] for code in codes[3:])])] = True
    judge = codes_of_runs(offer.judgements[C.USER_ID], audience.users)
    is_asked = judge >= 0
    return Counts(
        audience.pair,
        shown,
        to_numpy(ranked[C.RANK]),
        to_numpy(ranked[C.GAIN]),
        judge[is_asked],
        judged[is_asked],
        to_numpy(offer.judgements[C.GAIN])[is_asked],
        _to_own(codes_of_runs(offer.train[C.USER_ID], audience.users), trained, n_items=len(items)),
        _to_groups(offer.popularity_groups, items),
        is_known,
        _to_categories(offer.items, items, measures),
        len(audience.users),
        audience.n_pairs,
    )


def _to_own(user: IntVector, item: IntVector, *, n_items: int) -> IntVector:
    """Keep each pair of a user and an item once, ascending; -1 is a user without a list."""
    pairs: IntVector = np.sort((user * n_items + item)[(user >= 0) & (item >= 0)])
    own: IntVector = pairs[starts_of_runs(pairs)]
    return own


def _to_groups(popularity_groups: pa.Table, items: pa.Array) -> IntVector:
    """Group of popularity of each item: that of the tail, the last, without one."""
    given = np.append(to_numpy(popularity_groups[N.ITEM_POPULARITY_GROUP]), _N_POPULARITY - 1).astype(np.int64)
    of_item: IntVector = given[codes_among(items, in_one_piece(popularity_groups[C.ITEM_ID]))]
    return of_item


def _to_categories(described: pa.Table | None, items: pa.Array, measures: Sequence[Measure]) -> dict[str, BoolVector]:
    """Return which items have each category that a measure is about."""
    asked = {str(one.options["category"]) for one in measures if is_disparity(one)}
    if not asked or described is None:
        return {}
    known = described.select([C.ITEM_ID, C.CATEGORIES]).filter(pc.is_valid(described[C.ITEM_ID]))
    _refuse_repeated(in_one_piece(known[C.ITEM_ID]))
    place = codes_among(items, in_one_piece(known[C.ITEM_ID]))
    categories = in_one_piece(known[C.CATEGORIES])
    owner, texts = to_numpy(pc.list_parent_indices(categories)), categories.flatten()
    found = {}
    for category in asked:
        has_category = np.zeros(known.num_rows + 1, dtype=np.bool_)  # the last is that of an item that is not described
        has_category[owner[to_numpy(pc.equal(texts, category), null=0)]] = True
        found[category] = has_category[place]
    return found


def _refuse_repeated(items: pa.Array) -> None:
    if len(items.unique()) == len(items):
        return
    counts = items.value_counts()
    first = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    what = f"item {quoted(first)} twice in the catalogue"
    refuse_input("items", what, expected="each item once", fix="keep one row an item in the catalogue")
