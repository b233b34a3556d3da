"""The commands that the demo ends with."""

from __future__ import annotations

import shlex

from rankeval_spark.cli.commands.demo import next_commands
from rankeval_spark.config import load_config
from tests.support.cli import PROJECT


def test_the_config_of_the_demo_is_valid_with_the_changes_that_its_last_words_propose() -> None:
    changed = [shlex.split(command) for command in next_commands("demo/results", "1998-03-26") if "--set" in command]

    (words,) = changed
    config = load_config(PROJECT / words[2], overrides=[words[words.index("--set") + 1]])
    assert list(config.cutoffs) == [5, 10]
