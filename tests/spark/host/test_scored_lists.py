"""Scored rows of compact lists that are a table: what the engine makes of them comes back as declared."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any

from rankeval_spark import schemas
from rankeval_spark.config import Policies
from rankeval_spark.engine.outputs import ListOutputs
from rankeval_spark.measures import MeasureSet
from rankeval_spark.spark.result_tables import scored_lists
from rankeval_spark.spark.rows import population
from tests.support.frames import after_run, assert_columns, assert_key, compact_lists, tuples
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCORING = ListOutputs(MeasureSet.parse(["P@2", "P@5", "AP", "nDCG@2"]), Policies(), ((),))
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
        scored = scored_lists.to_scored(lists, outputs=SCORING, has_partials=False)
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
    assert python_nodes(scored) == ["MapInArrow"]


def test_the_population_takes_exactly_the_declared_columns_out_of_it(spark: SparkSession) -> None:
    scored = scored_lists.to_scored(compact_lists(spark, *LISTS), outputs=SCORING, has_partials=True)
    kept = population.keep_population(scored)
    declared = [(field.name, field.type) for field in after_run(schemas.USER_METRICS)]
    assert_columns(kept, [*declared, *((column, "double") for column in ("p", "ap", "ndcg"))])
    assert {user for (user,) in tuples(kept, "user_id")} == {"ann", "bob", "dan"}
