"""What is known of items and users in this process is, bit for bit, what the Spark stages make of the same tables."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.config import validate_model
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Band, Slicing
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import unpack_constants
from rankeval_spark.engine.facts import FactSources, to_constants
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.engine.ranked_lists import ITEMS
from rankeval_spark.in_process import cooccurrence, user_segments
from rankeval_spark.in_process.cooccurrence import Interactions
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans import bands, item_facts
from rankeval_spark.spark.plans.item_facts import FactFrames
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY: Final = dt.date(2026, 1, 31)
IDS: Final = ("a", "Z", "ä", "10", "9", "é", "日", "𝄞", "\ue000", "b b")
"""Beginnings of ids whose order by bytes is not that of their letters, or of their UTF-16."""


def ids_of(kind: str, numbers: np.ndarray) -> pa.Array:
    if kind == "bigint":
        return pa.array(numbers * 7 - 20, pa.int64())
    texts = [f"{IDS[number % len(IDS)]}{number // len(IDS)}" for number in numbers.tolist()]
    return pa.array(texts, pa.string())


def train_of(random: np.random.Generator, kind: str, n_rows: int) -> pa.Table:
    items = np.minimum(random.integers(0, 40, n_rows), random.integers(0, 40, n_rows))
    return pa.table({C.USER_ID: ids_of(kind, random.integers(0, 15, n_rows)), C.ITEM_ID: ids_of(kind, items)})


def items_of(random: np.random.Generator, kind: str) -> pa.Table:
    number = np.flatnonzero(random.random(50) < 0.8)

    def categories() -> list[str | None] | None:
        names = ("rock", "ämne", "Zoo", "a", "", None)
        some = [names[place] for place in random.integers(0, len(names), random.integers(0, 6))]
        return some if random.random() < 0.9 else None

    def vector() -> list[float | None] | None:
        values: list[float | None] = (random.normal(size=5) * 10.0 ** random.integers(-3, 4)).round(2).tolist()
        if random.random() < 0.2:
            values[0] = [math.nan, math.inf, None][random.integers(0, 3)]
        if random.random() < 0.2:
            values = [-0.0 if random.random() < 0.5 else 0.0 for _ in values]
        return values if random.random() < 0.9 else None

    days = [DAY - dt.timedelta(int(day)) if day < 90 else None for day in random.integers(-10, 100, len(number))]
    return pa.table(
        {
            C.ITEM_ID: ids_of(kind, number),
            C.CATEGORIES: pa.array([categories() for _ in number], pa.list_(pa.string())),
            C.VECTOR: pa.array([vector() for _ in number], pa.list_(pa.float64())),
            C.PUBLISHED_AT: pa.array(days, pa.date32()),
        }
    )


def on_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def bits(value: Any) -> Any:  # noqa: ANN401 - any cell
    """Write a cell so that equal texts are equal bits."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {name: bits(one) for name, one in value.items()}
    return [bits(one) for one in value] if isinstance(value, list) else value


def cells(table: pa.Table, *keys: str) -> dict[Any, Any]:
    found = {tuple(row[key] for key in keys): bits(row) for row in table.to_pylist()}
    assert len(found) == len(table)
    return found


def assert_same(found: pa.Table | None, frame: DataFrame | None, *keys: str) -> None:
    assert found is not None
    assert frame is not None
    expected = frame.toArrow()
    assert found.column_names == expected.column_names
    for field in found.schema:
        assert plain(field.type) == plain(expected.schema.field(field.name).type), field.name
    assert cells(found, *keys) == cells(expected, *keys)


def plain(kind: pa.DataType) -> Any:  # noqa: ANN401 - a type, without the names of list elements and NULL
    if pa.types.is_list(kind):
        return ["list", plain(kind.value_type)]
    if pa.types.is_struct(kind):
        return [(field.name, plain(field.type)) for field in kind]
    return kind


@pytest.fixture(params=[("bigint", 2, 150), ("string", 3, 1)])
def tables(request: pytest.FixtureRequest) -> tuple[np.random.Generator, str, pa.Table, pa.Table]:
    kind, seed, n_rows = request.param
    random = np.random.default_rng(seed)
    return random, kind, train_of(random, kind, n_rows), items_of(random, kind)


Drawn = tuple[np.random.Generator, str, pa.Table, pa.Table]


def test_facts_of_items_and_totals_are_the_same(spark: SparkSession, tables: Drawn) -> None:
    _, _, train, items = tables
    frames = FactFrames(on_spark(spark, train), on_spark(spark, items), DAY, has_small_catalogue=True)
    here = FactSources(Interactions.from_rows(train), items, DAY)
    counted, described = COUNTED_FACTS, CATALOGUE_FACTS | {N.ITEM_KNOWN}
    totals = {*N.TOTALS, *N.GROUP_SIZES}
    for needs in (counted | described | totals, {N.ITEM_PLACE, N.ITEM_TAIL}, described, totals):
        found = to_constants(here, needs=frozenset(needs))
        assert found
        frame = item_facts.to_constants(frames, needs=frozenset(needs), row_counts=None)
        assert frame is not None
        on_workers = unpack_constants(frame.toArrow()[row_kinds.SHARED].combine_chunks())
        assert {name: by_item(cell) for name, cell in on_workers.items()} == {
            name: by_item(cell) for name, cell in found.items()
        }


