"""``evaluate`` on Spark: two frames in, result frames out, and no job before one of them is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark import ResultTable, evaluate, schemas
from rankeval_spark.columns import LIST_KEY
from rankeval_spark.errors import ConfigError, InputError, RefusedCallError
from tests.support.arrow_frames import judgements as gains, ranking as rankings
from tests.support.frames import after_run, assert_columns, assert_key, judgements, ranking, table, tuples
from tests.support.hosts import assert_same
from tests.support.logs import Logs
from tests.support.plans import JOB_FAILED, cached_frames, no_spark_jobs, plan
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark import Evaluation
    from tests.support.logs import Frames, Tables

LOGS = Logs.make(seed=20260102)
MEASURES = ("nDCG@3", "nDCG", "AP@3", "P@1", "P@3", "Success@3", "R(rel=2)@3")
SLICES = ("country", ("country", "tier"))
METRIC_KEY = ("model_id", "slice", "slice_values", "measure", "k")


def evaluated(frames: Frames | Tables, **options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate the logs with all measures and slices."""
    given = {"measures": MEASURES, "segments": frames.segments, "slices": SLICES, **options}
    return evaluate(frames.recommendations, frames.held_out, **sections(**given))


@pytest.fixture(scope="module")
def here() -> Evaluation:
    """Give the evaluation of the logs in this process."""
    return evaluated(LOGS.tables())


def test_nothing_is_computed_or_set_in_the_session_until_a_result_is_used(spark: SparkSession) -> None:
    frames, before = LOGS.frames(spark), spark.conf.getAll
    with no_spark_jobs(spark):
        result = evaluated(frames, models=["als", "popular"])
        results = (result.user_metrics, result.user_values, result.ranked_items)
    assert all(frame.columns for frame in results)
    assert spark.conf.getAll == before
    result.metrics.collect()
    assert spark.conf.getAll == before


def test_one_job_makes_all_small_results_and_they_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    seen = str(tmp_path / "seen")

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with Path(seen).open("a") as file:
                file.write(f"{batch.num_rows}\n")
            yield batch

    def n_read() -> int:
        return sum(map(int, Path(seen).read_text().split()))

    frames = LOGS.frames(spark)
    n_rows = frames.recommendations.count()
    log = frames.recommendations.mapInArrow(counted, frames.recommendations.schema)
    options: dict[str, Any] = {
        "models": ["als", "popular"],
        "baseline": "popular",
        "segments": frames.segments,
        "slices": ["country"],
    }
    result = evaluate(log, frames.held_out, **sections(measures=["nDCG@2", "P@1"], **options))
    result.metrics.collect()
    assert n_read() == n_rows
    with no_spark_jobs(spark):
        again = (result.metrics, result.comparisons, result.group_metrics, result.gaps, result.leaderboard())
        assert all(frame.columns for frame in again)
    result.checks.collect()
    assert n_read() == n_rows


def test_models_that_are_not_named_are_looked_up_once_with_the_first_result(spark: SparkSession) -> None:
    with no_spark_jobs(spark):
        result = evaluated(LOGS.frames(spark))
    assert result.metrics.columns
    with no_spark_jobs(spark):
        assert all(frame.columns for frame in (result.user_metrics, result.metrics, result.leaderboard()))


def test_frames_by_model_need_no_job_for_their_names(spark: SparkSession) -> None:
    tables = {"pop": rankings({"u1": "b a", "u2": "c"}), "als": rankings({"u1": "a", "u3": "a b"})}
    held_out = gains({"u1": {"a": 1}, "u2": {"c": 1, "d": 1}})
    frames = {name: spark.createDataFrame(rows) for name, rows in tables.items()}
    asked: dict[str, Any] = {"measures": ["RR", "P@2"], "baseline": "pop"}
    with no_spark_jobs(spark):
        result = evaluate(frames, spark.createDataFrame(held_out), **asked)
        assert tuple(result.host.models) == ("pop", "als")
    assert_same(result.metrics.toArrow(), evaluate(tables, held_out, **asked).metrics, tolerance=1e-12)
    asked["preset"] = "rectools"  # whose ranks are those of the scores, where the log has no others
    on_spark = evaluate(frames, spark.createDataFrame(held_out), **asked)
    assert_same(on_spark.metrics.toArrow(), evaluate(tables, held_out, **asked).metrics, tolerance=1e-12)
    ranks = frames["pop"].selectExpr("user_id", "1 AS rank", "1 AS item_id")
    told = r"\['pop'\]: found item_id of type bigint.*\n.*\['pop'\]: found a column 'rank'"
    with pytest.raises(InputError, match=told):
        evaluate({"als": frames["als"], "pop": ranks}, frames["als"], measures=["RR"])
    with pytest.raises(InputError, match=r"\['pop'\]: found a pyarrow.Table, while recommendations\['als'\] is a Data"):
        evaluate({"als": frames["als"], "pop": tables["pop"]}, frames["als"], measures=["RR"])


