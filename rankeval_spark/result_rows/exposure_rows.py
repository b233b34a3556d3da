"""Rows of ``metrics`` of the measures that are functions of how often each item is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.hashes import N_GROUPS
from rankeval_spark.result_rows.histograms import Histograms
from rankeval_spark.result_rows.metric_rows import to_batch

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure
    from rankeval_spark.result_rows.jackknife_rows import JackknifeRows


@dataclass(frozen=True)
class ExposureRows:
    """What the workers need to turn histograms into rows of ``metrics``."""

    measures: tuple[Measure, ...]
    rows: JackknifeRows

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make the rows of each measure, batch by batch."""
        for batch in batches:
            histograms = Histograms.of(batch)
            for measure in self.measures:
                chosen = batch[C.K].to_numpy() == measure.k
                values = measure.entry.kernel(histograms.exposure, **measure.options).reshape(-1, N_GROUPS + 1)
                columns = self.rows.columns(
                    measure,
                    batch.filter(pa.array(chosen)),
                    values[chosen],
                    n_users=histograms.n_users[chosen],
                    n_lists=histograms.n_lists[chosen],
                    has_users=histograms.has_users[chosen],
                )
                yield to_batch(columns)
