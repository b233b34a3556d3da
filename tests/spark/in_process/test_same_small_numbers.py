"""Very great and very small values, and rows in any order, give the same numbers on both hosts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, get_args

import pytest

from rankeval_spark import evaluate
from rankeval_spark.config.inference import TestName
from tests.support.arrow_frames import dicts, table
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

TESTS: Final[tuple[str, ...]] = get_args(TestName)
KEYS: Final = ("user_id", "model_id", "slice", "slice_value", "measure", "test", "k")
ROWS: Final = tuple((1.0 + user % 7, 1.0 + user % 5) for user in range(40))
CASES: Final[dict[str, Sequence[tuple[float, float]]]] = {
    "one great user who differs": [(1e12, 2e12), *[(1.0, 2.0)] * 29],
    "no squares": [(one * 1e-170, other * 1e-170) for one, other in ROWS],
    "infinite squares": [(one * 1e200, other * 1e200) for one, other in ROWS],
}


def on_spark(spark: SparkSession, rows: pa.Table) -> Any:  # noqa: ANN401 - a DataFrame
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    return spark.createDataFrame(rows.to_pandas())


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(dicts(rows), key=lambda row: [str(row.get(name)) for name in KEYS])


@pytest.mark.parametrize("title", CASES)
def test_comparisons_of_great_and_small_values_are_the_same(spark: SparkSession, title: str) -> None:
    users = {f"u{user:02}": values for user, values in enumerate(CASES[title])}
    log = table("model_id user_id item_id score", *[(model, user, model, 1.0) for model in "ab" for user in users])
    worth = [(user, model, 1.0, value) for user, own in users.items() for model, value in zip("ab", own, strict=True)]
    held_out = table("user_id item_id gain value", *worth)
    asked: dict[str, Any] = {"measures": ["CG(gains='value')@1"], "pairs": "all", "tests": TESTS, "replicates": 100}
    here = evaluate(log, held_out, **sections(**asked))
    with evaluate(on_spark(spark, log), on_spark(spark, held_out), **sections(**asked)).cached() as there:
        pairs = [(here.comparisons, there.comparisons.toArrow()), (here.metrics, there.metrics.toArrow())]
    for own, other in pairs:
        for one, two in zip(in_order(own), in_order(other), strict=True):
            for name, value in one.items():
                expected = pytest.approx(value, rel=1e-12, abs=0) if isinstance(value, float) else value
                assert two[name] == expected, (name, one, two)


def test_duplicates_whose_sum_is_infinite_are_refused_on_spark(spark: SparkSession) -> None:
    log = on_spark(spark, table("model_id user_id item_id score", ("m", "u", "i", 1.0)))
    held_out = on_spark(spark, table("user_id item_id gain", ("u", "i", 1e308), ("u", "i", 1e308)))
    result = evaluate(log, held_out, measures=["CG@1"], policies={"held_out_duplicates": "sum"})
    with pytest.raises(Exception, match="the gains of a user and an item add up to infinity"):
        result.metrics.collect()


@pytest.mark.parametrize("unit", ["user", "list"])
def test_the_order_of_the_rows_changes_no_bit_of_means_over_lists_on_spark(spark: SparkSession, unit: str) -> None:
    draw = random.Random(4)
    log = [
        (f"u{user:02}", str(place), f"i{item}", draw.random())
        for user in range(30)
        for place in range(1 + user % 7)
        for item in draw.sample(range(9), 5)
    ]
    held_out = on_spark(
        spark, table("user_id item_id gain", *[(f"u{user:02}", f"i{user % 9}", 1.0) for user in range(30)])
    )
    found = []
    for _ in range(2):
        rows = on_spark(spark, table("user_id list_id item_id score", *log))
        result = evaluate(rows, held_out, measures=["nDCG@5", "RR"], policies={"unit": unit, "lists": "separate"})
        found.append(in_order(result.metrics.toArrow()))
        draw.shuffle(log)
    assert found[0] == found[1]
