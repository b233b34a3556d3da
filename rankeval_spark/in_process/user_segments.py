"""User segments: texts from the segment table, and numbers from inputs in bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.config.slicing import SEGMENTS, KindName
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import combine_chunks, index_in, take_or_null, to_arrow, to_codes, to_numpy, to_texts
from rankeval_spark.engine.slices import pack_columns
from rankeval_spark.errors import require_same
from rankeval_spark.result_rows.bands import find_edges, label_numbers, number_text
from rankeval_spark.result_rows.check_rows import CheckCount

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.config.slicing import Band
    from rankeval_spark.engine.arrays import Codes
    from rankeval_spark.measures.arrays import FloatVector


def _n_interactions(users: Codes, _: pa.Table) -> FloatVector:
    """Count the rows of each user."""
    return np.bincount(users.code, minlength=users.n_values).astype(np.float64)


NUMBERS: Final[Mapping[KindName, Callable[[Codes, pa.Table], FloatVector]]] = {"train": _n_interactions}
"""The number of each user, (n_users,), from the user and the columns of each row, by kind of segment."""

require_same("NUMBERS", NUMBERS, get_args(KindName))


def to_segments(
    tables: Mapping[str, pa.Table],  # all rows of the inputs by name, those without a user too
    request: Request,
) -> tuple[pa.Table | None, list[CheckCount]]:
    """Build the user segments: texts from the segment table, and bands over numbers from inputs.

    Returns a table of texts, None without any segment. The facts hold edges of each band as ``sample_keys``, and how
    many of all users (``total``) have no number (``count``).
    """
    segments, facts = tables.get(SEGMENTS), list[CheckCount]()
    if segments is not None:
        segments, facts = _replace_by_bands(segments, request.slicing.bands_from(SEGMENTS), SEGMENTS)
    for name, rows in tables.items():
        bands = request.slicing.bands_from(name)
        if name == SEGMENTS or not bands:
            continue
        read = {column for band in bands.values() for column in band.kind.columns}
        known = rows.select(sorted(read))
        known = known.filter(pc.is_valid(known[C.USER_ID])) if known[C.USER_ID].null_count else known
        users = to_codes(known[C.USER_ID])
        numbers = {segment: NUMBERS[band.of](users, known) for segment, band in bands.items() if band.of is not None}
        columns = {segment: to_arrow(of_users) for segment, of_users in numbers.items()}
        computed, found = _replace_by_bands(pa.Table.from_pydict({C.USER_ID: users.values, **columns}), bands, name)
        segments = computed if segments is None else _join_segments(segments, computed, request.absent)
        facts += found
    return segments, facts


def to_segment_rows(segments: pa.Table, names: Sequence[str]) -> pa.Table:
    """Build the rows of the engine: ``user_id`` and :data:`row_kinds.SEGMENT_VALUES`, texts in the order of names."""
    values = pack_columns([combine_chunks(segments[name]).cast(pa.string()) for name in names])
    return pa.Table.from_pydict({C.USER_ID: segments[C.USER_ID], row_kinds.SEGMENT_VALUES: values})


def _replace_by_bands(users: pa.Table, bands: Mapping[str, Band], name: str) -> tuple[pa.Table, list[CheckCount]]:
    """Replace the numbers of some columns by the names of their bands, and record their edges."""
    facts = []
    for column, band in bands.items():
        numbers = to_numpy(users[column]).astype(np.float64, copy=False)
        edges = find_edges(numbers, band)
        labels = label_numbers(numbers, edges, band)
        users = users.set_column(users.column_names.index(column), column, labels)
        sample_keys = [number_text(edge) for edge in edges.tolist()]
        facts.append(CheckCount(name, f"{BANDS}{column}", int(np.isnan(numbers).sum()), len(numbers), sample_keys))
    return users, facts


def _join_segments(segments: pa.Table, computed: pa.Table, absent: Mapping[str, str]) -> pa.Table:
    """Join segments that are computed to others; either may lack users. ``absent``: values of those, by segment."""
    ids = combine_chunks(segments[C.USER_ID])
    others = np.flatnonzero(index_in(computed[C.USER_ID], ids) < 0)
    row = np.append(np.arange(len(segments)), np.full(len(others), -1))
    place = np.append(index_in(ids, combine_chunks(computed[C.USER_ID])), others)
    columns = {name: take_or_null(segments[name], row) for name in segments.column_names}
    columns |= {name: take_or_null(computed[name], place) for name in computed.column_names}
    columns[C.USER_ID] = pa.concat_arrays([ids, take_or_null(computed[C.USER_ID], others)])
    filled = {name: to_texts([text])[0] for name, text in absent.items() if name in columns}
    return pa.Table.from_pydict(columns | {name: pc.coalesce(columns[name], text) for name, text in filled.items()})
