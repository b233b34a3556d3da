"""The tables of a night in this process: lists, rows of users and sums, all of one pass over the rows of each user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from rankeval_spark.in_process.exposure.all_lists import to_exposures
from rankeval_spark.sums import list_counts, sums

if TYPE_CHECKING:
    from rankeval_spark.in_process.rows.assembly import Usable
    from rankeval_spark.result_rows.check_rows import CheckCount

Add: TypeAlias = Callable[[pa.Table], None]
"""What takes some rows, from any thread."""

Advance: TypeAlias = Callable[[int, int], None]
"""What hears how many rows of all are done, from any thread."""


class NightTables:
    """What is computed of the usable rows of a night."""

    def __init__(self, usable: Usable) -> None:
        self.usable = usable
        self._partials: list[tuple[str, pa.RecordBatch]] = []

    def compute(self, tables: Mapping[str, Add], advance: Advance) -> None:
        """Hand out the rows of ``tables`` (``sums.USER_ROWS``, ``LIST_ROWS``), and keep what the sums are made of."""
        rows_of_users = self.usable.user_rows
        totals = sums.ListTotals(rows_of_users.job, self._sums, tables=tuple(tables), has_text_ids=True)
        n_all, counting, n_done = rows_of_users.n_rows, Lock(), 0

        def on_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
            nonlocal n_done
            rows = list(batches)
            for name, found in totals.add(rows):
                if name in tables:
                    tables[name](pa.Table.from_batches([found]))
                else:
                    yield name, found
            with counting:
                n_done += sum(batch.num_rows for batch in rows)
                advance(n_done, n_all)

        self._partials = rows_of_users.run(lambda _: on_bucket)

    @cached_property
    def _sums(self) -> dict[str, sums.Sum]:
        request, outputs = self.usable.request, self.usable.user_rows.job.outputs
        return {**sums.result_sums(request, outputs), **sums.check_sums(request)}

    @cached_property
    def _totals(self) -> dict[str, pa.Table]:
        found = sums.finished(self._sums, self._partials)
        self._partials = []  # they may be many
        return found

    def list_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the lists."""
        return list_counts.list_facts(self._totals[sums.LISTS], self.usable.request)

    @cached_property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the model on."""
        means = [self._totals[sums.METRICS]] if sums.METRICS in self._totals else []
        return pa.concat_tables([*means, to_exposures(self.usable)])

    @property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS`` from the baseline on; None where nothing is compared."""
        return self._totals.get(sums.COMPARISONS)
