"""The first Python boundary: nothing is computed here, everything arrives where it belongs."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import schemas
from rankeval_spark.measures import MeasureSet
from rankeval_spark.stages import population, score
from tests.support.frames import after_run, assert_columns, assert_key, by, compact_lists, tuples
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED = MeasureSet.parse(["P@2", "P@5", "AP", "nDCG@2"])
LISTS: tuple[dict[str, Any], ...] = (
    {"user_id": "ann", "n_recommended": 3, "hit_ranks": [2, 3], "hit_gains": [1.0, 1.0], "judged_gains": [1.0, 1.0]},
    {"user_id": "bob", "judged_gains": [1.0]},  # no list
    {"user_id": "cat", "n_recommended": 2, "n_duplicates": 3},  # not judged
    {"user_id": "dan", "n_recommended": 1, "hit_ranks": [1], "hit_gains": [0.5], "judged_gains": [0.5, 0.0]},  # R = 0
)
NAN = None
"""What a kernel says with NaN stands as NULL in a table."""


def test_a_list_is_scored_at_every_cutoff_and_null_where_it_was_not_asked_or_is_undefined(spark: SparkSession) -> None:
    lists = compact_lists(spark, *LISTS)
    with no_spark_jobs(spark):
        scored = score.to_user_metrics(lists, measures=ASKED)
    assert tuples(scored, "user_id", "k", "p", "ap", "ndcg") == [
        ("ann", 0, NAN, (1 / 2 + 2 / 3) / 2, NAN),
        ("ann", 2, 1 / 2, NAN, (1 / log2(3)) / (1 + 1 / log2(3))),
        ("ann", 5, 2 / 5, NAN, NAN),
        ("bob", 0, NAN, 0.0, NAN),
        ("bob", 2, 0.0, NAN, 0.0),
        ("bob", 5, 0.0, NAN, NAN),
        ("cat", 0, NAN, NAN, NAN),
        ("cat", 2, NAN, NAN, NAN),
        ("cat", 5, NAN, NAN, NAN),
        ("dan", 0, NAN, NAN, NAN),
        ("dan", 2, NAN, NAN, 1.0),
        ("dan", 5, NAN, NAN, NAN),
    ]
    assert_key(scored, ("model_id", "user_id", "list_id", "k"))
    assert python_nodes(scored) == ["ArrowEvalPython"]


def test_the_population_takes_exactly_the_declared_columns_out_of_it(spark: SparkSession) -> None:
    scored = score.to_user_metrics(compact_lists(spark, *LISTS), measures=ASKED)
    marked = population.with_population(scored, population="truth", measures=ASKED.columns)
    declared = [(field.name, field.type) for field in after_run(schemas.USER_METRICS)]
    assert_columns(
        population.keep_population(marked), [*declared, *((column, "double") for column in ("p", "ap", "ndcg"))]
    )


def test_counts_stand_beside_the_measures_at_their_cutoff(spark: SparkSession) -> None:
    scored = score.to_user_metrics(compact_lists(spark, *LISTS), measures=ASKED)
    names = ("n_judged", "n_relevant", "n_recommended", "n_hits", "n_duplicates", "_n_listed")
    assert tuples(scored.where("k != 5"), "user_id", "k", *names) == [
        ("ann", 0, 2, 2, 3, 2, 0, 3),
        ("ann", 2, 2, 2, 2, 1, 0, 3),
        ("bob", 0, 1, 1, 0, 0, 0, 0),
        ("bob", 2, 1, 1, 0, 0, 0, 0),
        ("cat", 0, 0, 0, 2, 0, 3, 2 + 3),
        ("cat", 2, 0, 0, 2, 0, 3, 2 + 3),
        ("dan", 0, 2, 0, 1, 0, 0, 1),
        ("dan", 2, 2, 0, 1, 0, 0, 1),
    ]


def test_a_user_without_a_relevant_item_scores_zero_on_request(spark: SparkSession) -> None:
    """Cat, whom nobody judged, too: whether she counts is up to the population."""
    scored = score.to_user_metrics(compact_lists(spark, *LISTS), measures=ASKED, zero_relevant="zero")
    assert tuples(scored.where("user_id IN ('cat', 'dan')"), "user_id", "k", "p", "ap", "ndcg") == [
        ("cat", 0, NAN, 0.0, NAN),
        ("cat", 2, 0.0, NAN, 0.0),
        ("cat", 5, 0.0, NAN, NAN),
        ("dan", 0, NAN, 0.0, NAN),
        ("dan", 2, 0.0, NAN, 1.0),
        ("dan", 5, 0.0, NAN, NAN),
    ]


@pytest.mark.parametrize(
    ("tied_ranks", "hits", "ks_with_ties"),
    [
        pytest.param([3, 4], {4: 1.0}, [2, 3, 0], id="a block of ranks 2 to 4 counts from its first rank on"),
        pytest.param([3], {1: 1.0}, [], id="a block without a judged item changes nothing"),
        pytest.param([2, 3], {1: 1.0, 2: 1.0, 3: 1.0}, [], id="nor one whose items are all worth the same"),
        pytest.param([2, 3], {1: 1.0, 2: 1.0, 3: 2.0}, [1, 2, 3, 0], id="but two gains do"),
        pytest.param([2], {1: 0.0}, [], id="a judgement of gain 0 is worth what no judgement is"),
        pytest.param([2, 4], {3: 1.0}, [3, 0], id="the first block that matters decides"),
        pytest.param([], {2: 1.0}, [], id="no block"),
        pytest.param([3, 4, 5, 6], {6: 1.0}, [2, 3, 0], id="a block that straddles every cutoff"),
    ],
)
def test_ties_count_where_a_block_that_starts_at_the_cutoff_or_above_holds_different_gains(
    spark: SparkSession, tied_ranks: list[int], hits: dict[int, float], ks_with_ties: list[int]
) -> None:
    one = {"user_id": "u", "n_recommended": 6, "tied_ranks": tied_ranks, "judged_gains": sorted(hits.values())[::-1]}
    lists = compact_lists(spark, {**one, "hit_ranks": list(hits), "hit_gains": list(hits.values())})
    scored = score.to_user_metrics(lists, measures=MeasureSet.parse(["P@1", "P@2", "P@3", "AP"]))
    assert by(scored, "k", value="has_ties") == {k: k in ks_with_ties for k in (1, 2, 3, 0)}


def test_without_a_list_there_is_no_saying_whether_it_has_ties(spark: SparkSession) -> None:
    scored = score.to_user_metrics(compact_lists(spark, *LISTS), measures=MeasureSet.parse(["AP"]))
    assert by(scored, "user_id", value="has_ties") == {"ann": False, "bob": None, "cat": False, "dan": False}


def test_lists_keep_their_own_values_whatever_the_size_of_a_batch(spark: SparkSession) -> None:
    """Batches of 3 lists, so that offsets of the ragged arrays begin anew in the middle."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
    rows = [
        {"user_id": f"{n:02}", "n_recommended": n, "hit_ranks": [n] * (n > 0), "hit_gains": [1.0] * (n > 0)}
        | {"judged_gains": [1.0] * (n + 1), "tied_ranks": [n] * (n > 1)}
        for n in range(20)
    ]
    scored = score.to_user_metrics(compact_lists(spark, *rows), measures=MeasureSet.parse(["RR", "R"]))
    assert tuples(scored, "user_id", "rr", "r", "has_ties") == [
        (f"{n:02}", 1 / n if n else 0.0, (n > 0) / (n + 1), n > 1 if n else None) for n in range(20)
    ]


def test_no_list_has_no_scores(spark: SparkSession) -> None:
    assert tuples(score.to_user_metrics(compact_lists(spark), measures=ASKED), "user_id") == []
