"""Both hosts compute the same: rows of users to the bit, aggregates within 1e-12, in tables of the same columns."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.config.inference import TestName
from rankeval_spark.errors import ConfigError
from rankeval_spark.hosts import on_spark
from tests.support.awkward import N_USERS, Awkward
from tests.support.hosts import assert_same
from tests.support.plans import no_spark_jobs, python_nodes
from tests.support.sections import sections
from tests.support.threads import threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation

SIX: Final = ("nDCG@3", "AP", "P@1", "P(agg='micro')@3", "Success@3", "RR(rel=2)@5", "GMAP")
BEYOND: Final = (
    *("ARP@3", "MIUF@3", "EPC@3", "APLT@3", "PopLift@3", "MeanPopRank@3", "UnrepeatedReco@3", "NotInTrain@3"),
    *("Freshness(unknown='drop')@3", "ILD(unknown='drop')@3", "ILD(sim='jaccard',unknown='drop')@3", "alpha_nDCG@3"),
    *(
        "ILD(sim='cooccurrence',unknown='drop')@3",
        "ILD(discount='log2',unknown='drop')@3",
        "Unexpectedness@3",
        "Calibration@3",
        "SRecall@3",
    ),
    *("Serendipity(kind='content')@3", "R(group='rock')@3", "nDCG(group='tail')@3", "R(group='repeat')@3"),
    *("CatalogAUC(negatives='unseen')@3", "P_IA(intents='train')@3"),
)
TOGETHER: Final = (
    *("ItemCoverage", "CatalogCoverage@3", "CatalogCoverage(items='train')@3", "Entropy@3", "Gini@3", "P@3"),
    *("Personalization(denom='min')", "Personalization(sim='cosine')@3"),
    *("PopREO(rel=2)", "PopRSP@3", "BiasDisparity(category='rock')@3"),
)
"""One of each way to count; what is made of the counts is the same function on both hosts."""

SLICES: Final = ["country", ("country", "tier")]
EVERY_TEST: Final[tuple[str, ...]] = get_args(TestName)
INPUTS: Final = ("segments", "train", "items")

OF_USERS: Final = ("user_metrics", "user_values", "ranked_items")
OF_GROUPS: Final = ("metrics", "group_metrics", "gaps", "checks")
MADE_APART: Final = ("user_metrics", "metrics")
"""Results that are not made of another one, checks aside; each has a plan of its own on Spark."""


def both(spark: SparkSession, inputs: Awkward, **asked: Any) -> tuple[Evaluation, Evaluation]:  # noqa: ANN401 - arguments of evaluate
    """Evaluate on Spark, where no job runs yet, and in this process."""
    options: dict[str, Any] = {"measures": SIX, "slices": SLICES, "min_slice_size": 2, **asked}
    given = options.pop("given", INPUTS)
    spark.conf.set("spark.sql.shuffle.partitions", options.pop("n_partitions", 2))

    def evaluated(frames: dict[str, Any]) -> Evaluation:
        chosen: dict[str, Any] = {name: frames[name] for name in given}
        return evaluate(frames["recommendations"], frames["held_out"], **sections(**chosen, **options))

    frames = {**inputs.on_spark(spark)}
    with no_spark_jobs(spark):
        on_spark = evaluated(frames)
    return on_spark, evaluated(vars(inputs))


def assert_agree(spark: SparkSession, inputs: Awkward, *names: str, **asked: Any) -> None:  # noqa: ANN401 - as above
    """Compare results of both hosts by their names."""
    on_spark, here = both(spark, inputs, **asked)
    with on_spark.cached() as kept:
        for name in names:
            tolerance = 0.0 if name in OF_USERS else 1e-12
            assert_same(getattr(kept, name).toArrow(), getattr(here, name), tolerance=tolerance)


@pytest.mark.filterwarnings("ignore:recommendations have no row of")
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            {
                **{"population": "judged", "zero_relevant": "one", "duplicates": "keep"},
                "measures": [*SIX, "Judged@3", "unj@3", "RBPResidual@3", "CG(unjudged='mean')@3"],
                **{"bands": {"age": {"edges": [18, 25.5, 40]}}, "slices": ["age"]},
            },
            id="judged, bands by edges",
        ),
        pytest.param({"population": "run", "models": ["als", "absent"], "given": ("segments",)}, id="run"),
        pytest.param(
            {
                **{"population": "intersection", "held_out_duplicates": "sum", "ties": "item_desc"},
                "item_slices": ["head", "tail", "rock"],
            },
            id="sum, groups of items",
        ),
        pytest.param(
            {"judged_only": True, "seen_in_train": "drop", "score_precision": "single", "has_checks": True},
            id="seen dropped",
        ),
        pytest.param(
            {
                **{"seen_in_train": "drop_both", "unknown_items": "drop", "own_item": "drop_both"},
                **{"ids": "bigint", "has_checks": True},
            },
            id="seen, unknown and own items dropped, judgements too",
        ),
        pytest.param(
            {
                "bands": {"age": {"quantiles": 3}, "activity": {"of": "train"}},
                "slices": ["age", "activity", ("age", "activity")],
                "has_checks": True,
            },
            id="bands by quantiles",
        ),
    ],
)
def test_policies_and_slices(spark: SparkSession, asked: dict[str, Any]) -> None:
    rest = dict(asked)
    ids, has_checks = rest.pop("ids", "string"), rest.pop("has_checks", False)
    assert_agree(spark, Awkward.make(1, ids=ids), *MADE_APART, *(["checks"] if has_checks else []), **rest)


def test_every_result_by_default(spark: SparkSession) -> None:
    assert_agree(spark, Awkward.make(1), *OF_USERS, *OF_GROUPS)


@pytest.mark.parametrize("asked", [{}, {"rank_gaps": "keep"}, {"ties": "rank", "ranks_from": 0}])
def test_ranks_of_the_log(spark: SparkSession, asked: dict[str, Any]) -> None:
    of_ranks = [] if asked else ["checks"]
    assert_agree(spark, Awkward.make(2, has_ranks=True), "ranked_items", *MADE_APART, *of_ranks, **asked)


def test_several_lists_a_user(spark: SparkSession) -> None:
    inputs = Awkward.make(3, ids="bigint", has_lists=True)
    assert_agree(spark, inputs, *OF_USERS, *OF_GROUPS, "comparisons", unit="list", baseline="popular")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"unit": "user", "has_checks": True, "measures": [*SIX, "alpha_nDCG@3"]}, id="user"),
        pytest.param(
            {
                **{"unit": "list", "population": "run", "held_out_duplicates": "last", "ids": "bigint"},
                **{"judged_only": True, "seen_in_train": "drop", "unknown_items": "drop"},
            },
            id="list, dropped",
        ),
        pytest.param({"lists": "pooled", "has_checks": True}, id="pooled"),
    ],
)
@pytest.mark.filterwarnings(r"ignore:the comparison of '\w+' with 'popular' is withheld")
def test_judgements_that_name_their_list(spark: SparkSession, asked: dict[str, Any]) -> None:
    rest = dict(asked)
    ids, has_checks = rest.pop("ids", "string"), rest.pop("has_checks", False)
    inputs = Awkward.make(3, ids=ids, has_lists=True).with_judged_lists()
    names = [*OF_USERS, "metrics", "comparisons", *(["checks"] if has_checks else [])]
    assert_agree(spark, inputs, *names, baseline="popular", **rest)


@pytest.mark.parametrize("asked", [{"order": "rank"}, {"order": "rank", "lists": "pooled"}])
def test_lists_that_are_pooled_and_ranks_that_order_them(spark: SparkSession, asked: dict[str, Any]) -> None:
    inputs = Awkward.make(8, has_lists=True, has_ranks=True)
    assert_agree(spark, inputs, "ranked_items", *MADE_APART, "checks", **asked)


def test_measures_beyond_accuracy(spark: SparkSession) -> None:
    asked = {"measures": [*SIX, *BEYOND], "evaluation_date": dt.date(2026, 1, 31)}
    assert_agree(spark, Awkward.make(4), *MADE_APART, **asked)


def test_a_catalogue_that_is_too_large_for_every_worker(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it knows travels with the rows of the log, the judgements and the training data."""
    monkeypatch.setattr(on_spark, "SMALL_CATALOGUE", -1)
    measures = [*BEYOND, "PopRSP@3", "BiasDisparity(category='rock')@3"]
    asked = {"measures": measures, "evaluation_date": dt.date(2026, 1, 31)}
    assert_agree(spark, Awkward.make(4), "user_metrics", "metrics", **asked)


