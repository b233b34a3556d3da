"""The shape of the physical plan, as it was run.

An exchange moves every row over the network, so the number of them is what an evaluation costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F

from rankeval_spark.config import Comparisons, Policies
from rankeval_spark.config.request import Request
from rankeval_spark.engine.planning import measure_needs
from rankeval_spark.measures import MeasureSet
from rankeval_spark.spark.plans import result_frames, usable_rows, user_rows
from rankeval_spark.spark.plans.user_rows import InputFrames
from rankeval_spark.statistics.resampling import Draws
from rankeval_spark.sums.exposures import exposure_sums
from rankeval_spark.sums.input_checks import InputChecks
from rankeval_spark.sums.sums import LIST_ROWS, LISTS, USER_ROWS, ListCounts, ListTotals, result_sums
from tests.support.plans import (
    exchanges_of,
    final_exchanges,
    joins,
    no_spark_jobs,
    plan,
    planned_exchanges,
    python_nodes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ONE = 1
"""The exchange of all rows of users."""

FEW = Request(measures=("nDCG@5", "P@5"))
MANY = Request(measures=tuple(f"{name}@{k}" for name in ("nDCG", "P", "R", "AP", "RR") for k in (1, 5, 20)))


@pytest.fixture(scope="module")
def folder(_shared_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet tables: with rows in memory Spark would know their size, and columns would cost nothing to read."""
    path = tmp_path_factory.mktemp("tables")
    number = F.col("id")
    ids = [(number % 50).cast("string").alias("user_id"), (number % 37).cast("string").alias("item_id")]
    recommendations = _shared_session.range(2000).select(
        F.concat(F.lit("m"), (number % 3).cast("string")).alias("model_id"),
        F.lit("").alias("list_id"),
        *ids,
        F.hash("id").cast("double").alias("score"),
        (number / 100).cast("int").alias("rank"),
    )
    recommendations.write.parquet(f"{path}/recommendations")
    _shared_session.range(400).select(*ids, F.lit(1.0).alias("gain")).write.parquet(f"{path}/held_out")
    users = _shared_session.range(50).select(number.cast("string").alias("user_id"), F.lit("x").alias("country"))
    users.write.parquet(f"{path}/segments")
    _shared_session.range(3000).select(*ids).write.parquet(f"{path}/train")
    catalogue = _shared_session.range(37).select(
        number.cast("string").alias("item_id"),
        F.array(F.lit("x")).alias("categories"),
        F.array(number.cast("double"), F.lit(1.0)).alias("vector"),
        F.lit(None).cast("date").alias("published_at"),
    )
    catalogue.write.parquet(f"{path}/items")
    return path


