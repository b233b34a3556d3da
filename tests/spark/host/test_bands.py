"""Numbers of users become a few values: by given edges, by quantiles, and by how much is known of a user."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.config import validate_model
from rankeval_spark.config.sections.bands import Band
from rankeval_spark.spark.rows import bands
from tests.support.frames import by, judgements, ranking, tuples
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
    users = spark.createDataFrame(
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
    assert python_nodes(banded) == []
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
    return spark.createDataFrame(rows, ", ".join(f"{name} double" for name in columns))


def edges_of(users: DataFrame, n_bands: int = 4) -> dict[str, list[str]]:
    rules = {name: validate_model(Band, {"quantiles": n_bands}) for name in users.columns}
    return by(bands.to_facts(users, bands=rules, name="segments"), "check", value="sample_keys")


def test_numbers_of_many_sizes_keep_three_digits_of_their_own(spark: SparkSession) -> None:
    users = numbers(spark, x=[0.00012344 * 10**power for power in (0, 3, 9, 16)])
    assert edges_of(users, 3) == {"bands.x": ["0.123", "123000"]}


def test_numbers_close_together_far_from_0_are_told_apart(spark: SparkSession) -> None:
    """Of 80 users, a day or a step each; years are those of 2015 to 2024, eight users each."""
    steps = range(80)
    users = numbers(
        spark,
        year=[2015 + step % 10 for step in steps],
        year_or_0=[2015 + step % 10 if step else 0 for step in steps],
        time=[1_700_000_000 + 86_400 * step for step in steps],
        time_us=[1_700_000_000_000_000 + step for step in steps],
        below_0=[-1_000_000 - step for step in steps],
        fraction=[1e-7 + 1e-12 * step for step in steps],
    )
    assert edges_of(users) == {
        "bands.year": ["2017", "2019.5", "2022"],
        "bands.year_or_0": ["2017", "2020", "2022"],
        "bands.time": ["1701707000", "1703413000", "1705120000"],
        "bands.time_us": ["1.7000000000000198E15", "1.7000000000000395E15", "1.7000000000000592E15"],
        "bands.below_0": ["-1000059.25", "-1000039.5", "-1000019.75"],
        "bands.fraction": ["1.0001975E-7", "1.000395E-7", "1.0005925E-7"],
    }
    banded = bands.with_bands(users, bands={name: validate_model(Band, {"quantiles": 4}) for name in users.columns})
    assert by(banded.groupBy("year").count(), "year", value="count") == {
        "< 2017": 16,
        "[2017, 2019.5)": 24,
        "[2019.5, 2022)": 16,
        ">= 2022": 24,
    }
    for name in ("time", "time_us", "below_0", "fraction"):
        assert set(by(banded.groupBy(name).count(), name, value="count").values()) == {20}


def test_few_distinct_numbers_and_extreme_ones_have_edges_too(spark: SparkSession) -> None:
    users = numbers(
        spark,
        same=[2015] * 4,
        zero=[0.0, -0.0] * 2,
        two=[0, 0, 1, 1],
        widest=[-1e308, -1e308, 1e308, 1e308],
        least=[5e-324, 1e-323, 1e-323, 1e-322],
        infinite=[-math.inf, 2015, 2016, math.inf],
        undefined=[math.nan, 2015, 2015, 2015],
    )
    assert edges_of(users, 2) == {
        "bands.same": ["2015"],
        "bands.zero": ["0"],
        "bands.two": ["0.5"],
        "bands.widest": ["0"],
        "bands.least": ["0"],
        "bands.infinite": ["2015.5"],
        "bands.undefined": ["2015"],
    }
    banded = bands.with_bands(users.select("same"), bands={"same": validate_model(Band, {"quantiles": 4})})
    assert {row["same"] for row in banded.collect()} == {">= 2015"}


def test_edges_are_the_quantiles_of_the_numbers_within_a_step_for_any_order_and_partitioning(
    spark: SparkSession,
) -> None:
    random = np.random.default_rng(20)
    columns = {
        "normal": random.normal(0, 1, 500),
        "shifted": random.normal(-1e6, 1, 500),
        "time": random.integers(1_700_000_000, 1_700_086_400, 500).astype(float),
        "tiny": 1e-9 + 1e-12 * random.random(500),
        "skewed": np.floor(10 ** random.uniform(0, 6, 500)),
    }
    users = numbers(spark, **{name: values.tolist() for name, values in columns.items()})
    found = edges_of(users, 7)
    for name, values in columns.items():
        step = 10.0 ** (math.floor(math.log10(np.ptp(values))) - 3)
        expected = np.quantile(values, np.arange(1, 7) / 7)
        np.testing.assert_allclose([float(edge) for edge in found[f"bands.{name}"]], expected, rtol=0, atol=1.01 * step)
    assert edges_of(users.orderBy(F.desc("skewed")).repartition(5), 7) == found


def test_quantiles_are_taken_of_some_ten_thousand_distinct_numbers_however_many_users_there_are(
    spark: SparkSession,
) -> None:
    """Of a million users; 0 to 1 is 10,000 steps, and four powers of ten below 0.1 have 900 numbers each."""
    n_users = 1_000_000
    users = spark.range(n_users).select((F.col("id") / n_users).alias("x"))
    far = users.select(F.col("x") + 1_700_000_000)
    near_0, far_from_0 = (
        frame.select(bands.rounded(F.col(frame.columns[0]), F.lit(1.0))).distinct().count() for frame in (users, far)
    )
    assert far_from_0 <= 10_001
    assert near_0 <= 10_001 + 4 * 900


def test_everyone_has_an_activity_also_who_is_in_neither_table(spark: SparkSession) -> None:
    """Ann has 1 interaction, bob 2 and cat 9; dan is in the segment table only, and of eve nobody knows anything."""
    train = [(user, f"i{number}") for user, n in (("ann", 1), ("bob", 2), ("cat", 9)) for number in range(n)]
    users = ("ann", "bob", "cat", "dan", "eve")
    with no_spark_jobs(spark):
        result = evaluate(
            ranking(spark, dict.fromkeys(users, "hit miss")),
            judgements(spark, {user: {"hit": 1} for user in users}),
            measures=["P@1", "ItemCoverage@1"],
            segments=spark.createDataFrame([("ann", "33"), ("dan", "old")], "user_id string, age string"),
            train=spark.createDataFrame(train, "user_id string, item_id string"),
            slices=["activity", ("age", "activity")],
            bands={"age": {"edges": [30]}, "activity": {"of": "train"}},
            min_slice_size=1,
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
