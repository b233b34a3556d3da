"""The host in this process: tables in, light frames over Arrow out, computed once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_texts
from rankeval_spark.engine.facts import require_input
from rankeval_spark.hosts.host import NUMBER, Host
from rankeval_spark.in_process import scored_rows
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.in_process.input_checks import (
    check_value_names,
    count_left_out,
    input_partials,
    warn_if_nothing_is_measured,
    warn_of_absent_models,
    warn_of_merged_lists,
    warn_of_unread_times,
)
from rankeval_spark.inputs.arrow.reading import (
    MAX_MEMORY,
    Tables,
    physical_bytes,
    refuse_large,
    to_source,
    unite_models,
)
from rankeval_spark.inputs.input_columns import read_inputs, refuse_missing
from rankeval_spark.inputs.places import release_copies
from rankeval_spark.refusals import raise_as_call
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.sums.examples import to_titles
from rankeval_spark.sums.exposures import TRAIN, CatalogueItems, group_by_catalogue
from rankeval_spark.sums.grouping import sort_by_key
from rankeval_spark.sums.input_checks import InputChecks, InputCounts
from rankeval_spark.sums.input_warnings import warn_of_left_out
from rankeval_spark.sums.sums import ITEMS, NO_WRITERS, ListTotals, finish_sums

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import FrameInputs
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.hosts.host import Advance
    from rankeval_spark.inputs.arrow.reading import Source
    from rankeval_spark.schemas import Schema
    from rankeval_spark.sums.sums import Sum, Writer

MAX_SIMILAR: Final = 20_000  # ids that a wrong one is compared with: some tenths of a second


def of_call(
    frames: Mapping[str, object],  # the inputs by their names; None where one is not given
    request: Request,
    inputs: FrameInputs,  # how each of them is read
) -> InProcess:
    """Read the inputs of a call of ``evaluate``; as many threads work at a time as Arrow has (``pa.cpu_count``)."""
    refuse_large(frames)

    def read(name: str, frame: object, schema: Schema) -> Source:
        return to_source(name, frame, schema, getattr(inputs, schema.name), request.time_zone)

    with raise_as_call():
        tables = Tables(**read_inputs(frames, request, read, unite_models, expected="a table"), are_checked=False)
    release_copies(above=physical_bytes() * MAX_MEMORY)
    refuse_missing(tables.all(), request)
    check_value_names(tables, request)
    if request.policies.is_attributed:
        warn_of_unread_times(tables)
        if request.policies.lists == "separate":
            warn_of_merged_lists(tables.recommendations)
    usable = Usable(tables, request, pa.cpu_count())
    warn_of_left_out(count_left_out(usable), request)
    return InProcess(usable)


class InProcess(Host[ResultTable]):
    """Usable rows in memory; results are tables in the order of their keys."""

    def __init__(self, usable: Usable) -> None:
        self.usable = usable
        self.request = usable.request

    @property
    def models(self) -> Sequence[str]:
        return self.usable.models

    @property
    def has_one_list(self) -> bool:
        return self.usable.has_one_list

    @property
    def given_columns(self) -> Mapping[str, Collection[str]]:
        return {source.name: source.given for source in self.usable.tables.all()}

    def describe_users(self) -> tuple[dict[str, tuple[int, bool]], list[str]]:
        tables, found = self.usable.tables, dict[str, tuple[int, bool]]()
        segments = pa.schema([]).empty_table() if tables.segments is None else tables.segments.table
        for name in (name for name in segments.column_names if name != C.USER_ID):
            values = pc.unique(segments[name]).drop_null()
            numbers = pc.match_substring_regex(values.cast(pa.string()), NUMBER)
            found[name] = (len(values), bool(pc.all(numbers).as_py()))
        own = [] if tables.user_values is None else pc.unique(tables.user_values.table[C.NAME]).drop_null().to_pylist()
        return found, sorted(own)

    def for_request(self, request: Request) -> InProcess:
        return InProcess(Usable(replace(self.usable.tables, are_checked=True), request, self.usable.n_threads))

    @property
    def job(self) -> Job:
        return self.usable.user_rows.job

    @property
    def counts_inputs(self) -> bool:
        return self.usable.tables.are_checked

    @cached_property
    def input_checks(self) -> InputChecks:
        usable = self.usable
        has_band_facts = bool(usable.segments_and_facts[1])
        return InputChecks(self.request, usable.row_checks, has_band_facts, usable.tables.are_checked)

    def totals(
        self, sums: Mapping[str, Sum], writers: Mapping[str, Writer] = NO_WRITERS, advance: Advance | None = None
    ) -> dict[str, pa.Table]:
        rows_of_users = self.usable.user_rows
        totals = ListTotals(rows_of_users.job, sums, tables=tuple(writers), has_text_ids=True)
        counting, n_done = Lock(), 0

        def on_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
            """Hand rows of tables to their writers, and yield the partial rows of sums; runs in several threads."""
            nonlocal n_done
            rows = list(batches)
            for name, found in totals.add(rows):
                if name in writers:
                    writers[name].add(pa.Table.from_batches([found]))
                else:
                    yield name, found
            if advance is not None:
                with counting:
                    n_done += sum(batch.num_rows for batch in rows)
                    advance(n_done, rows_of_users.n_rows)

        found = [*rows_of_users.run(lambda _: on_bucket, waits=bool(writers))]
        for catalogue, readers in group_by_catalogue(sums).items():
            items = require_input(self.usable.train if catalogue == TRAIN else self.usable.catalogue)
            found += CatalogueItems(readers).add(items.to_batches())
        found += input_partials(self.usable, self.input_checks) if ITEMS in sums else ()
        return finish_sums(sums, found)

    def input_totals(self) -> dict[str, pa.Table]:
        """Compute the sums of the input checks alone, by name of the sum; no list is made."""
        sums = self.input_checks.sums
        found = self.usable.counted_rows.run(lambda job: InputCounts(job, sums).add)
        return finish_sums(sums, [*found, *input_partials(self.usable, self.input_checks)])

    @cached_property
    def user_metrics(self) -> ResultTable:
        rows = sort_by_key(scored_rows.user_rows(self.usable.user_rows), (*C.LIST_KEY, C.K))
        return ResultTable(rows, "user_metrics")

    @cached_property
    def user_values(self) -> ResultTable:
        values = scored_rows.to_user_values(self.user_metrics.to_arrow(), self.request.measure_set)
        return ResultTable(values, "user_values")

    @cached_property
    def ranked_items(self) -> ResultTable:
        return ResultTable(scored_rows.to_ranked_items(self.usable), "ranked_items")

    @property
    def judged(self) -> ResultTable:
        held_out = self.usable.held_out
        return ResultTable(held_out.select([*schemas.HELD_OUT.key_in(held_out.column_names), C.GAIN]), "judged")

    def titles(self, items: Sequence[str]) -> dict[str, str]:
        source = self.usable.tables.items
        if source is None or C.TITLE not in source.table.column_names:
            return {}
        texts = pa.schema([(name, pa.string()) for name in (C.ITEM_ID, C.TITLE)])
        named = source.table.select(texts.names).cast(texts)
        return to_titles(named.filter(pc.is_in(named[C.ITEM_ID], value_set=to_texts(items))))

    def of_users(self, users: Sequence[str], request: Request) -> InProcess:
        tables, wanted = self.usable.tables, to_texts(users)

        def keep_users(source: Source) -> Source:
            is_kept = pc.is_in(source.table[C.USER_ID].cast(pa.string()), value_set=wanted)
            return replace(source, table=source.table.filter(is_kept), unreadable=None)

        log, held_out = keep_users(tables.recommendations), keep_users(tables.held_out)
        kept = replace(tables, recommendations=log, held_out=held_out, are_checked=True)
        refuse_missing(kept.all(), request)
        return InProcess(Usable(kept, request, self.usable.n_threads))

    def similar_users(self, user: str) -> Sequence[str]:
        tables = self.usable.tables
        inputs = (tables.recommendations.table, tables.held_out.table)
        ids = pa.concat_arrays([pc.unique(table[C.USER_ID]).cast(pa.string()) for table in inputs]).unique()
        is_near = pc.less_equal(pc.abs(pc.subtract(pc.utf8_length(ids), len(user))), 1)
        return [str(each) for each in ids.filter(is_near)[:MAX_SIMILAR].to_pylist()]

    def hit_ranks(self, ranked: ResultTable, model: str, baseline: str) -> ResultTable:
        return ResultTable(scored_rows.to_hit_ranks(ranked.to_arrow(), model, baseline), "hit_ranks")

    def agreement(self, baseline: str, *, k: int, p: float) -> ResultTable:
        return ResultTable(scored_rows.to_agreement(self.usable, baseline=baseline, k=k, p=p), "agreement")

    def frame(self, table: ResultTable) -> ResultTable:
        return table

    def warn(self, metrics: pa.Table, totals: Mapping[str, pa.Table]) -> None:  # noqa: ARG002 - those of Spark
        usable = self.usable
        warn_of_absent_models(usable.tables, self.request)
        warn_if_nothing_is_measured(metrics, usable.tables, usable.log, usable.held_out, self.request)
