"""Builds the arrays of lists that are written down by hand: their hits and judgements, and the facts of their items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.item_groups import Groups, bits_of
from rankeval_spark.measures.kernel_inputs.example_lists import Item
from rankeval_spark.measures.kernel_inputs.item_facts import ItemFacts, Judged, Labels, Shared, SimilarPairs

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.kernel_inputs.example_lists import Background, Ranking

_VALUES: Mapping[str, Callable[[Item], float]] = {
    required_facts.ITEM_INTERACTIONS: lambda item: item.interactions,
    required_facts.ITEM_USERS: lambda item: item.users,
    required_facts.ITEM_TAIL: lambda item: item.is_tail,
    required_facts.ITEM_LEVEL: lambda item: item.level,
    required_facts.ITEM_PLACE: lambda item: item.place,
    required_facts.ITEM_SEEN: lambda item: item.is_seen,
    required_facts.ITEM_AGE: lambda item: item.age,
    required_facts.ITEM_QUANTILE: lambda item: item.quantile,
    required_facts.ITEM_FAMILIARITY: lambda item: item.familiarity,
    required_facts.ITEM_COPIES: lambda item: item.copies,
}
_TOTALS: Mapping[str, Callable[[Background], float]] = {
    required_facts.TOTAL_INTERACTIONS: lambda background: background.interactions,
    required_facts.MOST_INTERACTIONS: lambda background: background.most_interactions,
    required_facts.LEAST_INTERACTIONS: lambda background: background.least_interactions,
    required_facts.TOTAL_USERS: lambda background: background.users,
    required_facts.TOTAL_CATEGORIES: lambda background: background.categories,
    required_facts.CATALOGUE_ITEMS: lambda background: background.catalogue,
}

_OF_HIT = ("gain", "score", "value", "propensity", "prediction", "weight")
_OF_JUDGEMENT = ("gain", "value", "weight")


def arrays_of(rankings: Sequence[Ranking]) -> dict[str, Any]:
    """Build what a batch holds of the hits and the judgements of some lists, by the names of its fields."""
    ranked = [one.hits for one in rankings]
    judged = [sorted([*one.hits, *one.missing], reverse=True) for one in rankings]
    hits, judgements = [one for row in ranked for one in row], [one for row in judged for one in row]
    names = tuple(sorted({name for one in judgements for name in one.groups.split()}))
    of_hits, of_judged = (_ints(bits_of(names, one.groups) for one in rows) for rows in (hits, judgements))
    return {
        "n_recommended": _ints(len(one.gains) for one in rankings),
        "hit_list": _owners_of(ranked),
        "hit_rank": _ints(one.rank for one in hits),
        "judged_list": _owners_of(judged),
        **{f"hit_{name}": _floats(getattr(one, name) for one in hits) for name in _OF_HIT},
        **{f"judged_{name}": _floats(getattr(one, name) for one in judgements) for name in _OF_JUDGEMENT},
        "predicted_value": _floats(one.predicted_value for one in rankings),
        "groups": Groups(names, of_hits, of_judged),
    }


def item_facts_of(rankings: Sequence[Ranking]) -> ItemFacts:
    """Build every fact there is of the items of some lists, but none of empty ranks."""
    backgrounds = [one.background for one in rankings]
    places = [[rank for rank in range(1, len(one.gains) + 1) if rank not in one.empty] for one in rankings]
    items = [_item_at(one, rank) for one, ranks in zip(rankings, places, strict=True) for rank in ranks]
    profiles = [
        (owner, name, n_with / n_categories)
        for owner, one in enumerate(backgrounds)
        for name, n_categories, n_with in one.profile
    ]
    judged = [(owner, *each) for owner, one in enumerate(backgrounds) for each in one.judged]
    of_items = _shares([item.categories for item in items])
    of_judged = _shares([categories for _, _, categories in judged])
    names = sorted({name for _, name, _ in (*of_items, *profiles, *of_judged)})
    return ItemFacts(
        _owners_of(places),
        _ints(rank for ranks in places for rank in ranks),
        {name: _floats(value(item) for item in items) for name, value in _VALUES.items()},
        {name: _floats(total(one) for one in backgrounds) for name, total in _TOTALS.items()},
        categories=_labels(of_items, names),
        vectors=_matrix([item.vector for item in items]),
        profile_categories=_labels(profiles, names),
        profile_vectors=_matrix([one.profile_vector for one in backgrounds]),
        n_categories=len(names),
        pairs=_pairs(places, backgrounds),
        profile_interactions=_floats(one.profile_interactions for one in backgrounds),
        judged=Judged(_ints(row[0] for row in judged), _floats(row[1] for row in judged), _labels(of_judged, names)),
        shared=_shared([len(one.gains) for one in rankings], backgrounds),
    )


def _item_at(ranking: Ranking, rank: int) -> Item:
    """Return what is known of the item at a rank; of those that the notation leaves out, nothing."""
    return ranking.items[rank - 1] if rank <= len(ranking.items) else Item()


def _shares(categories: Sequence[Sequence[str]]) -> list[tuple[int, str, float]]:
    """Share 1 of each item out among its categories."""
    return [(item, name, 1 / len(names)) for item, names in enumerate(categories) for name in names]


def _labels(rows: Sequence[tuple[int, str, float]], names: Sequence[str]) -> Labels:
    codes = {name: code for code, name in enumerate(names)}
    ordered = sorted((owner, codes[name], weight) for owner, name, weight in rows)
    return Labels(
        _ints(row[0] for row in ordered), _ints(row[1] for row in ordered), _floats(row[2] for row in ordered)
    )


def _pairs(places: Sequence[Sequence[int]], backgrounds: Sequence[Background]) -> SimilarPairs:
    known = ((owner, rank) for owner, ranks in enumerate(places) for rank in ranks)
    item = {place: index for index, place in enumerate(known)}
    pairs = sorted(
        (item[owner, later], item[owner, earlier], similarity)
        for owner, one in enumerate(backgrounds)
        for earlier, later, similarity in one.pairs
        if (owner, earlier) in item and (owner, later) in item
    )
    return SimilarPairs(
        _ints(row[1] for row in pairs), _ints(row[0] for row in pairs), _floats(row[2] for row in pairs)
    )


def _shared(lengths: Sequence[int], backgrounds: Sequence[Background]) -> dict[str, Shared]:
    others = [dict(one.others) for one in backgrounds]
    found = {}
    for model in sorted({name for one in others for name in one}):
        lists = [one.get(model, ()) for one in others]
        depths = [
            (owner, max(place, rank))
            for owner, one in enumerate(lists)
            for place, rank in enumerate(one, 1)
            if rank is not None and rank <= lengths[owner]
        ]
        found[model] = Shared(
            _ints(owner for owner, _ in depths),
            _ints(depth for _, depth in depths),
            _floats(len(one) for one in lists),
            _ints(owner for owner, one in enumerate(lists) for _ in one),
            _ints(place for one in lists for place in range(1, len(one) + 1)),
        )
    return found


def _matrix(vectors: Sequence[Sequence[float] | None]) -> FloatMatrix:
    n_features = max((len(vector) for vector in vectors if vector is not None), default=0)
    rows = [[math.nan] * n_features if vector is None else list(vector) for vector in vectors]
    return np.array(rows, dtype=np.float64).reshape(len(vectors), n_features)


def _owners_of(rows: Sequence[Sequence[object]]) -> IntVector:
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows])


def _ints(numbers: Iterable[Any]) -> IntVector:
    return np.array(list(numbers), dtype=np.int64)


def _floats(numbers: Iterable[Any]) -> FloatVector:
    return np.array(list(numbers), dtype=np.float64)
