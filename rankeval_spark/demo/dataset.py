"""Ratings with the users and items they are about: what a demo's models are trained on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import pandas as pd

from rankeval_spark.columns import ITEM_ID, USER_ID

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
    """Interactions, users and items of one source.

    Attributes
    ----------
    source_name : str
        Name of the data in messages.
    interactions : DataFrame
        One row a rating, unique by user and item: columns of :data:`INTERACTION_COLUMNS`, seconds since 1970.
    users : DataFrame
        One row a user, also for users without a rating: columns of :data:`USER_COLUMNS`.
    items : DataFrame
        One row an item: columns of :data:`ITEM_COLUMNS`.
    """

    source_name: str
    interactions: pd.DataFrame
    users: pd.DataFrame
    items: pd.DataFrame

    def fingerprint(self) -> str:
        """SHA-256 of every value of the three frames, in order."""
        digest = hashlib.sha256(self.source_name.encode())
        for frame in (self.interactions, self.users, self.items):
            digest.update("\t".join(frame.columns).encode())
            digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        return digest.hexdigest()

    def description(self) -> str:
        """Name the source and how much there is of it."""
        return (
            f"{self.source_name}: {len(self.interactions):,} ratings"
            f" of {len(self.users):,} users on {len(self.items):,} items"
        )
