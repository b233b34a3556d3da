"""Time other libraries on the same rows and measures: ``python -m benchmarks.peers --rows 1_000_000``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks import peers_on_one_node as one_node, peers_on_spark as on_spark
from benchmarks.bench import collect_garbage, number
from benchmarks.data import DataSettings, Tables, prepare
from benchmarks.machine import describe, n_cores, package_version
from benchmarks.workloads import CUTOFFS
from rankeval_spark.spark.session import build_session
from rankeval_spark.spark.session.settings import cache_dir

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PEER_PACKAGES: Final = ("recommenders", "replay-rec", "duckdb", "polars", "pytrec-eval-terrier", "ranx")
WARM_UP: Final = DataSettings(10_000)


@dataclass(frozen=True)
class Turn:
    """One peer in one turn, with our own time right before it.

    Attributes
    ----------
    differences : dict of str to float
        Measure: largest absolute difference of its means from ours, over the cutoffs.
    gigabytes : float or None
        Peak memory of a peer with a process of its own.
    """

    name: str
    seconds: float
    our_seconds: float
    differences: dict[str, float]
    gigabytes: float | None = None

    @property
    def ratio(self) -> float:
        """Return how many times as long the peer took."""
        return self.seconds / self.our_seconds


@dataclass(frozen=True)
class Arena:
    """Everything a turn needs: the session, the rows, and a few rows to warm up with."""

    spark: SparkSession
    tables: Tables
    few: Tables

    def warm_up(self) -> None:
        """Run everything on Spark once on a few rows, and ourselves on all of them."""
        for peer in (on_spark.ours, *on_spark.PEERS.values()):
            peer(self.spark, self.few)
        on_spark.ours(self.spark, self.tables)

    def turn_on_spark(self, name: str) -> Turn:
        """Time ourselves, then a peer in the same session."""
        our_seconds, expected = self._timed(on_spark.ours)
        seconds, values = self._timed(on_spark.PEERS[name])
        return Turn(name, seconds, our_seconds, _differences(values, expected))

    def turn_on_one_node(self, name: str) -> Turn:
        """Time ourselves without Spark, then a peer, each in a process of its own."""
        paths = (self.tables.recommendations, self.tables.held_out)
        few = (self.few.recommendations, self.few.held_out)
        our_seconds, _, expected = one_node.run_apart(one_node.OURS, paths, few, CUTOFFS)
        seconds, gigabytes, values = one_node.run_apart(name, paths, few, CUTOFFS)
        return Turn(name, seconds, our_seconds, _differences(values, expected), gigabytes)

    def _timed(self, run: Callable[[SparkSession, Tables], on_spark.Values]) -> tuple[float, on_spark.Values]:
        collect_garbage(self.spark)
        start = time.perf_counter()
        values = run(self.spark, self.tables)
        return time.perf_counter() - start, values


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate the data if need be, take turns with each peer, print the table and keep it as JSON."""
    options = _options(arguments)
    spark = build_session(
        "rankeval peers", master=f"local[{options.cores}]", settings={"spark.driver.memory": options.heap}
    )
    settings = DataSettings(options.rows)
    arena = Arena(spark, prepare(spark, settings), prepare(spark, WARM_UP))
    _say("warming up")
    arena.warm_up()
    turns = [turn for _ in range(options.repeats) for turn in _round(arena, options.only)]
    machine = {**describe(spark), **{name: package_version(name) for name in PEER_PACKAGES}}
    print(as_table(turns, machine, n_rows=options.rows))
    print(f"kept in {_save(turns, machine, n_rows=options.rows)}")
    return 0


def as_table(turns: Sequence[Turn], machine: dict[str, str], *, n_rows: int) -> str:
    """Lay out the medians in fixed columns, peers in the order of their turns, each with our own time next to it."""
    about = [f"{key:22s}{value}" for key, value in {**machine, "recommendation rows": f"about {n_rows:,}"}.items()]
    heads = ("seconds", "ours", "ratio", "own GB", *(f"d {name}" for name in on_spark.SHARED))
    lines = [" " * 40 + "".join(f"{head:>10s}" for head in heads)]
    for name in dict.fromkeys(turn.name for turn in turns):
        lines.append(_line([turn for turn in turns if turn.name == name]))
    return "\n".join(["", *about, "", *lines])


def _line(turns: Sequence[Turn]) -> str:
    last = turns[-1]
    seconds, ours = median(turn.seconds for turn in turns), median(turn.our_seconds for turn in turns)
    ratio = median(turn.ratio for turn in turns)
    memory = "" if last.gigabytes is None else f"{last.gigabytes:.2f}"
    differences = "".join(f"{last.differences[name]:10.0e}" for name in on_spark.SHARED)
    return f"{last.name:40s}{seconds:10.2f}{ours:10.2f}{ratio:10.1f}{memory:>10s}{differences}"


def _round(arena: Arena, only: Sequence[str] | None) -> list[Turn]:
    turns: list[Turn] = []
    contenders: dict[str, Callable[[], Turn]] = {
        **{name: partial(arena.turn_on_spark, name) for name in on_spark.PEERS},
        **{name: partial(arena.turn_on_one_node, name) for name in one_node.PEERS},
    }
    for name, take_turn in contenders.items():
        if only is None or any(word.lower() in name.lower() for word in only):
            turns.append(take_turn())
            _say(f"{turns[-1].seconds:8.2f} s  {turns[-1].ratio:6.1f} times ours  {name}")
    return turns


def _differences(values: on_spark.Values, expected: on_spark.Values) -> dict[str, float]:
    return {
        name: max(abs(values[f"{name}@{k}"] - expected[f"{name}@{k}"]) for k in CUTOFFS) for name in on_spark.SHARED
    }


def _save(turns: Sequence[Turn], machine: dict[str, str], *, n_rows: int) -> Path:
    now = datetime.now(UTC)
    path = cache_dir() / "bench" / f"peers-{n_rows}-{now:%Y%m%dT%H%M%SZ}.json"
    content = {"recorded_at": now.isoformat(timespec="seconds"), "machine": machine, "n_rows": n_rows}
    path.write_text(json.dumps({**content, "turns": list(map(asdict, turns))}, indent=2) + "\n", encoding="utf-8")
    return path


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--rows", type=number, default=1_000_000, help="recommendation rows (1_000_000)")
    parser.add_argument("--repeats", type=number, default=1, help="turns of each peer (1)")
    parser.add_argument("--heap", default="4g", help="memory of the driver's JVM (4g)")
    parser.add_argument("--cores", type=number, default=n_cores(), help="cores that Spark may use (all)")
    parser.add_argument("--only", nargs="+", help="parts of the names of the peers wanted (all)")
    return parser.parse_args(arguments)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
