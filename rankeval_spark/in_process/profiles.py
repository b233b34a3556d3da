"""What is known of users, one row each: of the items that they have in the training data, and of their judged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.codes import ascending, in_order, to_codes
from rankeval_spark.in_process.catalogue import lengths_of, offsets_of, to_catalogue
from rankeval_spark.in_process.interactions import Interactions, Train, given, interactions_of
from rankeval_spark.in_process.joins import full_join, places_in, taken
from rankeval_spark.measures import needs as N

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix

_OF_ITEM = {N.PROFILE_CATEGORIES: N.ITEM_CATEGORIES, N.PROFILE_VECTORS: N.ITEM_VECTORS}


def to_profiles(
    train: Train | None, items: pa.Table | None, judgements: pa.Table | None, *, needs: frozenset[str]
) -> pa.Table | None:
    """Make one row per user: ``user_id`` and the struct ``_profile``; None where none is needed.

    A profile is made of the distinct items that the user has in the training data; for categories and vectors, of those
    that the catalogue describes.

    Parameters
    ----------
    train, items : pa.Table or None
        Usable rows of ``schemas.TRAIN`` and ``schemas.ITEMS``; present where a need requires them.
    judgements : pa.Table or None
        One row per (user, item): ``user_id``, ``item_id`` and ``gain``; there where ``judged_categories`` are needed.

    Raises
    ------
    RefusedError
        The catalogue has an item twice, or vectors of two lengths.
    """
    tables, of_catalogue = [], [name for name in _OF_ITEM if name in needs]
    if of_catalogue:
        trained = interactions_of(train)
        catalogue = to_catalogue(given(items), needs=[_OF_ITEM[name] for name in of_catalogue])
        make = {N.PROFILE_CATEGORIES: _to_categories, N.PROFILE_VECTORS: _to_vectors}
        tables += [make[name](trained, catalogue) for name in of_catalogue]
    if N.PROFILE_INTERACTIONS in needs:
        tables.append(_to_popularity(interactions_of(train)))
    if N.JUDGED_CATEGORIES in needs:
        catalogue = to_catalogue(given(items), needs=[N.ITEM_CATEGORIES])
        tables.append(_to_judged_categories(given(judgements), catalogue))
    if not tables:
        return None
    per_user = full_join(tables, on=C.USER_ID)
    names = [name for name in per_user.column_names if name != C.USER_ID]
    structs = pa.StructArray.from_arrays([in_one_piece(per_user[name]) for name in names], names=names)
    return pa.Table.from_pydict({C.USER_ID: per_user[C.USER_ID], C.PROFILE: structs})


def _to_popularity(trained: Interactions) -> pa.Table:
    """Average the interactions of each user's items."""
    total = trained.owned @ trained.interactions.astype(np.float64)  # whole numbers: the same in any order
    mean = total / np.diff(trained.owned.indptr)
    return pa.Table.from_pydict({C.USER_ID: trained.users, N.PROFILE_INTERACTIONS: to_arrow(mean)})


def _to_categories(trained: Interactions, catalogue: pa.Table) -> pa.Table:
    """Count the items of each user by category and by how many categories they have."""
    lists = taken(catalogue[N.ITEM_CATEGORIES], places_in(trained.items, in_one_piece(catalogue[C.ITEM_ID])))
    lengths = lengths_of(lists)
    names, above = in_order(to_codes(lists.flatten())), int(lengths.max(initial=0)) + 1
    labels, label = np.unique(names.code * above + np.repeat(lengths, lengths), return_inverse=True)
    ends = np.append(0, np.cumsum(lengths))
    has_label = sparse.csr_array((np.ones(len(label)), label, ends), shape=(trained.n_items, len(labels)))
    counts = (trained.owned @ has_label).tocsr()
    counts.sort_indices()  # labels are numbered in the order of (category, number of categories)
    name, n_categories = np.divmod(labels[counts.indices], above)
    structs = pa.StructArray.from_arrays(
        [
            pc.take(names.values, to_arrow(name)),
            to_arrow(n_categories.astype(np.int32)),
            to_arrow(counts.data.astype(np.int64)),
        ],
        names=["category", "n_categories", "n_items"],
    )
    return _of_some(trained.users, np.diff(counts.indptr), structs, N.PROFILE_CATEGORIES)


def _to_vectors(trained: Interactions, catalogue: pa.Table) -> pa.Table:
    """Average the unit vectors of each user's items, added up in the order of the items."""
    ids, units = _unit_vectors(catalogue)
    row = places_in(trained.items, ids)
    known = np.flatnonzero(row >= 0)
    owned, units = trained.owned[:, known], units[row[known]]
    total = owned @ units
    is_minus_zero = (units == 0) & np.signbit(units)
    if is_minus_zero.any():  # a sum that begins with the first vector, not with 0, keeps the sign of -0.0
        total[owned @ (~is_minus_zero).astype(np.float64) == 0] = -0.0
    n_vectors = np.diff(owned.indptr)
    has_vector = n_vectors > 0
    mean = total[has_vector] / n_vectors[has_vector, None]
    return _of_some(trained.users, has_vector * units.shape[1], to_arrow(mean.ravel()), N.PROFILE_VECTORS)


def _unit_vectors(catalogue: pa.Table) -> tuple[pa.Array, FloatMatrix]:
    """Return the ids of the items whose vector has a length, and their vectors divided by it."""
    lists = in_one_piece(catalogue[N.ITEM_VECTORS])
    known = np.flatnonzero(lengths_of(lists))
    values = to_numpy(lists.flatten())
    vectors = values.reshape(len(known), len(values) // max(len(known), 1))
    squares = np.zeros(len(known))
    with np.errstate(over="ignore", under="ignore"):
        for column in vectors.T:  # one number of all items after the other: the order of additions is that of Spark
            squares += column * column
    length = np.sqrt(squares)
    has_length = length > 0
    ids = pc.take(in_one_piece(catalogue[C.ITEM_ID]), to_arrow(known[has_length]))
    return ids, vectors[has_length] / length[has_length, None]


def _to_judged_categories(judgements: pa.Table, catalogue: pa.Table) -> pa.Table:
    """Collect the judged items of each user that have a category, the highest ids first."""
    lists = in_one_piece(catalogue[N.ITEM_CATEGORIES])
    users, items = to_codes(judgements[C.USER_ID]), to_codes(judgements[C.ITEM_ID])
    row = places_in(items.values, in_one_piece(catalogue[C.ITEM_ID]))  # -1: the last of what follows
    has_category = np.append(lengths_of(lists) > 0, False)[row]
    judged = np.flatnonzero(has_category[items.code])
    judged = judged[np.lexsort((-ascending(items.values)[items.code[judged]], users.code[judged]))]
    structs = pa.StructArray.from_arrays(
        [
            pc.take(in_one_piece(judgements[C.GAIN]), to_arrow(judged)),
            pc.take(lists, to_arrow(row[items.code[judged]])),
        ],
        names=["gain", "categories"],
    )
    n_judged = np.bincount(users.code[judged], minlength=users.n_values)
    return _of_some(users.values, n_judged, structs, N.JUDGED_CATEGORIES)


def _of_some(users: pa.Array, lengths: np.ndarray, values: pa.Array, name: str) -> pa.Table:
    """Give the users who have values their list of them."""
    some = np.flatnonzero(lengths)
    lists = pa.ListArray.from_arrays(offsets_of(lengths[some]), values)
    return pa.Table.from_pydict({C.USER_ID: pc.take(users, to_arrow(some)), name: lists})
