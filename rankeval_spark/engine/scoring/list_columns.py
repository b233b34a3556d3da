"""Columns of lists: how many values each list has, and which list each value is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector


def lengths_of(lists: pa.Array) -> IntVector:
    """Count the values of each list: int64; a NULL list has none."""
    return to_numpy(pc.list_value_length(lists), null=0).astype(np.int64)


def owners_of(lists: pa.Array) -> IntVector:
    """Give the list of each value of the flattened column."""
    return np.repeat(np.arange(len(lists)), lengths_of(lists))


def offsets_of(lengths: IntVector) -> IntVector:
    """Give the offsets of lists that follow each other: int32, one more than there are lists."""
    return np.append(0, np.cumsum(lengths)).astype(np.int32)


def list_column(lengths: IntVector, values: pa.Array, *, is_null: BoolVector | None = None) -> pa.ListArray:
    """Put values that follow each other into lists of these lengths."""
    mask = None if is_null is None else to_arrow(is_null)
    return pa.ListArray.from_arrays(to_arrow(offsets_of(lengths)), values, mask=mask)
