"""A rule is switched off for a line only with the reason beside it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.code import Module, modules

ALL_MODULES: Final = modules("rankeval_spark", "jobs", "tests", "benchmarks", "docs")

SUPPRESSION: Final = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pylint:|mypy:|ruff:|pragma:|fmt:\s*(?:off|skip))", re.IGNORECASE
)
"""Comments that silence a tool."""

CODES: Final = r"[A-Z]+\d+(?:,\s*[A-Z]+\d+)*"
WITH_REASON: Final = re.compile(
    rf"#\s*(?:noqa:\s*{CODES}|type:\s*ignore\[[\w-]+(?:,\s*[\w-]+)*\]|fmt:\s*\w+|pragma: no cover)"
    r"\s*[-#:,(–]+\s*(?P<reason>\w.*)"
)
MIN_LETTERS: Final = 6


def has_reason(comment: str) -> bool:
    """Whether a suppression names its rule and says why, in a word at least."""
    found = WITH_REASON.match(comment)
    return found is not None and len(re.findall(r"[^\W\d_]", found["reason"])) >= MIN_LETTERS


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every comment; strings that look like one are none."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def unexplained(module: Module) -> Iterator[str]:
    """Suppressions of a module that name no rule or give no reason on their line."""
    for line, comment in comments(module.text) if SUPPRESSION.search(module.text) else ():
        for start in (found.start() for found in SUPPRESSION.finditer(comment)):
            if not has_reason(comment[start:]):
                yield f"{module.place}:{line}: {comment}"


def test_every_suppression_has_its_reason_on_the_line() -> None:
    assert [fault for module in ALL_MODULES for fault in unexplained(module)] == []


@pytest.mark.parametrize(
    ("comment", "is_explained"),
    [
        ("# noqa: S101 - slots is not empty", True),
        ("# noqa: PLC0415  (imports pyspark, which unit tests do without)", True),
        ("# noqa: PLR0913, PLR0917 - the six buffers", True),
        ("# type: ignore[attr-defined] # no stubs", True),
        ("# noqa", False),
        ("# noqa: S101", False),
        ("# noqa: S101 - why", False),
        ("# type: ignore", False),
        ("# type: ignore[attr-defined]", False),
        ("# fmt: skip  # a table, a row each", True),
        ("# fmt: off", False),
        ("# pragma: no cover", False),
    ],
)
def test_a_reason_is_more_than_a_code(comment: str, is_explained: bool) -> None:
    assert has_reason(comment) is is_explained
