"""What ``docs/other-tools.md`` says of Spark's own ``RankingMetrics``, found out by running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.mllib.evaluation import RankingMetrics

from tests.support import other_tools
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
