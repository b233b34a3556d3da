"""Errors of measures of all lists against the deviation of their values among simulated samples of users."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.all_lists import MEASURES, Setting, sample
from rankeval_spark.measures import Exposure, Measure, Shown, registry
from rankeval_spark.result_rows.exposure import first_order


@pytest.mark.parametrize(
    "setting",
    [Setting(50, 200, 1.0), Setting(50, 300, 0.5), Setting(60, 300, 0.0), Setting(80, 400, 0.8, n_tastes=4)],
)
def test_errors_are_within_a_fifth_of_the_simulated_deviation(setting: Setting) -> None:
    """Of 200 samples: the deviation itself is known to 5 %. An error that few samples have is not compared."""
    draw = np.random.default_rng(9)
    found = np.stack([sample(setting, draw) for _ in range(200)])
    has_error = (~np.isnan(found[:, :, 1])).mean(axis=0)
    errors = np.nan_to_num(found[:, :, 1]).sum(axis=0) / np.maximum(has_error * len(found), 1)
    ratios = errors / found[:, :, 0].std(axis=0, ddof=1)
    compared = dict(zip(np.array(MEASURES)[has_error > 0.9], ratios[has_error > 0.9], strict=True))
    assert compared.keys() >= {"ItemCoverage@10", "Gini@10", "Entropy@10"}
    assert {name: ratio for name, ratio in compared.items() if not 0.8 <= ratio <= 1.2} == {}


def test_every_measure_of_exposure_has_its_steps() -> None:
    exposure = Exposure.of([Shown(("a b", "a c"), catalogue="a b c d")], k=2)
    for entry in registry.entries("exposure"):
        measure = Measure.of(entry.name, k=2)
        share = first_order.first_order_share(measure, exposure, np.array([0.3]))
        assert share.shape == (1,)


def test_a_coverage_that_few_single_items_support_has_no_error() -> None:
    for n_singles, has_error in ((19, False), (20, True)):
        lists = (" ".join(f"i{number}" for number in range(n_singles)), "a b", "a b")
        share = first_order.first_order_share(
            Measure.parse("ItemCoverage"), Exposure.of([Shown(lists)]), np.array([n_singles + 2.0])
        )
        assert np.isnan(share[0]) != has_error
    lists = (lists[0], *(" ".join(f"p{number}" for number in range(31)),) * 2)
    crowded = first_order.first_order_share(Measure.parse("ItemCoverage"), Exposure.of([Shown(lists)]), np.ones(1))
    assert np.isnan(crowded).all()
    ones = n_singles - n_singles**2 / (n_singles + 4)
    assert share[0] == pytest.approx(ones / (ones + 2), rel=0, abs=1e-12)
