"""Inputs of an evaluation in this process, written down by hand."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.inputs.arrow.reading import Source

_TYPES: Final = {
    C.SCORE: pa.float64(),
    C.RANK: pa.int32(),
    C.GAIN: pa.float64(),
    **dict.fromkeys((C.VALUE, C.WEIGHT), pa.float64()),
    C.INTERACTED_AT: pa.timestamp("us", tz="UTC"),
    C.CATEGORIES: pa.list_(pa.string()),
    C.VECTOR: pa.list_(pa.float64()),
    C.PUBLISHED_AT: pa.date32(),
    "age": pa.float64(),
}
"""Types of the columns that are no ids; segments are texts, but an age, which bands are made of."""

_IDS: Final = {"string": pa.string(), "bigint": pa.int64()}


def source(
    name: str, columns: str, *rows: tuple[Any, ...], ids: str = "string", unreadable: list[bool] | None = None
) -> Source:
    """Make an input of rows; judgements without a gain have gain 1.

    Parameters
    ----------
    columns : str
        Names, such as ``"user_id item_id score"``.
    ids : {"string", "bigint"}
        Type of users and items.
    """
    names = columns.split()
    of_ids = dict.fromkeys((C.USER_ID, C.ITEM_ID), _IDS[ids])
    cells = zip(*rows, strict=True) if rows else ([] for _ in names)
    table = pa.table(
        {
            each: pa.array(list(column), of_ids.get(each, _TYPES.get(each, pa.string())))
            for each, column in zip(names, cells, strict=True)
        }
    )
    if name == "held_out" and C.GAIN not in names:
        table = table.append_column(C.GAIN, pa.array([1.0] * table.num_rows, pa.float64()))
    lost = None if unreadable is None else pa.array(unreadable, pa.bool_())
    return Source(name, table, frozenset(names), {each: ids for each in of_ids if each in names}, lost)
