"""From the tables of a request to the rows of its users in buckets, as the engine takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch.buckets import MOST_LEVELS, bucket_of
from rankeval_spark.engine.facts import FactSources, to_constants
from rankeval_spark.engine.planning import (
    SECOND_STEP,
    depth_of,
    is_described,
    item_needs,
    job_of,
    judgement_facts,
    log_columns,
    needs_of,
    reads_event_times,
    reads_train,
)
from rankeval_spark.in_process.cooccurrence import Interactions, to_familiarity, to_pairs
from rankeval_spark.in_process.row_flags import (
    of_known_items,
    refuse_unusable_inputs,
    usable_held_out,
    usable_keys,
    usable_recommendations,
)
from rankeval_spark.in_process.user_segments import to_segment_rows, to_segments
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.aggregation.parity_sums import Parity
    from rankeval_spark.engine.job import Job
    from rankeval_spark.inputs.arrow.input_tables import Tables
    from rankeval_spark.result_rows.check_rows import CheckCount


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[_Found]]
"""What a worker does with the rows of some users."""

ROWS_OF_A_BUCKET: Final = 250_000  # rows of all inputs that are worked on at once by a thread: some 200 MB at its peak
FEW_ROWS: Final = 100_000  # up to so many rows there is one bucket
MOST_BUCKETS: Final = 65_536

_ROWS_OF_A_PART: Final = 1 << 20
_LEVEL: Final = MOST_LEVELS + 1  # a bucket may be cut again by the engine, by other hashes than this


@dataclass(frozen=True)
class UserRows:
    """Rows of :mod:`engine.batch.row_kinds` by bucket, and what is computed of them."""

    # all rows of some users each, in parts that may lack columns of one another
    buckets: tuple[tuple[pa.Table, ...], ...]
    job: Job
    n_threads: int  # buckets that are worked on at a time

    def run(self, work: Callable[[Job], Work[_Found]]) -> list[_Found]:
        """Work on every bucket; what comes of them is in their order, whichever thread is the first.

        ``user_rows.run(lambda job: job.user_rows)``
        """
        on_bucket = work(self.job)

        def found_of(bucket: tuple[pa.Table, ...]) -> list[_Found]:
            return list(on_bucket(pa.concat_tables(bucket, promote_options="default").to_batches()))

        found = run_in_threads(found_of, self.buckets, self.n_threads)
        return list(chain.from_iterable(found))

    @property
    def n_rows(self) -> int:
        """Number of rows of all inputs."""
        return sum(part.num_rows for bucket in self.buckets for part in bucket)


def to_user_rows(inputs: Mapping[int, pa.Table], job: Job, *, n_threads: int) -> UserRows:
    """Unite the inputs and cut them into buckets of whole users.

    The number of buckets depends on the number of rows alone, so that sums over users do not depend on the threads.

    ``inputs``: tables by their number in :mod:`engine.batch.row_kinds`; each with ``user_id`` and the columns that the
    engine reads.
    """
    n_rows = sum(table.num_rows for table in inputs.values())
    n_buckets = 1 if n_rows <= FEW_ROWS else min(MOST_BUCKETS, -(-n_rows // ROWS_OF_A_BUCKET))
    parts = [(kind, part) for kind, table in inputs.items() for part in in_parts(table)]
    cut = run_in_threads(lambda part: _cut(*part, n_buckets), parts, n_threads)
    return UserRows(tuple(zip(*cut, strict=True)), job, n_threads)


def in_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Cut a table into parts for threads: one without a row where it has none, for its columns."""
    for start in range(0, max(1, table.num_rows), _ROWS_OF_A_PART):
        yield table.slice(start, _ROWS_OF_A_PART)


def run_in_threads(work: Callable[[_Given], _Found], parts: Iterable[_Given], n_threads: int) -> list[_Found]:
    """Run the work on every part, several at a time; numpy and pyarrow release the interpreter's lock."""
    given = list(parts)
    if n_threads == 1 or len(given) < 2:  # noqa: PLR2004 - a thread more than parts has nothing to do
        return [work(part) for part in given]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, given))


