"""Counts for measures of parity: items by popularity, or in a category, by slice and group of users.

They need little of a list: how many items of each group of popularity it holds that count, and how many there could be;
or how many items of a category. Everyone's sums less those of a group of users are the sums without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import key_columns
from rankeval_spark.engine.arrays import list_column, to_arrow, to_numpy
from rankeval_spark.engine.batch import struct_fields
from rankeval_spark.engine.buckets import GROUP, N_GROUPS, jackknife_groups
from rankeval_spark.engine.features import distinct_pairs, has_category, popularity_groups
from rankeval_spark.engine.matching import is_in_train
from rankeval_spark.engine.slices import PACKED, dictionary_encode, find_groups, segment_column_names, unpack_segments
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import is_run_start
from rankeval_spark.measures.required_facts import BY_POPULARITY
from rankeval_spark.statistics.moments import membership_matrix

if TYPE_CHECKING:
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import BoolVector, IntVector

SUMS: Final = "_sums"  # column of the sums: of each measure the recommended items, then what they are a part of


def is_disparity(measure: Measure) -> bool:
    """Return True if a measure compares the shares of a category."""
    return N.CATEGORY_SHARES in measure.needs


@dataclass(frozen=True)
class Parity:
    """Counts for measures of parity; plain data that travels to the workers."""

    measures: tuple[Measure, ...]  # of kind ``parity``
    slices: tuple[tuple[str, ...], ...]  # names of the segments of each slice; ``()`` is everyone

    def add_up(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Add up ``n_users``, ``n_lists`` and :data:`SUMS` by model, slice and group of users: a batch a slice."""
        if part.ranked is None or not len(part.ranked.listed):
            return
        counts = _PairCounts(part.ranked)
        sums = [column for measure in self.measures for column in counts.counts_for(measure)]
        numbers = np.column_stack([np.ones(len(counts.starts)), counts.n_lists, *sums])
        first = to_arrow(part.ranked.listed[counts.starts] - part.start)
        of_lists = [name for name in (C.MODEL_ID, PACKED) if name in part.lists]
        table = pa.Table.from_pydict({name: pc.take(part.lists[name], first) for name in of_lists})
        table = unpack_segments(dictionary_encode(table, [C.MODEL_ID]))
        group = jackknife_groups(pc.take(part.lists[C.USER_ID], first))
        for index, names in enumerate(segment_column_names(self.slices)):
            keys, cell = find_groups(table, names)
            bucket, n_buckets = cell * N_GROUPS + group, len(keys) * N_GROUPS
            occupied = np.flatnonzero(np.bincount(bucket, minlength=n_buckets))
            totals = (membership_matrix(bucket, n_buckets) @ numbers)[occupied]
            cell, user_group = np.divmod(occupied, N_GROUPS)
            n_users, n_lists = totals[:, :2].T.astype(np.int64)
            of_groups = key_columns(index, [keys[place] for place in cell.tolist()])
            lengths = np.full(len(totals), totals.shape[1] - 2)
            columns = {
                **dict(zip((C.MODEL_ID, "slice_index", C.SLICE_VALUES), of_groups, strict=False)),
                GROUP: to_arrow(user_group.astype(np.int32)),
                "n_users": to_arrow(n_users),
                C.N_LISTS: to_arrow(n_lists),
                SUMS: list_column(lengths, to_arrow(totals[:, 2:].ravel())),
            }
            yield pa.RecordBatch.from_pydict(columns)


