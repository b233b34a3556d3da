"""Three recommenders, none of them the subject of the demo: popularity, item-item neighbours, implicit ALS.

From the interactions of one cut, each returns the best items that a user has not interacted with in training:
one row per (user, item), columns ``user_id``, ``item_id``, ``score``. Ties are broken by item id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from rankeval_spark.columns import ITEM_ID, SCORE, USER_ID
from rankeval_spark.demo.dataset import RATING

if TYPE_CHECKING:
    from rankeval_spark.demo.dataset import Dataset

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True)
class AlsSettings:
    """Settings of implicit ALS, chosen on the rows that the demo evaluates on, which flatters it."""

    rank: int = 30
    alpha: float = 1.0
    regularisation: float = 0.1
    iterations: int = 10
    seed: int = 7


@dataclass(frozen=True)
class Training:
    """Interactions of one cut, and the users and items that are the rows and columns of its matrices."""

    user_ids: NDArray[np.int64]  # all known users and items, ascending, those without a training interaction too
    item_ids: NDArray[np.int64]
    interactions: pd.DataFrame  # columns ``user_id``, ``item_id``, ``rating``

    @classmethod
    def of(cls, train: pd.DataFrame, data: Dataset) -> Training:
        """Return the training interactions of a cut, with all users and items of the data set."""
        return cls(
            user_ids=np.unique(data.users[USER_ID].to_numpy()),
            item_ids=np.unique(data.items[ITEM_ID].to_numpy()),
            interactions=train[[USER_ID, ITEM_ID, RATING]],
        )

    def liked(self, liked_rating: float) -> pd.DataFrame:
        """Return the interactions rated ``liked_rating`` or higher."""
        return self.interactions[self.interactions[RATING] >= liked_rating]

    def matrix(self, interactions: pd.DataFrame) -> sparse.csr_matrix:
        """Return the users x items matrix with a 1 for each interaction."""
        rows = np.searchsorted(self.user_ids, interactions[USER_ID].to_numpy())
        columns = np.searchsorted(self.item_ids, interactions[ITEM_ID].to_numpy())
        shape = (len(self.user_ids), len(self.item_ids))
        return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def popular(training: Training, *, n: int) -> pd.DataFrame:
    """Recommend the items most interacted with to all users, also to those without a training interaction."""
    n_users_of_item = np.asarray(training.matrix(training.interactions).sum(axis=0)).ravel()
    scores = np.tile(n_users_of_item, (len(training.user_ids), 1))
    return _best_unseen(training, np.where(scores > 0, scores, -np.inf), n=n)


def item_knn(training: Training, *, n: int, liked_rating: float, n_neighbours: int) -> pd.DataFrame:
    """Score an item by its similarity to the items the user liked, over its nearest neighbours; no list if none."""
    liked = training.matrix(training.liked(liked_rating))
    scores = liked @ nearest_neighbours(cosine(liked), n_neighbours)
    return _best_unseen(training, np.where(scores > 0, scores, -np.inf), n=n)


def matrix_factorisation(training: Training, settings: AlsSettings, *, n: int, liked_rating: float) -> pd.DataFrame:
    """Score an item by the inner product of its factors and the user's, where both have a liked interaction."""
    liked = training.matrix(training.liked(liked_rating))
    users, items = fit_als(liked, settings)
    is_known = (liked.sum(axis=1) > 0) & (liked.sum(axis=0) > 0)
    return _best_unseen(training, np.where(is_known, users @ items.T, -np.inf), n=n)


def fit_als(liked: sparse.csr_matrix, settings: AlsSettings) -> tuple[FloatMatrix, FloatMatrix]:
    """Fit implicit ALS; return the factors of users, (users, rank), and of items, (items, rank).

    A liked item weighs 1 + alpha, any other 1; factors without an interaction are 0. The regularisation grows with the
    number of interactions, as MLlib has it.
    Hu, Koren & Volinsky (2008), Collaborative filtering for implicit feedback datasets.
    """
    items = np.random.default_rng(settings.seed).normal(scale=settings.rank**-0.5, size=(liked.shape[1], settings.rank))
    for _ in range(settings.iterations):
        users = _solve_factors(liked, items, settings)
        items = _solve_factors(liked.T.tocsr(), users, settings)
    return users, items


def _solve_factors(liked: sparse.csr_matrix, others: FloatMatrix, settings: AlsSettings) -> FloatMatrix:
    """Solve the ridge regression of each row of a matrix on the factors of its columns: (rows, rank)."""
    rank = settings.rank
    products = (others[:, :, None] * others[:, None, :]).reshape(len(others), -1)  # (columns, rank * rank)
    n_liked = np.asarray(liked.sum(axis=1)).reshape(-1, 1, 1)
    normal = others.T @ others + settings.alpha * (liked @ products).reshape(-1, rank, rank)
    ridge = settings.regularisation * np.maximum(n_liked, 1) * np.eye(rank)
    return np.linalg.solve(normal + ridge, (1 + settings.alpha) * (liked @ others)[:, :, None])[:, :, 0]


def cosine(liked: sparse.csr_matrix) -> FloatMatrix:
    """Cosine of each pair of items, n(i and j) / sqrt(n(i) n(j)); 0 on the diagonal, and for items without a user."""
    together: FloatMatrix = (liked.T @ liked).toarray()
    n_users = together.diagonal().copy()
    similarity = together / np.sqrt(np.maximum(np.outer(n_users, n_users), 1.0))
    np.fill_diagonal(similarity, 0.0)
    return similarity


def nearest_neighbours(similarity: FloatMatrix, n_neighbours: int) -> FloatMatrix:
    """Return the ``n_neighbours`` largest entries of each column, the first of equal ones, and 0 elsewhere."""
    rows = np.argsort(-similarity, axis=0, kind="stable")[:n_neighbours]
    kept = np.zeros_like(similarity)
    np.put_along_axis(kept, rows, np.take_along_axis(similarity, rows, axis=0), axis=0)
    return kept


def _best_unseen(training: Training, scores: FloatMatrix, *, n: int) -> pd.DataFrame:
    """Rank each user's unseen items and keep the first ``n`` whose score is above minus infinity."""
    has_seen = training.matrix(training.interactions).toarray() > 0
    scores = np.where(has_seen, -np.inf, scores)
    items = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    best = np.take_along_axis(scores, items, axis=1)
    users, places = np.nonzero(best > -np.inf)
    item_ids = training.item_ids[items[users, places]]
    return pd.DataFrame({USER_ID: training.user_ids[users], ITEM_ID: item_ids, SCORE: best[users, places]})
