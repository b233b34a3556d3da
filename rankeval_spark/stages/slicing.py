"""What the Python nodes over scored rows share: chunks of rows, columns as numpy, and the groups rows fall into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def encoded(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Replace text columns by their distinct values and the position of each row's, which every grouping needs."""
    for name in names:
        column = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def groups_of(table: pa.Table, names: tuple[str, ...], ks: tuple[int, ...]) -> tuple[list[Key], np.ndarray]:
    """Find the groups (model, slice values, k) that occur: their keys, and the group of each row."""
    columns = [_encode(table[name]) for name in (C.MODEL_ID, *names)]
    code = positions_of(table, ks)
    for codes, values in columns:
        code = code * len(values) + codes
    found, group = np.unique(code, return_inverse=True)
    return [_key(one, columns, ks) for one in found.tolist()], group


def positions_of(table: pa.Table, ks: tuple[int, ...]) -> np.ndarray:
    """Find the position of each row's cutoff among ``ks``."""
    order = np.argsort(ks)
    positions: np.ndarray = order[np.searchsorted(np.asarray(ks)[order], table[C.K].to_numpy())].astype(np.int64)
    return positions


def _encode(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str | None]]:
    """Find the distinct values of a text column, NULL as a value of its own, and the position of each row's."""
    column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    return column.indices.to_numpy(), column.dictionary.to_pylist()


def _key(code: int, columns: Sequence[tuple[np.ndarray, list[str | None]]], ks: tuple[int, ...]) -> Key:
    values: list[str | None] = []
    for _, labels in reversed(columns):
        code, position = divmod(code, len(labels))
        values.append(labels[position])
    model, *slice_values = reversed(values)
    return str(model), tuple(slice_values), ks[code]
