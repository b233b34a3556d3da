"""``rankeval trec``: the lines go to standard output as they are, for programs that read trec_eval's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.apps.trec import evaluate_files
from rankeval_spark.cli.display.terminal import write_out

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.apps.trec import Settings


def trec_command(qrels: Path, run: Path, settings: Settings) -> None:
    """Evaluate and print; typer ends the command quietly if the reader of the output has ended."""
    for line in evaluate_files(qrels, run, settings).text():
        write_out(f"{line}\n")
