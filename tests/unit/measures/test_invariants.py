"""What must hold between measures, whatever the lists."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from rankeval_spark.measures import Lists, MeasureSet, Ranking, required_facts
from tests.support import oracles
from tests.support.accuracy import is_accuracy
from tests.support.rankings import binary_rankings, rankings
from tests.support.scored import KS, assert_all_equal, assert_equal, by_measure, curve, parsed

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

AP_DENOMINATORS = ("R", "min", "len", "hits", "none")


def at_least(high: FloatVector, low: FloatVector) -> bool:
    """Whether ``high >= low`` everywhere, up to rounding; undefined values are skipped."""
    return bool(np.all((high >= low - 1e-12) | np.isnan(high)))


def n_relevant(ranking: Ranking) -> int:
    """Relevant judgements of a list's user."""
    return sum(gain >= 1 for gain in [*(gain for gain in ranking.gains if gain is not None), *ranking.missed])


@given(ranking=rankings())
def test_precision_and_recall_count_the_same_hits(ranking: Ranking) -> None:
    hits = curve("NumHits", ranking)
    assert_equal(curve("P", ranking) * KS, hits)
    assert_equal(curve("R", ranking) * n_relevant(ranking), hits)


@given(ranking=rankings())
def test_success_is_at_least_precision_and_reciprocal_rank(ranking: Ranking) -> None:
    assert at_least(curve("Success", ranking), curve("P", ranking))
    assert at_least(curve("Success", ranking), curve("RR", ranking))


@given(ranking=rankings())
def test_precision_success_and_reciprocal_rank_are_one_at_rank_1(ranking: Ranking) -> None:
    firsts = [curve(name, ranking)[0] for name in ("P", "Success", "RR")]
    assert len({str(first) for first in firsts}) == 1


@given(ranking=rankings())
def test_first_hits_at_the_ranks_down_to_k_add_up_to_success(ranking: Ranking) -> None:
    ranks = range(1, max(KS) + 1)
    at_rank = parsed(*(f"FirstHit@{rank}" for rank in ranks)).score(Lists.of([ranking]))["firsthit"][0]
    assert_equal(np.cumsum(at_rank)[np.array(KS) - 1], curve("Success", ranking))


@given(ranking=rankings(), measure=st.sampled_from(["RBP(rel=1,p=0.8)", "RBP(max_rel=3,p=0.8)"]))
def test_rbp_and_its_residual_are_the_rbp_of_the_best_that_can_be_unknown(ranking: Ranking, measure: str) -> None:
    residual, known = curve("RBPResidual", ranking), curve(measure, ranking)
    assume(not np.isnan(residual + known).any())
    tail = 0.8 ** np.minimum(KS, len(ranking.gains))
    best = Ranking([3 if gain is None or gain < 0 else gain for gain in ranking.gains], ranking.missed)
    assert_equal(known + residual, curve(measure, best) + tail)
    assert at_least(residual, tail)
    assert at_least(1 - residual, known)


@given(
    ranking=rankings(),
    name=st.sampled_from(
        ["Success", "R", "DCG", "CG", "RR", "AP", "ARHR", "NumHits", "LogAP", "RBP(max_rel=3)", "ERR(max_rel=3)"]
    ),
)
def test_measure_never_falls_with_the_cutoff(ranking: Ranking, name: str) -> None:
    values = curve(name, ranking)
    assert at_least(values[1:], values[:-1])


PERFECT_IS_1 = (
    *("nDCG", "nDCG(dcg='exp-log2')", "nCG", "AP(denom='min')", "ARHR(denom='ideal')", "Rprec", "PAUC", "PAP"),
    *("nDCG(dcg='jk2')", "nDCG(dcg='inverse')", "nDCG(gains={0.5:0,1:1,2:1,3:9})", "nDCG(ideal='retrieved')"),
    *("nDCG(ideal='len')", "nERR(max_rel=3)"),
)


@given(gains=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=8))
def test_perfect_order_scores_1(gains: list[float]) -> None:
    best = Ranking(sorted(gains, reverse=True))
    for name in PERFECT_IS_1:
        values = curve(name, best)
        assert np.all(np.isnan(values)) or np.all(np.abs(values - 1) <= 1e-12), name


