"""The tables of a night in this process: lists, rows of users and means, all of one pass over the rows of each user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.checks.partition_tallies import PartitionTallies
from rankeval_spark.in_process.exposure.all_lists import to_exposures
from rankeval_spark.in_process.result_tables import scored_rows
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.sums import list_counts, sums

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.in_process.rows.assembly import Usable
    from rankeval_spark.result_rows.check_rows import CheckCount

Add: TypeAlias = Callable[[pa.Table], None]
"""What takes some rows, from any thread."""

Advance: TypeAlias = Callable[[int, int], None]
"""What hears how many rows of all are done, from any thread."""


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
    _partials: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)

    def compute(self, add_users: Add, add_lists: Add | None, advance: Advance) -> None:
        """Hand out the rows of users and, where they are published, the lists, and keep what the others are made of.

        Parameters
        ----------
        add_users, add_lists : callable
            Take rows of ``schemas.USER_METRICS`` and ``schemas.LISTS`` from the list key on.
        advance : callable
            Takes the number of rows of the inputs that are done, and of all rows, from any thread.
        """
        rows_of_users, request = self.usable.user_rows, self._request
        done = _RowsDone(advance, rows_of_users.n_rows)

        def on_bucket(job: Job, rows: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
            rows = list(rows)
            for part in job.parts(rows, PartitionTallies()):
                if add_lists is not None:
                    add_lists(self._published(part.lists, job))
                scored = pa.Table.from_batches([job.outputs.to_scored_rows(part, has_partials=False)])
                add_users(with_text_ids(scored_rows.keep_population(scored, request)))
                yield from self._sums.of_part(part)
            done.add(sum(batch.num_rows for batch in rows))

        self._partials = rows_of_users.run(lambda job: lambda rows: on_bucket(job, rows))

    @cached_property
    def _sums(self) -> sums.Totals:
        return sums.Totals(self._request, self.usable.user_rows.job.outputs)

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        found = self._sums.finished(self._partials)
        self._partials = []  # they may be many
        return found

    def list_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the lists."""
        counted = self._totals[sums.LISTS]
        return list_counts.list_facts(counted, self._request)

    @cached_property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the model on."""
        means = [self._totals[sums.METRICS]] if self._request.measures.columns else []
        return pa.concat_tables([*means, to_exposures(self.usable)])

    @property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS`` from the baseline on; None where nothing is compared."""
        return self._totals.get(sums.COMPARISONS)

    @property
    def _request(self) -> Request:
        return self.usable.request

    def _published(self, lists: Mapping[str, pa.Array], job: Job) -> pa.Table:
        """Put compact lists into their published columns; NULL where no measure of the run needs one."""
        is_asked = {
            C.HIT_SCORES: C.HIT_SCORES in self._request.measures.needs,
            C.EMPTY_RANKS: job.rules.keeps_gaps,
        }
        schema, n_lists = arrow_schema(schemas.LISTS), len(lists[C.USER_ID])
        columns = {
            name: lists[name] if name in lists and is_asked.get(name, True) else pa.nulls(n_lists, type_)
            for name, type_ in zip(schema.names, schema.types, strict=True)
        }
        return with_text_ids(pa.Table.from_pydict(columns)).cast(schema)


def with_text_ids(table: pa.Table) -> pa.Table:
    """Turn ids into text, as all published tables hold them."""
    for place, name in enumerate(table.column_names):
        if name in C.LIST_KEY and table[name].type != pa.string():
            table = table.set_column(place, name, table[name].cast(pa.string()))
    return table
