"""Values of any size: what is rounding depends on the values, not on the number 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.support.arrow_frames import dicts, table

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES: Final = (1e-30, 1e-13, 1.0, 1e13)
TESTS: Final = ("t", "sign", "wilcoxon", "bootstrap", "randomization", "tukey", "randomized_tukey")
NUMBERS: Final = ("verdict", "method", "reason", "n_wins", "n_ties", "n_losses")


def compared(size: float, values: Sequence[tuple[float, float]], *, tests: Sequence[str] = TESTS) -> dict[str, Any]:
    """Compare two models by the worth of their first item, of users who have it under both; by test."""
    models = {"base": 0, "new": 1}
    log = [(model, f"u{user:02}", model, 1.0) for model in models for user in range(len(values))]
    worth = [
        (f"u{user:02}", model, 1.0, own[place] * size)
        for user, own in enumerate(values)
        for model, place in models.items()
    ]
    found = evaluate(
        table("model_id user_id item_id score", *log),
        table("user_id item_id gain value", *worth),
        measures=["CG(gains='value')@1"],
        pairs="all",
        tests=tests,
        replicates=500,
    )
    return {row["test"]: row for row in dicts(found.comparisons)}


@pytest.mark.parametrize("size", [size for size in SIZES if size != 1])
def test_every_comparison_is_the_same_in_any_unit(size: float) -> None:
    """Of 40 users 30 gain a little, 5 lose and 5 are the same."""
    values = [
        (1.0 + user / 7, 1.0 + user / 7 + (0.1 if user < 30 else -0.1 if user < 35 else 0.0)) for user in range(40)
    ]
    wanted = compared(1.0, values)
    assert wanted["t"]["verdict"] == "better"
    for test, row in compared(size, values).items():
        assert [row[name] for name in NUMBERS] == [wanted[test][name] for name in NUMBERS], test
        assert row["p_value"] == pytest.approx(wanted[test]["p_value"], rel=1e-9), test
        assert row["delta"] / size == pytest.approx(wanted[test]["delta"], rel=1e-9), test


@pytest.mark.parametrize("size", SIZES)
def test_differences_that_are_all_the_same_have_no_spread_in_any_unit(size: float) -> None:
    """A tenth more for every user, but for the rounding of their sums."""
    found = compared(size, [(user / 3, user / 3 + 0.1) for user in range(40)], tests=("t",))["t"]
    assert (found["method"], found["effect_size"], found["p_value"]) == ("equal", None, 2.0**-39)


@pytest.mark.parametrize("size", SIZES)
def test_models_that_differ_by_rounding_only_are_equal_in_any_unit(size: float) -> None:
    found = compared(size, [(0.3 + user, 0.1 + 0.2 + user) for user in range(40)])
    assert {test: (row["delta"], row["p_value"]) for test, row in found.items()} == dict.fromkeys(TESTS, (0.0, 1.0))
