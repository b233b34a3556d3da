"""``rankeval run``: what it says, and what a dry run leaves alone."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import nights
from tests.support.cli import rankeval, rankeval_process
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


@pytest.mark.slow
def test_run_in_a_process_of_its_own_fails_in_one_message(published: Workspace, tmp_path: Path) -> None:
    """The session is its own here, and so is what Java says on the terminal."""
    workspace = published.copy(tmp_path / "with a space")
    workspace.write("recommendations", [*nights.recommendations(), nights.recommendations()[0]])

    failed = rankeval_process("run", workspace.config, "--date", FIRST, "--set", "policies.duplicates=error")

    assert failed.code == 3
    failed.assert_readable()
    assert failed.message == (
        "a check failed, nothing was published: - policies.duplicates: found item 'a' occurs twice in a list "
        "of user 'ann'; expected no such case; remove them, or choose the policy best"
    )
    ours = failed.err.splitlines()  # without what Java says of its modules
    assert next(line for line in ours if " INFO rankeval nightly 2026-01-01 " not in line).startswith("error: ")
    assert [line.partition("stage=")[2].split()[0] for line in ours if "stage=" in line][:1] == ["read"]
    assert "\x1b" not in failed.out + failed.err


@pytest.mark.slow
def test_what_spark_refuses_is_a_fault_of_the_config(own_copy: Workspace) -> None:
    always = ("--set", "spark.always=true")  # settings alone choose no Spark
    failed = rankeval_process("run", own_copy.config, "--date", FIRST, *always, "--set", "spark.master=local[x]")

    assert failed.code == 2
    failed.assert_readable()
    assert failed.message.startswith("the configuration is not valid: - spark: found Spark refuses it: ")
    assert "Could not parse Master URL: 'local[x]'" in failed.message
    assert "master and settings under spark in the config" in failed.message


@pytest.mark.slow
def test_what_the_machine_refuses_is_none(own_copy: Workspace) -> None:
    """An address that is no machine's, by RFC 5737: Spark throws as it does where no port is free."""
    settings = "spark.settings={spark.driver.bindAddress: 192.0.2.1, spark.port.maxRetries: 1}"
    always = ("--set", "spark.always=true")
    failed = rankeval_process("run", own_copy.config, "--date", FIRST, *always, "--set", settings)

    assert failed.code == 1
    assert "BindException" in failed.message
    assert "the configuration is not valid" not in failed.message


def test_a_file_system_that_takes_no_more_changes_nothing(
    spark: SparkSession, own_copy: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our process and its JVM may write files of 1 KB only, from the moment the run is recorded as RUNNING."""
    both = (spark.sparkContext._gateway.proc.pid, os.getpid())  # type: ignore[union-attr]  # py4j has no types
    limits = {one: resource.prlimit(one, resource.RLIMIT_FSIZE) for one in both}

    def limit(_: str) -> None:
        for one, (_soft, hard) in limits.items():
            resource.prlimit(one, resource.RLIMIT_FSIZE, (1024, hard))

    monkeypatch.setattr("rankeval_spark.results.run.failpoint", limit)
    before = own_copy.published_rows()
    try:
        full = rankeval("run", own_copy.config, "--date", FIRST)
    finally:
        for one, before_it in limits.items():
            resource.prlimit(one, resource.RLIMIT_FSIZE, before_it)

    assert full.code == 8
    full.assert_readable()
    assert "disk: found no room: File too large; expected room for staging" in full.message
    assert "could not be recorded as FAILED: " in full.message
    assert own_copy.published_rows() == before
    assert list(Path(own_copy.root, "_staging").iterdir()) == []
