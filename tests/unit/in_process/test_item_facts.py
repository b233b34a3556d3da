"""Facts of items and users of Arrow tables against the definitions, written as loops, and by hand."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.facts import FactSources, to_catalogue, to_item_table, to_totals
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.features import UNSEEN
from rankeval_spark.in_process import cooccurrence
from rankeval_spark.in_process.cooccurrence import Interactions, to_familiarity, to_pairs
from rankeval_spark.measures import required_facts as N

DAY: Final = dt.date(2026, 1, 31)
COUNTED: Final = frozenset(
    {N.ITEM_INTERACTIONS, N.ITEM_USERS, N.ITEM_TAIL, N.ITEM_LEVEL, N.ITEM_PLACE, N.ITEM_QUANTILE}
)

Pair = tuple[int, int]
interactions = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=60)


def train_of(*pairs: tuple[Any, Any], ids: pa.DataType | None = None) -> pa.Table:
    kind = ids or pa.string()
    users, items = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({C.USER_ID: pa.array(users, kind), C.ITEM_ID: pa.array(items, kind)})


def items_of(*given_items: tuple[Any, ...]) -> pa.Table:
    """Write a catalogue: (item, categories, vector, day)."""
    ids, categories, vectors, days = zip(*given_items, strict=True)
    return pa.table(
        {
            C.ITEM_ID: pa.array(ids, pa.string()),
            C.CATEGORIES: pa.array(categories, pa.list_(pa.string())),
            C.VECTOR: pa.array(vectors, pa.list_(pa.float64())),
            C.PUBLISHED_AT: pa.array(days, pa.date32()),
        }
    )


def ranked_of(lists: list[list[int]]) -> pa.Table:
    """Write the list of each user of the training data: items, best first."""
    cells = [(user, item, rank) for user, items in enumerate(lists) for rank, item in enumerate(items, 1)]
    users, items, ranks = zip(*cells, strict=True) if cells else ((), (), ())
    columns = {C.MODEL_ID: pa.array(["m"] * len(cells), pa.string()), C.USER_ID: pa.array(users, pa.int64())}
    return pa.table(columns | {C.ITEM_ID: pa.array(items, pa.int64()), C.RANK: pa.array(ranks, pa.int32())})


def by(table: pa.Table | None, *keys: str) -> dict[Any, Any]:
    assert table is not None
    found = {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in table.to_pylist()}
    assert len(found) == len(table)
    return found


def test_a_fact_that_the_catalogue_does_not_have_is_no_vector() -> None:
    with pytest.raises(KeyError, match="item_price"):
        to_catalogue(items_of(("a", None, [1.0], None)), needs=["item_price"])


# ---- the definitions ------------------------------------------------------------------------------------------------


def head_of(pairs: list[Pair], share: Fraction) -> list[int]:
    counts = Counter(item for _, item in pairs)
    order = sorted(counts, key=lambda each: (-counts[each], each))
    head: list[int] = []
    while sum(counts[each] for each in head) < share * len(pairs):
        head.append(order[len(head)])
    return head


def expected_facts(pairs: list[Pair], item: int) -> dict[str, float]:
    counts = Counter(each for _, each in pairs)
    order = sorted(counts, key=lambda each: (-counts[each], each))
    users = {each: len({user for user, other in pairs if other == each}) for each in counts}
    below, equal = (sum(map(compare, users.values())) for compare in (users[item].__gt__, users[item].__eq__))
    return {
        N.ITEM_INTERACTIONS: counts[item],
        N.ITEM_USERS: users[item],
        N.ITEM_TAIL: item not in head_of(pairs, Fraction(8, 10)),
        N.ITEM_LEVEL: sorted(set(counts.values()), reverse=True).index(counts[item]) + 1,
        N.ITEM_PLACE: order.index(item) + 1,
        N.ITEM_QUANTILE: (below + (equal + 1) / 2) / len(users),
    }


def cosine(pairs: list[Pair], item: int, other: int) -> float:
    of_item, of_other = ({user for user, each in pairs if each == one} for one in (item, other))
    both = len(of_item & of_other)
    return both / math.sqrt(len(of_item) * len(of_other)) if both else 0.0


@given(interactions)
def test_counted_facts_are_those_of_the_definitions(pairs: list[Pair]) -> None:
    train = train_of(*pairs, ids=pa.int64())
    table = to_item_table(FactSources(Interactions.from_rows(train)), needs=COUNTED)
    found = by(table, C.ITEM_ID)
    assert set(found) == {item for _, item in pairs}
    for item, row in found.items():
        for name, value in expected_facts(pairs, item).items():
            fact = UNSEEN[name] if row[name] is None else row[name]
            assert fact == value, (item, name)


@given(interactions, st.lists(st.lists(st.integers(0, 14), max_size=5, unique=True), max_size=8), st.integers(0, 4))
def test_familiarity_is_the_mean_similarity_to_the_items_of_the_user(
    pairs: list[Pair], lists: list[list[int]], depth: int
) -> None:
    train, expected = train_of(*pairs, ids=pa.int64()), {}
    for user, items in enumerate(lists):
        own = {item for other, item in pairs if other == user}
        for item in items[: depth or None] if own else []:
            similar = sorted(cosine(pairs, item, each) for each in own)
            expected[user, item] = reduce(add, similar, 0.0) / len(own)
    found = by(to_familiarity(ranked_of(lists), Interactions.from_rows(train), depth), C.USER_ID, C.ITEM_ID)
    assert {key: row[row_kinds.SIMILARITY] for key, row in found.items()} == expected


@given(interactions, st.lists(st.lists(st.integers(0, 14), max_size=5), max_size=8), st.integers(0, 4))
@pytest.mark.parametrize("most", [1, 1 << 20])
def test_pairs_are_those_with_users_in_common(most: int, pairs: list[Pair], lists: list[list[int]], depth: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "MAX_CELLS", most)
        patch.setattr(cooccurrence, "AT_ONCE", most)
        table = to_pairs(ranked_of(lists), Interactions.from_rows(train_of(*pairs, ids=pa.int64())), depth)
    expected = {}
    for user, items in enumerate(lists):
        top = list(enumerate(items[: depth or None], 1))
        similar = [
            {"later": later, "earlier": earlier, "similarity": cosine(pairs, one, other)}
            for later, one in top
            for earlier, other in top[: later - 1]
        ]
        similar = [pair for pair in similar if pair["similarity"]]
        if similar:
            expected[user] = {C.MODEL_ID: "m", C.USER_ID: user, C.PAIRS: similar}
    assert by(table, C.USER_ID) == expected


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_facts_of_the_catalogue_are_cleaned_and_the_unknown_is_null() -> None:
    items = items_of(("i00", ["b", "a", "b", None], [1.0, 2.0], DAY), ("i01", [], [math.nan, 1.0], dt.date(2026, 2, 2)))
    needs = frozenset({N.ITEM_USERS, N.ITEM_AGE, N.ITEM_CATEGORIES, N.ITEM_VECTORS})
    train = train_of(("u1", "i00"), ("u1", "i02"))
    table = to_item_table(FactSources(Interactions.from_rows(train), items, DAY), needs=needs)
    assert table is not None
    assert table.to_pydict() == {
        C.ITEM_ID: ["i00", "i01", "i02"],
        N.ITEM_USERS: [1, None, 1],
        N.ITEM_AGE: [0, -2, None],
        N.ITEM_CATEGORIES: [["a", "b"], [], None],
        N.ITEM_VECTORS: [[1.0, 2.0], None, None],
    }


def test_nothing_is_made_where_nothing_is_needed() -> None:
    assert to_item_table(FactSources(), needs=frozenset()) is None
    assert to_totals(FactSources(), needs=frozenset()) is None


def test_an_input_that_is_needed_must_be_there() -> None:
    with pytest.raises(ValueError, match="an input is needed"):
        to_totals(FactSources(), needs=frozenset({N.TOTAL_USERS}))


def test_totals_count_train_and_the_catalogue_once() -> None:
    train = train_of(("u", "a"), ("u", "a"), ("v", "a"), ("v", "b"))
    items = items_of(("a", ["x", "y"], None, None), ("b", ["y", None], None, None), ("c", None, None, None))
    totals = to_totals(FactSources(Interactions.from_rows(train), items), needs=frozenset(N.TOTALS))
    assert totals is not None
    values = (4, 3, 1, 2, 2, 3)
    assert totals.to_pylist() == [dict(zip(N.TOTALS, values, strict=True))]
    in_train = to_totals(FactSources(Interactions.from_rows(train)), needs=frozenset({N.CATALOGUE_ITEMS}))
    assert in_train is not None
    assert in_train.to_pylist() == [{N.CATALOGUE_ITEMS: 2}]


def test_totals_of_an_empty_table_are_zero() -> None:
    totals = to_totals(FactSources(Interactions.from_rows(train_of())), needs=frozenset(N.TOTALS[:4]))
    assert totals is not None
    assert totals.to_pylist() == [dict.fromkeys(N.TOTALS[:4], 0.0)]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (
            items_of(("b", None, None, None), ("a\tc", None, None, None), ("b", None, None, None)),
            "[rankeval:items] item 'b' twice in the catalogue; expected each item once; fix: keep one row an item in "
            "the catalogue.",
        ),
        (
            items_of(("b", None, [1.0], None), ("a", None, [1.0, 2.0], None), ("a\tc", None, [3.0], None)),
            "[rankeval:items] vectors of two lengths, 1 numbers for 'a c' and 2 numbers for 'a'; expected one length; "
            "fix: give each item a vector of one length.",
        ),
    ],
)
def test_a_catalogue_that_says_two_things_is_refused(items: pa.Table, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        to_item_table(FactSources(None, items), needs=frozenset({N.ITEM_VECTORS}))
    assert str(refused.value) == said
