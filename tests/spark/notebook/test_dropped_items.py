"""A small catalogue that Spark sends to every task, and one that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark import evaluate
from rankeval_spark.hosts.on_spark import OnSpark
from tests.evaluate.test_dropped_items import LOST, assert_in_slices, assert_lost, in_slices, lost_and_kept, random_rows
from tests.support.frames import table
from tests.support.sections import sections

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation


def test_a_small_catalogue_and_any_other_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """The one is sent to every task, the other is not, whatever Spark would do."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    listed, judged, pairs = random_rows(11, "string")
    lists = table(spark, "model_id user_id item_id score rank", *listed)
    held_out, trained = table(spark, "user_id item_id gain", *judged), table(spark, "user_id item_id", *pairs)
    trained.select("item_id").where("item_id is not null").distinct().write.parquet(f"{tmp_path}/items")
    items = spark.read.parquet(f"{tmp_path}/items")
    small = evaluate(lists, held_out, measures=["nDCG@3", "Gini@3"], policies={"unknown_items": "drop"}, items=items)
    large = evaluate(lists, held_out, measures=["nDCG@3", "Gini@3"], policies={"unknown_items": "drop"}, train=trained)
    assert isinstance(small.host, OnSpark)
    assert isinstance(large.host, OnSpark)
    assert (small.host.inputs.has_small_catalogue, large.host.inputs.has_small_catalogue) == (True, False)
    assert rows_of(small) == rows_of(large)


def test_a_model_that_lost_all_lists_has_a_row_of_each_measure(spark: SparkSession) -> None:
    lists, gains, pairs = lost_and_kept()
    given: dict[str, Any] = {
        "train": table(spark, "user_id item_id", *pairs),
        "items": table(spark, "item_id", ("a",), ("b",), ("c",)),
        "measures": [f"{name}@2" for name in LOST],
    }
    held_out = table(spark, "user_id item_id gain", *gains)
    for some, models in ((lists, ["lost", "kept", "absent"]), (lists[:2], None)):
        log = table(spark, "model_id user_id item_id score", *some)
        rows = (
            evaluate(log, held_out, **sections(seen_in_train="drop", models=models, **given))
            .metrics.toArrow()
            .to_pylist()
        )
        assert_lost(rows, "lost", *(["absent"] if models else []))


def test_a_model_without_a_list_has_rows_in_the_slices_of_the_others(spark: SparkSession) -> None:
    found = in_slices(spark.createDataFrame)
    assert_in_slices(found.metrics.toArrow())
    with in_slices(spark.createDataFrame).cached() as kept:
        assert_in_slices(kept.metrics.toArrow())


def rows_of(result: Evaluation) -> list[str]:
    """Give the tables of users and of means, row by row."""
    with result.cached() as kept:
        return [*sorted(map(str, kept.user_metrics.collect())), *sorted(map(str, kept.metrics.collect()))]
