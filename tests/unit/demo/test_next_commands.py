"""The commands that the demo ends with."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

from rankeval_spark.cli.demo import CONFIG, SHOWN, next_commands, without_variants
from rankeval_spark.config import load_config


def test_the_last_command_of_a_demo_reads_its_config_with_a_change(tmp_path: Path) -> None:
    path = tmp_path / "it's #1: a demo" / "demo.yaml"
    path.parent.mkdir()
    path.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    *_, last = map(shlex.split, next_commands("demo/results", "1998-03-26", str(path)))
    changes = [after for word, after in pairwise(last) if word == "--set"]
    config = load_config(Path(last[2]), changes)
    assert config.results.location == str(path.with_name("results"))
    assert list(config.cutoffs) == [5, 10]


def test_the_tables_have_one_line_of_measures_that_are_alike() -> None:
    computed = load_config(CONFIG).measure_set.labels
    rows = [{"measure": label, "model_id": "als"} for label in computed]
    assert [row["measure"] for row in without_variants(rows)] == [label for label in computed if label in SHOWN]
    assert set(SHOWN) < set(computed)
    others = [{"measure": "ERR", "model_id": "als"}]
    assert without_variants(others) == others
