"""One measure of the judged items alone, beside others of all: from the tables to the users' values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.app.history import past_nights, score_night
from rankeval_spark.app.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from tests.spark.test_groups import Case
from tests.support.frames import by, judgements, ranking, tuples
from tests.support.nights import FIRST, recommendations
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

OF_SUMS: Final = (
    *("P@3", "P(denom='len')@3", "R@2", "Success@1", "RR", "AP", "AP(agg='micro',denom='min')@4", "Rprec"),
    *("nDCG@3", "nDCG(agg='micro',dcg='exp-log2')", "nDCG(gains='value')@3", "nDCG(group='tail')@3", "RBP(rel=1)@5"),
)
ANY: Final = (*OF_SUMS, "ERR@3", "IPrec@0.5", "PAUC@2", "AP(denom='hits')", "nDCG(ideal='retrieved')@4")


def alone(text: str) -> str:
    """Write the measure with the option."""
    head, at, k = text.partition("@")
    if head == "IPrec":
        return f"IPrec(recall={k},judged_only=True)"
    return (f"{head[:-1]},judged_only=True)" if "(" in head else f"{head}(judged_only=True)") + at + k


class WithPool(Case):
    """Random tables in which some of the judged items were pooled and not judged, as trec_eval's -1 says."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for place, held in enumerate(self.held.values()):
            first, (_, value) = next(iter(held.items()))
            held[first] = (-1.0 if place % 3 == 0 else held[first][0], value)


@pytest.mark.parametrize(
    ("measures", "policies"),
    [
        pytest.param(ANY, {}, id="ties by item"),
        pytest.param(OF_SUMS, {"ties": "expected", "population": "judged"}, id="means over ties"),
    ],
)
def test_option_gives_the_values_of_the_policy_to_the_bit(
    spark: SparkSession, measures: tuple[str, ...], policies: dict[str, Any]
) -> None:
    frames = WithPool(seed=21).frames(spark)
    by_option = evaluate(**frames, measures=list(map(alone, measures)), **policies)
    by_policy = evaluate(**frames, measures=list(measures), judged_only=True, **policies)
    found, expected = (
        sorted(tuples(result.user_values.drop("measure", "model_id"), "user_id", "k", "value"), key=repr)
        for result in (by_option, by_policy)
    )
    assert len(found) > 40
    assert found == expected
    labels = dict(zip(by_option.request.measures.labels, by_policy.request.measures.labels, strict=True))
    values = {
        (labels[measure], *rest) for measure, *rest in tuples(by_option.user_values, "measure", "k", "user_id", "value")
    }
    assert values == {tuple(row) for row in tuples(by_policy.user_values, "measure", "k", "user_id", "value")}


def test_all_items_of_a_list_reach_the_measure_and_its_counts_stay_those_of_the_run(spark: SparkSession) -> None:
    """The largest cutoff is 1, the judged items stand at ranks 5 and 6. Of Cat's list nothing is left."""
    log = ranking(spark, {"ann": "v w x y b a", "cat": "x y"})
    held_out = judgements(spark, {"ann": {"a": 1, "b": 0}, "cat": {"c": 1}})
    result = evaluate(log, held_out, measures=["R(judged_only=True)@2", "RR@1", "P(judged_only=True)@1"])
    assert by(result.user_metrics.where("k = 2"), "user_id", value="r_judged_only_true") == {"ann": 1 / 1, "cat": 0.0}
    assert by(result.user_metrics.where("k = 1"), "user_id", value="p_judged_only_true") == {"ann": 0.0, "cat": 0.0}
    assert sorted(tuples(result.user_metrics.where("k = 2"), "user_id", "n_recommended", "n_hits")) == [
        ("ann", 2, 0),
        ("cat", 2, 0),
    ]
    assert set(tuples(result.metrics, "n_missing")) == {(0,)}


def test_lists_that_keep_the_ranks_of_the_log_cannot_close_up_for_one_measure(spark: SparkSession) -> None:
    log, held_out = ranking(spark, {"ann": "x a"}), judgements(spark, {"ann": {"a": 1}})
    found = r"evaluate\(measures=\): found RR\(judged_only=True\) with rank_gaps 'keep'.*set rank_gaps to renumber"
    with pytest.raises(ConfigError, match=found), no_spark_jobs(spark):
        evaluate(log, held_out, measures=["RR(judged_only=True)", "RR"], rank_gaps="keep")


def test_published_lists_are_scored_with_the_judged_items_alone(spark: SparkSession, own_copy: Workspace) -> None:
    """Of als: ann's list a b c is then a c, bob's b a d is d, eve's c d a is empty, and kim has none."""
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST])
    score_night(spark, own_copy.root, night, MeasureSet.parse(["R(judged_only=True)@1"]))
    rows = Results(spark, own_copy.root).user_metrics(date=FIRST, evaluation="nightly", k=1, model_id="als")
    values = by(rows, "user_id", value="r_judged_only_true")
    assert {user: values[user] for user in ("ann", "bob", "eve", "kim")} == {"ann": 1 / 2, "bob": 1, "eve": 0, "kim": 0}


def test_published_lists_that_kept_their_ranks_are_not_scored_so(spark: SparkSession, own_copy: Workspace) -> None:
    rows = [{**row, "rank": int(11 - row["score"])} for row in recommendations()]
    own_copy.write("recommendations", rows)
    own_copy.change(policies={"rank_gaps": "keep"})
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST])
    with pytest.raises(ConfigError, match=r"--measures: found RR\(judged_only=True\) with rank_gaps 'keep'"):
        score_night(spark, own_copy.root, night, MeasureSet.parse(["RR(judged_only=True)@2"]))
