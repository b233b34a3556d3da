"""The commands that the demo ends with."""

from __future__ import annotations

import shlex

from rankeval_spark.cli.commands.demo import SHOWN, next_commands, without_variants
from rankeval_spark.config import load_config
from tests.support.cli import PROJECT


def test_the_config_of_the_demo_is_valid_with_the_changes_that_its_last_words_propose() -> None:
    changed = [shlex.split(command) for command in next_commands("demo/results", "1998-03-26") if "--set" in command]

    (words,) = changed
    config = load_config(PROJECT / words[2], overrides=[words[words.index("--set") + 1]])
    assert list(config.cutoffs) == [5, 10]


def test_the_tables_have_one_line_of_measures_that_are_alike() -> None:
    computed = load_config(PROJECT / "conf/demo.yaml").measure_set().labels
    rows = [{"measure": label, "model_id": "als"} for label in computed]
    assert [row["measure"] for row in without_variants(rows)] == [label for label in computed if label in SHOWN]
    assert set(SHOWN) < set(computed)
    others = [{"measure": "ERR", "model_id": "als"}]
    assert without_variants(others) == others
