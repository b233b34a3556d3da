"""The workspace of a night with its log in TREC files, or in a place for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import nights
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.nights import Row, Workspace

MODELS = ("als", "pop")


def of_first(rows: Iterable[Row]) -> list[Row]:
    """Leave the rows of the first date, without it: files of TREC have no date."""
    return [{name: value for name, value in row.items() if name != "day"} for row in rows if row["day"] == str(FIRST)]


def run_lines(rows: Iterable[Row], tag: str = "") -> str:
    """Write rows of a log as a run."""
    lines = (
        f"{row['user_id']} Q0\t{row['item_id']}  {place} {row['score']} {tag or row['model_id']} more\n"
        for place, row in enumerate(rows, 1)
    )
    return "# a comment\n\n" + "".join(lines)


def with_trec(workspace: Workspace, *, has_one_file: bool = True) -> Workspace:
    """Let the night read a run and its judgements."""
    runs, log = workspace.folder / "inputs" / "runs", of_first(nights.recommendations())
    runs.mkdir()
    if has_one_file:
        (runs / "all.txt").write_text(run_lines(log))
    else:
        for model in MODELS:
            (runs / f"{model}.txt").write_text(run_lines(row for row in log if row["model_id"] == model))
    judged = "".join(f"{row['user_id']} 0 {row['item_id']} {row['gain']:.0f}\n" for row in of_first(nights.held_out()))
    (workspace.folder / "inputs" / "qrels.txt").write_text(judged)
    workspace.change(
        inputs__recommendations={"format": "trec", "path": "inputs/runs"},
        inputs__held_out={"format": "trec", "path": "inputs/qrels.txt"},
        checks={"rank_gaps": {}},
    )
    return workspace


def with_paths(workspace: Workspace, format_: str, tag: str = "") -> Workspace:
    """Let the night read a log whose models are in a place each."""
    given: dict[str, Any] = {"format": format_, "paths": {model: f"inputs/{model}" for model in MODELS}}
    for model in MODELS:
        own = [row for row in nights.recommendations() if row["model_id"] == model]
        if format_ == "trec":
            _write_run(workspace.folder / "inputs" / model, run_lines(of_first(own), tag))
        else:
            workspace.write(model, [{name: row[name] for name in row if name != "model_id"} for row in own], format_)
            given["filters"] = [{"column": "day", "op": "=", "value": "{date}"}]
    workspace.change(inputs__recommendations=given, checks={"rank_gaps": {}})
    return workspace


def _write_run(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "run.txt").write_text(text)
