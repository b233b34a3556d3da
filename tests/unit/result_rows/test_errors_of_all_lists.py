"""Errors of measures of all lists against the deviation of their values among simulated samples of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from benchmarks.all_lists import MEASURES, Setting, sample
from rankeval_spark import evaluate
from rankeval_spark.measures import Exposure, Measure, Shown, registry
from rankeval_spark.result_rows import exposure_rows
from tests.support import naive_exposures
from tests.support.arrow_frames import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OF_ENDS: Final = (
    *("ItemCoverage@3", "CatalogCoverage@3", "Gini@3", "Gini(items='recommended')@3", "Gini(norm='n')@3"),
    *("Entropy@3", "Entropy(norm=True)@3", "Personalization@3", "Personalization(denom='min')@3"),
)


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
        share = exposure_rows.variance_shrinkage(measure, exposure, np.array([0.3]))
        assert share.shape == (1,)


def test_a_coverage_that_few_single_items_support_has_no_error() -> None:
    for n_singles, has_error in ((19, False), (20, True)):
        lists = (" ".join(f"i{number}" for number in range(n_singles)), "a b", "a b")
        share = exposure_rows.variance_shrinkage(
            Measure.parse("ItemCoverage"), Exposure.of([Shown(lists)]), np.array([n_singles + 2.0])
        )
        assert np.isnan(share[0]) != has_error
    lists = (lists[0], *(" ".join(f"p{number}" for number in range(31)),) * 2)
    crowded = exposure_rows.variance_shrinkage(Measure.parse("ItemCoverage"), Exposure.of([Shown(lists)]), np.ones(1))
    assert np.isnan(crowded).all()
    ones = n_singles - n_singles**2 / (n_singles + 4)
    assert share[0] == pytest.approx(ones / (ones + 2), rel=0, abs=1e-12)


def rows_of(lists: Mapping[str, str]) -> list[dict[str, Any]]:
    """Measure all lists; the catalogue has an item that none of them has."""
    log = [("m", user, item, -float(rank)) for user, items in lists.items() for rank, item in enumerate(items.split())]
    items = table("item_id", *((item,) for item in sorted({item for _, _, item, _ in log} | {"never"})))
    held_out = table("user_id item_id gain", *((user, "never", 1.0) for user in lists))
    found = evaluate(table("model_id user_id item_id score", *log), held_out, items=items, measures=[*OF_ENDS])
    rows: list[dict[str, Any]] = found.metrics.to_pylist()
    return rows


@pytest.mark.parametrize("n_users", [2, 5, 19, 20, 21, 50, 333, 2000])
@pytest.mark.parametrize(
    "items_of",
    [
        pytest.param(lambda _: "a b c", id="equal"),
        pytest.param(lambda _: "a", id="one item"),
        pytest.param(lambda user: ("a b c", "b c a", "c a b")[user % 3], id="equal in other orders"),
        pytest.param(lambda user: f"a{user} b{user} c{user}", id="nothing shared"),
    ],
)
def test_equal_lists_and_lists_that_share_nothing_have_no_error(n_users: int, items_of: Callable[[int], str]) -> None:
    rows = rows_of({f"u{number}": items_of(number) for number in range(n_users)})
    assert len(rows) == len(OF_ENDS)
    nothing = {row["measure"]: tuple(row[name] for name in ("std_error", "ci_low", "ci_high")) for row in rows}
    assert set(nothing.values()) == {(None, None, None)}
    assert {row["ci_method"] for row in rows} == {"none"}


@pytest.mark.parametrize("n_users", [20, 50, 333])
def test_one_other_list_gives_an_error_and_an_interval_in_the_range(n_users: int) -> None:
    rows = rows_of({f"u{number}": "a b c" if number else "d e f" for number in range(n_users)})
    with_error = {row["measure"]: row for row in rows if row["std_error"]}
    assert with_error.keys() >= {"Gini", "Entropy", "Entropy(norm=True)", "Personalization"}
    for row in with_error.values():
        low, high = naive_exposures.bounds_of(Measure.parse(f"{row['measure']}@3"))
        assert low <= row["ci_low"] < row["ci_high"] <= high
