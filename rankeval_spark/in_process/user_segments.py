"""The segments of the users: texts of the segment table, numbers in bands, and how active users were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.config.slicing import NO_INTERACTION, segments_from_train
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import in_one_piece, places_in, taken_or_null, to_arrow, to_codes, to_numpy, to_texts
from rankeval_spark.engine.slices import packed_values
from rankeval_spark.result_rows.bands import edges_of, labels_of, number_text
from rankeval_spark.result_rows.check_rows import CheckCount

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.config.slicing import Band


def to_segments(
    segments: pa.Table | None, train: pa.Table | None, request: Request
) -> tuple[pa.Table | None, list[CheckCount]]:
    """Build the segments of the users: texts, numbers in bands, and how active users were where a band needs that.

    ``segments`` and ``train`` are all rows of these tables, those without a user too. Returns a table of texts, with a
    column more for each band of ``train``; None without any segment. A user without an interaction is
    :data:`bands.NO_INTERACTION`. The facts hold edges of each band as ``sample_keys``, and how many of all users
    (``total``) have no number (``count``).
    """
    counted, facts = segments_from_train(request.slicing.bands), list[CheckCount]()
    if segments is not None:
        own = {name: band for name, band in request.slicing.bands.items() if name not in counted}
        segments, found = _with_bands(segments, own, "segments")
        facts += found
    if not counted or train is None:
        return segments, facts
    users = to_codes(train[C.USER_ID].drop_null())
    n_interactions = to_arrow(np.bincount(users.code, minlength=users.n_values).astype(np.float64))
    activity = pa.Table.from_pydict({C.USER_ID: users.values, **dict.fromkeys(counted, n_interactions)})
    activity, found = _with_bands(activity, {name: request.slicing.bands[name] for name in counted}, "train")
    return (activity if segments is None else _with_activity(segments, activity)), [*facts, *found]


def to_segment_rows(segments: pa.Table, names: Sequence[str]) -> pa.Table:
    """Build the rows of the engine: ``user_id`` and :data:`row_kinds.SEGMENT_VALUES`, texts in the order of names."""
    values = packed_values([in_one_piece(segments[name]).cast(pa.string()) for name in names])
    return pa.Table.from_pydict({C.USER_ID: segments[C.USER_ID], row_kinds.SEGMENT_VALUES: values})


def _with_bands(users: pa.Table, bands: Mapping[str, Band], name: str) -> tuple[pa.Table, list[CheckCount]]:
    """Replace the numbers of some columns by the names of their bands, and record their edges."""
    facts = []
    for column, band in bands.items():
        numbers = to_numpy(users[column]).astype(np.float64, copy=False)
        edges = edges_of(numbers, band)
        labels = labels_of(numbers, edges, band)
        users = users.set_column(users.column_names.index(column), column, labels)
        sample_keys = [number_text(edge) for edge in edges.tolist()]
        facts.append(CheckCount(name, f"{BANDS}{column}", int(np.isnan(numbers).sum()), len(numbers), sample_keys))
    return users, facts


def _with_activity(segments: pa.Table, activity: pa.Table) -> pa.Table:
    """Join how active users were to their segments; either may lack users."""
    ids = in_one_piece(segments[C.USER_ID])
    others = np.flatnonzero(places_in(activity[C.USER_ID], ids) < 0)
    row = np.append(np.arange(len(segments)), np.full(len(others), -1))
    place = np.append(places_in(ids, in_one_piece(activity[C.USER_ID])), others)
    columns = {name: taken_or_null(segments[name], row) for name in segments.column_names}
    columns[C.USER_ID] = pa.concat_arrays([ids, taken_or_null(activity[C.USER_ID], others)])
    none = to_texts([NO_INTERACTION])[0]
    of_train = [name for name in activity.column_names if name != C.USER_ID]
    return pa.Table.from_pydict(
        columns | {name: pc.coalesce(taken_or_null(activity[name], place), none) for name in of_train}
    )
