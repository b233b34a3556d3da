"""What a night publishes of measures that need more than ranks, and what scoring its lists again makes of them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_nights
from rankeval_spark.apps.published.rescoring import past_nights, score_night
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from tests.support import arrow_frames, nights
from tests.support.arrow_frames import by, tuples
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, recommendations

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


def test_night_publishes_denominators_with_the_values_and_its_audit_agrees(
    spark: SparkSession, own_copy: Workspace
) -> None:
    own_copy.change(measures=["P(agg='micro')", "RMSE(agg='micro')", "GMAP@2", "RR"])
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    results = Results(own_copy.root)
    rows = results.user_metrics(date=FIRST, evaluation="nightly", k=2, model_id="als")
    weights = arrow_frames.by(rows, C.USER_ID, value="p_agg_micro__weight")
    assert weights == {"ann": 2, "bob": 2, "eve": 2, "kim": 2, "ida": None}
    means = arrow_frames.by(
        results.metrics(date=FIRST, evaluation="nightly", slice="all", model_id="als"), C.MEASURE, C.K, value=C.VALUE
    )
    assert means["P(agg='micro')", 2] == pytest.approx(1 / 8, rel=0, abs=1e-12)
    # Scores are 10, 9, 8. ann: a at 10 for 3, c at 8 for 1; bob: d at 8 for 2; eve and kim have no prediction.
    assert means["RMSE(agg='micro')", 0] == pytest.approx(math.sqrt((7**2 + 7**2 + 6**2) / 3), rel=0, abs=1e-12)
    values = results.user_values(date=FIRST, evaluation="nightly")
    assert set(values[C.MEASURE].to_pylist()) == {"P(agg='micro')", "RMSE(agg='micro')", "GMAP", "RR"}


def test_night_publishes_means_over_lists_and_compares_them_with_the_night_before(
    spark: SparkSession, own_copy: Workspace
) -> None:
    morning = [{**row, "list_id": "morning"} for row in nights.recommendations()]
    evening = [
        {**row, "list_id": "evening", "score": {"a": 1.0, "b": 2.0}[row["item_id"]]}
        for row in nights.recommendations()
        if row["user_id"] == "ann" and row["item_id"] in ("a", "b")
    ]
    own_copy.write("recommendations", [*morning, *evening])
    rule = {"measure": "RR@2", "margin": 0.9, "against": "previous"}
    own_copy.change(policies={"unit": "list"}, measures=["RR", "P(agg='micro')"], gates=[rule])
    config = load_config(own_copy.config, ())
    run_night(spark, config, FIRST)
    second = run_night(spark, config, SECOND)

    results = Results(own_copy.root)
    of_night: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}
    rows = results.metrics(**of_night, slice="all", model_id="als", k=2)
    # ann hits at 1 in the morning and at 2 in the evening; bob, eve and kim, who has no list, count 0 once each.
    assert by(rows, "measure", value="value") == {
        "RR": pytest.approx((1 + 1 / 2 + 0 + 0 + 0) / 5, rel=0, abs=1e-12),
        "P(agg='micro')": pytest.approx((1 + 1 + 0 + 0 + 0) / (2 + 2 + 2 + 2 + 2), rel=0, abs=1e-12),
    }
    assert tuples(rows, "n_users", "n_lists") == [(4, 5), (4, 5)]
    two = published_nights(own_copy.root, evaluation="nightly", dates=[FIRST, SECOND])
    assert {one.policies["unit"] for night in two for one in night.definitions.values()} == {"list"}

    compared = compare_nights(
        own_copy.root, two[1], two[0], ComparisonSelection(models=["als"], measures=["RR"], ks=[2])
    ).rows
    means = {
        night.evaluation_date: by(
            results.metrics(date=night.evaluation_date, evaluation="nightly", slice="all", model_id="als", k=2),
            "measure",
            value="value",
        )["RR"]
        for night in two
    }
    assert [(row["value"], row["earlier_value"]) for row in compared] == [
        (pytest.approx(means[SECOND], rel=0, abs=1e-12), pytest.approx(means[FIRST], rel=0, abs=1e-12))
    ]
    assert compared[0]["n_common_users"] == 2
    # Judged, because min_slice_size alone decides about that; four users cannot show it.
    assert [gate["verdict"] for gate in second.gates if gate["model_id"] == "als"] == ["failed"]


def test_published_lists_are_scored_with_the_judged_items_alone(own_copy: Workspace) -> None:
    """Of als: ann's list a b c is then a c, bob's b a d is d, eve's c d a is empty, and kim has none."""
    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[FIRST])
    score_night(own_copy.root, night, MeasureSet.parse(["R(judged_only=True)@1"]))
    rows = Results(own_copy.root).user_metrics(date=FIRST, evaluation="nightly", k=1, model_id="als")
    values = by(rows, "user_id", value="r_judged_only_true")
    assert {user: values[user] for user in ("ann", "bob", "eve", "kim")} == {"ann": 1 / 2, "bob": 1, "eve": 0, "kim": 0}


