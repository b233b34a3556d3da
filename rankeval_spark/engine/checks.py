"""Checks of the rows of the inputs: each is a name and a condition, which drops rows, counts them and names some.

What workers count while they evaluate the log and the judgements is added up with the other sums, so that the checks
need not read these inputs again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from functools import partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.check_thresholds import CheckName
from rankeval_spark.config.inputs import COMPARE
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.attribution import to_micros
from rankeval_spark.engine.failures import RefusedError, refuse, refuse_input
from rankeval_spark.engine.matching import is_in_train
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.time_zones import UTC, moment_of

if TYPE_CHECKING:
    from rankeval_spark.config.policies import OwnItem
    from rankeval_spark.engine.batch import Batch
    from rankeval_spark.engine.matching import Judgements
    from rankeval_spark.measures.arrays import BoolVector, IntVector

Rows: TypeAlias = pa.Table | pa.RecordBatch


# ---- conditions of rows: false where a cell is NULL, unless they are about that -------------------------------------


@dataclass(frozen=True)
class _OfColumn:
    column: str


class Missing(_OfColumn):
    """A cell that is NULL; not where the table lacks the column."""


class NotFinite(_OfColumn):
    """A number that is NULL, NaN or infinite."""


class NotFiniteVector(_OfColumn):
    """A vector with a number that is NULL, NaN or infinite; none where there is no vector."""


class Marked(_OfColumn):
    """A cell that is true."""


@dataclass(frozen=True)
class Compared:
    """A cell that compares as ``op`` with a number."""

    column: str
    op: str  # a key of ``config.inputs.COMPARE``
    value: float


@dataclass(frozen=True)
class Since:
    """A cell with a time at or after a moment."""

    column: str
    micros: int  # microseconds since 1970, UTC


@dataclass(frozen=True)
class Same:
    """Two cells with the same value; the columns have one type."""

    first: str
    second: str


@dataclass(frozen=True)
class _OfParts:
    parts: tuple[Condition, ...]


class AnyOf(_OfParts):
    """At least one of several conditions; without any, no row meets it."""


class AllOf(_OfParts):
    """All of several conditions; without any, every row meets it."""


Condition: TypeAlias = Missing | NotFinite | Compared | Since | Same | NotFiniteVector | Marked | AnyOf | AllOf


def meets(rows: Rows, condition: Condition) -> BoolVector:
    """Return which rows meet a condition."""
    found: BoolVector
    match condition:
        case AnyOf(parts) | AllOf(parts):
            found = np.full(rows.num_rows, isinstance(condition, AllOf))
            how = np.logical_and if isinstance(condition, AllOf) else np.logical_or
            return reduce(how, (meets(rows, part) for part in parts), found)
        case Missing(name):
            is_known = name not in rows.schema.names or not rows[name].null_count
            found = np.zeros(rows.num_rows, dtype=np.bool_) if is_known else to_numpy(rows[name].is_null())
        case NotFinite(name):
            if not pa.types.is_floating(rows.schema.field(name).type):
                return meets(rows, Missing(name))
            found = ~np.isfinite(to_numpy(rows[name], null=np.nan))
        case Compared(name, op, value):
            found = COMPARE[op](to_numpy(rows[name], null=0), value)
            found &= ~meets(rows, Missing(name))
        case Since(name, micros):
            found = to_numpy(rows[name].cast(pa.int64()), null=np.iinfo(np.int64).min) >= micros
        case Same(first, second):
            found = to_numpy(pc.equal(rows[first], rows[second]), null=0).astype(np.bool_)
        case NotFiniteVector(name):
            lists = combine_chunks(rows[name])
            found = np.zeros(len(lists), dtype=np.bool_)
            found[to_numpy(pc.list_parent_indices(lists))[~np.isfinite(to_numpy(pc.list_flatten(lists)))]] = True
        case Marked(name):
            found = to_numpy(rows[name], null=0).astype(np.bool_)
        case _:
            assert_never(condition)
    return found


# ---- the checks of each input ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A check of single rows: the condition that a bad row meets."""

    name: CheckName
    is_bad: Condition
    drops: bool = False  # whether such a row is left out; the checks after this one do not look at it
    is_fault: bool = True  # whether such a row has to be fixed, and a night keeps it for that; else it is as intended
    warning: str = ""  # how `evaluate` warns of faulty rows, behind their number; empty: it does not
    fix: str = "correct the rows"  # where all rows of an input fail this check
    refuse: Callable[[], NoReturn] | None = None  # refuses the input for the first such row

    @property
    def refusal(self) -> str:
        """Text of the error by which it refuses; empty where it does not."""
        try:
            if self.refuse is not None:
                self.refuse()
        except RefusedError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class RowChecks:
    """The checks of the rows of an input, in their order."""

    input: str
    key: tuple[str, ...]  # columns that name a row
    checks: tuple[Check, ...]
    # text of a column of the key that the rows do not have: they may be in one table with others that do
    absent: Mapping[str, str] = field(default_factory=dict)

    def without_score_refusals(self) -> RowChecks:
        """Return the same checks for counting alone: without the refusal of the policy ``invalid_scores``."""
        checks = (replace(check, refuse=None) if check.name == "invalid_scores" else check for check in self.checks)
        return replace(self, checks=tuple(checks))

    def flag_failures(self, rows: Rows) -> dict[CheckName, BoolVector]:
        """Return which rows do not pass each check; refused where a check refuses one."""
        is_left, found = np.ones(rows.num_rows, dtype=np.bool_), dict[CheckName, np.ndarray]()
        for check in self.checks:
            found[check.name] = meets(rows, check.is_bad) & is_left
            if check.refuse is not None and found[check.name].any():
                check.refuse()
            if check.drops:
                is_left = is_left & ~found[check.name]
        return found

    def is_usable(self, flags: Mapping[CheckName, BoolVector]) -> BoolVector:
        """Return which rows pass all checks that leave rows out."""
        return ~reduce(np.logical_or, (flags[check.name] for check in self.checks if check.drops))

    def usable(self, table: pa.Table) -> pa.Table:
        """Return the rows that can be used, the table itself where all can; refused as by :meth:`flag_failures`."""
        is_kept = self.is_usable(self.flag_failures(table))
        return table if is_kept.all() else table.filter(to_arrow(is_kept))

    def tallies(self, rows: Rows, flags: Mapping[CheckName, BoolVector]) -> Iterator[Tally]:
        """Count the rows, and those that do not pass each check."""
        yield Tally(self.input, ROWS, rows.num_rows, rows.num_rows)
        for name, flag in flags.items():
            ends = first_and_last_key(rows, self.key, flag, self.absent)
            yield Tally(self.input, name, int(np.count_nonzero(flag)), rows.num_rows, *ends)


ROWS: Final = "rows"  # the check that only counts the rows of an input

ZERO_RANKS: Final = "zero_ranks"
ZERO_RANK_EXPECTED: Final = "ranks that count from 1"

_refuse_zero_rank: Final = partial(
    refuse_input,
    "recommendations",
    "rank 0, in a log whose ranks order its lists",
    expected=ZERO_RANK_EXPECTED,
    fix="write inputs={'recommendations': {'ranks_from': 0}}, which counts the first item of each list as 1",
)
_refuse_invalid_order: Final = partial(
    refuse, "invalid_scores", "a recommendation with a NULL, NaN or infinite score or rank"
)


def log_checks(
    columns: Collection[str],
    *,
    invalid_scores: str = "drop",
    own_item: OwnItem = "keep",
    are_judged: bool = True,
    model: str = C.ONE_MODEL,
) -> RowChecks:
    """Return the checks of a log that is ordered by scores or else ranks; ``model``: that of rows that name none."""
    key, refused = schemas.RECOMMENDATIONS.key, _refuse_invalid_order if invalid_scores == "error" else None
    absent = {name: text for name, text in ((C.MODEL_ID, model), (C.LIST_ID, C.ONE_LIST)) if name not in columns}
    if C.SCORE in columns:
        invalid: Condition = NotFinite(C.SCORE)
        has_zero: Condition = AnyOf(())
    else:
        invalid, has_zero = AnyOf((Missing(C.RANK), Compared(C.RANK, "<", 1))), Compared(C.RANK, "=", 0)
    checks = (
        _null_key_check([name for name in key if name not in absent]),
        *_own_item_check(own_item, drops=True),
        Check(ZERO_RANKS, has_zero, drops=True, refuse=None if are_judged else _refuse_zero_rank),
        Check(
            "invalid_scores",
            invalid,
            drops=True,
            warning="are left out: the score, or without one the rank, is NULL, NaN or infinite",
            fix="correct the rows; where rows are lists, the arrays of items and scores have one length",
            refuse=refused,
        ),
    )
    return RowChecks("recommendations", key, checks, absent)


def unnamed_checks(columns: Collection[str]) -> RowChecks:
    """Return the check of rows of the log that name no model, where the others do not name theirs."""
    absent = {C.MODEL_ID: "NULL"} | ({} if C.LIST_ID in columns else {C.LIST_ID: C.ONE_LIST})
    null_keys = replace(_null_key_check(()), is_bad=AllOf(()))
    return RowChecks("recommendations", schemas.RECOMMENDATIONS.key, (null_keys,), absent)


def held_out_checks(columns: Collection[str], *, own_item: OwnItem = "keep") -> RowChecks:
    """Return the checks of judgements: of values and weights where they have the column; ``own_item``: the policy."""
    key = schemas.HELD_OUT.key_in(columns)
    is_low = AllOf((Compared(C.GAIN, ">", 0), Compared(C.GAIN, "<", RELEVANT)))
    checks = [
        _null_key_check(key),
        *_own_item_check(own_item, drops=own_item == "drop_both"),
        Check(
            "invalid_gains",
            NotFinite(C.GAIN),
            drops=True,
            warning="are left out: the gain is NULL, NaN or infinite",
            fix="correct the rows; numbers have a decimal point, events the upper and lower case that gains write, and "
            "arrays of items and gains one length",
        ),
        Check("negative_gains", Compared(C.GAIN, "<", 0), is_fault=False),
        Check("low_gains", is_low, is_fault=False),
    ]
    if C.VALUE in columns:
        warning = "count as a value of 0: it is NULL, NaN or infinite"
        checks.append(Check("invalid_values", NotFinite(C.VALUE), warning=warning))
    if C.WEIGHT in columns:
        weight = AnyOf((NotFinite(C.WEIGHT), Compared(C.WEIGHT, "<=", 0)))
        warning = "do not count where weighted=True: the weight is not above 0, or infinite"
        checks.append(Check("invalid_weights", weight, warning=warning))
    return RowChecks("held_out", key, tuple(checks))


def train_checks(columns: Collection[str], *, before: date | None = None, time_zone: str = UTC) -> RowChecks:
    """Return the checks of training data; interactions are to be before a day of a time zone, if they have times."""
    key, of_times = schemas.TRAIN.key, list[Check]()
    if before is not None and C.INTERACTED_AT in columns:
        micros = to_micros(moment_of(datetime.combine(before, time()), time_zone))
        of_times.append(Check("train_after_cut", Since(C.INTERACTED_AT, micros), is_fault=False))
    return RowChecks("train", key, (_null_key_check(key), *of_times))


def item_checks(columns: Collection[str], *, unreadable: str | None = None) -> RowChecks:
    """Return the checks of a catalogue; ``unreadable`` is the column that says where a cell could not be read."""
    parts: list[Condition] = [NotFiniteVector(C.VECTOR)] if C.VECTOR in columns else []
    parts += [] if unreadable is None else [Marked(unreadable)]
    key, warning = schemas.ITEMS.key, "have a cell or a vector that cannot be read, which counts as unknown"
    return RowChecks("items", key, (_null_key_check(key), Check("invalid_facts", AnyOf(tuple(parts)), warning=warning)))


def segment_checks() -> RowChecks:
    """Return the checks of the segments of users."""
    return RowChecks("segments", C.SEGMENT_KEY, (_null_key_check(C.SEGMENT_KEY),))


def user_value_checks() -> RowChecks:
    """Return the checks of own values of users."""
    invalid = AnyOf((Missing(C.NAME), NotFinite(C.VALUE)))
    warning = "are left out: the value is NULL, NaN or infinite, or has no name"
    checks = (_null_key_check(C.SEGMENT_KEY), Check("invalid_user_values", invalid, drops=True, warning=warning))
    return RowChecks("user_values", (C.USER_ID, C.NAME), checks)


