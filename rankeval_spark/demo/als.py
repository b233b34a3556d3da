"""MLlib's implicit ALS: trained on Spark, its factors brought to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.ml.recommendation import ALS
from pyspark.sql import functions as F

from rankeval_spark.columns import ITEM_ID, USER_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from rankeval_spark.demo.settings import AlsSettings

# A round of ALS over 60,000 ratings is milliseconds of arithmetic: more blocks only add tasks.
_N_BLOCKS = 1
_WEIGHT = "_weight"


@dataclass(frozen=True)
class Factors:
    """What ALS learnt about some users, or about some items.

    Attributes
    ----------
    ids : int64, shape (n,), ascending
    vectors : float64, shape (n, rank)
    """

    ids: NDArray[np.int64]
    vectors: NDArray[np.float64]

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the vectors of ``ids``, which are sorted; NaN where nothing was learnt about one."""
        vectors = np.full((len(ids), self.vectors.shape[1]), np.nan)
        vectors[np.searchsorted(ids, self.ids)] = self.vectors
        return vectors


def fit(liked: DataFrame, settings: AlsSettings) -> tuple[Factors, Factors]:
    """Train on the liked interactions (integer ids), each with weight 1; return the factors of users and of items.

    ``ALSModel.recommendForAllUsers`` cannot leave out what a user has seen: it would have to return 700 more items for
    each user, as many as the busiest one has seen: 14 s of processor time a date. The factors are a few hundred
    kilobytes.
    """
    model = ALS(
        userCol=USER_ID,
        itemCol=ITEM_ID,
        ratingCol=_WEIGHT,
        implicitPrefs=True,
        rank=settings.rank,
        alpha=settings.alpha,
        regParam=settings.regularisation,
        maxIter=settings.iterations,
        seed=settings.seed,
        numUserBlocks=_N_BLOCKS,
        numItemBlocks=_N_BLOCKS,
    ).fit(liked.select(USER_ID, ITEM_ID, F.lit(1.0).alias(_WEIGHT)).coalesce(1))
    return _factors(model.userFactors), _factors(model.itemFactors)


def _factors(frame: DataFrame) -> Factors:
    """Bring factors to the driver: columns ``id`` and ``features``."""
    rows = frame.toPandas().sort_values("id")
    return Factors(rows["id"].to_numpy(np.int64), np.stack(rows["features"].to_list()).astype(np.float64))
