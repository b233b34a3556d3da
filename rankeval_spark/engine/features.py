"""Facts that measures read beyond ranks and gains: about recommended items, users and other lists.

The columns are those of :data:`columns.FACTS`, one cell per list. A list without items has NULL in all but the totals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    ABSENT,
    index_in,
    lengths_of,
    list_column,
    parent_indices,
    rank_ids,
    renumber_by_id,
    take_or_null,
    to_arrow,
    to_codes,
    to_numpy,
    to_texts,
)
from rankeval_spark.engine.batch import struct_fields
from rankeval_spark.engine.matching import is_in_train
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import is_run_start, scaled_rows
from rankeval_spark.measures.required_facts import BY_HISTORY, BY_POPULARITY, REPEAT, TAIL

if TYPE_CHECKING:
    from rankeval_spark.engine.batch import Batch
    from rankeval_spark.engine.matching import Judgements
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, IntVector


UNSEEN: Final[Mapping[str, float]] = {
    **dict.fromkeys((N.ITEM_INTERACTIONS, N.ITEM_USERS, N.ITEM_QUANTILE), 0.0),
    **dict.fromkeys((N.ITEM_LEVEL, N.ITEM_PLACE), float("inf")),
    N.ITEM_TAIL: 1.0,
}
"""Facts of an item that is not in the training data; its place and its level are below all others."""


def distinct_pairs(user: IntVector, item: IntVector, *, n_items: int) -> tuple[IntVector, IntVector]:
    """Return the distinct pairs of a user and an item, sorted."""
    pairs = np.sort(user * n_items + item)
    user, item = np.divmod(pairs[is_run_start(pairs)], max(n_items, 1))
    return user, item


def ownership_matrix(user: IntVector, item: IntVector, *, n_users: int, n_items: int) -> sparse.csr_array:
    """Users by items: float64, 1 where the user has the item, columns ascending in each row."""
    user, item = distinct_pairs(user, item, n_items=n_items)
    ends = np.append(0, np.cumsum(np.bincount(user, minlength=n_users)))
    return sparse.csr_array((np.ones(len(item)), item, ends), shape=(n_users, n_items))


def to_profiles(batch: Batch, judgements: Judgements, *, needs: frozenset[str]) -> pa.StructArray | None:
    """Build a struct per user, or list that judgements name, of what is needed; NULL facts without a described item."""
    place, found = rank_ids(batch.items), dict[str, pa.Array]()  # (n_items,) place of each item by its id
    if not needs.isdisjoint((N.PROFILE_CATEGORIES, N.PROFILE_VECTORS, *N.PROFILE_NUMBERS)):
        in_order, train = to_arrow(np.argsort(place)), batch.train
        owned = ownership_matrix(train.user, place[train.item], n_users=batch.n_users, n_items=batch.n_items)
        if N.PROFILE_CATEGORIES in needs:
            found[N.PROFILE_CATEGORIES] = _count_categories(
                owned, pc.take(batch.known_items[N.ITEM_CATEGORIES], in_order)
            )
        if N.PROFILE_VECTORS in needs:
            found[N.PROFILE_VECTORS] = _mean_vectors(owned, pc.take(batch.known_items[N.ITEM_VECTORS], in_order))
        if N.PROFILE_INTERACTIONS in needs:
            interactions = pc.take(batch.known_items[N.ITEM_INTERACTIONS], in_order)
            total = owned @ to_numpy(interactions, null=0.0)  # whole: the same in any order
            n_items = np.diff(owned.indptr)
            found[N.PROFILE_INTERACTIONS] = to_arrow(total / np.maximum(n_items, 1), is_null=n_items == 0)
        if N.PROFILE_UNJUDGED in needs:
            is_known = to_numpy(batch.known_items[N.ITEM_KNOWN], null=0.0)
            found[N.PROFILE_UNJUDGED] = to_arrow(owned @ is_known[np.argsort(place)])
        found = {name: pc.take(fact, to_arrow(batch.owners.user)) for name, fact in found.items()}
        if N.PROFILE_UNJUDGED in needs:  # less those with a judgement
            owner, item = judgements.owner, judgements.pair % max(batch.n_items, 1)
            is_owned = is_in_train(batch, batch.owners.user[owner], item) & (judgements.gain >= 0)
            n_judged = np.bincount(owner, weights=is_owned * is_known[item], minlength=len(batch.owners.user))
            found[N.PROFILE_UNJUDGED] = to_arrow(to_numpy(found[N.PROFILE_UNJUDGED]) - n_judged)
    if N.JUDGED_CATEGORIES in needs:  # of the judged items that have a category, the highest ids first
        lists = batch.known_items[N.ITEM_CATEGORIES]
        owner, item = judgements.owner, judgements.pair % max(batch.n_items, 1)
        judged = np.flatnonzero((lengths_of(lists) > 0)[item])
        judged = judged[np.lexsort((-place[item[judged]], owner[judged]))]
        facts = [to_arrow(judgements.gain[judged]), pc.take(lists, to_arrow(item[judged]))]
        structs = pa.StructArray.from_arrays(facts, names=["gain", "categories"])
        n_judged = np.bincount(owner[judged], minlength=len(batch.owners.user))
        found[N.JUDGED_CATEGORIES] = list_column(n_judged, structs, is_null=n_judged == 0)
    return pa.StructArray.from_arrays(list(found.values()), names=list(found)) if found else None


def _count_categories(owned: sparse.csr_array, lists: pa.Array) -> pa.Array:
    """Count the items of each user by category and by how many categories they have."""
    lengths = lengths_of(lists)
    names, above = renumber_by_id(to_codes(lists.flatten())), int(lengths.max(initial=0)) + 1
    labels, label = np.unique(names.code * above + np.repeat(lengths, lengths), return_inverse=True)
    ends = np.append(0, np.cumsum(lengths))
    has_label = sparse.csr_array((np.ones(len(label)), label, ends), shape=(len(lists), len(labels)))
    counts = (owned @ has_label).tocsr()
    counts.sort_indices()  # labels are numbered in the order of (category, number of categories)
    name, n_categories = np.divmod(labels[counts.indices], above)
    columns = [
        pc.take(names.values, to_arrow(name)),
        to_arrow(n_categories.astype(np.int32)),
        to_arrow(counts.data.astype(np.int64)),
    ]
    structs = pa.StructArray.from_arrays(columns, names=["category", "n_categories", "n_items"])
    n_labels = np.diff(counts.indptr)
    return list_column(n_labels, structs, is_null=n_labels == 0)


def _mean_vectors(owned: sparse.csr_array, lists: pa.Array) -> pa.Array:
    """Average the unit vectors of each user's items, added up in the order of the items; NULL without a vector."""
    known, values = np.flatnonzero(lengths_of(lists)), to_numpy(lists.flatten())
    vectors = scaled_rows(values.reshape(len(known), len(values) // max(len(known), 1)))
    squares = np.zeros(len(known))
    for column in vectors.T:  # one number of all items after the other: a sum by rows depends on the batch
        squares += column * column
    length = np.sqrt(squares)
    has_length = length > 0
    units = vectors[has_length] / length[has_length, None]  # (n_vectors, n_numbers)
    has_item = owned[:, known[has_length]]  # (n_users, n_vectors)
    total = _sum_with_signed_zeros(has_item, units)
    n_vectors = np.diff(has_item.indptr)
    has_vector = n_vectors > 0
    mean = total[has_vector] / n_vectors[has_vector, None]
    lengths = has_vector * units.shape[1]
    return list_column(lengths, to_arrow(mean.ravel()), is_null=lengths == 0)


def _sum_with_signed_zeros(has_item: sparse.csr_array, units: FloatMatrix) -> FloatMatrix:
    """Add up vectors by user; a sum of -0.0 alone is -0.0, as it is where addition begins with the first vector."""
    total: FloatMatrix = has_item @ units
    is_minus_zero = (units == 0) & np.signbit(units)
    if is_minus_zero.any():
        total[has_item @ (~is_minus_zero).astype(np.float64) == 0] = -0.0
    return total


def item_group_bits(known: Mapping[str, pa.Array], groups: Sequence[str], *, n_items: int) -> IntVector:
    """Return the groups of each item as bits, int64 (n_items,): bit i is the i-th of ``groups``; unseen is tail.

    What is repeated depends on the user too: see :func:`with_history`.
    """
    found: IntVector = np.zeros(n_items, dtype=np.int64)
    popularity = found if set(groups).isdisjoint(BY_POPULARITY) else popularity_groups(known)
    for place, name in enumerate(groups):
        if name in BY_POPULARITY:
            found |= np.int64(1 << place) * (popularity == BY_POPULARITY.index(name))
        elif name not in BY_HISTORY:
            found |= np.int64(1 << place) * has_category(known[N.ITEM_CATEGORIES], name)
    return found


def with_history(batch: Batch, groups: Sequence[str]) -> Batch:
    """Add the groups ``repeat`` and ``explore`` of each judgement as bits: the column :data:`row_kinds.HISTORY`."""
    held_out = batch.held_out
    is_seen, bits = is_in_train(batch, held_out.user, held_out.item), np.zeros(len(held_out), dtype=np.int64)
    for place, name in enumerate(groups):
        if name in BY_HISTORY:
            bits |= np.int64(1 << place) * (is_seen == (name == REPEAT))
    columns = {**held_out.columns, row_kinds.HISTORY: to_arrow(bits)}
    return replace(batch, held_out=replace(held_out, columns=columns))


def popularity_groups(known: Mapping[str, pa.Array]) -> IntVector:
    """Place of each item's group in :data:`required_facts.BY_POPULARITY`; the tail where `train` does not have it."""
    tail = BY_POPULARITY.index(TAIL)
    return to_numpy(known[N.ITEM_POPULARITY_GROUP], null=tail).astype(np.int64)


def has_category(categories: pa.Array, name: str) -> BoolVector:
    """Return True for each item that has a category."""
    is_it = to_numpy(pc.equal(categories.flatten(), to_texts([name])[0]), null=0)
    return np.bincount(parent_indices(categories)[is_it], minlength=len(categories)) > 0


def to_features(
    ranked: RankedLists,
    *,
    needs: frozenset[str],
    depth: int,  # last rank whose items are described; 0 for whole lists
    other_models: tuple[str, ...],  # those that measures compare with
    profiles: pa.StructArray | None,  # see :func:`to_profiles`
) -> dict[str, pa.Array]:
    """Build the columns of :data:`columns.FACTS` that are needed, and :data:`columns.SEEN`."""
    columns: dict[str, pa.Array] = {}
    batch, n_lists, is_empty = ranked.batch, ranked.keys.n_lists, ranked.length == 0
    if C.TOTALS in batch.constants:
        columns[C.TOTALS] = pc.take(batch.constants[C.TOTALS], to_arrow(np.zeros(n_lists, dtype=np.int64)))
    if needs.isdisjoint(N.DESCRIBED - set(N.TOTALS)):
        return columns
    places = ranked.places_down_to(depth)
    facts, n_items = _item_facts(ranked, places, needs), ranked.count_items(places)
    structs = pa.StructArray.from_arrays(list(facts.values()), names=list(facts))
    columns[C.ITEM_FACTS] = list_column(n_items, structs, is_null=is_empty)
    if profiles is not None:
        columns[C.PROFILE] = pc.take(profiles, to_arrow(ranked.keys.owner, is_null=is_empty))
    if N.ITEM_PAIRS in needs:
        place = np.full(n_lists, ABSENT)
        list_code, found = ranked.keys.find_lists(batch, batch.pairs)
        place[list_code] = found
        pair = pa.struct([("later", pa.int32()), ("earlier", pa.int32()), ("similarity", pa.float64())])
        columns[C.PAIRS] = take_or_null(batch.pairs.columns.get(C.PAIRS, pa.nulls(0, pa.list_(pair))), place)
    if other_models:
        columns[C.OTHER_LISTS] = _other_lists(ranked, columns[C.ITEM_FACTS], other_models)
    if N.ITEM_SEEN in needs:
        n_seen = np.bincount(ranked.list_code[places], weights=to_numpy(facts[N.ITEM_SEEN]), minlength=n_lists)
        counts = [to_arrow(each.astype(np.int32)) for each in (n_seen, n_items)]
        columns[C.SEEN] = pa.StructArray.from_arrays(counts, names=["n_seen", "n_items"], mask=to_arrow(is_empty))
    return columns


def _item_facts(ranked: RankedLists, places: IntVector, needs: frozenset[str]) -> dict[str, pa.Array]:
    """Rank and facts of the items at some positions, by name."""
    batch, row = ranked.batch, ranked.row[places]
    item, user, known = batch.log.item[row], batch.log.user[row], ranked.batch.known_items
    facts = {C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32))}
    for name in (*N.ITEM_VALUES, N.ITEM_CATEGORIES, N.ITEM_VECTORS):
        if name not in needs:
            continue
        if name == N.ITEM_SEEN:
            facts[name] = to_arrow(is_in_train(batch, user, item).astype(np.float64))
        elif name == N.ITEM_FAMILIARITY:
            pairs = to_arrow(batch.familiarity.user * batch.n_items + batch.familiarity.item)
            place = index_in(to_arrow(user * batch.n_items + item), pairs)
            similarity = batch.familiarity.columns.get(row_kinds.SIMILARITY, pa.nulls(0, pa.float64()))
            facts[name] = take_or_null(similarity, place)
        elif name == N.ITEM_COPIES:
            facts[name] = to_arrow(ranked.n_copies[row].astype(np.float64))
        elif name in UNSEEN:
            facts[name] = to_arrow(to_numpy(known[name], null=UNSEEN[name])[item])
        else:
            facts[name] = pc.take(known[name], to_arrow(item))
    if N.ITEM_SCORES in needs:
        score = batch.log.columns.get(C.SCORE, pa.nulls(len(batch.log), pa.float64()))
        facts[N.ITEM_SCORES] = pc.take(score, to_arrow(row)).cast(pa.float64(), safe=False)
    if N.ITEM_IDS in needs:
        facts[N.ITEM_IDS] = pc.take(batch.items, to_arrow(item))
    if N.OTHER_LISTS in needs:
        facts[C.ITEM_ID] = to_arrow(item)
    return facts


def _other_lists(ranked: RankedLists, items: pa.ListArray, models: tuple[str, ...]) -> pa.StructArray:
    """Return the lists of other models for the same user and ``list_id``; NULL without one and for that model."""
    keys, names = ranked.keys, ranked.batch.models
    has_items, facts, n_items = ranked.length > 0, struct_fields(items.flatten()), lengths_of(items)
    lists = pa.StructArray.from_arrays(
        [to_arrow(ranked.depth.astype(np.int32)), *(list_column(n_items, facts[name]) for name in (C.RANK, C.ITEM_ID))],
        names=["length", "ranks", "items"],
    )
    same_user = keys.user * len(keys.list_id.dictionary) + to_numpy(keys.list_id.indices)
    columns = []
    for name in models:
        code = names.index(name) if name in names else ABSENT
        lists_of_model = np.flatnonzero((keys.model == code) & has_items)
        match = index_in(to_arrow(same_user), to_arrow(same_user[lists_of_model]))
        has_other_list = (match >= 0) & (keys.model != code) & has_items
        place = np.full(keys.n_lists, ABSENT)
        place[has_other_list] = lists_of_model[match[has_other_list]]
        columns.append(take_or_null(lists, place))
    return pa.StructArray.from_arrays(columns, names=list(models))
