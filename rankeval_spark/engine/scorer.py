"""Values of measures from the columns of compact lists, and the population: who enters the means.

Arrow is turned into numpy here, the kernels are called, and their values are turned back; there is no formula here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, assert_never

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.engine.arrays import lengths_of, parent_indices, renumber_by_id, to_codes, to_numpy
from rankeval_spark.engine.batch import struct_fields
from rankeval_spark.engine.failures import quote_key, refuse
from rankeval_spark.measures import ItemFacts, Lists, required_facts as N
from rankeval_spark.measures.arrays import find_in_lists
from rankeval_spark.measures.item_facts import Empty, Judged, Labels, Shared, SimilarPairs
from rankeval_spark.measures.required_facts import Groups
from rankeval_spark.measures.ties import has_mixed_ties, spread_ties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config import Policies
    from rankeval_spark.config.policies import ZeroRelevant
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, FloatVector, IntVector


IS_EVALUATED: Final = "_is_evaluated"  # whether a scored row belongs to the population; the others are only counted
COUNTED: Final = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS, C.HAS_TIES)
"""Counts of each list at each cutoff, the last one true or false."""

RELEVANT: Final = 1.0  # gain from which `n_relevant` and `n_hits` count a judgement, whatever the levels of measures
COMPACT: Final = (C.N_RECOMMENDED, C.HIT_RANKS, C.HIT_GAINS, C.JUDGED_GAINS, C.TIED_RANKS)
"""Columns of compact lists that every measure set reads."""

_FIELDS: Final[Mapping[str, str]] = {
    **{C.HIT_RANKS: "hit_rank", C.HIT_GAINS: "hit_gain", C.JUDGED_GAINS: "judged_gain", C.HIT_SCORES: "hit_score"},
    **{C.HIT_VALUES: "hit_value", C.JUDGED_VALUES: "judged_value"},
    **{C.HIT_WEIGHTS: "hit_weight", C.JUDGED_WEIGHTS: "judged_weight"},
    **{C.HIT_PROPENSITIES: "hit_propensity", C.HIT_PREDICTIONS: "hit_prediction"},
}
"""Fields of a batch that columns of lists become."""


def to_item_facts(
    items: pa.Array | None,  # facts of the items of each list, by rank; None where only totals are needed
    totals: pa.Array | None,  # the totals, the same for all lists
    profile: pa.Array | None,  # profile of the user of each list; NULL where the training data do not have the user
    pairs: pa.Array | None,  # similar items of each list by their ranks, sorted; NULL without any
    others: pa.Array | None,  # by model that a measure looks at, its list for the user of each list; NULL without one
) -> ItemFacts:
    """Build the facts of a batch."""
    totals_by_name = {} if totals is None else {name: _floats(total) for name, total in struct_fields(totals).items()}
    if items is None:
        return ItemFacts(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), {}, totals_by_name)
    facts = struct_fields(items.flatten())
    owner, rank = parent_indices(items), to_numpy(facts[C.RANK])
    profiles = struct_fields(profile) if profile is not None else {}
    (item_labels, profile_labels, judged_labels), n_categories = _to_labels(
        facts.get(N.ITEM_CATEGORIES), profiles.get(N.PROFILE_CATEGORIES), profiles.get(N.JUDGED_CATEGORIES)
    )
    similar = None
    if pairs is not None:
        found, of_list = struct_fields(pairs.flatten()), parent_indices(pairs)
        earlier, later = (
            find_in_lists(of_list, to_numpy(found[name]), among=(owner, rank)) for name in ("earlier", "later")
        )
        similar = SimilarPairs(earlier, later, _floats(found["similarity"]))
    of_profile = {name: np.nan_to_num(_floats(profiles[name])) for name in N.PROFILE_NUMBERS if name in profiles}
    return ItemFacts(
        owner,
        rank,
        {name: _floats(facts[name]) for name in N.ITEM_VALUES if name in facts},
        totals_by_name,
        categories=item_labels,
        vectors=_to_matrix(facts.get(N.ITEM_VECTORS)),
        profile_categories=profile_labels,
        profile_vectors=_to_matrix(profiles.get(N.PROFILE_VECTORS)),
        n_categories=n_categories,
        pairs=similar,
        **of_profile,
        judged=judged_labels,
        scores=_floats(facts[N.ITEM_SCORES]) if N.ITEM_SCORES in facts else None,
        ids=np.array([*facts[N.ITEM_IDS].to_pylist(), None], dtype=object)[:-1] if N.ITEM_IDS in facts else None,
        shared=None if others is None else _to_shared(others, owner, rank, facts[C.ITEM_ID]),
    )


def _floats(values: pa.Array) -> FloatVector:
    """Return values with NaN in place of NULL."""
    return to_numpy(values).astype(np.float64, copy=False)


def _to_matrix(vectors: pa.Array | None) -> FloatMatrix | None:
    """Stack vectors of one length: a row of NaN for NULL; no columns if all are NULL."""
    if vectors is None:
        return None
    lengths = lengths_of(vectors)
    length = lengths.max(initial=0)
    matrix = np.full((len(vectors), length), np.nan)
    matrix[lengths > 0] = _floats(vectors.flatten()).reshape(np.count_nonzero(lengths), length)
    return matrix


def _to_shared(others: pa.Array, owner: IntVector, rank: IntVector, items: pa.Array) -> dict[str, Shared]:
    """Match the items of each list with those that other models list; the n-th copy of an item with the n-th."""
    lists = {model: struct_fields(other_list) for model, other_list in struct_fields(others).items()}
    codes, n_codes = _encode_together([items, *(other_lists["items"].flatten() for other_lists in lists.values())])

    def sort_by_item(owner: IntVector, rank: IntVector, code: IntVector) -> tuple[IntVector, IntVector, IntVector]:
        key = owner * n_codes + code  # one number for each list and item
        order = np.argsort(key, kind="stable")  # copies stay in the order of their ranks
        return key[order], owner[order], rank[order]

    item_keys, list_of_item, rank_of_item = sort_by_item(owner, rank, codes[0])
    copy = np.arange(len(item_keys)) - np.searchsorted(item_keys, item_keys)  # 0 for the first copy of an item
    shared = {}
    for (model, other_lists), code in zip(lists.items(), codes[1:], strict=True):
        other_list, ranks = parent_indices(other_lists["items"]), to_numpy(other_lists["ranks"].flatten())
        other_keys, _, rank_of_other = sort_by_item(other_list, ranks, code)
        place = np.searchsorted(other_keys, item_keys) + copy
        matched = np.flatnonzero(place < len(other_keys))
        matched = matched[other_keys[place[matched]] == item_keys[matched]]
        depth = np.maximum(rank_of_item[matched], rank_of_other[place[matched]])
        length = np.nan_to_num(_floats(other_lists["length"]))
        shared[model] = Shared(list_of_item[matched], depth, length, other_list, ranks)
    return shared


def _to_labels(
    of_items: pa.Array | None, of_profiles: pa.Array | None, of_judged: pa.Array | None
) -> tuple[tuple[Labels | None, Labels | None, Judged | None], int]:
    """Encode the categories of items, profiles and judged items together, in the order of their names."""
    profile = {} if of_profiles is None else struct_fields(of_profiles.flatten())
    judged = {} if of_judged is None else struct_fields(of_judged.flatten())
    of_judgements = judged["categories"].flatten() if judged else None
    codes, n_categories = _encode_together(
        [None if of_items is None else of_items.flatten(), profile.get("category"), of_judgements]
    )

    def labels_of(categories: pa.Array, code: IntVector) -> Labels:
        lengths = lengths_of(categories)
        return Labels(np.repeat(np.arange(len(categories)), lengths), code, 1 / np.repeat(lengths, lengths))

    profile_labels = judged_labels = None
    if of_profiles is not None:
        weights = _floats(profile["n_items"]) / _floats(profile["n_categories"])
        profile_labels = Labels(parent_indices(of_profiles), codes[1], weights)
    if of_judged is not None:
        labels = labels_of(judged["categories"], codes[2])
        judged_labels = Judged(parent_indices(of_judged), _floats(judged["gain"]), labels)
    item_labels = None if of_items is None else labels_of(of_items, codes[0])
    return (item_labels, profile_labels, judged_labels), n_categories


def _encode_together(texts: Sequence[pa.Array | None]) -> tuple[list[IntVector], int]:
    """Replace the texts of several columns by their places in the order of all texts, and count these."""
    given = [column for column in texts if column is not None]
    if not given:
        return [np.zeros(0, dtype=np.int64) for _ in texts], 0
    codes = renumber_by_id(to_codes(pa.concat_arrays(given)))
    ends = np.cumsum([0 if column is None else len(column) for column in texts])
    return np.split(codes.code, ends[:-1]), codes.n_values


class Members(NamedTuple):
    """Flags of each list; all of shape (n_lists,)."""

    is_evaluated: BoolVector  # whether the user belongs to the population; the others are only counted
    is_missing: BoolVector  # whether a judged user has no list
    is_zero_relevant: BoolVector  # whether a judged user has no relevant judgement
    is_extra: BoolVector  # whether the user has no judgement
    has_both: BoolVector  # whether the user has judgements and a list


def find_members(
    n_judged: IntVector, n_relevant: IntVector, n_recommended: IntVector, *, policies: Policies
) -> Members:
    """Return for each list whether its user is evaluated, and the flags that are counted.

    ``truth`` and ``judged`` take every user of the held-out table (they differ in what a user without a relevant
    judgement scores) unless ``missing`` leaves out those without a list; ``intersection`` and ``intersection_judged``
    take those who also got a list, ``run`` all who got one.
    """
    is_judged, has_list = n_judged > 0, n_recommended > 0
    has_both, is_missing = is_judged & has_list, is_judged & ~has_list
    is_zero_relevant = is_judged & (n_relevant == 0)
    match policies.population:
        case "truth" | "judged":
            belongs = is_judged
        case "intersection" | "intersection_judged":
            belongs = has_both
        case "run":
            belongs = has_list
        case population:
            assert_never(population)
    if policies.missing == "exclude":
        belongs = belongs & has_list
    if policies.missing == "error" and np.any(is_missing):
        refuse("missing", "a judged user has no list")
    if policies.zero_relevant == "error" and np.any(belongs & is_zero_relevant):
        refuse("zero_relevant", "a user has no judgement with a gain of 1 or more")
    return Members(belongs, is_missing, is_zero_relevant, ~is_judged, has_both)


@dataclass(frozen=True)
class Scored:
    """Values and counts of a batch of lists."""

    # (n_lists, n_cutoffs) values of the measures and denominators of those that have them, by column; NaN where
    # undefined or not requested
    values: Mapping[str, np.ndarray]
    # (n_lists, n_cutoffs) counts by column; ``has_ties`` means nothing for a user without a list
    counts: Mapping[str, np.ndarray]


def score_lists(
    columns: Mapping[str, pa.Array],  # COMPACT, and such of ``columns.READ_BY_MEASURES`` as measures need
    measures: MeasureSet,
    *,
    zero_relevant: ZeroRelevant,  # policy: what a user scores where a measure is undefined
    ties: str,  # policy: some orders of ties ask for means over all orders
    judged_only: bool = False,  # policy: whether unjudged items have left the lists
) -> Scored:
    """Compute every measure at every cutoff for a batch of compact lists, and count judgements, items and hits."""
    lists, tied_list, tied_rank = read_lists(columns, measures.groups)
    ks, spread = measures.ks, spread_lists(lists, tied_list, tied_rank, ties=ties)
    values = measures.score(spread, judged_only=judged_only)
    if zero_relevant in ("zero", "one"):
        for name, measure in measures.by_column.items():
            fill = measure.without_relevant if zero_relevant == "zero" else measure.at_best
            can_be = measures.is_requested_at(name)[None, :] & measures.can_have_value(lists, name)
            values[name] = np.where(np.isnan(values[name]) & can_be, fill, values[name])
    for name, weight in measures.denominator_columns.items():  # the sums are taken where both are defined
        is_known = ~np.isnan(values[name]) & ~np.isnan(values[weight])
        values[name], values[weight] = (np.where(is_known, values[column], np.nan) for column in (name, weight))
    cut = lists.cut(ks)
    counts = {
        C.N_JUDGED: np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None],
        C.N_RELEVANT: cut.n_relevant(RELEVANT),
        C.N_RECOMMENDED: cut.depth,
        C.N_HITS: cut.hits(RELEVANT),
        C.HAS_TIES: has_mixed_ties(lists, tied_list, tied_rank, ks),
    }
    shape = lists.n_lists, len(ks)
    return Scored(values, {name: np.broadcast_to(count, shape) for name, count in counts.items()})


def spread_lists(lists: Lists, tied_list: IntVector, tied_rank: IntVector, *, ties: str) -> Lists:
    """Return the batch that kernels read: where the policy of ties asks for means over all orders, spread."""
    return spread_ties(lists, tied_list, tied_rank) if tie_rule(ties).value == "mean" else lists


def read_lists(columns: Mapping[str, pa.Array], groups: tuple[str, ...]) -> tuple[Lists, IntVector, IntVector]:
    """Build the batch of compact lists; and list and rank of each item that ties with the one before it."""

    def flat(name: str) -> Any:  # noqa: ANN401 - an array of numbers of any type
        return to_numpy(columns[name].flatten())

    has_facts = not columns.keys().isdisjoint(C.FACTS)
    lists = Lists(
        to_numpy(columns[C.N_RECOMMENDED]),
        parent_indices(columns[C.HIT_RANKS]),
        judged_list=parent_indices(columns[C.JUDGED_GAINS]),
        **{field: flat(name) for name, field in _FIELDS.items() if name in columns},
        items=to_item_facts(*map(columns.get, C.FACTS)) if has_facts else None,
        predicted_value=to_numpy(columns[C.PREDICTED_VALUE]) if C.PREDICTED_VALUE in columns else None,
        groups=Groups(groups, flat(C.HIT_GROUPS), flat(C.JUDGED_GROUPS)) if C.HIT_GROUPS in columns else None,
        names=partial(_name_list, columns) if C.USER_ID in columns else None,
        empty=_to_empty(columns[C.EMPTY_RANKS]) if C.EMPTY_RANKS in columns else None,
        user_values={name: _floats(values) for name, values in struct_fields(columns[C.USER_VALUES]).items()}
        if C.USER_VALUES in columns
        else None,
        user_weight=_floats(columns[C.USER_WEIGHT]) if C.USER_WEIGHT in columns else None,
    )
    return lists, parent_indices(columns[C.TIED_RANKS]), flat(C.TIED_RANKS)


def _name_list(columns: Mapping[str, pa.Array], place: int) -> str:
    """Return the name of a list in a message."""
    user, model, of_list = (columns[name][place].as_py() for name in (C.USER_ID, C.MODEL_ID, C.LIST_ID))
    named = f"user {quote_key(user)} under model {quote_key(model)}"
    return named if of_list == C.ONE_LIST else f"{named}, list {quote_key(of_list)}"


def _to_empty(runs: pa.Array) -> Empty:
    """Convert the column of runs of empty ranks."""
    return Empty(parent_indices(runs), *map(to_numpy, runs.flatten().flatten()))


def count_empty_ranks(columns: Mapping[str, pa.Array]) -> IntVector:
    """Count the ranks of each list without an item: int64."""
    n_lists = len(columns[C.N_RECOMMENDED])
    if C.EMPTY_RANKS not in columns:
        return np.zeros(n_lists, dtype=np.int64)
    owner, first, last = _to_empty(columns[C.EMPTY_RANKS])
    return np.bincount(owner, weights=last - first + 1, minlength=n_lists).astype(np.int64)
