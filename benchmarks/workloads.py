"""What `make bench` times: the floor, the calls of a user and the nightly job."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, functions as F

from benchmarks.data import MORE_SEGMENTS, SEGMENT_SIZES, Tables
from benchmarks.timing import Contender
from rankeval_spark import evaluate, windows
from rankeval_spark.apps.nightly.night import NightResult, run_night
from rankeval_spark.config import load_config
from rankeval_spark.measures import registry
from rankeval_spark.measures.options import resolve_for_options
from rankeval_spark.spark.plans.user_rows import to_user_rows
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rankeval_spark import Evaluation

CUTOFFS: Final = (1, 5, 10, 20, 50, 100)
DEPTH: Final = 20
"""Cutoff of the measures beyond accuracy."""

SIX: Final = tuple(f"{name}@{k}" for name in ("P", "R", "Success", "RR", "AP", "nDCG") for k in CUTOFFS)
POPULARITY: Final = tuple(f"{name}@{DEPTH}" for name in ("ARP", "MIUF", "SelfInfo", "EPC", "EFD", "APLT", "ACLT"))
OF_ALL_LISTS: Final = tuple(
    f"{name}@{DEPTH}" for name in ("ItemCoverage", "CatalogCoverage", "Entropy", "Gini", "Personalization")
)
FIVE_SEGMENTS: Final = tuple(SEGMENT_SIZES)
MANY_SLICES: Final = (
    *MORE_SEGMENTS,
    *(tuple(list(MORE_SEGMENTS)[index : index + 2]) for index in range(10)),
)

FLOOR: Final = "floor: exchange by user, window, rank <= 100, one sum"
EXCHANGE: Final = "  limit of its shape: the exchange of the log alone"
HANDED_OVER: Final = "  limit of its shape: all rows exchanged and handed to Python"
DEFAULT: Final = "evaluate(...).metrics, all defaults: six measures at six cutoffs"
NAMED: Final = "  with the models named"
ACCURACY: Final = "  every measure of accuracy"
BOTH: Final = "  rows of users as Parquet, and the means, inside cached()"
SEGMENTS: Final = "  by five segments"
SLICES: Final = "  by 20 segments and 10 crossings"
DRAWN: Final = "  with 1000 bootstrap replicates"
COMPARED: Final = "  comparisons of all models with the first"
WITH_ILD: Final = f"  with ILD@{DEPTH} by vectors"
WITH_POPULARITY: Final = f"  with seven measures of popularity @{DEPTH}"
WITH_ALL_LISTS: Final = f"  with five measures of all lists @{DEPTH}"
CHECKS: Final = "evaluate(...).checks"
THREE: Final = "metrics, checks and leaderboard of one evaluation"
TWO_LISTS: Final = "  two lists a user, without their times"
ATTRIBUTED: Final = "  the same, interactions attributed to the last list before them"
NIGHT: Final = "the nightly job on Spark: checked, audited, published as Delta tables"
ONE: Final = "evaluate(...).metrics of nDCG@10 alone"
ONE_BY_WINDOWS: Final = "  its means by windows and joins"
SIX_BY_WINDOWS: Final = "  the means of six measures at six cutoffs by windows and joins"
DAY: Final = date(2026, 1, 1)

_SPELLED: Final = {"RBP": "RBP(max_rel=3,p=0.8)"}
"""Measures that must know the greatest gain there is."""


@dataclass(frozen=True)
class Workloads:
    """The contenders, over one set of tables.

    Attributes
    ----------
    tables : Tables
        The generated inputs.
    scratch : Path
        Folder that results are written to, over and over.
    steps : dict of str to list of float
        Seconds of each step of the nightly job, a figure for each time that it ran.
    """

    spark: SparkSession
    tables: Tables
    scratch: Path
    steps: dict[str, list[float]] = field(default_factory=dict)

    def main(self) -> list[Contender]:
        """Return the default call and the floor, whose ratio is the figure of the project, and what limits it."""
        return [
            Contender(DEFAULT, lambda: n_rows(self.evaluated().metrics)),
            Contender(FLOOR, self.floor),
            Contender(EXCHANGE, self.exchange),
            Contender(HANDED_OVER, self.hand_over),
        ]

    def extras(self) -> list[Contender]:
        """Return the default call with one thing more each, and the nightly job."""
        return [
            Contender(FLOOR, self.floor),
            Contender(DEFAULT, lambda: n_rows(self.evaluated().metrics)),
            Contender(NAMED, lambda: n_rows(self.evaluated(models=self.models).metrics)),
            Contender(ACCURACY, lambda: n_rows(self.evaluated(accuracy()).metrics)),
            Contender(BOTH, self.both),
            Contender(SEGMENTS, lambda: n_rows(self.sliced(FIVE_SEGMENTS).metrics)),
            Contender(SLICES, lambda: n_rows(self.sliced(MANY_SLICES).metrics)),
            Contender(DRAWN, lambda: n_rows(self.evaluated(intervals={"method": "bootstrap"}).metrics)),
            Contender(COMPARED, lambda: n_rows(self.evaluated(baseline=self.models[0]).comparisons)),
            Contender(
                WITH_ILD, lambda: n_rows(self.evaluated([*SIX, f"ILD@{DEPTH}"], items=self.read("items")).metrics)
            ),
            Contender(
                WITH_POPULARITY,
                lambda: n_rows(self.evaluated([*SIX, *POPULARITY], train=self.read("train")).metrics),
            ),
            Contender(
                WITH_ALL_LISTS,
                lambda: n_rows(self.evaluated([*SIX, *OF_ALL_LISTS], items=self.read("items")).metrics),
            ),
            Contender(TWO_LISTS, lambda: n_rows(self.in_time().metrics)),
            Contender(
                ATTRIBUTED,
                lambda: n_rows(self.in_time(attribution="last_touch", attribution_window="12h").metrics),
            ),
            Contender(CHECKS, lambda: n_rows(self.evaluated().checks)),
            Contender(THREE, self.three),
            Contender(NIGHT, self.night),
        ]

    def windows(self) -> list[Contender]:
        """Return the plain implementation, for one measure and for all, next to the engine."""
        return [
            Contender(FLOOR, self.floor),
            Contender(ONE, lambda: n_rows(self.evaluated(["nDCG@10"]).metrics)),
            Contender(ONE_BY_WINDOWS, lambda: self.by_windows([10], ["ndcg"])),
            Contender(DEFAULT, lambda: n_rows(self.evaluated().metrics)),
            Contender(SIX_BY_WINDOWS, lambda: self.by_windows(CUTOFFS, windows.MEASURES)),
        ]

    def by_windows(self, cutoffs: Sequence[int], measures: Sequence[str]) -> int:
        """Average columns of the values of users that windows and joins compute."""
        users = windows.user_metrics(self.log, self.read("held_out"), cutoffs=cutoffs)
        return n_rows(users.groupBy("model_id", "k").agg(*map(F.avg, measures)))

    def evaluated(self, measures: list[str] | tuple[str, ...] = SIX, **options: Any) -> Evaluation:  # noqa: ANN401 - options of evaluate
        """Plan an evaluation as a user does, by default of six measures at six cutoffs."""
        return evaluate(self.log, self.read("held_out"), **sections(measures=list(measures), **options))

    def sliced(self, slices: Sequence[str | Sequence[str]]) -> Evaluation:
        """Plan an evaluation by segments and their crossings."""
        return self.evaluated(segments=self.read("segments"), slices=slices)

    def in_time(self, **policies: Any) -> Evaluation:  # noqa: ANN401 - options of evaluate
        """Plan an evaluation of a morning's and an evening's list of each user, and interactions of any hour."""
        is_morning = F.xxhash64("item_id") % 2 == 0
        shown = F.timestamp_seconds(F.when(is_morning, 7 * 3600).otherwise(19 * 3600))
        log = self.log.withColumns({"list_id": F.when(is_morning, "am").otherwise("pm"), "recommended_at": shown})
        when = F.timestamp_seconds(F.pmod(F.xxhash64("user_id", "item_id"), F.lit(30 * 3600)))
        events = self.read("held_out").withColumn("interacted_at", when)
        return evaluate(log, events, measures=list(SIX), policies=policies)

    def both(self) -> int:
        """Write the rows of users and compute the means; return the number of means."""
        evaluation = self.evaluated()
        with evaluation.cached() as kept:
            kept.user_metrics.write.mode("overwrite").parquet(str(self.scratch / "user_metrics"))
            return n_rows(kept.metrics)

    def three(self) -> int:
        """Use three small results, as someone who looks at an evaluation does."""
        result = self.evaluated(models=self.models)
        return sum(n_rows(frame) for frame in (result.metrics, result.checks, result.leaderboard()))

    def hand_over(self) -> int:
        """Move every row to its user, hand all of them to Python, and count them there."""
        evaluation: Any = self.evaluated()
        user_rows = to_user_rows(evaluation.host.inputs, evaluation.request, is_aggregated=True).frame

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            n_rows = sum(batch.num_rows for batch in batches)
            yield pa.RecordBatch.from_pydict({"n_rows": pa.array([n_rows])})

        return int(user_rows.mapInArrow(count, "n_rows bigint").agg(F.sum("n_rows")).collect()[0][0])

    def floor(self) -> object:
        """Order the same rows as any evaluation has to, and nothing else."""
        best_first = Window.partitionBy("model_id", "user_id").orderBy(F.desc("score"), F.asc("item_id"))
        ranked = self.log.repartition("user_id").withColumn("rank", F.row_number().over(best_first))
        return ranked.where(F.col("rank") <= max(CUTOFFS)).agg(F.sum("rank")).collect()

    def exchange(self) -> None:
        """Move every row to the partition of its user."""
        self.log.repartition("user_id").write.format("noop").mode("overwrite").save()

    def night(self) -> NightResult:
        """Run the nightly job on the same rows: checked, staged, audited and published as Delta tables, again."""
        result = run_night(self.spark, load_config(self.night_config), DAY)
        for step, seconds in result.seconds.items():
            self.steps.setdefault(step, []).append(seconds)
        return result

    def read(self, name: str) -> DataFrame:
        """Read an input by its name."""
        return self.spark.read.parquet(str(getattr(self.tables, name)))

    def clear(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    @cached_property
    def log(self) -> DataFrame:
        """The recommendations."""
        return self.read("recommendations")

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models in the log, sorted."""
        return tuple(sorted(row[0] for row in self.log.select("model_id").distinct().collect()))

    @cached_property
    def night_config(self) -> Path:
        """Write the config of the nightly job."""
        inputs = {
            "recommendations": self.tables.recommendations,
            "held_out": self.tables.held_out,
            "segments": self.tables.segments,
        }
        config = {
            "evaluation": "bench",
            "inputs": {name: {"format": "parquet", "path": str(path)} for name, path in inputs.items()},
            "measures": ["P", "R", "Success", "RR", "AP", "nDCG"],
            "cutoffs": list(CUTOFFS),
            "slices": list(FIVE_SEGMENTS),
            "results": {"root": str(self.scratch / "results")},
        }
        self.scratch.mkdir(parents=True, exist_ok=True)
        path = self.scratch / "night.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        return path


def accuracy() -> tuple[str, ...]:
    """Name every measure of relevance with its default options, at each cutoff where it takes one."""
    found: list[str] = []
    for entry in registry.entries("list"):
        if entry.family != "accuracy" or resolve_for_options(entry.needs, entry.defaults):
            continue
        name = _SPELLED.get(entry.name, entry.name)
        takes_none = entry.cutoff.need(entry.defaults) == "forbidden"
        found += [name] if takes_none else [f"{name}@{k}" for k in CUTOFFS]
    return tuple(found)


def n_rows(frame: DataFrame) -> int:
    """Compute a small table, and count its rows."""
    return int(frame.toArrow().num_rows)
