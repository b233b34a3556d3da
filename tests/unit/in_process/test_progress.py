"""Progress of what takes long, and interruptions: real processes, terminals and signals."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from rankeval_spark.hosts import progress_line
from tests.support.terminal import ENVIRONMENT, on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROWS: Final = """
import os, signal, threading, time
import numpy as np, pyarrow as pa
from rankeval_spark import evaluate
from rankeval_spark.hosts import progress_line

draw = np.random.default_rng(0)
users, items = np.repeat(np.arange(n_rows // 20), 20), np.arange(n_rows) * 7 % 9973
log = pa.table({"user_id": users, "item_id": items, "score": draw.random(n_rows)})
held_out = log.select(["user_id", "item_id"]).filter(pa.array(draw.random(n_rows) < 0.1))
"""
SLOWLY: Final = """
with progress_line.show_progress("nDCG@10") as advance:
    advance(1_000, 2_000)
    time.sleep(SECONDS)
"""
"""A block that takes longer than a patience that is set below the two seconds, for a quick test."""


def slowly(seconds: float) -> str:
    head = "import time\nfrom rankeval_spark.hosts import progress_line\nprogress_line.SECONDS_OF_QUIET = 0.2\n"
    return head + SLOWLY.replace("SECONDS", str(seconds))


def test_a_terminal_shows_rows_and_seconds_while_it_lasts() -> None:
    shown = on_a_terminal(slowly(0.8), keeps_codes=True)
    assert "rankeval: nDCG@10, 1,000 of 2,000 rows, 0 s" in shown
    assert shown.endswith("\x1b[2K")  # and is left without the line


def test_nothing_is_shown_below_two_seconds_or_where_it_is_switched_off() -> None:
    assert progress_line.SECONDS_OF_QUIET == 2.0
    evaluated = ROWS + "evaluate(log, held_out, measures=['nDCG@10']).leaderboard()"
    assert on_a_terminal("n_rows = 2000\n" + evaluated) == ""
    assert on_a_terminal(slowly(0.5), environment={"RANKEVAL_PROGRESS": "off"}) == ""


def test_elsewhere_there_is_one_line_of_the_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "SECONDS_OF_QUIET", 0.01)
    with (
        caplog.at_level(logging.INFO, "rankeval"),
        progress_line.show_progress("RR"),
        progress_line.show_progress("AP"),
    ):
        time.sleep(0.1)
    (line,) = (record.getMessage() for record in caplog.records)
    assert re.fullmatch(r"RR took \d\.\d s", line)
    assert capfd.readouterr() == ("", "")


def test_an_interruption_ends_a_computation_within_a_second_and_leaves_nothing(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
begun, sent = threading.Event(), []
def slow(ranks):
    begun.set()
    if not sent:
        time.sleep(0.001)  # of 20,000 lists: ten seconds on two cores
    return float(len(ranks))
result = evaluate(log, held_out, measures=["nDCG@10", slow])
def interrupt():
    begun.wait()
    time.sleep(0.2)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    result.leaderboard()
    raise SystemExit("was not interrupted")
except KeyboardInterrupt:
    seconds = time.monotonic() - sent[0]
assert seconds < 1, seconds
fresh = evaluate(log, held_out, measures=["nDCG@10", slow])
assert result.metrics.equals(fresh.metrics)
assert not [thread for thread in threading.enumerate() if thread.name == "rankeval-progress"]
"""
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", f"n_rows = 400_000\n{ROWS}{script}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []
