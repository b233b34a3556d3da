"""Lists written down by hand, for examples and tests, and the arrays that kernels read of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector
from rankeval_spark.measures.item_facts import Empty, ItemFacts, Judged, Labels, Shared, SimilarPairs
from rankeval_spark.measures.required_facts import Groups


class Item(NamedTuple):
    """One recommended item; what is left out is unknown, or 0 in the training data."""

    # c(i) and U(i)
    interactions: float = 0
    users: float = 0
    is_tail: bool = True  # whether it belongs to the long tail
    # Dense rank and place by popularity, see :mod:`rankeval_spark.measures.required_facts`
    level: float = math.inf
    place: float = math.inf
    is_seen: bool = False  # whether its user has it in the training data
    age: float = math.nan  # days since publication
    categories: Sequence[str] = ()  # its categories, each once
    vector: Sequence[float] | None = None  # its features; None where unknown
    # Popularity by users, similarity to what the user has, and times that the log has it in the list, see there too
    quantile: float = 0
    familiarity: float = math.nan
    copies: float = 1

    def __str__(self) -> str:
        return "{" + _changed_fields_text(self) + "}"


class Background(NamedTuple):
    """Background of one list: totals of the training data, and the user's profile."""

    # The totals
    interactions: float = 0
    most_interactions: float = 0
    least_interactions: float = 0
    users: float = 0
    categories: float = 0
    # Categories of the items that the user has in the training data: (category, how many an item has that is in it,
    # how many such items)
    profile: Sequence[tuple[str, int, int]] = ()
    profile_vector: Sequence[float] | None = None  # mean of the unit vectors of those items; None where none has one
    # Similar items of the list: (rank, lower rank, cosine of their co-occurrence)
    pairs: Sequence[tuple[int, int, float]] = ()
    # Mean interactions of the distinct items that the user has in the training data; 0 where they have none
    profile_interactions: float = 0
    judged: Sequence[tuple[float, Sequence[str]]] = ()  # gain and categories of each judged item that has any
    catalogue: float = 0  # items of the catalogue
    # Lists that other models gave the user: (model, at each of its places the rank of that item in this list, or None
    # where this list does not have it)
    others: Sequence[tuple[str, Sequence[int | None]]] = ()
    profile_unjudged: float = 0  # items of the catalogue that the user has there, and that no judgement names

    def __str__(self) -> str:
        return _changed_fields_text(self)


NOTHING_KNOWN = Background()


class Ranking(NamedTuple):
    """One list."""

    # Gain of the item at rank 1, 2, ...; ``None`` for an item without a judgement. Empty: the model gave no list.
    gains: Sequence[float | None]
    missed: Sequence[float] = ()  # gains of the judged items that the list does not hold
    # Score of the item at rank 1, 2, ..., descending; where it is left out 1, (n - 1) / n, ..., 1 / n
    scores: Sequence[float] = ()
    items: Sequence[Item] = ()  # what is known of the item at rank 1, 2, ...; nothing of those that are left out
    background: Background = NOTHING_KNOWN  # what is known of the training data and of the user
    # Value of the item at each rank, and of the judged items that the list does not hold; where they are left out the
    # gains
    values: Sequence[float] = ()
    missed_values: Sequence[float] = ()
    # Groups of the same items, separated by blanks; none of those that are left out
    groups: Sequence[str] = ()
    missed_groups: Sequence[str] = ()
    # Ranks at which the list has no item, though it has one further down; their gain is ``None``
    empty: Sequence[int] = ()
    # Propensity of the judged item at each rank; 1 where they are left out
    propensities: Sequence[float] = ()
    # Weight of the judged item at each rank, and of those that the list does not hold; 1 where they are left out
    weights: Sequence[float] = ()
    missed_weights: Sequence[float] = ()
    # Predicted reward of the item at each rank, judged or not; 0 where they are left out
    predictions: Sequence[float] = ()
    # Own values of the user, each with its name
    user_values: Sequence[tuple[str, float]] = ()

    @property
    def predicted_value(self) -> float:
        """Sum over the items of score times predicted reward."""
        pairs = zip(self.score_at, self.predictions, strict=False)
        return math.fsum(score * prediction for score, prediction in pairs)

    @property
    def score_at(self) -> Sequence[float]:
        """Score at each rank."""
        return self.scores or [rank / len(self.gains) for rank in range(len(self.gains), 0, -1)]

    @property
    def hits(self) -> list[Judgement]:
        """The judged items that the list holds, by rank."""
        n = len(self.gains)
        places = zip(
            self.gains,
            self.values or [gain or 0 for gain in self.gains],
            [*self.groups, *[""] * n],
            count(1),
            self.score_at,
            self.propensities or [1.0] * n,
            self.weights or [1.0] * n,
            self.predictions or [0.0] * n,
            strict=False,
        )
        return [Judgement(gain, *known) for gain, *known in places if gain is not None]

    @property
    def missing(self) -> list[Judgement]:
        """The judged items that the list does not hold."""
        groups = [*self.missed_groups, *[""] * len(self.missed)]
        weights = self.missed_weights or [1.0] * len(self.missed)
        judged = zip(self.missed, self.missed_values or self.missed, groups, weights, strict=False)
        return [Judgement(gain, value, groups_of_item, weight=weight) for gain, value, groups_of_item, weight in judged]

    def __str__(self) -> str:
        """Write the gain at each rank, - where there is no judgement, what the list misses, and what else is known."""
        shown = (
            *("missed", "scores", "values", "missed_values"),
            *("propensities", "predictions", "weights", "missed_weights"),
        )
        numbers = [*((name.replace("_", " "), getattr(self, name)) for name in shown), ("empty ranks", self.empty)]
        groups = (("groups", self.groups), ("missed groups", self.missed_groups))
        parts = [
            " ".join("-" if gain is None else f"{gain:g}" for gain in self.gains) or "(no list)",
            *(f"({name} {' '.join(f'{value:g}' for value in values)})" for name, values in numbers if values),
            *(f"({name} {', '.join(group or '-' for group in names)})" for name, names in groups if names),
            *([f"(items {' '.join(map(str, self.items))})"] if self.items else []),
            *([f"({self.background})"] if str(self.background) else []),
            *(f"({name} {value:g})" for name, value in self.user_values),
        ]
        return " ".join(parts)


