"""The first small result of Spark says which rows are left out, as the call of this process does."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.support.frames import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG: Final = [(user, item, 4.0 - place) for user in "uvw" for place, item in enumerate("abcd")]
JUDGED: Final = [("u", "a", 1.0), ("v", "b", 1.0), ("w", "c", 1.0)]


@pytest.mark.parametrize(
    ("log", "judged", "first", "said"),
    [
        pytest.param(
            [*LOG, ("u", "x", math.nan), ("v", "x", math.inf), (None, "a", 1.0), ("u", "a", 0.5)],
            [*JUDGED, ("u", "b", math.nan)],
            "comparisons",
            [
                "recommendations: 1 of 16 rows (6.25 %) are left out: an id is NULL",
                "recommendations: 2 of 16 rows (12.5 %) are left out: the score, or without one the rank, is NULL, NaN "
                "or infinite",
                "held_out: 1 of 4 rows (25 %) are left out: the gain is NULL, NaN or infinite",
                "recommendations: 1 of 13 rows (7.69 %) repeat an item of their list; its best place counts "
                "(duplicates='best')",
            ],
            id="every kind",
        ),
        pytest.param(
            LOG,
            [(f"user {user}", item, gain) for user, item, gain in JUDGED],
            "metrics",
            [
                "recommendations: 3 of 3 judged users (100 %) have no list",
                "nothing is measured: no user of held_out has a list; ids of both tables have to match",
            ],
            id="no common user",
        ),
        pytest.param(LOG, JUDGED, "metrics", [], id="nothing"),
    ],
)
def test_the_first_small_result_says_what_is_left_out(
    spark: SparkSession, log: list[Any], judged: list[Any], first: str, said: list[str]
) -> None:
    frames = table(spark, "user_id item_id score", *log), table(spark, "user_id item_id gain", *judged)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = evaluate(*frames, measures=["RR"], baseline="model")
        assert not heard  # no job has run
        _ = getattr(result, first)
        _ = result.metrics
    ours = [str(one.message) for one in heard if str(one.message).endswith("; see .checks")]
    assert [text.removesuffix("; see .checks") for text in ours] == said
