"""Names with their descriptions: labels, and next to them text that wraps at the width of the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

Fact: TypeAlias = tuple[str, str]
"""A label and its text; a line end of the text stays one."""

LABEL_WIDTH: Final = 12
_MARGIN: Final = "  "
_WIDEST: Final = 120
"""Columns beyond which lines are hard to read."""


def print_heading(out: Console, name: str, text: str) -> None:
    """Write a name in bold and one sentence next to it."""
    first, *others = _wrapped(text, _width(out), before=len(name) + len(_MARGIN))
    _print(out, Text.assemble((name, "bold"), _MARGIN, first))
    for line in others:
        _print(out, Text(" " * (len(name) + len(_MARGIN)) + line))


def print_facts(out: Console, facts: Iterable[Fact]) -> None:
    """Write facts below one another, their texts in one column."""
    for label, text in facts:
        lines = _wrapped(text, _width(out), before=len(_MARGIN) + LABEL_WIDTH)
        for place, line in enumerate(lines):
            _print(out, Text(f"{_MARGIN}{label if place == 0 else '':<{LABEL_WIDTH}}{line}".rstrip()))


def reflowed(text: str) -> str:
    """Join the lines of each paragraph, which were broken for the width of a source file."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _width(out: Console) -> int:
    return min(out.width, _WIDEST)


def _wrapped(text: str, width: int, *, before: int) -> list[str]:
    """Break each line at blanks; what has none, such as a formula, may stand over."""
    room = max(width - before, 20)
    wrap = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False).wrap
    return [piece for line in text.split("\n") for piece in wrap(line) or [""]]


def _print(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
