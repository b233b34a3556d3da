"""``rankeval trec``: the lines go to standard output as they are, for programs that read trec_eval's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.app.trec import evaluate
from rankeval_spark.cli.terminal import write_out

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.app.trec import Settings


def show(qrels: Path, run: Path, settings: Settings) -> None:
    """Evaluate and print; typer ends the command quietly where nobody reads on."""
    for line in evaluate(qrels, run, settings).text():
        write_out(f"{line}\n")
