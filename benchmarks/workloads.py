"""What `make bench` times: the floor, the whole evaluation, its building blocks and what can be added to it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, functions as F

from benchmarks.data import EVERY_SEGMENT, MODEL, MORE_SEGMENTS, SEGMENT_SIZES, Tables
from benchmarks.timing import Contender
from rankeval_spark import evaluate, pipeline, schemas
from rankeval_spark.app.inputs import exposures_of, inputs_of, list_facts, row_facts
from rankeval_spark.app.night import NightResult, run_night
from rankeval_spark.config import Checks, EvaluationConfig, Policies, load_config
from rankeval_spark.measures import MeasureSet
from rankeval_spark.pipeline import Inputs, Request
from rankeval_spark.pipeline.user_rows import to_user_rows
from rankeval_spark.sources import Sources, from_frame, segments_schema
from rankeval_spark.stages import check
from rankeval_spark.statistics.resampled import Draws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rankeval_spark import Evaluation

CUTOFFS: Final = (1, 5, 10, 20, 50, 100)
MEASURES: Final = (
    "P",
    "R",
    "F1",
    "Success",
    "NumHits",
    "RR",
    "ARHR",
    "ARHR(gains='grade')",
    "AP",
    "AP(denom='min')",
    "Rprec",
    "CG",
    "DCG",
    "nDCG",
    "nDCG(dcg='exp-log2')",
    "nDCG(gains='binary')",
)
"""Every measure of the first release; all of them are given every cutoff that they take."""

FLOOR: Final = "floor: exchange by user, window, rank <= 100, one sum"
DEFAULT: Final = "evaluate(...).metrics, all defaults: six measures at six cutoffs"
DRAWN: Final = "evaluate(...).metrics with 1000 bootstrap replicates"
COMPARED: Final = "evaluate(...).comparisons of all models with the first"
EXCHANGE: Final = "  limit of its shape: the exchange of the log alone"
HANDED_OVER: Final = "  limit of its shape: all rows exchanged and handed to Python"
WHOLE: Final = "the whole evaluation"
MEANS: Final = "  its means alone, no rows of users"
NO_SLICES: Final = "whole, without slices"
MANY_SLICES: Final = "whole, by 20 segments and 10 crossings"
MORE_SLICES: Final = (
    *((name,) for name in MORE_SEGMENTS),
    *(tuple(list(MORE_SEGMENTS)[index : index + 2]) for index in range(10)),
)
NIGHT: Final = "the nightly job: checked, audited, published as Delta tables"
DAY: Final = date(2026, 1, 1)
DRAWS: Final = Draws(replicates=1000, seed=0)


def measure_set(names: tuple[str, ...] = MEASURES, cutoffs: tuple[int, ...] = CUTOFFS) -> MeasureSet:
    """Ask for each measure at each cutoff."""
    return MeasureSet.parse([f"{name}@{k}" for name in names for k in cutoffs], where="benchmarks")


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
            Contender(DEFAULT, self.default),
            Contender(FLOOR, self.floor),
            Contender(EXCHANGE, self.exchange),
            Contender(HANDED_OVER, self.hand_over),
            Contender(WHOLE, self.whole),
        ]

    def blocks(self) -> list[Contender]:
        """Return the steps of the whole evaluation, each with all that comes before it; results are thrown away."""
        return [
            Contender("  compact row per list", lambda: _throw_away(self.lists())),
            Contender("  scored", lambda: _throw_away(self.scored())),
            Contender("  scored and written as Parquet", self.write_scored),
            Contender("  read back, sliced, summarised", self.summarise_written),
            Contender(MEANS, self.means),
        ]

    def extras(self) -> list[Contender]:
        """Return what is not part of the comparison: each policy and protocol on a line of its own."""
        return [
            Contender(DRAWN, lambda: _n_rows(self.evaluated(intervals="bootstrap").metrics)),
            Contender(COMPARED, lambda: _n_rows(self.evaluated(baseline=f"{MODEL}-0").comparisons)),
            Contender(
                "whole, models named and no item repeated (duplicates: keep)", lambda: self.whole(self._trusted())
            ),
            Contender(NO_SLICES, lambda: self.whole(self._with(slices=()))),
            Contender(MANY_SLICES, lambda: self.whole(self._with(slices=MORE_SLICES))),
            Contender("whole, 6 measures, everyone only", lambda: self.whole(self._narrow())),
            Contender("  with 1000 bootstrap replicates", lambda: self.whole(self._narrow(DRAWS))),
            Contender("checks by themselves", self.checks),
            Contender(NIGHT, self.night),
        ]

    def default(self) -> int:
        """Evaluate as a user does who sets nothing; return the number of metrics."""
        return _n_rows(self.evaluated().metrics)

    def evaluated(self, **options: Any) -> Evaluation:  # noqa: ANN401 - options of evaluate
        """Plan an evaluation of six measures at six cutoffs."""
        held_out = self.spark.read.parquet(str(self.tables.held_out))
        asked = [f"{name}@{k}" for name in ("P", "R", "Success", "RR", "AP", "nDCG") for k in CUTOFFS]
        return evaluate(self.log, held_out, measures=asked, **options)

    def hand_over(self) -> int:
        """Move every row to its user, hand all of them to Python, and count them there."""
        user_rows = to_user_rows(self._inputs, self._request).frame

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
        _throw_away(self.log.repartition("user_id"))

    def lists(self, request: Request | None = None) -> DataFrame:
        """Plan the compact rows."""
        return pipeline.to_lists(self._inputs, request=request or self._request)

    def scored(self, request: Request | None = None) -> DataFrame:
        """Plan the scored rows."""
        return pipeline.to_scored(self._inputs, request=request or self._request)

    def write_scored(self, request: Request | None = None) -> DataFrame:
        """Write the scored rows and return a frame that reads them."""
        scored = self.scored(request)
        scored.write.mode("overwrite").parquet(self._written)
        return self.spark.read.schema(scored.schema).parquet(self._written)

    def whole(self, request: Request | None = None) -> int:
        """Score, write, read back, slice and summarise; return the number of metrics."""
        asked = request or self._request
        scored = self.write_scored(asked) if asked.measures.per_list else self.scored(asked)
        return _n_rows(self._metrics(scored, asked))

    def means(self, request: Request | None = None) -> int:
        """Make the table of means alone, as ``evaluate(...).metrics`` does; return the number of its rows."""
        asked = request or self._request
        return _n_rows(pipeline.to_metrics(self._inputs, request=asked))

    def asking(self, measures: MeasureSet) -> Request:
        """Return the request of :meth:`whole` for other measures."""
        return self._with(measures=measures)

    def summarise_written(self) -> int:
        """Do the second half of :meth:`whole` on what is written already."""
        schema = self.scored().schema
        return _n_rows(self._metrics(self.spark.read.schema(schema).parquet(self._written), self._request))

    def checks(self) -> object:
        """Count what is wrong with the inputs, and with the lists as scored."""
        scored = self.spark.read.schema(self.scored().schema).parquet(self._written)
        facts = check.union(*row_facts(self._inputs, self._request), list_facts(scored, self._request))
        return check.with_verdicts(facts, checks=Checks()).collect()

    def night(self) -> NightResult:
        """Run the nightly job on the same rows: checked, staged, audited and published as Delta tables, again."""
        result = run_night(self.spark, self._config, DAY)
        for step, seconds in result.seconds.items():
            self.steps.setdefault(step, []).append(seconds)
        return result

    def clear(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def _written(self) -> str:
        return str(self.scratch / "scored")

    @cached_property
    def log(self) -> DataFrame:
        """The recommendations."""
        return self.spark.read.parquet(str(self.tables.recommendations))

    @cached_property
    def _request(self) -> Request:
        slices = tuple((name,) for name in SEGMENT_SIZES)
        return Request(measure_set(), Policies(), slices=slices, evaluation_date=DAY)

    @cached_property
    def _inputs(self) -> Inputs:
        by_every_segment = self._with(slices=tuple((name,) for name in EVERY_SEGMENT))
        return inputs_of(sources_of(self.spark, self.tables), by_every_segment)

    @cached_property
    def _config(self) -> EvaluationConfig:
        """Write the config of the nightly job and read it as the command line would."""
        inputs = {
            "recommendations": self.tables.recommendations,
            "held_out": self.tables.held_out,
            "segments": self.tables.segments,
        }
        config = {
            "evaluation": "bench",
            "inputs": {name: {"format": "parquet", "path": str(path)} for name, path in inputs.items()},
            "measures": list(MEASURES),
            "cutoffs": list(CUTOFFS),
            "slices": list(SEGMENT_SIZES),
            "results": {"root": str(self.scratch / "results")},
        }
        self.scratch.mkdir(parents=True, exist_ok=True)
        path = self.scratch / "night.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        return load_config(path)

    def _metrics(self, scored: DataFrame, request: Request) -> DataFrame:
        return pipeline.Frames(
            scored,
            request=request,
            has_one_list=self._inputs.has_one_list,
            exposures=exposures_of(self._inputs, request),
        ).metrics

    def _with(self, **changes: object) -> Request:
        return replace(self._request, **changes)  # type: ignore[arg-type]  # any field of Request

    def _narrow(self, draws: Draws | None = None) -> Request:
        """Ask for 36 columns, a measure at a cutoff each."""
        return self._with(measures=measure_set(MEASURES[:6]), slices=(), draws=draws)

    def _trusted(self) -> Request:
        return self._with(policies=Policies(duplicates="keep"), models=(MODEL,))


def sources_of(spark: SparkSession, tables: Tables) -> Sources:
    """Read the generated tables in their canonical columns."""
    known = {
        "recommendations": schemas.RECOMMENDATIONS,
        "held_out": schemas.HELD_OUT,
        "segments": segments_schema(tuple(EVERY_SEGMENT)),
        "train": schemas.TRAIN,
        "items": schemas.ITEMS,
    }
    return Sources(
        **{
            name: from_frame(name, spark.read.parquet(str(getattr(tables, name))), schema)
            for name, schema in known.items()
        }
    )


def _n_rows(frame: DataFrame) -> int:
    """Compute a small table, and count its rows."""
    return int(frame.toArrow().num_rows)


def _throw_away(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