def test_results_have_the_declared_columns_and_keys(spark: SparkSession) -> None:
    result = evaluated(LOGS.frames(spark))
    measured = [(name, "double") for name in ("ndcg", "ap", "p", "success", "r_rel_2")]
    declared = [(field.name, field.type) for field in after_run(schemas.USER_METRICS)]
    assert_columns(result.user_metrics, [*declared, *measured])
    assert_columns(result.metrics, after_run(schemas.METRICS))
    assert_columns(result.checks, after_run(schemas.CHECKS))
    with result.cached() as kept:
        assert_key(kept.user_metrics, (*LIST_KEY, "k"))
        assert_key(kept.user_values, (*LIST_KEY, "measure", "k"))
        assert_key(kept.metrics, METRIC_KEY)
        assert_key(kept.checks, ("input", "check"))


def use_and_fail(result: Evaluation, n_kept: Callable[[], int]) -> None:
    with result.cached() as kept:
        kept.user_metrics.collect()
        assert n_kept() == 1
        raise ZeroDivisionError


def is_kept(frame: DataFrame) -> bool:
    return "InMemoryTableScan" in {node.name for node in plan(frame).walk()}


def test_cached_needs_no_name_and_leaves_the_result_as_it_was(spark: SparkSession, here: Evaluation) -> None:
    result, before = evaluated(LOGS.frames(spark)), cached_frames(spark)
    with result.cached() as kept:
        assert_same(kept.user_metrics.toArrow(), here.user_metrics, tolerance=0.0)
        with result.cached():
            assert_same(result.metrics.toArrow(), here.metrics, tolerance=1e-12)
        assert all(is_kept(frame) for frame in (kept.user_metrics, result.user_metrics, result.user_values))
        assert len(cached_frames(spark) - before) == 1
    assert not cached_frames(spark) - before
    assert not any(is_kept(frame) for frame in (result.user_metrics, result.user_values))
    with no_spark_jobs(spark):
        assert result.metrics.columns  # made inside, and kept
    with pytest.raises(ZeroDivisionError):  # a block can follow another
        use_and_fail(result, lambda: len(cached_frames(spark) - before))
    assert not cached_frames(spark) - before


def test_cached_without_a_block_keeps_the_rows_until_release(spark: SparkSession) -> None:
    result, before = evaluated(LOGS.frames(spark)), cached_frames(spark)
    kept = result.cached()
    result.cached()
    result.user_metrics.collect()
    assert len(cached_frames(spark) - before) == 1
    with kept, kept as inside:
        assert is_kept(inside.user_metrics)
    assert not cached_frames(spark) - before
    with kept:
        with kept:
            kept.user_metrics.collect()
        assert len(cached_frames(spark) - before) == 1  # inner blocks release nothing
        kept.release()
        assert not cached_frames(spark) - before
    result.release()  # nothing is kept
    assert not is_kept(result.user_metrics)


@pytest.mark.parametrize(
    ("is_empty", "values", "n_rows"),
    [((True, False), [], 0), ((False, True), [("m", None, 0)], 0), ((True, True), [], 0)],
)
def test_frames_without_rows_give_results_without_a_crash(
    spark: SparkSession, is_empty: tuple[bool, bool], values: list[tuple[Any, ...]], n_rows: int
) -> None:
    log, held_out = ranking(spark, {"ann": "a"}, model_id="m"), judgements(spark, {"ann": {"a": 1}})
    log, held_out = (frame.limit(0) if empty else frame for frame, empty in zip((log, held_out), is_empty, strict=True))
    with evaluate(log, held_out, measures=["P@1"]).cached() as kept:
        assert tuples(kept.metrics, "model_id", "value", "n_users") == values
        assert len(kept.user_metrics.collect()) == n_rows
        assert {count for (count,) in tuples(kept.checks.where("check = 'rows'"), "count")} <= {0, 1}
        kept.leaderboard().collect()


# ---- what it refuses ---------------------------------------------------------------------------------------------


