"""Time evaluations of rows that are made on the fly and never stored, up to a billion: ``docs/scale.md``.

``python -m benchmarks.scale rows --rows 1e6 10e6 1e9`` grows the log; ``python -m benchmarks.scale model`` varies one
thing at a time. Without Spark, ``python -m benchmarks.scale worker`` varies one thing in the rows of one worker, and
``python -m benchmarks.scale partitions`` merges what many partitions add up.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from benchmarks import partitions
from benchmarks.bench import collect_garbage, number, plain_session
from benchmarks.data import DataSettings, held_out, recommendations, segments
from benchmarks.machine import n_cores
from benchmarks.processes import cpu_seconds, watched
from benchmarks.workloads import MANY_SLICES, SIX, accuracy
from rankeval_spark import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE: Final = 60.0
_MEGABYTE: Final = 1 << 20


@dataclass(frozen=True)
class Case:
    """A log, and what is asked of it."""

    rows: int
    list_length: int = 100  # the mean; lists are a fifth shorter or longer, and a user has a fifth as many judgements
    models: int = 1
    items: int = 50_000
    measures: tuple[str, ...] = SIX
    slices: tuple[Any, ...] = partitions.TWO_SLICES
    partitions: int = 0  # of whole users; 0: as Spark decides

    @property
    def settings(self) -> DataSettings:
        """The rows."""
        fifth = self.list_length // 5
        return DataSettings(
            self.rows,
            n_models=self.models,
            n_items=self.items,
            shortest_list=self.list_length - fifth,
            longest_list=self.list_length + fifth,
            fewest_judgements=fifth // 2,
            most_judgements=fifth + fifth // 2,
        )


def varied(rows: int) -> list[tuple[str, Case]]:
    """List the cases of the cost model: the plain one again and again, and those with one thing changed."""
    plain = Case(rows)
    once = [
        ("half the rows", replace(plain, rows=rows // 2)),
        ("twice the rows", replace(plain, rows=2 * rows)),
        ("lists of 20: five times the users", replace(plain, list_length=20)),
        ("lists of 500: a fifth of the users", replace(plain, list_length=500)),
        ("nDCG@10 alone", replace(plain, measures=("nDCG@10",))),
        ("every measure of accuracy at six cutoffs", replace(plain, measures=accuracy())),
        ("no slices", replace(plain, slices=())),
        ("20 segments and 10 crossings", replace(plain, slices=MANY_SLICES)),
        ("five models", replace(plain, models=5)),
        ("500,000 items", replace(plain, items=500_000)),
        ("16 partitions", replace(plain, partitions=16)),
        ("64 partitions", replace(plain, partitions=64)),
        ("200 partitions", replace(plain, partitions=200)),
    ]
    return [pair for place, case in enumerate(once) for pair in ([case] if place % 4 else [("plain", plain), case])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the four, and print a line for each case as JSON."""
    options = _options(arguments)
    if options.what == "worker":
        for found in partitions.costs(options.users):
            _say(found)
        return 0
    if options.what == "partitions":
        each = partitions.Partition(100, 20, slices=MANY_SLICES if options.many else partitions.TWO_SLICES)
        for n_partitions in options.partitions:
            _say(partitions.merged(n_partitions, each, n_different=options.different))
        return 0
    spark = plain_session(options.cores, options.heap)
    spark.sparkContext.setLogLevel("ERROR")
    for setting in options.conf:
        spark.conf.set(*setting.split("=", 1))
    evaluated(spark, Case(100_000))  # workers and generated code of the first evaluation
    if options.what == "model":
        for name, case in varied(options.rows[0]):
            if not options.only or any(word in name for word in options.only):
                _say({"case": name, **evaluated(spark, case)})
        return 0
    for rows in options.rows:
        case = Case(rows, list_length=options.list_length, partitions=options.shuffle_partitions)
        _say({"case": f"{rows:,} rows", **evaluated(spark, case)})
    return 0