@pytest.fixture
def tables(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """Give the inputs in canonical columns."""
    # Tables of a few rows would be broadcast; those of a night are not.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    names = ("recommendations", "held_out", "segments", "train", "items")
    frames = {name: spark.read.parquet(f"{folder}/{name}") for name in names}
    frames["recommendations"] = frames["recommendations"].drop("rank")
    return frames


def inputs_of(tables: dict[str, DataFrame], request: Request, *, has_small_catalogue: bool = False) -> InputFrames:
    """Bundle the tables, of the log the rows of the named models."""
    return InputFrames(
        usable_rows.keep_models(tables["recommendations"], names=request.models),
        tables["held_out"],
        tables["segments"] if request.segments else None,
        has_one_list=True,
        train=tables["train"],
        items=tables.get("items"),
        has_small_catalogue=has_small_catalogue,
        model_names=("m0", "m1", "m2"),
    )


def lists_of(tables: dict[str, DataFrame], request: Request = FEW, *, has_small_catalogue: bool = False) -> DataFrame:
    """Plan the compact rows."""
    inputs = inputs_of(tables, request, has_small_catalogue=has_small_catalogue)
    rows = user_rows.to_user_rows(inputs, request, needs=frozenset())
    return result_frames.to_packed(rows.frame, ListTotals(rows.job, {}, (LIST_ROWS,)))


def user_metrics_of(
    tables: dict[str, DataFrame], request: Request = FEW, *, has_small_catalogue: bool = False
) -> DataFrame:
    """Plan the per-user table."""
    inputs = inputs_of(tables, request, has_small_catalogue=has_small_catalogue)
    return user_rows.to_user_rows(inputs, request).to_user_rows()


def asked(*measures: str) -> Request:
    """Ask for some measures beside those of ``FEW``."""
    return FEW.copy_with(measure_set=MeasureSet.parse(["nDCG@5", "P@5", *measures]))


def dropping(*policies: str, request: Request = FEW) -> Request:
    """Leave items out of the lists by some policies."""
    values: dict[str, Any] = dict.fromkeys(policies, "drop")
    return request.copy_with(policies=Policies(**values))


PER_USER: Final = {
    "by default": FEW,
    "more measures and cutoffs": MANY,
    "duplicates kept": FEW.copy_with(policies=Policies(duplicates="keep", ties="item_desc")),
    "gains summed": FEW.copy_with(policies=Policies(held_out_duplicates="sum", invalid_scores="error")),
    "ties by gain": FEW.copy_with(policies=Policies(ties="pessimistic", score_precision="single")),
    "judged items only": FEW.copy_with(policies=Policies(judged_only=True)),
    "named models": FEW.copy_with(models=["m0", "m1"]),
    "segments": FEW.copy_with(slices=[("country",)]),
    "scores of hits": asked("RMSE"),
    "training data": asked("NotInTrain@5"),
    "facts of a small catalogue": asked("ILD@5", "ILS(sim='jaccard')@3"),
    "seen items left out": dropping("seen_in_train"),
    "seen items left out and asked for": dropping("seen_in_train", request=asked("NotInTrain@5")),
}


@pytest.mark.parametrize("title", PER_USER)
def test_rows_of_users_are_moved_once_and_cross_into_python_once(tables: dict[str, DataFrame], title: str) -> None:
    is_small = "small catalogue" in title
    planned = user_metrics_of(tables, PER_USER[title], has_small_catalogue=is_small)
    assert planned_exchanges(planned) == ONE
    assert python_nodes(planned) == ["MapInArrow"]
    assert joins(planned) == []


def test_a_log_of_ranks_and_item_groups_that_are_broadcast_take_no_more(
    spark: SparkSession, tables: dict[str, DataFrame], folder: Path
) -> None:
    ranks = spark.read.parquet(f"{folder}/recommendations").drop("score")
    assert planned_exchanges(lists_of({**tables, "recommendations": ranks})) == ONE
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    grouped = user_metrics_of(tables, asked("P(group='x')@5", "nDCG(group='x')@5"))
    assert final_exchanges(grouped) == ONE
    assert python_nodes(grouped) == ["MapInArrow"]


def test_without_a_measure_of_items_the_plan_has_no_training_data_or_catalogue(
    tables: dict[str, DataFrame],
) -> None:
    scans = [node.text for node in plan(lists_of(tables)).walk() if "parquet" in node.text]
    assert scans
    assert not [text for text in scans if "/train" in text or "/items" in text]


def test_lists_of_other_models_add_nothing_to_the_plan(tables: dict[str, DataFrame]) -> None:
    plain = user_metrics_of(tables)
    beside = user_metrics_of(tables, asked("Overlap(model='m0')@5", "RBO(model='m1')@5", "Jaccard(model='m0')@3"))
    assert planned_exchanges(beside) == planned_exchanges(plain) == ONE
    assert joins(beside) == joins(plain)
    assert python_nodes(beside) == python_nodes(plain)
    scans = [node.text for node in plan(beside).walk() if "parquet" in node.text and "/recommendations" in node.text]
    assert len(scans) == 1


def test_leaving_unknown_items_out_by_a_small_catalogue_moves_no_row(tables: dict[str, DataFrame]) -> None:
    known = user_metrics_of(tables, dropping("unknown_items"), has_small_catalogue=True)
    assert exchanges_of(known, "recommendations") == ONE
    assert joins(known) == joins(user_metrics_of(tables))


def test_leaving_unknown_items_out_by_another_catalogue_is_left_to_spark(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    """One that it does not broadcast is moved, and the rows to their items; training data are counted first."""
    assert final_exchanges(lists_of(tables, dropping("unknown_items"))) == ONE + 2
    by_train = {name: frame for name, frame in tables.items() if name != "items"}
    assert exchanges_of(lists_of(by_train, dropping("unknown_items")), "recommendations") == ONE
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    assert final_exchanges(lists_of(tables, dropping("unknown_items"))) == ONE


def test_measures_of_all_lists_reuse_the_rows_that_are_left(tables: dict[str, DataFrame]) -> None:
    several = MeasureSet.parse(["P@5", "Entropy@5", "Entropy@10", "Entropy"])
    request = dropping("seen_in_train", "unknown_items", request=FEW.copy_with(measure_set=several))
    some = {**tables, "train": tables["train"].where("item_id like '1%'")}  # of lists that are all seen nothing is left
    assert final_exchanges(one_job(some, request)) == ONE + 2


def test_a_catalogue_too_large_to_be_broadcast_moves_rows_to_their_items_first(tables: dict[str, DataFrame]) -> None:
    assert final_exchanges(user_metrics_of(tables, asked("ILD(sim='jaccard')@5"))) == ONE + 2


def test_more_measures_of_the_same_facts_add_no_join(tables: dict[str, DataFrame]) -> None:
    few = user_metrics_of(tables, asked("MIUF@5"))
    many = user_metrics_of(
        tables, asked("MIUF@1", "MIUF@5", "MIUF(unseen='drop')@5", "EPC@3", "EPC(relevance='off')@5")
    )
    assert joins(many) == joins(few)
    assert planned_exchanges(many) == planned_exchanges(few)
    assert python_nodes(many) == python_nodes(few)


def test_popularity_and_profiles_move_no_row_of_the_log_but_once(tables: dict[str, DataFrame]) -> None:
    """Training data are counted in subqueries; the log knows nothing of it."""
    for measures in (("MIUF@5", "APLT@5", "EPC@5"), ("Calibration@5", "Serendipity(kind='content')@5")):
        described = user_metrics_of(tables, asked(*measures), has_small_catalogue=True)
        assert exchanges_of(described, "recommendations") == ONE
        assert python_nodes(described) == ["MapInArrow"]


def test_co_occurrence_ranks_the_log_once_more(tables: dict[str, DataFrame]) -> None:
    for measure in ("ILD(sim='cooccurrence')@5", "Unexpectedness(sim='cooccurrence')@5"):
        assert python_nodes(user_metrics_of(tables, asked(measure))) == ["MapInArrow", "MapInArrow"]


def one_job(tables: dict[str, DataFrame], request: Request) -> DataFrame:
    """Plan the job that makes all small tables."""
    inputs = inputs_of(tables, request, has_small_catalogue=True)
    needs = measure_needs(request, has_train=True, of_all_lists=True)
    rows = user_rows.to_user_rows(inputs, request, needs=needs, is_aggregated=True)
    of_inputs = InputChecks(request, inputs.row_checks(request), has_bands=False, is_judged=False).sums
    together = exposure_sums(request, inputs.model_names)
    sums = {**result_sums(request, rows.job.outputs), **together, LISTS: ListCounts(request), **of_inputs}
    packed = result_frames.to_packed(rows.frame, ListTotals(rows.job, sums, (USER_ROWS,)))
    packed = result_frames.with_catalogues(packed, sums, lambda name: tables[name].select("item_id"))
    return result_frames.to_merged(packed, sums)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"slices": [("country",)]},
        {"slices": [("country",)], "draws": Draws(replicates=100, seed=0)},
        {"slices": [("country",)], "comparisons": Comparisons(baseline="m0", tests=("t", "bootstrap", "wilcoxon"))},
    ],
)
def test_all_small_tables_are_made_of_one_exchange_of_the_rows(
    tables: dict[str, DataFrame], changes: dict[str, Any]
) -> None:
    assert_one_pass(tables, FEW.copy_with(**changes), n_merges=1)


