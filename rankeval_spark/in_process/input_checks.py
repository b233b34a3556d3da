"""Counts of what is wrong with the inputs of an evaluation, on tables in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import CodedRows, Owners
from rankeval_spark.engine.batch.codes import Codes, starts_of_runs, to_codes
from rankeval_spark.engine.checks import judged_users
from rankeval_spark.engine.planning import judgement_facts
from rankeval_spark.engine.ranking.matching import to_judgements
from rankeval_spark.in_process import row_flags
from rankeval_spark.measures import required_facts as N
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import HELD_OUT, ITEMS, RECOMMENDATIONS, CheckCount
from rankeval_spark.sums import check_counts
from rankeval_spark.sums.check_counts import sample_value_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.input_tables import Source, Tables
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


@dataclass(frozen=True)
class RowFacts:
    """Facts of the rows of the inputs; tables that several checks read are made once."""

    tables: Tables
    request: Request

    def all(self, band_facts: Sequence[CheckCount]) -> Iterator[CheckCount]:
        """Count all that does not depend on the lists."""
        tables, request = self.tables, self.request
        log = row_flags.requested_log(tables.recommendations, request)
        yield from _row_facts(log, row_flags.flag_recommendations(log), schemas.RECOMMENDATIONS.key)
        held_out = tables.held_out
        of_held_out = row_flags.flag_held_out(held_out, reads=judgement_facts(request))
        yield from _row_facts(held_out, of_held_out, schemas.HELD_OUT.key_in(held_out.table.column_names))
        yield from self._of_judgements()
        yield self._unmatched_items()
        if self._owners is not None:
            yield self._unmatched_lists(self._owners)
        if tables.train is not None:
            of_train = row_flags.flag_train(tables.train, since=request.evaluation_date)
            yield from _row_facts(tables.train, of_train, schemas.TRAIN.key)
        if tables.items is not None:
            yield from _item_facts(tables.items, has_vectors=N.VECTOR in request.measure_set.requiring())
        yield from self._of_catalogue()
        if request.policies.seen_in_train == "drop" and tables.train is not None:
            yield _seen_fact(self._log, tables.train)
        yield from band_facts
        yield from self._of_segments()

    @cached_property
    def _log(self) -> pa.Table:
        log, are_checked = self.tables.recommendations, self.tables.are_checked
        return row_flags.usable_recommendations(log, self.request, are_checked=are_checked)

    @cached_property
    def _listed(self) -> pa.Array:
        """The different items of the log."""
        return pc.unique(self._log[C.ITEM_ID])

    @cached_property
    def _held_out(self) -> pa.Table:
        return row_flags.usable_held_out(self.tables.held_out)

    @cached_property
    def _judged_users(self) -> Codes:
        return to_codes(self._held_out[C.USER_ID])

    @cached_property
    def _owners(self) -> Owners | None:
        """The lists of judged users, where judgements name lists."""
        if C.LIST_ID not in self._held_out.column_names:
            return None
        users, log = self._judged_users, self._log
        place = to_numpy(pc.index_in(in_one_piece(log[C.USER_ID]), value_set=users.values), null=-1)
        rows = np.flatnonzero(place >= 0)
        of_log = pc.take(in_one_piece(log[C.LIST_ID]), to_arrow(rows))
        return Owners.of((place[rows], of_log), (users.code, in_one_piece(self._held_out[C.LIST_ID])))

    @cached_property
    def _judged_items(self) -> Codes:
        return to_codes(self._held_out[C.ITEM_ID])

    def of_segment_rows(self) -> Iterator[CheckCount]:
        """Count the rows of the segments, and those without a user."""
        segments = self.tables.segments
        if segments is not None:
            yield from _row_facts(segments, row_flags.flag_keys(segments, C.SEGMENT_KEY), C.SEGMENT_KEY)

    def _of_judgements(self) -> tuple[CheckCount, CheckCount]:
        """Count judgements that repeat another, and users without a relevant one."""
        users, owners = self._judged_users, self._owners
        of_rows = users.code if owners is None else owners.held_out
        names = [name for name in (C.GAIN, C.INTERACTED_AT) if name in self._held_out.column_names]
        gains = {name: in_one_piece(self._held_out[name]) for name in names}
        judged = CodedRows(of_rows, self._judged_items.code, gains)
        policy = self.request.policies.held_out_duplicates
        owner, gain = _judgements(judged, self._judged_items.n_values, policy)
        owner = owner if owners is None else owners.user[owner]
        _, is_repeated, has_none = judged_users(users.code, owner, gain, n_users=users.n_values)
        n_copies = len(users.code) - len(owner)
        repeated, without = (sample_value_keys(users.values, of) for of in (is_repeated, has_none))
        return (
            _fact(HELD_OUT, check_rows.DUPLICATES, n_copies, len(users.code), repeated),
            _fact(HELD_OUT, check_rows.ZERO_RELEVANT, np.count_nonzero(has_none), users.n_values, without),
        )

    def _unmatched_items(self) -> CheckCount:
        """Count judgements whose item is in no list at all: the sign of ids that do not fit together."""
        items = self._judged_items
        is_unmatched: BoolVector = ~to_numpy(pc.is_in(items.values, value_set=self._listed))
        n_rows = np.bincount(items.code, minlength=items.n_values)
        count, unmatched = n_rows[is_unmatched].sum(), sample_value_keys(items.values, is_unmatched)
        return _fact(HELD_OUT, check_rows.UNMATCHED_ITEMS, count, len(items.code), unmatched)

    def _unmatched_lists(self, owners: Owners) -> CheckCount:
        """Count judgements of lists that the log does not have."""
        is_listed = np.bincount(owners.log, minlength=len(owners.user)) > 0
        is_unmatched: BoolVector = ~is_listed[owners.held_out]
        samples = check_counts.sample_row_keys(self._held_out, (C.USER_ID, C.LIST_ID), is_unmatched)
        count, total = np.count_nonzero(is_unmatched), len(is_unmatched)
        return _fact(HELD_OUT, row_kinds.UNMATCHED_LISTS, count, total, samples)

    def _of_catalogue(self) -> Iterator[CheckCount]:
        """Count the recommended items that the catalogue lacks and, where they are dropped, their rows.

        Where items are dropped, ``train`` is the catalogue if there is no other.
        """
        is_dropped = self.request.policies.unknown_items == "drop"
        catalogue = self.tables.items or (self.tables.train if is_dropped else None)
        if catalogue is None:
            return
        known = in_one_piece(catalogue.table[C.ITEM_ID])
        items = self._listed
        is_unknown: BoolVector = ~to_numpy(pc.is_in(items, value_set=known))
        unknown = sample_value_keys(items, is_unknown)
        yield _fact(RECOMMENDATIONS, check_rows.UNKNOWN_ITEMS, np.count_nonzero(is_unknown), len(items), unknown)
        if is_dropped:
            is_of_unknown = pc.is_in(self._log[C.ITEM_ID], value_set=items.filter(to_arrow(is_unknown)))
            count, total = np.count_nonzero(to_numpy(is_of_unknown)), self._log.num_rows
            yield _fact(RECOMMENDATIONS, check_rows.UNKNOWN_ROWS, count, total, unknown)

    def _of_segments(self) -> Iterator[CheckCount]:
        """Check for values that are alike among the segments that are text in the table."""
        names = [name for name in self.request.segments if name not in self.request.bands]
        if names and self.tables.segments is not None:
            segments = row_flags.usable_keys(self.tables.segments, C.SEGMENT_KEY)
            values = ((name, pc.unique(segments[name]).drop_null().to_pylist()) for name in names)  # a few of each
            yield check_rows.alike_values((name, value) for name, some in values for value in some)


def _row_facts(source: Source, flags: row_flags.Flags, keys: Sequence[str]) -> Iterator[CheckCount]:
    """Count the rows, and those that do not pass each check."""
    table, n_rows = source.table, source.table.num_rows
    yield CheckCount(source.name, check_rows.ROWS, n_rows, n_rows)
    for check, flag in flags.items():
        samples = check_counts.sample_row_keys(table, keys, flag)
        yield CheckCount(source.name, check, int(np.count_nonzero(flag)), n_rows, samples)


def _fact(name: str, check: str, count: SupportsInt, total: SupportsInt, samples: list[str]) -> CheckCount:
    return CheckCount(name, check, int(count), int(total), samples)


def _judgements(judged: CodedRows, n_items: int, policy: str) -> tuple[IntVector, FloatVector]:
    """Return owner and gain of each judgement: one per (owner, item).

    Copies are only counted here, and refused where the lists are made.
    """
    pairs = np.sort(judged.user * n_items + judged.item)
    if starts_of_runs(pairs).all():  # a sort of numbers takes a third of the time of the general way
        return judged.user, to_numpy(judged.columns[C.GAIN])
    once = to_judgements(judged, n_items=n_items, duplicates="max" if policy == "error" else policy)
    return once.owner, once.gain


def _item_facts(items: Source, *, has_vectors: bool) -> Iterator[CheckCount]:
    """Count rows, NULL keys and facts that cannot be used, items with several rows, and vectors of another length."""
    yield from _row_facts(items, row_flags.flag_items(items), schemas.ITEMS.key)
    named = row_flags.usable_keys(items, schemas.ITEMS.key)
    codes = to_codes(named[C.ITEM_ID])
    more = np.bincount(codes.code, minlength=codes.n_values) - 1
    yield _fact(ITEMS, check_rows.DUPLICATES, more.sum(), len(codes.code), sample_value_keys(codes.values, more > 0))
    if has_vectors:
        yield _vector_fact(named)


def _vector_fact(items: pa.Table) -> CheckCount:
    """Count the items by the length of their vector; one some of whose numbers are no numbers has no length."""
    vectors = in_one_piece(items[C.VECTOR])
    has_vector = to_numpy(pc.is_valid(vectors)) & ~row_flags.has_invalid_number(items[C.VECTOR])
    length = to_numpy(pc.list_value_length(vectors), null=0)[has_vector]
    ids = in_one_piece(items[C.ITEM_ID]).filter(to_arrow(has_vector))
    lengths, n_items = (each.tolist() for each in np.unique(length, return_counts=True))
    first = [sample_value_keys(ids, length == each)[0] for each in lengths]
    return check_rows.vector_lengths(zip(lengths, n_items, first, strict=True))


def _seen_fact(log: pa.Table, train: Source) -> CheckCount:
    """Count the recommendations whose item the user has in the training data, in the whole log."""
    users, items = to_codes(log[C.USER_ID]), to_codes(log[C.ITEM_ID])
    owned = row_flags.usable_keys(train, schemas.TRAIN.key)
    user, item = (
        to_numpy(pc.index_in(in_one_piece(owned[name]), value_set=codes.values), null=-1).astype(np.int64)
        for name, codes in ((C.USER_ID, users), (C.ITEM_ID, items))
    )
    pairs = (user * items.n_values + item)[(user >= 0) & (item >= 0)]
    listed = to_arrow(users.code * items.n_values + items.code)
    is_seen: BoolVector = to_numpy(pc.is_in(listed, value_set=to_arrow(pairs)))
    samples = check_counts.sample_row_keys(log, schemas.RECOMMENDATIONS.key, is_seen)
    return CheckCount(RECOMMENDATIONS, check_rows.SEEN_IN_TRAIN, int(np.count_nonzero(is_seen)), log.num_rows, samples)