def test_published_lists_that_kept_their_ranks_are_not_scored_so(spark: SparkSession, own_copy: Workspace) -> None:
    rows = [{**row, "rank": int(11 - row["score"])} for row in recommendations()]
    own_copy.write("recommendations", rows)
    own_copy.change(policies={"rank_gaps": "keep"})
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[FIRST])
    with pytest.raises(ConfigError, match=r"--measure: found RR\(judged_only=True\) with rank_gaps 'keep'"):
        score_night(own_copy.root, night, MeasureSet.parse(["RR(judged_only=True)@2"]))


def test_score_that_is_no_probability_is_a_readable_fault_of_the_night(
    spark: SparkSession, own_copy: Workspace
) -> None:
    own_copy.change(measures=["LogLoss"])
    with pytest.raises(Exception, match=r"measures, LogLoss.*: found a score of \d.* expected probabilities"):
        run_night(spark, load_config(own_copy.config, ()), FIRST)


def test_published_lists_take_a_measure_of_scores_only_where_they_have_them(
    spark: SparkSession, own_copy: Workspace
) -> None:
    """The second date is run again with RMSE; then MAE can be added to it, and still not to the first."""
    own_copy.change(measures=["RR", "RMSE"])
    run_night(spark, load_config(own_copy.config, ()), SECOND)
    scores = by(Results(own_copy.root).lists(date=SECOND), C.MODEL_ID, C.USER_ID, value=C.HIT_SCORES)
    assert scores["als", "ann"] == [9.0]  # her item is the second of scores 10, 9, 8
    lists = Results(own_copy.root).lists(date=FIRST, evaluation="nightly")
    assert set(lists[C.HIT_SCORES].to_pylist()) == {None}

    asked = MeasureSet.parse(["MAE"])
    with pytest.raises(InputError, match="nightly, 2026-01-01: found lists without hit_scores"):
        past_nights(own_copy.root, evaluation="nightly", needs=asked.needs)
    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[SECOND], needs=asked.needs)
    score_night(own_copy.root, night, asked)
    metrics = Results(own_copy.root).metrics(date=SECOND, slice="all", model_id="als")
    # als: ann's b has score 9 and gain 1; bob's d has score 10 and gain 1, his a has score 8 and gain 2.
    means = by(metrics, C.MEASURE, C.K, value=C.VALUE)
    assert means["MAE", 0] == pytest.approx((8 + (9 + 6) / 2) / 2, rel=0, abs=1e-12)
    assert means["RMSE", 0] == pytest.approx((8 + math.sqrt((9**2 + 6**2) / 2)) / 2, rel=0, abs=1e-12)


