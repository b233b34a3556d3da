"""To which item groups each judgement belongs, for measures that are restricted to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.codes import to_codes
from rankeval_spark.in_process.catalogue import lengths_of, to_catalogue
from rankeval_spark.in_process.interactions import Train, given
from rankeval_spark.in_process.joins import places_in
from rankeval_spark.in_process.popularity import to_popularity_groups
from rankeval_spark.measures.item_groups import BY_POPULARITY, TAIL
from rankeval_spark.measures.needs import ITEM_CATEGORIES, ITEM_POPULARITY_GROUP

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


def with_groups(held_out: pa.Table, train: Train | None, items: pa.Table | None, *, groups: Sequence[str]) -> pa.Table:
    """Add the column ``_groups``, int64: bit i is set where the item belongs to the i-th group; none without groups.

    An item that the training data do not have is of the tail; one that the catalogue does not have is of no category.

    Parameters
    ----------
    held_out : pa.Table
        Rows of ``schemas.HELD_OUT``; their order stays.
    train, items : pa.Table or None
        Usable rows; present where a group needs them.
    groups : sequence of str
        Names of :data:`groups.BY_POPULARITY`, or categories; at most :data:`groups.MAX_GROUPS`.

    Raises
    ------
    RefusedError
        The catalogue has an item twice.
    """
    if not groups:
        return held_out
    bits = {name: 1 << place for place, name in enumerate(groups)}
    by_popularity = {name: bit for name, bit in bits.items() if name in BY_POPULARITY}
    by_category = {name: bit for name, bit in bits.items() if name not in BY_POPULARITY}
    judged = to_codes(held_out[C.ITEM_ID])
    of_items = np.zeros(judged.n_values + 1, dtype=np.int64)  # the last: rows without an item, whose code is -1
    if by_popularity:
        of_items |= _popularity_bits(judged.values, train, by_popularity)
    if by_category:
        of_items[:-1] |= _category_bits(judged.values, given(items), by_category)
    return held_out.append_column(C.GROUPS, to_arrow(of_items[judged.code]))


def _popularity_bits(judged: pa.Array, train: Train | None, bits: Mapping[str, int]) -> IntVector:
    """Bits of each judged item, and of one that the training data do not have."""
    of_train = to_popularity_groups(given(train) if train is None else train)
    group = to_numpy(of_train[ITEM_POPULARITY_GROUP]).astype(np.int64)
    own: IntVector = np.append(np.array([bits.get(name, 0) for name in BY_POPULARITY])[group], bits.get(TAIL, 0))
    found: IntVector = own[np.append(places_in(judged, in_one_piece(of_train[C.ITEM_ID])), -1)]
    return found


def _category_bits(judged: pa.Array, items: pa.Table, bits: Mapping[str, int]) -> IntVector:
    catalogue = to_catalogue(items, needs=[ITEM_CATEGORIES])
    lists = in_one_piece(catalogue[ITEM_CATEGORIES])
    owner, values = np.repeat(np.arange(len(lists)), lengths_of(lists)), lists.flatten()
    own: IntVector = np.zeros(len(lists) + 1, dtype=np.int64)
    for name, bit in bits.items():
        own[owner[to_numpy(pc.equal(values, to_texts([name])[0]))]] |= bit
    found: IntVector = own[places_in(judged, in_one_piece(catalogue[C.ITEM_ID]))]
    return found