def evaluated(spark: SparkSession, case: Case) -> dict[str, Any]:
    """Compute the means of a case; return what it took: seconds, bytes between stages, and memory in gigabytes."""
    spark.conf.set("spark.sql.shuffle.partitions", case.partitions or 200)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", str(not case.partitions).lower())
    settings = case.settings
    collect_garbage(spark)
    spark.sparkContext.setJobGroup(str(time.monotonic_ns()), "one case")
    started, cpu_before = time.perf_counter(), cpu_seconds()
    with watched() as peak, _watching(spark):
        result = evaluate(
            recommendations(spark, settings),
            held_out(spark, settings),
            measures=list(case.measures),
            slices=case.slices,
            segments=segments(spark, settings) if case.slices else None,
        )
        metrics = result.metrics.toArrow()
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu_before
    everyone = metrics.filter(pc.equal(metrics["slice"], "all"))
    n_users = pc.max(everyone["n_users"]).as_py()
    stages = _stages(spark)
    return {
        "rows": case.rows,
        "users": settings.n_users,
        "evaluated_users": n_users,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "microseconds_a_row": round(seconds / case.rows * 1e6, 3),
        "cpu_microseconds_a_row": round(cpu / case.rows * 1e6, 3),
        "jvm_gb": round(peak.jvm, 2),
        "driver_python_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MEGABYTE, 2),
        "workers_gb": round(peak.workers, 2),
        "worker_gb": round(peak.worker, 2),
        "stages": stages,
        "result_rows": metrics.num_rows,
        "ndcg_10": everyone.filter(pc.and_(pc.equal(everyone["measure"], "nDCG"), pc.equal(everyone["k"], 10)))[
            "value"
        ].to_pylist()[:1],
    }


def _stages(spark: SparkSession) -> list[dict[str, Any]]:
    """List the stages of the last case: tasks, rows and megabytes that they passed on, processor time in the JVM."""
    tracker, context = spark.sparkContext.statusTracker(), spark.sparkContext
    store, found = context._jsc.sc().statusStore(), []  # as Spark's own pages show them
    for job in sorted(tracker.getJobIdsForGroup(context.getLocalProperty("spark.jobGroup.id"))):
        info = tracker.getJobInfo(job)
        for stage in sorted(() if info is None else info.stageIds):
            told = store.lastStageAttempt(stage)
            if told.numCompleteTasks():
                found.append(
                    {
                        "tasks": told.numCompleteTasks(),
                        "rows_out": told.shuffleWriteRecords(),
                        "mb_out": round(told.shuffleWriteBytes() / _MEGABYTE, 2),
                        "mb_collected": round(told.resultSize() / _MEGABYTE, 3),
                        "spilled_mb": round(told.diskBytesSpilled() / _MEGABYTE, 1),
                        "jvm_cpu_seconds": round(told.executorCpuTime() / 1e9, 1),
                    }
                )
    return found


@contextmanager
def _watching(spark: SparkSession) -> Iterator[None]:
    """Print each minute how many tasks of a long case are done."""
    is_over = threading.Event()

    def tell() -> None:
        tracker, began = spark.sparkContext.statusTracker(), time.monotonic()
        while not is_over.wait(MINUTE):
            stages = filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))
            tasks = ", ".join(f"{stage.numCompletedTasks} of {stage.numTasks} tasks" for stage in stages)
            print(f"{time.monotonic() - began:6.0f} s  {tasks}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _say(found: dict[str, Any]) -> None:
    print(json.dumps({**found, "at": time.strftime("%H:%M:%S")}), flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("what", choices=["rows", "model", "worker", "partitions"])
    parser.add_argument("--rows", type=number, nargs="+", default=[1_000_000, 10_000_000], help="rows of the log")
    parser.add_argument("--only", nargs="+", help="words of the names of the cases wanted (all)")
    parser.add_argument("--list-length", type=number, default=100, help="mean length of the lists (100)")
    parser.add_argument("--shuffle-partitions", type=int, default=0, help="partitions of users (as Spark decides)")
    parser.add_argument("--heap", default="2g", help="memory of the driver's JVM (2g)")
    parser.add_argument("--conf", nargs="+", default=[], help="settings of the session, such as key=value")
    parser.add_argument("--cores", type=number, default=n_cores(), help="cores that Spark may use (all)")
    parser.add_argument("--partitions", type=number, nargs="+", default=[500, 2000], help="partitions that are merged")
    parser.add_argument("--different", type=number, default=100, help="partitions before the same come again (100)")
    parser.add_argument("--users", type=number, default=10_000, help="users of the worker's partition (10_000)")
    parser.add_argument("--many", action="store_true", help="by 20 segments and 10 crossings instead of two segments")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