@pytest.mark.usefixtures("spark")
def test_published_lists_hold_their_empty_ranks(tmp_path: Path) -> None:
    """A night that is scored again gives the numbers that it would have had."""
    made = nights.workspace(
        tmp_path,
        format_=nights.PARQUET,
        measures=["P@5"],
        policies={"rank_gaps": "keep"},
        cutoffs=[],
        slices=[],
        checks={"short_lists": {}},
    )
    log = [
        {"day": FIRST.isoformat(), "model_id": "als", "user_id": user, "item_id": item, "rank": rank}
        for user, items in {"ann": {"a": 2, "x": 5, "y": 6}, "bob": {"b": 1}}.items()
        for item, rank in items.items()
    ]
    made.write("recommendations", log)
    judged = [("ann", "a"), ("bob", "b")]
    held_out = [{"day": FIRST.isoformat(), "user_id": user, "item_id": item, "gain": 1.0} for user, item in judged]
    made.write("held_out", held_out)
    assert rankeval("run", made.config, "--date", FIRST).code == 0
    asked = ["P(denom='len')@5", "SufficientReco(kind='share')@5", "unj@5", "UserCoverage(min_items=2)@4"]

    done = rankeval("score", made.root, *(part for name in asked for part in ("-m", name)))

    assert done.code == 0, done.err
    results = Results(made.root)
    runs = by(results.lists(date=FIRST), C.USER_ID, value=C.EMPTY_RANKS)
    assert {user: [tuple(one.values()) for one in of_user] for user, of_user in runs.items()} == {
        "ann": [(1, 1), (3, 4)],
        "bob": [],
    }
    metrics = by(results.metrics(date=FIRST), C.MEASURE, value=C.VALUE)
    assert {name: metrics[name.rpartition("@")[0]] for name in asked} == {
        "P(denom='len')@5": (1 / 2 + 1) / 2,
        "SufficientReco(kind='share')@5": (2 / 5 + 1 / 5) / 2,
        "unj@5": (1 / 5 + 0) / 2,
        "UserCoverage(min_items=2)@4": 0,
    }
    assert tuples(results.checks(date=FIRST, check="short_lists"), "count", "share") == [(2, 1.0)]


@pytest.fixture
def night(tmp_path: Path) -> nights.Workspace:
    """Make a night that measures how far the models are from `pop`, compares them and has a rule."""
    made = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET, models=["als", "pop"])
    made.change(
        measures=["RR", "Overlap(model='pop')", "RBO(model='pop')"],
        comparisons={"baseline": "pop"},
        gates=[
            {"measure": "Overlap(model='pop')@2", "at_most": 0.5},
            {"measure": "RBO(model='pop')@2", "slice": "country", "models": ["als"], "at_least": 0.1},
        ],
        slicing__min_slice_size=1,
    )
    return made


def test_agreement_with_a_model_is_published_by_slice_and_cutoff_and_judged(night: nights.Workspace) -> None:
    done = rankeval("run", night.config, "--date", FIRST)
    results = Results(night.root)
    here: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}

    # als gives ann a b, bob b a and eve c d; pop b a, d a and e a.
    of_users = results.user_metrics(**here, model_id="als", k=2)
    assert arrow_frames.by(of_users, "user_id", value="overlap_model_pop") == {
        **{"ann": 1, "bob": 1 / 2, "eve": 0, "kim": None, "ida": None},
    }
    means = results.metrics(**here, model_id="als", measure="Overlap(model='pop')")
    values = arrow_frames.by(means, C.SLICE, C.SLICE_VALUE, C.K, value=C.VALUE)
    assert (values["all", "", 1], values["all", "", 2]) == (0, pytest.approx(1 / 2, rel=0, abs=1e-12))
    assert (values["country", "AT", 2], values["country", "DE", 2]) == (pytest.approx(3 / 4, rel=0, abs=1e-12), 0)
    (row,) = arrow_frames.where(means, slice="all", k=2).to_pylist()
    assert row["n_users"] == 3
    assert row["ci_low"] < 1 / 2 < row["ci_high"]

    gaps = results.group_metrics(**here, model_id="als", k=2, measure="GroupGap(Overlap(model='pop'))")
    assert gaps[C.VALUE].to_pylist() == [pytest.approx(3 / 4, rel=0, abs=1e-12)]
    compared = results.comparisons(**here, measure="Overlap(model='pop')", k=2, slice="all")
    assert compared["model_id"].to_pylist() == ["als"]

    assert done.code == 6, done.err
    verdicts = arrow_frames.by(results.gates(**here), C.MODEL_ID, C.MEASURE, C.SLICE_VALUE, value="verdict")
    overlap, rbo = "Overlap(model='pop')", "RBO(model='pop',p=0.9)"
    assert verdicts["als", overlap, ""] == "passed"
    assert ("pop", overlap, "") not in verdicts
    assert (verdicts["als", rbo, "AT"], verdicts["als", rbo, "DE"]) == ("passed", "failed")

    refused = rankeval("score", night.root, "-m", "Jaccard(model='pop')@2", "--date", FIRST, "--evaluation", "nightly")
    assert refused.code == 4
    assert "Jaccard(model='pop'), which need the rows of the log; expected measures of the publi" in refused.message


