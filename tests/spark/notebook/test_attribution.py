"""Attribution by time on Spark: the engine, plain windows, and every list looked at by hand give the same."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import attributed_interactions, evaluate
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.result_rows import check_rows
from tests.evaluate.test_attribution import CLAIMS, tables, train_of
from tests.support import attribution_cases as cases
from tests.support.hosts import assert_same
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG_COLUMNS: Final = (
    "model_id string, user_id string, list_id string, item_id string, score double, recommended_at timestamp"
)
EVENT_COLUMNS: Final = "user_id string, item_id string, gain double, interacted_at timestamp"

POLICIES: dict[str, Any] = {"attribution_window": "2h", "population": "judged", "models": ["als", "pop"]}

pytestmark = pytest.mark.filterwarnings("ignore:.* rows have no time that can be read")


@pytest.fixture
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Give the random logs, and rows that cannot be used, as frames."""
    log, events = cases.with_unusable(*cases.random_logs(n_users=200))
    return spark.createDataFrame(log, LOG_COLUMNS), spark.createDataFrame(events, EVENT_COLUMNS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_windows_attribute_as_by_hand(frames: tuple[DataFrame, DataFrame], claim: str) -> None:
    log, events = cases.random_logs(n_users=200)
    found = attributed_interactions(*frames, attribution=claim, attribution_window="2h").collect()
    utc = dt.UTC

    def aware(time: dt.datetime) -> dt.datetime:
        return time.astimezone(utc)

    rows = Counter(
        cases.Claim(
            *(row.model_id, row.user_id, row.list_id, row.item_id),
            *(aware(row.recommended_at), aware(row.interacted_at), row.gain, row.is_recommended),
        )
        for row in found
    )
    assert rows == Counter(cases.attributed(log, events, claim=claim))


def test_rows_without_a_time_are_in_the_list_that_the_others_date(spark: SparkSession) -> None:
    day = [dt.datetime(2026, 1, number, tzinfo=dt.UTC) for number in range(4)[1:]]
    lists = [("A", "lamp", day[0]), ("A", "sofa", None), ("B", "desk", day[1])]
    log = spark.createDataFrame([("als", "ann", *row[:2], 1.0, row[2]) for row in lists], LOG_COLUMNS)
    events = spark.createDataFrame([("ann", "sofa", 1.0, day[2])], EVENT_COLUMNS)
    (row,) = attributed_interactions(log, events, attribution="last_touch", attribution_window="7d").collect()
    assert (row.list_id, row.is_recommended) == ("A", True)


def test_rows_whose_rank_orders_nothing_leave(spark: SparkSession) -> None:
    at, later = (dt.datetime(2026, 1, number, tzinfo=dt.UTC) for number in (1, 2))
    names = LOG_COLUMNS.replace("score double", "rank int")
    log = spark.createDataFrame([("als", "ann", "A", item, rank, at) for item, rank in (("a", 1), ("b", None))], names)
    events = spark.createDataFrame([("ann", item, 1.0, later) for item in "ab"], EVENT_COLUMNS)
    options: dict[str, Any] = {"attribution": "last_touch", "attribution_window": "7d"}
    found = attributed_interactions(log, events, **options).collect()
    assert {row.item_id: row.is_recommended for row in found} == {"a": True, "b": False}
    zero = log.withColumn("rank", log["rank"] - 1)
    with pytest.raises(Exception, match="rank 0, in a log whose ranks order its lists"):
        attributed_interactions(zero, events, **options).collect()


def test_the_engine_on_spark_scores_what_it_scores_in_this_process(
    spark: SparkSession, frames: tuple[DataFrame, DataFrame]
) -> None:
    """Of the claims, nights on both hosts show another one."""
    options = {"measures": ["nDCG@3", "R", "AP"], "attribution": "all", "consumed_before": "drop", **POLICIES}
    options["seen_in_train"] = "drop"
    train = train_of((f"u{number}", item) for number in range(200) for item in "abc"[: number % 4])
    on_spark = evaluate(*frames, **sections(train=spark.createDataFrame(train.to_pandas()), **options))
    here = evaluate(*tables(*cases.with_unusable(*cases.random_logs(n_users=200))), **sections(train=train, **options))
    assert_same(on_spark.user_metrics.toArrow(), here.user_metrics, tolerance=0.0)
    assert here.user_metrics.num_rows > 500
    hits = here.hit_ranks("als", "pop")
    assert_same(on_spark.hit_ranks("als", "pop").toArrow(), hits, tolerance=0.0)
    assert any(None not in row.values() for row in hits.to_pylist())
    timed = (*check_rows.OF_TIMING, "events_end")
    checks = [
        sorted(
            (row["check"], row["count"], row["share"], row["sample_keys"])
            for row in found.to_pylist()
            if row["check"] in timed
        )
        for found in (on_spark.checks.toArrow(), here.checks)
    ]
    assert checks[0] == checks[1]
    assert len(checks[0]) == len(timed)
    assert all(count for check, count, *_ in checks[0] if check not in ("events_end", "list_times"))


def test_the_log_moves_once(frames: tuple[DataFrame, DataFrame]) -> None:
    options = {"measures": ["nDCG@3"], "attribution": "last_touch", **POLICIES}
    plan = evaluate(*frames, **sections(**options)).user_metrics._jdf.queryExecution().executedPlan().toString()
    assert plan.count("hashpartitioning(coalesce(user_id") == 1
    assert "Window" not in plan


def test_arguments_and_columns_are_looked_at_before_anything_runs(frames: tuple[DataFrame, DataFrame]) -> None:
    log, held_out = frames
    with pytest.raises(ConfigError, match=r"attributed_interactions\(attribution_window=\): found '-7d'"):
        attributed_interactions(log, held_out, attribution="all", attribution_window="-7d")
    with pytest.raises(ConfigError, match=r"attributed_interactions\(attribution="):
        attributed_interactions(log, held_out, attribution="none", attribution_window="7d")
    with pytest.raises(InputError, match="no column 'recommended_at'"):
        attributed_interactions(log.drop("recommended_at"), held_out, attribution="all", attribution_window="7d")


def test_lists_that_travel_as_arrays_are_attributed_alike(spark: SparkSession) -> None:
    log, held_out = tables(*cases.random_logs(n_users=40))
    key = ["model_id", "user_id", "list_id", "recommended_at"]
    rows = log.to_pandas().dropna(subset=["recommended_at"])
    lists = rows.groupby(key, as_index=False).agg(item_id=("item_id", list), score=("score", list))
    options = {"measures": ["R", "nDCG@3"], "attribution": "last_touch", "consumed_before": "drop", **POLICIES}
    wanted = evaluate(pa.Table.from_pandas(rows), held_out, **sections(**options)).user_metrics.to_pylist()
    here = evaluate(pa.Table.from_pandas(lists), held_out, **sections(**options)).user_metrics.to_pylist()
    there = evaluate(spark.createDataFrame(lists), spark.createDataFrame(held_out.to_pandas()), **sections(**options))
    found = there.user_metrics.toArrow().to_pylist()
    assert here == wanted
    assert sorted(found, key=lambda row: [row[name] for name in (*key[:3], "k")]) == wanted
