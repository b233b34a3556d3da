"""``rankeval reconcile``: what it prints for people and for programs, and how it names its options."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support.arrow_frames import table
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

MEASURE = ("--measure", "P@2", "--switches", 1)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    log, held_out = tmp_path / "log.parquet", tmp_path / "held_out.parquet"
    pq.write_table(table("user_id item_id rank", ("ann", "a", 1), ("ann", "b", 2)), log)
    pq.write_table(table("user_id item_id", ("ann", "b"), ("bob", "a")), held_out)
    return log, held_out


def test_the_table_the_json_the_csv_and_the_markdown_have_the_same_steps(files: tuple[Path, Path]) -> None:
    given = ("reconcile", *files, *MEASURE, "--theirs", "0.50", "--policy", "missing=zero")
    text, as_json, as_csv, markdown = (
        rankeval(*given, *more).out for more in ((), ["--json"], ["--csv"], ["--as", "markdown"])
    )
    document = json.loads(as_json)
    assert (document["ours"], document["theirs"], document["gap"]) == (0.25, 0.5, 0.25)
    first = document["combinations"][0]
    assert (first["measures"], first["steps"][0]["worth"]) == (["P@2"], 0.25)
    settings = [step["setting"] for each in document["combinations"] for step in each["steps"]]
    assert [row["setting"] for row in csv.DictReader(io.StringIO(as_csv))] == settings
    assert all(setting in text and setting in markdown for setting in settings)
    assert "P@2: 0.25 here, 0.50 there, a gap of +0.25" in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--theirs", "50"], "--theirs: found 50; expected a number from 0 to 1"),
        (["--theirs", "0.5", "--policy", "ties"], "--policy: found 'ties'; expected NAME=VALUE"),
        (["--theirs", "0.5", "--policy", "ties=random"], "--policy ties: found 'random'"),
        (["--theirs", "0.5", "--model", "als"], "--model: found 'als'"),
    ],
    ids=str,
)
def test_faults_name_the_options_of_the_command(files: tuple[Path, Path], more: list[str], message: str) -> None:
    done = rankeval("reconcile", *files, *MEASURE, *more)
    assert (done.code, done.out) == (2, "")
    assert message in done.message
    missing = rankeval("reconcile", files[0], files[1].with_name("no.parquet"), *MEASURE, "--theirs", "0.5")
    assert "HELD_OUT: found no such path" in missing.message
