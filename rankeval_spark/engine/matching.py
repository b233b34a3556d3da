"""One judgement per (user, item), the lists that there are, and the judgement that each row of the log meets.

By user and item, or by list and item where judgements belong to lists. A model has an empty list for each judged user
or list that it has none for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.columns import MAX_ROWS_PER_USER
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    ABSENT,
    index_in,
    rank_ids,
    rare_index_in,
    renumber_by_id,
    to_arrow,
    to_codes,
    to_numpy,
    to_texts,
)
from rankeval_spark.engine.attribution import AttributionRules, attribute
from rankeval_spark.engine.failures import refuse, refuse_input
from rankeval_spark.measures.arrays import is_run_start

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Duplicates, HeldOutDuplicates
    from rankeval_spark.engine.batch import Batch, CodedRows
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


UNJUDGED: Final = -1.0  # a gain below 0, in the held-out table too, says: of the pool, and not judged


@dataclass(frozen=True)
class Judgements:
    """The judgements of a batch, in the order of (owner, item code).

    The owner is a user; a list of a user where judgements name lists; a list of a model where interactions are
    attributed to lists. Facts that no measure reads are None.
    """

    pair: IntVector  # (n_judged,) ``owner * n_items + item``, ascending, each once
    owner: IntVector  # (n_judged,) code of the owner
    gain: FloatVector  # (n_judged,)
    value: FloatVector | None = None  # (n_judged,)
    groups: IntVector | None = None  # (n_judged,) bits of the item's groups
    propensity: FloatVector | None = None  # (n_judged,) probability with which the item was shown; NaN where NULL
    weight: FloatVector | None = None  # (n_judged,) 0 where it is no finite number above 0

    def sort_by_gain(self) -> Judgements:
        """Sort by owner, then gain, value, groups and weight, the largest first."""
        facts = [-fact for fact in (self.weight, self.groups, self.value) if fact is not None]
        return self.take(np.lexsort((*facts, -self.gain, self.owner)))

    def take(self, places: IntVector) -> Judgements:
        """Select judgements by their positions."""
        known: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        return Judgements(**{name: numbers[places] for name, numbers in known.items() if numbers is not None})


def to_judgements(
    held_out: CodedRows,  # ``user`` is the owner
    *,
    n_items: int,
    duplicates: HeldOutDuplicates,
    item_groups: IntVector | None = None,  # (n_items,) bits of groups
) -> Judgements:
    """Build one judgement per (owner, item).

    ``duplicates``: gain of a pair with several rows: the largest ("max"), their sum, rounded once ("sum"; an infinite
    one is refused), that of the newest ``interacted_at`` ("last"; of several the largest; NULL is the oldest), or
    "error". Values follow the same rule; two weights of a pair are refused.
    """
    pair = held_out.user * n_items + held_out.item
    order = np.argsort(pair)
    rows = _read_judgements(held_out, pair, item_groups).take(order)
    is_first = is_run_start(rows.pair)
    if is_first.all():
        return rows
    _refuse_repeated(rows, is_first, duplicates=duplicates)
    last = np.append(np.flatnonzero(is_first)[1:], len(order)) - 1  # last row of each pair
    if duplicates == "sum":
        return _sum_repeated(rows, last)
    by: tuple[IntVector, ...] = (np.cumsum(is_first) - 1,)
    if duplicates == "last":  # NULL first: its code finds the place that is appended
        codes = to_codes(held_out.columns[C.INTERACTED_AT].cast(pa.int64()))
        by = (np.append(rank_ids(codes.values) + 1, 0)[codes.code][order], *by)
    best = rows.take(np.lexsort((rows.gain, *by))[last])
    if rows.value is None:
        return best
    newest = (rows.gain,) if duplicates == "last" else ()
    return replace(best, value=rows.value[np.lexsort((rows.value, *newest, *by))[last]])


def _refuse_repeated(rows: Judgements, is_first: BoolVector, *, duplicates: HeldOutDuplicates) -> None:
    """Refuse pairs with several rows: impressions, or two weights of a pair, or any by the policy."""
    if rows.propensity is not None:
        fix = "give every impression a user of its own, such as the id of the request"
        refuse_input(
            "held_out", "a user has two impressions of an item", expected="one, because propensities are read", fix=fix
        )
    if duplicates == "error":
        refuse("held_out_duplicates", "a (user, item) pair occurs twice in the held-out table")
    if rows.weight is not None and (rows.weight[1:] != rows.weight[:-1])[~is_first[1:]].any():
        expected = "one for each user and item, because measures with weighted=True are computed"
        fix = "give all rows of a user and an item the weight of that item"
        refuse_input("held_out", "a user has two weights for an item", expected=expected, fix=fix)


def _sum_repeated(rows: Judgements, last: IntVector) -> Judgements:
    """Sum gains and values of each pair, sorted by pair, whose last rows are given; an infinite sum is refused."""
    numbers = {"gain": rows.gain} | ({} if rows.value is None else {"value": rows.value})
    sums: dict[str, Any] = {name: exact_sums(each, np.diff(last, prepend=-1)) for name, each in numbers.items()}
    for name, total in sums.items():
        if not np.isfinite(total).all():
            found, fix = f"the {name}s of a user and an item add up to infinity", f"correct the {name}s"
            refuse_input("held_out", found, expected="a number", fix=f"{fix} of the held-out table")
    return replace(rows.take(last), **sums)


_MAX_STEPS: Final = 64  # longest group that is summed next to others; a longer one costs as much alone


def exact_sums(
    numbers: FloatVector,  # (n_numbers,), finite numbers, one group after another
    lengths: IntVector,  # (n_groups,), numbers in each group, at least 1
) -> FloatVector:
    """Return the sum of each group as the nearest double, whatever the order of its numbers.

    Groups are summed side by side, one number a step, with the rounding error of each addition kept next to the sum
    (Knuth's two-sum). Where the errors add up without an error of their own, adding both rounds once; other groups go
    through `math.fsum`.

    >>> exact_sums(np.array([0.1] * 10 + [1e16, 1.0, -1e16]), np.array([10, 3]))
    array([1., 1.])
    """
    first = np.cumsum(lengths) - lengths
    total, error_sum = numbers[first], np.zeros(len(first))
    is_exact = lengths <= _MAX_STEPS
    with np.errstate(over="ignore", invalid="ignore"):  # a sum on the way can exceed the range of a double
        for step in range(1, min(int(lengths.max(initial=0)), _MAX_STEPS)):
            group = np.flatnonzero(is_exact & (lengths > step))
            total[group], error = _two_sum(total[group], numbers[first[group] + step])
            error_sum[group], lost = _two_sum(error_sum[group], error)
            is_exact[group] = lost == 0
        sums: FloatVector = total + error_sum
    for place in np.flatnonzero(~is_exact).tolist():
        group_numbers = numbers[first[place] : first[place] + lengths[place]].tolist()
        try:
            sums[place] = math.fsum(group_numbers)
        except OverflowError:  # of a sum on the way; that of all numbers may still be a double
            exact = sum(map(Fraction, group_numbers))
            try:
                sums[place] = float(exact)
            except OverflowError:
                sums[place] = math.inf if exact > 0 else -math.inf
    return sums


def _two_sum(left: FloatVector, right: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Add up, and return what rounding took away; NaN where the sum exceeds the range of a double."""
    total = left + right
    added = total - left
    return total, (left - (total - added)) + (right - added)


def _read_judgements(held_out: CodedRows, pair: IntVector, item_groups: IntVector | None) -> Judgements:
    """Convert the columns of judgements, a row each, in the order of the rows."""
    columns = held_out.columns
    gain = np.zeros(0) if not len(pair) else to_numpy(columns[C.GAIN])
    value = propensity = weight = None
    if C.VALUE in columns:  # the judgement stays, because other measures do not read its value
        found = to_numpy(columns[C.VALUE])
        value = np.where(np.isfinite(found), found, 0.0)
    if C.PROPENSITY in columns:
        propensity = to_numpy(columns[C.PROPENSITY], null=np.nan)
    if C.WEIGHT in columns:
        found = to_numpy(columns[C.WEIGHT], null=np.nan).astype(np.float64, copy=False)
        weight = np.where(np.isfinite(found) & (found > 0), found, 0.0)
    groups = None if item_groups is None else item_groups[held_out.item]
    if row_kinds.HISTORY in columns:
        of_history = to_numpy(columns[row_kinds.HISTORY])
        groups = of_history if groups is None else groups | of_history
    return Judgements(pair, held_out.user, gain.astype(np.float64, copy=False), value, groups, propensity, weight)


@dataclass(frozen=True)
class ListRules:
    """Rules by which the rows of the log become ranked lists."""

    order: str  # {"score", "rank"} column that orders the lists: descending scores or ascending ranks
    ties: str  # what decides between items of equal score: a key of ``config.policies.TIES``
    duplicates: Duplicates  # what happens to an item with several rows in a list
    held_out_duplicates: HeldOutDuplicates = "max"  # the same for several rows of a judgement
    # whether items keep the rank of the log instead of being numbered from 1: policy ``rank_gaps``
    keeps_gaps: bool = False
    judged_only: bool = False  # whether items without a judgement leave the lists before ranks are given
    # whether items that the user has in the training data leave the lists first: policy ``seen_in_train``
    drops_seen: bool = False
    drops_judged_seen: bool = False  # whether judgements of such items leave too, before anything is matched
    checks_ranks: bool = False  # whether ranks of the log are compared with those that are given
    # how times decide which list an interaction is a judgement of; None: every list of its user
    attribution: AttributionRules | None = None
    max_rows_per_user: int = MAX_ROWS_PER_USER  # rows of a user in all inputs together above which the job fails

    @property
    def duplicates_of_users(self) -> HeldOutDuplicates:
        """Gain of a judgement of a user that has several rows: where lists have them, no two are refused."""
        is_refused_of_lists = self.attribution is not None and self.held_out_duplicates == "error"
        return "max" if is_refused_of_lists else self.held_out_duplicates

    @property
    def reads_ranks(self) -> bool:
        """True if the ranks of the log are read."""
        return self.order == C.RANK or tie_rule(self.ties).reads_ranks or self.keeps_gaps or self.checks_ranks


@dataclass(frozen=True)
class ListKeys:
    """The lists of a batch, sorted by user and model; all arrays of shape (n_lists,)."""

    user: IntVector  # codes of the user and of the model
    model: IntVector
    list_id: pa.Array  # ``list_id`` of each list; :data:`columns.ONE_LIST` for that of a user without one
    owner: IntVector  # whose judgements each is compared with, see :class:`Owners`

    @property
    def n_lists(self) -> int:
        return len(self.user)

    def find_lists(self, batch: Batch, table: CodedRows) -> tuple[IntVector, IntVector]:
        """Find rows of a table that have a list, by model and ``list_id`` as far as it names them: lists, and rows."""
        if not len(table):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        names = self.list_id.dictionary
        model: IntVector = np.zeros(len(table), dtype=np.int64)
        list_name = model
        if C.MODEL_ID in table.columns:
            model = index_in(table.columns[C.MODEL_ID], to_texts(batch.models))
        if C.LIST_ID in table.columns:
            list_name = index_in(table.columns[C.LIST_ID].cast(names.type), names)
        n_names, n_models = len(names), max(len(batch.models), 1)
        keys = to_arrow((self.user * n_models + self.model) * n_names + to_numpy(self.list_id.indices))
        found = index_in(to_arrow((table.user * n_models + model) * n_names + list_name), keys)
        has_list = (found >= 0) & (model >= 0) & (list_name >= 0)
        return found[has_list], np.flatnonzero(has_list)


def to_list_keys(batch: Batch, judgements: Judgements) -> tuple[ListKeys, IntVector]:
    """Build the lists, ordered by id within a user, and the list number of each log row."""
    n_models = len(batch.models)
    slot = batch.log.user * n_models + batch.model  # (n_log_rows,) user and model
    if batch.owners.names is not None:
        slots, name, names, place, owner = _lists_of_judgements(batch, judgements, slot, batch.owners.names)
    else:
        slots, name, names, place = _lists_of_users(batch, judgements, slot)
        owner = slots // max(n_models, 1)
    user, model = np.divmod(slots, max(n_models, 1))
    ids = pa.DictionaryArray.from_arrays(to_arrow(name.astype(np.int32)), names)
    return ListKeys(user, model, ids, owner), place[: len(slot)]


def _lists_of_judgements(
    batch: Batch, judgements: Judgements, slot: IntVector, names: pa.Array
) -> tuple[IntVector, IntVector, pa.Array, IntVector, IntVector]:
    """Find lists where judgements name theirs: every model has each judged list, empty ones too.

    Returns slot and name of each list, the names, the list of each row of the log, and the owner of each list.
    """
    owners, n_models = batch.owners, len(batch.models)
    judged = judgements.owner[is_run_start(judgements.owner)]
    of_models = (owners.user[judged][:, None] * n_models + np.arange(n_models)).ravel()
    of_lists = np.append(owners.log, np.repeat(judged, n_models))
    slots, owner, place = _find_distinct_pairs(np.append(slot, of_models), of_lists, n_codes=len(owners.user))
    return slots, owners.name[owner], names, place, owner


def _lists_of_users(
    batch: Batch, judgements: Judgements, slot: IntVector
) -> tuple[IntVector, IntVector, pa.Array, IntVector]:
    """Find lists where judgements are of users: those of the log, and an empty one for a judged user without any.

    Returns slot and name of each list, the names, and the list of each row of the log.
    """
    n_models, one_list = len(batch.models), to_texts([C.ONE_LIST])
    is_listed, is_judged = np.zeros(batch.n_users * n_models, np.bool_), np.zeros(batch.n_users, np.bool_)
    is_listed[slot] = True
    is_judged[judgements.owner] = True
    is_judged = np.repeat(is_judged, n_models)
    if C.LIST_ID not in batch.log.columns:
        has_list = is_listed | is_judged
        slots: IntVector = np.flatnonzero(has_list)
        return slots, np.zeros(len(slots), dtype=np.int64), one_list, (np.cumsum(has_list) - 1)[slot]
    list_ids, empty = renumber_by_id(to_codes(batch.log.columns[C.LIST_ID])), np.flatnonzero(is_judged & ~is_listed)
    names = pa.concat_arrays([list_ids.values, one_list.cast(list_ids.values.type)])
    code = np.append(list_ids.code, np.full(len(empty), list_ids.n_values))
    slots, name, place = _find_distinct_pairs(np.append(slot, empty), code, n_codes=len(names))
    return slots, name, names, place


def _find_distinct_pairs(slot: IntVector, code: IntVector, *, n_codes: int) -> tuple[IntVector, IntVector, IntVector]:
    """Find the distinct pairs of a slot and a code, in their order, and the place of each pair among them.

    >>> _find_distinct_pairs(np.array([7, 2, 7]), np.array([0, 1, 0]), n_codes=2)
    (array([2, 7]), array([1, 0]), array([1, 0, 1]))
    """
    pair = slot * n_codes + code
    in_order = np.sort(pair)
    distinct = in_order[is_run_start(in_order)]
    codes_of_pairs = to_codes(to_arrow(pair))
    slots, codes = np.divmod(distinct, max(n_codes, 1))
    return slots, codes, np.searchsorted(distinct, to_numpy(codes_of_pairs.values))[codes_of_pairs.code]


@dataclass(frozen=True)
class MatchedLog:
    """The rows of the log that enter lists, with their judgements."""

    batch: Batch  # the rows; those that policies leave out are gone
    keys: ListKeys
    log_list: IntVector  # (n_log_rows,) list of each row
    judgement: IntVector  # (n_log_rows,) position of its judgement; ABSENT without one
    # the judgements of all owners: users, lists that judgements name, or all lists where `timing` is there
    judgements: Judgements
    owner: IntVector  # (n_lists,) owner of the judgements that each list is compared with
    # (n_lists,) what the times say of each list, see :data:`attribution.TIMING_FIELDS`; only with attribution
    timing: pa.StructArray | None


def match_log(
    batch: Batch,
    judgements: Judgements,
    *,
    rules: ListRules,
    # makes judgements of interactions that were attributed to lists; needed where the rules attribute
    judge: Callable[[CodedRows], Judgements] | None = None,
) -> MatchedLog:
    """Match the log with the judgements, once seen and, by policy, unjudged items have left the lists.

    With attribution seen items leave afterwards: times refer to the lists as they were shown.
    """
    is_seen = is_in_train(batch, batch.log.user, batch.log.item) if rules.drops_seen else None
    if rules.attribution is None or judge is None:
        if is_seen is not None:
            batch = batch.keep_log_rows(~is_seen)
        judgement = rare_index_in(batch.owners.log * batch.n_items + batch.log.item, judgements.pair)
        if rules.judged_only:
            is_judged = np.append(judgements.gain, UNJUDGED)[judgement] >= 0
            batch, judgement = batch.keep_log_rows(is_judged), judgement[is_judged]
        keys, log_list = to_list_keys(batch, judgements)
        return MatchedLog(batch, keys, log_list, judgement, judgements, keys.owner, None)
    keys, log_list = to_list_keys(batch, judgements)
    held_out, is_judged, is_consumed, timing = attribute(batch, keys, log_list, rules.attribution)
    of_lists = judge(held_out)
    is_kept = np.ones(len(log_list), dtype=np.bool_) if is_seen is None else ~is_seen
    if rules.attribution.drops_consumed:
        is_kept &= ~is_consumed
    if not is_kept.all():
        batch, log_list, is_judged = batch.keep_log_rows(is_kept), log_list[is_kept], is_judged[is_kept]
    judgement, row = np.full(len(log_list), ABSENT), np.flatnonzero(is_judged)
    judgement[row] = rare_index_in(log_list[row] * batch.n_items + batch.log.item[row], of_lists.pair)
    return MatchedLog(batch, keys, log_list, judgement, of_lists, np.arange(keys.n_lists), timing)


def is_in_train(batch: Batch, user: IntVector, item: IntVector) -> BoolVector:
    """Return True for each (user, item) that the training data have."""
    seen = to_arrow(batch.train.user * batch.n_items + batch.train.item)
    return to_numpy(pc.is_in(to_arrow(user * batch.n_items + item), value_set=seen))