@given(gains=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=4))
def test_reverse_order_has_the_least_dcg_of_all_orders(gains: list[float]) -> None:
    assume(max(gains) > 0)
    worst = curve("DCG", Ranking(sorted(gains)))
    for order in itertools.permutations(gains):
        assert at_least(curve("DCG", Ranking(order)), worst)


@given(ranking=rankings(min_size=2), data=st.data())
def test_moving_a_higher_grade_up_never_hurts(ranking: Ranking, data: st.DataObject) -> None:
    low, high = sorted(data.draw(st.sets(st.integers(0, len(ranking.gains) - 1), min_size=2, max_size=2)))
    gains = list(ranking.gains)
    assume((gains[high] or 0) > (gains[low] or 0))
    gains[low], gains[high] = gains[high], gains[low]
    for name in (
        *("DCG", "DCG(dcg='exp-log2')", "RR", "AP", "AP(denom='min')", "AP(denom='k')", "ARHR", "MAR(kind='hits_R')"),
        *("MAR(kind='cutoffs')", "MeanP", "PAUC", "PAP", "RBP(max_rel=3)", "ERR(max_rel=3)"),
    ):
        assert at_least(curve(name, Ranking(gains, ranking.missed)), curve(name, ranking)), name


@given(place=st.integers(0, 9), length=st.integers(0, 9))
def test_with_one_relevant_item_average_precision_is_reciprocal_rank(place: int, length: int) -> None:
    gains = [1.0 if rank == place else None for rank in range(length)]
    ranking = Ranking(gains, missed=[] if place < length else [1.0])
    reciprocal = curve("RR", ranking)
    for denom in AP_DENOMINATORS:
        assert_equal(curve(f"AP(denom='{denom}')", ranking), reciprocal)
    assert_equal(curve("AP(denom='k')", ranking), reciprocal / KS)
    assert_equal(curve("ARHR", ranking), reciprocal)
    assert_equal(curve("MAR(kind='hits_R')", ranking), curve("Success", ranking))
    assert_equal(curve("MAR(kind='hits_min')", ranking), curve("Success", ranking))


@given(ranking=binary_rankings(), rel=st.floats(0.01, 1))
def test_with_binary_gains_every_gain_of_ndcg_is_the_same(ranking: Ranking, rel: float) -> None:
    linear = curve("nDCG", ranking)
    assert_equal(curve("nDCG(dcg='exp-log2')", ranking), linear)
    assert_equal(curve(f"nDCG(rel={rel!r},gains='binary')", ranking), linear)


@given(ranking=rankings(), ideal=st.sampled_from(["judged", "retrieved", "len"]))
def test_base_of_the_logarithm_scales_dcg_and_leaves_ndcg_as_it_is(ranking: Ranking, ideal: str) -> None:
    assert_equal(curve("DCG(dcg='ln')", ranking) * math.log(2), curve("DCG", ranking))
    assert_equal(curve(f"nDCG(dcg='ln',ideal='{ideal}')", ranking), curve(f"nDCG(ideal='{ideal}')", ranking))


@given(ranking=rankings(), ideal=st.sampled_from(["judged", "retrieved", "len"]), dcg=st.sampled_from(["log2", "sqrt"]))
def test_ndcg_is_dcg_relative_to_the_ideal_dcg(ranking: Ranking, ideal: str, dcg: str) -> None:
    options = f"dcg='{dcg}',ideal='{ideal}'"
    assert_equal(
        curve(f"nDCG({options})", ranking) * curve(f"IDCG({options})", ranking), curve(f"DCG(dcg='{dcg}')", ranking)
    )
    best = Ranking([*sorted(filter(None, [*ranking.gains, *ranking.missed]), reverse=True), *[None] * max(KS)])
    assert_equal(curve(f"DCG(dcg='{dcg}')", best), curve(f"IDCG(dcg='{dcg}')", ranking))


@given(ranking=rankings())
def test_ranks_of_hits_are_in_order_and_the_first_is_the_inverse_of_reciprocal_rank(ranking: Ranking) -> None:
    for missed in ("drop", "next"):
        first, mean, last = (
            curve(f"HitRank(missed='{missed}',stat='{stat}')", ranking) for stat in ("first", "mean", "last")
        )
        assert at_least(mean, first)
        assert at_least(last, mean)
    with np.errstate(divide="ignore"):
        inverse = 1 / curve("RR", ranking)
    assert_equal(curve("HitRank(stat='first')", ranking), np.where(np.isinf(inverse), np.nan, inverse))