class _PairCounts:
    """Counts for the pairs of a model and a user with lists."""

    def __init__(self, ranked: RankedLists) -> None:
        self.ranked, self.batch = ranked, ranked.batch
        keys, listed = ranked.keys, ranked.listed  # lists with items; they come sorted by user and model
        # Place among `listed` of the first list of each pair
        self.starts = np.flatnonzero(is_run_start(keys.user[listed] * len(self.batch.models) + keys.model[listed]))
        self.user = keys.user[listed[self.starts]]
        self.n_lists = np.diff(self.starts, append=len(listed))
        of_list = np.zeros(keys.n_lists, dtype=np.int64)
        of_list[listed] = np.repeat(np.arange(len(self.starts)), self.n_lists)
        self.pair, self.item = of_list[ranked.list_code], ranked.batch.log.item[ranked.row]  # of each ranked item

    def counts_for(self, measure: Measure) -> list[np.ndarray]:
        """Count for a measure the recommended items, and what they are a part of: arrays with a row per pair."""
        places = self.ranked.places_down_to(measure.k)  # WHOLE_LIST is 0
        counts_for = self._category_counts if is_disparity(measure) else self._popularity_counts
        return counts_for(measure, places, self.pair[places], self.item[places])

    def _category_counts(self, measure: Measure, _: IntVector, pair: IntVector, item: IntVector) -> list[np.ndarray]:
        """Count recommended items of a category and those in profiles, then all items of both: each (n_pairs,)."""
        has_it = has_category(self.batch.known_items[N.ITEM_CATEGORIES], str(measure.options["category"]))
        user, trained = self._train_pairs
        in_category, in_profile = (
            np.bincount(users, minlength=self.batch.n_users)[self.user] for users in (user[has_it[trained]], user)
        )
        shown_in_category, shown = (
            np.bincount(pairs, minlength=len(self.starts)) for pairs in (pair[has_it[item]], pair)
        )
        return [shown_in_category, in_category, shown, in_profile]

    def _popularity_counts(
        self,
        measure: Measure,
        places: IntVector,  # (n,) positions of the recommended items that are counted
        pair: IntVector,  # (n,) their pair of model and user
        item: IntVector,  # (n,)
    ) -> list[np.ndarray]:
        """Count recommended items by group, then those that could be, without what the user has: each (n_pairs, 3)."""
        batch, ranked = self.batch, self.ranked
        if N.GROUP_RELEVANT in measure.needs:
            rel, judgements = cast("float", measure.options["rel"]), ranked.judgements
            is_counted = np.append(judgements.gain, np.nan)[ranked.judgement[ranked.row[places]]] >= rel
            owner, judged = judgements.owner, judgements.pair % max(batch.n_items, 1)
            is_open = (judgements.gain >= rel) & ~is_in_train(batch, batch.owners.user[owner], judged)
            n_open = self._count_by_popularity(owner[is_open], judged[is_open], n=len(batch.owners.user))
            possible = np.add.reduceat(n_open[ranked.keys.owner[ranked.listed]], self.starts)
        else:
            is_counted, possible = self._is_in_catalogue[item], self._available[self.user] * self.n_lists[:, None]
        is_counted = is_counted & ~self._is_in_train[places]
        return [self._count_by_popularity(pair[is_counted], item[is_counted], n=len(self.starts)), possible]

    @cached_property
    def _available(self) -> np.ndarray:
        """Count the items of the catalogue in each group that the user does not have already: (n_users, 3)."""
        user, item = self._train_pairs
        known = self._is_in_catalogue[item]
        totals = struct_fields(self.batch.constants[C.TOTALS])
        sizes = np.concatenate([to_numpy(totals[name]) for name in N.GROUP_SIZES])
        available: np.ndarray = sizes - self._count_by_popularity(user[known], item[known], n=self.batch.n_users)
        return available

    @cached_property
    def _train_pairs(self) -> tuple[IntVector, IntVector]:
        """Users and items of the training data, each pair once."""
        return distinct_pairs(self.batch.train.user, self.batch.train.item, n_items=self.batch.n_items)

    @cached_property
    def _is_in_train(self) -> BoolVector:
        """True if the user of each ranked item has it in the training data."""
        return is_in_train(self.batch, self.batch.log.user[self.ranked.row], self.item)

    @cached_property
    def _is_in_catalogue(self) -> BoolVector:
        """True if the catalogue has each item of the batch."""
        return to_numpy(self.batch.known_items[N.ITEM_KNOWN], null=0.0) > 0

    @cached_property
    def _group(self) -> IntVector:
        """Popularity group of each item, 0 to 2."""
        return popularity_groups(self.batch.known_items)

    def _count_by_popularity(self, owner: IntVector, item: IntVector, *, n: int) -> np.ndarray:
        """Count items by owner (0 to n - 1) and group of popularity: shape (n, 3)."""
        width = len(BY_POPULARITY)
        return np.bincount(owner * width + self._group[item], minlength=n * width).reshape(n, width)
