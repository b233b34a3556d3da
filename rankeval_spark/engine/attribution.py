"""Attribution by time: which lists an interaction is a judgement of.

An interaction belongs to a list that was shown before it, and not longer before than the window. Times are in
microseconds; both ends are exact: ``shown < interacted <= shown + window``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import ABSENT, Codes, index_in, rank_ids, to_arrow, to_codes, to_numpy
from rankeval_spark.engine.batch import CodedRows
from rankeval_spark.measures.arrays import expand_ranges

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Attribution
    from rankeval_spark.engine.batch import Batch
    from rankeval_spark.engine.matching import ListKeys
    from rankeval_spark.measures.arrays import BoolVector, IntVector

TIMING_FIELDS: Final = (  # counts of a list, then two moments in microseconds
    *("n_interactions", "n_before", "n_after"),  # of its user: with a time, no later than the list, after its window
    *("n_items", "n_consumed"),  # its rows, and those of items that the user had interacted with
    *("n_lists", "n_times", "n_untimed"),  # 1; 1 if its rows have several times, else 0; 1 if it has no time, else 0
    *("n_untimed_interactions", "n_all_interactions"),  # of its user: without a time, and in all
    *("until", "newest"),  # end of its window, NULL without a time; newest interaction of its user, NULL without one
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME: Final = np.iinfo(np.int64).min
_NEVER: Final = np.iinfo(np.int64).max  # time of a list without a row that has one


def to_micros(moment: datetime) -> int:
    """Return a moment in microseconds, as times are compared here.

    >>> to_micros(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


def micros_text(micros: int) -> str:
    """Write a moment in UTC without its fraction of a second, in any year that 64 bits hold.

    >>> micros_text(1_000_005), micros_text(-1), micros_text(253_402_300_800_000_000)
    ('1970-01-01 00:00:01', '1969-12-31 23:59:59', '10000-01-01 00:00:00')
    """
    return str(np.datetime64(micros, "us").astype("datetime64[s]")).replace("T", " ")


@dataclass(frozen=True)
class AttributionRules:
    """Rules by which interactions are attributed."""

    claim: Attribution  # which of several lists an interaction belongs to
    window: int  # longest time between a list and an interaction, in microseconds
    drops_consumed: bool  # whether items that the user interacted with no later than the list was shown leave it


@dataclass(frozen=True)
class _Times:
    """Times of the lists, and of the interactions that have one."""

    keys: ListKeys
    model: IntVector  # (n_log_rows,)
    list_code: IntVector  # (n_log_rows,)
    shown: IntVector  # (n_lists,) earliest time of the rows; :data:`_NEVER` without one
    place: IntVector  # (n_lists,) orders lists of equal time, by their ids
    n_rows: IntVector  # (n_lists,)
    has_several_times: BoolVector  # (n_lists,)
    row: IntVector  # (n_events,) row of the held-out table of each interaction with a time
    user: IntVector  # (n_events,)
    time: IntVector  # (n_events,)
    pair: Codes  # (n_events,) of user and item
    n_untimed: IntVector  # (n_users,) interactions without a time
    pair_of_row: IntVector  # (n_log_rows,) pair of user and item of each row; ABSENT without an interaction


class _TimeIndex:
    """Entries sorted by owner and time, so that those of an owner in a span of time are a range.

    >>> index = _TimeIndex(np.array([1, 0, 1]), np.array([30, 10, 20]), np.array([0, 0, 0]))
    >>> index.entry, index.find_window(np.array([1]), np.array([25]), 10)
    (array([1, 2, 0]), (array([1]), array([2])))
    """

    def __init__(
        self,
        owner: IntVector,  # (n_entries,) code of whom each entry is of
        time: IntVector,  # (n_entries,) in microseconds
        place: IntVector,  # (n_entries,) orders entries of one owner and time
    ) -> None:
        self._times = np.unique(time)
        key = owner * (len(self._times) + 1) + np.searchsorted(self._times, time)
        self.entry = np.lexsort((place, key))
        self._keys = key[self.entry]

    def count_before(self, owner: IntVector, time: IntVector, *, or_at: bool = False) -> IntVector:
        """Return how many entries, of all owners, sort before an owner and a time; ``or_at``: or at that time."""
        rank = np.searchsorted(self._times, time, side="right" if or_at else "left")
        return np.searchsorted(self._keys, owner * (len(self._times) + 1) + rank)

    def find_window(self, owner: IntVector, time: IntVector, window: int) -> tuple[IntVector, IntVector]:
        """Return the first place in :attr:`entry`, and the end, of owners' entries in ``[time - window, time)``."""
        return self.count_before(owner, time - window), self.count_before(owner, time)


def attribute(
    batch: Batch,
    keys: ListKeys,
    list_code: IntVector,  # (n_log_rows,) list of each row
    rules: AttributionRules,
) -> tuple[CodedRows, BoolVector, BoolVector, pa.StructArray]:
    """Attribute the interactions of a batch to its lists.

    A list was shown at the earliest time of its rows. A user without a list of a model has one empty list, and all
    interactions are its judgements. Interactions and lists without a time belong to nothing.

    Returns interactions, as often as lists have them as a judgement, with the list in place of the user; of each row of
    the log whether its user interacts with the item at any time, and no later than its list was shown; and
    :data:`TIMING_FIELDS` of each list.
    """
    times = _read_times(batch, keys, list_code)
    events, lists = _attribute_to_shown(times, len(batch.models), rules)
    # All interactions of a user belong to their lists without a row too.
    empty = np.flatnonzero(times.n_rows == 0)
    by_user = np.argsort(batch.held_out.user, kind="stable")
    users = batch.held_out.user[by_user]
    first, end = (np.searchsorted(users, keys.user[empty], side=side) for side in ("left", "right"))
    judged = batch.held_out.take(np.concatenate([events, by_user[expand_ranges(first, end - first)]]))
    owner = np.concatenate([lists, np.repeat(empty, end - first)])
    earliest = np.full(times.pair.n_values + 1, _NEVER)  # the last is that of ABSENT: no interaction
    np.minimum.at(earliest, times.pair.code, times.time)
    shown = times.shown[list_code]
    consumed = (earliest[times.pair_of_row] <= shown) & (shown != _NEVER)
    timing = _build_timing(times, consumed, rules.window)
    return CodedRows(owner, judged.item, judged.columns), times.pair_of_row >= 0, consumed, timing


def _read_times(batch: Batch, keys: ListKeys, list_code: IntVector) -> _Times:
    """Read when lists were shown and interactions happened."""

    def read_micros(rows: CodedRows, name: str) -> IntVector:
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        zone = rows.columns[name].type.tz if pa.types.is_timestamp(rows.columns[name].type) else None
        return to_numpy(rows.columns[name].cast(pa.timestamp("us", zone)).cast(pa.int64()), null=_NO_TIME)

    listed, interacted = read_micros(batch.log, C.RECOMMENDED_AT), read_micros(batch.held_out, C.INTERACTED_AT)
    has_time, shown, last = listed != _NO_TIME, np.full(keys.n_lists, _NEVER), np.full(keys.n_lists, _NO_TIME)
    np.minimum.at(shown, list_code[has_time], listed[has_time])
    np.maximum.at(last, list_code[has_time], listed[has_time])
    row = np.flatnonzero(interacted != _NO_TIME)
    pair = to_codes(to_arrow(batch.held_out.user[row] * batch.n_items + batch.held_out.item[row]))
    return _Times(
        keys,
        batch.model,
        list_code,
        shown,
        place=rank_ids(keys.list_id.dictionary)[to_numpy(keys.list_id.indices)],
        n_rows=np.bincount(list_code, minlength=keys.n_lists),
        has_several_times=last > shown,
        row=row,
        user=batch.held_out.user[row],
        time=interacted[row],
        pair=pair,
        n_untimed=np.bincount(batch.held_out.user[interacted == _NO_TIME], minlength=batch.n_users),
        pair_of_row=index_in(to_arrow(batch.log.user * batch.n_items + batch.log.item), pair.values),
    )


def _attribute_to_shown(times: _Times, n_models: int, rules: AttributionRules) -> tuple[IntVector, IntVector]:
    """Find the lists that interactions belong to, by :attr:`AttributionRules.claim`: rows of these, and lists."""
    n_models, keys = max(n_models, 1), times.keys
    timed = np.flatnonzero(times.shown != _NEVER)
    event = np.tile(np.arange(len(times.row)), n_models)  # each interaction for each model
    model, time = np.repeat(np.arange(n_models), len(times.row)), times.time[event]
    in_time = _TimeIndex((keys.user * n_models + keys.model)[timed], times.shown[timed], times.place[timed])
    first, end = in_time.find_window(times.user[event] * n_models + model, time, rules.window)
    if rules.claim == "all":
        places = expand_ranges(first, end - first)
        return times.row[np.repeat(event, end - first)], timed[in_time.entry[places]]
    row = np.flatnonzero((times.pair_of_row >= 0) & (times.shown[times.list_code] != _NEVER))
    shown_in = times.list_code[row]
    pair_of_model = times.pair_of_row[row] * n_models + times.model[row]
    with_item = _TimeIndex(pair_of_model, times.shown[shown_in], times.place[shown_in])
    item_ranges = with_item.find_window(times.pair.code[event] * n_models + model, time, rules.window)
    owner = np.full(len(event), ABSENT)
    # Any list in the window first; then lists with the item, which take their place.
    for lists, entry, (start, stop) in (
        (timed, in_time.entry, (first, end)),
        (shown_in, with_item.entry, item_ranges),
    ):
        has_list = np.flatnonzero(stop > start)
        chosen = stop[has_list] - 1 if rules.claim == "last_touch" else start[has_list]
        owner[has_list] = lists[entry[chosen]]
    is_claimed = owner >= 0
    return times.row[event[is_claimed]], owner[is_claimed]


def _build_timing(times: _Times, consumed: BoolVector, window: int) -> pa.StructArray:
    """Build :data:`TIMING_FIELDS` of each list; NULL for lists without a row."""
    user, n_lists = times.keys.user, times.keys.n_lists
    in_time = _TimeIndex(times.user, times.time, np.zeros(len(times.row), dtype=np.int64))
    start = in_time.count_before(user, np.full(n_lists, _NO_TIME))
    end = in_time.count_before(user, np.full(n_lists, _NEVER))
    has_time = times.shown != _NEVER
    shown = np.where(has_time, times.shown, _NO_TIME)
    until = np.where(has_time, np.minimum(times.shown, _NEVER - window) + window, _NEVER)
    newest = np.full(len(times.n_untimed), _NO_TIME)
    np.maximum.at(newest, times.user, times.time)
    counts = {
        "n_interactions": end - start,
        "n_before": in_time.count_before(user, shown, or_at=True) - start,
        "n_after": end - in_time.count_before(user, until, or_at=True),
        "n_items": times.n_rows,
        "n_consumed": np.bincount(times.list_code[consumed], minlength=n_lists),
        "n_lists": np.ones(n_lists),
        "n_times": times.has_several_times,
        "n_untimed": ~has_time,
        "n_untimed_interactions": times.n_untimed[user],
        "n_all_interactions": end - start + times.n_untimed[user],
    }
    arrays = [to_arrow(each.astype(np.int64)) for each in counts.values()]
    arrays += [to_arrow(until, is_null=~has_time), to_arrow(newest[user], is_null=newest[user] == _NO_TIME)]
    return pa.StructArray.from_arrays(arrays, names=list(TIMING_FIELDS), mask=to_arrow(times.n_rows == 0))
