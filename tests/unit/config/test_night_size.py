"""What a night comes to is said before it runs, and refused where it is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.config import Cost, EvaluationConfig, least_cost, validate_model
from rankeval_spark.errors import ConfigError
from tests.support import nights
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path


def config(**changes: Any) -> EvaluationConfig:  # noqa: ANN401 - the values of a YAML file
    given = nights.config_of("recommendations", "held_out", "segments")
    return validate_model(EvaluationConfig, {**given, **changes})


def test_rows_are_those_of_all_users_and_of_each_value() -> None:
    cost = Cost(n_values=6, n_models=2, slice_values={"country": 3}, n_tests=2, is_counted=True)

    assert cost.n_metrics == 2 * (1 + 3) * 6
    assert cost.n_comparisons == 2 * 1 * (1 + 3) * 6
    assert str(cost) == (
        "about 48 rows of metrics and 48 of comparisons a night: 6 measures at cutoffs x 2 models x 4 slice values"
    )


def test_every_two_models_are_compared_where_all_are() -> None:
    cost = Cost(n_values=1, n_models=5_000, slice_values={}, n_tests=1, compares_all=True)

    assert cost.n_comparisons == 5_000 * 4_999 / 2
    with pytest.raises(ConfigError, match="name fewer than 5,000 models, or raise results"):
        cost.require_at_most(1_000_000)


@pytest.mark.parametrize(
    ("cost", "fix"),
    [
        (Cost(60, 3, {"country": 20, "user": 50_000}), "leave out the slice user, which has 50,000 values"),
        (Cost(60, 5_000, {"country": 20}), "name fewer than 5,000 models"),
        (Cost(6_000, 3, {"country": 2_000}), "request fewer than 6,000 measures at cutoffs"),
    ],
)
def test_what_multiplies_most_is_named(cost: Cost, fix: str) -> None:
    with pytest.raises(ConfigError) as raised:
        cost.require_at_most(1_000_000)

    (fault,) = raised.value.faults
    assert (fault.where, fault.expected) == ("results.most_rows", "at most 1,000,000")
    assert fault.fix == f"{fix}, or raise results.most_rows"
    cost.require_at_most(cost.n_metrics + cost.n_comparisons)


def test_the_least_is_known_before_any_data_are_read() -> None:
    cost = least_cost(config(models=["als", "pop"], comparisons={"baseline": "pop"}))

    assert (cost.n_values, cost.n_models, dict(cost.slice_values)) == (6, 2, {"country": 1})
    assert (cost.n_tests, cost.compares_all, cost.is_counted) == (1, False, False)
    assert str(cost).startswith(f"at least {2 * (1 + 1) * 6} rows of metrics and {1 * 2 * 6} of comparisons")


def test_validate_refuses_what_is_too_much_already(tmp_path: Path) -> None:
    workspace = nights.Workspace(tmp_path)
    workspace.configure(nights.config_of("recommendations", "held_out"))
    workspace.change(models=[f"m{number}" for number in range(5_000)], cutoffs=list(range(1, 21)))
    n_rows = 5_000 * 3 * 20

    assert rankeval("validate", workspace.config).code == 0
    done = rankeval("validate", workspace.config, "--set", f"results.most_rows={n_rows - 1}")

    assert done.code == 2
    done.assert_readable()
    assert f"results.most_rows: found at least {n_rows:,} rows of metrics a night: 60 measures" in done.message
    assert f"expected at most {n_rows - 1:,}; name fewer than 5,000 models" in done.message
