"""Published lists scored again in this process: some users at a time, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.batch.arrays import in_one_piece, to_texts
from rankeval_spark.engine.batch.buckets import in_buckets
from rankeval_spark.engine.failures import quoted
from rankeval_spark.engine.outputs import LISTS_AT_ONCE
from rankeval_spark.engine.planning import outputs_of
from rankeval_spark.engine.scoring.scorer import COMPACT
from rankeval_spark.in_process.result_tables import mean_metrics, paired_comparisons, scored_rows
from rankeval_spark.in_process.result_tables.published_users import packed_segments
from rankeval_spark.measures.required_facts import LIST_NAMES

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.request import Request

_READ = (*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, *COMPACT, C.EMPTY_RANKS)


@dataclass(frozen=True)
class PublishedLists:
    """What follows from lists that are published; each result reads them again.

    Attributes
    ----------
    lists : pyarrow.dataset.Dataset
        Rows of ``schemas.LISTS`` of one night.
    request : Request
        Measures, slices and policies requested; the lists are enough for the measures.
    has_one_list : bool
        Whether no user has several lists of a model.
    exposures : pa.Table
        Rows of ``schemas.METRICS`` from the model on of measures of all lists together, which stay as they are.
    """

    lists: ds.Dataset
    request: Request
    has_one_list: bool
    exposures: pa.Table

    def user_rows(self) -> Iterator[pa.Table]:
        """Make the rows of ``schemas.USER_METRICS`` from the list key on, in parts."""
        for users in self._parts():
            yield scored_rows.keep_population(self._scored(users), self.request)

    @property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the model on."""
        if not self.request.measures.columns:
            return self.exposures
        if self.has_one_list:
            lists = (part for users in self._parts() for part in users)
            means = mean_metrics.of_partials(list(outputs_of(self.request).to_partials(lists)), self.request)
        else:
            means = mean_metrics.of_users(self._users(), self.request)
        return pa.concat_tables([means, self.exposures])

    @property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS`` from the baseline on; None where nothing is compared."""
        if self.request.comparisons is None or not self.request.measures.columns:
            return None
        return paired_comparisons.of_users(self._users(), self.request, has_one_list=self.has_one_list)

    def _users(self) -> Iterator[pa.Table]:
        for part in self._parts():
            yield scored_rows.to_users(self._scored(part), self.request, has_one_list=self.has_one_list)

    def _scored(self, users: list[dict[str, pa.Array]]) -> pa.Table:
        """Score all lists of some users at every cutoff."""
        outputs = outputs_of(self.request)
        return pa.Table.from_batches([outputs.to_scored_rows(part, has_partials=False) for part in users])

    def _parts(self) -> Iterator[list[dict[str, pa.Array]]]:
        """Read all lists of some users, in their order, in parts of which each is scored in one go."""
        names = [*_READ, *([C.HIT_SCORES] if C.HIT_SCORES in self.request.measures.needs else [])]
        for lists in in_buckets(self.lists.to_batches(columns=names), most_rows=sys.maxsize):
            in_order = lists.sort_by([(C.USER_ID, "ascending"), (C.MODEL_ID, "ascending"), (C.LIST_ID, "ascending")])
            starts = range(0, in_order.num_rows, LISTS_AT_ONCE)
            yield [self._columns(in_order.slice(start, LISTS_AT_ONCE)) for start in starts]

    def _columns(self, lists: pa.Table) -> dict[str, pa.Array]:
        """Take the columns that are scored, and what is made of them."""
        found = {name: in_one_piece(lists[name]) for name in lists.column_names}
        if self.request.segments:
            found[PACKED] = packed_segments(found[C.SEGMENTS], self.request.segments)
        if LIST_NAMES in self.request.measures.needs:
            pairs = zip(found[C.USER_ID].to_pylist(), found[C.MODEL_ID].to_pylist(), strict=True)
            found[LIST_NAMES] = to_texts(f"user {quoted(user)} under model {quoted(model)}" for user, model in pairs)
        return found
