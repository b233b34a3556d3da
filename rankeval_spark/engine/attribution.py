"""Attribution by time: which lists an interaction is a judgement of.

An interaction belongs to a list that was shown before it, and not longer before than the window. Times are in
microseconds; both ends are exact: ``shown < interacted <= shown + window``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch import CodedRows
from rankeval_spark.engine.codes import ABSENT, Codes, ascending, to_codes
from rankeval_spark.measures.arrays import in_ranges

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


def micros_of(moment: datetime) -> int:
    """Return a moment in microseconds, as times are compared here.

    >>> micros_of(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


def text_of_micros(micros: int) -> str:
    """Write a moment in UTC without its fraction of a second, in any year that 64 bits hold.

    >>> text_of_micros(1_000_005), text_of_micros(-1), text_of_micros(253_402_300_800_000_000)
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
class Attributed:
    """The judgements of each list."""

    held_out: CodedRows  # interactions, as often as lists have them as a judgement; ``user`` is the code of the list
    # (n_log_rows,) whether the user interacts with the item of the row at any time, and no later than its list was
    # shown
    is_judged: BoolVector
    is_consumed: BoolVector
    timing: pa.StructArray  # (n_lists,) what the times say, see :data:`TIMING_FIELDS`


def attribute(batch: Batch, keys: ListKeys, list_code: IntVector, rules: AttributionRules) -> Attributed:
    """Attribute the interactions of a batch to its lists; ``list_code`` (n_log_rows,) is each row's list.

    A list was shown at the earliest time of its rows. A user without a list of a model has one empty list, of which all
    interactions are judgements. Interactions and lists without a time belong to nothing.
    """
    lists, events = _Lists.of(batch, keys, list_code), _Events.of(batch)
    pair = to_arrow(batch.log.user * batch.n_items + batch.log.item)
    pair_of_row = to_numpy(pc.index_in(pair, value_set=events.pair.values), null=ABSENT).astype(np.int64)
    found = _of_shown(batch, lists, events, pair_of_row, rules)
    event, owner = (np.concatenate(both) for both in zip(found, _of_empty(batch, lists), strict=True))
    judged = batch.held_out.at(event)
    earliest = np.full(events.pair.n_values + 1, _NEVER)  # the last is that of ABSENT: no interaction
    np.minimum.at(earliest, events.pair.code, events.time)
    shown = lists.shown[list_code]
    consumed = (earliest[pair_of_row] <= shown) & (shown != _NEVER)
    timing = _timing(lists, events, consumed, rules)
    return Attributed(CodedRows(owner, judged.item, judged.columns), pair_of_row >= 0, consumed, timing)


@dataclass(frozen=True)
class _Lists:
    """The lists of a batch; arrays have shape (n_lists,) unless they say otherwise."""

    keys: ListKeys
    n_models: int
    shown: IntVector  # :data:`_NEVER` for lists without a time
    place: IntVector  # orders lists of equal time, by their ids
    n_rows: IntVector
    has_several_times: BoolVector
    list_code: IntVector  # (n_log_rows,)

    @classmethod
    def of(cls, batch: Batch, keys: ListKeys, list_code: IntVector) -> _Lists:
        times = _times(batch.log, C.RECOMMENDED_AT)
        has_time = times != _NO_TIME
        shown = np.full(keys.n_lists, _NEVER)
        last = np.full(keys.n_lists, _NO_TIME)
        np.minimum.at(shown, list_code[has_time], times[has_time])
        np.maximum.at(last, list_code[has_time], times[has_time])
        names = ascending(keys.list_id.dictionary)
        n_rows = np.bincount(list_code, minlength=keys.n_lists)
        place = names[to_numpy(keys.list_id.indices)]
        return cls(keys, max(len(batch.models), 1), shown, place, n_rows, last > shown, list_code)

    @property
    def slot(self) -> IntVector:
        """Number of the user and model together."""
        return self.keys.user * self.n_models + self.keys.model

    @property
    def timed(self) -> IntVector:
        """Lists that have a time."""
        return np.flatnonzero(self.shown != _NEVER)


@dataclass(frozen=True)
class _Events:
    """Interactions that have a time; arrays have shape (n_events,) unless they say otherwise."""

    row: IntVector  # row of the held-out table
    user: IntVector
    time: IntVector
    pair: Codes  # of user and item
    n_untimed: IntVector  # (n_users,) interactions without a time

    @classmethod
    def of(cls, batch: Batch) -> _Events:
        times = _times(batch.held_out, C.INTERACTED_AT)
        row = np.flatnonzero(times != _NO_TIME)
        user = batch.held_out.user[row]
        pair = to_codes(to_arrow(user * batch.n_items + batch.held_out.item[row]))
        n_untimed = np.bincount(batch.held_out.user[times == _NO_TIME], minlength=batch.n_users)
        return cls(row, user, times[row], pair, n_untimed)


class _InTime:
    """Entries by owner and time, to be searched."""

    def __init__(self, owner: IntVector, time: IntVector, place: IntVector) -> None:
        self._times = np.unique(time)
        key = self._key(owner, np.searchsorted(self._times, time))
        order = np.lexsort((place, key))
        self._keys = key[order]
        self.entry = order

    def _key(self, owner: IntVector, rank: IntVector) -> IntVector:
        keys: IntVector = owner * (len(self._times) + 1) + rank
        return keys

    def n_earlier(self, owner: IntVector, time: IntVector, *, or_at: bool = False) -> IntVector:
        """Count entries that sort before an owner and a time, all of smaller owners among them."""
        rank = np.searchsorted(self._times, time, side="right" if or_at else "left")
        return np.searchsorted(self._keys, self._key(owner, rank))

    def within(self, owner: IntVector, time: IntVector, window: int) -> tuple[IntVector, IntVector]:
        """Return the range of an owner's entries that are before ``time`` and not before ``time - window``."""
        return self.n_earlier(owner, time - window), self.n_earlier(owner, time)


def _times(rows: CodedRows, name: str) -> IntVector:
    """Return times in microseconds; :data:`_NO_TIME` for NULL."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    column = rows.columns[name]
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    return to_numpy(column.cast(pa.timestamp("us", zone)).cast(pa.int64()), null=_NO_TIME)


def _of_shown(
    batch: Batch, lists: _Lists, events: _Events, pair_of_row: IntVector, rules: AttributionRules
) -> tuple[IntVector, IntVector]:
    """Attribute an interaction to all lists in whose window it falls, or to the last or first one with the item.

    Where none has the item, it belongs to the last or first one.
    """
    n_models, timed = lists.n_models, lists.timed
    event = np.tile(np.arange(len(events.row)), n_models)  # each interaction for each model
    model = np.repeat(np.arange(n_models), len(events.row))
    time = events.time[event]
    in_time = _InTime(lists.slot[timed], lists.shown[timed], lists.place[timed])
    first, end = in_time.within(events.user[event] * n_models + model, time, rules.window)
    if rules.claim == "all":
        places = in_ranges(first, end - first)
        return events.row[np.repeat(event, end - first)], timed[in_time.entry[places]]
    owner = np.full(len(event), ABSENT)
    _claim(owner, timed, (first, end), in_time, rules)
    row = np.flatnonzero((pair_of_row >= 0) & (lists.shown[lists.list_code] != _NEVER))
    shown_in = lists.list_code[row]
    with_item = _InTime(pair_of_row[row] * n_models + batch.model[row], lists.shown[shown_in], lists.place[shown_in])
    pair = events.pair.code[event] * n_models + model
    _claim(owner, shown_in, with_item.within(pair, time, rules.window), with_item, rules)
    is_claimed = owner >= 0
    return events.row[event[is_claimed]], owner[is_claimed]


def _claim(
    owner: IntVector, lists: IntVector, window: tuple[IntVector, IntVector], in_time: _InTime, rules: AttributionRules
) -> None:
    """Write, in place, the list of each interaction that has one in its window."""
    first, end = window
    found = np.flatnonzero(end > first)
    match rules.claim:
        case "last_touch":
            chosen = end[found] - 1
        case "first_touch":
            chosen = first[found]
        case "all" | "none":  # no interaction is claimed
            return
        case _:
            assert_never(rules.claim)
    owner[found] = lists[in_time.entry[chosen]]


def _of_empty(batch: Batch, lists: _Lists) -> tuple[IntVector, IntVector]:
    """Attribute all interactions of a user to their lists without a row."""
    empty = np.flatnonzero(lists.n_rows == 0)
    by_user = np.argsort(batch.held_out.user, kind="stable")
    users = batch.held_out.user[by_user]
    first, end = (np.searchsorted(users, lists.keys.user[empty], side=side) for side in ("left", "right"))
    return by_user[in_ranges(first, end - first)], np.repeat(empty, end - first)


def _timing(lists: _Lists, events: _Events, consumed: BoolVector, rules: AttributionRules) -> pa.StructArray:
    """Build :data:`TIMING_FIELDS` of each list; NULL for lists without a row."""
    user, n_lists = lists.keys.user, lists.keys.n_lists
    in_time = _InTime(events.user, events.time, np.zeros(len(events.row), dtype=np.int64))
    start = in_time.n_earlier(user, np.full(n_lists, _NO_TIME))
    end = in_time.n_earlier(user, np.full(n_lists, _NEVER))
    has_time = lists.shown != _NEVER
    shown = np.where(has_time, lists.shown, _NO_TIME)
    until = np.where(has_time, np.minimum(lists.shown, _NEVER - rules.window) + rules.window, _NEVER)
    newest = np.full(max(n_lists and user.max() + 1, events.user.max(initial=-1) + 1), _NO_TIME)
    np.maximum.at(newest, events.user, events.time)
    counts = {
        "n_interactions": end - start,
        "n_before": in_time.n_earlier(user, shown, or_at=True) - start,
        "n_after": end - in_time.n_earlier(user, until, or_at=True),
        "n_items": lists.n_rows,
        "n_consumed": np.bincount(lists.list_code[consumed], minlength=n_lists),
        "n_lists": np.ones(n_lists),
        "n_times": lists.has_several_times,
        "n_untimed": ~has_time,
        "n_untimed_interactions": events.n_untimed[user],
        "n_all_interactions": end - start + events.n_untimed[user],
    }
    arrays = [to_arrow(each.astype(np.int64)) for each in counts.values()]
    arrays += [to_arrow(until, is_null=~has_time), to_arrow(newest[user], is_null=newest[user] == _NO_TIME)]
    return pa.StructArray.from_arrays(arrays, names=list(TIMING_FIELDS), mask=to_arrow(lists.n_rows == 0))
