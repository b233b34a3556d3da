"""Compact rows of lists as Arrow columns, as the plan hands them to the worker that scores them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.example_lists import NOTHING_KNOWN, group_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures import Background, Ranking
    from rankeval_spark.measures.example_lists import Item

_TEXTS: Final = pa.list_(pa.string())
_NUMBERS: Final = pa.list_(pa.float64())
_INTS: Final = pa.list_(pa.int32())
_ITEM_FIELDS: Final = (*N.ITEM_VALUES, N.ITEM_CATEGORIES, N.ITEM_VECTORS, C.ITEM_ID)
_ITEM: Final = pa.struct(
    {
        C.RANK: pa.int32(),
        **dict.fromkeys(N.ITEM_VALUES, pa.float64()),
        N.ITEM_CATEGORIES: _TEXTS,
        N.ITEM_VECTORS: _NUMBERS,
        C.ITEM_ID: pa.string(),
    }
)
_OTHER: Final = pa.struct({"length": pa.int32(), "ranks": _INTS, "items": _TEXTS})
_TYPES: Final[dict[str, pa.DataType]] = {
    C.N_RECOMMENDED: pa.int32(),
    C.HIT_RANKS: _INTS,
    C.HIT_GAINS: _NUMBERS,
    C.JUDGED_GAINS: _NUMBERS,
    C.TIED_RANKS: _INTS,
    C.HIT_SCORES: _NUMBERS,
    C.EMPTY_RANKS: pa.list_(pa.struct({"first": pa.int32(), "last": pa.int32()})),
    C.ITEM_FACTS: pa.list_(_ITEM),
    C.TOTALS: pa.struct(dict.fromkeys(N.TOTALS, pa.float64())),
    C.PROFILE: pa.struct(
        {
            N.PROFILE_CATEGORIES: pa.list_(
                pa.struct({"category": pa.string(), "n_categories": pa.int32(), "n_items": pa.int64()})
            ),
            N.PROFILE_VECTORS: _NUMBERS,
            **dict.fromkeys(N.PROFILE_NUMBERS, pa.float64()),
            N.JUDGED_CATEGORIES: pa.list_(pa.struct({"gain": pa.float64(), "categories": _TEXTS})),
        }
    ),
    C.PAIRS: pa.list_(pa.struct({"later": pa.int32(), "earlier": pa.int32(), "similarity": pa.float64()})),
    C.HIT_VALUES: _NUMBERS,
    C.JUDGED_VALUES: _NUMBERS,
    C.HIT_PROPENSITIES: _NUMBERS,
    C.HIT_PREDICTIONS: _NUMBERS,
    C.PREDICTED_VALUE: pa.float64(),
    C.HIT_WEIGHTS: _NUMBERS,
    C.JUDGED_WEIGHTS: _NUMBERS,
    C.HIT_GROUPS: pa.list_(pa.int64()),
    C.JUDGED_GROUPS: pa.list_(pa.int64()),
    **dict.fromkeys(C.LIST_KEY, pa.string()),
    C.USER_VALUES: pa.struct({"Drama": pa.float64()}),
    C.USER_WEIGHT: pa.float64(),
}


def to_columns(rankings: Sequence[Ranking], *, groups: Sequence[str], models: Sequence[str]) -> pa.RecordBatch:
    """Write lists as compact rows; what is not known of a list or of its user is NULL."""
    types = _TYPES | {C.OTHER_LISTS: pa.struct(dict.fromkeys(models, _OTHER))}
    rows = [_row(one, groups, models) | {C.USER_ID: f"user {place}"} for place, one in enumerate(rankings)]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(types))


def _row(one: Ranking, groups: Sequence[str], models: Sequence[str]) -> dict[str, Any]:
    hits = one.hits
    judged = sorted([*hits, *one.missing], key=lambda each: (each.gain, each.value, each.groups), reverse=True)
    scores = one.score_at
    items = [*one.items, *[None] * len(one.gains)]
    places = [rank for rank in range(1, len(one.gains) + 1) if rank not in one.empty]
    return {
        C.N_RECOMMENDED: len(one.gains),
        C.HIT_RANKS: [each.rank for each in hits],
        C.HIT_GAINS: [each.gain for each in hits],
        C.JUDGED_GAINS: [each.gain for each in judged],
        C.TIED_RANKS: [rank for rank, (above, own) in enumerate(pairwise(scores), 2) if above == own],
        C.HIT_SCORES: [each.score for each in hits],
        C.EMPTY_RANKS: [{"first": rank, "last": rank} for rank in sorted(one.empty)] if one.gains else None,
        C.ITEM_FACTS: [_item(rank, items[rank - 1]) for rank in places] if places else None,
        C.TOTALS: dict(zip(N.TOTALS, (*one.background[:5], one.background.catalogue), strict=True)),
        C.PROFILE: _profile(one.background),
        C.PAIRS: _pairs(one) or None,
        C.HIT_VALUES: [each.value for each in hits],
        C.JUDGED_VALUES: [each.value for each in judged],
        C.HIT_PROPENSITIES: [each.propensity for each in hits],
        C.HIT_PREDICTIONS: [each.prediction for each in hits],
        C.PREDICTED_VALUE: one.predicted_value,
        C.HIT_WEIGHTS: [each.weight for each in hits],
        C.JUDGED_WEIGHTS: [each.weight for each in judged],
        C.HIT_GROUPS: [_bits(groups, each.groups) for each in hits],
        C.JUDGED_GROUPS: [_bits(groups, each.groups) for each in judged],
        C.USER_VALUES: dict(one.user_values),
        C.USER_WEIGHT: 1.0,
        C.OTHER_LISTS: {model: _other(one, model) for model in models},
    }


def _bits(groups: Sequence[str], belongs_to: str) -> int:
    """Give the bits of those groups that a measure asks for."""
    return group_bits(groups, " ".join(name for name in belongs_to.split() if name in groups))


def _item(rank: int, item: Item | None) -> dict[str, Any]:
    if item is None:
        return {C.RANK: rank, C.ITEM_ID: f"i{rank}"}
    values = {
        N.ITEM_INTERACTIONS: item.interactions,
        N.ITEM_USERS: item.users,
        N.ITEM_TAIL: item.is_tail,
        N.ITEM_LEVEL: item.level,
        N.ITEM_PLACE: item.place,
        N.ITEM_SEEN: item.is_seen,
        N.ITEM_AGE: item.age,
        N.ITEM_QUANTILE: item.quantile,
        N.ITEM_FAMILIARITY: item.familiarity,
        N.ITEM_COPIES: item.copies,
    }
    known = {name: None if math.isnan(value) else float(value) for name, value in values.items()}
    return {
        C.RANK: rank,
        **known,
        N.ITEM_CATEGORIES: list(item.categories) or None,
        N.ITEM_VECTORS: None if item.vector is None else list(item.vector),
        C.ITEM_ID: f"i{rank}",
    }


def _profile(background: Background) -> dict[str, Any] | None:
    if background._replace(pairs=(), others=()) == NOTHING_KNOWN:
        return None
    fields = ("category", "n_categories", "n_items")
    return {
        N.PROFILE_CATEGORIES: [dict(zip(fields, each, strict=True)) for each in background.profile] or None,
        N.PROFILE_VECTORS: None if background.profile_vector is None else list(background.profile_vector),
        **{name: getattr(background, name) or None for name in N.PROFILE_NUMBERS},
        N.JUDGED_CATEGORIES: [{"gain": gain, "categories": list(each)} for gain, each in background.judged] or None,
    }


def _pairs(one: Ranking) -> list[dict[str, Any]]:
    pairs = sorted((later, earlier, similarity) for earlier, later, similarity in one.background.pairs)
    return [
        {"later": later, "earlier": earlier, "similarity": similarity}
        for later, earlier, similarity in pairs
        if not {later, earlier} & set(one.empty)
    ]


def _other(one: Ranking, model: str) -> dict[str, Any] | None:
    """Write the list of another model: its items have the ids of those that they are here."""
    places = dict(one.background.others).get(model)
    if places is None:
        return None
    items = [f"other{place}" if rank is None else f"i{rank}" for place, rank in enumerate(places, 1)]
    return {"length": len(places), "ranks": list(range(1, len(places) + 1)), "items": items}
