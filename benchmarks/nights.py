"""The nightly job: ten million rows and few, on Spark and in the process that runs it, one date and thirty."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from deltalake import DeltaTable, write_deltalake

from benchmarks.timing import Contender
from benchmarks.workloads import DAY, FLOOR, NIGHT
from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import NightResult, run_night
from rankeval_spark.config import load_config
from rankeval_spark.demo import prepare
from rankeval_spark.spark.session import on_demand

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.workloads import Workloads

HERE: Final = "  in the process that runs it, without Spark"
PROCESS: Final = "  the same with the start of the process: rankeval run"
SMALL: Final = "a night of the demo's inputs on Spark, warm"
SMALL_HERE: Final = "  in the process that runs it, warm"
SMALL_PROCESS: Final = "  the same with the start of the process: rankeval run"
BACKFILL: Final = "30 such nights with the start of the process: rankeval backfill"

N_DATES: Final = 30
FIRST: Final = date(2026, 1, 1)
_CONFIG: Final = Path(__file__).parents[1] / "rankeval_spark" / "demo" / "demo.yaml"


@dataclass(frozen=True)
class Nights:
    """The contenders.

    Attributes
    ----------
    workloads : Workloads
        The rows, the session, and where results go.
    demo : Path
        Folder of the demo's inputs, which are made where they are not there yet.
    say : callable
        Called with a line of what is made.
    """

    workloads: Workloads
    demo: Path
    say: Callable[[str], None] = lambda _: None

    def contenders(self) -> list[Contender]:
        """List them in the order of the table, the floor of the large ones first."""
        large = self.workloads.night_config
        return [
            Contender(FLOOR, self.workloads.floor),
            Contender(NIGHT, self.workloads.night),
            Contender(HERE, lambda: night_here(large, DAY)),
            Contender(PROCESS, lambda: command("run", large, "--date", DAY)),
            Contender(SMALL, lambda: run_night(self.workloads.spark, load_config(self.small_config), FIRST)),
            Contender(SMALL_HERE, lambda: night_here(self.small_config, FIRST)),
            Contender(SMALL_PROCESS, lambda: command("run", self.small_config, "--date", FIRST)),
            Contender(BACKFILL, lambda: command("backfill", self.small_config, "--from", FIRST, "--to", self.last)),
        ]

    @property
    def last(self) -> date:
        """The last of the dates."""
        return FIRST + timedelta(days=N_DATES - 1)

    @cached_property
    def small_config(self) -> Path:
        """Write the demo's config for its inputs, whose dates are repeated to be thirty."""
        logs = prepare(self.demo, self.say)
        config = yaml.safe_load(_CONFIG.read_text(encoding="utf-8"))
        for name, given in config["inputs"].items():
            given["path"] = str(_repeated(logs.table(name), self.demo / "thirty" / name))
        config["results"]["root"] = str(self.workloads.scratch / "small")
        self.workloads.scratch.mkdir(parents=True, exist_ok=True)
        path = self.workloads.scratch / "small.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path


def night_here(config: Path, day: date) -> NightResult:
    """Run a night in this process; a Spark that it takes is an error."""
    return run_night(on_demand(_no_spark), load_config(config), day)


def command(*arguments: object) -> None:
    """Run a command of the program in a process of its own; a gate that is not met is no failure."""
    done = subprocess.run(
        [sys.executable, "-m", "rankeval_spark", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(_CONFIG.parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 6):
        raise RuntimeError(done.stdout + done.stderr)


def _repeated(table: Path, target: Path) -> Path:
    """Write the dates of a table again and again, until there are thirty."""
    if not (target / "_delta_log").is_dir():
        rows = DeltaTable(table).to_pyarrow_table()
        dates = sorted(pc.unique(rows[C.EVALUATION_DATE]).to_pylist())
        place = rows.column_names.index(C.EVALUATION_DATE)
        parts = []
        for number in range(N_DATES):
            own = rows.filter(pc.equal(rows[C.EVALUATION_DATE], dates[number % len(dates)]))
            days = pa.repeat(pa.scalar(FIRST + timedelta(days=number), pa.date32()), own.num_rows)
            parts.append(own.set_column(place, C.EVALUATION_DATE, days))
        write_deltalake(target, pa.concat_tables(parts), partition_by=[C.EVALUATION_DATE])
    return target


def _no_spark() -> NoReturn:
    message = "this night was to be computed without Spark"
    raise RuntimeError(message)
