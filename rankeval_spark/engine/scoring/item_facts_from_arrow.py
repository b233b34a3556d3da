"""Facts of items and users of one batch of lists, from Arrow to numpy.

``engine.facts`` makes them; the kernels read them as
``measures.item_facts.ItemFacts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import lengths_of, owners_of, to_numpy
from rankeval_spark.engine.batch.batch import fields
from rankeval_spark.measures import ItemFacts, required_facts
from rankeval_spark.measures.arrays import places_of
from rankeval_spark.measures.item_facts import Judged, Labels, Shared, SimilarPairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector


def to_item_facts(
    items: pa.Array | None,
    totals: pa.Array | None,
    profile: pa.Array | None,
    pairs: pa.Array | None,
    others: pa.Array | None,
) -> ItemFacts:
    """Build the facts of a batch.

    ``items``: facts of the items of each list, by rank; None where only totals are needed. ``totals``: the totals, the
    same for all lists. ``profile``: profile of the user of each list; NULL where the training data do not have the
    user. ``pairs``: similar items of each list by their ranks, sorted; NULL where there are none. ``others``: by the
    name of each model that a measure looks at, its list for the user of each list; NULL where it gave none.
    """
    totals_by_name = {name: _floats(values) for name, values in (fields(totals) if totals is not None else {}).items()}
    if items is None:
        return ItemFacts(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), {}, totals_by_name)
    facts = fields(items.flatten())
    owner, rank = owners_of(items), to_numpy(facts[C.RANK])
    profiles = fields(profile) if profile is not None else {}
    (item_labels, profile_labels, judged_labels), n_categories = _to_labels(
        facts.get(required_facts.ITEM_CATEGORIES),
        profiles.get(required_facts.PROFILE_CATEGORIES),
        profiles.get(required_facts.JUDGED_CATEGORIES),
    )
    interactions = profiles.get(required_facts.PROFILE_INTERACTIONS)
    return ItemFacts(
        owner,
        rank,
        {name: _floats(facts[name]) for name in required_facts.ITEM_VALUES if name in facts},
        totals_by_name,
        categories=item_labels,
        vectors=_to_matrix(facts.get(required_facts.ITEM_VECTORS)),
        profile_categories=profile_labels,
        profile_vectors=_to_matrix(profiles.get(required_facts.PROFILE_VECTORS)),
        n_categories=n_categories,
        pairs=_to_pairs(pairs, (owner, rank)) if pairs is not None else None,
        profile_interactions=None if interactions is None else np.nan_to_num(_floats(interactions)),
        judged=judged_labels,
        shared=None if others is None else _to_shared(others, owner, facts),
    )


def _floats(values: pa.Array) -> FloatVector:
    """Turn NULL into NaN."""
    return to_numpy(values).astype(np.float64, copy=False)


def _to_matrix(vectors: pa.Array | None) -> FloatMatrix | None:
    """Stack vectors of one length: a row of NaN where there is none; no columns if all are."""
    if vectors is None:
        return None
    lengths = lengths_of(vectors)
    length = lengths.max(initial=0)
    matrix = np.full((len(vectors), length), np.nan)
    matrix[lengths > 0] = _floats(vectors.flatten()).reshape(np.count_nonzero(lengths), length)
    return matrix


def _to_pairs(pairs: pa.Array, items: tuple[IntVector, IntVector]) -> SimilarPairs:
    found = fields(pairs.flatten())
    owner = owners_of(pairs)
    earlier, later = (places_of(owner, to_numpy(found[name]), among=items) for name in ("earlier", "later"))
    return SimilarPairs(earlier, later, _floats(found["similarity"]))


class _Placed(NamedTuple):
    """Items of lists in the order of list, item and rank; ``same`` is a number for each list and item."""

    same: IntVector
    owner: IntVector
    rank: IntVector

    @classmethod
    def of(cls, owner: IntVector, rank: IntVector, code: IntVector, *, n_codes: int) -> _Placed:
        """Sort items that come in the order of list and rank."""
        same = owner * n_codes + code
        order = np.argsort(same, kind="stable")
        return cls(same[order], owner[order], rank[order])

    def among(self, other: _Placed) -> tuple[IntVector, IntVector]:
        """Find the items that both hold: their places here and there; the second copy of one meets the second."""
        copy = np.arange(len(self.same)) - np.searchsorted(self.same, self.same)
        place = np.searchsorted(other.same, self.same) + copy
        here = np.flatnonzero(place < len(other.same))
        here = here[other.same[place[here]] == self.same[here]]
        return here, place[here]


def _to_shared(others: pa.Array, owner: IntVector, facts: dict[str, pa.Array]) -> dict[str, Shared]:
    """Match the items of each list with those of the lists of other models."""
    lists = {model: fields(of_model) for model, of_model in fields(others).items()}
    codes, n_codes = _numbered([facts[C.ITEM_ID], *(one["items"].flatten() for one in lists.values())])
    own = _Placed.of(owner, to_numpy(facts[C.RANK]), codes[0], n_codes=n_codes)
    shared = {}
    for (model, one), code in zip(lists.items(), codes[1:], strict=True):
        of_model = owners_of(one["items"])
        other = _Placed.of(of_model, to_numpy(one["ranks"].flatten()), code, n_codes=n_codes)
        here, there = own.among(other)
        depth = np.maximum(own.rank[here], other.rank[there])
        length = np.nan_to_num(_floats(one["length"]))
        shared[model] = Shared(own.owner[here], depth, length, of_model, to_numpy(one["ranks"].flatten()))
    return shared


def _to_labels(
    of_items: pa.Array | None, of_profiles: pa.Array | None, of_judged: pa.Array | None
) -> tuple[tuple[Labels | None, Labels | None, Judged | None], int]:
    """Encode the categories of items, profiles and judged items together, in the order of their names."""
    profile = None if of_profiles is None else fields(of_profiles.flatten())
    judged = None if of_judged is None else fields(of_judged.flatten())
    texts = [
        None if of_items is None else of_items.flatten(),
        None if profile is None else profile["category"],
        None if judged is None else judged["categories"].flatten(),
    ]
    codes, n_categories = _numbered(texts)
    item_labels = None if of_items is None else _item_labels(of_items, codes[0])
    profile_labels = judged_labels = None
    if profile is not None and of_profiles is not None:
        weights = _floats(profile["n_items"]) / _floats(profile["n_categories"])
        profile_labels = Labels(owners_of(of_profiles), codes[1], weights)
    if judged is not None and of_judged is not None:
        labels = _item_labels(judged["categories"], codes[2])
        judged_labels = Judged(owners_of(of_judged), _floats(judged["gain"]), labels)
    return (item_labels, profile_labels, judged_labels), n_categories


def _numbered(texts: Sequence[pa.Array | None]) -> tuple[list[IntVector], int]:
    """Replace the texts of several columns by their places in the order of all texts, and count these."""
    lengths = [0 if one is None else len(one) for one in texts]
    given = [one for one in texts if one is not None]
    if not given:
        return [np.zeros(0, dtype=np.int64) for _ in texts], 0
    encoded = pa.concat_arrays(given).dictionary_encode()
    order = to_numpy(pc.sort_indices(encoded.dictionary))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return np.split(number[to_numpy(encoded.indices)], np.cumsum(lengths)[:-1]), len(order)


def _item_labels(of_items: pa.Array, codes: IntVector) -> Labels:
    lengths = lengths_of(of_items)
    return Labels(np.repeat(np.arange(len(of_items)), lengths), codes, 1 / np.repeat(lengths, lengths))
