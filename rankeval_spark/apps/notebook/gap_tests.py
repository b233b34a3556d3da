"""``evaluate().gap_tests`` on Spark: what is tested follows from the means of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.result_rows.groups import gap_rows, gap_test_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.spark.plans import Frames


def gap_tests(frames: Frames, gap_request: GapTestRequest) -> DataFrame:
    """Look up which groups there are, and plan a test of each gap between them."""
    labels = {one.label for one in gap_request.measures}
    of_groups = frames.metrics.where((F.col(C.SLICE) != C.ALL_USERS) & F.col(C.MEASURE).isin(*labels))
    names = (C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, C.VALUE, "n_users", "is_small")
    groups = of_groups.select(*names).toArrow()  # as many as metrics has of these
    rows = groups.append_column("is_compared", to_arrow(gap_rows.is_compared(groups))).to_pylist()
    gaps = gap_test_rows.gaps_of([row for row in rows if gap_request.has(row)])
    tested = frames.scored.sparkSession.createDataFrame(gap_test_rows.gap_test_rows(gaps), gap_test_rows.TESTED)
    return frames.gap_tests(tested, gaps, gap_request)
