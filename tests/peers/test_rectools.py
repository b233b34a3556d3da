"""The preset ``rectools`` against RecTools."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.support import peer_cases

metrics = pytest.importorskip("rectools.metrics", reason="needs make test-peers")


def test_values_of_every_user_are_those_of_rectools() -> None:
    users = peer_cases.random_users(1)
    reco = pd.DataFrame(
        [(user.name, item, rank) for user in users for rank, item in enumerate(user.items, 1)],
        columns=["user_id", "item_id", "rank"],
    )
    interactions = pd.DataFrame(
        [(user.name, item) for user in users for item in user.relevant], columns=["user_id", "item_id"]
    )
    tools = {
        "P@5": metrics.Precision(5),
        "P(denom='min')@5": metrics.Precision(5, r_precision=True),
        "R@5": metrics.Recall(5),
        "F1@5": metrics.F1Beta(5),
        "Success@5": metrics.HitRate(5),
        "AP@5": metrics.MAP(5),
        "AP(denom='k')@5": metrics.MAP(5, divide_by_k=True),
        "nDCG@5": metrics.NDCG(5),
        "nDCG(ideal='judged')@5": metrics.NDCG(5, divide_by_achievable=True),
        "RR@5": metrics.MRR(5),
    }
    in_order = [user.name for user in users]
    theirs = {name: tool.calc_per_user(reco, interactions).loc[in_order].to_list() for name, tool in tools.items()}
    peer_cases.assert_equal("rectools", theirs, users)
