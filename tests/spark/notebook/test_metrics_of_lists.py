"""Means and comparisons made where lists are scored are those made of the rows of users, whatever is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.config.inference import TestName
from rankeval_spark.hosts.on_spark import OnSpark
from tests.support.frames import after_run, by, frame_of
from tests.support.hosts import assert_same
from tests.support.logs import Logs
from tests.support.plans import JOB_FAILED
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.evaluation import Evaluation


LOGS: Final = Logs.make(seed=20261123)
MEASURES: Final = ("nDCG@3", "AP", "P@1", "P(agg='micro')@3", "Success@3", "RR(rel=2)@5", "LogAP@3", "R(group='x')@3")
EVERY_TEST: Final[tuple[str, ...]] = get_args(TestName)
BOOTSTRAP: Final[dict[str, Any]] = {"intervals": "bootstrap", "replicates": 200, "seed": 3}


def evaluated(
    spark: SparkSession,
    *,
    n_partitions: int | None = None,
    ids: str = "string",
    **asked: Any,  # noqa: ANN401 - arguments of evaluate
) -> Evaluation:
    frames = LOGS.frames(spark, ids=ids)
    if n_partitions is not None:
        spark.conf.set("spark.sql.shuffle.partitions", n_partitions)
        frames = frames.repartition(n_partitions)
    options: dict[str, Any] = {"measures": MEASURES[:-1], "slices": ["country", ("country", "tier")], **asked}
    result = evaluate(frames.recommendations, frames.held_out, **sections(segments=frames.segments, **options))
    assert isinstance(result.host, OnSpark)
    assert result.host.inputs  # the models are looked up
    return result


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            {"population": "run", "models": ["als", "popular", "absent"], "n_partitions": 20},
            id="users of the run, partitions of few users, some empty",
        ),
        pytest.param({"ties": "expected", "measures": ["nDCG@3", "P@3"]}, id="expected ties"),
    ],
)
def test_means_are_the_same_without_rows_of_users(spark: SparkSession, asked: dict[str, Any]) -> None:
    alone, result = evaluated(spark, **asked).metrics, evaluated(spark, **asked)
    with result.cached() as kept:
        assert_same(alone.toArrow(), kept.metrics.toArrow(), tolerance=1e-12)
    assert [field.name for field in after_run(schemas.METRICS)] == alone.columns


def test_intervals_of_a_bootstrap_are_the_same_without_rows_of_users(spark: SparkSession) -> None:
    alone = evaluated(spark, n_partitions=12, **BOOTSTRAP).metrics
    result = evaluated(spark, n_partitions=12, **BOOTSTRAP)
    with result.cached() as kept:
        assert_same(alone.toArrow(), kept.metrics.toArrow(), tolerance=1e-12)
    assert "bootstrap" in alone.toArrow()["ci_method"].to_pylist()


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"pairs": "all", "tests": EVERY_TEST, "replicates": 200, "n_partitions": 12}, id="every test"),
        pytest.param(
            {"baseline": "absent", "models": ["als", "absent"], "population": "run"}, id="a model without lists"
        ),
    ],
)
def test_comparisons_are_the_same_without_rows_of_users(spark: SparkSession, asked: dict[str, Any]) -> None:
    asked = {"min_slice_size": 2, **asked}
    alone, result = evaluated(spark, **asked).comparisons, evaluated(spark, **asked)
    with result.cached() as kept:
        assert_same(alone.toArrow(), kept.comparisons.toArrow(), tolerance=1e-12)
    assert [field.name for field in after_run(schemas.COMPARISONS)] == alone.columns
    assert ("absent" in asked.get("models", ())) in alone.toArrow()["p_value"].is_null().to_pylist()


def test_facts_of_items_and_item_groups_arrive(spark: SparkSession) -> None:
    frames = LOGS.frames(spark)
    items = frames.held_out.select("item_id").distinct().selectExpr("item_id", "array('x') AS categories")
    train = frames.held_out.select("user_id", "item_id")
    measures = [*MEASURES, "MIUF@3", "NotInTrain@5"]
    alone, result = (
        evaluate(frames.recommendations, frames.held_out, measures=measures, items=items, train=train) for _ in range(2)
    )
    assert isinstance(result.host, OnSpark)
    with result.cached() as kept:
        assert_same(alone.metrics.toArrow(), kept.metrics.toArrow(), tolerance=1e-12)


@pytest.mark.parametrize("policy", ["missing", "zero_relevant"])
def test_a_case_that_is_an_error_fails_the_job_all_the_same(spark: SparkSession, policy: str) -> None:
    asked: dict[str, Any] = {policy: "error"}
    result = evaluated(spark, **asked)
    with pytest.raises(JOB_FAILED, match=policy):
        result.metrics.collect()


def test_users_with_several_lists_are_averaged_first(spark: SparkSession) -> None:
    rows = [("m", "u", "1", "a", 2.0), ("m", "u", "2", "b", 1.0), ("m", "v", "1", "c", 1.0)]
    log = frame_of(spark, rows, "model_id string, user_id string, list_id string, item_id string, score double")
    truth = frame_of(spark, [("u", "a"), ("v", "c")], "user_id string, item_id string")
    found = by(evaluate(log, truth, measures=["P@1"]).metrics, "measure", value="value")
    assert found == {"P": (1 / 2 + 1) / 2}
