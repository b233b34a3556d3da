"""Spark's own ``RankingMetrics``: what ``docs/other-tools.md`` says of it, and the preset of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.mllib.evaluation import RankingMetrics

from rankeval_spark import evaluate
from tests.evaluate.test_presets import best_first, random_data, relevant
from tests.support import other_tools
from tests.support.frames import by, judgements, table
from tests.support.other_tools import MEASURES, MISSING, NAN, NOTHING_RELEVANT, REPEATED, TIES, cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


MLLIB: Final = "MLlib RankingMetrics"
SHARED: Final = {"precisionAt": "P", "recallAt": "R", "ndcgAt": "nDCG", "meanAveragePrecision": "AP"}

pytestmark = pytest.mark.filterwarnings("ignore")  # mllib announces its end at every use


def of_mllib(spark: SparkSession, *lists: tuple[Sequence[str], Sequence[str]]) -> RankingMetrics[Any]:
    """Make metrics of pairs of a list, best item first, and the relevant items."""
    pairs = [(list(items), list(relevant)) for items, relevant in lists]
    return RankingMetrics(spark.sparkContext.parallelize(pairs, 1))


def test_it_takes_lists_in_order_and_counts_what_they_hold(spark: SparkSession) -> None:
    assert cell(TIES, MLLIB) == cell(NAN, MLLIB) == "takes ordered lists"
    repeated = of_mllib(spark, ("aab", "ab"))
    twice = other_tools.times_counted(repeated.precisionAt(3))
    assert cell(REPEATED, MLLIB) == f"{twice}; recall up to {repeated.recallAt(3):g}"


def test_users_on_one_side_only(spark: SparkSession) -> None:
    """A user without a list is a pair with an empty list, if the join that makes the pairs keeps them."""
    without_list = other_tools.share_of_two(of_mllib(spark, ("a", "a"), ("", "a")).precisionAt(1))
    assert cell(MISSING, MLLIB) == f"{without_list}, if your join keeps them"
    without_truth = other_tools.share_of_two(of_mllib(spark, ("a", "a"), ("a", "")).precisionAt(1))
    assert cell(NOTHING_RELEVANT, MLLIB) == without_truth


def test_names_of_measures() -> None:
    names = {name for name in vars(RankingMetrics) if not name.startswith("_")} - {"meanAveragePrecisionAt"}
    assert names == set(SHARED)
    assert int(cell(MEASURES, MLLIB)) == len(SHARED)


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
