"""Time the calls of a user against their floor: ``python -m benchmarks.bench --rows 10_000_000``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

from benchmarks import in_process, report, skew, small
from benchmarks.data import DataSettings, prepare
from benchmarks.families import Families
from benchmarks.machine import describe, n_cores
from benchmarks.nights import Nights
from benchmarks.processes import high_water_mark
from benchmarks.skew import Skew
from benchmarks.timing import Timing, interleaved
from benchmarks.workloads import DEFAULT, FLOOR, Workloads
from rankeval_spark.spark.session.jars import delta_jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import DELTA_CATALOG, DELTA_EXTENSION, cache_dir

PARTS: Final = ("main", "here", "extras", "windows", "skew", "small", "families", "night")


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate the data if need be, take turns, print the table and keep it as JSON."""
    options = _options(arguments)
    settings = DataSettings(
        options.rows, seed=options.seed, n_models=options.models, has_text_ids=options.ids == "text"
    )
    spark = plain_session(options.cores, options.heap)
    _say(f"data in {settings.folder}")
    tables = prepare(spark, settings)
    workloads = Workloads(spark, tables, Path(options.scratch or cache_dir() / "bench" / "scratch"))
    n_rows = spark.read.parquet(str(tables.recommendations)).count()
    try:
        timings = run(workloads, settings, parts=options.parts, repeats=options.repeats, only=options.only)
    finally:
        workloads.clear()
    machine = {**describe(spark), "recommendation rows": f"{n_rows:,} ({settings.n_users:,} users)"}
    result = report.Report(
        "bench",
        machine,
        timings,
        reference=FLOOR,
        n_rows=n_rows,
        floors=Families(workloads).floors()
        | skew.floors()
        | {in_process.HERE: in_process.BY_HAND, small.SMALL: small.SMALL_FLOOR},
    )
    print(result.as_table(), f"\npeak of the driver's JVM since its start: {high_water_mark():.2f} GB", sep="\n")
    if workloads.steps:
        steps = ", ".join(f"{step} {median(seconds[1:]):.1f}" for step, seconds in workloads.steps.items())
        print(f"seconds of the nightly job by step: {steps}")
    if DEFAULT in timings:
        print(result.headline(DEFAULT))
    print(f"kept in {result.save(cache_dir() / 'bench')}")
    return 0


def run(
    workloads: Workloads,
    settings: DataSettings,
    *,
    parts: Sequence[str],
    repeats: int,
    only: Sequence[str] | None = None,
) -> dict[str, Timing]:
    """Time the requested parts, all their contenders in one round of turns, or the floor and those that are named."""
    contenders = {
        "main": workloads.main,
        "here": lambda: in_process.contenders(workloads.tables),
        "extras": workloads.extras,
        "windows": workloads.windows,
        "skew": Skew(workloads, settings).contenders,
        "small": lambda: small.contenders(workloads, settings),
        "families": Families(workloads).contenders,
        "night": Nights(workloads, cache_dir() / "bench" / "demo", _say).contenders,
    }
    # By name: the floor and the default call belong to several parts.
    chosen = {
        one.name: one
        for part in PARTS
        if part in parts
        for one in contenders[part]()
        if only is None or one.name == FLOOR or any(word.lower() in one.name.lower() for word in only)
    }
    return interleaved(
        list(chosen.values()), repeats=repeats, before_each=lambda: collect_garbage(workloads.spark), report=_say
    )


def plain_session(cores: int, heap: str) -> SparkSession:
    """Start the session of a notebook: its memory and Delta's jars are set, nothing that makes an evaluation faster."""
    java = find_java()
    os.environ |= {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}  # as in an activated environment
    settings = {
        "spark.driver.memory": heap,
        "spark.jars": ",".join(map(str, delta_jars(java))),
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("rankeval benchmark")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def collect_garbage(spark: SparkSession) -> None:
    """Empty the driver's heap, so that a turn does not pay for the one before."""
    spark.sql("SELECT java_method('java.lang.System', 'gc')").collect()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench", description=__doc__)
    parser.add_argument("--rows", type=number, default=10_000_000, help="recommendation rows (10_000_000)")
    parser.add_argument("--repeats", type=number, default=5, help="measured turns of each contender (5)")
    parser.add_argument("--heap", default="4g", help="memory of the driver's JVM (4g)")
    parser.add_argument("--cores", type=number, default=n_cores(), help="cores that Spark may use (all)")
    parser.add_argument(
        "--models", type=number, default=1, help="models of the log, each with a list for every user (1)"
    )
    parser.add_argument("--ids", choices=["integers", "text"], default="integers", help="kind of the ids (integers)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generated rows (1)")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=list(PARTS[:3]),
        help="what to time (main, here and extras)",
    )
    parser.add_argument("--only", nargs="+", help="parts of the names of the lines wanted, next to the floor (all)")
    parser.add_argument("--scratch", help="folder for what is written (in the cache folder)")
    return parser.parse_args(arguments)


def number(text: str) -> int:
    """Read 10_000_000, 10e6 and 10000000."""
    number = int(float(text))
    if number < 1:
        raise argparse.ArgumentTypeError(text)
    return number


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
