"""The tables of a night in this process: lists, rows of users and means, all of one pass over the rows of each user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.in_process.exposure.all_lists import to_exposures
from rankeval_spark.in_process.result_tables import mean_metrics, scored_rows
from rankeval_spark.in_process.result_tables.paired_comparisons import to_comparisons
from rankeval_spark.result_rows.arrow_schema import arrow_schema

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.in_process.rows.assembly import Usable

_IDS: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID)


@dataclass(frozen=True)
class NightTables:
    """What is computed of the usable rows of a night.

    Attributes
    ----------
    usable : Usable
        The rows.
    has_lists : bool
        Whether the lists are published.
    """

    usable: Usable
    has_lists: bool

    @property
    def lists(self) -> pa.Table | None:
        """As ``schemas.LISTS`` from the list key on; None where they are not published."""
        return self._computed[0]

    @property
    def scored(self) -> pa.Table:
        """Every list at every cutoff."""
        return self._computed[1]

    @property
    def user_metrics(self) -> pa.Table:
        """As ``schemas.USER_METRICS``, likewise."""
        return with_text_ids(scored_rows.keep_population(self.scored, self._request))

    @cached_property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS``, likewise."""
        request, partials = self._request, self._computed[2]
        parts = [to_exposures(self.usable)]
        if partials is not None:
            parts.insert(0, mean_metrics.of_partials(partials, request))
        elif request.measures.columns:
            parts.insert(0, mean_metrics.to_metrics(self.usable, self._users))
        return pa.concat_tables(parts)

    @cached_property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS``, likewise; None where nothing is compared."""
        asked = self._request.comparisons
        if asked is None or not self._request.measures.columns:
            return None
        return to_comparisons(self.usable, self._users, asked)

    @property
    def _request(self) -> Request:
        return self.usable.request

    @cached_property
    def _computed(self) -> tuple[pa.Table | None, pa.Table, list[pa.RecordBatch] | None]:
        """Lists, scored rows, and the moments that means are made of where every user has one list of a model."""
        request = self._request
        has_partials = self.usable.tables.has_one_list and request.draws is None and bool(request.measures.columns)
        found = self.usable.user_rows.run(lambda job: lambda rows: job.lists_with_rows(rows, has_partials=has_partials))
        lists = _published([of_lists for of_lists, _ in found], self._without) if self.has_lists else None
        batches = [rows for _, rows in found]
        partials = _partials(batches) if has_partials else None
        if not batches:
            return lists, scored_rows.to_scored(self.usable.user_rows), partials
        scored = pa.Table.from_batches(batches)
        return lists, scored.drop_columns([C.PARTIALS]) if has_partials else scored, partials

    @property
    def _without(self) -> frozenset[str]:
        """Optional columns of lists that the request does not ask for."""
        job = self.usable.user_rows.job
        is_asked = {
            C.HIT_SCORES: C.HIT_SCORES in self._request.measures.needs,
            C.EMPTY_RANKS: job.rules.keeps_gaps,
        }
        return frozenset(name for name, is_there in is_asked.items() if not is_there)

    def _users(self) -> pa.Table:
        has_one_list = self.usable.tables.has_one_list
        return scored_rows.to_users(self.scored, self._request, has_one_list=has_one_list)


def with_text_ids(table: pa.Table) -> pa.Table:
    """Turn ids into text, as all published tables hold them."""
    for place, name in enumerate(table.column_names):
        if name in _IDS and table[name].type != pa.string():
            table = table.set_column(place, name, table[name].cast(pa.string()))
    return table


def _published(batches: list[pa.RecordBatch], without: frozenset[str]) -> pa.Table:
    """Put compact lists into their published columns; NULL where no measure of the run needs one."""
    schema = arrow_schema(schemas.LISTS)
    if not batches:
        return schema.empty_table()
    given = pa.Table.from_batches(batches)
    columns: Mapping[str, pa.ChunkedArray] = {
        name: given[name] if name in given.column_names and name not in without else pa.nulls(given.num_rows, type_)
        for name, type_ in zip(schema.names, schema.types, strict=True)
    }
    return with_text_ids(pa.Table.from_pydict(columns)).cast(schema)


def _partials(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Take the moments out of the first rows."""
    structs = (pc.list_flatten(batch[C.PARTIALS]) for batch in batches)
    return [pa.RecordBatch.from_struct_array(one) for one in structs]
