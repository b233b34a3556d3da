"""The second Python boundary: partial moments of every slice, from each partition."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rankeval_spark.engine.aggregation.aggregate_state import STATE
from rankeval_spark.engine.aggregation.partial_aggregates import PartialAggregator
from rankeval_spark.engine.aggregation.slices import segment_columns
from rankeval_spark.spark.result_tables import partial_aggregates
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


def expected(frame: DataFrame) -> dict[tuple[Any, ...], list[float]]:
    """Values of every group, by a loop over the rows."""
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in frame.collect():
        for index, names in enumerate(SLICES):
            key = (row["model_id"], index, tuple(row["segments"][name] for name in names), row["k"])
            groups[key] += [row["p"]] if row["p"] is not None else []
    return groups


def aggregator(ks: tuple[int, ...]) -> PartialAggregator:
    return PartialAggregator(("p",), {}, tuple(segment_columns(SLICES)), ks, None)


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_partials_merge_to_the_moments_of_each_group(spark: SparkSession, n_partitions: int) -> None:
    frame = users(spark).repartition(n_partitions)
    with no_spark_jobs(spark):
        partials = partial_aggregates.to_partials(frame, aggregator((1, 0)), slices=SLICES)
    assert python_nodes(partials) == ["MapInArrow"]
    found, wanted = merged(partials), expected(frame)
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key].n.item() == len(values)
        if values:
            np.testing.assert_allclose(found[key].mean.item(), np.mean(values), rtol=0, atol=1e-12)
            np.testing.assert_allclose(found[key].m2.item(), len(values) * np.var(values), rtol=0, atol=1e-12)


def test_no_row_gives_no_group(spark: SparkSession) -> None:
    partials = partial_aggregates.to_partials(scored_rows(spark), aggregator((1,)), slices=SLICES)
    assert tuples(partials, "k") == []
