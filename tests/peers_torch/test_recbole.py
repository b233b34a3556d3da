"""The preset ``recbole`` against RecBole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import peer_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

K_MAX = 10


@pytest.fixture
def _names_that_numpy_dropped() -> Iterator[None]:
    """RecBole 1.2.1 still says ``np.float``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "float", float, raising=False)
        yield


@pytest.mark.usefixtures("_names_that_numpy_dropped")
def test_values_of_every_user_are_those_of_recbole() -> None:
    """It ranks all items, so that every list is as long as the largest cutoff."""
    tools = pytest.importorskip("recbole.evaluator.metrics", reason="needs make test-peers-torch")
    users = peer_cases.random_users(3, lengths=(K_MAX, K_MAX))
    is_hit = np.array([[user.grades.get(item, 0) >= 1 for item in user.items] for user in users])
    n_relevant = np.array([len(user.relevant) for user in users])

    def of(name: str) -> np.ndarray:
        tool = getattr(tools, name)
        metric = tool.__new__(tool)  # its configuration is only needed for the means
        needs_lengths = name in {"MAP", "Recall", "NDCG"}
        matrix: np.ndarray = metric.metric_info(is_hit, n_relevant) if needs_lengths else metric.metric_info(is_hit)
        return matrix

    names = {"Success": "Hit", "RR": "MRR", "AP": "MAP", "R": "Recall", "nDCG": "NDCG", "P": "Precision"}
    theirs = {f"{ours}@{k}": of(name)[:, k - 1] for ours, name in names.items() for k in (1, 3, K_MAX)}
    peer_cases.assert_equal("recbole", {name: values.tolist() for name, values in theirs.items()}, users)