@given(ranking=rankings(), p=st.sampled_from([0.5, 0.8]))
def test_discounts_make_dcg_the_other_sums_of_gains(ranking: Ranking, p: float) -> None:
    assert_equal(curve("DCG(dcg='none')", ranking), curve("CG", ranking))
    assert_equal(curve("nDCG(dcg='none')", ranking), curve("nCG", ranking))
    assert_equal(curve("DCG(dcg='inverse',gains='binary')", ranking), curve("ARHR", ranking))
    assert_equal(curve(f"DCG(dcg='geometric',p={p})", ranking) * (1 - p) / 3, curve(f"RBP(max_rel=3,p={p})", ranking))
    assert_equal(curve("DCG(dcg='jk10')", ranking), curve("CG", ranking))  # no cutoff is above 10


@given(ranking=rankings())
def test_doubling_the_gains_leaves_linear_ndcg_as_it_is(ranking: Ranking) -> None:
    doubled = Ranking(
        [None if gain is None else 2 * gain for gain in ranking.gains], [2 * gain for gain in ranking.missed]
    )
    assert_equal(curve("nDCG", doubled), curve("nDCG", ranking))


@given(gains=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=4))
def test_no_order_has_a_higher_err_than_the_ideal_one(gains: list[float]) -> None:
    assume(max(gains) > 0)
    best = curve("ERR(max_rel=3)", Ranking(sorted(gains, reverse=True)))
    for order in itertools.permutations(gains):
        assert at_least(best, curve("ERR(max_rel=3)", Ranking(order)))


@given(ranking=binary_rankings())
def test_with_one_grade_that_nearly_always_satisfies_err_is_reciprocal_rank(ranking: Ranking) -> None:
    scaled = Ranking([gain and 60 * gain for gain in ranking.gains], [60 * gain for gain in ranking.missed])
    assert_equal(curve("ERR(max_rel=60)", scaled), curve("RR", ranking))


@given(ranking=rankings())
def test_a_map_that_gives_every_grade_itself_changes_nothing(ranking: Ranking) -> None:
    own = "gains={0.5:0.5,1:1,2:2,3:3}"
    for name in ("CG", "DCG", "nCG", "nDCG"):
        assert_equal(curve(f"{name}({own})", ranking), curve(name, ranking))
    assert_equal(curve(f"nDCG(dcg='exp-log2',{own})", ranking), curve("nDCG(dcg='exp-log2')", ranking))


@given(ranking=rankings())
def test_exponential_gains_are_a_map_and_binary_gains_another(ranking: Ranking) -> None:
    exponential = curve(f"DCG(gains={{0.5:{2**0.5 - 1!r},1:1,2:3,3:7}})", ranking)
    assert_equal(exponential, curve("DCG(dcg='exp-log2')", ranking))
    assert_equal(curve("DCG(gains={0.5:0,1:0,2:1,3:1})", ranking), curve("DCG(rel=2,gains='binary')", ranking))


@given(ranking=rankings())
def test_ideal_of_the_own_list_is_never_above_the_ideal_of_all_judgements(ranking: Ranking) -> None:
    judged = curve("nDCG", ranking)
    assert at_least(curve("nDCG(ideal='len')", ranking), judged)
    assert at_least(curve("nDCG(ideal='retrieved')", ranking), judged)


@given(ranking=rankings(min_size=max(KS)), n_more=st.integers(1, 5))
def test_items_beyond_every_cutoff_change_nothing(ranking: Ranking, n_more: int) -> None:
    longer = Ranking([*ranking.gains, *[None] * n_more], ranking.missed)
    names = ["P", "P(denom='len')", "AP", "AP(denom='len')", "nDCG", "nDCG(ideal='len')", "Rprec", "RR"]
    for name in (*names, "MAR(kind='cutoffs')", "MeanP"):
        np.testing.assert_array_equal(curve(name, longer), curve(name, ranking))


@cache
def every_variant(ks: tuple[int, ...]) -> MeasureSet:
    """All measures with all options at these cutoffs."""
    return MeasureSet.of(list(filter(oracles.takes_every_list, oracles.all_variants(ks))))


