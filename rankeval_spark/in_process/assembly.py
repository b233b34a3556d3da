"""From the tables of a request to the rows of its users in buckets, as the engine takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.request import request_of
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.buckets import MAX_LEVELS, hash_to_buckets
from rankeval_spark.engine.checks import (
    held_out_checks,
    item_checks,
    log_checks,
    refuse_by_check,
    segment_checks,
    train_checks,
    user_value_checks,
    user_weight_checks,
)
from rankeval_spark.engine.facts import FactSources, to_constants
from rankeval_spark.engine.planning import (
    SECOND_STEP,
    build_job,
    counted_needs,
    description_depth,
    event_times,
    is_described,
    item_needs,
    judgement_facts,
    log_columns,
    measure_needs,
    reads_optional,
    reads_train,
    train_columns,
)
from rankeval_spark.in_process.cooccurrence import Interactions, to_familiarity, to_pairs
from rankeval_spark.in_process.user_segments import to_segment_rows, to_segments
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    import datetime as dt

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.checks import RowChecks
    from rankeval_spark.engine.job import Job
    from rankeval_spark.inputs.arrow.reading import Tables
    from rankeval_spark.result_rows.check_rows import CheckCount


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[_Found]]
"""Function that a worker applies to the rows of some users."""

ROWS_OF_A_BUCKET: Final = 250_000  # rows of all inputs that are worked on at once by a thread: some 200 MB at its peak
FEW_ROWS: Final = 100_000  # up to so many rows there is one bucket
MAX_BUCKETS: Final = 65_536
UNREADABLE: Final = "_unreadable"  # whether a cell of a row of the catalogue could not be read

_ROWS_OF_A_PART: Final = 1 << 20
_ROWS_LOOKED_AT: Final = 1 << 16  # rows that are looked at together for the first that can be used
_LEVEL: Final = MAX_LEVELS + 1  # a bucket may be cut again by the engine, by other hashes than this


@dataclass(frozen=True)
class UserRows:
    """Rows of :mod:`engine.row_kinds` by bucket, and what is computed of them."""

    # all rows of some users each, in parts that may lack columns of one another
    buckets: tuple[tuple[pa.Table, ...], ...]
    job: Job
    n_threads: int  # buckets that are worked on at a time

    @property
    def n_rows(self) -> int:
        """Number of rows of all inputs."""
        return sum(part.num_rows for bucket in self.buckets for part in bucket)

    def run(self, work: Callable[[Job], Work[_Found]], *, waits: bool = False) -> list[_Found]:
        """Work on every bucket, such as by ``lambda job: job.user_rows``; results are in the order of the buckets.

        ``waits``: wait for the buckets that are worked on when an interruption ends the call, because they write files.
        """
        on_bucket = work(self.job)

        def found_of(bucket: tuple[pa.Table, ...]) -> list[_Found]:
            return list(on_bucket(pa.concat_tables(bucket, promote_options="default").to_batches()))

        return list(chain.from_iterable(run_in_threads(found_of, self.buckets, self.n_threads, waits=waits)))


def run_in_threads(
    work: Callable[[_Given], _Found], parts: Iterable[_Given], n_threads: int, *, waits: bool = False
) -> list[_Found]:
    """Run the work on every part, several at a time; numpy and pyarrow release the interpreter's lock.

    An interruption ends the call at once: no further part is begun, and those that are worked on are left to end, if
    the call does not wait for them.
    """
    given = list(parts)
    if n_threads == 1 or len(given) < 2:  # noqa: PLR2004 - a thread more than parts has nothing to do
        return [work(part) for part in given]
    pool = ThreadPoolExecutor(n_threads)
    try:
        found = list(pool.map(work, given))
    except KeyboardInterrupt:
        pool.shutdown(wait=waits, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    return found


def split_rows(table: pa.Table, n_rows: int = _ROWS_OF_A_PART) -> Iterator[pa.Table]:
    """Cut a table into parts: one without a row where it has none, for its columns."""
    for start in range(0, max(1, table.num_rows), n_rows):
        yield table.slice(start, n_rows)


def _split_by_bucket(kind: int, table: pa.Table, n_buckets: int) -> list[pa.Table]:
    """Cut a part of an input by the bucket of its users."""
    numbers = to_arrow(np.full(table.num_rows, kind, dtype=np.int8))
    if n_buckets == 1:
        return [table.append_column(row_kinds.KIND, numbers)]
    users = combine_chunks(table[C.USER_ID])
    if users.null_count:  # rows without a user are counted, in any bucket
        none = to_texts([""]) if pa.types.is_string(users.type) else to_arrow(np.zeros(1, np.int64))
        users = pc.coalesce(users, none.cast(users.type)[0])
    bucket = hash_to_buckets(users, level=_LEVEL, n_buckets=n_buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")  # by radix, which 16 bits are sorted with
    ordered = pc.take(table, to_arrow(order)).append_column(row_kinds.KIND, numbers)
    ends = np.append(0, np.cumsum(np.bincount(bucket, minlength=n_buckets))).tolist()
    return [ordered.slice(start, end - start) for start, end in pairwise(ends)]


def keep_requested_rows(log: pa.Table, request: Request) -> pa.Table:
    """Keep the rows of the named models and those without one; drop scores where ranks order the lists."""
    if request.models is not None and C.MODEL_ID in log.column_names:
        is_named = to_numpy(pc.is_in(log[C.MODEL_ID], value_set=to_texts([*request.models, None])))
        log = log if is_named.all() else log.filter(to_arrow(is_named))
    has_both = {C.SCORE, C.RANK} <= {*log.column_names}
    return log.drop_columns([C.SCORE]) if has_both and request.policies.ignores_scores else log


def keep_known_items(log: pa.Table, catalogue: pa.Table) -> pa.Table:
    """Keep the rows of a log whose item is in a catalogue."""
    known = pc.unique(catalogue[C.ITEM_ID])
    return log.filter(pc.is_in(log[C.ITEM_ID], value_set=known.cast(log[C.ITEM_ID].type)))


@dataclass(frozen=True)
class Usable:
    """Rows of a request's inputs, and those that can be used, each computed once."""

    tables: Tables  # all rows
    request: Request  # measures, slices and policies requested
    n_threads: int  # threads that work at a time

    @cached_property
    def requested(self) -> pa.Table:
        """Rows of the log that are of the request, those that cannot be used too."""
        return keep_requested_rows(self.tables.recommendations.table, self.request)

    def rows_of(self, name: str) -> pa.Table:
        """All rows of an input that there is; of a catalogue also which have a cell that could not be read."""
        if name == "recommendations":
            return self.requested
        source = next(source for source in self.tables.all() if source.name == name)
        lost = source.unreadable if name == "items" else None
        return source.table if lost is None else source.table.append_column(UNREADABLE, lost)

    @cached_property
    def row_checks(self) -> dict[str, RowChecks]:
        """The checks of the rows of each input that there is, by its name."""
        tables, policies = self.tables, self.request.policies
        unread = {C.VALUE, C.WEIGHT} - {*judgement_facts(self.request)}
        found = [
            log_checks(
                self.requested.column_names,
                invalid_scores=policies.invalid_scores,
                own_item=policies.own_item,
                are_judged=tables.are_checked,
            ),
            held_out_checks({*tables.held_out.table.column_names} - unread, own_item=policies.own_item),
        ]
        if tables.train is not None:
            day, zone = self.request.evaluation_date, self.request.time_zone
            found.append(train_checks(tables.train.table.column_names, before=day, time_zone=zone))
        if tables.items is not None:
            unreadable = None if tables.items.unreadable is None else UNREADABLE
            found.append(item_checks(tables.items.table.column_names, unreadable=unreadable))
        if tables.segments is not None:
            found.append(segment_checks())
        found += [user_value_checks()] if tables.user_values is not None else []
        found += [user_weight_checks()] if tables.user_weights is not None else []
        return {checks.input: checks for checks in found}

    def _usable(self, name: str) -> pa.Table:
        return self.row_checks[name].usable(self.rows_of(name))

    @cached_property
    def log(self) -> pa.Table:
        """Rows that enter lists, in the columns that decide about them."""
        log, catalogue = self._usable("recommendations"), self.catalogue
        is_kept = self.request.policies.unknown_items == "keep" or catalogue is None
        return log if is_kept else keep_known_items(log, catalogue)

    @cached_property
    def held_out(self) -> pa.Table:
        """Usable judgements."""
        return self._usable("held_out")

    @cached_property
    def train(self) -> pa.Table | None:
        """Training interactions."""
        return None if self.tables.train is None else self._usable("train")

    @cached_property
    def trained(self) -> Interactions | None:
        """The same, counted."""
        return None if self.train is None else Interactions.from_rows(self.train)

    @cached_property
    def items(self) -> pa.Table | None:
        """The catalogue."""
        return None if self.tables.items is None else self._usable("items")

    @property
    def catalogue(self) -> pa.Table | None:
        """A table whose ``item_id`` are all items: the catalogue or, where it is not given, the training data."""
        return self.train if self.items is None else self.items

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the expected models, or else of all models in the log, those of unusable rows too."""
        if self.request.models is not None:
            return tuple(self.request.models)
        log = self.tables.recommendations.table
        if C.MODEL_ID not in log.column_names:
            return (C.ONE_MODEL,)
        names_by_part = run_in_threads(pc.unique, (part[C.MODEL_ID] for part in split_rows(log)), self.n_threads)
        return tuple(sorted({name for names in names_by_part for name in names.to_pylist() if name is not None}))

    @property
    def has_one_list(self) -> bool:
        """True if no user has several lists of a model, because the log names no lists or they are pooled."""
        return self.tables.has_one_list

    @cached_property
    def segments_and_facts(self) -> tuple[pa.Table | None, list[CheckCount]]:
        """Segments of the users as text, numbers in bands; and what the checks count of the bands."""
        return to_segments({source.name: source.table for source in self.tables.all()}, self.request)

    @property
    def segments(self) -> pa.Table | None:
        """Segments of the users; None where no slice needs one."""
        return self.segments_and_facts[0] if self.request.segments else None

    @cached_property
    def needs(self) -> frozenset[str]:
        """Facts beyond ranks and gains that measures or checks read."""
        has_train = self.train is not None
        found = measure_needs(self.request, has_train=has_train, of_all_lists=True)
        return found | counted_needs(self.request, has_train=has_train) if self.tables.are_checked else found

    @cached_property
    def user_rows(self) -> UserRows:
        """The rows of all users; refused where an input has no usable row, unless checks judge that."""
        if not self.tables.are_checked:
            self.refuse_unusable()
        return self._build_user_rows(self.needs)

    @cached_property
    def plain_rows(self) -> UserRows:
        """The same for lists alone: nothing is described, and no user has a segment."""
        if not is_described(self.needs) and not self.request.slices:
            return self.user_rows
        return Usable(self.tables, self.request.copy_with(slices=()), self.n_threads)._build_user_rows(frozenset())

    @property
    def counted_rows(self) -> UserRows:
        """The rows of all users for the checks of the inputs, with the training data where one reads them."""
        wanted = counted_needs(self.request, has_train=self.train is not None)
        plain = self.request.copy_with(slices=())
        if wanted and not reads_train(plain, frozenset()):
            return Usable(self.tables, plain, self.n_threads)._build_user_rows(wanted)
        rows = self.plain_rows
        return replace(rows, job=replace(rows.job, needs=rows.job.needs | wanted))

    def ranked_items(self, *, depth: int) -> pa.Table:
        """Rank the items of every list, see :meth:`Job.ranked_items`; a depth of 0 keeps whole lists."""
        plain = self.plain_rows
        job = replace(plain.job, depth=depth, needs=frozenset())
        batches = replace(plain, job=job).run(lambda job: job.ranked_items)
        if batches:
            return pa.Table.from_batches(batches)
        user, item = (self.log.schema.field(name).type for name in (C.USER_ID, C.ITEM_ID))
        of_list = {} if self.has_one_list else {C.LIST_ID: pa.string()}
        fields = {C.MODEL_ID: pa.string(), C.USER_ID: user, **of_list}
        return pa.schema({**fields, C.ITEM_ID: item, C.RANK: pa.int32(), C.GAIN: pa.float64()}.items()).empty_table()

    def refuse_unusable(self) -> None:
        """Refuse an input that is read and has rows, but none that can be used; each is read up to the first."""
        for name, checks in self.row_checks.items():
            if name not in ("recommendations", "held_out") and not reads_optional(self.request, name, self.needs):
                continue
            counts = Counter[str | None]()
            for part in split_rows(self.rows_of(name), _ROWS_LOOKED_AT):
                flags = checks.flag_failures(part)
                counts.update(
                    {each.name: int(np.count_nonzero(flags[each.name])) for each in checks.checks if each.drops}
                )
                counts[None] += int(np.count_nonzero(checks.is_usable(flags)))
                if counts[None]:
                    break
            refuse_by_check(name, counts)

    def _build_user_rows(self, needs: frozenset[str]) -> UserRows:
        """Unite the inputs and cut them into buckets of whole users.

        The number of buckets depends on the number of rows alone, so that sums over users do not depend on the threads.
        """
        request, has_lists, log, rows = self.request, not self.has_one_list, self.requested, self._other_inputs(needs)
        names = log_columns(log.column_names, request, has_lists=has_lists)
        if len(self.models) == 1:
            names.remove(C.MODEL_ID)
            if C.MODEL_ID in log.column_names and log[C.MODEL_ID].null_count:
                is_named = pc.is_valid(log[C.MODEL_ID])
                rows = {row_kinds.UNNAMED: log.filter(pc.invert(is_named)).select(names), **rows}
                log = log.filter(is_named)
        job = build_job(
            request,
            names,
            needs=needs,
            models=self.models,
            has_lists=has_lists,
            judged_columns=rows[row_kinds.HELD_OUT].column_names,
            are_judged=self.tables.are_checked,
        )
        sources = FactSources(self.trained, self.items, request.evaluation_date)
        job = replace(job, constants=to_constants(sources, needs=item_needs(request, needs)))
        if C.SCORE in names and log.schema.field(C.SCORE).type == pa.float64():
            for kind in rows.keys() & row_kinds.CARRIED_BY.keys():  # one column less for every row of the log
                rows[kind] = rows[kind].rename_columns(row_kinds.CARRIED_BY[kind])
        rows = {row_kinds.LOG: log.select(names), **rows}
        n_rows = sum(table.num_rows for table in rows.values())
        n_buckets = 1 if n_rows <= FEW_ROWS else min(MAX_BUCKETS, -(-n_rows // ROWS_OF_A_BUCKET))
        parts = [(kind, part) for kind, table in rows.items() for part in split_rows(table)]
        cut = run_in_threads(lambda part: _split_by_bucket(*part, n_buckets), parts, self.n_threads)
        return UserRows(tuple(zip(*cut, strict=True)), job, self.n_threads)

    def _other_inputs(self, needs: frozenset[str]) -> dict[int, pa.Table]:
        """Tables of the inputs but for the log, each only where something reads it; co-occurrence of ranked items."""
        request, held_out = self.request, self.tables.held_out.table
        judged = [*schemas.HELD_OUT.key_in(held_out.column_names), C.GAIN, *judgement_facts(request)]
        judged += event_times(request, held_out.column_names)
        found = {row_kinds.HELD_OUT: held_out.select(judged), **self._user_tables()}
        if self.segments is not None:
            found[row_kinds.SEGMENTS] = to_segment_rows(self.segments, request.segments)
        if self.train is not None and reads_train(request, needs):
            found[row_kinds.TRAIN] = self.train.select(train_columns(request, self.train.column_names))
        if self.trained is not None and not needs.isdisjoint(SECOND_STEP):
            depth = description_depth(request.measure_set)
            ranked = self.ranked_items(depth=depth)
            if N.ITEM_FAMILIARITY in needs:
                found[row_kinds.FAMILIARITY] = to_familiarity(ranked, self.trained, depth)
            if N.ITEM_PAIRS in needs:
                found[row_kinds.PAIRS] = to_pairs(ranked, self.trained, depth)
        return found

    def _user_tables(self) -> dict[int, pa.Table]:
        """Usable rows of own values and of weights of users, such as measures read."""
        found, measures = dict[int, pa.Table](), self.request.measure_set
        if names := measures.user_value_names:
            rows = self._usable("user_values")
            rows = rows.filter(pc.is_in(rows[C.NAME], value_set=to_texts(names)))
            found[row_kinds.USER_VALUES] = rows.rename_columns(
                {C.NAME: row_kinds.VALUE_NAME, C.VALUE: row_kinds.USER_VALUE}
            )
        if N.USER_WEIGHTS in measures.needs:
            found[row_kinds.USER_WEIGHTS] = self._usable("user_weights").rename_columns(
                {C.WEIGHT: row_kinds.USER_VALUE}
            )
        return found


def last_shown(config: EvaluationConfig, date: dt.date) -> int | None:
    """Read when the last usable list of a run was shown, in microseconds since 1970; None without a time.

    Raises ForSparkError if Spark reads the log; InputError if a file is damaged, or the type of a column unreadable.
    """
    from rankeval_spark.inputs.arrow.file_inputs import open_input  # noqa: PLC0415 - only nights read files

    request = request_of(config, date)
    requested = keep_requested_rows(open_input(config, "recommendations", date).read().table, request)
    log = log_checks(requested.column_names, own_item=request.policies.own_item).usable(requested)
    if request.policies.unknown_items != "keep":
        catalogue = open_input(config, "train" if config.inputs.items is None else "items", date).read()
        log = keep_known_items(log, catalogue.table)
    if C.RECOMMENDED_AT not in log.column_names:
        return None
    keys = [name for name in C.LIST_KEY if name in log.column_names]
    shown = log.group_by(keys).aggregate([(C.RECOMMENDED_AT, "min")])[f"{C.RECOMMENDED_AT}_min"]
    found: int | None = pc.max(shown.cast(pa.int64())).as_py()
    return found


def moment_text(micros: int) -> str:
    """Write a time in UTC, also one after the year 9999.

    >>> moment_text(1), moment_text(253_402_300_800_000_000)
    ('1970-01-01T00:00:00.000001+00:00', '10000-01-01T00:00:00+00:00')
    """
    return f"{np.datetime64(micros, 'us')}".removesuffix(".000000") + "+00:00"
