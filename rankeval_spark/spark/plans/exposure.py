"""From the items of all lists to the rows of ``metrics`` of the measures that are functions of all lists together.

They have no value per user. What they are made of is small: for each group of lists (model, slice, cutoff) how many
items are in how many lists. These counts exist once with everyone and once without each of ``N_GROUPS`` groups of
users, from which the jackknife takes the spread. One pass counts (item, group of users); leaving a group out is then a
subtraction, and only for the items that the group was shown. Nothing that grows with users or items is collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import rows_by_key
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import fields
from rankeval_spark.engine.batch.buckets import GROUP, N_GROUPS
from rankeval_spark.engine.batch.codes import starts_of_runs
from rankeval_spark.engine.ranking.compact_lists import ITEMS, OPENS_USER
from rankeval_spark.measures import required_facts
from rankeval_spark.result_rows.exposure_rows import ENTRY_TYPE, SLICE, ExposureRows, to_entry_rows
from rankeval_spark.result_rows.histograms import ByLength, Entries, Times, to_entries
from rankeval_spark.result_rows.metric_rows import ROW_TYPE
from rankeval_spark.spark.spark_types import with_columns

if TYPE_CHECKING:
    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.measures import Measure
    from rankeval_spark.result_rows.exposure_rows import ParityRows

_GROUPS: Final = "_groups"
"""Column of the counts of each group of users: a struct each."""

_TIMES, _N_LISTS, _N_USERS = _COUNTS = "_times", "_n_lists", "_n_users"
_LENGTH: Final = "_length"

_LENGTHS: Final = "_lengths"
"""Field of them with the lists of a group by their lengths."""


def to_exposure_rows(
    lists: DataFrame,
    *,
    measures: Sequence[Measure],
    models: Sequence[str],
    catalogue: DataFrame | None,
    reported: ReportedSlices,
) -> DataFrame:
    """Return one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure, k).

    Over all users with a list, judged or not. A model without any list has rows too, as at a cutoff that none reaches:
    of all users, and of each slice in which another model has lists. A list that keeps the ranks of the log counts at a
    cutoff where it has an item at a rank up to it.

    `lists`: rows of ``MovedRows.to_item_lists``, down to the largest cutoff at least, with the values of the segments
    that slices are by. `measures`: of kind ``exposure``. `models`: names of all models. `catalogue`: ``item_id`` of all
    items, each as often as it comes; None where no measure needs it. `reported`: the slices.
    """
    ks = sorted({measure.k for measure in measures})
    lengths_at = sorted({measure.k for measure in measures if required_facts.LIST_LENGTHS in measure.needs})
    finisher = ExposureRows(tuple(measures), reported, tuple(models))
    return (
        lists.transform(_to_places, ks=ks, lengths_at=lengths_at, slices=reported.segments)
        .transform(_to_items, ks=ks, lengths_at=lengths_at)
        .transform(_with_catalogue, catalogue=catalogue)
        .mapInArrow(_Counted(tuple(ks), frozenset(lengths_at)).to_entries, ENTRY_TYPE)
        .unionByName(lists.sparkSession.createDataFrame(finisher.no_lists()))
        .transform(_with_catalogue_size, catalogue=catalogue)
        .repartition(*SLICE[1:])  # all models of a slice meet
        .mapInArrow(finisher.finish, ROW_TYPE)
    )


def _to_places(
    lists: DataFrame, *, ks: Sequence[int], lengths_at: Sequence[int], slices: Sequence[Sequence[str]]
) -> DataFrame:
    """Return a row per (recommended item, slice): its rank, the group of its user, and whether it opens a list.

    With the length of its list at the cutoffs ``lengths_at``.
    """
    lengths = {_at(_LENGTH, k): _n_within(k) for k in lengths_at}
    of_list = [C.MODEL_ID, GROUP, OPENS_USER, "_slices", *lengths]
    is_first = F.col("_place") == 0
    opens = {"_opens_list": is_first, "_opens_user": F.col(OPENS_USER) & is_first}
    return (
        with_columns(lists, {**lengths, "_slices": _slices_of(slices)})
        .select(*of_list, F.posexplode(ITEMS).alias("_place", "_item"))
        .select(*of_list, "_place", "_item.*")
        .where(F.lit(True) if C.WHOLE_LIST in ks else F.col(C.RANK) <= max(ks))
        .withColumns(opens)
        .select(*(C.MODEL_ID, C.ITEM_ID, C.RANK, GROUP, *opens, *lengths), F.inline("_slices"))
    )


def _n_within(k: int) -> Column:
    """Count the items of a list down to a rank."""
    return F.size(ITEMS if k == C.WHOLE_LIST else F.filter(ITEMS, lambda item: item[C.RANK] <= k))


def _slices_of(slices: Sequence[Sequence[str]]) -> Column:
    """Slices that the packed segment values of a user belong to: structs of ``slice_index`` and ``slice_values``."""
    names = list(dict.fromkeys(name for one in slices for name in one))
    return F.array(*(_slice(index, [names.index(name) for name in one]) for index, one in enumerate(slices)))


def _slice(index: int, places: Sequence[int]) -> Column:
    values = F.array(*(F.col(PACKED)[place] for place in places)).cast("array<string>")
    return F.struct(F.lit(index).alias("slice_index"), values.alias(C.SLICE_VALUES))


def _to_items(places: DataFrame, *, ks: Sequence[int], lengths_at: Sequence[int]) -> DataFrame:
    """Count the lists that hold an item: one row per (model, slice, item), with the counts of each group of users.

    A group has an array ``_lengths`` of its lists by their lengths, where these are requested.
    """
    counts = [F.count_if(_is_within(k)).alias(_at(_TIMES, k)) for k in ks]
    opened = [
        F.count_if(F.col(flag) & _is_within(k)).alias(_at(name, k))
        for k in ks
        for flag, name in (("_opens_list", _N_LISTS), ("_opens_user", _N_USERS))
    ]
    names = [_at(name, k) for k in ks for name in _COUNTS]
    key, lengths = (*SLICE, C.ITEM_ID), [_at(_LENGTH, k) for k in lengths_at]
    groups = places.groupBy(*key, GROUP, *lengths).agg(*counts, *opened)
    if lengths:
        by_length = F.collect_list(F.struct(*lengths, *(_at(_TIMES, k) for k in lengths_at))).alias(_LENGTHS)
        groups = groups.groupBy(*key, GROUP).agg(by_length, *(F.sum(name).alias(name) for name in names))
    group = F.struct(GROUP, *names, *([_LENGTHS] if lengths else []))
    return groups.groupBy(*key).agg(F.collect_list(group).alias(_GROUPS))


def _is_within(k: int) -> Column:
    return F.lit(k == C.WHOLE_LIST) | (F.col(C.RANK) <= k)


def _at(name: str, k: int) -> str:
    """Return the name of a column or field at a cutoff."""
    return f"{name}_{k}"


def _with_catalogue(items: DataFrame, *, catalogue: DataFrame | None) -> DataFrame:
    """Add whether the catalogue holds each item; n:1 on the item."""
    if catalogue is None:
        return items.withColumn("_is_known", F.lit(None).cast("int"))
    known = catalogue.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(1))
    return items.join(known, on=[C.ITEM_ID], how="left").withColumn("_is_known", F.coalesce("_is_known", F.lit(0)))


def _with_catalogue_size(histograms: DataFrame, *, catalogue: DataFrame | None) -> DataFrame:
    if catalogue is None:
        return histograms.withColumn("catalogue_size", F.lit(None).cast("double"))
    size = catalogue.agg(F.count_distinct(C.ITEM_ID).cast("double").alias("catalogue_size"))
    return histograms.crossJoin(F.broadcast(size))


@dataclass(frozen=True)
class _Counted:
    """What the workers need to make entries of items; ``lengths_at`` are the cutoffs at which lengths are read."""

    ks: tuple[int, ...]
    lengths_at: frozenset[int]

    def to_entries(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of :data:`exposure_rows.ENTRY_TYPE`, some at a time: an entry comes in parts."""
        for batch in batches:
            first, cell = rows_by_key(pa.Table.from_batches([batch]), SLICE)
            keys = {name: pc.take(batch[name], to_arrow(first)) for name in SLICE}
            row, groups = _flat(batch[_GROUPS])
            for k in self.ks:
                yield to_entry_rows(self._at(k, batch, cell, row, groups), keys, k=k)

    def _at(
        self, k: int, batch: pa.RecordBatch, cell: np.ndarray, row: np.ndarray, groups: Mapping[str, pa.Array]
    ) -> Entries:
        """Build the entries at a cutoff."""
        times, n_lists, n_users = (to_numpy(groups[_at(name, k)]) for name in _COUNTS)
        group, n_cells = to_numpy(groups[GROUP]).astype(np.int64), cell.max(initial=-1) + 1
        bucket = cell[row] * N_GROUPS + group
        opened = (
            np.bincount(bucket, weights=counts, minlength=n_cells * N_GROUPS).reshape(n_cells, N_GROUPS)
            for counts in (n_lists, n_users)
        )
        shown = np.flatnonzero(times)
        held = row[shown][starts_of_runs(row[shown])]
        return to_entries(
            Times(row[shown], group[shown], times[shown]),
            cell=cell[held],
            is_known=to_numpy(batch["_is_known"]).astype(np.float64)[held],
            opened=(next(opened), next(opened)),
            by_length=_by_length(k, row, group, groups[_LENGTHS]) if k in self.lengths_at else None,
        )


def _by_length(k: int, row: np.ndarray, group: np.ndarray, lists: pa.Array) -> ByLength:
    """Return from the groups of each row the lists that hold its item, by their lengths."""
    of_group, lengths = _flat(lists)
    times = to_numpy(lengths[_at(_TIMES, k)])
    some = np.flatnonzero(times)
    own = of_group[some]
    return ByLength.of(row[own], to_numpy(lengths[_at(_LENGTH, k)])[some], group[own], times[some])


def _flat(lists: pa.Array) -> tuple[np.ndarray, dict[str, pa.Array]]:
    """Return the structs of all lists, field by field, and the list of each."""
    lengths = to_numpy(pc.list_value_length(lists))
    return np.repeat(np.arange(len(lists)), lengths), fields(lists.flatten())


def to_parity_rows(counts: DataFrame, *, rows: ParityRows) -> DataFrame:
    """Return one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure).

    Over all users with a list. A model without any list has rows of all users, and of each slice in which another model
    has lists.

    `counts`: rows of ``MovedRows.to_parity``.
    """
    no_lists = counts.sparkSession.createDataFrame(rows.no_lists())
    return counts.unionByName(no_lists).repartition(*SLICE[1:]).mapInArrow(rows.finish, ROW_TYPE)