def user_weight_checks() -> RowChecks:
    """Return the checks of the users' weights in the means."""
    invalid = AnyOf((NotFinite(C.WEIGHT), Compared(C.WEIGHT, "<=", 0)))
    warning = "are left out, and their users of every mean: the weight is not above 0, or infinite"
    checks = (_null_key_check(C.SEGMENT_KEY), Check("invalid_user_weights", invalid, drops=True, warning=warning))
    return RowChecks("user_weights", C.SEGMENT_KEY, checks)


def _null_key_check(key: Sequence[str]) -> Check:
    """Return the check of rows in which a column of the key is NULL."""
    is_bad = AnyOf(tuple(map(Missing, key)))
    return Check("null_keys", is_bad, drops=True, warning="are left out: an id is NULL")


def _own_item_check(policy: OwnItem, *, drops: bool) -> list[Check]:
    """Return the check of rows whose item is the query itself, where the policy does not keep all of them."""
    check = Check("own_item", Same(C.USER_ID, C.ITEM_ID), drops=drops, is_fault=False)
    return [] if policy == "keep" else [check]


def _every_check() -> Iterator[Check]:
    """Yield the checks of all inputs, with all of their columns."""
    log, held_out, train, items = (
        schema.field_names() for schema in (schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS)
    )
    of_log, of_judgements = log_checks(log, own_item="drop"), held_out_checks(held_out, own_item="drop")
    others = (train_checks(train, before=date(2000, 1, 1)), item_checks(items), segment_checks())
    for of_input in (of_log, of_judgements, *others, user_value_checks(), user_weight_checks()):
        yield from of_input.checks


CHECKS: Final[Mapping[str, Check]] = {check.name: check for check in _every_check()}
"""A check of each name, with the condition in one of the inputs that have it."""

FAULTS: Final = tuple(name for name, check in CHECKS.items() if check.is_fault)
"""Checks of rows that are kept for whoever fixes the input: they cannot be used, or not all that they say."""

UNUSABLE: Final = tuple(name for name in FAULTS if CHECKS[name].drops)
"""Checks of faulty rows that are left out of the evaluation; a row fails one of them at most."""


# ---- inputs without a usable row ------------------------------------------------------------------------------------

EXPECTED: Final[Mapping[str, str]] = {
    "recommendations": "ids that are not NULL, and a finite score or else a rank of at least 1",
    "held_out": "ids that are not NULL, and a finite gain",
    "segments": "users that are not NULL",
    "train": "users and items that are not NULL",
    "items": "items that are not NULL",
    "user_values": "users and names that are not NULL, and finite values",
    "user_weights": "users that are not NULL, and finite weights above 0",
}
"""Requirements of a usable row, by input."""


def refuse_unusable(counts: pa.Array) -> None:
    """Refuse an input that has rows and none that can be used; ``counts`` is a cell of :data:`row_kinds.COUNTS`."""
    by_input: dict[str, dict[str | None, int]] = {}
    for row in counts[0].as_py():
        by_input.setdefault(row["input"], {})[row["check"]] = row["count"]
    for name, by_check in sorted(by_input.items()):
        is_part = sum(by_check.values()) >= row_kinds.MAX_COUNTED
        refuse_by_check(name, by_check, or_more=" or more" if is_part else "")


def refuse_by_check(name: str, by_check: Mapping[str | None, int], *, or_more: str = "") -> None:
    """Refuse an input that has rows and none that can be used, with the counts by check.

    ``by_check``: number of rows by the check that they fail, None for those that can be used. ``or_more``: text behind
    the number of rows, where not all of them were counted.
    """
    unusable = {check: by_check[check] for check in UNUSABLE if by_check.get(check)}
    if unusable and not by_check.get(None):
        each = ", ".join(f"{count} {check}" for check, count in unusable.items())
        found = f"{sum(unusable.values())} rows{or_more} and none that can be used ({each})"
        refuse_input(name, found, expected=EXPECTED[name], fix=fix_of(unusable))


def fix_of(checks: Iterable[str]) -> str:
    """Return the fix for rows that all fail one of these checks."""
    fixes = {CHECKS[check].fix for check in checks}
    return fixes.pop() if len(fixes) == 1 else Check.fix


