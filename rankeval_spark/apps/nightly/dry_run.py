"""What a run would read and compute, without computing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark.apps.inputs import inputs_of, with_model_names
from rankeval_spark.apps.nightly.night_plan import require_baseline
from rankeval_spark.apps.nightly.night_size import cost_of
from rankeval_spark.inputs.spark import read_all
from rankeval_spark.spark.plans import model_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.config import Cost
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
    n_rows: int | None
    n_files: int | None


def planned_inputs(spark: SparkSession, plan: NightPlan) -> tuple[list[PlannedInput], Cost]:
    """Open every input, check its columns and types, count its rows where that is cheap, and what multiplies.

    Raises
    ------
    ConfigError
        The night has more rows than it may, or the baseline is no model of the log.
    """
    sources = read_all(spark, plan.config, plan.evaluation_date)
    inputs = inputs_of(sources, plan.request, sample_share=plan.sample_share)
    named = with_model_names(inputs, plan.request)
    cost = cost_of(plan.config, named)
    cost.require_at_most(plan.config.results.most_rows)
    require_baseline(plan.request, model_names(named, plan.request))
    return [_planned(source, plan.sample_share) for source in sources.all()], cost


def _planned(source: Source, sample_share: float) -> PlannedInput:
    is_cheap = source.format in COUNTED_CHEAPLY and sample_share >= 1
    return PlannedInput(
        source.name,
        source.location,
        source.format,
        source.version,
        source.frame.count() if is_cheap else None,
        len(source.frame.inputFiles()) if is_cheap else None,
    )
