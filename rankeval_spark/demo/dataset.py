"""Ratings with their users and items, cut into training and held-out interactions, and segments of the users.

Two thirds of MovieLens users rate within a single day, so one cut in calendar time leaves hardly any user with both a
past and a future. The cut is rolled along each user's own sequence instead: the last interactions are held out, a
window after another. The price: when one user's future is held out, other users' later interactions are in the training
data.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from rankeval_spark.columns import GAIN, ITEM_ID, USER_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATING: Final = "rating"
TIMESTAMP: Final = "timestamp"
AGE: Final = "age"
GENDER: Final = "gender"
OCCUPATION: Final = "occupation"
TITLE: Final = "title"
GENRES: Final = "genres"
INTERACTION_COLUMNS: Final = {USER_ID: "int64", ITEM_ID: "int64", RATING: "float64", TIMESTAMP: "int64"}
USER_COLUMNS: Final = {USER_ID: "int64", AGE: "int64", GENDER: "object", OCCUPATION: "object"}
ITEM_COLUMNS: Final = {ITEM_ID: "int64", TITLE: "object", GENRES: "object"}


@dataclass(frozen=True)
class Dataset:
    """Interactions, users and items of one source."""

    source_name: str  # in messages
    # One row a rating, unique by user and item: columns of :data:`INTERACTION_COLUMNS`, seconds since 1970
    interactions: pd.DataFrame
    users: pd.DataFrame  # one row a user, also for users without a rating: columns of :data:`USER_COLUMNS`
    items: pd.DataFrame  # one row an item: columns of :data:`ITEM_COLUMNS`

    def fingerprint(self) -> str:
        """SHA-256 of every value of the three frames, in order."""
        digest = hashlib.sha256(self.source_name.encode())
        for frame in (self.interactions, self.users, self.items):
            digest.update("\t".join(frame.columns).encode())
            digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        return digest.hexdigest()

    def description(self) -> str:
        """Return the source and its sizes in words."""
        return (
            f"{self.source_name}: {len(self.interactions):,} ratings"
            f" of {len(self.users):,} users on {len(self.items):,} items"
        )


_UNLIKED_RATING = 3


@dataclass(frozen=True)
class Cut:
    """One evaluation date: the interactions before each user's cut, and the window after it, with the ``gain``."""

    date: dt.date
    train: pd.DataFrame
    held_out: pd.DataFrame


def rolling_cuts(interactions: pd.DataFrame, *, dates: Sequence[dt.date], window: int) -> tuple[Cut, ...]:
    """Cut each user's sequence once a date, ``window`` interactions further each time.

    With three dates and a window of 10 the last 30, 20 and 10 interactions of a user lie behind the cut, and the next
    10 of them are held out. A user who is shorter than that has a shorter window, no training interactions, or is not
    in that date at all.

    A user's sequence is ordered by time and, where times are equal, by item id.
    """
    ordered = interactions.sort_values([USER_ID, TIMESTAMP, ITEM_ID], ignore_index=True)
    n_after = ordered.groupby(USER_ID).cumcount(ascending=False).to_numpy()
    behind = [window * n for n in range(len(dates), 0, -1)]
    cuts = []
    for date, n_behind in zip(dates, behind, strict=True):
        held_out = with_gain(ordered[(n_after < n_behind) & (n_after >= n_behind - window)])
        cuts.append(Cut(date, ordered[n_after >= n_behind].reset_index(drop=True), held_out))
    return tuple(cuts)


def with_gain(held_out: pd.DataFrame) -> pd.DataFrame:
    """Add the gain max(rating - 3, 0): ratings of 4 and 5 are relevant, with gains 1 and 2."""
    gain = np.maximum(held_out[RATING].to_numpy(dtype=np.float64) - _UNLIKED_RATING, 0.0)
    return held_out.assign(**{GAIN: gain}).reset_index(drop=True)


AGE_BAND: Final = "age_band"
ACTIVITY: Final = "activity"
SEGMENTS: Final = (AGE_BAND, GENDER, OCCUPATION, ACTIVITY)

