"""The preset ``kaggle`` against two packages that carry Kaggle's own average precision.

That of ml_metrics itself has a setup which no current pip can run; both give its code with another name.
"""

from __future__ import annotations

import importlib
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rexmex.metrics import ranking

from tests.support import peer_cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.peer_cases import User

KS = (1, 3, 5, 20)

recommendation_metrics: Any = importlib.import_module(
    "recommendation-metrics.metrics"
)  # no name of an import statement


def apk(user: User, k: int) -> float:
    """Average precision of one user by Kaggle's function."""
    value: float = recommendation_metrics.apk(user.relevant, user.items, k)
    return value


def apk_of_rexmex(user: User, k: int) -> float:
    """Take that of rexmex."""
    value: float = ranking.average_precision_at_k(user.relevant, user.items, k=k)
    return value


@pytest.mark.parametrize("tool", [apk, apk_of_rexmex])
def test_values_of_every_user_are_those_of_kaggle(tool: Callable[[User, int], float]) -> None:
    users = [*peer_cases.random_users(5), peer_cases.User(1000, [], {1: 1}), peer_cases.User(1001, [7], {1: 1, 7: 1})]
    peer_cases.assert_equal("kaggle", {f"AP@{k}": [tool(user, k) for user in users] for k in KS}, users)


def test_mean_is_over_all_judged_users() -> None:
    """The population `judged`: nobody without a list or without a relevant item is left out."""
    users = [
        *peer_cases.random_users(6, n_users=100),
        peer_cases.User(100, [], {1: 1}),
        peer_cases.User(101, [1], {2: 0}),
    ]
    mean = recommendation_metrics.mapk([user.relevant for user in users], [user.items for user in users], 5)
    [ours] = peer_cases.apply_preset("kaggle", ["AP@5"], users)
    assert np.isnan(ours).tolist() == [False] * 101 + [True]
    assert fmean(np.nan_to_num(ours)) == pytest.approx(mean, rel=0, abs=1e-9)


def test_repeated_item_keeps_its_place_there() -> None:
    """The note of the preset: here the list closes up, and the second hit stands at rank 2."""
    repeated, closed = ["a", "a", "b"], ["a", "b"]
    assert recommendation_metrics.apk(["a", "b"], repeated, 3) == pytest.approx((1 + 2 / 3) / 2, rel=0, abs=1e-12)
    assert recommendation_metrics.apk(["a", "b"], closed, 3) == 1
