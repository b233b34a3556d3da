"""Presets of tools that no registry holds, against their formulas as their source has them, user by user.

Elliot is on no package registry. The others are held against the tools themselves, in
``tests/evaluate/test_presets.py``, ``tests/peers`` and ``tests/peers_torch``.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from tests.support import peer_cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.peer_cases import User

K = 5
THRESHOLD = 1


def gain(grade: float) -> float:
    """Elliot's gain of a judgement that reaches the threshold."""
    return 2 ** (grade - THRESHOLD + 1) - 1 if grade >= THRESHOLD else 0.0


def dcg(gains: list[float]) -> float:
    """Discount from place 0 on by ln 2 / ln(place + 2)."""
    return math.fsum(each * math.log(2) / math.log(place + 2) for place, each in enumerate(gains))


def ndcg(user: User) -> float:
    """Gains of the first k items, and those of the judgements, sorted, cut at k."""
    ideal = sorted((gain(grade) for grade in user.grades.values()), reverse=True)[:K]
    return dcg([gain(user.grades.get(item, 0)) for item in user.items[:K]]) / dcg(ideal)


def n_hits(user: User, depth: int) -> int:
    """Relevant items among the first ones, of at most k."""
    return sum(item in user.relevant for item in user.items[: min(depth, K)])


def f1(user: User) -> float:
    """Harmonic mean of a user's own precision and recall."""
    precision, recall = n_hits(user, K) / K, n_hits(user, K) / len(user.relevant)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def first_hit(user: User) -> float:
    """Inverse of the rank of the first relevant item, 0 without one."""
    return next((1 / rank for rank, item in enumerate(user.items[:K], 1) if item in user.relevant), 0.0)


def test_values_of_every_user_are_those_of_elliot() -> None:
    users = peer_cases.random_users(6)
    formulas: dict[str, Callable[[User], float]] = {
        f"nDCG@{K}": ndcg,
        f"P@{K}": lambda user: n_hits(user, K) / K,
        f"R@{K}": lambda user: n_hits(user, K) / len(user.relevant),
        f"F1@{K}": f1,
        f"HR@{K}": lambda user: float(n_hits(user, K) > 0),
        f"MRR@{K}": first_hit,
        f"MAR@{K}": lambda user: fmean(n_hits(user, depth) / len(user.relevant) for depth in range(1, K + 1)),
        f"MeanP@{K}": lambda user: fmean(n_hits(user, depth) / depth for depth in range(1, K + 1)),
    }
    theirs = {name: [formula(user) for user in users] for name, formula in formulas.items()}
    peer_cases.assert_equal("elliot", theirs, users)
