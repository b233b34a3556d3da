"""Numbers of users become a few values: by given edges, by quantiles, and by how much is known of a user."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.config import validate_model
from rankeval_spark.config.slicing import Band
from rankeval_spark.result_rows import bands as bands_of_numbers
from rankeval_spark.result_rows.bands import number_text
from rankeval_spark.spark.plans import bands
from tests.support.frames import by, frame_of, judgements, ranking, tuples
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

RULES = {
    "age": validate_model(Band, {"edges": [18, 25, 40]}),
    "income": validate_model(Band, {"quantiles": 4}),
    "score": validate_model(Band, {"edges": [0.5], "labels": ["low", "high"]}),
    "nobody": validate_model(Band, {"quantiles": 2}),
}


def test_a_band_holds_its_edge_and_what_is_no_number_has_no_band(spark: SparkSession) -> None:
    """Of incomes 1234567, 10, 20, 30, 0.012345 (rounded to 1235000 and 0.0123) the quartiles are 10, 20 and 30."""
    users = frame_of(
        spark,
        [
            ("a", 17.9, 1_234_567.0, 0.5, None),
            ("b", 18.0, 10.0, 0.4, None),
            ("c", 40.0, 20.0, -1.0, None),
            ("d", math.nan, 30.0, math.inf, None),
            ("e", None, 0.012345, None, None),
        ],
        "user_id string, age double, income double, score double, nobody double",
    )
    with no_spark_jobs(spark):
        banded = users.repartition(3).transform(bands.with_bands, bands=RULES)
    assert by(banded, "user_id", value="age") == {"a": "< 18", "b": "[18, 25)", "c": ">= 40", "d": None, "e": None}
    assert by(banded, "user_id", value="income") == {
        "a": ">= 30",
        "b": "[10, 20)",
        "c": "[20, 30)",
        "d": ">= 30",
        "e": "< 10",
    }
    assert by(banded, "user_id", value="score") == {"a": "high", "b": "low", "c": "low", "d": "high", "e": None}
    assert set(by(banded, "user_id", value="nobody").values()) == {None}
    assert banded.columns == users.columns
    assert python_nodes(banded) == ["MapInArrow", "MapInArrow"]
    facts = bands.to_facts(users, bands=RULES, name="segments")
    assert tuples(facts, "check", "count", "total", "sample_keys") == [
        ("bands.age", 2, 5, ["18", "25", "40"]),
        ("bands.income", 0, 5, ["10", "20", "30"]),
        ("bands.nobody", 5, 5, []),
        ("bands.score", 1, 5, ["0.5"]),
    ]


def numbers(spark: SparkSession, **columns: Sequence[float]) -> DataFrame:
    """Give the users one number a column."""
    rows = [tuple(map(float, row)) for row in zip(*columns.values(), strict=True)]
    return frame_of(spark, rows, ", ".join(f"{name} double" for name in columns))


def edges_of(users: DataFrame, n_bands: int = 4) -> dict[str, list[str]]:
    rules = {name: validate_model(Band, {"quantiles": n_bands}) for name in users.columns}
    return by(bands.to_facts(users, bands=rules, name="segments"), "check", value="sample_keys")


def test_edges_are_the_same_for_any_order_and_partitioning(spark: SparkSession) -> None:
    random = np.random.default_rng(20)
    columns = {"normal": random.normal(0, 1, 500), "skewed": np.floor(10 ** random.uniform(0, 6, 500))}
    users = numbers(spark, **{name: values.tolist() for name, values in columns.items()})
    found = edges_of(users, 7)
    rule = validate_model(Band, {"quantiles": 7})
    assert found == {f"bands.{name}": in_process(values, rule) for name, values in columns.items()}
    assert edges_of(users.orderBy(F.desc("skewed")).repartition(5), 7) == found


def in_process(values: np.ndarray, band: Band) -> list[str]:
    """Write the edges of numbers that are in one place."""
    return [number_text(edge) for edge in bands_of_numbers.edges_of(values, band).tolist()]


def test_everyone_has_an_activity_also_who_is_in_neither_table(spark: SparkSession) -> None:
    """Ann has 1 interaction, bob 2 and cat 9; dan is in the segment table only, and of eve nobody knows anything."""
    train = [(user, f"i{number}") for user, n in (("ann", 1), ("bob", 2), ("cat", 9)) for number in range(n)]
    users = ("ann", "bob", "cat", "dan", "eve")
    with no_spark_jobs(spark):
        result = evaluate(
            ranking(spark, dict.fromkeys(users, "hit miss")),
            judgements(spark, {user: {"hit": 1} for user in users}),
            measures=["P@1", "ItemCoverage@1"],
            segments=frame_of(spark, [("ann", "33"), ("dan", "old")], "user_id string, age string"),
            train=frame_of(spark, train, "user_id string, item_id string"),
            slices=["activity", ("age", "activity")],
            slicing={"bands": {"age": {"edges": [30]}, "activity": {"of": "train"}}, "min_slice_size": 1},
        )
    users_of = {
        name: tuples(result.metrics.where(f"measure = '{name}' AND slice != 'all'"), "slice_value", "n_users")
        for name in ("P", "ItemCoverage")
    }
    expected = [
        *[("(unknown)*high", 1), ("(unknown)*middle", 1), ("(unknown)*none", 2)],
        *[(">= 30*low", 1), ("high", 1), ("low", 1), ("middle", 1), ("none", 2)],
    ]
    assert users_of == {"P": expected, "ItemCoverage": expected}
    recorded = result.checks.where("check LIKE 'bands.%'")
    assert tuples(recorded, "input", "check", "count", "severity", "sample_keys") == [
        ("segments", "bands.age", 1, "info", ["30"]),
        ("train", "bands.activity", 0, "info", ["1.667", "4.333"]),
    ]
