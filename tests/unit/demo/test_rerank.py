"""The recipe of docs/rerank.md on the demo's data: accuracy and diversity before and after, and the price."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.support.pages import blocks


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Run the page as a reader does; what it names."""
    found: dict[str, Any] = {}
    for block in blocks("python"):
        if block.page == "docs/rerank.md":
            exec(block.text, found)
    return found


def rows_of(names: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["measure"]: row for row in names["result"].comparisons.to_pylist()}


def test_diversity_is_bought_with_accuracy(names: dict[str, Any]) -> None:
    rows = rows_of(names)
    assert {row["n_users"] for row in rows.values()} <= {names["change"].shape[0], 943}
    assert rows["ILD"]["verdict"] == "better"
    assert 0 < rows["ILD"]["ci_low"] < rows["ILD"]["delta"] < rows["ILD"]["ci_high"]
    assert rows["nDCG"]["verdict"] == "worse"
    assert rows["nDCG"]["ci_low"] < rows["nDCG"]["delta"] < rows["nDCG"]["ci_high"] < 0
    assert 0 < rows["nDCG"]["loss_share"] < rows["nDCG"]["n_losses"] / rows["nDCG"]["n_users"]


def test_the_price_is_the_ratio_of_the_differences(names: dict[str, Any]) -> None:
    change = names["change"]
    price = -0.1 * change["nDCG"].sum() / change["ILD"].sum()
    assert names["price"] == pytest.approx(price, rel=1e-12)
    assert 0 < names["low"] < price < names["high"]
    # The delta method gives an interval of about the same width.
    parts = change["nDCG"] + price / 0.1 * change["ILD"]
    error = 0.1 * parts.std() / np.sqrt(len(change)) / change["ILD"].mean()
    assert (names["high"] - names["low"]) / 2 == pytest.approx(1.96 * error, rel=0.1)


def test_both_columns_rank_the_same_items(names: dict[str, Any]) -> None:
    log = names["log"]
    places = log.groupby("user_id")["mmr_score"].apply(lambda scores: sorted(-scores))
    assert all(own == list(range(50)) for own in places)


def test_each_place_has_the_best_item_that_is_left(names: dict[str, Any]) -> None:
    """A loop over all items left, for one user."""
    log, share = names["log"], 0.3
    own = log[log["user_id"] == log["user_id"].iloc[0]]
    vector = dict(zip(names["items"]["item_id"], names["items"]["vector"], strict=True))
    low, high = own["score"].min(), own["score"].max()
    relevance = {item: (score - low) / (high - low) for item, score in zip(own["item_id"], own["score"], strict=True)}
    chosen: list[int] = []
    while len(chosen) < 10:
        worth = {
            item: share * relevance[item]
            - (1 - share) * max([0.0, *(float(vector[item] @ vector[other]) for other in chosen)])
            for item in relevance
            if item not in chosen
        }
        chosen.append(max(worth, key=worth.__getitem__))
    assert own.sort_values("mmr_score", ascending=False)["item_id"].to_list()[:10] == chosen


def test_intra_list_distance_is_that_of_the_vectors(names: dict[str, Any]) -> None:
    result = names["result"]
    vector = dict(zip(names["items"]["item_id"], names["items"]["vector"], strict=True))
    user = names["log"]["user_id"].iloc[0]
    ranked = [row for row in result.ranked_items.to_pylist() if row["user_id"] == user and row["rank"] <= 10]
    for model in ("by score", "re-ranked"):
        own = [vector[row["item_id"]] for row in ranked if row["model_id"] == model]
        expected = float(np.mean([1 - one @ other for one, other in combinations(own, 2)]))
        (found,) = (
            row["value"]
            for row in result.user_values.to_pylist()
            if (row["model_id"], row["user_id"], row["measure"]) == (model, user, "ILD")
        )
        assert found == pytest.approx(expected, rel=0, abs=1e-9)
