"""The measures of all lists together: naive references, outside formulas, properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from rankeval_spark.measures import Exposure, Measure, MeasureSet, Shown, registry
from tests.support import naive_exposures, oracles

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.definition import Definition

ENTRIES = registry.entries("exposure")
CATALOGUE = "a b c d e f"

lists_of_items = st.lists(st.permutations("abcdefxy").flatmap(lambda items: st.just(items[: ord(items[0]) % 7])))
groups = st.lists(lists_of_items, min_size=1, max_size=4)


def values(measure: Measure, shown: list[Shown]) -> FloatVector:
    """Value of each group of lists."""
    return measure.entry.values(Exposure.of(shown, k=measure.k), measure.options)


def shown_of(lists: list[list[str]]) -> Shown:
    """Add the catalogue, which does not hold x and y."""
    return Shown(tuple(" ".join(one) for one in lists), CATALOGUE)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@settings(max_examples=40)
@given(groups=groups, k=st.sampled_from([0, 1, 2, 5]))
def test_kernel_agrees_with_its_naive_reference(entry: Definition, groups: list[list[list[str]]], k: int) -> None:
    for measure in oracles.variants(entry, [k]):
        expected = [naive_exposures.expected(measure, one, set(CATALOGUE.split())) for one in groups]
        found = values(measure, list(map(shown_of, groups)))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(measure))


@given(groups=groups)
def test_values_lie_within_the_declared_range(groups: list[list[list[str]]]) -> None:
    for measure in (one for entry in ENTRIES for one in oracles.variants(entry, [3, 0])):
        low, high = measure.entry.bounds
        found = values(measure, list(map(shown_of, groups)))
        assert all(low - 1e-12 <= value <= high + 1e-12 for value in found[~np.isnan(found)]), str(measure)


@given(times=st.lists(st.integers(1, 30), min_size=2, max_size=12), n_never=st.integers(0, 5))
def test_entropy_and_gini_are_those_of_the_usual_formulas(times: list[int], n_never: int) -> None:
    """Of scipy, and of the area under the Lorenz curve by trapezoids."""
    shown = Shown(
        tuple(f"i{item}" for item, n in enumerate(times) for _ in range(n)), catalogue_of(len(times) + n_never)
    )
    counts = np.sort([*[0] * n_never, *times])
    lorenz = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    area = (lorenz[1:] + lorenz[:-1]).sum() / 2 / len(counts)
    found = {
        name: values(Measure.parse(name), [shown])[0] for name in ("Entropy", "Entropy(base='e')", "Gini(norm='n')")
    }
    expected = [stats.entropy(counts, base=2), stats.entropy(counts), 1 - 2 * area]
    np.testing.assert_allclose(list(found.values()), expected, rtol=0, atol=1e-12)


def catalogue_of(n: int) -> str:
    return " ".join(f"i{item}" for item in range(n))


def test_gini_is_0_for_equal_exposure_and_1_where_one_item_takes_all() -> None:
    equal, one = Shown(tuple("abcd"), "a b c d"), Shown(tuple("aaaa"), "a b c d")
    np.testing.assert_array_equal(values(Measure.parse("Gini@1"), [equal, one]), [0, 1])
    np.testing.assert_array_equal(values(Measure.parse("Gini(norm='n')@1"), [equal, one]), [0, 3 / 4])


@given(lists=lists_of_items)
def test_entropy_is_at_most_that_of_the_catalogue(lists: list[list[str]]) -> None:
    inside = [[item for item in one if item in CATALOGUE] for one in lists]
    (value,) = values(Measure.parse("Entropy"), [shown_of(inside)])
    assert np.isnan(value) or value <= np.log2(6) + 1e-12


def test_entries_are_added_up_in_any_order_and_may_take_items_away() -> None:
    """Everyone's three items less one that was in two lists, which without the group is in one."""
    counts = [
        np.array(column, dtype=np.float64)
        for column in (
            *([2, 1, 1, 2, 5], [1, 2, 1, -1, 3], [1, 2, 0, -1, np.nan]),
            *([1 / 2, 0, 0, -1 / 2, np.nan], [1 / 4, 0, 1 / 8, -1 / 4, np.nan]),
        )
    ]
    group = np.array([0, 0, 0, 0, 1])
    times, n_items, n_catalogued, shared, cosine = counts
    of_groups = np.array([2.0, 5.0]), np.array([2, 2]), np.array([4, np.nan])
    found = Exposure(group, times, n_items, n_catalogued, *of_groups, shared, cosine).merged()
    assert (found.group.tolist(), found.times.tolist(), found.n_items.tolist()) == ([0, 0, 1], [1, 2, 5], [3, 0, 3])
    np.testing.assert_array_equal(found.n_catalogued, [2, 0, np.nan])
    np.testing.assert_array_equal(found.shared, [0, 0, np.nan])
    np.testing.assert_array_equal(found.cosine, [1 / 8, 0, np.nan])
    assert found.n_distinct.tolist() == [3, 3]


@given(lists=st.lists(st.permutations("abcdef").map(lambda items: items[:3]), min_size=2))
def test_lists_of_one_length_share_as_much_of_the_shorter_one_as_of_k(lists: list[list[str]]) -> None:
    shown = [Shown(tuple(" ".join(one) for one in lists))]
    by_k, by_length, cosine = (
        values(Measure.parse(f"Personalization{of}@3"), shown) for of in ("", "(denom='min')", "(sim='cosine')")
    )
    np.testing.assert_allclose(by_length, by_k, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cosine, by_k, rtol=0, atol=1e-12)


@given(groups=groups)
def test_short_lists_count_as_less_different_by_their_own_length(groups: list[list[list[str]]]) -> None:
    by_k, by_length = (
        values(Measure.parse(f"Personalization{of}@5"), list(map(shown_of, groups))) for of in ("", "(denom='min')")
    )
    assert np.all((by_length <= by_k + 1e-12) | np.isnan(by_k))


@settings(max_examples=60)
@given(
    lists=st.lists(st.permutations("abcdefgh").flatmap(lambda items: st.just(items[: ord(items[0]) % 7])), min_size=2)
)
def test_cosine_is_that_of_scikit_learn(lists: list[list[str]]) -> None:
    """As recmetrics takes it: mean of the upper triangle of the matrix of all pairs of lists that hold an item."""
    vectors = np.array([[item in one for item in "abcdefgh"] for one in lists if one], dtype=np.float64)
    found = values(Measure.parse("Personalization(sim='cosine')"), [shown_of(lists)])
    if len(vectors) < 2:
        assert np.isnan(found).all()
        return
    pairs = cosine_similarity(vectors)[np.triu_indices(len(vectors), 1)]
    np.testing.assert_allclose(found, [1 - pairs.mean()], rtol=0, atol=1e-12)


@given(groups=groups)
def test_cosine_lies_between_the_overlaps_by_the_longest_and_by_the_shorter_list(groups: list[list[list[str]]]) -> None:
    of_shorter, cosine, of_k = (
        values(Measure.parse(f"Personalization{of}@7"), list(map(shown_of, groups)))
        for of in ("(denom='min')", "(sim='cosine')", "")
    )
    assert np.all(((of_shorter <= cosine + 1e-12) & (cosine <= of_k + 1e-12)) | np.isnan(cosine))


def test_disjoint_lists_are_not_alike_at_all() -> None:
    """Nothing is subtracted, so that (1 / sqrt(3))^2 - 1 / 3 leaves no 5e-17."""
    shown = [Shown(("a b c", "d e", "f g h i j"))]
    assert values(Measure.parse("Personalization(sim='cosine')"), shown).tolist() == [1]


def test_a_set_keeps_both_kinds_apart() -> None:
    asked = MeasureSet.parse(["nDCG@10", "ItemCoverage@20", "Entropy", "P@5"])
    assert (asked.columns, asked.ks, asked.labels) == (("ndcg", "p"), (5, 10), ("nDCG", "P"))
    assert [str(one) for one in asked.exposures] == ["ItemCoverage@20", "Entropy"]
    assert MeasureSet.parse(["ItemCoverage@20", "Entropy"]).ks == (20, 0), "lists are still counted"


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("ItemCoverage@5", False),
        ("CatalogCoverage@5", True),
        ("CatalogCoverage(items='train')@5", False),
        ("Gini@5", True),
        ("Gini(items='recommended')@5", False),
        ("Entropy@5", False),
        ("Entropy(norm=True)@5", True),
        ("Personalization@5", False),
        ("nDCG@5", False),
    ],
)
def test_measure_says_whether_it_needs_the_catalogue(name: str, needs: bool) -> None:
    assert Measure.parse(name).needs_catalogue is needs