class Judgement(NamedTuple):
    """One judged item; rank and score are 0 where the list does not hold it."""

    gain: float
    value: float
    groups: str
    rank: int = 0
    score: float = 0
    propensity: float = 1
    weight: float = 1
    prediction: float = 0


def _changed_fields_text(facts: Item | Background) -> str:
    """Write the fields that are not at their defaults; NaN, the default of what is unknown, is itself alone."""

    def shown(value: object) -> str:
        match value:
            case None:
                return "-"
            case bool():
                return "yes" if value else "no"
            case int() | float():
                return f"{value:g}"
            case tuple() | list():
                return "(" + ", ".join(map(shown, value)) + ")"
            case _:
                return str(value)

    fields = [(name, value, facts._field_defaults[name]) for name, value in facts._asdict().items()]
    return ", ".join(
        f"{name} {shown(value)}" for name, value, default in fields if value is not default and value != default
    )


# Fields of items and backgrounds whose name is not that of the fact, without the word before the first underscore
_NAMES: Mapping[str, str] = {N.ITEM_TAIL: "is_tail", N.ITEM_SEEN: "is_seen", N.CATALOGUE_ITEMS: "catalogue"}


def build_fields(rankings: Sequence[Ranking]) -> dict[str, Any]:
    """Build the fields of a batch."""
    ranked = [ranking.hits for ranking in rankings]
    judged = [sorted([*ranking.hits, *ranking.missing], reverse=True) for ranking in rankings]
    hits, judgements = list(chain(*ranked)), list(chain(*judged))
    names = tuple(sorted({name for judgement in judgements for name in judgement.groups.split()}))
    of_hits, of_judged = (
        _ints(group_bits(names, judgement.groups) for judgement in rows) for rows in (hits, judgements)
    )
    empty = [(owner, rank) for owner, ranking in enumerate(rankings) for rank in sorted(ranking.empty)]
    owner, rank = np.array(empty, dtype=np.int64).reshape(-1, 2).T
    of_hit, of_judgement = ("gain", "score", "value", "propensity", "prediction", "weight"), ("gain", "value", "weight")
    return {
        "n_recommended": _ints(len(ranking.gains) for ranking in rankings),
        "hit_list": _repeat_index(ranked),
        "hit_rank": _ints(judgement.rank for judgement in hits),
        "judged_list": _repeat_index(judged),
        **{f"hit_{name}": _floats(getattr(judgement, name) for judgement in hits) for name in of_hit},
        **{f"judged_{name}": _floats(getattr(judgement, name) for judgement in judgements) for name in of_judgement},
        "predicted_value": _floats(ranking.predicted_value for ranking in rankings),
        "groups": Groups(names, of_hits, of_judged),
        "items": _item_facts(rankings),
        "empty": Empty(owner, rank, rank) if empty else None,  # each rank is a run of its own
        "user_values": {
            name: _floats(dict(ranking.user_values).get(name, math.nan) for ranking in rankings)
            for name in {name for ranking in rankings for name, _ in ranking.user_values}
        },
    }


def group_bits(names: Sequence[str], belongs_to: str) -> int:
    """Return the bits of the groups that a text names, separated by blanks."""
    return sum(1 << names.index(name) for name in set(belongs_to.split()))