@pytest.mark.parametrize(
    ("measures", "n_catalogues"),
    [
        (["Entropy@5", "Entropy@10", "Entropy"], 0),
        (["P@5", "Personalization(sim='cosine')@5", "PopREO@5"], 0),
        (["P@5", "Gini@5", "CatalogCoverage(items='train')@5"], 2),
    ],
)
def test_measures_of_all_lists_are_made_of_it_too(
    tables: dict[str, DataFrame], measures: list[str], n_catalogues: int
) -> None:
    """What their workers added up is merged twice: by item, and by slice."""
    request = FEW.copy_with(measure_set=MeasureSet.parse(measures), slices=[("country",)])
    assert_one_pass(tables, request, n_merges=2, n_catalogues=n_catalogues)


def assert_one_pass(tables: dict[str, DataFrame], request: Request, *, n_merges: int, n_catalogues: int = 0) -> None:
    packed = one_job(tables, request)
    assert final_exchanges(packed) == ONE + n_merges  # of what the workers added up
    assert python_nodes(packed) == ["FlatMapGroupsInArrow"] * n_merges + ["MapInArrow"] * (1 + n_catalogues)
    assert joins(packed) == []
    scans = [node.text for node in plan(packed).walk() if "parquet" in node.text]
    assert len([text for text in scans if "/held_out" in text]) == 1
    assert len([text for text in scans if "/recommendations" in text]) == 1


def test_ranks_next_to_scores_are_checked_without_another_exchange(
    spark: SparkSession, tables: dict[str, DataFrame], folder: Path
) -> None:
    both = {**tables, "recommendations": spark.read.parquet(f"{folder}/recommendations")}
    user_metrics = user_metrics_of(both)
    assert final_exchanges(user_metrics) == ONE
    assert joins(user_metrics) == joins(user_metrics_of(tables))
    of_lists = one_job(both, FEW.copy_with(measure_set=MeasureSet.parse(["P@5", "Entropy@5", "Entropy@10", "Entropy"])))
    assert final_exchanges(of_lists) == ONE + 2


def test_building_the_whole_plan_starts_no_job(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    with no_spark_jobs(spark):
        assert user_metrics_of(tables, MANY).columns
        assert one_job(tables, MANY).columns


def test_the_count_sees_each_exchange(tables: dict[str, DataFrame]) -> None:
    moved = tables["held_out"].repartition("item_id").groupBy("user_id").count()
    assert final_exchanges(moved) == 2


def test_a_job_in_the_block_is_noticed(spark: SparkSession) -> None:
    with pytest.raises(AssertionError, match="Spark jobs were started"), no_spark_jobs(spark):
        spark.range(3).count()
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_plan_that_was_not_run_shows_what_it_would_begin_with(spark: SparkSession) -> None:
    frame = spark.range(9).repartition("id").groupBy("id").count()
    assert sum(node.is_hash_exchange for node in plan(frame).walk()) == 1
