"""Score lists and summarise them in one worker: partial moments of every slice without the rows between.

Where nobody asks for the rows of (list, cutoff), they need not be: of 100,000 lists with 36 measures at six cutoffs,
handing 600,000 rows back to Spark, and from there to the worker that summarises them, took more than the measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.moments import Rows, Summariser, count_columns
from rankeval_spark.stages.pooled import COUNTS, N_TIED, PARTIAL
from rankeval_spark.stages.population import IS_EVALUATED, is_evaluated
from rankeval_spark.stages.score import RELEVANT, Scorer
from rankeval_spark.stages.slicing import doubles, encoded, segments_of, unpacked

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.measures import MeasureSet

_COUNTED: Final = tuple(name for name in COUNTS if name != N_TIED)


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
    segments, sliced_by = segments_of(slices)
    summariser = Summariser(measures.columns, dict(measures.weights), tuple(sliced_by), measures.ks, None)
    worker = _Worker(scorer, summariser)

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # Spark takes no method here
        return worker.summarise(batches)

    belongs = is_evaluated(policies.population, policies.missing, policies.zero_relevant)
    is_relevant = F.filter(C.JUDGED_GAINS, lambda gain: gain >= RELEVANT)
    counted = lists.withColumns({C.N_JUDGED: F.size(C.JUDGED_GAINS), C.N_RELEVANT: F.size(is_relevant)}).withColumn(
        IS_EVALUATED, belongs
    )
    return counted.select(C.MODEL_ID, *segments, *count_columns(), *scorer.columns).mapInArrow(summarise, PARTIAL)


@dataclass(frozen=True)
class _Worker:
    scorer: Scorer
    summariser: Summariser

    def summarise(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.summariser.summarise_rows(self._to_rows(batch) for batch in batches if batch.num_rows)

    def _to_rows(self, batch: pa.RecordBatch) -> Rows:
        """Score a batch of lists, and give a row for each of them and each cutoff."""
        scorer, n_ks = self.scorer, len(self.scorer.measures.ks)
        scored = scorer.score({name: batch[name] for name in scorer.columns})
        table = pa.Table.from_batches([batch]).drop_columns(list(scorer.columns))
        table = unpacked(encoded(table, [C.MODEL_ID]))
        counts = np.column_stack([doubles(table, name) for name in _COUNTED])
        is_evaluated, has_both = (counts[:, _COUNTED.index(name), None] > 0 for name in ("n_population", "n_with_list"))
        n_tied = scored.counts[C.HAS_TIES] & has_both

        def flat(names: Sequence[str]) -> np.ndarray:
            values = np.empty((len(names), *n_tied.shape))
            for place, name in enumerate(names):
                values[place] = np.where(is_evaluated, scored.values[name], np.nan)
            return np.ascontiguousarray(values.reshape(len(names), n_tied.size).T)

        measures = scorer.measures
        table = pc.take(table.drop_columns(list(_COUNTED)), pa.array(np.repeat(np.arange(batch.num_rows), n_ks)))
        table = table.append_column(C.K, pa.array(np.tile(np.array(measures.ks, dtype=np.int32), batch.num_rows)))
        by_row = np.column_stack([np.repeat(counts, n_ks, axis=0), n_tied.ravel()])
        return Rows(table, flat(measures.columns), flat(tuple(measures.weights.values())), by_row)
