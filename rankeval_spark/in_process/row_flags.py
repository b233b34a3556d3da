"""Row-level validity of the inputs: conditions that the checks count, and the rows that can be used.

The conditions are those of ``spark/plans/usable_rows.py`` and ``spark/plans/usable_rows.py``, on columns in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.checks import INVALID_ORDER, refuse_by_check, refuse_zero_rank
from rankeval_spark.engine.failures import refuse
from rankeval_spark.engine.planning import needs_of, reads_optional
from rankeval_spark.engine.ranking.matching import usable_weights
from rankeval_spark.engine.scorer import RELEVANT

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.input_tables import Source, Tables
    from rankeval_spark.measures.arrays import BoolVector


Flags = dict[str, "BoolVector"]  # which rows do not pass each check: bool, shape (n_rows,)


# ---- which rows do not pass which check -----------------------------------------------------------------------------


def flag_recommendations(source: Source) -> Flags:
    """Return which rows of the log do not pass each check.

    ``source``: the log as :func:`requested_log` gives it: its lists are in the order of the score, or else of the rank.
    Returns ``null_keys``; ``zero_ranks``, where ranks order the lists; ``invalid_scores``: a score that is NULL, NaN or
    infinite, or a rank that is NULL or negative.
    """
    table = source.table
    has_key, is_zero = _has_keys(table, schemas.RECOMMENDATIONS.key), _has_zero_rank(table)
    return {
        row_kinds.NULL_KEYS: ~has_key,
        row_kinds.ZERO_RANKS: has_key & is_zero,
        row_kinds.INVALID_SCORES: has_key & ~is_zero & ~_has_valid_order(table),
    }


def flag_held_out(source: Source, *, reads: Collection[str] = ()) -> Flags:
    """Return which judgements do not pass each check.

    ``reads``: which of the columns ``value`` and ``weight`` measures read; nothing is said of another.
    """
    table = source.table
    has_key, is_number = _has_keys(table, schemas.HELD_OUT.key), _is_finite(table[C.GAIN])
    gain = to_numpy(table[C.GAIN])
    found = {
        row_kinds.NULL_KEYS: ~has_key,
        row_kinds.INVALID_GAINS: has_key & ~is_number,
        row_kinds.NEGATIVE_GAINS: has_key & is_number & (gain < 0),
        row_kinds.LOW_GAINS: has_key & (gain > 0) & (gain < RELEVANT),
    }
    read = {*reads} & {*table.column_names}
    if C.VALUE in read:
        found[row_kinds.INVALID_VALUES] = has_key & ~_is_finite(table[C.VALUE])
    if C.WEIGHT in read:
        found[row_kinds.INVALID_WEIGHTS] = has_key & (usable_weights(table[C.WEIGHT]) == 0)
    return found


def flag_train(source: Source, *, since: date | None = None) -> Flags:
    """Return which training interactions do not pass each check.

    ``since``: day (UTC) from which on there is to be none. Nothing is said about it where the rows have no time.
    """
    found = flag_keys(source, schemas.TRAIN.key)
    if since is not None and C.INTERACTED_AT in source.table.column_names:
        found[row_kinds.TRAIN_AFTER_CUT] = ~found[row_kinds.NULL_KEYS] & _is_since(source.table[C.INTERACTED_AT], since)
    return found


def flag_items(source: Source) -> Flags:
    """Return which rows of the catalogue do not pass each check.

    A fact of an item is invalid where a cell could not be read, or its vector has a number that is NULL, NaN or
    infinite.
    """
    table = source.table
    has_key, is_invalid = _has_keys(table, schemas.ITEMS.key), np.zeros(table.num_rows, dtype=np.bool_)
    if source.unreadable is not None:
        is_invalid |= to_numpy(source.unreadable, null=0)
    if C.VECTOR in table.column_names:
        is_invalid |= has_invalid_number(table[C.VECTOR])
    return {row_kinds.NULL_KEYS: ~has_key, row_kinds.INVALID_FACTS: has_key & is_invalid}


def flag_keys(source: Source, keys: Sequence[str]) -> Flags:
    """Return which rows have a NULL key."""
    return {row_kinds.NULL_KEYS: ~_has_keys(source.table, keys)}


def has_invalid_number(vectors: pa.ChunkedArray) -> BoolVector:
    """Return True for each vector with a number that is NULL, NaN or infinite; False where there is no vector."""
    whole = in_one_piece(vectors)
    is_invalid = np.zeros(len(whole), dtype=np.bool_)
    numbers = to_numpy(pc.list_flatten(whole))
    is_invalid[to_numpy(pc.list_parent_indices(whole))[~np.isfinite(numbers)]] = True
    return is_invalid


# ---- the rows that can be used --------------------------------------------------------------------------------------


def requested_log(source: Source, request: Request) -> Source:
    """Keep the rows of the named models, and those without a model, which are counted; all where none are named.

    Where the ranks of the log order the lists, whatever the scores say, the scores go.
    """
    table = source.table
    if request.models is not None and C.MODEL_ID in table.column_names:
        table = _kept(table, to_numpy(pc.is_in(table[C.MODEL_ID], value_set=to_texts([*request.models, None]))))
    if request.policies.ignores_scores and C.SCORE in table.column_names:
        table = table.drop_columns([C.SCORE])
    return source if table is source.table else replace(source, table=table, unreadable=None)  # never used of a log


def usable_recommendations(source: Source, request: Request, *, are_checked: bool = False) -> pa.Table:
    """Keep the rows of the requested models that have their keys and a place in their list.

    ``are_checked``: whether checks judge ranks of 0: they are left out then. Returns the table of the source itself
    where every row is usable. Without the scores where the policy ``rank_gaps`` keeps the ranks of the log. Raises
    RefusedError at a rank of 0 where ranks order the lists; with the policy ``invalid_scores='error'`` at a row whose
    place in its list is unknown.
    """
    log = requested_log(source, request)
    if not are_checked and _has_zero_rank(log.table).any():
        refuse_zero_rank()
    flags = flag_recommendations(log)
    if request.policies.invalid_scores == "error" and flags[row_kinds.INVALID_SCORES].any():
        refuse(row_kinds.INVALID_SCORES, INVALID_ORDER)
    return without_unusable(log, flags)


def usable_held_out(source: Source) -> pa.Table:
    """Keep the judgements with their keys and a finite gain: the table itself where every row is usable."""
    return without_unusable(source, flag_held_out(source))


def usable_keys(source: Source, keys: Sequence[str]) -> pa.Table:
    """Keep the rows without a NULL key: the table itself where every row is usable."""
    return without_unusable(source, flag_keys(source, keys))


def of_known_items(log: pa.Table, catalogue: pa.Table) -> pa.Table:
    """Keep the rows of a log whose item is in a catalogue."""
    known = pc.unique(catalogue[C.ITEM_ID])
    return log.filter(pc.is_in(log[C.ITEM_ID], value_set=known.cast(log[C.ITEM_ID].type)))


def without_unusable(source: Source, flags: Mapping[str, BoolVector]) -> pa.Table:
    """Leave out the rows that no list and no measure can use, as conditions of this module name them."""
    return _kept(source.table, ~reduce(or_, (flags[check] for check in row_kinds.UNUSABLE if check in flags)))


def refuse_unusable_inputs(tables: Tables, request: Request, *, log: pa.Table, held_out: pa.Table) -> None:
    """Refuse an input that is read and has rows, but none that can be used.

    ``log``, ``held_out``: usable rows of both. Raises RefusedError with the counts by check.
    """
    if not log.num_rows:
        named = requested_log(tables.recommendations, request)
        _refuse_without_usable(named, flag_recommendations(named))
    if not held_out.num_rows:
        _refuse_without_usable(tables.held_out, flag_held_out(tables.held_out))
    needs = needs_of(request, has_train=tables.train is not None)
    others = ((tables.segments, C.SEGMENT_KEY), (tables.train, schemas.TRAIN.key), (tables.items, schemas.ITEMS.key))
    for source, keys in others:
        if source is not None and reads_optional(request, source.name, needs):
            _refuse_without_usable(source, flag_keys(source, keys))


def _refuse_without_usable(source: Source, flags: Mapping[str, BoolVector]) -> None:
    counts: dict[str | None, int] = {
        check: int(np.count_nonzero(flags[check])) for check in row_kinds.UNUSABLE if check in flags
    }
    refuse_by_check(source.name, counts | {None: source.table.num_rows - sum(counts.values())})


# ---- conditions -----------------------------------------------------------------------------------------------------


def _kept(table: pa.Table, is_kept: BoolVector) -> pa.Table:
    return table if is_kept.all() else table.filter(to_arrow(is_kept))


def _has_keys(table: pa.Table, keys: Collection[str]) -> BoolVector:
    """Return which rows have no NULL key; a key that the table does not have is the same in all rows."""
    present = (table[key] for key in keys if key in table.column_names)
    return reduce(and_, (_is_valid(column) for column in present if column.null_count), _all(table.num_rows))


def _is_valid(column: pa.ChunkedArray) -> BoolVector:
    return to_numpy(pc.is_valid(column)) if column.null_count else _all(len(column))


def _is_finite(column: pa.ChunkedArray) -> BoolVector:
    """Return which numbers are neither NULL nor NaN nor infinite."""
    if not pa.types.is_floating(column.type):
        return _is_valid(column)
    parts = [np.isfinite(to_numpy(part)) for part in column.chunks]
    return np.concatenate(parts) if parts else _all(0)


def _has_valid_order(log: pa.Table) -> BoolVector:
    if C.SCORE in log.column_names:
        return _is_finite(log[C.SCORE])
    is_place: BoolVector = to_numpy(log[C.RANK], null=-1) >= 1
    return is_place


def _has_zero_rank(log: pa.Table) -> BoolVector:
    if C.SCORE in log.column_names:
        return np.zeros(log.num_rows, dtype=np.bool_)
    is_zero: BoolVector = to_numpy(log[C.RANK], null=-1) == 0
    return is_zero


def _is_since(times: pa.ChunkedArray, day: date) -> BoolVector:
    """Return which times, in microseconds UTC, are of a day or later; a NULL is not."""
    midnight = datetime.combine(day, time(), tzinfo=UTC)
    first = (midnight - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    is_late: BoolVector = to_numpy(times.cast(pa.int64()), null=np.iinfo(np.int64).min) >= first
    return is_late


def _all(n_rows: int) -> BoolVector:
    return np.ones(n_rows, dtype=np.bool_)
