"""Hashes of users, on which alone random draws depend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rankeval_spark.engine.batch.arrays import in_one_piece
from rankeval_spark.statistics.hashed_random import hashes_of_bytes

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector
    from rankeval_spark.statistics.hashed_random import Hashes


N_GROUPS: Final = 20
"""Groups of users that the jackknife leaves out in turn."""

GROUP: Final = "_group"
"""Column of the group of the jackknife that a user belongs to."""


def jackknife_groups(users: pa.Array) -> IntVector:
    """Give each user a group of the jackknife, by a hash of their id: int64, shape (n_users,)."""
    return hashes_of(users) % N_GROUPS


def hashes_of(users: pa.Array | pa.ChunkedArray) -> Hashes:
    """Hash each user's id as text in UTF-8 whatever its type, as ``xxhash64(cast(user_id AS string))`` in Spark.

    Parameters
    ----------
    users : pa.Array
        Texts or whole numbers, without NULL.

    Returns
    -------
    int64, shape (n_users,)
    """
    texts = in_one_piece(users).cast(pa.string())
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    places = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return hashes_of_bytes(text, places.astype(np.int64))
