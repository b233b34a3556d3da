"""Sums of groups that are rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.engine.matching import exact_sums

GROUPS = st.lists(st.lists(st.floats(-1e300, 1e300) | st.sampled_from((0.1, 1e16, -1e16, 5e-324)), min_size=1))


def sums(*groups: list[float]) -> list[float]:
    """Sum up groups."""
    found: list[float] = exact_sums(np.concatenate(groups), np.array([len(group) for group in groups])).tolist()
    return found


@given(groups=GROUPS.filter(bool))
def test_each_sum_is_the_double_next_to_the_sum_of_fractions(groups: list[list[float]]) -> None:
    assert sums(*groups) == [float(sum(map(Fraction, group))) for group in groups]


@pytest.mark.parametrize(
    ("group", "total"),
    [
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([1.0, 2.0**-53, 2.0**-106], 1 + 2.0**-52),  # just above the middle of two doubles
        ([1.0, 2.0**-53, -(2.0**-106)], 1.0),  # just below it
        ([1e308, 1e308, -1e308], 1e308),  # on the way the sum is no double
        ([1e308, 1e308], np.inf),
        ([0.1] * 1000, 100.0),
        ([-0.0], 0.0),
    ],
)
def test_a_sum_does_not_depend_on_the_order_or_on_other_groups(group: list[float], total: float) -> None:
    assert sums(group, [2.0, 3.0], group[::-1]) == [total, 5.0, total]


def test_no_group_has_no_sum() -> None:
    assert exact_sums(np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == []
