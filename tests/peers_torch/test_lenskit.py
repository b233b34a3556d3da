"""The preset ``lenskit`` against LensKit."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from tests.support import peer_cases

reason = "LensKit asks for Python 3.11"
metrics = pytest.importorskip("lenskit.metrics", reason=reason)
ranking = pytest.importorskip("lenskit.metrics.ranking", reason=reason)
data = pytest.importorskip("lenskit.data", reason=reason)


def test_values_of_every_user_are_those_of_lenskit() -> None:
    users = peer_cases.random_users(2)
    tools: dict[str, Any] = {
        "P@5": metrics.Precision(n=5),
        "P": metrics.Precision(),
        "R@5": metrics.Recall(n=5),
        "Success@5": metrics.Hit(n=5),
        "AP@5": ranking.AveragePrecision(n=5),
        "AP": ranking.AveragePrecision(),
        "RR@5": metrics.RecipRank(n=5),
        "nDCG@5": metrics.NDCG(n=5),
        "nDCG(gains='grade')@5": metrics.NDCG(n=5, gain="rating"),
        "DCG@5": metrics.DCG(n=5),
        "RBP@5": metrics.RBP(n=5),
    }
    lists = [data.ItemList(item_ids=user.items, ordered=True) for user in users]
    tests = [
        data.ItemList(item_ids=user.relevant, rating=[float(user.grades[item]) for item in user.relevant])
        for user in users
    ]
    theirs = {
        name: [tool.measure_list(one, test) for one, test in zip(lists, tests, strict=True)]
        for name, tool in tools.items()
    }
    peer_cases.assert_equal("lenskit", theirs, users)


def test_mean_is_over_all_lists_with_zero_where_there_is_no_value() -> None:
    """The population `run` with zero_relevant `zero`: nobody without a list, everybody with one."""
    lists, tests = data.ItemListCollection(["user_id"]), data.ItemListCollection(["user_id"])
    for user in ("both", "extra"):
        lists.add(data.ItemList(item_ids=["a"], ordered=True), user_id=user)
    for user in ("both", "missing"):
        tests.add(data.ItemList(item_ids=["a"]), user_id=user)
    analysis = metrics.RunAnalysis()
    analysis.add_metric(metrics.NDCG(n=5))
    assert analysis.measure(lists, tests).list_summary().loc["NDCG@5", "mean"] == fmean([1, 0])
