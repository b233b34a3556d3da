"""Tables of simulations that stand in a page of the documentation."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def print_or_write(name: str, page: str, description: str | None, table: Callable[[], str]) -> None:
    """Print the table of a benchmark or, with --write, put it between the benchmark's two marks in a page."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--write", action="store_true", help=f"replace the table in {page}")
    asked, found = parser.parse_args(), table()
    if not asked.write:
        print(found)
        return
    begin, end = f"<!-- {name}: written by python -m benchmarks.{name} --write -->", f"<!-- end of {name} -->"
    before, rest = (DOCS / page).read_text().split(begin)
    (DOCS / page).write_text(f"{before}{begin}\n\n{found}\n\n{end}{rest.split(end)[1]}")
