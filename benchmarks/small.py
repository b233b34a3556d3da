"""The default call on a few rows, where planning and starting tasks take most of the time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from benchmarks.data import prepare
from benchmarks.timing import Contender
from benchmarks.workloads import Workloads, n_rows

if TYPE_CHECKING:
    from benchmarks.data import DataSettings

N_ROWS: Final = 100_000

SMALL: Final = f"evaluate(...).metrics, all defaults, {N_ROWS:,} rows"
SMALL_FLOOR: Final = f"floor of {N_ROWS:,} rows"


def contenders(workloads: Workloads, settings: DataSettings) -> list[Contender]:
    """Return the default call and its floor over :data:`N_ROWS` rows like those of the other lines."""
    spark = workloads.spark
    few = Workloads(spark, prepare(spark, replace(settings, n_rows=N_ROWS)), workloads.scratch)
    return [Contender(SMALL_FLOOR, few.floor), Contender(SMALL, lambda: n_rows(few.evaluated().metrics))]
