"""Drivers that do not start, in processes of their own: one message, the right code, no stack trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import nights
from tests.support.cli import rankeval_process
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value", "code", "found"),
    [
        ("spark.jars", "http://127.0.0.1:9/x.jar", 8, "ConnectException: Connection refused"),
        ("spark.driver.memory", "abc", 2, "Invalid maximum heap size: -Xmxabc"),
        ("spark.executor.memory", "0", 2, "Executor memory must be a positive number"),
    ],
)
def test_a_setting_that_a_driver_cannot_start_with_is_named(
    tmp_path: Path, key: str, value: str, code: int, found: str
) -> None:
    workspace = nights.workspace(tmp_path, spark={"always": True, "settings": {key: value}})

    done = rankeval_process("run", workspace.config, "--date", FIRST)

    assert done.code == code, done.err
    done.assert_readable()
    assert key in done.message
    assert found in done.message
    assert done.out == ""
    assert done.err.startswith("error: ")