def test_a_baseline_that_the_log_does_not_name_is_refused_with_the_nearest_model(spark: SparkSession) -> None:
    log = table(spark, "model_id user_id item_id score", ("als", "u", "a", 0.5), ("popular", "u", "a", 0.5))
    result = evaluate(log, table(spark, "user_id item_id", ("u", "a")), measures=["P@1"], baseline="popullar")
    with pytest.raises(ConfigError, match=r"the log: als, popular; did you mean 'popular'\?"):
        _ = result.comparisons


def test_a_policy_of_error_fails_the_job_that_meets_its_case(spark: SparkSession) -> None:
    log = table(spark, "user_id item_id score", ("u", "a", 0.5), ("u", "a", 0.5), ("u", "b", 0.5))
    with no_spark_jobs(spark):
        result = evaluate(
            log, table(spark, "user_id item_id", ("u", "a")), measures=["P@1"], policies={"duplicates": "error"}
        )
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:duplicates\]"):
        result.metrics.collect()


def test_faults_of_arguments_and_of_columns_are_reported_before_any_job(spark: SparkSession) -> None:
    log, held_out = ranking(spark, {"ann": "a"}), judgements(spark, {"ann": {"a": 1}})
    numbers = held_out.selectExpr("7L AS user_id", "item_id")
    with no_spark_jobs(spark):
        with pytest.raises(ConfigError, match=r"(?s)evaluate\(intervals=\)\.confidence.*evaluate\(baseline=\)"):
            evaluate(log, held_out, measures=["P@1"], models=["als"], baseline="asl", intervals={"confidence": 2})
        with pytest.raises(InputError, match=r"(?s)recommendations.*held_out"):
            evaluate(log.drop("item_id"), held_out.drop("user_id"), measures=["P@1"])
        with pytest.raises(RefusedCallError, match=r"cannot be evaluated:\n.*user_id of type bigint"):
            evaluate(log, numbers, measures=["P@1"])


def test_a_result_with_a_row_for_almost_every_user_names_the_slice(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver never gets it."""
    users = [f"u{number}" for number in range(30)]
    segments = table(spark, "user_id phone", *((user, user) for user in users))
    log, judged = ranking(spark, dict.fromkeys(users, "a")), judgements(spark, {"u1": {"a": 1}})
    monkeypatch.setattr("rankeval_spark.sums.grouping.MAX_ROWS", 32)  # of a bucket 1
    result = evaluate(
        log, judged, measures=["P@1", "R@1"], segments=segments, slices=["phone"], policies={"population": "run"}
    )
    with pytest.raises(JOB_FAILED, match=r"a result of more than [\d,]+ rows, most of them of the slice 'phone'"):
        result.leaderboard()


def test_partial_rows_of_many_partitions_meet_in_more_buckets(spark: SparkSession) -> None:
    users = [f"u{number}" for number in range(30)]
    log, judged = ranking(spark, dict.fromkeys(users, "a b c")), judgements(spark, {user: {"b": 1} for user in users})
    segments = table(spark, "user_id phone", *((user, f"p{place % 7}") for place, user in enumerate(users)))

    def rows() -> list[dict[str, object]]:
        measures = ["RR@3", "Entropy@2"]
        result = evaluate(log, judged, measures=measures, segments=segments, slices=["phone"])
        return [*result.metrics.toArrow().to_pylist(), *result.checks.toArrow().to_pylist()]

    few = rows()
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "1000")
    assert rows() == few
    assert {row["value"] for row in few if row.get("measure") == "RR"} == {1 / 2}


def test_a_small_result_keeps_its_rows_next_to_an_empty_chunk(spark: SparkSession) -> None:
    result = evaluate(ranking(spark, {"u": "a"}), judgements(spark, {"u": {"a": 1}}), measures=["P@1"])
    rows = pa.table({"n": [1, 2]})
    chunked = pa.concat_tables([rows, rows.slice(0, 0), rows])
    assert tuples(result.host.frame(ResultTable(chunked)), "n") == [(1,), (1,), (2,), (2,)]


def test_what_a_measure_lacks_is_reported_before_any_job(spark: SparkSession) -> None:
    log, held_out = ranking(spark, {"ann": "a b"}), judgements(spark, {"ann": {"a": 1}})
    with no_spark_jobs(spark), pytest.raises(InputError) as raised:
        evaluate(log, held_out, measures=["ClassAccuracy@3", "R(gains='value')@3"], policies={"ties": "rank"})
    assert [fault.found for fault in raised.value.faults] == [
        "no column 'rank'",
        "ClassAccuracy@3 without a catalogue",
        "no column 'value'",
    ], "a policy, a measure without its input and one without its column, all at once"
