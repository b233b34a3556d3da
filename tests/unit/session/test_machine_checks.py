"""What `rankeval doctor` finds on a machine, without starting Spark."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from rankeval_spark.cli import doctor
from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.spark.session import machine_checks
from rankeval_spark.spark.session.machine_checks import Check
from tests.support.cli import PROJECT

FIT = Check("Java", ok=True, found="17")
UNFIT = Check("free disk", ok=False, found="0.1 GB for /tmp", fix="free 2 GB there")


def test_this_machine_has_what_the_locks_name() -> None:
    outcomes = [machine_checks.check_python_version(), machine_checks.check_packages(), machine_checks.check_arrow()]

    assert [outcome for outcome in outcomes if not outcome.ok] == []


def test_pyarrow_that_does_not_import_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert not machine_checks.check_arrow().ok


def test_another_spark_in_spark_home_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    outcome = machine_checks.check_spark_version()

    assert not outcome.ok
    assert outcome.found.startswith("3.5.1 in ")


def test_zone_of_spark_defaults_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.session.timeZone Asia/Tokyo\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert not machine_checks.check_time_zone().ok


def test_full_disk_is_a_fault_also_for_a_folder_that_is_not_there_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))

    assert not machine_checks.check_free_disk(tmp_path / "not" / "yet").ok


def test_a_root_is_tried_where_a_run_writes_to_it_and_not_made(tmp_path: Path) -> None:
    outcome = machine_checks.check_writable_root(f"file://{tmp_path}/my%20results")

    assert outcome.found == f"{tmp_path / 'my results'}, writable, will be made"
    assert machine_checks.check_writable_root(str(tmp_path / "new" / "results")).ok
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert not machine_checks.check_writable_root(f"file://{tmp_path}/file/results").ok
    assert machine_checks.check_writable_root("s3://bucket/results").ok  # another store is left to the run


def test_error_made_for_people_is_an_outcome() -> None:
    def check() -> Check:
        raise EnvironmentFaultError(Fault(where="Java", found="none", expected="17", fix="install one"))

    assert machine_checks.run_guarded(check) == Check("Java", ok=False, found="none", fix="install one")


@pytest.mark.parametrize(("outcome", "code"), [(FIT, 0), (UNFIT, 8)])
def test_doctor_ends_with_8_when_there_is_a_fault(monkeypatch: pytest.MonkeyPatch, outcome: Check, code: int) -> None:
    monkeypatch.setattr(machine_checks, "check_machine", lambda *_: iter([FIT, outcome]))
    said = io.StringIO()

    assert doctor.doctor_command(is_quick=True, console=Console(file=said, width=100)) == code
    assert (UNFIT.fix in said.getvalue()) == (not outcome.ok)


def test_a_check_that_hangs_is_a_fault_after_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang() -> Check:
        time.sleep(10)
        return FIT

    monkeypatch.setattr(machine_checks, "SECONDS_UNTIL_TOLD", 0.05)
    told = list[str]()

    outcome = machine_checks.run_within(hang, "a disk", tell=told.append, seconds=0.2)

    assert (outcome.name, outcome.ok, outcome.found) == ("a disk", False, "no answer within 0 s")
    assert told == ["waiting for a disk, at most 0 s"]
    assert machine_checks.run_within(lambda: FIT, "Java", tell=told.append) == FIT
    assert len(told) == 1


def test_no_check_leaves_anything_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    monkeypatch.setenv("RANKEVAL_CACHE", str(cache))

    found = {check.name: check.found for check in machine_checks.check_machine(str(tmp_path / "results"))}

    assert found["cache folder"] == f"{cache}, will be made"
    assert found["Delta jars"] == f"not in {cache / 'jars'} yet; the first start of Spark fetches them"
    assert list(tmp_path.iterdir()) == []


def test_each_line_reaches_a_pipe_while_the_next_check_waits(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nsleep 4\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "rankeval_spark", "doctor", "--quick"]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = list[str]()
        while "waiting for Java, at most 90 s" not in (lines[-1:] or [""])[0]:
            lines.append(running.stdout.readline())
        is_waiting = running.poll() is None
        rest = running.communicate(timeout=60)[0]

    assert is_waiting
    assert any(line.startswith("ok     pyarrow") for line in lines)
    assert "Java" in rest
