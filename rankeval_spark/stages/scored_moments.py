"""Score lists and summarise them in one worker: partial moments of every slice without the way through Spark.

The rows of (list, cutoff) are many: of 100,000 lists with 36 measures at six cutoffs, handing 600,000 of them back to
Spark, and from there to the worker that summarises them, takes more than the measures. Where nobody asks for the rows
they are not made; where somebody does, the moments of each batch of lists stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.moments import Rows, Summariser, count_columns
from rankeval_spark.stages.pooled import COUNTS, KEY_FIELDS, N_TIED, PARTIAL, STATE
from rankeval_spark.stages.population import IS_EVALUATED, is_evaluated
from rankeval_spark.stages.score import RELEVANT, Beside, Scored, Scorer
from rankeval_spark.stages.slicing import PACKED, encoded, segments_of, unpacked

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.measures import MeasureSet

_COUNTED: Final = tuple(name for name in COUNTS if name != N_TIED)
_PARTIAL_TYPE: Final = pa.struct([*KEY_FIELDS, (STATE, pa.binary())])


def to_partials(
    lists: DataFrame, *, measures: MeasureSet, slices: Sequence[Sequence[str]], policies: Policies
) -> DataFrame:
    """Score and summarise each partition, as ``score``, ``population`` and ``moments.to_partials`` do one by one.

    Parameters
    ----------
    lists : DataFrame
        The compact rows of ``match.to_lists`` with their segments; every user has one list of a model.
    measures : MeasureSet
        What is asked for.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone. ``slice_index`` counts them from 0.
    policies : Policies
        Who belongs to the population, and what users without a relevant judgement score.
    """
    scorer = Scorer.of(lists, measures=measures, zero_relevant=policies.zero_relevant, ties=policies.ties)
    worker = _Worker.of(measures, slices)

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = ({name: batch[name] for name in batch.schema.names} for batch in batches if batch.num_rows)
        yield from worker.summariser.summarise_rows(worker.to_rows(scorer.score(one), one) for one in columns)

    known = with_inputs(lists, slices=slices, policies=policies)
    return known.select(*worker.inputs, *scorer.expressions).mapInArrow(summarise, PARTIAL)


def beside_rows(measures: MeasureSet, slices: Sequence[Sequence[str]]) -> Beside:
    """Give what ``score.to_user_metrics`` needs to put the same partial moments beside the rows of each batch of lists.

    The lists are those of :func:`with_inputs`; :func:`of_rows` takes the moments out again.
    """
    worker = _Worker.of(measures, slices)
    types = ",".join(field.replace(" ", ":", 1) for field in PARTIAL.split(", "))
    return Beside(worker.inputs, f"array<struct<{types}>>", worker.to_cells)


def of_rows(scored: DataFrame) -> DataFrame:
    """Take the partial moments that stand beside scored rows: rows of ``pooled.PARTIAL``."""
    return scored.select(F.inline(C.PARTIALS))


def with_inputs(lists: DataFrame, *, slices: Sequence[Sequence[str]], policies: Policies) -> DataFrame:
    """Add to compact rows what is read of them beside what they are scored by: segments, and what they count for."""
    is_relevant = F.filter(C.JUDGED_GAINS, lambda gain: gain >= RELEVANT)
    belongs = is_evaluated(policies.population, policies.missing, policies.zero_relevant)
    segments, _ = segments_of(slices)
    return (
        lists.withColumns({C.N_JUDGED: F.size(C.JUDGED_GAINS), C.N_RELEVANT: F.size(is_relevant)})
        .withColumn(IS_EVALUATED, belongs)
        .select(*lists.columns, *segments, *count_columns())
    )


@dataclass(frozen=True)
class _Worker:
    """What the workers need beside the scores, and what they make of them.

    Attributes
    ----------
    inputs : tuple of str
        Columns of :func:`with_inputs` that are read.
    """

    inputs: tuple[str, ...]
    measures: MeasureSet
    summariser: Summariser

    @classmethod
    def of(cls, measures: MeasureSet, slices: Sequence[Sequence[str]]) -> _Worker:
        segments, sliced_by = segments_of(slices)
        inputs = (C.MODEL_ID, *([PACKED] if segments else []), *_COUNTED)
        weights = dict(measures.weights)
        return cls(inputs, measures, Summariser(measures.columns, weights, tuple(sliced_by), measures.ks, None))

    def to_cells(self, scored: Scored, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Summarise a batch; an array with a cell for each list and cutoff, all but the first of them empty."""
        rows = self.to_rows(scored, columns)
        by_slice = [
            pa.StructArray.from_arrays(batch.columns, fields=list(_PARTIAL_TYPE))
            for batch in self.summariser.summarise_rows([rows])
        ]
        partials = pa.concat_arrays(by_slice)
        ends = np.full(rows.table.num_rows + 1, len(partials), dtype=np.int32)
        ends[0] = 0
        return pa.ListArray.from_arrays(pa.array(ends), partials)

    def to_rows(self, scored: Scored, columns: Mapping[str, pa.Array]) -> Rows:
        """Give a row for each list and each cutoff; values of those outside the population are NaN."""
        counts = np.column_stack([columns[name].to_numpy(zero_copy_only=False) for name in _COUNTED])
        n_lists, ks = len(counts), self.measures.ks
        is_counted, has_both = (counts[:, _COUNTED.index(name), None] > 0 for name in ("n_population", "n_with_list"))
        n_tied = scored.counts[C.HAS_TIES] & has_both

        def flat(names: Sequence[str]) -> np.ndarray:
            values = np.empty((len(names), n_lists, len(ks)))
            for place, name in enumerate(names):
                values[place] = np.where(is_counted, scored.values[name], np.nan)
            return np.ascontiguousarray(values.reshape(len(names), n_lists * len(ks)).T)

        table = pa.Table.from_pydict({name: columns[name] for name in self.inputs if name not in _COUNTED})
        table = unpacked(encoded(table, [C.MODEL_ID]))
        table = pc.take(table, pa.array(np.repeat(np.arange(n_lists), len(ks))))
        table = table.append_column(C.K, pa.array(np.tile(np.array(ks, dtype=np.int32), n_lists)))
        by_row = np.column_stack([np.repeat(counts, len(ks), axis=0), n_tied.ravel()])
        return Rows(table, flat(self.measures.columns), flat(tuple(self.measures.weights.values())), by_row)
