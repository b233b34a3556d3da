"""What a run would read and compute, without computing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark.apps.nightly.night import host_of
from rankeval_spark.apps.nightly.night_plan import require_baseline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_host import NightHost, ReadInput
    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.config import Cost

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
    with host_of(spark, plan) as host:
        cost = host.read()
        cost.require_at_most(plan.config.results.most_rows)
        require_baseline(plan.request, host.host.models)
        return [_planned(host, one, plan.sample_share) for one in host.inputs], cost


def _planned(host: NightHost, one: ReadInput, sample_share: float) -> PlannedInput:
    is_cheap = one.format in COUNTED_CHEAPLY and sample_share >= 1
    n_rows, n_files = host.size_of(one.name) if is_cheap else (None, None)
    return PlannedInput(one.name, one.location, one.format, one.version, n_rows, n_files)