# ---- what is counted ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Rows of an input that a check finds, among how many, with the first and last key concerned."""

    input: str
    check: CheckName
    count: int
    total: int
    first: str | None = None
    last: str | None = None

    @property
    def sample_keys(self) -> list[str]:
        """The keys, each once."""
        return list(dict.fromkeys(key for key in (self.first, self.last) if key is not None))


def add_tallies(found: dict[tuple[str, CheckName], Tally], added: Iterable[Tally]) -> None:
    """Add, in place, to the tallies by input and check."""
    for tally in added:
        before = found.get((tally.input, tally.check), Tally(tally.input, tally.check, 0, 0))
        keys = [key for each in (before, tally) for key in (each.first, each.last) if key is not None]
        ends = (min(keys), max(keys)) if keys else (None, None)
        counts = before.count + tally.count, before.total + tally.total
        found[tally.input, tally.check] = Tally(tally.input, tally.check, *counts, *ends)


_ROWS_AT_ONCE: Final = 1 << 20  # rows whose keys are written out together: one Arrow array of texts holds 2 GiB


def first_and_last_key(
    rows: Rows, key: Sequence[str], flag: BoolVector, absent: Mapping[str, str] = MappingProxyType({})
) -> tuple[str | None, str | None]:
    """Return the keys of the first and the last row with a flag, in the order of their bytes; None without a flag.

    The texts of the columns are joined by a blank, NULL as ``NULL``. ``absent``: those that rows do not have.
    """
    if not flag.any():
        return None, None
    names = [name for name in key if name not in absent]
    concerned = rows.select(names).filter(to_arrow(flag))
    parts = concerned.to_batches(max_chunksize=_ROWS_AT_ONCE) if isinstance(concerned, pa.Table) else [concerned]
    fixed, blank = {name: to_texts([text])[0] for name, text in absent.items()}, to_texts([" "])[0]
    columns = ([fixed[name] if name in fixed else part[name].cast(pa.string()) for name in key] for part in parts)
    join = partial(pc.binary_join_element_wise, null_handling="replace", null_replacement="NULL")
    return _min_and_max(join(*texts, blank) for texts in columns)


def first_and_last_id(ids: pa.Array, flag: BoolVector) -> tuple[str | None, str | None]:
    """Return the first and the last id with a flag, by the bytes of their texts."""
    return _min_and_max([ids.filter(to_arrow(flag)).cast(pa.string())])


def _min_and_max(parts: Iterable[pa.Array]) -> tuple[str | None, str | None]:
    """Return the first and the last text of all parts by their bytes; None without any."""
    ends = [pc.min_max(part).as_py() for part in parts if len(part)]
    return (min(end["min"] for end in ends), max(end["max"] for end in ends)) if ends else (None, None)


ITEM_FIELDS: Final = (C.ITEM_ID, "n_judged", "n_listed")
"""Columns of the items of the log and the judgements, and how many rows of each have the item."""