@settings(max_examples=20)
@given(ranking=rankings(min_size=3), n_more=st.integers(1, 4), n_judged=st.integers(0, 3))
def test_irrelevant_items_beyond_the_cutoff_change_no_measure_that_has_one(
    ranking: Ranking, n_more: int, n_judged: int
) -> None:
    """Unjudged items, and judged ones that the list had missed; where judged ones close up, the unjudged alone."""
    shorter = Ranking(ranking.gains, [*ranking.missed, *[0.0] * n_judged])
    unjudged = Ranking([*ranking.gains, *[None] * n_more], shorter.missed)
    longer = Ranking([*unjudged.gains, *[0.0] * n_judged], ranking.missed)
    asked = every_variant((1, 3))
    closing_up = {name for one in asked.measures if one.is_judged_only for name in (one.column, one.weight_column)}
    of_shorter, of_unjudged, of_longer = (asked.score(Lists.of([one])) for one in (shorter, unjudged, longer))
    assert_all_equal(of_unjudged, of_shorter, atol=0)
    assert_all_equal(of_longer, {name: each for name, each in of_shorter.items() if name not in closing_up}, atol=0)


@settings(max_examples=20)
@given(ranking=rankings(grades=(-1.0, 0.0)))
def test_list_of_a_user_without_a_relevant_item_has_no_value(ranking: Ranking) -> None:
    """So he is in no mean of users with relevant items, whatever the model gave him."""
    asked = every_variant((1, 3, 0))
    scores = asked.score(Lists.of([ranking]))
    of_gains = [measure for measure in asked.measures if required_facts.VALUES not in measure.needs]
    for measure in of_gains:
        assert not is_accuracy(measure.entry) or np.isnan(scores[measure.column]).all(), str(measure)


@given(batch=st.lists(rankings(), max_size=5), missed=st.lists(st.sampled_from([3.0, 5.0]), min_size=1, max_size=3))
def test_user_whom_the_model_gave_no_list_divides_the_mean_by_one_more(
    batch: list[Ranking], missed: list[float]
) -> None:
    names = (
        "P@3",
        "R@3",
        "AP",
        "AP(denom='hits')",
        "nDCG@3",
        "RR",
        "Success@1",
        "Rprec",
        "Bpref",
        "RBP(rel=2)",
        "F1@3",
    )
    without, with_one = (
        by_measure(parsed(*names), Lists.of(lists)) for lists in (batch, [*batch, Ranking([], missed)])
    )
    expected = {
        measure: np.nansum(values) / (np.count_nonzero(~np.isnan(values)) + 1) for measure, values in without.items()
    }
    assert_all_equal({measure: np.nanmean(values) for measure, values in with_one.items()}, expected)


@pytest.mark.parametrize("name", ["P", "AP(denom='min')", "nDCG", "P(denom='len')", "Judged"])
def test_measure_relative_to_the_cutoff_may_fall_with_it(name: str) -> None:
    values = curve(name, Ranking([1, None, None], missed=[1]))
    assert values[1] < values[0]


def test_doubling_the_gains_changes_ndcg_with_exponential_gains() -> None:
    plain, doubled = (curve("nDCG(dcg='exp-log2')", Ranking(gains)) for gains in ([1, 2], [2, 4]))
    assert doubled[1] != pytest.approx(plain[1], rel=0, abs=1e-3)


def test_moving_a_hit_up_may_lower_average_precision_over_hits() -> None:
    """The exception: a hit that comes in from beyond the cutoff is one more to divide by."""
    below, within = (curve("AP(denom='hits')", Ranking(gains)) for gains in ([1, None, None, 1], [1, None, 1, None]))
    assert within[2] < below[2]


@given(batch=st.lists(rankings(), min_size=1, max_size=8), data=st.data())
def test_means_of_the_parts_of_a_population_weighted_by_their_users_are_the_mean(
    batch: list[Ranking], data: st.DataObject
) -> None:
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(batch), max_size=len(batch))))
    for name, values in parsed("nDCG", "AP", "P@3", "LogAP").score(Lists.of(batch)).items():
        value = values[:, -1] if name != "p" else values[:, 0]
        is_defined = ~np.isnan(value)
        total = sum(
            is_in.sum() * value[is_in].mean() for group in range(3) if (is_in := is_defined & (part == group)).any()
        )
        np.testing.assert_allclose(total, np.nansum(value), rtol=0, atol=1e-12, err_msg=name)