def test_measures_of_all_lists(spark: SparkSession) -> None:
    """Those of users with one list each are in a night of ``test_night_hosts``."""
    assert_agree(spark, Awkward.make(6, has_lists=True, ids="bigint"), "metrics", measures=TOGETHER)


def test_comparisons(spark: SparkSession) -> None:
    assert_agree(spark, Awkward.make(7), "comparisons", pairs="all", tests=EVERY_TEST, replicates=200)


@pytest.mark.parametrize("asked", [{"unit": "list"}, {"intervals": "bootstrap", "replicates": 100}])
def test_quantiles_and_margins_without_rows_of_users(spark: SparkSession, asked: dict[str, Any]) -> None:
    asked = {"quantiles": [0.0, 0.1, 0.5, 1.0], "baseline": "popular", "margin": 0.1, **asked}
    on_spark, here = both(spark, Awkward.make(11, has_lists="unit" in asked), **asked)
    for name in ("metrics", "comparisons"):
        assert_same(getattr(on_spark, name).toArrow(), getattr(here, name), tolerance=1e-12)
    assert here.metrics["quantile_error"].drop_null().unique().to_pylist() == [0.0]


def test_a_bootstrap_on_seven_partitions(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    asked = {"measures": (*SIX, "ItemCoverage@3"), "confidence": 0.9, "intervals": "bootstrap", "replicates": 200}
    assert_agree(spark, Awkward.make(8, has_lists=True), "metrics", n_partitions=7, seed=11, **asked)


def test_leaderboard_agreement_and_tests_of_gaps(spark: SparkSession) -> None:
    on_spark, here = both(spark, Awkward.make(9), models=["als", "knn", "popular"])
    with no_spark_jobs(spark):
        agreement = on_spark.agreement("popular", k=5)
        with pytest.raises(ConfigError, match=r"gap_tests\(measures=\)\[0\]"):
            on_spark.gap_tests(measures=["RR@7"])
    assert python_nodes(agreement) == ["MapInArrow"]
    leaders = on_spark.leaderboard().toArrow()
    assert_same(leaders, here.leaderboard(), tolerance=1e-12)
    assert here.leaderboard()["model_id"].to_pylist() == leaders["model_id"].to_pylist()
    assert_same(on_spark.leaderboard(k=3).toArrow(), here.leaderboard(k=3), tolerance=1e-12)
    assert_same(agreement.toArrow(), here.agreement("popular", k=5), tolerance=0.0)
    hits = here.hit_ranks("als", "popular")
    assert_same(on_spark.hit_ranks("als", "popular").toArrow(), hits, tolerance=0.0)
    assert hits.num_rows
    asked: dict[str, Any] = {"measures": ["nDCG@3", "P@1"], "replicates": 100}
    with on_spark.cached() as kept:
        assert_same(kept.gap_tests(**asked).toArrow(), here.gap_tests(**asked), tolerance=1e-12)


def test_two_models_in_a_paragraph_whether_or_not_they_are_compared(spark: SparkSession) -> None:
    """Kept rows have the sums of the evaluation's own baseline, which are not those of another pair."""
    models = ["als", "knn", "popular"]
    on_spark, here = both(spark, Awkward.make(12), measures=["nDCG@3", "P@1"], baseline="popular", models=models)
    with on_spark.cached() as kept:
        for other in ("popular", "knn"):
            found, wanted = kept.compare("als", other), here.compare("als", other)
            assert_same(found.table.to_arrow(), wanted.table.to_arrow(), tolerance=1e-12)
            assert found.text == wanted.text
    with no_spark_jobs(spark):
        assert on_spark.compare("als", "knn").text == here.compare("als", "knn").text
        assert on_spark.as_table().to_latex() == here.leaderboard().to_latex()


def test_numbers_do_not_depend_on_the_threads() -> None:
    inputs = Awkward.make(10)
    tables = []
    for number in (1, 3):
        with threads(number):
            tables.append(evaluate(inputs.recommendations, inputs.held_out, measures=SIX).metrics)
    assert tables[0].equals(tables[1])


@pytest.mark.filterwarnings("ignore:user_(values|weights). ")
def test_own_values_and_weights_of_users(spark: SparkSession) -> None:
    """Values of one model and of every one, with faulty rows."""
    inputs, draw = Awkward.make(12), random.Random(12)
    users = [None, *(f"{number:03}" for number in range(N_USERS + 3))]
    values = [
        (user, name, draw.choice([draw.gauss(), math.nan, None]), model)
        for user in users
        for name in ("spent", "visits", None)
        for model in draw.sample([None, "als", "knn", "other"], 2)
    ]
    columns = zip(("user_id", "name", "value", "model_id"), map(list, zip(*values, strict=True)), strict=True)
    weights = {"user_id": users[:-9], "weight": [draw.choice([0.5, 2.0, 7.25, 0.0, math.inf]) for _ in users[:-9]]}
    tables = {"user_values": pa.table(dict(columns)), "user_weights": pa.table(weights)}
    asked: dict[str, Any] = {
        "measures": [*SIX, "UserValue(name='spent')", "UserValue(better='lower',name='visits')", "ItemCoverage@3"]
    }
    frames = {**vars(inputs), **tables}
    given: dict[str, Any] = {name: frames[name] for name in ("recommendations", "held_out", "train", *tables)}
    of_spark: dict[str, Any] = {name: spark.createDataFrame(table) for name, table in given.items()}
    there = evaluate(**of_spark, **asked)
    here = evaluate(**given, **asked)
    with there.cached() as kept:
        for name in ("user_metrics", "metrics", "checks"):
            tolerance = 0.0 if name == "user_metrics" else 1e-12
            assert_same(getattr(kept, name).toArrow(), getattr(here, name), tolerance=tolerance)
    assert {row["ci_method"] for row in here.metrics.to_pylist()} >= {"delta"}
