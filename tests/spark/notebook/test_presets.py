"""The preset of Spark against Spark's own metrics, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.mllib.evaluation import RankingMetrics

from rankeval_spark import evaluate
from tests.evaluate.test_presets import best_first, random_data, relevant
from tests.support.frames import by, judgements, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.filterwarnings("ignore")  # mllib announces its end at every use
def test_spark_ranking_metrics(spark: SparkSession) -> None:
    run, qrel = random_data(4, with_ties=False)
    pairs = [(best_first(run.get(user, {})), sorted(relevant(gains))) for user, gains in qrel.items()]
    theirs = RankingMetrics(spark.sparkContext.parallelize(pairs))
    expected = {
        ("P", 3): theirs.precisionAt(3),
        ("R", 3): theirs.recallAt(3),
        ("nDCG(gains='binary')", 10): theirs.ndcgAt(10),
        ("AP(denom='min')", 5): theirs.meanAveragePrecisionAt(5),
        ("AP(denom='min')", 0): theirs.meanAveragePrecision,
    }
    scores = [(user, item, score) for user, items in run.items() for item, score in items.items()]
    log = table(spark, "user_id item_id score", *scores).repartition(3)
    result = evaluate(log, judgements(spark, qrel), measures=["P@3", "R@3", "nDCG@10", "AP@5", "AP"], preset="spark")
    assert by(result.metrics, "measure", "k", value="value") == pytest.approx(expected, rel=0, abs=1e-9)
