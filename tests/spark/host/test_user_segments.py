"""Segment values of a user, where "unknown" is a value as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.spark.rows import user_segments
from tests.support.frames import by, compact_lists, table, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lists_of(spark: SparkSession, *users: str) -> DataFrame:
    """One list a user."""
    return compact_lists(spark, *({"user_id": user} for user in users), segments=False)


def test_every_list_gets_the_values_of_its_user(spark: SparkSession) -> None:
    users = table(spark, "user_id country device", ("ann", "FR", "tv"), ("bob", None, "tv"), ("zoe", "DE", "pc"))
    lists = lists_of(spark, "ann", "bob", "cat")
    with no_spark_jobs(spark):
        segmented = user_segments.with_segments(lists, segments=users, names=("country", "device"))
    assert by(segmented, "user_id", value="segments") == {
        "ann": {"country": "FR", "device": "tv"},
        "bob": {"country": None, "device": "tv"},
        "cat": {"country": None, "device": None},
    }
    assert segmented.dtypes[-1] == ("segments", "map<string,string>")
    assert set(lists.columns) < set(segmented.columns)
    assert python_nodes(segmented) == []


def test_every_list_of_a_user_gets_the_same_values(spark: SparkSession) -> None:
    lists = compact_lists(spark, *({"user_id": "ann", "list_id": name} for name in "ab"), segments=False)
    segmented = user_segments.with_segments(
        lists, segments=table(spark, "user_id tier", ("ann", "gold")), names=("tier",)
    )
    assert tuples(segmented, "list_id", "segments.tier") == [("a", "gold"), ("b", "gold")]


@pytest.mark.parametrize("names", [(), ("country",)])
def test_without_a_segment_table_the_map_is_empty(spark: SparkSession, names: tuple[str, ...]) -> None:
    segmented = user_segments.with_segments(lists_of(spark, "ann"), segments=None, names=names)
    assert by(segmented, "user_id", value="segments") == {"ann": {}}


def test_a_user_twice_in_the_segment_table_fails_the_job(spark: SparkSession) -> None:
    users = table(spark, "user_id country", ("ann", "FR"), ("ann", "DE"))
    segmented = user_segments.with_segments(lists_of(spark, "ann"), segments=users, names=("country",))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:segments\] user 'ann' stands twice"):
        segmented.collect()


def test_a_user_twice_with_the_same_values_fails_the_job_too(spark: SparkSession) -> None:
    users = table(spark, "user_id country", ("ann", "FR"), ("ann", "FR"))
    segmented = user_segments.with_segments(lists_of(spark, "ann"), segments=users, names=("country",))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:segments\]"):
        segmented.collect()


@pytest.mark.parametrize("threshold", ["10MB", "-1"])
def test_a_user_twice_fails_any_job_and_one_without_a_list_none(spark: SparkSession, threshold: str) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    users = table(spark, "user_id country", ("bob", "FR"), ("zoe", "DE"), ("zoe", "FR"), ("zoe", "IT"), ("ann", "IT"))
    segmented = user_segments.with_segments(lists_of(spark, "ann", "bob"), segments=users, names=("country",))
    assert tuples(segmented, "user_id", "segments.country") == [("ann", "IT"), ("bob", "FR")]

    with_zoe = user_segments.with_segments(lists_of(spark, "ann", "zoe"), segments=users, names=("country",))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:segments\] user 'zoe' stands twice"):
        with_zoe.count()


def test_a_row_without_a_user_is_nobodys(spark: SparkSession) -> None:
    users = table(spark, "user_id country", (None, "FR"), (None, "DE"), ("ann", "IT"))
    segmented = user_segments.with_segments(lists_of(spark, "ann"), segments=users, names=("country",))
    assert tuples(segmented, "user_id", "segments.country") == [("ann", "IT")]


@pytest.mark.parametrize("name", ["age band", "a.b", "back`tick", "größe"])
def test_a_segment_may_have_any_name(spark: SparkSession, name: str) -> None:
    users = table(spark, "user_id x", ("ann", "1")).withColumnRenamed("x", name)
    segmented = user_segments.with_segments(lists_of(spark, "ann"), segments=users, names=(name,))
    assert by(segmented, "user_id", value="segments") == {"ann": {name: "1"}}


def test_no_list_has_no_segments(spark: SparkSession) -> None:
    users = table(spark, "user_id country")
    assert tuples(user_segments.with_segments(lists_of(spark), segments=users, names=("country",)), "segments") == []