# Each band starts at its bound and ends before the next one's.
_AGE_BANDS: Final = {0: "under 18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-54", 55: "55 and over"}
_ACTIVITY_TIERS: Final = {0: "cold", 1: "light", 20: "medium", 100: "heavy"}


def make_segments(users: pd.DataFrame, *, train: pd.DataFrame) -> pd.DataFrame:
    """Return the segments of every user: age band, gender, occupation, and tier of their activity in ``train``."""
    n_interactions = users[USER_ID].map(train[USER_ID].value_counts()).fillna(0)
    return pd.DataFrame(
        {
            USER_ID: users[USER_ID],
            AGE_BAND: _to_bands(users[AGE], _AGE_BANDS),
            GENDER: users[GENDER],
            OCCUPATION: users[OCCUPATION],
            ACTIVITY: _to_bands(n_interactions, _ACTIVITY_TIERS),
        }
    )


def _to_bands(values: pd.Series[int], bands: dict[int, str]) -> pd.Series[str]:
    return pd.cut(values, [*bands, np.inf], right=False, labels=list(bands.values())).astype(object)


SOURCE_NAME: Final = "synthetic"
_OCCUPATIONS: Final = ("student", "educator", "engineer", "writer", "librarian", "artist", "retired", "other")
_GENRES: Final = ("Action", "Comedy", "Drama", "Romance", "Thriller", "Children", "Documentary", "Horror")
_SHARE_OF_WOMEN: Final = 0.29
_FIRST_SECOND: Final = 875_000_000
_N_TASTES: Final = 8


def make_dataset(
    *,
    n_users: int = 943,
    n_items: int = 1_682,  # more than the interactions of the busiest user, ten times the mean
    n_interactions: int = 100_000,
    n_least: int = 20,  # interactions of a user
    seed: int = 100,
) -> Dataset:
    """Return a data set; equal arguments give equal values."""
    rng = np.random.default_rng(seed)
    tastes, traits = (rng.dirichlet(np.full(_N_TASTES, 0.3), n) for n in (n_users, n_items))
    weight = np.minimum(rng.lognormal(0.0, 1.1, n_users), 8.0)  # many light users, a few heavy ones
    activity = n_least + rng.multinomial(n_interactions - n_least * n_users, weight / weight.sum())
    return Dataset(
        source_name=SOURCE_NAME,
        interactions=_interactions(tastes @ traits.T, activity, rng),
        users=_users(tastes, rng),
        items=_items(traits),
    )


def _interactions(fit: NDArray[np.float64], activity: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
    """Draw the items of each user by log weights with Gumbel noise, without replacement, and ratings of them."""
    affinity: NDArray[np.float64] = (fit - fit.mean()) / fit.std()
    fame = rng.normal(0.0, 1.2, size=(fit.shape[1],))
    picks = np.argsort(-(fame + 0.6 * affinity + rng.gumbel(size=fit.shape)), axis=1, kind="stable")
    user = np.repeat(np.arange(len(activity)), activity)
    place = np.arange(len(user)) - np.repeat(np.cumsum(activity) - activity, activity)
    item = picks[user, place][np.lexsort((rng.random(len(user)), user))]
    liking = 3.1 + 0.25 * fame[item] + 0.5 * affinity[user, item] + rng.normal(0.0, 1.0, len(user))
    # Seconds ascend within a user; every second rating shares its predecessor's, as in MovieLens.
    start = rng.integers(0, 200 * 86_400, user.max() + 1)
    pause = np.where(rng.random(len(user)) < 1 / 2, 0, rng.integers(1, 60, len(user)))
    seconds = _FIRST_SECOND + start[user] + np.cumsum(pause)
    ratings = np.clip(np.rint(liking), 1, 5)
    columns = {USER_ID: user + 1, ITEM_ID: item + 1, RATING: ratings, TIMESTAMP: seconds}
    return pd.DataFrame(columns).astype(INTERACTION_COLUMNS)


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
