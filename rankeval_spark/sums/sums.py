"""The small tables of an evaluation as sums: added up in the workers, finished where the rows of their keys meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregation import aggregate_state
from rankeval_spark.engine.aggregation.aggregate_state import AggregateLayout
from rankeval_spark.engine.checks.partition_tallies import PartitionTallies
from rankeval_spark.engine.checks.unusable_rows import refuse_without_usable
from rankeval_spark.engine.comparisons import comparison_state
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.bootstrap_intervals import WITH_SPREAD, BootstrapIntervals
from rankeval_spark.result_rows.comparison_rows import comparison_finisher
from rankeval_spark.result_rows.metric_rows import metric_finisher
from rankeval_spark.sums import input_counts, list_counts
from rankeval_spark.sums.grouping import applied

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.engine.outputs import ListOutputs, Part
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows

METRICS: Final = "metrics"
COMPARISONS: Final = "comparisons"
LISTS: Final = "lists"
ROWS: Final = "rows"
JUDGEMENTS: Final = "judgements"
ITEMS: Final = "items"


@dataclass(frozen=True)
class Sum:
    """A small table that is added up over all lists."""

    request: Request
    outputs: ListOutputs
    key: ClassVar[tuple[str, ...]] = ()  # columns of the partial rows that must meet; empty: all rows must

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - a sum that is made of the inputs reads none
        """Return the partial rows of some lists, in a worker."""
        return ()

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - of the inputs alone
        """Return the partial rows of the inputs of a partition, in a worker."""
        return ()

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge all partial rows of some keys, where they meet."""
        return rows

    def adjust(self, rows: pa.Table) -> pa.Table:
        """Complete the finished rows of all keys, in the driver."""
        return rows


class Means(Sum):
    """The means of ``metrics``, in the columns of ``schemas.METRICS`` from the model on."""

    key = aggregate_state.GROUP

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return moments of every slice."""
        return self.outputs.moments(part)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Unite moments, and make a row of each measure."""
        request, measures = self.request, self.request.measures
        layout = AggregateLayout.of(measures.columns, self.outputs.denominators, has_lists=self.outputs.averages_lists)
        if request.draws is not None:
            intervals = BootstrapIntervals(len(measures.columns), request.draws, request.confidence)
            rows = applied(rows.to_batches(), aggregate_state.GROUP, intervals.merge, WITH_SPREAD)
        found = metric_finisher(measures, layout, request.reported).finish(rows.combine_chunks().to_batches())
        return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


class Differences(Sum):
    """The rows of ``comparisons``, in the columns of ``schemas.COMPARISONS`` from the baseline on."""

    key = comparison_state.GROUP

    @cached_property
    def _rows(self) -> ComparisonRows:
        outputs = self.outputs
        return comparison_finisher(
            self.request, weights=outputs.denominators, has_judged_lists=outputs.has_judged_lists
        )

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return differences of the models of every slice."""
        return self.outputs.differences(part, self._rows.aggregator)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge differences, and test them."""
        return applied(rows.to_batches(), comparison_state.GROUP, self._rows.finish, arrow_schema(schemas.COMPARISONS))

    def adjust(self, rows: pa.Table) -> pa.Table:
        """Adjust the p-values: a family has all rows of a test."""
        return pa.Table.from_batches(self._rows.adjust(iter(rows.to_batches())), arrow_schema(schemas.COMPARISONS))


class ListCounts(Sum):
    """Counts of the checks of lists: rows of :data:`list_counts.COUNTS`."""

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return the counts of some lists."""
        lists = list_counts.counted_lists(part, self.request)
        yield from list_counts.list_counts(lists, self.request).to_batches()

    def finish(self, rows: pa.Table) -> pa.Table:
        """Add counts up."""
        return list_counts.united(rows)


class RowCounts(Sum):
    """Rows of the inputs by kind: rows of :data:`input_counts.ROWS`."""

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:
        """Return the rows of a partition by kind."""
        return input_counts.row_counts(tallies)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Refuse an input that has rows and none that can be used; here all counts meet."""
        refuse_without_usable(input_counts.to_row_counts(rows))
        return rows


class JudgementTallies(Sum):
    """Counts of the checks of judgements: rows of :data:`input_counts.TALLIES`."""

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:
        """Return the tallies of a partition."""
        return input_counts.judgement_tallies(tallies)


class UnmatchedItems(Sum):
    """Judgements whose item is in no list: rows of :data:`input_counts.TALLIES` that add up."""

    key = (C.ITEM_ID,)

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:
        """Return the items of a partition."""
        return input_counts.used_items(tallies)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Count the judgements of some items."""
        return input_counts.unmatched(rows)


@dataclass(frozen=True)
class Totals:
    """All sums of a request: what workers add up, and what becomes of it."""

    request: Request
    outputs: ListOutputs
    tallies_inputs: bool = False  # whether workers count what the checks ask of the log and the judgements

    @cached_property
    def sums(self) -> Mapping[str, Sum]:
        """The sums by name."""
        found: dict[str, type[Sum]] = {LISTS: ListCounts}
        if self.request.measures.columns:
            found[METRICS] = Means
            if self.request.comparisons is not None:
                found[COMPARISONS] = Differences
        if self.tallies_inputs:
            found |= {ROWS: RowCounts, JUDGEMENTS: JudgementTallies, ITEMS: UnmatchedItems}
        return {name: kind(self.request, self.outputs) for name, kind in found.items()}

    def add(self, job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum, of the users of a partition."""
        tallies = PartitionTallies(is_enabled=self.tallies_inputs)
        for part in job.parts(batches, tallies):
            yield from self.of_part(part)
        for name, one in self.sums.items():
            yield from ((name, rows) for rows in one.rest(tallies))

    def of_part(self, part: Part) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum, of some lists."""
        for name, one in self.sums.items():
            yield from ((name, rows) for rows in one.add(part))

    def finished(self, partials: Iterable[tuple[str, pa.RecordBatch]]) -> dict[str, pa.Table]:
        """Merge the partial rows of all lists in one place."""
        by_sum: dict[str, list[pa.RecordBatch]] = {}
        for name, rows in partials:
            by_sum.setdefault(name, []).append(rows)
        return self.adjusted({name: self.sums[name].finish(pa.Table.from_batches(own)) for name, own in by_sum.items()})

    def adjusted(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Complete finished rows; a table of the results without a row is there too."""
        none = {
            **{METRICS: arrow_schema(schemas.METRICS), COMPARISONS: arrow_schema(schemas.COMPARISONS)},
            **{LISTS: list_counts.COUNTS, ROWS: input_counts.ROWS},
            **dict.fromkeys((JUDGEMENTS, ITEMS), input_counts.TALLIES),
        }
        empty = {name: none[name].empty_table() for name in self.sums}
        return {**empty, **{name: self.sums[name].adjust(rows) for name, rows in tables.items()}}