@given(ranking=rankings())
def test_average_precision_grows_as_its_denominator_shrinks(ranking: Ranking) -> None:
    by_r, by_min, by_len, by_hits, by_none = (curve(f"AP(denom='{denom}')", ranking) for denom in AP_DENOMINATORS)
    assert at_least(by_min, curve("AP(denom='k')", ranking))
    assert at_least(by_min, by_r)
    assert at_least(by_len, by_min)
    assert at_least(by_hits, by_len)
    assert_equal(by_none, by_hits * curve("NumHits", ranking))
    assert_equal(curve("ARHR(denom='hits')", ranking) * curve("NumHits", ranking), curve("ARHR", ranking))


@given(ranking=rankings())
def test_graded_average_precision_weighs_that_of_each_level_of_relevance(ranking: Ranking) -> None:
    one, two = (curve(f"AP(rel={rel},denom='none')", ranking) for rel in (1, 2))
    graded = curve("AP(denom='none',gains={0.5:0,1:1,2:4,3:4})", ranking)
    assert_equal(graded, one + 3 * np.nan_to_num(two))
    assert_equal(curve("AP(gains={0.5:0,1:1,2:1,3:1})", ranking), curve("AP", ranking))


@given(ranking=rankings())
def test_mean_precision_and_recall_over_cutoffs_are_means_of_their_curves(ranking: Ranking) -> None:
    for mean, each in (("MeanP", "P"), ("MAR(kind='cutoffs')", "R")):
        values = parsed(*(f"{each}@{k}" for k in range(1, max(KS) + 1))).score(Lists.of([ranking]))
        running_mean = np.cumsum(values[each.casefold()][0]) / np.arange(1, max(KS) + 1)
        assert_equal(curve(mean, ranking), running_mean[np.array(KS) - 1])


@given(ranking=rankings(min_size=1))
def test_set_measures_are_those_of_the_list_cut_at_its_end(ranking: Ranking) -> None:
    for whole, at_k in (("SetP", "P"), ("SetR", "R"), ("SetF", "F1")):
        found = parsed(f"{at_k}@{len(ranking.gains)}", whole).score(Lists.of([ranking]))
        assert_equal(found[whole.casefold()][:, 1], found[at_k.casefold()][:, 0])


@given(ranking=rankings())
def test_r_precision_cut_at_r_and_at_once_r_is_r_precision(ranking: Ranking) -> None:
    r = max(n_relevant(ranking), 1)
    found = parsed(f"Rprec@{r}", "Rprec", "Rprec_mult(x=1)").score(Lists.of([ranking]))
    at_r, whole = found["rprec"][0]
    np.testing.assert_array_equal([at_r, found["rprec_mult_x_1"][0, 1]], [whole, whole])


@given(ranking=rankings(), need=st.sampled_from(["ceil", "v9", "v10"]))
def test_eleven_point_curve_never_rises_and_starts_at_the_highest_precision(ranking: Ranking, need: str) -> None:
    levels = parsed(*(f"IPrec(need='{need}',recall={tenths / 10})" for tenths in range(11)))
    points = np.concatenate(list(levels.score(Lists.of([ranking])).values()), axis=1)[0]
    assert at_least(points[:-1], points[1:])
    precision = parsed(*(f"P@{k}" for k in range(1, len(ranking.gains) + 2))).score(Lists.of([ranking]))["p"]
    assert_equal(points[:1], precision.max(axis=1))


@given(ranking=rankings())
def test_recall_never_exceeds_its_ceiling(ranking: Ranking) -> None:
    assert at_least(curve("RecallCeiling", ranking), curve("R", ranking))
    asked = parsed("RecallCeiling", *(f"IPrec@{tenths / 10}" for tenths in range(11)))
    (ceiling,), *points = (values[:, 0] for values in asked.score(Lists.of([ranking])).values())
    assert all(point == 0 for tenths, (point,) in enumerate(points) if tenths / 10 > ceiling + 1e-12)


@given(n_items=st.integers(1, 60), n_found=st.integers(0, 60), percent=st.integers(0, 100))
def test_recall_is_met_in_whole_items(n_items: int, n_found: int, percent: int) -> None:
    assume(n_found <= n_items)
    perfect = Ranking([1.0] * n_found, missed=[1.0] * (n_items - n_found))
    asked = parsed(f"IPrec@{percent / 100}")
    (value,) = asked.score(Lists.of([perfect]))[asked.columns[0]][:, 0]
    assert value == (n_found > 0 and 100 * n_found >= percent * n_items)


