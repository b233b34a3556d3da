"""The measures of all lists together, which have no value per user.

One pass over the ranked items counts them by slice, item, group of users and cutoff; all that follows works on these
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rankeval_spark import schemas
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.engine.batch.buckets import N_GROUPS
from rankeval_spark.engine.batch.codes import starts_of_runs
from rankeval_spark.engine.planning import exposure_parts
from rankeval_spark.in_process.shown_items import (
    ShownItems,
    UserSegments,
    UserSlice,
    to_audience,
    to_list_counts,
    to_shown_items,
    to_slices,
)
from rankeval_spark.measures import required_facts
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.exposure_rows import ExposureRows, ParityRows, to_entry_rows
from rankeval_spark.result_rows.histograms import ByLength, to_entries

if TYPE_CHECKING:
    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.in_process.assembly import Usable
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import IntVector


def to_exposure_rows(
    ranked: pa.Table,  # rows of ``Job.ranked_items`` of all users, down to the largest cutoff at least
    *,
    measures: Sequence[Measure],  # of kind ``exposure``; at least one
    models: Sequence[str],
    segments: UserSegments,
    catalogue: pa.Table | None,  # ``item_id`` of all items, each as often as it comes; None where no measure needs it
    reported: ReportedSlices,
) -> pa.Table:
    """Build one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure, k).

    Over all users with a list, judged or not. A model without any list has rows too, as at a cutoff that none reaches:
    of all users, and of each slice in which another model has lists. A list that keeps the ranks of the log counts at a
    cutoff where it has an item at a rank up to it.

    Raises RefusedError if a user with a list has two rows of segments.
    """
    ks = tuple(sorted({one.k for one in measures}, key=lambda k: k or np.inf))
    finisher = ExposureRows(tuple(measures), reported, tuple(models))
    has_lengths = {one.k for one in measures if required_facts.LIST_LENGTHS in one.needs}
    audience = to_audience(ranked)
    shown = to_shown_items(ranked, audience.pair, ks=ks, has_lengths=has_lengths, catalogue=catalogue)
    no_lists = finisher.no_lists().to_batches()
    found = (
        batch
        for one in to_slices(audience, segments, slices=reported.segments)
        for batch in finisher.finish(
            entries.append_column("catalogue_size", to_arrow(np.full(entries.num_rows, shown.catalogue_size)))
            for entries in (*_to_entries(shown, one), *([] if reported.segments[one.index] else no_lists))
        )
    )
    return pa.Table.from_batches(found, arrow_schema(schemas.METRICS))


def _to_entries(shown: ShownItems, one: UserSlice) -> Iterator[pa.RecordBatch]:
    """Count the items that are in so many lists, at each cutoff."""
    times = to_list_counts(shown, one)
    n_lists = _by_bucket(one, shown.list_pair, shown.list_band, n_bands=shown.n_bands)
    n_users = _by_bucket(one, *_first_bands(shown), n_bands=shown.n_bands)
    keys = one.key_columns()
    for band, k in enumerate(shown.ks):
        of_group = times.at(band)
        cell, item = np.divmod(of_group.holder[starts_of_runs(of_group.holder)], shown.n_items or 1)
        entries = to_entries(
            of_group,
            cell=cell,
            is_known=shown.is_known[item],
            opened=(n_lists[..., band], n_users[..., band]),
            by_length=_by_length(shown, one, k=k) if k in shown.lengths else None,
        )
        yield to_entry_rows(entries, keys, k=k)


def _first_bands(shown: ShownItems) -> tuple[IntVector, IntVector]:
    """Find each pair with a list, and the first of the bands of its lists."""
    pair, band = np.divmod(np.sort(shown.list_pair * shown.n_bands + shown.list_band), shown.n_bands)
    is_first = starts_of_runs(pair)
    return pair[is_first], band[is_first]


def _by_bucket(one: UserSlice, pair: IntVector, band: IntVector, *, n_bands: int) -> IntVector:
    """Count lists, or users, by cell, group of users and cutoff."""
    shape = (one.n_cells, N_GROUPS, n_bands)
    found = np.bincount(one.bucket[pair] * n_bands + band, minlength=one.n_cells * N_GROUPS * n_bands)
    return np.cumsum(found.reshape(shape), axis=2)


def _by_length(shown: ShownItems, one: UserSlice, *, k: int) -> ByLength:
    within = np.flatnonzero(shown.band <= shown.ks.index(k))
    pair, item = shown.pair[within], shown.item[within]
    return ByLength.of(one.cell[pair] * shown.n_items + item, shown.lengths[k][within], one.group[pair])


def to_exposures(usable: Usable) -> pa.Table:
    """Build the rows of ``schemas.METRICS``, from the model on, of these measures; none without a measure."""
    request, schema = usable.request, arrow_schema(schemas.METRICS)
    if not request.measure_set.exposures:
        return schema.empty_table()
    segments = UserSegments(usable.segments, request.absent)
    parity, others, of_train, reads_catalogue, depth = exposure_parts(request)
    by_catalogue = ((others, usable.catalogue if reads_catalogue else None), (of_train, usable.train))
    parts = []
    if others or of_train:
        ranked = usable.ranked_items(depth=depth)
        parts = [
            to_exposure_rows(
                ranked,
                measures=some,
                models=usable.models,
                segments=segments,
                catalogue=of,
                reported=request.reported,
            )
            for some, of in by_catalogue
            if some
        ]
    if parity.measures:
        rows = ParityRows(parity.measures, request.reported, usable.models)
        counts = [*usable.parity_counts(parity), *rows.no_lists().to_batches()]
        parts.append(pa.Table.from_batches(rows.finish(counts), schema))
    return pa.concat_tables([schema.empty_table(), *parts])
