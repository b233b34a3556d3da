"""Facts of items and users against plain Python, on data with many ties."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import unpack_constants
from rankeval_spark.engine.features import UNSEEN
from rankeval_spark.engine.ranked_lists import ITEMS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans import item_facts
from rankeval_spark.spark.plans.item_facts import FactFrames
from tests.support.frames import by, frame_of, table
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.date(2026, 1, 31)
ALL_OF_ITEMS = frozenset({*N.ITEM_VALUES, N.ITEM_CATEGORIES, N.ITEM_VECTORS})


def train_rows(seed: int, n_rows: int) -> list[tuple[str, str]]:
    """Draw interactions: few items are popular, many equally unpopular, some pairs stand several times."""
    draw = random.Random(seed)
    return [(f"u{draw.randrange(12)}", f"i{min(draw.randrange(30), draw.randrange(30)):02}") for _ in range(n_rows)]


def knowledge_of(spark: SparkSession, rows: list[tuple[str, str]]) -> FactFrames:
    catalogue = frame_of(
        spark,
        [("i00", ["b", "a", "b", None], [1.0, 2.0], DAY), ("i01", [], [math.nan, 1.0], dt.date(2026, 2, 2))],
        "item_id string, categories array<string>, vector array<double>, published_at date",
    )
    return FactFrames(table(spark, "user_id item_id", *rows), catalogue, DAY, has_small_catalogue=True)


def facts_of_items(spark: SparkSession, rows: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the facts of items that are the same for all users."""
    items = constants_of(knowledge_of(spark, rows), needs=ALL_OF_ITEMS)[row_kinds.ITEMS]
    return {row[C.ITEM_ID]: row for row in items}


def constants_of(sources: FactFrames, *, needs: frozenset[str]) -> dict[str, Any]:
    """Return what every worker is handed, by name."""
    with no_spark_jobs(sources.catalogue.sparkSession):
        frame = item_facts.to_constants(sources, needs=needs, row_counts=None)
    assert frame is not None
    cells = unpack_constants(frame.toArrow()[row_kinds.SHARED].combine_chunks())
    return {name: cell.to_pylist()[0] for name, cell in cells.items()}


def familiarities(spark: SparkSession, rows: list[tuple[str, str]], items: list[str]) -> dict[Any, float]:
    """Return the similarity of some items to those that two users have."""
    ranked = table(spark, "user_id item_id rank", *((user, item, 1) for user in ("u1", "u2") for item in items))
    lists = ranked.groupBy(C.USER_ID).agg(F.collect_list(F.struct(C.ITEM_ID, C.RANK)).alias(ITEMS))
    found = item_facts.to_familiarity(lists, sources=knowledge_of(spark, rows), depth=0)
    return by(found, C.USER_ID, C.ITEM_ID, value=N.ITEM_FAMILIARITY)


def expected_facts(rows: list[tuple[str, str]], user: str, item: str) -> dict[str, Any]:
    """Follow the definitions."""
    counts = Counter(row[1] for row in rows)
    order = sorted(counts, key=lambda each: (-counts[each], each))
    levels = sorted(set(counts.values()), reverse=True)
    head: list[str] = []
    while sum(counts[each] for each in head) < Fraction(8, 10) * len(rows):
        head.append(order[len(head)])
    is_known = item in counts
    users = {each: {row[0] for row in rows if row[1] == each} for each in counts}
    own = sorted({row[1] for row in rows if row[0] == user})
    return {
        N.ITEM_INTERACTIONS: counts[item],
        N.ITEM_USERS: len({row[0] for row in rows if row[1] == item}),
        N.ITEM_TAIL: item not in head,
        N.ITEM_LEVEL: levels.index(counts[item]) + 1 if is_known else math.inf,
        N.ITEM_PLACE: order.index(item) + 1 if is_known else math.inf,
        N.ITEM_QUANTILE: quantile(users, item) if is_known else 0,
        N.ITEM_FAMILIARITY: math.fsum(together(users, item, each) for each in own) / len(own) if own else None,
    }


def quantile(users: dict[str, set[str]], item: str) -> float:
    """Rank by users, ascending, equal items sharing the mean of theirs, over all items."""
    counts = [len(each) for each in users.values()]
    n = len(users[item])
    return (sum(each < n for each in counts) + (counts.count(n) + 1) / 2) / len(counts)


def together(users: dict[str, set[str]], item: str, other: str) -> float:
    """Cosine of the users of two items."""
    in_common = users.get(item, set()) & users[other]
    return len(in_common) / math.sqrt(len(users[item]) * len(users[other])) if in_common else 0


@pytest.mark.parametrize(("seed", "n_rows"), [(1, 200), (2, 40), (3, 5), (4, 1)])
def test_facts_from_the_training_data_are_those_of_the_definitions(spark: SparkSession, seed: int, n_rows: int) -> None:
    rows = train_rows(seed, n_rows)
    items = [f"i{number:02}" for number in range(31)]
    of_items, similar = facts_of_items(spark, rows), familiarities(spark, rows, items)
    for user, item in product(("u1", "u2"), items):
        expected = expected_facts(rows, user, item)
        familiarity = expected.pop(N.ITEM_FAMILIARITY)
        assert similar.get((user, item)) == (familiarity and pytest.approx(familiarity, rel=0, abs=1e-12))
        found = of_items.get(item)
        for name, value in expected.items():
            fact = UNSEEN[name] if found is None or found[name] is None else found[name]
            assert fact == value, (user, item, name)


def test_facts_of_the_catalogue_are_cleaned_and_the_unknown_is_null(spark: SparkSession) -> None:
    found = facts_of_items(spark, [("u1", "i00"), ("u1", "i02")])
    names = (N.ITEM_AGE, N.ITEM_CATEGORIES, N.ITEM_VECTORS)
    assert [tuple(found[item][name] for name in names) for item in ("i00", "i01", "i02")] == [
        (0, ["a", "b"], [1.0, 2.0]),
        (-2, [], None),
        (None, None, None),
    ]


def test_totals_of_an_empty_table_are_zero(spark: SparkSession) -> None:
    nothing = table(spark, "user_id item_id", ("u", "a")).where("1 = 0")
    found = constants_of(FactFrames(nothing), needs=frozenset(N.TOTALS[:4]))
    assert found == {C.TOTALS: dict.fromkeys(N.TOTALS[:4], 0.0)}


@pytest.mark.parametrize("names", [N.TOTALS, N.GROUP_SIZES, (*N.TOTALS, *N.GROUP_SIZES), (N.TOTAL_CATEGORIES,)])
def test_totals_are_those_of_a_small_catalogue_where_it_is_large(spark: SparkSession, names: tuple[str, ...]) -> None:
    small = knowledge_of(spark, train_rows(1, 200))
    large = replace(small, has_small_catalogue=False)
    found = constants_of(large, needs=frozenset(names))
    assert found == constants_of(small, needs=frozenset(names))
    assert set(found[C.TOTALS]) == set(names)


def test_facts_of_a_large_catalogue_are_not_handed_to_every_worker(spark: SparkSession) -> None:
    large = replace(knowledge_of(spark, train_rows(1, 200)), has_small_catalogue=False)
    assert item_facts.to_constants(large, needs=frozenset({N.ITEM_VECTORS, N.ITEM_KNOWN}), row_counts=None) is None
    found = constants_of(large, needs=frozenset({N.ITEM_VECTORS, N.ITEM_USERS}))
    assert set(found[row_kinds.ITEMS][0]) == {C.ITEM_ID, N.ITEM_USERS}
