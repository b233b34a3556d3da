"""The tables of ``docs/other-tools.md``, and what they say of awkward inputs, found out by running a tool.

The examples are small: two or three items, one or two users. A tool is a function that evaluates them; what it returns
is put into the words of the page.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PAGE: Final = Path(__file__).parents[2] / "docs" / "other-tools.md"

TIES: Final = "equal scores"
REPEATED: Final = "an item twice in a list"
MISSING: Final = "a judged user without a list"
NOTHING_RELEVANT: Final = "a user with a list and nothing relevant"
NAN: Final = "a score that is NaN"
MEASURES: Final = "names of measures"

SCORES: Final = {"x": float("nan"), "a": 2.0, "b": 1.0}
"""A list with a score that is NaN, between others in whatever order."""


def cell(row: str, tool: str) -> str:
    """Read what the page says of a tool in the row with this heading."""
    found = [line[tool] for line in _rows() if line.get("") == row and tool in line]
    assert len(found) == 1, (row, tool, found)
    return found[0]


def _rows() -> Iterator[Mapping[str, str]]:
    """Read every row of every table: its cells by the headings of the columns, its own heading under the empty text."""
    headings: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            headings = []
            continue
        cells = [text.strip() for text in line.strip().strip("|").split("|")]
        if not headings:
            headings = ["", *cells[1:]]
        yield dict(zip(headings, cells, strict=True))


def order_of_ties(reciprocal_rank: Callable[[str, Sequence[str]], float]) -> str:
    """Say in which order a tool puts items with equal scores.

    Parameters
    ----------
    reciprocal_rank : callable
        Of the one relevant item, in a list of one user whose items have equal scores and come in this order.
    """
    found = set()
    for n_items in (2, 5, 40):
        items = [f"i{number:02}" for number in range(n_items)]
        for order in (items, items[::-1], random.Random(n_items).sample(items, n_items)):
            value = {item: reciprocal_rank(item, order) for item in items}
            found.add(_named_order(sorted(items, key=lambda item: -value[item]), items, order))
    # A shuffled list of two may be in either order: the input's is that of the items too.
    for one in ("lower id first", "higher id first", "order of the input"):
        if all(one in names for names in found):
            return one
    return "not fixed"


def _named_order(ranking: list[str], items: list[str], order: Sequence[str]) -> tuple[str, ...]:
    known = {"lower id first": items, "higher id first": items[::-1], "order of the input": list(order)}
    return tuple(name for name, wanted in known.items() if ranking == wanted)


def times_counted(precision_at_3: float) -> str:
    """Say how often an item counts: the list is a, a, b by score, and a and b are relevant."""
    return {2 / 3: "counts once", 1.0: "counts twice"}[precision_at_3]


def share_of_two(mean: float) -> str:
    """Say what became of one of two users, where the other one has the value 1."""
    return {1 / 2: "counts 0", 1.0: "left out"}[mean]


def place_of_nan(reciprocal_rank: Callable[[str, Mapping[str, float]], float]) -> str:
    """Say where an item with a NaN score is, whichever place it has in the input.

    Parameters
    ----------
    reciprocal_rank : callable
        Of the one relevant item, in a list of one user with these scores.
    """
    orders = ("xab", "axb", "abx", "bax")
    found = {reciprocal_rank("x", {item: SCORES[item] for item in order}) for order in orders}
    (value,) = found
    return {1.0: "first", 1 / 3: "last", 0.0: "left out"}[value]
