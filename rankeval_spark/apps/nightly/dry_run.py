"""What a run would read and compute, without computing it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from rankeval_spark.apps.inputs import inputs_of, with_model_names
from rankeval_spark.apps.nightly.night_size import cost_of
from rankeval_spark.config import check_roots
from rankeval_spark.config.request import request_of
from rankeval_spark.inputs.spark import read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.config import Cost, EvaluationConfig
    from rankeval_spark.inputs.spark import Source

COUNTED_CHEAPLY = ("delta", "parquet")
"""Formats whose rows are counted from statistics and footers; of the others every byte would be read."""


@dataclass(frozen=True)
class PlannedInput:
    """An input that would be read; ``n_rows`` is None where counting would mean reading it all."""

    name: str
    location: str
    format: str
    version: int | None
    columns: tuple[str, ...]
    n_rows: int | None
    n_files: int | None


def planned_inputs(
    spark: SparkSession, config: EvaluationConfig, evaluation_date: date, *, sample_share: float = 1.0
) -> tuple[list[PlannedInput], Cost]:
    """Open every input, check its columns and types, count its rows where that is cheap, and what multiplies.

    Raises
    ------
    ConfigError
        A path is not allowed, or the night comes to more rows than it may.
    """
    check_roots(config, evaluation_date)
    sources = read_all(spark, config, evaluation_date)
    request = request_of(config, evaluation_date)
    inputs = with_model_names(inputs_of(sources, request, sample_share=sample_share), request)
    cost = cost_of(config, inputs)
    cost.require_at_most(config.results.most_rows)
    return [_planned(source, sample_share) for source in sources.all()], cost


def _planned(source: Source, sample_share: float) -> PlannedInput:
    is_cheap = source.format in COUNTED_CHEAPLY and sample_share >= 1
    return PlannedInput(
        source.name,
        source.location,
        source.format,
        source.version,
        tuple(sorted(source.given)),
        source.frame.count() if is_cheap else None,
        len(source.frame.inputFiles()) if is_cheap else None,
    )