def by_item(cell: pa.Array) -> Any:  # noqa: ANN401 - structs or a struct, as Python writes them
    """Put facts of items into the order of their ids; other cells as they are."""
    found = cell.to_pylist()[0]
    return sorted(found, key=lambda item: item[C.ITEM_ID]) if isinstance(found, list) else found


def ranked_of(random: np.random.Generator, kind: str, *, has_lists: bool) -> pa.Table:
    lists = [(model, user, slate) for model in "mn" for user in range(18) for slate in "pq"[: 1 + has_lists]]
    drawn = [(*key, item, place + 1) for key in lists for place, item in enumerate(random.permutation(45)[:12])]
    drawn = [drawn[place] for place in random.permutation(len(drawn))]
    model, user, slate, item, rank = zip(*drawn, strict=True)
    columns = {C.MODEL_ID: pa.array(model), C.USER_ID: ids_of(kind, np.array(user))}
    own = {C.LIST_ID: pa.array(slate)} if has_lists else {}
    return pa.table(columns | own | {C.ITEM_ID: ids_of(kind, np.array(item)), C.RANK: pa.array(rank, pa.int32())})


@pytest.mark.parametrize(("most_cells", "depth"), [(10, 0), (cooccurrence.MAX_CELLS, 5)])
def test_cooccurrence_is_the_same(
    spark: SparkSession, tables: Drawn, monkeypatch: pytest.MonkeyPatch, most_cells: int, depth: int
) -> None:
    monkeypatch.setattr(cooccurrence, "MAX_CELLS", most_cells)
    monkeypatch.setattr(cooccurrence, "AT_ONCE", most_cells)
    random, kind, train, _ = tables
    ranked = ranked_of(random, kind, has_lists=depth == 0)
    key = [name for name in C.LIST_KEY if name in ranked.column_names]
    items = F.array_sort(F.collect_list(F.struct(C.RANK, C.ITEM_ID))).alias(ITEMS)
    trained, knowledge = Interactions.from_rows(train), FactFrames(on_spark(spark, train))
    lists = on_spark(spark, ranked).groupBy(*key).agg(items)
    familiar = item_facts.to_familiarity(lists, sources=knowledge, depth=depth)
    expected = familiar.withColumnRenamed(N.ITEM_FAMILIARITY, row_kinds.SIMILARITY)
    assert_same(cooccurrence.to_familiarity(ranked, trained, depth), expected, C.USER_ID, C.ITEM_ID)
    pairs = item_facts.to_pairs(lists, sources=knowledge, depth=depth)
    assert_same(cooccurrence.to_pairs(ranked, trained, depth), pairs, *key)


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize(
    ("ids", "vectors", "reads_vectors"),
    [
        (["b", "a\tc", "b"], [[1.0], [1.0], [1.0, 2.0]], True),
        (["b", "a\tc", "d", "e"], [[1.0, 2.0], [1.0], None, [1.0]], True),
        (["b", "a"], [[], [1.0]], True),
    ],
)
def test_a_catalogue_is_refused_with_the_same_words(
    spark: SparkSession, ids: list[str], vectors: list[Any], reads_vectors: bool, is_small: bool
) -> None:
    items = pa.table({C.ITEM_ID: pa.array(ids), C.VECTOR: pa.array(vectors, pa.list_(pa.float64()))})
    needs = frozenset({N.ITEM_VECTORS} if reads_vectors else {N.ITEM_CATEGORIES})
    frames = FactFrames(None, on_spark(spark, items), DAY, has_small_catalogue=is_small)
    frame = (
        item_facts.to_constants(frames, needs=needs, row_counts=None)
        if is_small
        else item_facts.to_catalogue_facts(frames, needs=needs)
    )
    assert frame is not None
    with pytest.raises(ValueError, match=r"^\[rankeval:items\] ") as refused:
        to_constants(FactSources(None, items, DAY), needs=needs)
    with pytest.raises(Exception, match=r"rankeval:items") as failed:
        frame.collect()
    assert str(refused.value) in str(failed.value)


# ---- numbers in bands -----------------------------------------------------------------------------------------------

RULES: Final = {
    "given": {"edges": [-1.5, 0.001, 1, 12_345_678.25, 1e17]},
    "seven": {"quantiles": 7},
}


