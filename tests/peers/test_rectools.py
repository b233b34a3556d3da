"""The preset ``rectools`` against RecTools."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pytest
from rectools import metrics

from rankeval_spark import evaluate
from tests.support import peer_cases

if TYPE_CHECKING:
    from tests.support.peer_cases import User

KS: Final = (1, 3, 5, 10)


def tools(k: int) -> dict[str, Any]:
    """Return its measures at one cutoff, by our names."""
    return {
        f"P@{k}": metrics.Precision(k),
        f"P(denom='min')@{k}": metrics.Precision(k, r_precision=True),
        f"R@{k}": metrics.Recall(k),
        f"F1@{k}": metrics.F1Beta(k),
        f"F(beta=2)@{k}": metrics.F1Beta(k, beta=2),
        f"Success@{k}": metrics.HitRate(k),
        f"AP@{k}": metrics.MAP(k),
        f"AP(denom='k')@{k}": metrics.MAP(k, divide_by_k=True),
        f"nDCG@{k}": metrics.NDCG(k),
        f"nDCG(ideal='judged')@{k}": metrics.NDCG(k, divide_by_achievable=True),
        f"RR@{k}": metrics.MRR(k),
        f"PAUC@{k}": metrics.PartialAUC(k),
        f"PAP@{k}": metrics.PAP(k),
    }


def tables(users: list[User]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write the users down as RecTools takes them: recommendations and relevant interactions."""
    reco = pd.DataFrame(
        [(user.name, item, rank) for user in users for rank, item in enumerate(user.items, 1)],
        columns=["user_id", "item_id", "rank"],
    )
    interactions = pd.DataFrame(
        [(user.name, item) for user in users for item in user.relevant], columns=["user_id", "item_id"]
    )
    return reco, interactions


@pytest.mark.parametrize("k", KS)
def test_values_of_every_user_are_those_of_rectools(k: int) -> None:
    users = [*peer_cases.random_users(k), peer_cases.User(1000, [], {1: 1})]
    reco, interactions = tables(users)
    in_order = [user.name for user in users]
    theirs = {name: tool.calc_per_user(reco, interactions).loc[in_order].to_list() for name, tool in tools(k).items()}
    peer_cases.assert_equal("rectools", theirs, users)


def test_scores_without_ranks_have_the_numbers_of_the_ranks_that_they_make() -> None:
    reco, interactions = tables(peer_cases.random_users(8))
    scores = reco.assign(score=-reco["rank"]).drop(columns="rank")
    rows = evaluate(scores, interactions, measures=list(tools(5)), preset="rectools").leaderboard().to_pylist()
    for value, (name, tool) in zip([*rows[0].values()][2:], tools(5).items(), strict=True):
        assert value == pytest.approx(tool.calc(reco, interactions), rel=0, abs=1e-9), name


def test_mean_is_over_the_users_with_something_relevant() -> None:
    """The population `truth`: a missing list counts 0, and a user without a relevant item does not count."""
    users = [*peer_cases.random_users(6, n_users=100), peer_cases.User(100, [], {1: 1})]
    reco, interactions = tables([*users, peer_cases.User(101, [1, 2], {})])
    for name, tool in tools(5).items():
        [ours] = peer_cases.apply_preset("rectools", [name], users)
        assert fmean(ours) == pytest.approx(tool.calc(reco, interactions), rel=0, abs=1e-9), name
