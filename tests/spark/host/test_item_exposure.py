"""The measures of all lists together on Spark: planned without a job, in the columns of ``metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import evaluate, schemas
from tests.support.frames import after_run, assert_columns, assert_key, judgements, ranking, table, tuples
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_they_are_next_to_the_means(spark: SparkSession) -> None:
    log = ranking(spark, {"ann": "a b c", "bob": "b d"}).repartition(3)
    held_out = judgements(spark, {"ann": {"a": 1}, "bob": {"c": 1}})
    rows = [("ann", "a"), ("bob", "a"), ("bob", "never"), ("cat", "d"), ("cat", None), (None, "of nobody")]
    train = table(spark, "user_id item_id", *rows)
    measures = ["P@3", "ItemCoverage@2", "CatalogCoverage@3", "CatalogCoverage(items='train')@3", "PopREO@3"]
    with no_spark_jobs(spark):
        alone = evaluate(log, held_out, measures=["P@3"])
        both = evaluate(log, held_out, measures=measures, train=train)
    metrics = both.metrics
    assert both.user_metrics.columns == alone.user_metrics.columns
    assert_columns(metrics, after_run(schemas.METRICS))
    assert_key(metrics, ("model_id", "slice", "slice_values", "measure", "k"))
    # The training items a, d and never are the catalogue where there is no other; a and d are shown.
    assert tuples(metrics.where("measure <> 'PopREO'"), "measure", "k", "value", "n_users") == [
        ("CatalogCoverage", 3, 2 / 3, 2),
        ("CatalogCoverage(items='train')", 3, 2 / 3, 2),
        ("ItemCoverage", 2, 3, 2),
        ("P", 3, 1 / 6, 2),
    ]
