"""Interpolated precision, which trec_eval 10 rounds its own way, is what its code printed for the same two files.

``golden/trec_eval_10/README.md`` tells how the numbers were made; of everything else the two versions agree.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import rankeval

GOLDEN: Final = Path(__file__).parent / "golden" / "trec_eval_10"
ELEVEN: Final = "11pt_avg"


def printed_by_trec_eval() -> dict[str, list[str]]:
    """Return the lines for each set of options, as trec_eval writes them, sorted."""
    lines: dict[str, list[str]] = {}
    with (GOLDEN / "interpolated_precision.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            options, topic = row.pop("options"), row.pop("topic")
            names = {level: level if level == ELEVEN else f"iprec_at_recall_{level}" for level in row}
            lines.setdefault(options, []).extend(
                f"{names[level]:<22}\t{topic}\t{value}" for level, value in row.items()
            )
    return {options: sorted(of_options) for options, of_options in lines.items()}


EXPECTED: Final = printed_by_trec_eval()


@pytest.mark.parametrize("options", EXPECTED)
def test_lines_are_those_of_trec_eval_10(options: str) -> None:
    names = {line.split()[0] for line in EXPECTED[options]} - {ELEVEN}
    levels = ",".join(sorted(name.rpartition("_")[2] for name in names))
    asked = ("-m", f"iprec_at_recall.{levels}", "-m", ELEVEN)

    done = rankeval("trec", *options.split(), *asked, GOLDEN / "qrels.txt", GOLDEN / "run.txt")

    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == EXPECTED[options]


def test_numbers_are_not_those_of_version_9() -> None:
    """Else the test above would say nothing."""
    asked = ("-m", "iprec_at_recall", GOLDEN / "qrels.txt", GOLDEN / "run.txt")

    of_9, of_10 = (rankeval("trec", "-c", "--trec-eval", version, *asked).out for version in ("9", "10"))

    assert of_9 != of_10
