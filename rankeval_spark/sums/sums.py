"""The small tables of an evaluation as sums: added up in the workers, finished where the rows of their keys meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine import aggregates, paired_differences
from rankeval_spark.engine.aggregates import AggregateLayout
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.engine.checks import PartitionTallies
from rankeval_spark.engine.slices import USER_HASH
from rankeval_spark.result_rows import trace_rows
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.comparison_rows import build_comparison_rows
from rankeval_spark.result_rows.gap_rows import P_SCHEMA
from rankeval_spark.result_rows.metric_rows import WITH_SPREAD, BootstrapIntervals, MetricRows, find_unsupported
from rankeval_spark.sums import check_counts, grouping
from rankeval_spark.sums.grouping import apply_by_key, sort_by_key

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.engine.outputs import ListOutputs, Part
    from rankeval_spark.measures import Measure
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows
    from rankeval_spark.result_rows.gap_rows import GapBootstrap
    from rankeval_spark.sums.published import PublishedLists

METRICS: Final = "metrics"
COMPARISONS: Final = "comparisons"
LISTS: Final = "list_counts"
ITEMS: Final = "items"  # of the log, the judgements and the catalogue; with it, workers count the inputs
GAP_TESTS: Final = "gap_tests"
TRACES: Final = "traces"

USER_ROWS: Final = schemas.USER_METRICS.name  # rows of users and of lists, which the same pass can return
LIST_ROWS: Final = schemas.LISTS.name


class Sum:
    """A small table that is added up over all lists."""

    schema: pa.Schema  # of the rows that come of it
    key: ClassVar[tuple[str, ...]] = ()  # columns of the partial rows that must meet; empty: all rows must
    into: str | None = None  # name of the sum that the finished rows are partial rows of; None: they are results

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - a sum that is made of the inputs reads none
        """Return the partial rows of some lists, in a worker."""
        return ()

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - one of lists reads none
        """Return the partial rows of some users of one night or several, in a worker; see :mod:`published`."""
        return ()

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - of the inputs alone
        """Return the partial rows of the inputs of a partition, in a worker."""
        return ()

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge all partial rows of some keys, where they meet."""
        return rows

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - most need no others
        """Complete the finished rows of all keys, in the driver; ``totals`` are those of the other sums."""
        return rows


@dataclass(frozen=True)
class Means(Sum):
    """The means in ``metrics``: ``schemas.METRICS`` without the key of their run.

    Where measures weigh impressions, there are rows of :func:`measure_set.mean_weight` too, for the checks.
    """

    request: Request
    outputs: ListOutputs
    schema = arrow_schema(schemas.METRICS)
    key = aggregates.GROUP

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        return self.outputs.moments(part)

    def finish(self, rows: pa.Table) -> pa.Table:
        request, measures = self.request, self.outputs.computed
        denominators, has_lists = self.outputs.denominators, self.outputs.averages_lists
        layout = AggregateLayout.from_columns(measures.columns, denominators, has_lists=has_lists)
        if request.draws is not None:
            intervals = BootstrapIntervals(len(measures.columns), request.draws, request.intervals.confidence)
            rows = apply_by_key(rows, aggregates.GROUP, intervals.merge, WITH_SPREAD)
        found = MetricRows(measures, layout, request.reported).finish(rows.combine_chunks().to_batches())
        return pa.Table.from_batches(found, self.schema)


@dataclass(frozen=True)
class Differences(Sum):
    """The rows of ``comparisons``: ``schemas.COMPARISONS`` without the key of their run."""

    request: Request
    outputs: ListOutputs
    metrics: pa.Table | None = None  # the rows of ``metrics``, where they are published and not among the sums
    model: str | None = None  # the only one that is compared with the baseline
    schema = arrow_schema(schemas.COMPARISONS)
    key = paired_differences.GROUP

    @cached_property
    def _rows(self) -> ComparisonRows:
        outputs = self.outputs
        return build_comparison_rows(
            self.request, weights=outputs.denominators, has_judged_lists=outputs.has_judged_lists
        )

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        return self.outputs.differences(part, self._rows.aggregator)

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:
        (users,), (lists,), aggregator = nights, rows, self._rows.aggregator
        has_items = (pc.field(C.K) == aggregator.requested.ks[0]) & (pc.field(C.N_RECOMMENDED) > 0)
        yield from aggregator.count_lists(lists.filter(has_items))
        hashed = users.append_column(USER_HASH, to_arrow(hash_users(users[C.USER_ID])))
        yield from aggregator.aggregate_rows(iter(sort_by_key(hashed, (USER_HASH, C.USER_ID)).to_batches()))

    def unjudged_partials(self, metrics: pa.Table) -> Iterable[pa.RecordBatch]:
        """Return partial rows for users whom published rows of users leave out, as ``metrics`` counts them."""
        return self._rows.unjudged_partials(metrics)

    def finish(self, rows: pa.Table) -> pa.Table:
        return apply_by_key(rows, paired_differences.GROUP, self._rows.finish, self.schema)

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:
        """Adjust the p-values, but of values with too little support: a family has all rows of a test."""
        metrics = totals.get(METRICS) if self.metrics is None else self.metrics
        unsupported = frozenset() if metrics is None else find_unsupported(metrics)
        rows = rows if self.model is None else rows.filter(pc.equal(rows[C.MODEL_ID], self.model))
        return pa.Table.from_batches(self._rows.adjust(iter(rows.to_batches()), unsupported), self.schema)