@given(ranking=rankings())
def test_pap_is_partial_auc_of_the_first_k_hits(ranking: Ranking) -> None:
    r, pauc, pap = n_relevant(ranking), curve("PAUC", ranking), curve("PAP", ranking)
    is_whole = np.array(KS) >= r
    np.testing.assert_array_equal(pap[is_whole], pauc[is_whole])
    assert at_least(pap, pauc)


@given(ranking=rankings(grades=(0.0, 1.0, 2.0)))
def test_judged_and_unjudged_items_fill_the_list(ranking: Ranking) -> None:
    n_items = np.minimum(KS, len(ranking.gains))
    judged, unjudged = curve("Judged(denom='k')", ranking), curve("unj", ranking)
    assert_equal((judged + unjudged) * KS, n_items)
    is_full = n_items == KS
    assert_equal(unjudged[is_full], 1 - curve("Judged", ranking)[is_full])
    assert at_least(curve("Judged", ranking), judged)


@given(ranking=rankings(grades=(1.0, 2.0)))
def test_without_irrelevant_judgements_bpref_is_recall(ranking: Ranking) -> None:
    found = parsed("Bpref", "SetR").score(Lists.of([ranking]))
    assert_equal(found["bpref"], found["setr"])


@given(ranking=rankings(grades=(0.0, 1.0, 2.0)))
def test_where_the_pool_is_judged_inferred_average_precision_is_average_precision(ranking: Ranking) -> None:
    found = parsed("infAP", "AP").score(Lists.of([ranking]))
    np.testing.assert_allclose(found["infap"], found["ap"], rtol=0, atol=1e-4)  # the smoothing is 1e-5


@given(ranking=rankings(), place=st.integers(0, 12))
def test_bpref_does_not_see_unjudged_items(ranking: Ranking, place: int) -> None:
    gains = list(ranking.gains)
    gains.insert(place, None)
    asked = parsed("Bpref")
    with_one, without = asked.score(Lists.of([Ranking(gains, ranking.missed), ranking]))["bpref"]
    np.testing.assert_array_equal(with_one, without)


@given(ranking=rankings())
def test_log_of_average_precision_is_its_logarithm_above_the_floor(ranking: Ranking) -> None:
    precision, logarithm = curve("AP", ranking), curve("LogAP(floor=0.1)", ranking)
    assert_equal(np.exp(logarithm), np.maximum(precision, 0.1))


@given(ranking=rankings(), name=st.sampled_from(["CG", "DCG", "RBP(max_rel=3,{})", "ERR(max_rel=3,{})"]))
def test_unjudged_items_count_like_items_with_the_grade_that_they_are_given(ranking: Ranking, name: str) -> None:
    filled = Ranking([1.5 if gain is None or gain < 0 else gain for gain in ranking.gains], ranking.missed)
    asked = name.format("unjudged=1.5") if "{}" in name else f"{name}(unjudged=1.5)"
    found, expected = curve(asked, ranking), curve(name.replace(",{}", ""), filled)
    assert_equal(found[~np.isnan(found)], expected[~np.isnan(found)])  # of a user without a gain it has none


@given(ranks=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.25, 1.0, 3.0])), min_size=1, max_size=5))
def test_with_one_relevant_item_a_user_weighted_rr_and_ap_are_a_weighted_arhr(ranks: list[tuple[int, float]]) -> None:
    lists = Lists.of([Ranking([*[None] * (rank - 1), 1], weights=[weight] * rank) for rank, weight in ranks])
    names = (
        "RR(agg='micro',weighted=True)",
        "AP(agg='micro',weighted=True)",
        "ARHR(agg='micro',denom='R',weighted=True)",
    )
    asked = parsed(*names)
    scores = asked.score(lists)
    for column in asked.columns:
        assert_equal(scores[column], scores["arhr_agg_micro_denom_r_weighted_true"])
        assert_equal(scores[f"{column}__weight"][:, 0], [weight for _, weight in ranks])


@given(ranking=rankings())
def test_unjudged_items_count_like_items_judged_0(ranking: Ranking) -> None:
    judged = Ranking([gain or 0.0 for gain in ranking.gains], ranking.missed)
    for name in ("P", "AP", "nDCG", "nDCG(ideal='retrieved')", "Rprec", "ARHR(gains='grade')"):
        assert_equal(curve(name, judged), curve(name, ranking))
