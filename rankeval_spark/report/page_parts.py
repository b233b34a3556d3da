"""Parts of a page as its template reads them: text, never markup, and specifications of charts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from rankeval_spark.report.figures.charts import BASELINE_SHAPE, PAGE, NothingToDrawError, import_altair, styles

if TYPE_CHECKING:
    from rankeval_spark.report.figures import Figure
    from rankeval_spark.report.forest_table import Forest

MAX_ROWS: Final = 600  # rows of a table in a page; the page says how many are left out
Tone: TypeAlias = Literal["good", "bad", "open", "plain"]  # the first three have a sign in addition to a colour
Drawn: TypeAlias = dict[str, Any]  # a chart's `id`, `title`, `summary` for screen readers, `height` and `note`


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    sort: float | None = None  # sort key of a number; cells without one come last
    note: str = ""  # smaller, below the text
    tone: Tone = "plain"
    is_best: bool = False  # the best value of its column


class TableView:
    """A table of cells and plain texts, cut after 600 rows; it can be sorted, and filtered if it is long."""

    def __init__(
        self,
        id_: str,
        caption: str,
        headings: Iterable[str],
        rows: Iterable[Sequence[Cell | str]],
        *,
        numbers: Collection[str] = (),  # headings of the columns that hold numbers
        is_folded: bool = False,  # opened by a click
    ) -> None:
        self.id, self.caption, self.is_folded = id_, caption, is_folded
        self.headings = {name: name in numbers for name in headings}
        found = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
        self.rows, self.n_rows = found[:MAX_ROWS], len(found)


@dataclass(frozen=True)
class Block:
    """A heading inside a section, with its contents."""

    title: str = ""
    notes: Sequence[str] = ()
    figures: Sequence[Drawn] = ()
    forest: Forest | None = None
    tables: Sequence[TableView] = ()
    terms: Sequence[tuple[str, Sequence[str], str]] = ()  # name, lines that describe it, and code
    code: str = ""
    has_legend: bool = False
    is_folded: bool = False


@dataclass(frozen=True)
class Section:
    """One section of the page. Without blocks its hint explains how to get the data."""

    lead: str = ""
    blocks: Sequence[Block] = ()
    hint: str = ""


DEFAULT_HEIGHT: Final = 220
PATHS: Final = {
    "circle": "M8 3.5a4.5 4.5 0 1 0 .01 0Z",
    "square": "M4 4h8v8h-8Z",
    "diamond": "M8 2.2l5.2 5.8l-5.2 5.8l-5.2-5.8Z",
    "triangle-up": "M8 3l5 9.5h-10Z",
    "triangle-down": "M8 13l5-9.5h-10Z",
    "triangle-left": "M3 8l9.5 5v-10Z",
    "triangle-right": "M13 8l-9.5 5v-10Z",
    "cross": "M6.3 3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z",
}
"""Shapes of the charts as paths in a square of 16, for the legend."""


class Drawer:
    """Figures of one page, drawn by the functions of a notebook; `specs` holds their specifications by id."""

    def __init__(self, baseline: str | None) -> None:
        self._baseline = baseline
        self.specs: dict[str, Any] = {}

    def draw(
        self, title: str, make: Callable[..., Figure], *frames: object, note: str = "", **options: object
    ) -> list[Drawn]:
        """Draw a figure by a function of :mod:`rankeval_spark.report.figures`; none if there is no value."""
        import_altair()
        from altair.utils import schemapi  # noqa: PLC0415 - an extra

        with schemapi.debug_mode(False):  # the tests check each part, which takes a third of the time
            try:
                figure = make(*frames, look=PAGE, baseline=self._baseline, **options)
                spec = figure.chart.to_dict(validate=False)
            except NothingToDrawError:
                return []
        for name in ("$schema", "config", "title"):  # the title is text of the page
            spec.pop(name, None)
        number, height = f"figure-{len(self.specs) + 1}", int(spec.get("height") or DEFAULT_HEIGHT)
        self.specs[number] = spec
        summary = f"{figure.title}. {figure.caption}"
        return [{"id": number, "title": title, "summary": summary, "height": height, "note": note}]


def swatches(models: Sequence[str], *, baseline: str | None) -> list[dict[str, str]]:
    """Return the legend: colour, path, dash and role of each model."""
    return [
        {
            "name": name,
            "colour": style.colour,
            "path": PATHS[style.shape],
            "dash": ",".join(map(str, style.dash)),
            "role": "baseline" if style.shape == BASELINE_SHAPE else "",
        }
        for name, style in styles(models, PAGE.palette, baseline=baseline).items()
    ]