def _item_facts(rankings: Sequence[Ranking]) -> ItemFacts:
    """Build every fact there is about the items of some lists; empty ranks have none."""
    backgrounds = [ranking.background for ranking in rankings]
    places = [[rank for rank in range(1, len(ranking.gains) + 1) if rank not in ranking.empty] for ranking in rankings]
    described = [[*ranking.items, *[Item()] * (len(ranking.gains) - len(ranking.items))] for ranking in rankings]
    items = [each[rank - 1] for each, ranks in zip(described, places, strict=True) for rank in ranks]
    position = {
        place: at for at, place in enumerate((owner, rank) for owner, ranks in enumerate(places) for rank in ranks)
    }

    profiles = [
        (owner, name, n_with / n_categories)
        for owner, background in enumerate(backgrounds)
        for name, n_categories, n_with in background.profile
    ]
    judged = [(owner, *each) for owner, background in enumerate(backgrounds) for each in background.judged]
    # Each item shares 1 out among its categories
    of_items, of_judged = (
        [(item, name, 1 / len(names)) for item, names in enumerate(categories) for name in names]
        for categories in ([item.categories for item in items], [categories for _, _, categories in judged])
    )
    names = sorted({name for _, name, _ in (*of_items, *profiles, *of_judged)})

    def labels(rows: Sequence[tuple[int, str, float]]) -> Labels:
        ordered = sorted((owner, names.index(name), weight) for owner, name, weight in rows)
        owners, codes = (_ints(row[at] for row in ordered) for at in (0, 1))
        return Labels(owners, codes, _floats(row[2] for row in ordered))

    pairs = sorted(
        (position[owner, later], position[owner, earlier], similarity)
        for owner, background in enumerate(backgrounds)
        for earlier, later, similarity in background.pairs
        if {(owner, earlier), (owner, later)} <= position.keys()
    )
    later, earlier = (_ints(row[at] for row in pairs) for at in (0, 1))
    return ItemFacts(
        _repeat_index(places),
        _ints(rank for ranks in places for rank in ranks),
        {name: _floats(getattr(item, _field_of_fact(name)) for item in items) for name in N.ITEM_VALUES},
        {name: _floats(getattr(background, _field_of_fact(name)) for background in backgrounds) for name in N.TOTALS},
        categories=labels(of_items),
        vectors=_to_matrix([item.vector for item in items]),
        profile_categories=labels(profiles),
        profile_vectors=_to_matrix([background.profile_vector for background in backgrounds]),
        n_categories=len(names),
        pairs=SimilarPairs(earlier, later, _floats(row[2] for row in pairs)),
        profile_interactions=_floats(background.profile_interactions for background in backgrounds),
        profile_unjudged=_floats(background.profile_unjudged for background in backgrounds),
        judged=Judged(_ints(row[0] for row in judged), _floats(row[1] for row in judged), labels(of_judged)),
        shared=_build_shared([len(ranking.gains) for ranking in rankings], backgrounds),
    )


def _field_of_fact(fact: str) -> str:
    """Return the field of :class:`Item` or :class:`Background` that holds a fact."""
    return _NAMES.get(fact, fact.partition("_")[2])


def _build_shared(lengths: Sequence[int], backgrounds: Sequence[Background]) -> dict[str, Shared]:
    """Build what each list shares with those of other models, by model."""
    others = [dict(background.others) for background in backgrounds]
    found = {}
    for model in sorted(set(chain(*others))):
        lists = [other.get(model, ()) for other in others]
        depths = [
            (owner, max(place, rank))
            for owner, ranks in enumerate(lists)
            for place, rank in enumerate(ranks, 1)
            if rank is not None and rank <= lengths[owner]
        ]
        owners, depth = (_ints(row[at] for row in depths) for at in (0, 1))
        found[model] = Shared(
            owners,
            depth,
            _floats(len(ranks) for ranks in lists),
            _repeat_index(lists),
            _ints(place for ranks in lists for place in range(1, len(ranks) + 1)),
        )
    return found


def _to_matrix(vectors: Sequence[Sequence[float] | None]) -> FloatMatrix:
    """Stack vectors of one length; a row of NaN for None."""
    n_features = max((len(vector) for vector in vectors if vector is not None), default=0)
    rows = [[math.nan] * n_features if vector is None else list(vector) for vector in vectors]
    return np.array(rows, dtype=np.float64).reshape(len(vectors), n_features)


def _repeat_index(rows: Sequence[Sequence[object]]) -> IntVector:
    """Repeat the position of each row as often as it has entries: [0, 0, 2] for lengths 2, 0 and 1."""
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows])


def _ints(numbers: Iterable[Any]) -> IntVector:
    return np.array(list(numbers), dtype=np.int64)


def _floats(numbers: Iterable[Any]) -> FloatVector:
    return np.array(list(numbers), dtype=np.float64)
