"""The blocks of code in the pages, and which of them are run where."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.support.code import ROOT

PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ON_SPARK: Final = {("README.md", "result = evaluate("), ("docs/slices.md", "result = evaluate(recommendations")}
"""Blocks of Python that need Spark, by their page and how they begin; ``tests/spark/test_pages.py`` runs them."""

SQL_PAGE: Final = "docs/sql.md"
"""The page whose blocks of Python and SQL need Spark and follow each other; ``test_measures_in_sql.py`` runs them."""

NOT_RUN: Final = {
    ("README.md", "make demo"): "takes minutes and the network; tests/spark/nightly/test_demo.py runs the demo",
    ("README.md", "pip wheel"): "installs the package; tests/meta/test_distribution.py makes such a wheel",
    ("README.md", "make zip"): "tests/cluster/test_submit.py submits it",
    ("CONTRIBUTING.md", "@Definition("): "an excerpt: the measure is registered already, and a name is registered once",
    ("CONTRIBUTING.md", "FirstHit:"): "an excerpt of the notes of that measure, which tests/unit/measures reads",
    ("benchmarks/README.md", "make bench"): "takes up to half an hour",
    (
        "docs/attribution.md",
        "from rankeval_spark import attributed_interactions",
    ): "an excerpt; tests/spark/notebook/test_attribution.py looks at every row of such a frame",
    (
        "docs/queries.md",
        "rankeval register",
    ): "needs the programs duckdb and spark-sql; test_queries.py runs what it prints",
    **{
        ("docs/explain.md", start): "what the block above prints; tests/unit/test_pages.py compares it"
        for start in ("lists: ", "nDCG = ", "IPrecAvg = ", "P@2 = ", "AP = ")
    },
    ("docs/advise.md", "look at first"): "what the block above prints; tests/unit/test_pages.py compares it",
    ("docs/operations.md", "make zip"): "needs a cluster; tests/cluster/test_submit.py submits it",
    ("docs/operations.md", "make cluster-env"): "needs a cluster; tests/cluster/test_submit.py submits it",
    ("docs/reference-values.md", "{"): "an excerpt of values.json",
    ("docs/scale.md", ""): "takes up to an hour",
    ("docs/schedule.md", ""): "needs schedulers; tests/unit/test_schedules.py reads them",
    ("docs/trec.md", "rankeval trec [-q]"): "a synopsis",
    (
        "docs/trec.md",
        "$ rankeval trec -q",
    ): "an excerpt of a long output; tests/unit/apps/test_trec.py compares all of it",
}
"""Blocks that no test runs as they are, by their page and how they begin, and why."""

COMMANDS_NOT_RUN: Final = {
    "log": "needs a server; tests/unit/report/test_trackers.py",
    "score": "changes published nights; tests/unit/night/test_rescoring.py",
    "reproduce": "starts Spark; tests/spark/nightly/test_reproduction.py",
    "maintain": "starts Spark; tests/spark/results/test_maintain.py",
}


class Block(NamedTuple):
    """One block: its page, its line, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def begins_as_one_of(self, known: Iterable[tuple[str, str]]) -> bool:
        """Whether it is among blocks that are named by their page and how they begin."""
        return any(page == self.page and self.text.startswith(start) for page, start in known)

    @property
    def commands(self) -> list[list[str]]:
        """Words of each line that is a command of ours, without its comment."""
        lines = (line for line in self.text.splitlines() if line.startswith("rankeval "))
        return [shlex.split(line, comments=True)[1:] for line in lines]

    @property
    def place(self) -> str:
        """How a test is named."""
        return f"{self.page}:{self.line}"


def blocks(language: str | None = None) -> list[Block]:
    """List the blocks of all pages, or those of one language."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(path.relative_to(ROOT)), line, match[1], match[2]))
    return [block for block in found if language in (None, block.language)]
