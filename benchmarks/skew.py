"""The default call on rows that are spread unevenly, next to even rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from benchmarks.data import DataSettings, prepare, robot_judgements, robot_rows
from benchmarks.timing import Contender
from benchmarks.workloads import DEFAULT, SIX, Workloads, n_rows
from rankeval_spark import evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROBOT: Final = "  and one more user, with a list of a fifth as many rows"
JUDGED: Final = "  and one user is judged as often as a fiftieth of the rows"
LONG: Final = "  as many rows in lists of 10,000 items"
MODELS: Final = "  as many rows of 500 models"

LONG_LIST: Final = 10_000
N_MODELS: Final = 500


@dataclass(frozen=True)
class Skew:
    """The contenders of ``--parts skew``.

    Attributes
    ----------
    workloads : Workloads
        Over the even rows.
    settings : DataSettings
        What these depend on.
    """

    workloads: Workloads
    settings: DataSettings

    def contenders(self) -> list[Contender]:
        """Return the even case, then each uneven one; rows that are not there yet are generated."""
        load, few = self.workloads, self.settings
        log, held_out = load.log, load.read("held_out")
        robot = robot_rows(load.spark, few, n=few.n_rows // 5)
        judged = robot_judgements(load.spark, few, n=few.n_rows // 50)
        long, models = (
            self._read(replace(few, shortest_list=LONG_LIST, longest_list=LONG_LIST)),
            self._read(replace(few, n_models=N_MODELS)),
        )
        return [
            Contender(DEFAULT, lambda: _evaluate(log, held_out)),
            Contender(ROBOT, lambda: _evaluate(log.unionByName(robot), held_out)),
            Contender(JUDGED, lambda: _evaluate(log, held_out.unionByName(judged))),
            Contender(LONG, lambda: _evaluate(*long)),
            Contender(MODELS, lambda: _evaluate(*models)),
        ]

    def _read(self, settings: DataSettings) -> tuple[DataFrame, DataFrame]:
        spark = self.workloads.spark
        tables = prepare(spark, settings)
        return spark.read.parquet(str(tables.recommendations)), spark.read.parquet(str(tables.held_out))


def floors() -> dict[str, str]:
    """Return the line that each uneven case is compared with: the even case."""
    return dict.fromkeys((ROBOT, JUDGED, LONG, MODELS), DEFAULT)


def _evaluate(log: DataFrame, held_out: DataFrame) -> int:
    return n_rows(evaluate(log, held_out, measures=list(SIX)).metrics)
