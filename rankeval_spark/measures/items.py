"""What is known of the recommended items and of the users who got them, as ragged arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.memo import Remembers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector


class Item(NamedTuple):
    """One recommended item written down by hand; what is left out is unknown, or 0 in the training data.

    Parameters
    ----------
    interactions, users
        c(i) and U(i).
    is_tail
        Whether it belongs to the long tail.
    level, place
        Dense rank and place by popularity, see :mod:`rankeval_spark.measures.needs`.
    is_seen
        Whether its user has it in the training data.
    age
        Days since publication.
    categories
        Its categories, each once.
    vector
        Its features; None where unknown.
    quantile, familiarity, copies
        Popularity by users, similarity to what the user has, and times that the log has it in the list, see there too.
    """

    interactions: float = 0
    users: float = 0
    is_tail: bool = True
    level: float = math.inf
    place: float = math.inf
    is_seen: bool = False
    age: float = math.nan
    categories: Sequence[str] = ()
    vector: Sequence[float] | None = None
    quantile: float = 0
    familiarity: float = math.nan
    copies: float = 1

    def __str__(self) -> str:
        """Write what is known: ``{users 2, age 3}``."""
        known = (
            f"{name} {_shown(value)}" for name, value in self._asdict().items() if not _is_same(value, _UNKNOWN[name])
        )
        return "{" + ", ".join(known) + "}"


_UNKNOWN: Mapping[str, object] = Item._field_defaults


def _is_same(value: object, default: object) -> bool:
    """Compare, NaN being the same as NaN."""
    return value is default or value == default


class Background(NamedTuple):
    """What lies behind one list written down by hand: totals of the training data, and the profile of the user.

    Parameters
    ----------
    interactions, most_interactions, least_interactions, users, categories
        The totals.
    profile
        Categories of the items that the user has in the training data: (category, how many an item has that is in it,
        how many such items).
    profile_vector
        Mean of the unit vectors of those items; None where none has one.
    pairs
        Similar items of the list: (rank, lower rank, cosine of their co-occurrence).
    profile_interactions
        Mean interactions of the distinct items that the user has in the training data; 0 where they have none.
    judged
        Gain and categories of each judged item that has any.
    catalogue
        Items of the catalogue.
    others
        Lists that other models gave the user: (model, at each of its places the rank of that item in this list, or
        None where this list does not have it).
    """

    interactions: float = 0
    most_interactions: float = 0
    least_interactions: float = 0
    users: float = 0
    categories: float = 0
    profile: Sequence[tuple[str, int, int]] = ()
    profile_vector: Sequence[float] | None = None
    pairs: Sequence[tuple[int, int, float]] = ()
    profile_interactions: float = 0
    judged: Sequence[tuple[float, Sequence[str]]] = ()
    catalogue: float = 0
    others: Sequence[tuple[str, Sequence[int | None]]] = ()

    def __str__(self) -> str:
        """Write what is known."""
        defaults: Mapping[str, object] = self._field_defaults
        known = (f"{name} {_shown(value)}" for name, value in self._asdict().items() if value != defaults[name])
        return ", ".join(known)


NOTHING_KNOWN = Background()


class Pairs(NamedTuple):
    """Pairs of items of one list that are similar by co-occurrence.

    Attributes
    ----------
    earlier : int, shape (n_pairs,)
        Position among all items of the one that is further up.
    later : int, shape (n_pairs,)
        Position of the other one, ascending.
    similarity : float64, shape (n_pairs,)
        In (0, 1].
    """

    earlier: IntVector
    later: IntVector
    similarity: FloatVector


class Shared(NamedTuple):
    """What each list has in common with the list that another model gave the same user.

    Attributes
    ----------
    owner : int, shape (n_shared,)
        List of each common item, ascending.
    depth : int, shape (n_shared,)
        The greater of its two ranks: cut there or further down, both lists hold it.
    length : float64, shape (n_lists,)
        Last rank of the other list; 0 where the other model gave none.
    other_owner, other_rank : int, shape (n_items,)
        List and rank of each item of the other lists.
    """

    owner: IntVector
    depth: IntVector
    length: FloatVector
    other_owner: IntVector
    other_rank: IntVector


class Judged(NamedTuple):
    """Judged items with their categories.

    Attributes
    ----------
    owner : int, shape (n_judged_items,)
        List of each, ascending.
    gain : float64, shape (n_judged_items,)
        Its gain.
    labels : Labels
        Its categories; their owners are these items.
    """

    owner: IntVector
    gain: FloatVector
    labels: Labels


class Labels(NamedTuple):
    """Categories as numbers.

    Attributes
    ----------
    owner : int, shape (n_labels,)
        Item, or list, that has the category, ascending.
    code : int, shape (n_labels,)
        Number of the category in the batch; numbers ascend as the names do.
    weight : float64, shape (n_labels,)
        1 / categories of the item; in a profile, the items that have it, each divided by its categories.
    """

    owner: IntVector
    code: IntVector
    weight: FloatVector


@dataclass(frozen=True, eq=False)
class ItemFacts(Remembers):
    """What is known of the items of a batch of lists, cut at the largest rank that a measure looks at.

    Parameters
    ----------
    item_list, item_rank : int, shape (n_items,)
        List and rank of each item, sorted by them. Where lists keep the ranks of the log, some may be empty.
    values : mapping of name to float64, shape (n_items,)
        Those of ``needs.ITEM_VALUES`` that were requested.
    totals : mapping of name to float64, shape (n_lists,)
        Those of ``needs.TOTALS`` that were requested.
    categories : Labels or None
        Categories of the items.
    vectors : float64, shape (n_items, n_features), or None
        Vectors of the items; a row of NaN where unknown.
    profile_categories : Labels or None
        Categories of what the user of each list has in the training data.
    profile_vectors : float64, shape (n_lists, n_features), or None
        Mean unit vector of the same; a row of NaN where unknown.
    n_categories : int
        Numbers that ``code`` may take.
    pairs : Pairs or None
        Items that co-occur with another one of their list.
    profile_interactions : float64, shape (n_lists,), or None
        Mean popularity of what the user of each list has in the training data; 0 where they have nothing.
    judged : Judged or None
        Judged items of the user of each list that have categories.
    shared : mapping of model to Shared, or None
        What the lists have in common with those of the models that are named.
    """

    item_list: IntVector
    item_rank: IntVector
    values: Mapping[str, FloatVector]
    totals: Mapping[str, FloatVector]
    categories: Labels | None = None
    vectors: FloatMatrix | None = None
    profile_categories: Labels | None = None
    profile_vectors: FloatMatrix | None = None
    n_categories: int = 0
    pairs: Pairs | None = None
    profile_interactions: FloatVector | None = None
    judged: Judged | None = None
    shared: Mapping[str, Shared] | None = None

    @classmethod
    def of(
        cls,
        items: Sequence[Sequence[Item]],
        backgrounds: Sequence[Background],
        empty: Sequence[Sequence[int]] | None = None,
    ) -> ItemFacts:
        """Build the facts of lists written down by hand; every fact there is, but none of ``empty`` ranks."""
        lengths = [len(one) for one in items]
        places = [
            [rank for rank in range(1, length + 1) if rank not in left_out]
            for length, left_out in zip(lengths, empty or [()] * len(items), strict=True)
        ]
        items = [[one[rank - 1] for rank in ranks] for one, ranks in zip(items, places, strict=True)]
        flat = [item for one in items for item in one]
        n_items = len(flat)
        labels = [
            (item, name, 1 / len(flat[item].categories)) for item in range(n_items) for name in flat[item].categories
        ]
        profile = [
            (owner, name, n_with / n_categories)
            for owner, one in enumerate(backgrounds)
            for name, n_categories, n_with in one.profile
        ]
        judged = [(owner, *each) for owner, one in enumerate(backgrounds) for each in one.judged]
        of_judged = [
            (item, name, 1 / len(categories)) for item, (_, _, categories) in enumerate(judged) for name in categories
        ]
        names = sorted({name for _, name, _ in (*labels, *profile, *of_judged)})
        totals = np.array([(*one[:5], one.catalogue) for one in backgrounds], dtype=np.float64)
        totals = totals.reshape(len(backgrounds), len(_TOTALS_BY_HAND))
        return cls(
            np.repeat(np.arange(len(items)), [len(one) for one in items]),
            np.array([rank for ranks in places for rank in ranks], dtype=np.int64),
            {name: np.array([of(item) for item in flat], dtype=np.float64) for name, of in _BY_HAND.items()},
            {name: totals[:, place] for place, name in enumerate(_TOTALS_BY_HAND)},
            _labels(labels, names),
            _matrix([item.vector for item in flat]),
            _labels(profile, names),
            _matrix([one.profile_vector for one in backgrounds]),
            len(names),
            _pairs(places, backgrounds),
            np.array([one.profile_interactions for one in backgrounds], dtype=np.float64),
            Judged(
                np.array([owner for owner, _, _ in judged], dtype=np.int64),
                np.array([gain for _, gain, _ in judged], dtype=np.float64),
                _labels(of_judged, names),
            ),
            _shared(lengths, backgrounds),
        )

    @property
    def known_pairs(self) -> Pairs:
        """Items that co-occur with another one of their list."""
        if self.pairs is None:
            raise _not_collected(needs.ITEM_PAIRS)
        return self.pairs

    @property
    def known_categories(self) -> Labels:
        """Categories of the items."""
        if self.categories is None:
            raise _not_collected(needs.ITEM_CATEGORIES)
        return self.categories

    @property
    def known_profile(self) -> Labels:
        """Categories of the profiles."""
        if self.profile_categories is None:
            raise _not_collected(needs.PROFILE_CATEGORIES)
        return self.profile_categories

    @property
    def known_profile_vectors(self) -> FloatMatrix:
        """Mean unit vectors of the profiles."""
        if self.profile_vectors is None:
            raise _not_collected(needs.PROFILE_VECTORS)
        return self.profile_vectors

    @property
    def known_profile_interactions(self) -> FloatVector:
        """Mean popularity of the profiles."""
        if self.profile_interactions is None:
            raise _not_collected(needs.PROFILE_INTERACTIONS)
        return self.profile_interactions

    @property
    def known_judged(self) -> Judged:
        """Judged items with categories."""
        if self.judged is None:
            raise _not_collected(needs.JUDGED_CATEGORIES)
        return self.judged

    @property
    def known_shared(self) -> Mapping[str, Shared]:
        """What the lists have in common with those of other models, by model."""
        if self.shared is None:
            raise _not_collected(needs.OTHER_LISTS)
        return self.shared

    @property
    def known_vectors(self) -> FloatMatrix:
        """Vectors as they are given; a row of NaN for an item without one."""
        if self.vectors is None:
            raise _not_collected(needs.ITEM_VECTORS)
        return self.vectors

    @cached_property
    def has_numbers(self) -> NDArray[np.bool_]:
        """Whether an item has a vector, be it of zeros: shape (n_items,)."""
        vectors = self.known_vectors
        known: NDArray[np.bool_] = np.isfinite(vectors).sum(axis=1) == max(vectors.shape[1], 1)
        return known

    @cached_property
    def unit_vectors(self) -> FloatMatrix:
        """Vectors of length 1; a row of zeros for an item without one, and for one whose numbers are all 0."""
        vectors = self.known_vectors
        squares: FloatVector = (vectors * vectors).sum(axis=1)
        is_known = np.isfinite(squares) & (squares > 0)
        lengths = np.sqrt(np.where(is_known, squares, 1.0))
        return np.where(is_known[:, None], vectors, 0.0) / lengths[:, None]

    @cached_property
    def has_vector(self) -> NDArray[np.bool_]:
        """Whether the direction of an item is known: shape (n_items,)."""
        known: NDArray[np.bool_] = (self.unit_vectors != 0).any(axis=1)
        return known

    @cached_property
    def has_categories(self) -> NDArray[np.bool_]:
        """Whether an item has categories: shape (n_items,)."""
        return np.bincount(self.known_categories.owner, minlength=len(self.item_list)) > 0


_BY_HAND: Mapping[str, Callable[[Item], float]] = {
    needs.ITEM_INTERACTIONS: lambda item: item.interactions,
    needs.ITEM_USERS: lambda item: item.users,
    needs.ITEM_TAIL: lambda item: item.is_tail,
    needs.ITEM_LEVEL: lambda item: item.level,
    needs.ITEM_PLACE: lambda item: item.place,
    needs.ITEM_SEEN: lambda item: item.is_seen,
    needs.ITEM_AGE: lambda item: item.age,
    needs.ITEM_QUANTILE: lambda item: item.quantile,
    needs.ITEM_FAMILIARITY: lambda item: item.familiarity,
    needs.ITEM_COPIES: lambda item: item.copies,
}
_TOTALS_BY_HAND = (
    needs.TOTAL_INTERACTIONS,
    needs.MOST_INTERACTIONS,
    needs.LEAST_INTERACTIONS,
    needs.TOTAL_USERS,
    needs.TOTAL_CATEGORIES,
    needs.CATALOGUE_ITEMS,
)


def _labels(rows: Sequence[tuple[int, str, float]], names: Sequence[str]) -> Labels:
    codes = {name: code for code, name in enumerate(names)}
    ordered = sorted((owner, codes[name], weight) for owner, name, weight in rows)
    return Labels(
        np.array([owner for owner, _, _ in ordered], dtype=np.int64),
        np.array([code for _, code, _ in ordered], dtype=np.int64),
        np.array([weight for _, _, weight in ordered], dtype=np.float64),
    )


def _pairs(places: Sequence[Sequence[int]], backgrounds: Sequence[Background]) -> Pairs:
    known = ((owner, rank) for owner, ranks in enumerate(places) for rank in ranks)
    item = {place: index for index, place in enumerate(known)}
    pairs = sorted(
        (item[owner, later], item[owner, earlier], similarity)
        for owner, one in enumerate(backgrounds)
        for earlier, later, similarity in one.pairs
        if (owner, earlier) in item and (owner, later) in item
    )
    return Pairs(
        np.array([earlier for _, earlier, _ in pairs], dtype=np.int64),
        np.array([later for later, _, _ in pairs], dtype=np.int64),
        np.array([similarity for _, _, similarity in pairs], dtype=np.float64),
    )


def _shared(lengths: Sequence[int], backgrounds: Sequence[Background]) -> dict[str, Shared]:
    others = [dict(one.others) for one in backgrounds]
    found = {}
    for model in sorted({name for one in others for name in one}):
        places = [
            (owner, max(place, rank))
            for owner, one in enumerate(others)
            for place, rank in enumerate(one.get(model, ()), 1)
            if rank is not None and rank <= lengths[owner]
        ]
        found[model] = Shared(
            np.array([owner for owner, _ in places], dtype=np.int64),
            np.array([depth for _, depth in places], dtype=np.int64),
            np.array([len(one.get(model, ())) for one in others], dtype=np.float64),
            np.array([owner for owner, one in enumerate(others) for _ in one.get(model, ())], dtype=np.int64),
            np.array([place for one in others for place in range(1, len(one.get(model, ())) + 1)], dtype=np.int64),
        )
    return found


def _matrix(vectors: Sequence[Sequence[float] | None]) -> FloatMatrix:
    n_features = max((len(vector) for vector in vectors if vector is not None), default=0)
    rows = [[math.nan] * n_features if vector is None else list(vector) for vector in vectors]
    return np.array(rows, dtype=np.float64).reshape(len(vectors), n_features)


def _not_collected(need: str) -> ValueError:
    return ValueError(f"the batch does not hold {need}; a measure that reads it says so in its needs")


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return str(value)
