"""The tables of a night in this process: lists, rows of users and means, all of one pass over the rows of each user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.planning import carries_partials
from rankeval_spark.in_process.checks import list_checks
from rankeval_spark.in_process.exposure.all_lists import to_exposures
from rankeval_spark.in_process.result_tables import mean_metrics, scored_rows
from rankeval_spark.in_process.result_tables.paired_comparisons import to_comparisons
from rankeval_spark.result_rows.arrow_schema import arrow_schema

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.in_process.rows.assembly import Usable
    from rankeval_spark.result_rows.check_rows import CheckCount

Add: TypeAlias = Callable[[pa.Table], None]
"""What takes some rows, from any thread."""

Advance: TypeAlias = Callable[[int, int], None]
"""What hears how many rows of all are done, from any thread."""


@dataclass(frozen=True)
class _Part:
    """What is kept of some lists.

    Attributes
    ----------
    checked : pa.Table
        Rows that the checks look at.
    partials : pa.RecordBatch or None
        Moments that means are made of.
    scored : pa.Table or None
        All rows, where means are made of them.
    """

    checked: pa.Table
    partials: pa.RecordBatch | None
    scored: pa.Table | None


class _RowsDone:
    """Count of the rows that are done, by all threads together."""

    def __init__(self, advance: Advance, n_all: int) -> None:
        self._advance = advance
        self._n_all = n_all
        self._n_done = 0
        self._counting = Lock()

    def add(self, n_rows: int) -> None:
        """Add the rows of a bucket."""
        with self._counting:
            self._n_done += n_rows
            self._advance(self._n_done, self._n_all)


@dataclass
class NightTables:
    """What is computed of the usable rows of a night.

    Attributes
    ----------
    usable : Usable
        The rows.
    """

    usable: Usable
    _parts: list[_Part] = field(default_factory=list)

    def compute(self, add_users: Add, add_lists: Add | None, advance: Advance) -> None:
        """Hand out the rows of users and, where they are published, the lists, and keep what the others are made of.

        Parameters
        ----------
        add_users, add_lists : callable
            Take rows of ``schemas.USER_METRICS`` and ``schemas.LISTS`` from the list key on.
        advance : callable
            Takes the number of rows of the inputs that are done, and of all rows, from any thread.
        """
        request = self._request
        has_one_list = self.usable.has_one_list
        has_partials = carries_partials(request, has_one_list=has_one_list)
        are_kept = bool(request.measures.columns) and not has_one_list
        done = _RowsDone(advance, self.usable.user_rows.n_rows)

        def on_bucket(job: Job, rows: Iterable[pa.RecordBatch]) -> Iterator[_Part]:
            rows = list(rows)
            for lists, batch in job.lists_with_rows(rows, has_partials=has_partials):
                if add_lists is not None:
                    add_lists(self._published(lists, job))
                scored = pa.Table.from_batches([batch])
                partials = _partials(batch) if has_partials else None
                add_users(with_text_ids(scored_rows.keep_population(scored, request)))
                yield _Part(list_checks.counted_rows(scored, request), partials, scored if are_kept else None)
            done.add(sum(batch.num_rows for batch in rows))

        self._parts = self.usable.user_rows.run(lambda job: lambda rows: on_bucket(job, rows))

    def list_facts(self) -> Iterator[CheckCount]:
        """Count what the checks ask of the lists."""
        checked = [part.checked for part in self._parts]
        if not checked:  # the columns are there without a row too
            checked = [list_checks.counted_rows(scored_rows.to_scored(self.usable.user_rows), self._request)]
        return list_checks.list_facts(pa.concat_tables(checked), self._request)

    @cached_property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the model on."""
        request, partials = self._request, [part.partials for part in self._parts if part.partials is not None]
        parts = [to_exposures(self.usable)]
        if partials:
            parts.insert(0, mean_metrics.of_partials(partials, request))
        elif request.measures.columns:
            parts.insert(0, mean_metrics.to_metrics(self.usable, self._users))
        return pa.concat_tables(parts)

    @cached_property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS`` from the baseline on; None where nothing is compared."""
        if self._request.comparisons is None or not self._request.measures.columns:
            return None
        return to_comparisons(self.usable, self._users)

    @property
    def _request(self) -> Request:
        return self.usable.request

    def _users(self) -> pa.Table:
        """One row per (model, user, k), of users with several lists."""
        kept = [part.scored for part in self._parts if part.scored is not None]
        scored = pa.concat_tables(kept) if kept else scored_rows.to_scored(self.usable.user_rows)
        return scored_rows.to_users(scored, self._request, has_one_list=self.usable.has_one_list)

    def _published(self, lists: pa.RecordBatch, job: Job) -> pa.Table:
        """Put compact lists into their published columns; NULL where no measure of the run needs one."""
        is_asked = {
            C.HIT_SCORES: C.HIT_SCORES in self._request.measures.needs,
            C.EMPTY_RANKS: job.rules.keeps_gaps,
        }
        schema, names = arrow_schema(schemas.LISTS), lists.schema.names
        columns = {
            name: lists[name] if name in names and is_asked.get(name, True) else pa.nulls(lists.num_rows, type_)
            for name, type_ in zip(schema.names, schema.types, strict=True)
        }
        return with_text_ids(pa.Table.from_pydict(columns)).cast(schema)


def with_text_ids(table: pa.Table) -> pa.Table:
    """Turn ids into text, as all published tables hold them."""
    for place, name in enumerate(table.column_names):
        if name in C.LIST_KEY and table[name].type != pa.string():
            table = table.set_column(place, name, table[name].cast(pa.string()))
    return table


def _partials(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Take the moments out of the first row."""
    return pa.RecordBatch.from_struct_array(pc.list_flatten(batch[C.PARTIALS]))
