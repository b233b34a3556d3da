"""Sections of a call, and a config in a notebook, on Spark: the values of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import evaluate, evaluate_config
from tests.evaluate.test_sections import ASKED, DAY, LOG, RATED, written

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEY = ("model_id", "measure", "k", "value", "n_users")


def test_frames_and_configs_are_read_as_their_sections_say(spark: SparkSession, tmp_path: Path) -> None:
    here = evaluate(LOG, RATED, **ASKED)
    expected = sorted(tuple(row[name] for name in KEY) for row in here.metrics.to_pylist())
    log, held_out = (spark.createDataFrame(table.to_pandas()) for table in (LOG, RATED))
    config = written(here, tmp_path, recommendations=LOG, held_out=RATED)
    for result in (evaluate(log, held_out, **ASKED), evaluate_config(config, DAY, spark=spark)):
        assert sorted(tuple(row[name] for name in KEY) for row in result.metrics.collect()) == expected
    assert result.to_config() == evaluate_config(config, DAY).to_config()
