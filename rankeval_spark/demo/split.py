"""Roll a cut in time along each user's own sequence: what is trained on and what is held out on each date.

Two thirds of MovieLens users rate within a single day, so one cut in calendar time leaves hardly any user with both a
past and a future. Each user's last interactions are held out instead, a window after another. The price: when one
user's future is held out, other users' later interactions are in the training data.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.columns import GAIN, ITEM_ID, USER_ID
from rankeval_spark.demo.dataset import RATING, TIMESTAMP

if TYPE_CHECKING:
    import pandas as pd

_UNLIKED_RATING = 3


@dataclass(frozen=True)
class Cut:
    """One evaluation date: the interactions before each user's cut, and the window after it.

    Both frames have the columns of the interactions; ``held_out`` also has the ``gain``.
    """

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
    return tuple(
        Cut(
            date=date,
            train=ordered[n_after >= n_behind].reset_index(drop=True),
            held_out=with_gain(ordered[(n_after < n_behind) & (n_after >= n_behind - window)]),
        )
        for date, n_behind in zip(dates, behind, strict=True)
    )


def with_gain(held_out: pd.DataFrame) -> pd.DataFrame:
    """Add the gain max(rating - 3, 0): ratings of 4 and 5 are relevant, with gains 1 and 2."""
    gain = np.maximum(held_out[RATING].to_numpy(dtype=np.float64) - _UNLIKED_RATING, 0.0)
    return held_out.assign(**{GAIN: gain}).reset_index(drop=True)
