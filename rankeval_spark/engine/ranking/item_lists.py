"""Ranked items with a row per list: what exposure of items, and co-occurrence in lists, are computed from on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import ascending, starts_of_runs
from rankeval_spark.engine.batch.user_hashes import GROUP, jackknife_groups

if TYPE_CHECKING:
    from rankeval_spark.engine.ranking.ranked_lists import RankedLists
    from rankeval_spark.measures.arrays import BoolVector

ITEMS: Final = "_items"
"""Items of a list in their order: structs of ``item_id`` and ``rank``."""

OPENS_USER: Final = "_opens_user"
"""Whether no other list of the user and model begins at a better rank, or at the same and has a smaller ``list_id``."""


def to_item_lists(ranked: RankedLists, *, depth: int) -> dict[str, pa.Array]:
    """Make the columns :data:`ITEMS`, :data:`OPENS_USER` and :data:`user_hashes.GROUP` of the lists that have items.

    Parameters
    ----------
    depth : int
        Last rank whose items are there, in addition to the first item of each list; 0 for whole lists.
    """
    places = np.arange(len(ranked.row))
    if depth:
        is_first = places == ranked.start[ranked.list_code]
        places = places[(ranked.rank_at(places) <= depth) | is_first]
    batch, listed = ranked.entries.batch, ranked.listed
    items = {
        C.ITEM_ID: pc.take(batch.items, to_arrow(ranked.entries.item[ranked.row[places]])),
        C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32)),
    }
    lengths = np.bincount(ranked.list_code[places], minlength=ranked.keys.n_lists)[listed]
    ends = to_arrow(np.append(0, np.cumsum(lengths)).astype(np.int32))
    return {
        ITEMS: pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(list(items.values()), names=list(items))),
        OPENS_USER: to_arrow(_opens_user(ranked)),
        GROUP: to_arrow(jackknife_groups(batch.users)[ranked.keys.user[listed]].astype(np.int32)),
    }


def _opens_user(ranked: RankedLists) -> BoolVector:
    """Return which of the lists with items is the first of its user and model."""
    keys, listed = ranked.keys, ranked.listed
    name = ascending(keys.list_id.dictionary)[to_numpy(keys.list_id.indices)[listed]]
    user, model, rank = keys.user[listed], keys.model[listed], ranked.rank_at(ranked.start[listed])
    order = np.lexsort((name, rank, model, user))
    opens = np.zeros(len(listed), dtype=np.bool_)
    opens[order] = starts_of_runs(user[order]) | starts_of_runs(model[order])
    return opens
