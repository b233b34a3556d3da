"""Schedules of the documentation: commands that exist, with options that they take."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import rankeval
from tests.support.pages import blocks

PAGE = "docs/schedule.md"
COMMAND = re.compile(r"rankeval (?:--quiet )?(run|gate|backfill|maintain) [^\"|;>\n]*")


def test_every_command_of_a_schedule_is_one_with_its_options() -> None:
    text = "\n".join(block.text for block in blocks() if block.page == PAGE)
    commands = [match[0].replace(" --quiet", "").split() for match in COMMAND.finditer(text)]
    assert {command[1] for command in commands} == {"run", "gate", "backfill", "maintain"}
    for command in commands:
        help_text = rankeval(command[1], "--help").out
        for word in command:
            assert not word.startswith("--") or re.search(rf"{word}\b", help_text), command


def test_the_dag_has_the_run_the_gate_and_the_promotion_in_this_order() -> None:
    (dag,) = (block.text for block in blocks("python") if block.page == PAGE)
    tree = ast.parse(dag)
    tasks = [
        keyword.value.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "BashOperator"
        for keyword in call.keywords
        if keyword.arg == "task_id" and isinstance(keyword.value, ast.Constant)
    ]
    assert tasks == ["run", "gate", "promote"]
    assert any(isinstance(node, ast.Expr) and ast.unparse(node) == "run >> gate >> promote" for node in ast.walk(tree))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there to check its units")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = (block.text for block in blocks("ini") if block.page == PAGE)
    (tmp_path / "rankeval-nightly.service").write_text(service.replace("User=eval\n", ""))
    (tmp_path / "rankeval-nightly.timer").write_text(timer)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "rankeval-nightly.timer")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
