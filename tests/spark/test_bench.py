"""The benchmark runs, and times what it says: every contender does its work on a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.data import SEGMENT_SIZES, DataSettings, prepare
from benchmarks.families import Families, accuracy_set
from benchmarks.report import Report
from benchmarks.timing import interleaved
from benchmarks.workloads import (
    COMPARED,
    CUTOFFS,
    DEFAULT,
    DRAWN,
    EXCHANGE,
    FLOOR,
    HANDED_OVER,
    MEASURES,
    WHOLE,
    Workloads,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_the_floor_and_the_whole_evaluation_are_timed_on_the_same_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path))
    settings = DataSettings(2_000, seed=3)
    workloads = Workloads(spark, prepare(spark, settings), tmp_path / "scratch")
    n_rows = spark.read.parquet(str(workloads.tables.recommendations)).count()

    timings = interleaved(workloads.main(), repeats=1, before_each=lambda: None)
    table = Report("bench", {}, timings, reference=FLOOR, n_rows=n_rows).as_table()

    assert list(timings) == [DEFAULT, FLOOR, EXCHANGE, HANDED_OVER, WHOLE]
    assert all(name in table for name in timings)
    lists = workloads.lists().collect()
    assert len(lists) == settings.n_users == 20
    n_repeated = sum(row["n_duplicates"] for row in lists)
    assert 0 < n_repeated < n_rows / 20
    assert sum(row["n_recommended"] for row in lists) == n_rows - n_repeated
    assert workloads.hand_over() > n_rows
    ranks = workloads.floor()
    assert isinstance(ranks, list)
    lengths = [min(row["n_recommended"] + row["n_duplicates"], 100) for row in lists]
    assert ranks[0][0] == sum(length * (length + 1) // 2 for length in lengths)
    n_slices = 1 + sum(len({row["segments"][name] for row in lists}) for name in SEGMENT_SIZES)
    families = Families(workloads)
    named = [one.name for one in families.contenders()]
    assert len(named) == len(set(named))
    assert families.floors().items() <= {(name, floor) for name in named for floor in named}
    assert set(MEASURES) - {"RBP"} <= {*accuracy_set().labels, *(name for name in MEASURES if "(" in name)}
    assert workloads.whole() == len(MEASURES) * len(CUTOFFS) * n_slices
    assert workloads.means() == workloads.whole()
    drawn, compared, *_ = workloads.extras()
    assert (drawn.name, compared.name) == (DRAWN, COMPARED)
    assert drawn.run() == compared.run() == 6 * len(CUTOFFS)
