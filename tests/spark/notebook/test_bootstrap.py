"""A bootstrap on Spark: partitions change no interval, and nothing is drawn before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import columns as C, evaluate
from tests.support import arrow_frames, frames
from tests.support.logs import Logs
from tests.support.plans import no_spark_jobs
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS: Final = Logs.make(seed=20260107)
ASKED: Final[dict[str, Any]] = {
    "measures": ["nDCG@3", "Success@3", "R(agg='micro')@3", "GMAP", "ItemCoverage@3"],
    "slices": ["country"],
    "confidence": 0.9,
    "intervals": "bootstrap",
    "replicates": 200,
    "seed": 11,
}
COLUMNS: Final = (C.MODEL_ID, C.SLICE_VALUE, C.MEASURE, "ci_method", "std_error", "ci_low", "ci_high")


def test_intervals_on_seven_partitions_are_those_of_this_process(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 7)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    on_spark, tables = LOGS.frames(spark).repartition(7), LOGS.tables()
    with no_spark_jobs(spark):
        result = evaluate(on_spark.recommendations, on_spark.held_out, **sections(segments=on_spark.segments, **ASKED))
    here = evaluate(tables.recommendations, tables.held_out, **sections(segments=tables.segments, **ASKED))
    found, expected = frames.tuples(result.metrics, *COLUMNS), arrow_frames.tuples(here.metrics, *COLUMNS)
    assert {row[3] for row in found} == {"bootstrap", "none"}  # of the few items that are shown
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert one[4:] == (other[4:] if None in other else pytest.approx(other[4:], rel=0, abs=1e-12)), one
