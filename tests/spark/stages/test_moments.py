"""The second Python boundary: partial moments of every slice, from each partition."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as F

from rankeval_spark.engine.aggregate_state import COUNTS, STATE, State
from rankeval_spark.engine.slices import ROWS_AT_ONCE
from rankeval_spark.stages import moments
from rankeval_spark.statistics.moments import Moments
from tests.support.frames import scored_rows, tuples
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLICES = [(), ("country",), ("country", "tier")]


def users(spark: SparkSession) -> DataFrame:
    """Two cutoffs, two segments, one NULL of each kind."""
    rows: list[dict[str, Any]] = []
    for number in range(12):
        segments = {"country": ["FR", "DE", None][number % 3], "tier": "gold" if number < 7 else "new"}
        facts = {"user_id": f"{number}", "segments": segments, "model_id": "mn"[number % 2]}
        rows += ({**facts, "k": k, "p": None if number == 5 else (number + k) / 7} for k in (1, 0))
    return scored_rows(spark, *rows)


def merged(frame: DataFrame) -> dict[tuple[Any, ...], Moments]:
    """Moments of every group, merged over the partitions one by one."""
    found: dict[tuple[Any, ...], Moments] = defaultdict(lambda: Moments.empty(1, 1))
    for row in frame.collect():
        n, mean, m2, *_ = np.frombuffer(row[STATE])
        key = (row["model_id"], row["slice_index"], tuple(row["slice_values"]), row["k"])
        found[key] = found[key].merge(Moments(np.array([[int(n)]]), np.array([[mean]]), np.array([[m2]])))
    return found


def pooled(frame: DataFrame) -> list[dict[str, Any]]:
    """Unite the rows of all partitions; in the order of slices and values."""
    rows: list[dict[str, Any]] = State(1).pool(frame.toArrow()).to_pylist()
    return sorted(rows, key=lambda row: (row["slice_index"], row["slice_values"]))


def expected(frame: DataFrame) -> dict[tuple[Any, ...], list[float]]:
    """Values of every group, by a loop over the rows."""
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in frame.collect():
        for index, names in enumerate(SLICES):
            key = (row["model_id"], index, tuple(row["segments"][name] for name in names), row["k"])
            groups[key] += [row["p"]] if row["p"] is not None else []
    return groups


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_partials_merge_to_the_moments_of_each_group(spark: SparkSession, n_partitions: int) -> None:
    frame = users(spark).repartition(n_partitions)
    with no_spark_jobs(spark):
        partials = moments.to_partials(frame, measures=["p"], slices=SLICES, ks=(1, 0))
    assert python_nodes(partials) == ["MapInArrow"]
    found, wanted = merged(partials), expected(frame)
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key].n.item() == len(values)
        if values:
            np.testing.assert_allclose(found[key].mean.item(), np.mean(values), rtol=0, atol=1e-12)
            np.testing.assert_allclose(found[key].m2.item(), len(values) * np.var(values), rtol=0, atol=1e-12)


def test_a_group_without_a_defined_value_stays_with_its_counts(spark: SparkSession) -> None:
    frame = scored_rows(spark, {"user_id": "u", "n_relevant": 0, "p": None})
    partials = moments.to_partials(frame, measures=["p"], slices=[()], ks=(1,))
    (row,) = pooled(partials)
    assert [row[name] for name in ("n", "mean", "m2", "n_population", "n_zero_relevant")] == [0, None, 0.0, 1.0, 1.0]


def test_every_kind_of_user_is_counted_once(spark: SparkSession) -> None:
    frame = scored_rows(
        spark,
        {"user_id": "both", "has_ties": True},
        {"user_id": "extra", "n_judged": 0, "n_relevant": 0, "has_ties": True, "_is_evaluated": False},
        {"user_id": "missing", "n_recommended": 0, "has_ties": None},
        {"user_id": "zero", "n_relevant": 0},
    )
    partials = moments.to_partials(frame.coalesce(1), measures=["p"], slices=[()], ks=(1,))
    (row,) = pooled(partials)
    assert [row[name] for name in COUNTS] == [3.0, 1.0, 1.0, 1.0, 2.0, 1.0]


def test_chunks_are_merged_within_a_partition(spark: SparkSession) -> None:
    """More rows than are summarised in one go; groups appear in the second chunk that the first did not have."""
    n_rows = 2 * ROWS_AT_ONCE + 10
    tier = F.when(F.col("id") < ROWS_AT_ONCE + 7, "early").otherwise("late")
    facts = {"n_judged": 1, "n_relevant": 1, "n_recommended": 1, "has_ties": False, "_is_evaluated": True, "k": 1}
    frame = spark.range(0, n_rows, 1, 1).select(
        F.lit("m").alias("model_id"),
        F.create_map(F.lit("tier"), tier).alias("segments"),
        (F.col("id") % 2).cast("double").alias("p"),
        *(F.lit(value).alias(name) for name, value in facts.items()),
    )
    partials = moments.to_partials(frame, measures=["p"], slices=[(), ("tier",)], ks=(1,))
    late = n_rows - ROWS_AT_ONCE - 7
    rows = pooled(partials)
    assert [(row["slice_index"], row["slice_values"], row["n"], row["n_population"]) for row in rows] == [
        (0, [], n_rows, n_rows),
        (1, ["early"], n_rows - late, n_rows - late),
        (1, ["late"], late, late),
    ]
    assert (rows[0]["mean"], rows[0]["m2"]) == (1 / 2, pytest.approx(n_rows / 4, abs=1e-6))


def test_no_row_gives_no_group(spark: SparkSession) -> None:
    partials = moments.to_partials(scored_rows(spark), measures=["p"], slices=SLICES, ks=(1,))
    assert tuples(partials, "k") == []
