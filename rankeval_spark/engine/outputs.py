"""What the engine makes of lists: scored rows, partial moments, aggregates of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import COUNTED_VALUES, KEY_FIELDS, STATE
from rankeval_spark.engine.aggregation.partial_aggregates import PartialAggregator, Rows
from rankeval_spark.engine.aggregation.slices import PACKED, USER_HASH, encoded, segment_columns, unpacked
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.user_hashes import hashes_of
from rankeval_spark.engine.comparisons.value_cubes import ListValues
from rankeval_spark.engine.scoring.population import IS_EVALUATED, Members, members_of
from rankeval_spark.engine.scoring.scorer import COUNTS, Scored, Scorer, n_empty

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.engine.comparisons.paired_differences import DifferenceAggregator
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.statistics.resampling.replicate_sums import Draws

LISTS_AT_ONCE: Final = 16_384
"""Lists that are scored in one go: little enough that 36 measures at six cutoffs take some 100 MB."""

JUDGED_AT_ONCE: Final = 1 << 22
"""Judgements that they are compared with: those of a user are repeated for each of their lists."""


N_LISTED: Final = "_n_listed"
"""Usable rows of the list in the log, copies of items included."""

_PARTIALS_TYPE: Final = pa.list_(pa.struct([*KEY_FIELDS, (STATE, pa.binary()), (COUNTED_VALUES, pa.binary())]))


@dataclass(frozen=True)
class ListOutputs:
    """How lists become values and moments.

    Attributes
    ----------
    measures : MeasureSet
        The measures and cutoffs.
    policies : Policies
        Who belongs to the population, and what users without a relevant judgement score.
    slices : tuple of tuples of str
        Names of the segments of each slice; ``()`` is everyone.
    draws : Draws or None
        Of a bootstrap, for intervals of the means.
    counts_values : bool
        Whether the moments come with the values of the users, for quantiles.
    """

    measures: MeasureSet
    policies: Policies
    slices: tuple[tuple[str, ...], ...]
    draws: Draws | None = None
    counts_values: bool = False

    @property
    def _scorer(self) -> Scorer:
        return Scorer(self.measures, self.policies.zero_relevant, self.policies.ties, self.policies.judged_only)

    def to_partials(self, parts: Iterable[Mapping[str, pa.Array]]) -> Iterator[pa.RecordBatch]:
        """Score and summarise lists; every user has one list of a model.

        Parameters
        ----------
        parts
            Some lists at a time: columns of compact lists with ``model_id`` and, where there are slices,
            :data:`slices.PACKED`.

        Yields
        ------
        pa.RecordBatch
            Rows of ``aggregate_state.PARTIAL``; of a bootstrap with states too, see :data:`bootstrap_sums.WITH_STATES`.
        """
        yield from self._summariser.summarise_rows(self._rows_of_users(part, *self._scored(part)) for part in parts)

    def to_differences(
        self, parts: Iterable[Mapping[str, pa.Array]], aggregator: DifferenceAggregator
    ) -> Iterator[pa.RecordBatch]:
        """Score lists and compare their models; every user has one list of a model.

        Parameters
        ----------
        parts
            Some lists at a time as for :meth:`to_partials`, with ``user_id``; those of a user follow one another.
        aggregator : Aggregator
            What is compared.

        Yields
        ------
        pa.RecordBatch
            Rows of ``comparison_state.PARTIAL``.
        """
        yield from aggregator.aggregate_lists(self._values_of(part, aggregator.requested.stored) for part in parts)

    def _values_of(self, part: Mapping[str, pa.Array], columns: Sequence[str]) -> ListValues:
        """Score the lists of the population."""
        scored, members = self._scored(part)
        names = [name for name in (C.MODEL_ID, C.USER_ID, C.N_RECOMMENDED, PACKED) if name in part]
        table = pa.Table.from_pydict({name: part[name] for name in names}).filter(to_arrow(members.is_evaluated))
        values = np.stack([scored.values[name][members.is_evaluated] for name in columns], axis=-1)
        return ListValues(table.append_column(USER_HASH, to_arrow(hashes_of(table[C.USER_ID]))), values)

    def to_scored_rows(self, lists: Mapping[str, pa.Array], *, has_partials: bool) -> pa.RecordBatch:
        """Score lists: a row per list and cutoff.

        Parameters
        ----------
        lists
            Columns of compact lists with their key and segments.
        has_partials : bool
            Whether the first row has the partial moments of the lists; not of a bootstrap.
        """
        scored, members = self._scored(lists)
        partials = None
        if has_partials:
            partials = list(self._summariser.summarise_rows([self._rows_of_users(lists, scored, members)]))
        return self._to_batch(lists, scored, members, partials)

    @property
    def _summariser(self) -> PartialAggregator:
        measures = self.measures
        by = tuple(segment_columns(self.slices))
        weights = dict(measures.weights)
        return PartialAggregator(
            measures.columns,
            weights,
            by,
            measures.ks,
            self.draws,
            counts_values=self.counts_values,
            zeros=measures.without_hits,
        )

    def _scored(self, lists: Mapping[str, pa.Array]) -> tuple[Scored, Members]:
        """Score lists, and decide who belongs to the population."""
        scored = self._scorer.score(lists)
        n_judged, n_relevant = (scored.counts[name][:, 0] for name in (C.N_JUDGED, C.N_RELEVANT))
        n_recommended = to_numpy(lists[C.N_RECOMMENDED])
        return scored, members_of(n_judged, n_relevant, n_recommended, policies=self.policies)

    def _rows_of_users(self, part: Mapping[str, pa.Array], scored: Scored, members: Members) -> Rows:
        """Make a row per list and cutoff; values of those outside the population are NaN."""
        n_lists, ks = len(members.is_evaluated), self.measures.ks
        counts = np.column_stack([*members[:4], members.has_both]).astype(np.float64)
        n_tied = scored.counts[C.HAS_TIES] & members.has_both[:, None]

        def flat(columns: Sequence[str]) -> np.ndarray:
            values = np.empty((len(columns), n_lists, len(ks)))
            for place, name in enumerate(columns):
                values[place] = np.where(members.is_evaluated[:, None], scored.values[name], np.nan)
            return np.ascontiguousarray(values.reshape(len(columns), n_lists * len(ks)).T)

        table = pa.Table.from_pydict({C.MODEL_ID: part[C.MODEL_ID]})
        if PACKED in part:
            table = table.append_column(PACKED, part[PACKED])
        if self.draws is not None:
            table = table.append_column(USER_HASH, to_arrow(hashes_of(part[C.USER_ID])))
        table = unpacked(encoded(table, [C.MODEL_ID]))
        table = pc.take(table, to_arrow(np.repeat(np.arange(n_lists), len(ks))))
        table = table.append_column(C.K, to_arrow(np.tile(np.array(ks, dtype=np.int32), n_lists)))
        by_row = np.column_stack([np.repeat(counts, len(ks), axis=0), n_tied.ravel()])
        return Rows(table, flat(self.measures.columns), flat(tuple(self.measures.weights.values())), by_row)

    def _to_batch(
        self, part: Mapping[str, pa.Array], scored: Scored, members: Members, partials: list[pa.RecordBatch] | None
    ) -> pa.RecordBatch:
        n_lists, ks = len(members.is_evaluated), self.measures.ks
        repeated = to_arrow(np.repeat(np.arange(n_lists), len(ks)))
        n_items = to_numpy(part[C.N_RECOMMENDED]) - n_empty(part)
        n_listed = to_arrow((n_items + to_numpy(part[C.N_DUPLICATES])).astype(np.int32))
        by_list = {**{name: part[name] for name in (*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES)}, N_LISTED: n_listed}
        by_list |= {name: part[name] for name in C.FOR_CHECKS if name in part}
        columns = {name: pc.take(column, repeated) for name, column in by_list.items()}
        counts = {name: scored.counts[name].ravel() for name in COUNTS}
        is_evaluated = np.repeat(members.is_evaluated, len(ks))
        values = {name: scored.values[name].ravel() for name in self.measures.stored}
        columns |= {name: to_arrow(count.astype(COUNTS[name].to_pandas_dtype())) for name, count in counts.items()}
        columns[C.HAS_TIES] = to_arrow(counts[C.HAS_TIES], is_null=counts[C.N_RECOMMENDED] == 0)
        columns |= {name: to_arrow(value, is_null=np.isnan(value) | ~is_evaluated) for name, value in values.items()}
        columns[IS_EVALUATED] = to_arrow(is_evaluated)
        if partials is not None:
            columns[C.PARTIALS] = _in_first_row(partials, len(is_evaluated))
        return pa.RecordBatch.from_pydict(columns)


def _in_first_row(partials: list[pa.RecordBatch], n_rows: int) -> pa.ListArray:
    """Put partial moments into the first of some rows."""
    cells = [pa.StructArray.from_arrays(one.columns, fields=list(_PARTIALS_TYPE.value_type)) for one in partials]
    flat = pa.concat_arrays(cells) if cells else pa.nulls(0, _PARTIALS_TYPE.value_type)
    ends = np.full(n_rows + 1, len(flat), dtype=np.int32)
    ends[0] = 0
    return pa.ListArray.from_arrays(to_arrow(ends), flat)
