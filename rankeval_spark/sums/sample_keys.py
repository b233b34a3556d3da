"""The keys that a check names: the first and the last of those concerned, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_texts

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector

_ROWS_AT_ONCE: Final = 1 << 20
"""Rows whose keys are written out together: one Arrow array of texts holds 2 GiB."""

_DEFAULTS: Final = {C.MODEL_ID: C.ONE_MODEL, C.LIST_ID: C.ONE_LIST}
"""Key of every row of a table that does not have the column."""


def sample_row_keys(table: pa.Table, keys: Sequence[str], flag: BoolVector) -> list[str]:
    """Name the first and the last row with a flag, in the order of the bytes of their keys' texts.

    Parameters
    ----------
    keys : sequence of str
        Columns, whose texts are joined by a blank; NULL is written as ``NULL``.
    flag : bool, shape (n_rows,)

    Returns
    -------
    list of str
        Two texts, one where both are the same, none without a flag.
    """
    if not flag.any():
        return []
    concerned = table.select([key for key in keys if key in table.column_names]).filter(to_arrow(flag))
    return sample_text_keys(_joined(batch, keys) for batch in concerned.to_batches(max_chunksize=_ROWS_AT_ONCE))


def sample_value_keys(values: pa.Array, flag: BoolVector) -> list[str]:
    """Name the first and the last of some ids with a flag, likewise."""
    return sample_text_keys([values.filter(to_arrow(flag)).cast(pa.string())]) if flag.any() else []


def sample_text_keys(parts: Iterable[pa.Array]) -> list[str]:
    """Return the first and the last of the texts, each once; those of no text are none."""
    ends = [pc.min_max(part).as_py() for part in parts if len(part)]
    if not ends:
        return []
    return list(dict.fromkeys((min(each["min"] for each in ends), max(each["max"] for each in ends))))


def _joined(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.Array:
    parts = [
        batch[key].cast(pa.string()) if key in batch.schema.names else to_texts([_DEFAULTS[key]])[0] for key in keys
    ]
    blank = to_texts([" "])[0]
    return pc.binary_join_element_wise(*parts, blank, null_handling="replace", null_replacement="NULL")
