"""Hashes of users, on which alone random draws depend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rankeval_spark.engine.arrays import in_one_piece
from rankeval_spark.statistics.hashing import hashes_of_bytes

if TYPE_CHECKING:
    from rankeval_spark.statistics.hashing import Hashes


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
