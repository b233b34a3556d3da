"""Logs with one row per list on Spark: MLlib's own output, the plan, and the same results as of the flat log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.ml.recommendation import ALS
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError
from rankeval_spark.hosts.on_spark import OnSpark
from rankeval_spark.spark.plans import result_frames, user_rows
from rankeval_spark.sums.sums import ListTotals, result_sums
from tests.support.awkward import Awkward
from tests.support.hosts import assert_same
from tests.support.nested_logs import flat_of, nested, with_structs
from tests.support.plans import JOB_FAILED, final_exchanges, no_spark_jobs, plan
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEASURES: Final = ("nDCG@3", "AP", "P@1", "RR(rel=2)@5")


def on_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).repartition(3)


def explodes(frame: DataFrame) -> bool:
    """Whether rows are exploded below the exchange of a plan that was run."""
    frame.collect()
    moved = [node for node in plan(frame).walk() if node.is_hash_exchange]
    return any(below.name == "Generate" for node in moved for below in node.walk())


def test_recommend_for_all_users_is_read_as_it_is(spark: SparkSession) -> None:
    rated = spark.range(400).selectExpr("int(id % 20) user_id", "int(id * 7 % 31) item_id", "double(id % 5 + 1) gain")
    once = rated.groupBy("user_id", "item_id").agg(F.max("gain").alias("gain")).coalesce(1).cache()
    model = ALS(userCol="user_id", itemCol="item_id", ratingCol="gain", rank=4, maxIter=2, seed=1).fit(once)
    log = model.recommendForAllUsers(5).cache()
    assert log.schema["recommendations"].dataType.simpleString() == "array<struct<item_id:int,rating:float>>"

    result = evaluate(log, once, measures=MEASURES)
    rows = log.select("user_id", F.inline("recommendations")).withColumnRenamed("rating", "score")
    flat = evaluate(rows, once, measures=MEASURES)
    assert_same(flat.ranked_items.toArrow(), result.ranked_items.toArrow(), tolerance=1e-12)
    here = evaluate(log.toArrow(), once.toArrow(), measures=MEASURES)
    assert_same(result.user_metrics.toArrow(), here.user_metrics, tolerance=0.0)
    assert here.user_metrics.num_rows == 20 * 4
    once.unpersist()
    log.unpersist()


def test_arrays_move_in_one_exchange_and_are_not_exploded_before_it(spark: SparkSession) -> None:
    inputs = Awkward.make(1)
    log, judged = on_spark(spark, nested(inputs.recommendations)), on_spark(spark, inputs.held_out)
    with no_spark_jobs(spark):
        result = evaluate(log, judged, measures=MEASURES, models=["als", "knn", "popular"])
    flat = evaluate(
        on_spark(spark, inputs.recommendations), judged, measures=MEASURES, models=["als", "knn", "popular"]
    )
    for one in (result, flat):
        assert isinstance(one.host, OnSpark)
        rows = user_rows.to_user_rows(one.host.inputs, one.request, is_aggregated=True)
        sums = result_sums(one.request, rows.job.outputs)
        packed = result_frames.to_merged(result_frames.to_packed(rows.frame, ListTotals(rows.job, sums)), sums)
        assert final_exchanges(packed) == 2  # of the rows, and of the sums of partitions
        assert not explodes(packed)
    assert_same(flat.metrics.toArrow(), result.metrics.toArrow(), tolerance=1e-12)


@pytest.mark.parametrize(
    ("ids", "asked"),
    [
        pytest.param("bigint", {"rank_gaps": "keep"}, id="numbers, by position"),
        pytest.param(
            "string",
            {"ties": "rank", "models": ["als", "absent"], "score_precision": "single", "seen_in_train": "drop"},
            id="ranks break ties, single precision",
        ),
        pytest.param(
            "bigint",
            {"unknown_items": "drop", "measures": ["ILD(unknown='drop')@3", "EPC@3", "Gini@3", "P@3"]},
            id="numbers, items looked up before the exchange, facts of items",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:recommendations have no row of")
def test_results_are_those_of_the_flat_log(spark: SparkSession, ids: str, asked: dict[str, Any]) -> None:
    inputs = Awkward.make(3, ids=ids, has_lists=ids == "string")
    lists = nested(inputs.recommendations)
    options: dict[str, Any] = {"measures": MEASURES, **asked}
    held_out, train, items = (on_spark(spark, one) for one in (inputs.held_out, inputs.train, inputs.items))
    found = evaluate(on_spark(spark, lists), held_out, **sections(train=train, items=items, **options))
    here = evaluate(flat_of(lists), inputs.held_out, **sections(train=inputs.train, items=inputs.items, **options))
    for name in ("metrics", "user_metrics", "checks"):
        tolerance = 0.0 if name == "user_metrics" else 1e-12
        assert_same(getattr(found, name).toArrow(), getattr(here, name), tolerance=tolerance)


def test_order_of_the_items_is_their_rank_where_there_are_no_scores(spark: SparkSession) -> None:
    log = spark.createDataFrame([(1, [7, 8, 9]), (2, [8])], "user_id int, item_id array<int>")
    judged = spark.createDataFrame([(1, 9), (2, 7)], "user_id int, item_id int")
    result = evaluate(log, judged, measures=["RR"])
    assert {row.user_id: row.rr for row in result.user_metrics.collect()} == {1: 1 / 3, 2: 0.0}


def test_arrays_of_unequal_length_are_unusable_and_counted(spark: SparkSession) -> None:
    rows = [("ann", ["a", "b"], [0.5]), ("bob", ["c"], [1.0]), ("eve", ["d"], None), ("kim", None, None)]
    log = spark.createDataFrame(rows, "user_id string, item_id array<string>, score array<double>")
    judged = spark.createDataFrame([("bob", "c")], "user_id string, item_id string")
    (found,) = evaluate(log, judged, measures=["P@1"]).checks.where("check = 'invalid_scores'").collect()
    assert (found["count"], found["share"], found["sample_keys"]) == (3, 3 / 4, ["model ann  a", "model eve  d"])
    strict = evaluate(log, judged, measures=["P@1"], policies={"invalid_scores": "error"})
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:invalid_scores\]"):
        strict.metrics.collect()
    useless = evaluate(log.where("user_id <> 'bob'"), judged, measures=["P@1"])
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:recommendations\] 3 rows and none that can be used \(3 invalid"):
        useless.metrics.collect()


def test_other_shapes_are_refused(spark: SparkSession) -> None:
    judged = spark.createDataFrame([("bob", "c")], "user_id string, item_id string")
    structs = with_structs(pa.table({"user_id": ["ann"], "item_id": [["a"]], "score": [[1.0]]}), item="movieId")
    with pytest.raises(
        InputError, match=r"column 'recommendations' of type array<struct<movieId:string,rating:double>>"
    ):
        evaluate(on_spark(spark, structs), judged, measures=["P@1"])


def test_judgements_of_a_user_in_one_row_are_those_of_this_process(spark: SparkSession) -> None:
    """A row with another number of gains than of items has no gain, and is counted by the check of gains."""
    log = pa.table({"user_id": ["ann"] * 2 + ["bob"] * 2, "item_id": [*"ABCA"], "rank": [1, 2, 1, 2]})
    judged = pa.table({"user_id": ["ann", "bob"], "item_id": [["A", "B"], ["A"]], "gain": [[1.0, 3.0], [2.0]]})
    here = evaluate(log, judged, measures=["nDCG@3", "R@1"])
    there = evaluate(on_spark(spark, log), on_spark(spark, judged), measures=["nDCG@3", "R@1"])
    assert_same(there.metrics.toArrow(), here.metrics, tolerance=0.0)
    uneven = judged.set_column(2, "gain", pa.array([[1.0], [2.0]]))
    with pytest.warns(UserWarning, match="2 of 3 rows .* are left out: the gain is NULL"):
        checks = evaluate(on_spark(spark, log), on_spark(spark, uneven), measures=["R@1"]).checks.toArrow().to_pylist()
    assert [row["sample_keys"] for row in checks if row["check"] == "invalid_gains"] == [["ann A", "ann B"]]