@dataclass(frozen=True)
class GapTests(Sum):
    """A p of each gap between groups of users, which are known from ``metrics``."""

    resampling: GapBootstrap
    schema = P_SCHEMA
    key = ("test",)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        return self.resampling.draw(iter(part.users.to_batches()))

    def finish(self, rows: pa.Table) -> pa.Table:
        return apply_by_key(rows, self.key, self.resampling.merge, self.schema)


@dataclass(frozen=True)
class ListCounts(Sum):
    """Counts that the checks of lists read: rows of :data:`check_counts.COUNTS`."""

    request: Request
    schema = check_counts.COUNTS

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        lists = check_counts.list_check_rows(part)
        yield from check_counts.count_lists(lists, self.request).to_batches()

    def finish(self, rows: pa.Table) -> pa.Table:
        return check_counts.sum_counts(rows)


@dataclass(frozen=True)
class Traces(Sum):
    """How the value of each list comes about, of one measure: for the lists of a few users."""

    measure: Measure
    schema = trace_rows.SCHEMA

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        n_lists = len(part.members.is_evaluated)
        return (trace_rows.to_trace_rows(part, place, self.measure) for place in range(n_lists))


class Files(Sum):
    """Files that workers wrote of a table, see :class:`Writer`."""

    schema = pa.schema([("add", pa.string())])


class Addition(Protocol):
    """The work on a partition: rows of whole users in, partial rows of sums out."""

    @property
    def sums(self) -> Mapping[str, Sum]:
        """The sums by name."""

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum for the users of a partition."""


class Writer(Protocol):
    """A table that takes rows while sums are added up; a copy that travels to a worker is empty."""

    def add(self, rows: pa.Table) -> None:
        """Add rows, from any thread."""

    def drain(self) -> pa.RecordBatch:
        """Write what was added; return the files, in the columns of :class:`Files`."""

    def adopt(self, files: pa.Table) -> None:
        """Add files that copies drained."""


NO_WRITERS: Final[Mapping[str, Writer]] = MappingProxyType({})


def result_sums(request: Request, outputs: ListOutputs) -> dict[str, Sum]:
    """Return the sums that result tables are made of."""
    if not request.measure_set.columns:
        return {}
    compared = {} if request.comparisons is None else {COMPARISONS: Differences(request, outputs)}
    return {METRICS: Means(request, outputs), **compared}


@dataclass(frozen=True)
class ListTotals:
    """Sums of lists, and the rows of users and lists that the same pass returns."""

    lists: Job | PublishedLists
    sums: Mapping[str, Sum]
    tables: tuple[str, ...] = ()  # USER_ROWS, LIST_ROWS
    has_text_ids: bool = False  # whether ids in them become texts, as all published tables have them

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield each sum's partial rows and each table's rows for the users of a partition."""
        tallies = PartitionTallies(is_enabled=ITEMS in self.sums)
        for part in self.lists.parts(batches, tallies):
            for table in self.tables:
                rows = part.user_rows if table == USER_ROWS else _list_rows(part)
                yield table, ids_to_text(rows) if self.has_text_ids else rows
            for name, sum_ in self.sums.items():
                yield from ((name, rows) for rows in sum_.add(part))
        for name, sum_ in self.sums.items():
            yield from ((name, rows) for rows in sum_.rest(tallies))


def _list_rows(part: Part) -> pa.RecordBatch:
    """Return lists in the columns of ``schemas.LISTS``, without the key of the run; NULL where no measure needs one."""
    outputs, lists, schema = part.outputs, part.lists, arrow_schema(schemas.LISTS)
    unread = {C.HIT_SCORES} - outputs.measures.needs
    unread |= set() if outputs.policies.rank_gaps == "keep" else {C.EMPTY_RANKS}
    none = pa.nulls(len(lists[C.USER_ID]))
    columns = [lists[name] if name in lists and name not in unread else none for name in schema.names]
    cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)


def ids_to_text(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return ids as text, as all published tables hold them."""
    for place, name in enumerate(rows.schema.names):
        if name in C.LIST_KEY and rows[name].type != pa.string():
            rows = rows.set_column(place, name, rows[name].cast(pa.string()))
    return rows


def finish_sums(sums: Mapping[str, Sum], partials: Iterable[tuple[str, pa.RecordBatch]]) -> dict[str, pa.Table]:
    """Merge the partial rows of all users in one place."""
    by_sum: dict[str, list[pa.RecordBatch]] = {}
    for name, rows in partials:
        by_sum.setdefault(name, []).append(rows)
    for name, sum_ in sums.items():
        if sum_.into is not None and name in by_sum:
            for rows in sum_.finish(pa.Table.from_batches(by_sum.pop(name))).to_batches():
                by_sum.setdefault(sum_.into, []).append(rows)
    tables = {name: sums[name].finish(pa.Table.from_batches(batches)) for name, batches in by_sum.items()}
    return adjust_sums(sums, tables)


def adjust_sums(sums: Mapping[str, Sum], tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Complete finished rows; a sum without a row is there too."""
    results = {name: sum_ for name, sum_ in sums.items() if sum_.into is None}
    found = {name: sum_.adjust(tables.get(name, sum_.schema.empty_table()), tables) for name, sum_ in results.items()}
    return {name: grouping.refuse_large(rows, most=grouping.MAX_ROWS) for name, rows in found.items()}
