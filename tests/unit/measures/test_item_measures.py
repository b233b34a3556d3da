"""What must hold of the measures that look at the recommended items, whatever the lists."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import spatial, stats

from rankeval_spark.measures import Background, Item, Ranking
from tests.support.rankings import ITEMS, rankings
from tests.support.scored import KS, assert_equal, curve, parsed, values

KNOWN = [item for item in ITEMS if item.categories and any(item.vector or ())]


@given(
    ranking=rankings(),
    sim=st.sampled_from(["vector", "jaccard", "cooccurrence", "hamming"]),
    unknown=st.sampled_from(["null", "drop"]),
)
def test_diversity_and_similarity_are_one_together(ranking: Ranking, sim: str, unknown: str) -> None:
    options = f"(sim='{sim}',unknown='{unknown}')"
    diversity, similarity = curve(f"ILD{options}", ranking), curve(f"ILS{options}", ranking)
    assert_equal(diversity + similarity, np.where(np.isnan(diversity), np.nan, 1.0))


@given(item=st.sampled_from(KNOWN), length=st.integers(2, 9), sim=st.sampled_from(["vector", "jaccard", "hamming"]))
def test_list_of_one_item_again_and_again_has_no_diversity(item: Item, length: int, sim: str) -> None:
    found = curve(f"ILD(sim='{sim}')", Ranking([None] * length, items=[item] * length))
    assert math.isnan(found[0])
    assert_equal(found[1:], np.zeros(len(KS) - 1))


@given(flags=st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, -2.5])] * 4), min_size=2, max_size=9))
def test_distance_of_flags_is_the_mean_of_the_pairs_by_scipy(flags: list[tuple[float, ...]]) -> None:
    found = curve("ILD(sim='hamming')", Ranking([None] * len(flags), items=[Item(vector=one) for one in flags]))
    expected = [spatial.distance.pdist(flags[:k], metric="hamming").mean() if k > 1 else math.nan for k in KS]
    assert_equal(found, np.array(expected))


@given(drawn=st.lists(st.sampled_from(KNOWN), min_size=2, max_size=8), data=st.data(), factor=st.floats(0.1, 10))
def test_diversity_sees_neither_the_order_nor_the_length_of_vectors(
    drawn: list[Item], data: st.DataObject, factor: float
) -> None:
    longer = [
        item._replace(vector=[factor * x for x in item.vector or ()]) for item in data.draw(st.permutations(drawn))
    ]
    for sim in ("vector", "jaccard"):
        one, other = (
            values(f"ILD(sim='{sim}')", Ranking([None] * len(drawn), items=items)) for items in (drawn, longer)
        )
        assert_equal(one, other)


@given(
    ranking=rankings(),
    sim=st.sampled_from(["vector", "jaccard", "cooccurrence", "hamming"]),
    unknown=st.sampled_from(["null", "drop"]),
)
def test_diversity_of_relevant_items_is_all_diversity_where_all_are_relevant(
    ranking: Ranking, sim: str, unknown: str
) -> None:
    options = f"sim='{sim}',unknown='{unknown}'"
    relevant = ranking._replace(gains=[2] * len(ranking.gains))
    assert_equal(curve(f"ILD(rel=2,{options})", relevant), curve(f"ILD({options})", ranking))
    discounted = curve(f"ILD(discount='log2',{options})", ranking)
    assert_equal(curve(f"ILD(rel=2,discount='log2',{options})", relevant), discounted)
    assert np.all((curve(f"ILD(rel=2,discount='log2',{options})", ranking) <= 2 + 1e-12) | np.isnan(discounted))


@given(ranking=rankings())
def test_discounted_diversity_of_a_pair_is_its_distance(ranking: Ranking) -> None:
    pair = ranking._replace(gains=ranking.gains[:2], items=ranking.items[:2])
    assert_equal(curve("ILD(discount='log2')", pair), curve("ILD", pair))


@given(ranking=rankings())
def test_popularity_lift_is_the_popularity_over_that_of_the_profile(ranking: Ranking) -> None:
    profile = ranking.background.profile_interactions
    lift, popularity = curve("PopLift", ranking), curve("ARP", ranking)
    assert_equal(lift, popularity / profile - 1 if profile else np.full(len(KS), np.nan))


@given(ranking=rankings(), alpha=st.sampled_from([0.25, 0.5, 0.9]))
def test_relevant_categories_are_never_lost_further_down(ranking: Ranking, alpha: float) -> None:
    """Gains only add up; a list that repeats one category earns less the more repetition costs."""
    found = curve(f"ERR_IA(alpha={alpha})", ranking)
    assert np.all(((found >= 0) & (found <= 1 + 1e-12)) | np.isnan(found))
    assert_equal(np.isnan(found), np.isnan(curve(f"alpha_nDCG(alpha={alpha})", ranking)))


@given(drawn=st.lists(st.sampled_from("abcde"), min_size=1, max_size=8))
def test_list_that_deals_the_categories_out_in_turn_is_ideal(drawn: list[str]) -> None:
    in_turn = sorted((drawn[:place].count(name), name) for place, name in enumerate(drawn))
    items = [Item(categories=(name,)) for _, name in in_turn]
    judged = Background(judged=[(1, (name,)) for name in drawn])
    assert_equal(curve("alpha_nDCG", Ranking([1] * len(drawn), items=items, background=judged)), np.ones(len(KS)))


def test_repeated_items_are_counted_of_the_log_which_every_run_has() -> None:
    asked = parsed("UnrepeatedReco@5")
    assert asked.requiring() == {"the rows of the log": ["UnrepeatedReco"]}
    assert asked.lacking([]) == {}
    assert asked.measures[0].entry.requires == ""


@given(ranking=rankings())
def test_list_is_unrepeated_in_full_where_its_share_is_1(ranking: Ranking) -> None:
    share, full = curve("UnrepeatedReco", ranking), curve("UnrepeatedReco(kind='full')", ranking)
    assert_equal(full, np.where(np.isnan(share), np.nan, share == 1))


@given(ranking=rankings())
def test_long_tail_items_are_counted_and_shared(ranking: Ranking) -> None:
    depth = np.minimum(KS, len(ranking.gains))
    assert_equal(curve("APLT", ranking) * depth, curve("ACLT", ranking))


@given(ranking=rankings())
def test_popularity_as_a_share_is_popularity_over_all_interactions(ranking: Ranking) -> None:
    assume(ranking.background.interactions)
    assert_equal(curve("ARP(norm='C')", ranking) * ranking.background.interactions, curve("ARP", ranking))
    most = ranking.background.most_interactions
    assert_equal(curve("ARP(norm='max',unseen='drop')", ranking) * most, curve("ARP(unseen='drop')", ranking))


@pytest.mark.parametrize("name", ["EPC", "EFD"])
@given(ranking=rankings())
def test_relevant_novelty_is_never_above_all_novelty(name: str, ranking: Ranking) -> None:
    everything, relevant = curve(f"{name}(relevance='off')", ranking), curve(name, ranking)
    assert np.all((relevant <= everything + 1e-12) | np.isnan(everything))
    assert_equal(np.isnan(relevant), np.isnan(everything))


@given(ranking=rankings(), sim=st.sampled_from(["vector", "cooccurrence"]))
def test_serendipity_is_never_above_unexpectedness(ranking: Ranking, sim: str) -> None:
    expected, serendipity = (curve(f"{name}(sim='{sim}')", ranking) for name in ("Unexpectedness", "Serendipity"))
    assert np.all((serendipity <= expected + 1e-12) | np.isnan(expected))
    relevant = ranking._replace(gains=[1] * len(ranking.gains))
    assert_equal(curve(f"Serendipity(sim='{sim}')", relevant), expected)


@given(ranking=rankings(), name=st.sampled_from(["SRecall", "SRecall(of='all')", "ACLT"]))
def test_what_is_covered_is_never_lost_further_down(ranking: Ranking, name: str) -> None:
    found = curve(name, ranking)
    assert np.all((found[1:] >= found[:-1]) | np.isnan(found[1:]))


@given(
    drawn=st.lists(st.sampled_from(KNOWN), min_size=1, max_size=8), distance=st.sampled_from(["KL", "JS", "Hellinger"])
)
def test_list_of_the_items_that_the_user_has_is_calibrated(drawn: list[Item], distance: str) -> None:
    profile = [(name, len(item.categories), 1) for item in drawn for name in item.categories]
    one = Ranking([None] * len(drawn), items=drawn, background=Background(profile=profile))
    found = values(f"Calibration(distance='{distance}')", one)
    np.testing.assert_allclose(found, [0], rtol=0, atol=1e-12 if distance != "Hellinger" else 1e-8)


@given(ranking=rankings(), distance=st.sampled_from(["JS", "Hellinger"]))
def test_bounded_distances_are_bounded(ranking: Ranking, distance: str) -> None:
    found = curve(f"Calibration(distance='{distance}')", ranking)
    assert np.all((found <= 1 + 1e-12) | np.isnan(found))


@given(ranking=rankings(), distance=st.sampled_from(["KL", "JS"]))
def test_nats_are_ln_2_times_as_many_as_bits(ranking: Ranking, distance: str) -> None:
    bits, nats = (curve(f"Calibration(base='{base}',distance='{distance}')", ranking) for base in ("2", "e"))
    assert_equal(nats, bits * math.log(2))


@pytest.mark.parametrize(("base", "number"), [("2", 2), ("e", math.e)])
@given(drawn=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=2, max_size=6))
def test_divergences_are_those_of_scipy(base: str, number: float, drawn: list[tuple[int, int]]) -> None:
    assume(any(shown for _, shown in drawn))
    profile = [(str(place), 1, owned) for place, (owned, _) in enumerate(drawn)]
    items = [Item(categories=(str(place),)) for place, (_, shown) in enumerate(drawn) for _ in range(shown)]
    ranking = Ranking([None] * len(items), items=items, background=Background(profile=profile))
    p, q = (np.array(column) / sum(column) for column in zip(*drawn, strict=True))
    expected = {
        "KL": stats.entropy(p, 0.99 * q + 0.01 * p, base=number),
        "JS": spatial.distance.jensenshannon(p, q, base=number) ** 2,  # there its root, which is a metric
    }
    for distance, value in expected.items():
        assert_equal(values(f"Calibration(base='{base}',distance='{distance}')", ranking), [value])


@given(ranking=rankings(), days=st.integers(1, 60))
def test_share_of_young_items_grows_with_the_age_that_is_young(ranking: Ranking, days: int) -> None:
    shares = [curve(f"Freshness(days={age},stat='share',unknown='drop')", ranking) for age in (days, days + 5, 10_000)]
    assert np.all((shares[0] <= shares[1]) | np.isnan(shares[0]))
    assert_equal(shares[2], np.where(np.isnan(shares[0]), np.nan, 1.0))
