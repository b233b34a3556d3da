"""Ratios of sums over users: moments that merge, and the interval of the delta method."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra.numpy import arrays

from rankeval_spark.statistics import intervals, ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics.ratios import Ratios

sides = st.integers(0, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 1), elements=st.floats(0, 100)), arrays(np.float64, (n, 1), elements=st.floats(0.5, 100))
    )
)


def of(numerator: np.ndarray, denominator: np.ndarray) -> Ratios:
    """Moments of one group."""
    return ratios.ratio_moments_by_group(numerator, denominator, np.zeros(len(numerator), dtype=np.int64), 1)


def linearised(found: Ratios) -> tuple[float, float]:
    """Ratio and squared deviations of one group."""
    above, below = found.numerator, found.denominator
    ratio, m2 = ratios.linearise(above.mean, above.m2, below.mean, below.m2, found.cross)
    return float(ratio[0, 0]), float(m2[0, 0])


@given(rows=sides, data=st.data())
def test_merged_moments_are_those_of_a_naive_loop(rows: tuple[np.ndarray, np.ndarray], data: st.DataObject) -> None:
    numerator, denominator = rows
    cut = data.draw(st.integers(0, len(numerator)))
    parts = [of(numerator[part], denominator[part]) for part in (slice(cut), slice(cut, None))]
    for found in (parts[0].merge(parts[1]), parts[1].merge(parts[0]), of(numerator, denominator)):
        assert found.numerator.n == found.denominator.n == len(numerator)
        means = [side.mean() if len(side) else 0.0 for side in rows]
        pairs = zip(numerator[:, 0], denominator[:, 0], strict=True)
        cross = sum((above - means[0]) * (below - means[1]) for above, below in pairs)
        np.testing.assert_allclose(found.cross, [[cross]], rtol=1e-9, atol=1e-7)


whole = st.integers(-20, 20).map(float)


@given(rows=st.lists(st.tuples(whole, whole), max_size=30), cut=st.integers(0, 30), n_parts=st.integers(1, 4))
def test_cubed_products_of_any_split_are_those_of_fractions(
    rows: list[tuple[float, float]], cut: int, n_parts: int
) -> None:
    above, below = (np.array([row[side] for row in rows], dtype=np.float64).reshape(-1, 1) for side in (0, 1))
    of_a, of_b = ([Fraction(row[side]) for row in rows] for side in (0, 1))
    a, b = ([x - sum(own) / len(own) for x in own] if own else [] for own in (of_a, of_b))
    powers = ((3, 0), (0, 3), (2, 1), (1, 2))
    expected = [float(sum(x**p * y**q for x, y in zip(a, b, strict=True))) for p, q in powers]

    def cubed(part: slice, group: np.ndarray, n_groups: int = 1) -> Ratios:
        return ratios.ratio_moments_by_group(above[part], below[part], group[part], n_groups, has_cubes=True)

    everyone = np.zeros(len(rows), dtype=np.int64)
    one, other = cubed(slice(cut), everyone), cubed(slice(cut, None), everyone)
    parts = cubed(slice(None), np.arange(len(rows)) % n_parts, n_parts)
    united = parts.merge_rows(np.zeros(n_parts, dtype=np.int64), 1)
    read = ratios.Ratios.from_numbers(*united.place_in_slots(np.array([1]), 2).take(np.array([1])).numbers)
    for found in (cubed(slice(None), everyone), one.merge(other), other.merge(one), united, read):
        np.testing.assert_allclose(np.ravel(found.numbers[-4:]), expected, rtol=1e-12, atol=1e-7)


@given(rows=sides.filter(lambda rows: len(rows[0]) > 1))
def test_spread_is_that_of_the_residuals(rows: tuple[np.ndarray, np.ndarray]) -> None:
    numerator, denominator = rows
    assume(not ((numerator != 0) & (np.abs(numerator) < 1e-100)).any())  # their squares leave the range of a double
    ratio, m2 = linearised(of(numerator, denominator))
    expected = numerator.sum() / denominator.sum()
    residuals = (numerator - expected * denominator) / denominator.mean()
    assert ratio == pytest.approx(expected, rel=1e-12)
    assert m2 == pytest.approx(float((residuals**2).sum()), rel=1e-9, abs=1e-9)


def test_interval_is_that_of_the_delta_method_with_the_user_as_the_unit() -> None:
    """1 of 2, 3 of 4 and 0 of 1: 4 of 7."""
    numerator, denominator = np.array([[1.0], [3.0], [0.0]]), np.array([[2.0], [4.0], [1.0]])
    ratio, m2 = linearised(of(numerator, denominator))
    squares = (1 - 8 / 7) ** 2 + (3 - 16 / 7) ** 2 + (0 - 4 / 7) ** 2
    variance = 3 / 2 * squares / 7**2
    low, high = intervals.t_interval(3, ratio, m2, 0.95)
    assert (high - low) / 2 / 4.302652729911275 == pytest.approx(variance**0.5, rel=1e-9)
    assert (high + low) / 2 == pytest.approx(4 / 7, rel=1e-12)


def test_equal_numerators_whose_mean_is_rounded_have_no_spread() -> None:
    _, m2 = linearised(of(np.full((3, 1), 0.1), np.ones((3, 1))))  # their mean is 0.10000000000000002
    assert m2 == 0


@given(n=st.integers(2, 30), share=st.sampled_from([0.0, 0.1, 1 / 3, 1.0]), data=st.data())
def test_users_of_one_ratio_have_no_spread_whatever_they_weigh(n: int, share: float, data: st.DataObject) -> None:
    denominator = data.draw(arrays(np.float64, (n, 1), elements=st.integers(1, 10**6).map(float)))
    ratio, m2 = linearised(of(share * denominator, denominator))
    assert ratio == pytest.approx(share, rel=1e-12)
    assert m2 == 0


def test_users_without_weight_have_no_ratio() -> None:
    ratio, m2 = linearised(of(np.zeros((2, 1)), np.zeros((2, 1))))
    assert np.isnan([ratio, m2]).all()


def test_weights_of_one_make_the_ratio_a_mean() -> None:
    values = np.array([[0.25], [0.5], [1.0]])
    ratio, m2 = linearised(of(values, np.ones((3, 1))))
    assert ratio == pytest.approx(values.mean())
    assert m2 == pytest.approx(((values - values.mean()) ** 2).sum())


def test_links_are_undone() -> None:
    values = np.array([0.5, 2.0])
    np.testing.assert_allclose(intervals.to_published("log", np.log(values)), values, rtol=1e-15)
    np.testing.assert_allclose(intervals.to_published("square", values**2), values, rtol=1e-15)
    np.testing.assert_array_equal(intervals.to_published("identity", values), values)