def numbers_of(random: np.random.Generator, n_rows: int) -> dict[str, np.ndarray]:
    """Draw numbers of some kinds."""
    return {
        "normal": random.normal(0, 1, n_rows),
        "time_us": 1_700_000_000_000_000.0 + random.integers(0, 5000, n_rows),
        "odd": random.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 2.0], n_rows),
        "extreme": random.choice([1e308, -1e308, 5e-324, 1e-300, 1e300, 3.0], n_rows),
        "nothing": np.full(n_rows, math.nan),
    }


def requested(rules: dict[str, Any]) -> Request:
    return Request(
        measures=("P@1",), slicing=Slicing(bands={name: validate_model(Band, rules[name]) for name in rules})
    )


@pytest.mark.parametrize(("rule", "n_rows"), [("given", 331), ("seven", 331), ("seven", 0)])
def test_bands_are_the_same(spark: SparkSession, rule: str, n_rows: int) -> None:
    drawn = numbers_of(np.random.default_rng(n_rows), n_rows)
    columns = {name: pa.array(values, pa.float64(), mask=np.arange(n_rows) % 11 == 5) for name, values in drawn.items()}
    table = pa.table({C.USER_ID: pa.array(range(n_rows), pa.int64()), **columns})
    request = requested({name: RULES[rule] for name in drawn})
    found, facts = user_segments.to_segments({"segments": table}, request)
    frame = on_spark(spark, table)
    with no_spark_jobs(spark):
        banded = bands.with_bands(frame.repartition(5), bands=request.slicing.bands)
    assert_same(found, banded, C.USER_ID)
    expected = bands.to_facts(frame, bands=request.slicing.bands, name="segments").toArrow()
    assert [vars(fact) for fact in facts] == expected.to_pylist()


def test_activity_is_the_same(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    users = [f"u{number}" if number else None for number in random.integers(0, 30, 200)]
    train = pa.table({C.USER_ID: pa.array(users), C.ITEM_ID: pa.array(["i"] * 200)})
    table = pa.table({C.USER_ID: pa.array(["u1", "u2", "x"]), "age": pa.array([3.0, 4.0, None])})
    rules = {"tier": {"of": "train"}, "age": {"edges": [4]}, "fine": {"of": "train", "quantiles": 5}}
    request = requested(rules)
    names = ("tier", "fine")
    counted = {name: request.slicing.bands[name] for name in names}
    activity = bands.to_numbers(on_spark(spark, train), bands=counted)
    banded = bands.with_bands(activity, bands=counted)
    own = bands.with_bands(on_spark(spark, table), bands={"age": request.slicing.bands["age"]})
    found, facts = user_segments.to_segments({"segments": table, "train": train}, request)
    assert_same(found, bands.join_segments(own, banded, absent=request.absent), C.USER_ID)
    assert [vars(fact) for fact in facts[1:]] == bands.to_facts(
        activity, bands=counted, name="train"
    ).toArrow().to_pylist()
    alone, _ = user_segments.to_segments({"train": train}, requested({name: rules[name] for name in names}))
    assert_same(alone, banded, C.USER_ID)


def small_catalogue(spark: SparkSession) -> FactFrames:
    random = np.random.default_rng(1)
    train, items = train_of(random, "string", 200), items_of(random, "string")
    return FactFrames(on_spark(spark, train), on_spark(spark, items), DAY, has_small_catalogue=True)


def constants_of(sources: FactFrames, *, needs: frozenset[str]) -> dict[str, Any]:
    """Return what every worker is handed, by name."""
    with no_spark_jobs(sources.catalogue.sparkSession):
        frame = item_facts.to_constants(sources, needs=needs, row_counts=None)
    assert frame is not None
    cells = unpack_constants(frame.toArrow()[row_kinds.SHARED].combine_chunks())
    return {name: cell.to_pylist()[0] for name, cell in cells.items()}


@pytest.mark.parametrize("names", [N.TOTALS, (*N.TOTALS, *N.GROUP_SIZES), (N.TOTAL_CATEGORIES,)])
def test_totals_are_those_of_a_small_catalogue_where_it_is_large(spark: SparkSession, names: tuple[str, ...]) -> None:
    small = small_catalogue(spark)
    large = replace(small, has_small_catalogue=False)
    found = constants_of(large, needs=frozenset(names))
    assert found == constants_of(small, needs=frozenset(names))
    assert set(found[C.TOTALS]) == set(names)


def test_facts_of_a_large_catalogue_are_not_handed_to_every_worker(spark: SparkSession) -> None:
    large = replace(small_catalogue(spark), has_small_catalogue=False)
    assert item_facts.to_constants(large, needs=frozenset({N.ITEM_VECTORS, N.ITEM_KNOWN}), row_counts=None) is None
    found = constants_of(large, needs=frozenset({N.ITEM_VECTORS, N.ITEM_USERS}))
    assert set(found[row_kinds.ITEMS][0]) == {C.ITEM_ID, N.ITEM_USERS}
