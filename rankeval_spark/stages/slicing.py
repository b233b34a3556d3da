"""What the Python nodes over scored rows share: chunks of rows, columns as numpy, and the groups rows fall into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, functions as F

from rankeval_spark import columns as C

USER_HASH: Final = "_user_hash"
"""Column of :func:`clean.user_hash`, where it travels to Python."""

ROWS_AT_ONCE: Final = 65_536
"""Rows summarised in one go: enough to make the work per slice small, little enough to stay under 50 MB."""

Key: TypeAlias = tuple[str, tuple[str | None, ...], int]
"""Model, values of the other columns, cutoff."""


def segments_of(slices: Sequence[Sequence[str]]) -> tuple[list[Column], list[tuple[str, ...]]]:
    """Give each segment that a slice is by a column of its own: the columns, and their names by slice."""
    names = sorted({name for one in slices for name in one})
    columns = {name: f"_segment_{index}" for index, name in enumerate(names)}
    values = [F.col(C.SEGMENTS)[name].alias(column) for name, column in columns.items()]
    return values, [tuple(columns[name] for name in one) for one in slices]


def in_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join Arrow's batches of some 10,000 rows to chunks of about ROWS_AT_ONCE."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held and any(one.num_rows for one in held):
        yield pa.Table.from_batches(held)


def doubles(table: pa.Table, name: str) -> np.ndarray:
    """Give a column of numbers."""
    values: np.ndarray = table[name].to_numpy()  # NULL arrives as NaN
    return values


def groups_of(table: pa.Table, names: tuple[str, ...], ks: tuple[int, ...]) -> tuple[list[Key], np.ndarray]:
    """Find the groups (model, slice values, k) that occur: their keys, and the group of each row."""
    encoded = [_encode(table[name]) for name in (C.MODEL_ID, *names)]
    code = positions_of(table, ks)
    for codes, values in encoded:
        code = code * len(values) + codes
    found, group = np.unique(code, return_inverse=True)
    return [_key(one, encoded, ks) for one in found.tolist()], group


def positions_of(table: pa.Table, ks: tuple[int, ...]) -> np.ndarray:
    """Find the position of each row's cutoff among ``ks``."""
    order = np.argsort(ks)
    positions: np.ndarray = order[np.searchsorted(np.asarray(ks)[order], table[C.K].to_numpy())].astype(np.int64)
    return positions


def _encode(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str | None]]:
    """Find the distinct values of a text column, NULL as a value of its own, and the position of each row's."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()


def _key(code: int, encoded: Sequence[tuple[np.ndarray, list[str | None]]], ks: tuple[int, ...]) -> Key:
    values: list[str | None] = []
    for _, labels in reversed(encoded):
        code, position = divmod(code, len(labels))
        values.append(labels[position])
    model, *slice_values = reversed(values)
    return str(model), tuple(slice_values), ks[code]
