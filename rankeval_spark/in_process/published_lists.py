"""Published lists scored again in this process: some users at a time, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.batch.arrays import in_one_piece, to_numpy, to_texts
from rankeval_spark.engine.batch.buckets import in_buckets
from rankeval_spark.engine.failures import quoted
from rankeval_spark.engine.outputs import joined, parts_of_users
from rankeval_spark.engine.planning import outputs_of
from rankeval_spark.engine.scoring.scorer import COMPACT
from rankeval_spark.in_process.result_tables import scored_rows
from rankeval_spark.in_process.result_tables.published_users import packed_segments
from rankeval_spark.measures.required_facts import LIST_NAMES
from rankeval_spark.sums import sums

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.outputs import ListOutputs, Part

_READ = (*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, *COMPACT, C.EMPTY_RANKS)


@dataclass(frozen=True)
class PublishedLists:
    """What follows from lists that are published: rows of users, and the small tables of one more pass.

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
    has_judged_lists : bool
        Whether judgements name the list that they belong to.
    """

    lists: ds.Dataset
    request: Request
    has_one_list: bool
    exposures: pa.Table
    has_judged_lists: bool = False

    def user_rows(self) -> Iterator[pa.Table]:
        """Make the rows of ``schemas.USER_METRICS`` from the list key on, in parts."""
        for part in self._parts():
            scored = pa.Table.from_batches([self._outputs.to_scored_rows(part, has_partials=False)])
            yield scored_rows.keep_population(scored, self.request)

    @property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the model on."""
        means = [self._totals[sums.METRICS]] if self.request.measures.columns else []
        return pa.concat_tables([*means, self.exposures])

    @property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS`` from the baseline on; None where nothing is compared."""
        return self._totals.get(sums.COMPARISONS)

    @property
    def _outputs(self) -> ListOutputs:
        has_lists = not self.has_one_list
        return outputs_of(self.request, averages_lists=has_lists, has_judged_lists=self.has_judged_lists)

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        totals = sums.Totals(self.request, self._outputs)
        return totals.finished(rows for part in self._parts() for rows in totals.of_part(part))

    def _parts(self) -> Iterator[Part]:
        """Read and score all lists of some users at a time."""
        names = [*_READ, *([C.HIT_SCORES] if C.HIT_SCORES in self.request.measures.needs else [])]
        for lists in in_buckets(self.lists.to_batches(columns=names), most_rows=sys.maxsize):
            in_order = lists.sort_by([(C.USER_ID, "ascending"), (C.MODEL_ID, "ascending"), (C.LIST_ID, "ascending")])
            user = to_numpy(in_one_piece(in_order[C.USER_ID]).dictionary_encode().indices)
            n_judged = to_numpy(pc.list_value_length(in_one_piece(in_order[C.JUDGED_GAINS])))
            for cuts in parts_of_users(n_judged, user):
                yield joined([self._outputs.part(self._columns(in_order.slice(*cut))) for cut in cuts])

    def _columns(self, lists: pa.Table) -> dict[str, pa.Array]:
        """Take the columns that are scored, and what is made of them."""
        found = {name: in_one_piece(lists[name]) for name in lists.column_names}
        if self.request.segments:
            found[PACKED] = packed_segments(found[C.SEGMENTS], self.request.segments)
        if LIST_NAMES in self.request.measures.needs:
            pairs = zip(found[C.USER_ID].to_pylist(), found[C.MODEL_ID].to_pylist(), strict=True)
            found[LIST_NAMES] = to_texts(f"user {quoted(user)} under model {quoted(model)}" for user, model in pairs)
        return found
