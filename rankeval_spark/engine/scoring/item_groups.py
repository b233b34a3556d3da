"""To which item groups each judged item belongs, for measures that are restricted to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import to_numpy, to_texts
from rankeval_spark.engine.scoring.list_columns import owners_of
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.required_facts import BY_POPULARITY, TAIL

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


def bits_of_items(known: Mapping[str, pa.Array], groups: Sequence[str], *, n_items: int) -> IntVector:
    """Give each item its groups: int64, shape (n_items,); bit i is set where it belongs to the i-th one.

    An item that the training data do not have is of the tail; one that the catalogue does not have is of no category.

    Parameters
    ----------
    known : mapping of str to pa.Array
        As :attr:`Batch.known_items`.
    groups : sequence of str
        Names of :data:`required_facts.BY_POPULARITY`, or categories; at most :data:`required_facts.MAX_GROUPS`.
    """
    found: IntVector = np.zeros(n_items, dtype=np.int64)
    if not set(groups).isdisjoint(BY_POPULARITY):
        popularity = popularity_groups(known)
    for place, name in enumerate(groups):
        if name in BY_POPULARITY:
            found |= np.int64(1 << place) * (popularity == BY_POPULARITY.index(name))
        else:
            found |= np.int64(1 << place) * has_category(known[N.ITEM_CATEGORIES], name)
    return found


def popularity_groups(known: Mapping[str, pa.Array]) -> IntVector:
    """Place of each item's group in :data:`required_facts.BY_POPULARITY`; the tail where `train` does not have it."""
    tail = BY_POPULARITY.index(TAIL)
    return to_numpy(known[N.ITEM_POPULARITY_GROUP], null=tail).astype(np.int64)


def has_category(categories: pa.Array, name: str) -> np.ndarray:
    """Return True for each item that has a category: bool, shape (n_items,)."""
    is_it = to_numpy(pc.equal(categories.flatten(), to_texts([name])[0]), null=0)
    return np.bincount(owners_of(categories)[is_it], minlength=len(categories)) > 0