@dataclass
class PartitionTallies:
    """Counts of the log and the judgements in one partition."""

    is_enabled: bool = False  # whether more than single rows is looked at
    tallies: dict[tuple[str, CheckName], Tally] = field(default_factory=dict)  # by input and check
    items: list[tuple[pa.Array, pa.Array, pa.Array]] = field(default_factory=list)  # of some users each

    def usable(self, batches: Iterable[pa.RecordBatch], checks: Mapping[int, RowChecks]) -> Iterator[pa.RecordBatch]:
        """Count the rows that fail the checks of their input, and keep those that can be used; may refuse a row."""
        for batch in batches:
            kinds = to_numpy(batch[row_kinds.KIND])
            found = np.flatnonzero(np.bincount(kinds)).tolist()
            for kind in found:
                rows = batch if len(found) == 1 else batch.filter(to_arrow(kinds == kind))
                of_input = checks.get(kind)
                if of_input is None:
                    yield rows
                    continue
                named, names = rows, rows.schema.names
                if kind == row_kinds.HELD_OUT and C.GAIN not in names:
                    carrier = row_kinds.CARRIED_BY[kind][C.GAIN]
                    named = rows.rename_columns([C.GAIN if name == carrier else name for name in names])
                flags = of_input.flag_failures(named)
                add_tallies(self.tallies, of_input.tallies(named, flags))
                is_kept = of_input.is_usable(flags)
                yield rows if is_kept.all() else rows.filter(to_arrow(is_kept))

    def add(self, batch: Batch, judgements: Judgements, *, counts_seen: bool = False) -> None:
        """Add a batch to the tallies of checks, and to how often each item is judged and listed.

        Tallied are repeated judgements, users without a relevant one, and judgements whose list is not in the log; with
        ``counts_seen`` also listed items of the training data. ``batch.held_out`` has all judgements, ``judgements``
        one per owner and item.
        """
        if not self.is_enabled:
            return
        log, judged, owners = batch.log, batch.held_out, batch.owners
        n_listed, n_judged = (np.bincount(rows.item, minlength=batch.n_items) for rows in (log, judged))
        used = to_arrow((n_listed > 0) | (n_judged > 0))
        self.items.append((batch.items.filter(used), to_arrow(n_judged).filter(used), to_arrow(n_listed).filter(used)))
        owner = owners.user[judgements.owner]
        n_rows, n_pairs = (np.bincount(each, minlength=batch.n_users) for each in (judged.user, owner))
        best = np.full(batch.n_users, -np.inf)
        np.maximum.at(best, owner, judgements.gain)
        has_none = (n_pairs > 0) & (best < RELEVANT)
        n_users, without = int(np.count_nonzero(n_pairs)), int(np.count_nonzero(has_none))
        repeated = first_and_last_id(batch.users, n_rows > n_pairs)
        found = [
            Tally("held_out", "duplicates", len(judged) - len(owner), len(judged), *repeated),
            Tally("held_out", "zero_relevant", without, n_users, *first_and_last_id(batch.users, has_none)),
        ]
        is_known = np.bincount(log.user, minlength=batch.n_users) + n_rows > 0
        for name, given in (("user_values", batch.user_values), ("user_weights", batch.user_weights)):
            unknown = given.user[~is_known[given.user]]
            if len(given):
                ends = first_and_last_id(batch.users, np.bincount(unknown, minlength=batch.n_users) > 0)
                found.append(Tally(name, "unmatched_users", len(unknown), len(given), *ends))
        if owners.names is not None:
            is_listed = np.bincount(owners.log, minlength=len(owners.user)) > 0
            of_lists = owners.held_out[~is_listed[owners.held_out]]
            ends = _first_and_last_joined((batch.users, owners.user[of_lists]), (owners.names, owners.name[of_lists]))
            found.append(Tally("held_out", row_kinds.UNMATCHED_LISTS, len(of_lists), len(judged), *ends))
        if counts_seen:  # in the whole log
            rows, lists = np.flatnonzero(is_in_train(batch, log.user, log.item)), log.columns.get(C.LIST_ID)
            of_list = (to_texts([C.ONE_LIST]), np.zeros(len(rows), np.int64)) if lists is None else (lists, rows)
            models = to_texts(batch.models), batch.model[rows]
            ends = _first_and_last_joined(models, (batch.users, log.user[rows]), of_list, (batch.items, log.item[rows]))
            found.append(Tally("recommendations", "seen_in_train", len(rows), len(log), *ends))
        add_tallies(self.tallies, found)

    def add_judged_seen(self, batch: Batch) -> None:
        """Count the judgements, one per owner and item, whose user has the item in the training data."""
        if self.is_enabled:
            pairs = np.unique(batch.judged.user * batch.n_items + batch.judged.item)
            owner, item = np.divmod(pairs, max(batch.n_items, 1))
            user = batch.owners.user[owner]
            seen = np.flatnonzero(is_in_train(batch, user, item))
            ends = _first_and_last_joined((batch.users, user[seen]), (batch.items, item[seen]))
            add_tallies(self.tallies, [Tally("held_out", row_kinds.HELD_OUT_IN_TRAIN, len(seen), len(pairs), *ends)])


def _first_and_last_joined(*ids: tuple[pa.Array, IntVector]) -> tuple[str | None, str | None]:
    """Return the first and last of keys that are ids joined by a blank, each some values and places among them."""
    parts = (pc.take(values, to_arrow(place)).cast(pa.string()) for values, place in ids)
    return _min_and_max([pc.binary_join_element_wise(*parts, to_texts([" "])[0])])
