"""The models, on matrices small enough to work out by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
from scipy import sparse

from rankeval_spark.demo import models
from rankeval_spark.demo.models import AlsSettings


def training(*liked_by_user: list[int], n_items: int, n_users: int | None = None) -> models.Training:
    """Users 1, 2, ... who rated each of their items 5; items are 1 to ``n_items``."""
    rows = [(user, item, 5.0) for user, items in enumerate(liked_by_user, start=1) for item in items]
    return models.Training(
        user_ids=np.arange(1, (n_users or len(liked_by_user)) + 1),
        item_ids=np.arange(1, n_items + 1),
        interactions=pd.DataFrame(rows, columns=["user_id", "item_id", "rating"]),
    )


def lists(recommended: pd.DataFrame) -> dict[int, list[int]]:
    """Items of each user, in the order they were given."""
    return {int(str(user)): rows["item_id"].to_list() for user, rows in recommended.groupby("user_id")}


def test_cosine_is_co_occurrence_over_the_root_of_both_counts() -> None:
    # Two users with item i, three with j, one with both.
    liked = sparse.csr_matrix(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))

    expected = [[0.0, 1 / sqrt(2 * 3)], [1 / sqrt(2 * 3), 0.0]]
    np.testing.assert_allclose(models.cosine(liked), expected, rtol=0, atol=1e-12)


def test_item_without_interactions_is_similar_to_none() -> None:
    liked = sparse.csr_matrix(np.array([[1.0, 0.0], [1.0, 0.0]]))

    assert models.cosine(liked).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_only_the_nearest_neighbours_vote() -> None:
    similarity = np.array([[0.0, 0.1, 0.2], [0.3, 0.0, 0.2], [0.2, 0.4, 0.0]])

    assert models.nearest_neighbours(similarity, 1).tolist() == [[0.0, 0.0, 0.2], [0.3, 0.0, 0.0], [0.0, 0.4, 0.0]]


def test_popularity_leaves_out_what_was_seen_and_breaks_ties_by_item() -> None:
    recommended = models.popular(training([1, 2], [2, 3], [2], n_items=4), n=2)

    assert lists(recommended) == {1: [3], 2: [1], 3: [1, 3]}
    assert recommended["score"].to_list() == [1.0, 1.0, 1.0, 1.0]


def test_user_without_a_past_is_served_by_popularity_only() -> None:
    cold = training([1, 2], [2, 3], n_items=3, n_users=3)

    assert lists(models.popular(cold, n=3))[3] == [2, 1, 3]
    assert 3 not in lists(models.item_knn(cold, n=3, liked_rating=4.0, n_neighbours=3))


def test_neighbours_sum_the_similarity_to_what_the_user_liked() -> None:
    recommended = models.item_knn(training([1, 2], [1, 3], [1], n_items=4), n=4, liked_rating=4.0, n_neighbours=4)

    assert lists(recommended) == {1: [3], 2: [2], 3: [2, 3]}
    np.testing.assert_allclose(recommended["score"], [1 / sqrt(3)] * 4, rtol=0, atol=1e-12)


def test_disliked_items_count_as_seen_but_not_as_liked() -> None:
    past = training([1, 2], [1, 3], n_items=3)
    past.interactions.loc[(past.interactions["user_id"] == 1) & (past.interactions["item_id"] == 1), "rating"] = 1.0

    assert lists(models.item_knn(past, n=3, liked_rating=4.0, n_neighbours=3)) == {}


def test_factors_of_als_minimise_the_weighted_squared_error() -> None:
    """In every direction from the factors of the items, which are fitted last, the loss of Hu et al. grows."""
    rng, settings = np.random.default_rng(1), AlsSettings(rank=3, alpha=2.0, regularisation=0.3, iterations=4)
    liked = sparse.csr_matrix((rng.random((8, 6)) < 0.4).astype(float))
    users, items = models.fit_als(liked, settings)

    def loss(factors: models.FloatMatrix) -> float:
        wanted = liked.toarray()
        error = (1 + settings.alpha * wanted) * (wanted - users @ factors.T) ** 2
        of_items = (wanted.sum(axis=0) * (factors**2).sum(axis=1)).sum()
        return float(error.sum() + settings.regularisation * of_items)

    steps = [1e-4 * rng.normal(size=items.shape) for _ in range(20)]
    assert min(loss(items + step) + loss(items - step) for step in steps) > 2 * loss(items)
    slopes = [(loss(items + step) - loss(items - step)) / np.linalg.norm(step) for step in steps]
    np.testing.assert_allclose(slopes, 0, rtol=0, atol=1e-7)


def test_als_serves_users_and_items_with_a_liked_interaction_alone() -> None:
    recommended = models.matrix_factorisation(
        training([1, 2], [2, 3], [1, 3], n_items=5, n_users=4), AlsSettings(rank=2), n=5, liked_rating=4.0
    )
    assert lists(recommended) == {1: [3], 2: [1], 3: [2]}
