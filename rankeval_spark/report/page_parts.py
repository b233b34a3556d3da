"""The parts of a page as its template takes them: text, never markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

MOST_ROWS: Final = 1000
"""Rows of a table in a page; what is left out is said."""

Tone: TypeAlias = Literal["good", "bad", "open", "plain"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    text : str
        What is read.
    sort : float or None
        By what it is sorted where that is a number; cells without one come last.
    note : str
        Smaller, below the text.
    tone : str
        ``good``, ``bad`` and ``open`` have a sign in addition to a colour.
    is_best : bool
        The best value of its column.
    """

    text: str
    sort: float | None = None
    note: str = ""
    tone: Tone = "plain"
    is_best: bool = False


@dataclass(frozen=True)
class Heading:
    """One column of a table."""

    text: str
    is_number: bool = False


@dataclass(frozen=True)
class TableView:
    """A table that can be sorted, and filtered where it is long."""

    id: str
    caption: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    n_rows: int
    is_folded: bool = False

    @classmethod
    def of(
        cls,
        id_: str,
        caption: str,
        headings: Iterable[str],
        rows: Iterable[Sequence[Cell | str]],
        *,
        numbers: Collection[str] = (),
    ) -> TableView:
        """Make a table of cells and plain texts; of a very long one the first 1,000 rows are kept.

        Parameters
        ----------
        numbers : collection of str
            Headings of the columns that hold numbers.
        """
        found = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
        columns = [Heading(name, is_number=name in numbers) for name in headings]
        return cls(id_, caption, columns, found[:MOST_ROWS], len(found))

    @property
    def folded(self) -> TableView:
        """The same table, which is opened by a click."""
        return replace(self, is_folded=True)

    @property
    def n_left_out(self) -> int:
        """Rows that are not in the page."""
        return self.n_rows - len(self.rows)


@dataclass(frozen=True)
class FigureView:
    """A chart: its title as text, what it shows for those who do not see it, and its specification."""

    id: str
    title: str
    summary: str
    height: int
    note: str = ""
    is_wide: bool = False


@dataclass(frozen=True)
class Term:
    """A name and what is said of it."""

    name: str
    lines: Sequence[str] = ()
    code: str = ""


@dataclass(frozen=True)
class Block:
    """A heading inside of a section, with what belongs to it."""

    title: str = ""
    notes: Sequence[str] = ()
    figures: Sequence[FigureView] = ()
    tables: Sequence[TableView] = ()
    terms: Sequence[Term] = ()
    code: str = ""
    has_legend: bool = False
    is_folded: bool = False


@dataclass(frozen=True)
class Section:
    """One section of the page; without blocks its hint says how to get what it would show."""

    id: str
    title: str
    lead: str = ""
    blocks: Sequence[Block] = ()
    hint: str = ""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a gate."""

    text: str
    tone: Tone
    verdict: str


@dataclass(frozen=True)
class Rule:
    """One gate: what it requires, in how many cases it is met, and the sentences of its rows, the worst first."""

    number: int
    text: str
    tone: Tone
    summary: str
    shown: Sequence[Sentence]
    folded: Sequence[Sentence] = ()


@dataclass(frozen=True)
class Answer:
    """May it ship: the answer, why, and the rules behind it."""

    tone: Tone
    headline: str
    reason: str
    rules: Sequence[Rule] = ()
    facts: Sequence[tuple[str, str]] = ()
    highlights: Sequence[Sentence] = ()
    hint: str = ""


@dataclass(frozen=True)
class Swatch:
    """A model in the legend: the number of its colour, its shape and its dash."""

    name: str
    colour: str
    path: str
    dash: str
    role: str = ""


@dataclass(frozen=True)
class Page:
    """Everything that the template shows."""

    title: str
    evaluation: str
    day: str
    subtitle: str
    answer: Answer
    sections: Sequence[Section]
    swatches: Sequence[Swatch]
    footer: str
