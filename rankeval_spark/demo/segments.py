"""Segments of the users: who they are, and how much a model could have learnt about them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from rankeval_spark.columns import USER_ID
from rankeval_spark.demo.dataset import AGE, GENDER, OCCUPATION

AGE_BAND: Final = "age_band"
ACTIVITY: Final = "activity"
SEGMENTS: Final = (AGE_BAND, GENDER, OCCUPATION, ACTIVITY)

# Each band starts at its bound and ends before the next one's.
_AGE_BANDS: Final = {0: "under 18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-54", 55: "55 and over"}
_ACTIVITY_TIERS: Final = {0: "cold", 1: "light", 20: "medium", 100: "heavy"}


def of_users(users: pd.DataFrame, *, train: pd.DataFrame) -> pd.DataFrame:
    """Segment every user, one row each: age band, gender, occupation, and activity tier in ``train``.

    The tiers are cold (no interaction in training), light (1 to 19), medium (20 to 99) and heavy (100 and more).
    """
    n_interactions = users[USER_ID].map(train[USER_ID].value_counts()).fillna(0)
    return pd.DataFrame(
        {
            USER_ID: users[USER_ID],
            AGE_BAND: _banded(users[AGE], _AGE_BANDS),
            GENDER: users[GENDER],
            OCCUPATION: users[OCCUPATION],
            ACTIVITY: _banded(n_interactions, _ACTIVITY_TIERS),
        }
    )


def _banded(values: pd.Series[int], bands: dict[int, str]) -> pd.Series[str]:
    return pd.cut(values, [*bands, np.inf], right=False, labels=list(bands.values())).astype(object)
