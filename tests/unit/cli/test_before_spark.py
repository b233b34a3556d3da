"""What is wrong with a command is said before Spark starts, which takes ten seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from rankeval_spark.cli import published as published_commands, run
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = nights.workspace(tmp_path_factory.mktemp("before") / "workspace", format_=nights.PARQUET)
    assert rankeval("run", made.config, "--date", FIRST).code == 0
    return made


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str, **_: Any) -> NoReturn:  # noqa: ANN401 - options of a session
        message = f"{name} started Spark"
        raise AssertionError(message)

    monkeypatch.setattr(published_commands, "start", start)
    monkeypatch.setattr(run, "new_session", start)


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        (("--measure", "RR@5", "--date", "2026-01-09"), 4, "no published run of 2026-01-09"),
        (("--measure", "RR@5", "--evaluation", "nighly"), 4, "no published run of nighly"),
        (("--measure", "Gini@5"), 2, "--measure: found Gini@5"),
        (("--measure", "ILD@5"), 4, "ILD, which need items"),
    ],
)
def test_score(published: Workspace, options: tuple[str, ...], code: int, found: str) -> None:
    done = rankeval("score", published.root, *options)

    assert done.code == code
    assert found in done.message


def test_reproduce(published: Workspace) -> None:
    done = rankeval("reproduce", published.root, "--run-id", "first")

    assert done.code == 4
    assert "found no run 'first'; expected the run_id of a published run; the newest is" in done.message


@pytest.mark.parametrize("override", ["spark.always=true", "spark.always=false"])
def test_dry_run(published: Workspace, override: str) -> None:
    missing = ("--set", "inputs.held_out.path=inputs/{date}", "--set", "inputs.segments.columns={country: land}")
    done = rankeval("run", published.config, "--date", FIRST, "--dry-run", "--set", override, *missing)

    assert done.code == 4
    assert f"inputs.held_out: found no such path at {published.folder}/inputs/2026-01-01" in done.message
    assert "inputs.segments.columns.country: found no column 'land'" in done.message


def test_what_this_process_reads_is_planned_and_scored_without_spark(published: Workspace) -> None:
    planned = rankeval("run", published.config, "--date", FIRST, "--dry-run")
    assert planned.code == 0, planned.err
    read = [[cell.strip() for cell in line.split("│")] for line in planned.out.splitlines() if "│" in line]
    assert [(row[0], row[-2], row[-1]) for row in read if row[0]] == [  # long locations go on in lines of their own
        ("recommendations", "1", "24"),
        ("held_out", "1", "7"),
        ("segments", "1", "4"),
    ]
    assert "x 2 models x" in planned.out

    scored = rankeval("score", published.root, "--measure", "DCG@3", "--date", FIRST)
    assert (scored.code, "DCG@3" in scored.out) == (0, True), scored.err