ASKED = ["RR@2", "ItemCoverage@1", "CatalogCoverage@2", "Personalization@2"]


@pytest.fixture
def with_catalogue(tmp_path: Path) -> Workspace:
    """Give a with_catalogue with a catalogue of the items a to h."""
    made = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET, measures=ASKED, cutoffs=[])
    made.write("items", [{"item_id": item} for item in "abcdefgh"], nights.PARQUET)
    made.change(inputs__items={"format": nights.PARQUET, "path": "inputs/items"})
    return made


def test_measures_of_all_lists_are_published_shown_and_kept_when_scored_again(
    spark: SparkSession, with_catalogue: Workspace
) -> None:
    result = run_night(spark, load_config(with_catalogue.config, ()), FIRST)

    published = Results(with_catalogue.root)
    values = values_of_everyone(published)
    # als: ann a b c, bob b a d, eve c d a, zoe a b c, who has no judgement; pop: b a c, d a b, e a b, b a c.
    assert values["als", "ItemCoverage", 1] == (3, 4)
    assert values["pop", "ItemCoverage", 1] == (3, 4)
    assert values["als", "CatalogCoverage", 2] == (4 / 8, 4)
    assert values["als", "Personalization", 2] == (pytest.approx(1 - (2 + 0 + 2 + 0 + 2 + 0) / 6 / 2, abs=1e-12), 4)
    assert values["als", "RR", 2] == ((1 + 0 + 0 + 0) / 4, 4)
    assert result.n_rows["metrics"] == published.metrics().num_rows
    assert set(published.user_metrics().column_names) == {*schemas.USER_METRICS.field_names(), "rr"}
    assert set(published.user_values()["measure"].to_pylist()) == {"RR"}

    shown = rankeval("show", with_catalogue.root, "--measure", "ItemCoverage", "--slice", "any", "--json")
    assert shown.code == 0, shown.err
    countries = {(row["model_id"], row["slice_value"]): row["value"] for row in json.loads(shown.out)}
    assert countries["als", "AT"] == len({"a", "b"})
    assert countries["als", "DE"] == 1

    scored = rankeval("score", with_catalogue.root, "--measures", "P@1")
    assert scored.code == 0, scored.err
    after = values_of_everyone(published.refresh())
    assert {key: after[key] for key in values} == values
    assert {measure for _, measure, _ in after.keys() - values.keys()} == {"P"}

    refused = rankeval("score", with_catalogue.root, "--measures", "ItemCoverage@2")
    assert refused.code == 2
    refused.assert_readable()
    assert "found ItemCoverage@2; expected measures that the published lists are enough for" in refused.message


def values_of_everyone(published: Results) -> dict[tuple[str, str, int], Any]:
    """Values and users of the slice of everyone, by model, measure and cutoff."""
    rows = published.metrics(slice="all").to_pylist()
    return {(row["model_id"], row["measure"], row["k"]): (row["value"], row["n_users"]) for row in rows}


def test_a_measure_without_its_catalogue_is_refused_before_anything_is_read(with_catalogue: Workspace) -> None:
    with_catalogue.change(inputs__items=None)

    refused = rankeval("validate", with_catalogue.config)

    assert refused.code == 2
    refused.assert_readable()
    assert "found CatalogCoverage, but no catalogue; expected inputs.items, or inputs.train" in refused.message
