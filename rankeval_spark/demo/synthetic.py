"""Seeded ratings of the shape of MovieLens 100K, for a machine without network.

Users and items have latent tastes; what a user rates, and how high, follows from them and from the item's fame, so
that a model which learns tastes beats popularity by about as much as on MovieLens. The numbers mean no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from rankeval_spark.columns import ITEM_ID, USER_ID
from rankeval_spark.demo.dataset import (
    AGE,
    GENDER,
    GENRES,
    INTERACTION_COLUMNS,
    ITEM_COLUMNS,
    OCCUPATION,
    RATING,
    TIMESTAMP,
    TITLE,
    USER_COLUMNS,
    Dataset,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOURCE_NAME: Final = "synthetic"

_OCCUPATIONS: Final = ("student", "educator", "engineer", "writer", "librarian", "artist", "retired", "other")
_GENRES: Final = ("Action", "Comedy", "Drama", "Romance", "Thriller", "Children", "Documentary", "Horror")
_SHARE_OF_WOMEN: Final = 0.29
_FIRST_SECOND: Final = 875_000_000


@dataclass(frozen=True)
class Shape:
    """Size of the data: each user has at least ``n_least`` interactions, the busiest some ten times the mean.

    There must be more items than the busiest user has interactions.
    """

    n_users: int = 943
    n_items: int = 1_682
    n_interactions: int = 100_000
    n_least: int = 20
    n_tastes: int = 8


DEFAULT_SHAPE: Final = Shape()


def make_dataset(shape: Shape = DEFAULT_SHAPE, *, seed: int = 100) -> Dataset:
    """Return a data set; equal arguments give equal values."""
    rng = np.random.default_rng(seed)
    tastes = rng.dirichlet(np.full(shape.n_tastes, 0.3), shape.n_users)
    traits = rng.dirichlet(np.full(shape.n_tastes, 0.3), shape.n_items)
    return Dataset(
        source_name=SOURCE_NAME,
        interactions=_interactions(tastes @ traits.T, _activity(shape, rng), rng),
        users=_users(tastes, rng),
        items=_items(traits),
    )


def _activity(shape: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
    """Interactions of each user: many light users, a few heavy ones, and the declared total."""
    weight = np.minimum(rng.lognormal(0.0, 1.1, shape.n_users), 8.0)
    free = shape.n_interactions - shape.n_least * shape.n_users
    return shape.n_least + rng.multinomial(free, weight / weight.sum())


def _interactions(fit: NDArray[np.float64], activity: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
    """Draw the items of each user, famous and fitting ones first, and ratings of them in any order.

    Adding Gumbel noise to log weights and keeping the largest sums draws without replacement by those weights.
    """
    affinity: NDArray[np.float64] = (fit - fit.mean()) / fit.std()
    fame = rng.normal(0.0, 1.2, size=(fit.shape[1],))
    picks = np.argsort(-(fame + 0.6 * affinity + rng.gumbel(size=fit.shape)), axis=1, kind="stable")
    user = np.repeat(np.arange(len(activity)), activity)
    place = np.arange(len(user)) - np.repeat(np.cumsum(activity) - activity, activity)
    item = picks[user, place][np.lexsort((rng.random(len(user)), user))]
    liking = 3.1 + 0.25 * fame[item] + 0.5 * affinity[user, item] + rng.normal(0.0, 1.0, len(user))
    return pd.DataFrame(
        {
            USER_ID: user + 1,
            ITEM_ID: item + 1,
            RATING: np.clip(np.rint(liking), 1, 5),
            TIMESTAMP: _timestamps(user, rng),
        }
    ).astype(INTERACTION_COLUMNS)


def _timestamps(user: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Seconds, ascending within a user; every second rating shares its predecessor's, as in MovieLens."""
    start = rng.integers(0, 200 * 86_400, user.max() + 1)
    pause = np.where(rng.random(len(user)) < 1 / 2, 0, rng.integers(1, 60, len(user)))
    seconds: NDArray[np.int64] = _FIRST_SECOND + start[user] + np.cumsum(pause)
    return seconds


def _users(tastes: NDArray[np.float64], rng: np.random.Generator) -> pd.DataFrame:
    """Attributes of the users; the occupation follows the strongest taste, so that slices differ."""
    n_users = len(tastes)
    return pd.DataFrame(
        {
            USER_ID: np.arange(1, n_users + 1),
            AGE: np.clip(np.rint(rng.normal(34, 12, n_users)), 10, 75).astype(np.int64),
            GENDER: np.where(rng.random(n_users) < _SHARE_OF_WOMEN, "F", "M"),
            OCCUPATION: np.array(_OCCUPATIONS)[tastes.argmax(axis=1) % len(_OCCUPATIONS)],
        }
    ).astype(USER_COLUMNS)


def _items(traits: NDArray[np.float64]) -> pd.DataFrame:
    ids = np.arange(1, len(traits) + 1)
    genres = np.array(_GENRES)[traits.argmax(axis=1) % len(_GENRES)]
    titles = [f"Item {item_id}" for item_id in ids]
    return pd.DataFrame({ITEM_ID: ids, TITLE: titles, GENRES: genres}).astype(ITEM_COLUMNS)
