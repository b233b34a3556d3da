"""Measures of scores: against scipy, on lists too long to look at every pair, and where the log has no scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import JudgementError
from rankeval_spark.measures import Lists, MeasureSet, Ranking, registry
from rankeval_spark.measures.options import resolve_for_options
from rankeval_spark.measures.prediction import count_inversions, count_pairs
from tests.support.rankings import rankings
from tests.support.scored import parsed, values

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

LONG = 100_000
"""Judged items of a list, of whose pairs there are five thousand million."""

ratings = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([-2.5, 0.0, 1.0, 1e6])), max_size=30)


def rated(pairs: list[tuple[float, float]]) -> Ranking:
    """Build the list in which these (score, gain) pairs stand."""
    best_first = sorted(pairs, key=lambda pair: -pair[0])
    return Ranking([gain for _, gain in best_first], scores=[score for score, _ in best_first])


def value(name: str, one: Ranking) -> float:
    """Value of one measure for one list."""
    return float(values(name, one)[0])


@settings(max_examples=200)
@given(pairs=ratings)
def test_correlations_are_those_of_scipy(pairs: list[tuple[float, float]]) -> None:
    scores, gains = zip(*pairs, strict=True) if pairs else ((), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of what is undefined, and gives NaN as we do
        expected = {
            "KendallTau": stats.kendalltau(scores, gains).statistic if len(pairs) > 1 else np.nan,
            "Spearman": stats.spearmanr(scores, gains).statistic if len(pairs) > 1 else np.nan,
        }
    found = {name: value(name, rated(pairs)) for name in expected}
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=0, atol=1e-12)


@given(pairs=ratings)
def test_area_is_the_statistic_of_mann_and_whitney(pairs: list[tuple[float, float]]) -> None:
    good = [score for score, gain in pairs if gain >= 1]
    bad = [score for score, gain in pairs if gain < 1]
    found = value("AUC", rated(pairs))
    if good and bad:
        statistic = stats.mannwhitneyu(good, bad, method="asymptotic").statistic
        assert found == pytest.approx(statistic / (len(good) * len(bad)), rel=0, abs=1e-12)
    else:
        assert np.isnan(found)


@given(ranking=rankings())
def test_every_pair_is_of_one_kind(ranking: Ranking) -> None:
    pairs = count_pairs(Lists.of([ranking]))
    kinds = (pairs.concordant, pairs.discordant, pairs.tied_score, pairs.tied_gain)
    assert sum(kinds) == pairs.all
    assert all(kind >= 0 for kind in kinds)


@given(sizes=st.lists(st.integers(0, 9), max_size=6), data=st.data())
def test_inversions_are_those_of_two_loops(sizes: list[int], data: st.DataObject) -> None:
    lists = [data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)) for size in sizes]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    found = count_inversions(
        owner, np.array([value for one in lists for value in one], dtype=np.int64), n_lists=len(sizes)
    )
    expected = [sum(a > b for place, a in enumerate(one) for b in one[place:]) for one in lists]
    np.testing.assert_array_equal(found, expected)


def test_pairs_of_a_long_list_are_counted_exactly_without_looking_at_each() -> None:
    """A list in its order but for the halves, which are exchanged: every pair across them is wrong."""
    half = LONG // 2
    gains = np.concatenate([np.arange(half, 0, -1), np.arange(LONG, half, -1)]).astype(float)
    pairs = count_pairs(Lists.of([Ranking(gains.tolist()), Ranking([2.0, 1.0])]))
    assert pairs.discordant.tolist() == [[half * half], [0]]
    assert pairs.concordant.tolist() == [[LONG * (LONG - 1) / 2 - half * half], [1]]


def test_long_list_with_ties_has_the_correlation_of_scipy() -> None:
    draw = np.random.default_rng(20260102)
    scores, gains = draw.integers(0, 500, LONG) / 500, draw.integers(0, 5, LONG).astype(float)
    best_first, ranks, owner = np.argsort(-scores, kind="stable"), np.arange(1, LONG + 1), np.zeros(LONG, np.int64)
    hits, judged = (owner, ranks, gains[best_first]), (owner, np.sort(gains)[::-1])
    lists = Lists(np.array([LONG]), *hits, *judged, hit_score=scores[best_first])
    found = {name: each[0, 0] for name, each in parsed("KendallTau", "Spearman").score(lists).items()}
    assert found["kendalltau"] == pytest.approx(stats.kendalltau(scores, gains).statistic, rel=0, abs=1e-12)
    assert found["spearman"] == pytest.approx(stats.spearmanr(scores, gains).statistic, rel=0, abs=1e-12)


@given(ranking=rankings())
def test_adding_to_all_scores_changes_no_order_and_every_error(ranking: Ranking) -> None:
    moved = ranking._replace(scores=[score + 1 for score in ranking.score_at])
    for name in ("AUC", "FCP", "KendallTau", "Spearman"):
        np.testing.assert_array_equal(value(name, moved), value(name, ranking))
    one, other = (Lists.of([each]) for each in (ranking, moved))
    if one.hit_gain.size:
        shift = 1 + 2 * float(np.mean(one.scores - one.hit_gain))
        assert value("MSE", moved) == pytest.approx(value("MSE", ranking) + shift, rel=0, abs=1e-12)
    assert other.hit_gain.size == one.hit_gain.size


@pytest.mark.parametrize("name", ["RMSE", "MSE", "MAE"])
@given(ranking=rankings())
def test_error_without_missing_predictions_is_the_same_and_with_one_is_refused(name: str, ranking: Ranking) -> None:
    strict, complete = f"{name}(missing='error')", ranking._replace(missed=[], missed_values=(), missed_groups=())
    np.testing.assert_array_equal(value(strict, complete), value(name, complete))
    lacking = Lists.of([complete, Ranking([None], missed=[1, 2]), Ranking([1], missed=[3])])
    for text in (strict, f"{name}(agg='micro',missing='error')"):
        with pytest.raises(
            JudgementError, match=r"3 of \d+ held-out items without a score, in 2 of 3 lists; .*PredictedShare"
        ):
            MeasureSet.parse([text]).score(lacking)


def test_list_without_a_prediction_is_named_where_the_lists_have_names() -> None:
    batch = Lists.of([Ranking([1]), Ranking([1], missed=[3]), Ranking([None], missed=[1])])
    named = replace(batch, names=["the first", "the second", "the third"].__getitem__)
    strict = MeasureSet.parse(["MAE(missing='error')"])
    with pytest.raises(JudgementError, match=r"in 2 of 3 lists, such as that of the second; expected"):
        strict.score(named)


@pytest.mark.parametrize(("score", "text"), [(1.5, "a score of 1.5"), (-0.1, "a score of -0.1")])
def test_score_that_is_no_probability_has_no_loss(score: float, text: str) -> None:
    with pytest.raises(JudgementError, match=rf"{text} for a held-out item; expected probabilities.*leave LogLoss out"):
        value("LogLoss", Ranking([1], scores=[score]))
    assert value("LogLoss", Ranking([None], scores=[score], missed=[1])) is not None


def test_kernel_that_reads_scores_says_so_in_its_definition() -> None:
    """Without the declaration the log's scores would not come along."""
    reading = {entry.name for entry in registry.entries("list") if reads_scores(entry)}
    assert reading == {
        entry.name
        for entry in registry.entries("list")
        if HIT_SCORES in resolve_for_options(entry.needs, entry.defaults)
    }
    assert MeasureSet.parse(["P@1", "RMSE"]).needs == {HIT_SCORES}
    assert HIT_SCORES not in MeasureSet.parse(["P@1"]).needs


def reads_scores(entry: Definition) -> bool:
    """Give the kernel a batch without scores; whatever else it lacks is another matter."""
    batch = replace(Lists.of([Ranking([1, 0])]), hit_score=None)
    try:
        entry.kernel(batch.cut([1]))
    except (ValueError, TypeError, AttributeError) as error:
        return "has no scores" in str(error)
    return False
