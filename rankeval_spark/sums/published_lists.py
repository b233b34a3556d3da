"""Published lists, scored again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.batch.arrays import in_one_piece, to_numpy, to_texts
from rankeval_spark.engine.batch.buckets import in_buckets
from rankeval_spark.engine.failures import quoted
from rankeval_spark.engine.outputs import ListOutputs, Part, joined, parts_of_users
from rankeval_spark.engine.scoring.scorer import COMPACT
from rankeval_spark.measures.required_facts import LIST_NAMES
from rankeval_spark.sums.published_users import packed_segments

if TYPE_CHECKING:
    from rankeval_spark.engine.checks.partition_tallies import PartitionTallies


@dataclass(frozen=True)
class PublishedLists:
    """Rows of ``schemas.LISTS`` of one night, which are enough for the measures; see ``sums.ListSource``."""

    outputs: ListOutputs
    segments: tuple[str, ...]  # names of all that slices are by

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        needs = self.outputs.measures.needs
        scores = [C.HIT_SCORES] if C.HIT_SCORES in needs else []
        return [*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, *COMPACT, C.EMPTY_RANKS, *scores]

    def parts(self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies) -> Iterator[Part]:  # noqa: ARG002 - no inputs
        """Score all lists of some users at a time."""
        for lists in in_buckets(batches, most_rows=sys.maxsize):
            in_order = lists.sort_by([(name, "ascending") for name in (C.USER_ID, C.MODEL_ID, C.LIST_ID)])
            user = to_numpy(in_one_piece(in_order[C.USER_ID]).dictionary_encode().indices)
            n_judged = to_numpy(pc.list_value_length(in_one_piece(in_order[C.JUDGED_GAINS])))
            for cuts in parts_of_users(n_judged, user):
                yield joined([self.outputs.part(self._scored_columns(in_order.slice(*cut))) for cut in cuts])

    def _scored_columns(self, lists: pa.Table) -> dict[str, pa.Array]:
        """Return the columns that are scored, and what is made of them."""
        found = {name: in_one_piece(lists[name]) for name in lists.column_names}
        if self.segments:
            found[PACKED] = packed_segments(found[C.SEGMENTS], self.segments)
        if LIST_NAMES in self.outputs.measures.needs:
            pairs = zip(found[C.USER_ID].to_pylist(), found[C.MODEL_ID].to_pylist(), strict=True)
            found[LIST_NAMES] = to_texts(f"user {quoted(user)} under model {quoted(model)}" for user, model in pairs)
        return found