def _cut(kind: int, table: pa.Table, n_buckets: int) -> list[pa.Table]:
    """Cut a part of an input by the bucket of its users."""
    numbers = to_arrow(np.full(table.num_rows, kind, dtype=np.int8))
    if n_buckets == 1:
        return [table.append_column(row_kinds.KIND, numbers)]
    bucket = bucket_of(in_one_piece(table[C.USER_ID]), level=_LEVEL, n_buckets=n_buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")  # by radix, which 16 bits are sorted with
    ordered = pc.take(table, to_arrow(order)).append_column(row_kinds.KIND, numbers)
    ends = np.append(0, np.cumsum(np.bincount(bucket, minlength=n_buckets))).tolist()
    return [ordered.slice(start, end - start) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Usable:
    """The usable rows of the inputs of a request, each computed once."""

    tables: Tables  # all rows
    request: Request  # measures, slices and policies requested
    n_threads: int  # threads that work at a time

    @cached_property
    def log(self) -> pa.Table:
        """Rows that enter lists, in the columns that decide about them; an input without any is refused."""
        policies, are_checked = self.request.policies, self.tables.are_checked
        log = usable_recommendations(self.tables.recommendations, self.request, are_checked=are_checked)
        if not are_checked:
            refuse_unusable_inputs(self.tables, self.request, log=log, held_out=self.held_out)
        if policies.score_precision == "single" and C.SCORE in log.column_names:
            single = log[C.SCORE].cast(pa.float32(), safe=False).cast(pa.float64())
            log = log.set_column(log.schema.get_field_index(C.SCORE), C.SCORE, single)
        if policies.unknown_items == "drop" and self.catalogue is not None:
            log = of_known_items(log, self.catalogue)
        return log

    @property
    def has_one_list(self) -> bool:
        """Whether no user has several lists of a model, or all of them are one."""
        return self.tables.has_one_list

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models that are expected, or that the log names, be it only in rows that cannot be used."""
        if self.request.models is not None:
            return tuple(self.request.models)
        log = self.tables.recommendations.table
        if C.MODEL_ID not in log.column_names:
            return (C.ONE_MODEL,)
        names = run_in_threads(pc.unique, (part[C.MODEL_ID] for part in in_parts(log)), self.n_threads)
        return tuple(sorted({name for some in names for name in some.to_pylist() if name is not None}))

    @cached_property
    def held_out(self) -> pa.Table:
        """Usable judgements."""
        return usable_held_out(self.tables.held_out)

    @property
    def has_judged_lists(self) -> bool:
        """Whether judgements belong to the lists that they name."""
        return C.LIST_ID in self.held_out.column_names

    @cached_property
    def train(self) -> pa.Table | None:
        """Training interactions."""
        return None if self.tables.train is None else usable_keys(self.tables.train, (C.USER_ID, C.ITEM_ID))

    @cached_property
    def trained(self) -> Interactions | None:
        """The same, counted."""
        return None if self.train is None else Interactions.of(self.train)

    @cached_property
    def items(self) -> pa.Table | None:
        """The catalogue."""
        return None if self.tables.items is None else usable_keys(self.tables.items, (C.ITEM_ID,))

    @property
    def catalogue(self) -> pa.Table | None:
        """A table whose ``item_id`` are all items: the catalogue or, where it is not given, the training data."""
        return self.train if self.items is None else self.items

    @cached_property
    def segments_and_facts(self) -> tuple[pa.Table | None, list[CheckCount]]:
        """Segments of the users as text, numbers in bands; and what the checks count of the bands."""
        source = self.tables.segments
        segments = None if source is None else source.table
        train = None if self.tables.train is None else self.tables.train.table
        return to_segments(segments, train, self.request)

    @property
    def segments(self) -> pa.Table | None:
        """Segments of the users; None where no slice needs one."""
        return self.segments_and_facts[0] if self.request.segments else None

    @cached_property
    def needs(self) -> frozenset[str]:
        """Facts beyond ranks and gains that measures or checks read."""
        return needs_of(self.request, has_train=self.train is not None)

    @cached_property
    def user_rows(self) -> UserRows:
        """The rows of all users, with what measures read of items and users."""
        return self._united(self.needs)

    @cached_property
    def plain_rows(self) -> UserRows:
        """The same for lists alone: nothing is described, and no user has a segment."""
        plain = self.request.changed(slices=())
        if not is_described(self.needs) and not self.request.slices:
            return self.user_rows
        return Usable(self.tables, plain, self.n_threads)._united(frozenset())

    def ranked_items(self, *, depth: int) -> pa.Table:
        """Rank the items of every list, see :meth:`Job.ranked_items`; a depth of 0 keeps whole lists."""
        plain = self.plain_rows
        job = replace(plain.job, depth=depth, needs=frozenset())
        batches = replace(plain, job=job).run(lambda job: job.ranked_items)
        return pa.Table.from_batches(batches) if batches else _no_ranked_items(self)

    def parity_counts(self, counter: Parity) -> list[pa.RecordBatch]:
        """Count what measures of parity read, see :meth:`Job.parity`."""
        needs = frozenset(need for one in counter.measures for need in one.needs)
        return self._united(needs).run(lambda job: lambda batches: job.parity(batches, counter=counter))

    def _united(self, needs: frozenset[str]) -> UserRows:
        request, has_lists = self.request, not self.has_one_list
        names = log_columns(self.log.column_names, request, has_lists=has_lists)
        if len(self.models) == 1:
            names.remove(C.MODEL_ID)
        job = job_of(
            request,
            self.log.column_names,
            needs=needs,
            models=self.models,
            has_lists=has_lists,
            has_judged_lists=self.has_judged_lists,
        )
        sources = FactSources(self.trained, self.items, request.evaluation_date)
        job = replace(job, constants=to_constants(sources, needs=item_needs(needs)))
        log, others = self.log.select(names), self._others(needs)
        if C.SCORE in names and log.schema.field(C.SCORE).type == pa.float64():
            held_out = others[row_kinds.HELD_OUT]  # one column less to fill with NULL for every row of the log
            others[row_kinds.HELD_OUT] = held_out.rename_columns({C.GAIN: C.SCORE})
        return to_user_rows({row_kinds.LOG: log, **others}, job, n_threads=self.n_threads)

    def _others(self, needs: frozenset[str]) -> dict[int, pa.Table]:
        """Tables of the inputs but for the log, each only where something reads it."""
        request = self.request
        judged = [*schemas.HELD_OUT.key_in(self.held_out.column_names), C.GAIN, *judgement_facts(request)]
        judged += [C.INTERACTED_AT] if reads_event_times(request) else []
        found = {row_kinds.HELD_OUT: self.held_out.select(judged)}
        if self.segments is not None:
            found[row_kinds.SEGMENTS] = to_segment_rows(self.segments, request.segments)
        if self.train is not None and reads_train(request, needs):
            found[row_kinds.TRAIN] = self.train.select([C.USER_ID, C.ITEM_ID])
        return found | self._cooccurrence_rows(needs)

    def _cooccurrence_rows(self, needs: frozenset[str]) -> dict[int, pa.Table]:
        """Rows of co-occurrence, which are made of the ranked items."""
        if needs.isdisjoint(SECOND_STEP) or self.trained is None:
            return {}
        depth = depth_of(self.request.measure_set)
        ranked, found = self.ranked_items(depth=depth), {}
        if N.ITEM_FAMILIARITY in needs:
            found[row_kinds.FAMILIARITY] = to_familiarity(ranked, self.trained, depth)
        if N.ITEM_PAIRS in needs:
            found[row_kinds.PAIRS] = to_pairs(ranked, self.trained, depth)
        return found


def _no_ranked_items(usable: Usable) -> pa.Table:
    """Return no row in the columns of the others."""
    user, item = (usable.log.schema.field(name).type for name in (C.USER_ID, C.ITEM_ID))
    key = {C.MODEL_ID: pa.string(), C.USER_ID: user}
    key |= {} if usable.has_one_list else {C.LIST_ID: pa.string()}
    rest = {C.ITEM_ID: item, C.RANK: pa.int32(), C.GAIN: pa.float64(), "_is_first": pa.bool_()}
    return pa.schema([*key.items(), *rest.items()]).empty_table()
