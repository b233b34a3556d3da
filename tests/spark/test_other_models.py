"""Measures of the agreement of two models, from the log to ``metrics``, comparisons and gates."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from rankeval_spark import columns as C, evaluate
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.frames import by, judgements, table
from tests.support.nights import FIRST
from tests.support.oracles.agreement import common, rank_biased_overlap
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation

Lists = dict[tuple[str, str, str], list[Any]]
"""Items by model, user and list."""

MODELS = ("base", "a 'new', better one", "other.model`")
LABELS = [f"{name}(model={model!r}{p})" for model in MODELS for name, p in (("Overlap", ""), ("RBO", ",p=0.8"))]
KS = (1, 3, 6)


def drawn(items: list[Any]) -> Lists:
    """Draw lists of several lengths: one or two for most users under most models."""
    draw = random.Random(7)
    return {
        (model, f"u{user}", name): draw.sample(items, draw.choice([1, 3, 6, 9]))
        for model in MODELS
        for user in range(12)
        for name in ("home", "cart")
        if draw.random() < 0.7
    }


def evaluated(
    spark: SparkSession,
    lists: Lists,
    *,
    ids: str = "string",
    **options: Any,  # noqa: ANN401 - those of evaluate
) -> Evaluation:
    """Evaluate a log of these lists for everyone who got one."""
    rows = [
        (model, user, name, item, float(-place))
        for (model, user, name), items in lists.items()
        for place, item in enumerate(items)
    ]
    log = table(spark, "model_id user_id list_id item_id score", *rows).withColumn(
        "item_id", F.col("item_id").cast(ids)
    )
    held_out = judgements(spark, {"u0": {"1": 1}}).withColumn("item_id", F.col("item_id").cast(ids))
    return evaluate(log, held_out, population="run", **options)


def values_of(lists: Lists, model: str, k: int) -> dict[tuple[str, str, str], dict[str, float | None]]:
    """Compute overlap and rank-biased overlap with a model by their formulas; None without two lists of two."""
    found: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for (owner, user, name), items in lists.items():
        own, other = items[:k], [] if owner == model else lists.get((model, user, name), [])[:k]
        short, long = sorted((own, other), key=len)
        found[owner, user, name] = {
            f"Overlap(model={model!r})": common(own, other, k) / k if short else None,
            f"RBO(model={model!r},p=0.8)": rank_biased_overlap(short, long, 0.8) if short else None,
        }
    return found


@pytest.mark.parametrize("models", [None, MODELS], ids=["models found", "models named"])
@pytest.mark.parametrize("ids", ["string", "bigint"])
def test_every_list_is_compared_with_the_one_of_the_same_name_of_each_model(
    spark: SparkSession, models: tuple[str, ...] | None, ids: str
) -> None:
    lists = drawn([str(number) for number in range(12)])
    measures = [f"{label}@{k}" for label in LABELS for k in KS]
    with no_spark_jobs(spark):
        result = evaluated(spark, lists, ids=ids, measures=[*measures, "P@3"], models=models)
        values = result.user_values
    found = by(values, *C.LIST_KEY, C.MEASURE, C.K, value=C.VALUE)
    for k in KS:
        for model in MODELS:
            for key, expected in values_of(lists, model, k).items():
                for label, value in expected.items():
                    shown = found[(*key, label, k)]
                    assert shown == (None if value is None else pytest.approx(value, rel=0, abs=1e-12)), (key, label, k)


def test_agreement_of_an_evaluation_has_the_values_of_the_measures(spark: SparkSession) -> None:
    lists = drawn([*"abcdefghijkl"])
    asked = [f"{name}(model='base'{p})@3" for name, p in (("Overlap", ""), ("Jaccard", ""), ("RBO", ",p=0.8"))]
    result = evaluated(spark, lists, measures=asked)
    rows = result.user_metrics.where("overlap_model_base is not null")
    names = ("overlap_model_base", "jaccard_model_base", "rbo_model_base_p_0_8")
    expected = {tuple(row) for row in rows.select(*C.LIST_KEY, *names).collect()}
    agreement = result.agreement("base", k=3, p=0.8)
    assert agreement.columns == [*C.LIST_KEY, "overlap", "jaccard", "rbo"]
    assert {tuple(row) for row in agreement.collect()} == expected
    assert len(expected) > 10


def test_neither_a_model_beside_itself_nor_beside_one_that_is_not_there_has_a_value(spark: SparkSession) -> None:
    lists = {("base", "u0", ""): ["a", "b", "c"], ("new", "u0", ""): ["b"]}
    measures = ["RBO(model='base')@3", "Overlap(model='ghost')@3", "P@3"]
    result = evaluated(spark, lists, measures=measures, baseline="base")
    means = by(result.metrics, C.MODEL_ID, C.MEASURE, value=C.VALUE)
    assert means["base", "RBO(model='base',p=0.9)"] is None
    assert means["new", "RBO(model='base',p=0.9)"] > 0
    assert (means["base", "Overlap(model='ghost')"], means["new", "Overlap(model='ghost')"]) == (None, None)
    reasons = by(result.comparisons, C.MEASURE, value="reason")
    assert reasons["RBO(model='base',p=0.9)"] == "no_common_users"


@pytest.mark.parametrize(("duplicates", "value"), [("best", 1 / 3), ("keep", 2 / 3)])
def test_item_that_both_lists_hold_twice_counts_as_often_as_the_policy_says(
    spark: SparkSession, duplicates: str, value: float
) -> None:
    lists = {("base", "u0", ""): ["a", "b", "a"], ("new", "u0", ""): ["a", "a", "c", "a"]}
    result = evaluated(spark, lists, measures=["Overlap(model='base')@3"], duplicates=duplicates)
    assert by(result.user_metrics, C.MODEL_ID, value="overlap_model_base")["new"] == pytest.approx(value, abs=1e-12)


def test_ranks_that_are_kept_are_those_that_count(spark: SparkSession) -> None:
    rows = [("base", "u0", "a", 1), ("base", "u0", "b", 4), ("new", "u0", "b", 2), ("new", "u0", "a", 3)]
    log = table(spark, "model_id user_id item_id rank", *rows)
    held_out = judgements(spark, {"u0": {"a": 1}})
    asked = [f"Overlap(model='base')@{k}" for k in (2, 3, 4)]
    result = evaluate(log, held_out, measures=asked, rank_gaps="keep")
    of_new = by(result.user_metrics.where("model_id = 'new'"), C.K, value="overlap_model_base")
    assert of_new == {2: 0, 3: 1 / 3, 4: 2 / 4}


def test_unknown_model_is_refused_with_the_nearest_one(spark: SparkSession) -> None:
    lists = {("popular", "u0", ""): ["a"]}
    with pytest.raises(ConfigError) as raised, no_spark_jobs(spark):
        evaluated(
            spark, lists, measures=["Overlap(model='populr')@3", "RBO(model='popular')"], models=["popular", "als"]
        )
    assert [str(fault) for fault in raised.value.faults] == [
        "evaluate(measures=): found model 'populr' in Overlap(model='populr'); "
        "expected one of the models: popular, als; did you mean 'popular'?"
    ]


@pytest.fixture
def night(tmp_path: Path) -> nights.Workspace:
    """Make a night that measures how far the models are from `pop`, compares them and has a rule."""
    made = nights.workspace(
        tmp_path / "workspace", measures=["RR", "Overlap(model='pop')", "RBO(model='pop')"], models=["als", "pop"]
    )
    made.change(
        comparisons={"baseline": "pop"},
        gates=[
            {"measure": "Overlap(model='pop')@2", "at_most": 0.5},
            {"measure": "RBO(model='pop')@2", "slice": "country", "models": ["als"], "at_least": 0.1},
        ],
        min_slice_size=1,
    )
    return made


def test_night_publishes_them_per_slice_and_cutoff_with_intervals_and_judges_them(
    spark: SparkSession, night: nights.Workspace
) -> None:
    done = rankeval("run", night.config, "--date", FIRST)
    results = Results(spark, night.root)
    here: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}

    # als gives ann a b, bob b a and eve c d; pop b a, d a and e a.
    of_users = results.user_metrics(**here, model_id="als", k=2)
    assert by(of_users, "user_id", value="overlap_model_pop") == {
        **{"ann": 1, "bob": 1 / 2, "eve": 0, "kim": None, "ida": None},
    }
    means = results.metrics(**here, model_id="als", measure="Overlap(model='pop')")
    values = by(means, C.SLICE, C.SLICE_VALUE, C.K, value=C.VALUE)
    assert (values["all", "", 1], values["all", "", 2]) == (0, pytest.approx(1 / 2, rel=0, abs=1e-12))
    assert (values["country", "AT", 2], values["country", "DE", 2]) == (pytest.approx(3 / 4, rel=0, abs=1e-12), 0)
    (row,) = means.where("slice = 'all' and k = 2").select("n_users", "ci_low", "ci_high", "ci_method").collect()
    assert row["n_users"] == 3
    assert row["ci_low"] < 1 / 2 < row["ci_high"]

    gaps = results.group_metrics(**here, model_id="als", k=2, measure="GroupGap(Overlap(model='pop'))")
    assert [row[C.VALUE] for row in gaps.collect()] == [pytest.approx(3 / 4, rel=0, abs=1e-12)]
    compared = results.comparisons(**here, measure="Overlap(model='pop')", k=2, slice="all")
    assert [row["model_id"] for row in compared.collect()] == ["als"]

    assert done.code == 6, done.err
    verdicts = by(results.gates(**here), C.MODEL_ID, C.MEASURE, C.SLICE_VALUE, value="verdict")
    overlap, rbo = "Overlap(model='pop')", "RBO(model='pop',p=0.9)"
    assert verdicts["als", overlap, ""] == "passed"
    assert ("pop", overlap, "") not in verdicts
    assert (verdicts["als", rbo, "AT"], verdicts["als", rbo, "DE"]) == ("passed", "failed")

    refused = rankeval("score", night.root, "-m", "Jaccard(model='pop')@2", "--date", FIRST, "--evaluation", "nightly")
    assert refused.code == 4
    assert "Jaccard(model='pop'), which need the rows of the log; expected measures of the publi" in refused.message
