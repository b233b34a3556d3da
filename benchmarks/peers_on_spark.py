"""The same four measures by other libraries on Spark, each used as its own documentation shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import functions as F

from benchmarks.data import MODEL, Tables
from benchmarks.workloads import CUTOFFS
from rankeval_spark import evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Values: TypeAlias = dict[str, float]
"""Means by name: ``P@10``, ``R@10``, ``AP@10``, ``nDCG@10``."""

SHARED: Final = ("P", "R", "AP", "nDCG")


def ours(spark: SparkSession, tables: Tables) -> Values:
    """Evaluate with this project."""
    log, held_out = (spark.read.parquet(str(path)) for path in (tables.recommendations, tables.held_out))
    asked = [f"{name}@{k}" for name in SHARED for k in CUTOFFS]
    result = evaluate(log, held_out, measures=asked, models=[MODEL], policies={"duplicates": "keep"})
    return {f"{row['measure']}@{row['k']}": row["value"] for row in result.metrics.collect()}


def mllib(spark: SparkSession, tables: Tables) -> Values:
    """Use Spark's own RankingMetrics, on lists that are kept in memory: each of its 24 values is a job."""
    from pyspark.mllib.evaluation import RankingMetrics  # noqa: PLC0415  (peers are loaded when their turn comes)

    log, relevant = _relevant(spark, tables)
    # Negated scores, so that one ascending sort gives the order that we have: ties by item.
    item = F.struct((-F.col("score")).alias("minus_score"), "item_id")
    lists = log.groupBy("user_id").agg(F.array_sort(F.collect_list(item)).alias("items"))
    labels = relevant.groupBy("user_id").agg(F.collect_list("item_id").alias("labels"))
    pairs = lists.join(labels, on="user_id").select("items.item_id", "labels").persist()
    try:
        metrics: RankingMetrics[int] = RankingMetrics(pairs.rdd.map(tuple))
        return _at_cutoffs(
            {
                "P": metrics.precisionAt,
                "R": metrics.recallAt,
                "AP": metrics.meanAveragePrecisionAt,
                "nDCG": metrics.ndcgAt,
            }
        )
    finally:
        pairs.unpersist()


def recommenders(spark: SparkSession, tables: Tables) -> Values:
    """Use SparkRankingEvaluation: an evaluation per cutoff."""
    from recommenders.evaluation.spark_evaluation import SparkRankingEvaluation  # noqa: PLC0415  (as above)

    log, relevant = _relevant(spark, tables)
    columns = {"col_user": "user_id", "col_item": "item_id", "col_rating": "gain", "col_prediction": "score"}
    values: Values = {}
    for k in CUTOFFS:
        one = SparkRankingEvaluation(relevant, log, k=k, relevancy_method="top_k", **columns)
        values |= {
            f"P@{k}": one.precision_at_k(),
            f"R@{k}": one.recall_at_k(),
            f"AP@{k}": one.map_at_k(),
            f"nDCG@{k}": one.ndcg_at_k(),
        }
    return values


def replay(spark: SparkSession, tables: Tables) -> Values:
    """Use RePlay's OfflineMetrics, which shares the preparation among the measures."""
    from replay.metrics import MAP, NDCG, OfflineMetrics, Precision, Recall  # noqa: PLC0415  (as above)

    log, relevant = _relevant(spark, tables)
    names = {"Precision": "P", "Recall": "R", "MAP": "AP", "NDCG": "nDCG"}
    measures = [metric(list(CUTOFFS)) for metric in (Precision, Recall, MAP, NDCG)]
    offline = OfflineMetrics(measures, query_column="user_id", rating_column="score")
    found = offline(log.select("user_id", "item_id", "score"), relevant.select("user_id", "item_id"))
    return {f"{names[name]}@{k}": value for (name, k), value in _split(found).items()}


PEERS: Final[Mapping[str, Callable[[SparkSession, Tables], Values]]] = {
    "MLlib RankingMetrics": mllib,
    "recommenders SparkRankingEvaluation": recommenders,
    "RePlay OfflineMetrics on Spark": replay,
}


def _relevant(spark: SparkSession, tables: Tables) -> tuple[DataFrame, DataFrame]:
    """Read the log, and the judgements that count: these libraries know no gain of 0."""
    log, held_out = (spark.read.parquet(str(path)) for path in (tables.recommendations, tables.held_out))
    return log, held_out.where(F.col("gain") >= 1)


def _at_cutoffs(measures: Mapping[str, Callable[[int], float]]) -> Values:
    return {f"{name}@{k}": measure(k) for name, measure in measures.items() for k in CUTOFFS}


def _split(found: Mapping[str, float]) -> dict[tuple[str, int], float]:
    """Take ``Precision@10`` apart."""
    parts = {name: name.split("@") for name in found}
    return {(parts[name][0], int(parts[name][1])): value for name, value in found.items()}
