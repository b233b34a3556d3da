"""What holds of the engine for any rows: cuts between users, the order of the rows, inputs without rows, all policies.

The reference is :mod:`tests.support.naive_lists`, a loop over rows.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.config.policies import Duplicates, HeldOutDuplicates, Ties
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.matching import ListRules
from rankeval_spark.engine.ranked_lists import ITEMS as LISTED
from tests.support import naive_lists
from tests.support.engine_rows import (
    Row,
    compact_lists_of,
    held_out,
    input_table,
    job,
    log,
    moment_rows,
    read,
    scores_of,
    segments,
    train,
)

if TYPE_CHECKING:
    from rankeval_spark.engine.job import Job

MODELS: Final = ("m", "it's")
USERS: Final = {"string": ("u", "é", "𝄞"), "bigint": (-1, 10, 3_000_000_000)}
ITEMS: Final = {"string": ("d2", "d10", "Z", "é", "𝄞", "\uffee"), "bigint": (-5, 2, 9, 10, 11, 3_000_000_000)}
SCORES: Final = (0.0, -0.0, 5e-324, -1.5, 0.5, 0.5 + 2**-53)
GAINS: Final = (-1.0, 0.0, 0.1, 0.2, 0.3, 1.0, 3.0)
TIMES: Final = (None, *(dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2)))
COLUMNS: Final = (C.SCORE, C.RANK, C.GAIN, C.INTERACTED_AT, C.VALUE, row_kinds.SEGMENT_VALUES)
"""Columns that every table has, whichever inputs have rows."""

MEASURES: Final = ("P@2", "R@3", "nDCG@3", "AP", "RR", "Success@1")
SLICES: Final = (("country",), ("country", "tier"))


@st.composite
def tables(draw: st.DrawFn, *, ids: str = "string", has_lists: bool = False) -> list[Row]:
    """Draw rows of all inputs: ties, copies, users on one side alone; ranks can be missing and repeated.

    What decides how often that happens is drawn, the rows are made of a seed: so there are many of them.
    """
    random_ = random.Random(draw(st.integers(0, 2**32)))
    n_log, n_judged = draw(st.integers(0, 60)), draw(st.integers(0, 24))
    items, scores = _first(ITEMS[ids], draw), _first(SCORES, draw)
    ranks = [None, *range(1, draw(st.sampled_from((1, 3, 1000))) + 1)]
    users, lists = USERS[ids], ("", "am", "pm") if has_lists else ("",)

    def one(*columns: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(random_.choice(values) for values in columns)

    names = "model_id user_id list_id item_id score rank"
    of_log = log(names, *(one(MODELS, users, lists, items, scores, ranks) for _ in range(n_log)))
    of_judged = [one(users, items, GAINS, TIMES, (1.5, None, -2.0)) for _ in range(n_judged)]
    known = random_.sample(users, draw(st.integers(0, len(users))))
    return [
        *({name: value for name, value in row.items() if has_lists or name != C.LIST_ID} for row in of_log),
        *held_out("user_id item_id gain interacted_at value", *of_judged),
        *train(*(one(users, items) for _ in range(draw(st.integers(0, 4))))),
        *segments(*((user, *one(("FR", None), ("new", "gold", None))) for user in known)),
    ]


def _first(values: Sequence[Any], draw: st.DrawFn) -> Sequence[Any]:
    """Draw from few of the values as often as from all: ties and copies need few."""
    return values[: draw(st.integers(1, len(values)))]


TIES: Final[tuple[str, ...]] = get_args(Ties)
POLICIES: Final = st.builds(
    ListRules,
    order=st.sampled_from((C.SCORE, C.RANK)),
    ties=st.sampled_from(TIES),
    duplicates=st.sampled_from(("best", *get_args(Duplicates))),
    held_out_duplicates=st.sampled_from(get_args(HeldOutDuplicates)),
    keeps_gaps=st.sampled_from((False, False, True)),
    judged_only=st.sampled_from((False, False, True)),
    drops_seen=st.booleans(),
    checks_ranks=st.booleans(),
).map(lambda rules: replace(rules, order=C.RANK if rules.keeps_gaps else rules.order))

FORGIVING: Final = POLICIES.filter(
    lambda rules: "error" not in (rules.ties, rules.duplicates, rules.held_out_duplicates) and not rules.keeps_gaps
)
"""Policies that refuse nothing."""


def usable(given: list[Row], rules: ListRules) -> list[Row]:
    """Leave out rows without what orders the lists, and scores that do not, as is done before the engine."""
    kept = [row for row in given if row[row_kinds.KIND] != row_kinds.LOG or row[rules.order] is not None]
    if rules.order == C.RANK:
        kept = [{name: value for name, value in row.items() if name != C.SCORE} for row in kept]
    return kept


def work_of(rules: ListRules, **options: Any) -> Job:  # noqa: ANN401 - fields of the job
    """Describe a job with all the measures and slices of these tests."""
    return job(rules, measures=MEASURES, models=MODELS, slices=SLICES, **options)


def table_of(given: list[Row], rules: ListRules, *, ids: str = "string") -> pa.Table:
    """Put rows together; a log that is ordered by ranks has no scores."""
    return input_table(given, ids=ids, also=[name for name in COLUMNS if name != C.SCORE or rules.order == C.SCORE])


def outputs(work: Job, table: pa.Table) -> dict[str, list[Row]]:
    """Make all rows that an evaluation is made of."""
    batches = table.to_batches()
    return {
        "lists": read(compact_lists_of(work, batches)),
        "scored": read(scores_of(work, batches)),
        "items": read(work.ranked_items(batches)),
        "item lists": read(work.item_lists(batches)),
    }


def in_order(found: dict[str, list[Row]]) -> dict[str, list[str]]:
    """Write the rows down, sorted: texts tell -0.0 from 0.0 and every bit of a number."""
    return {name: sorted(repr(sorted(row.items())) for row in own) for name, own in found.items()}


@pytest.mark.parametrize(("ids", "has_lists"), [("string", True), ("bigint", False)])
@pytest.mark.parametrize("ties", TIES)
@given(data=st.data(), drawn=POLICIES)
def test_lists_are_those_of_a_loop_over_the_rows_under_every_policy(
    data: st.DataObject, drawn: ListRules, ties: str, ids: str, has_lists: bool
) -> None:
    rules = replace(drawn, ties=ties)
    given = usable(data.draw(tables(ids=ids, has_lists=has_lists)), rules)
    try:
        of_lists = [row for row in given if row[row_kinds.KIND] in (row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.TRAIN)]
        expected = naive_lists.to_lists(of_lists, rules=rules, models=MODELS)
    except naive_lists.Refused as refused:
        with pytest.raises(RefusedError, match=rf"\[rankeval:{refused.policy}\]"):
            list(compact_lists_of(work_of(rules), table_of(given, rules, ids=ids).to_batches()))
        return
    found = outputs(work_of(rules, has_lists=True), table_of(given, rules, ids=ids))
    ranked: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in found["items"]:
        key = tuple(row[name] for name in C.LIST_KEY)
        ranked.setdefault(key, []).append((row[C.ITEM_ID], row[C.RANK], row[C.GAIN]))
    for row in found["lists"]:
        row[naive_lists.RANKED] = ranked.get(tuple(row[name] for name in C.LIST_KEY), [])
    names = sorted(expected[0]) if expected else []
    assert sorted(([row[name] for name in names] for row in found["lists"]), key=repr) == sorted(
        ([row[name] for name in names] for row in expected), key=repr
    )


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("has_lists", [False, True])
@given(data=st.data(), rules=FORGIVING)
def test_lists_of_items_are_the_ranked_items_list_by_list(
    data: st.DataObject, rules: ListRules, has_lists: bool, depth: int
) -> None:
    """Down to a rank, but always with the first."""
    given = usable(data.draw(tables(has_lists=has_lists)), rules)
    table = table_of(given, rules)
    work = work_of(rules, has_lists=True, depth=depth)
    expected: dict[tuple[Any, ...], list[Row]] = {}
    for row in read(replace(work, depth=0).ranked_items(table.to_batches())):
        item = {name: row[name] for name in (C.ITEM_ID, C.RANK)}
        expected.setdefault(tuple(row[name] for name in C.LIST_KEY), []).append(item)

    found = read(work.item_lists(table.to_batches()))

    assert len(found) == len(expected)
    for row in found:
        key = tuple(row[name] for name in C.LIST_KEY)
        own = expected[key]
        assert row[LISTED] == [item for item in own if not depth or item[C.RANK] <= depth or item is own[0]]


@pytest.mark.parametrize("has_lists", [False, True])
@given(data=st.data(), rules=FORGIVING)
def test_users_may_be_cut_into_two_jobs_at_any_place(data: st.DataObject, rules: ListRules, has_lists: bool) -> None:
    """Lists, scored rows and ranked items are the same bit for bit; so is the order of the users of one job."""
    given = usable(data.draw(tables(has_lists=has_lists)), rules)
    first = set(data.draw(st.lists(st.sampled_from(USERS["string"]), unique=True)))
    parts = [[row for row in given if (row[C.USER_ID] in first) == is_first] for is_first in (True, False)]
    work = work_of(rules, has_lists=has_lists)

    whole = outputs(work, table_of(given, rules))
    left, right = (outputs(work, _with_lists(table_of(part, rules), has_lists)) for part in parts)

    assert in_order(whole) == in_order({name: left[name] + right[name] for name in whole})


def _with_lists(table: pa.Table, has_lists: bool) -> pa.Table:
    """Add the column that rows of other users have."""
    if not has_lists or C.LIST_ID in table.column_names:
        return table
    return table.append_column(C.LIST_ID, pa.nulls(table.num_rows, pa.string()))


@pytest.mark.parametrize("has_lists", [False, True])
@given(data=st.data(), rules=FORGIVING, seed=st.integers(0, 2**32))
def test_the_order_of_the_rows_changes_nothing(
    data: st.DataObject, rules: ListRules, seed: int, has_lists: bool
) -> None:
    """Nor does the size of the batches in which they come."""
    given = usable(data.draw(tables(has_lists=has_lists)), rules)
    work = work_of(rules, has_lists=has_lists)
    shuffled = random.Random(seed).sample(given, len(given))
    whole = outputs(work, table_of(given, rules))

    table = table_of(shuffled, rules)
    in_pieces = pa.Table.from_batches(table.to_batches(max_chunksize=3), table.schema)
    assert in_order(outputs(work, in_pieces)) == in_order(whole)


@given(
    given=tables(),
    kept=st.sets(st.sampled_from((row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.TRAIN, row_kinds.SEGMENTS))),
)
def test_any_input_may_be_without_rows(given: list[Row], kept: set[int]) -> None:
    """There is a list for each that the log has, and for each judged user without one; nothing else."""
    rules = ListRules(C.SCORE, "rank", "best", "last", drops_seen=True, checks_ranks=True)
    some = [row for row in given if row[row_kinds.KIND] in kept]
    table = table_of(some, rules)
    work = work_of(rules)
    found = outputs(work, table)
    partials = moment_rows(work, table.to_batches())

    expected = naive_lists.to_lists(
        [row for row in some if row[row_kinds.KIND] != row_kinds.SEGMENTS], rules=rules, models=MODELS
    )
    assert len(found["lists"]) == len(expected)
    assert len(found["scored"]) == len(expected) * len({0, 1, 2, 3})
    assert bool(partials) == bool(expected)
    for name in (C.HAS_RANK_GAPS, C.IS_OUT_OF_ORDER, C.SEGMENTS):
        assert all(name in row for row in found["lists"])


def test_a_partition_without_rows_gives_none() -> None:
    work = work_of(ListRules(C.SCORE, "item_asc", "best"))
    nothing: list[pa.RecordBatch] = []
    for batches in (nothing, table_of([], work.rules).to_batches()):
        assert list(compact_lists_of(work, batches)) == []
        assert list(work.user_rows(batches)) == []
        assert moment_rows(work, batches) == []
        assert list(work.ranked_items(batches)) == []
        assert list(work.item_lists(batches)) == []
