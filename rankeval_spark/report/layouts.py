"""Result rows as people see them: columns, digits, order and marks; written as text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import datetime as dt
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Sequence
from html import escape
from string import ascii_letters
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import visible
from rankeval_spark.measures import with_cutoff
from rankeval_spark.measures.names import measure_of
from rankeval_spark.report import defaults

if TYPE_CHECKING:
    from rankeval_spark.report.tables import Row

MAX_ROWS: Final = 20  # in a notebook or terminal
MAX_COLUMNS: Final = 20  # in a notebook; a terminal shows what fits
MAX_SORTED: Final = 5_000  # rows above which a table is shown in the order that it has
WIDTHS: Final = (80, 120)  # least and most characters of a line in a terminal
MAX_TEXT: Final = 40  # characters of a cell in a terminal
MAX_ELEMENTS: Final = 3  # of a list in a cell
DECIDED: Final = ("better", "worse", "different")
TESTS: Final = {"t": "the paired t test", C.UNPAIRED: "the unpaired t test"}
CORRECTIONS: Final = {
    "holm": "Holm's correction",
    "bonferroni": "Bonferroni's correction",
    "benjamini-hochberg": "the correction of Benjamini and Hochberg",
    "none": "no correction",
}
HEADINGS: Final = {
    **{C.EVALUATION_DATE: "date", C.MODEL_ID: "model", C.BASELINE_MODEL_ID: "baseline", "n_users": "users"},
    **{"delta": "difference", "relative_delta": "change", "p_adjusted": "p", "ci_low": "interval"},
}
_OF_NIGHT: Final = (C.EVALUATION, C.EVALUATION_DATE)
_MEANS: Final = (*_OF_NIGHT, C.MODEL_ID, C.SLICE, C.MEASURE, C.VALUE, "ci_low", "n_users")
_PAIRS: Final = (
    *(*_OF_NIGHT, C.MODEL_ID, C.BASELINE_MODEL_ID, C.SLICE, C.MEASURE, "test", "delta", "ci_low", "relative_delta"),
    *("p_adjusted", "verdict", "n_users"),
)
_SORTED_BY: Final = (
    *_OF_NIGHT,
    C.SLICE,
    C.SLICE_VALUE,
    C.MEASURE,
    C.K,
    C.VALUE,
    "delta",
    "family",
    "has_support",
    "test",
)
_MERGED: Final = {C.SLICE: (C.SLICE_VALUE, C.SLICE_VALUES), C.MEASURE: (C.K,), "ci_low": ("ci_high",)}
"""Columns that show others with them."""


class Column(NamedTuple):
    """A column as it is shown."""

    heading: str
    cells: Sequence[str]
    is_number: bool = False
    bold: frozenset[int] = frozenset()  # places of rows
    marks: Sequence[str] = ()  # superscripts of the cells


class Layout(NamedTuple):
    """Rows and columns as they are shown."""

    title: str
    columns: Sequence[Column]
    n_more: int  # rows that are not shown
    left_out: Sequence[str]  # names of columns that are not shown
    notes: Sequence[str]  # what marks mean, and what is to be known of the values


def lay_out(
    table: pa.Table,
    name: str,  # of the result
    *,
    comparisons: pa.Table | None = None,  # of the models of a leaderboard
    is_ordered: bool = False,  # whether the order of the rows is kept
    most: int | None = None,  # rows that are shown
) -> Layout:
    """Choose and format what is shown of a result."""
    names = table.column_names
    if name == "leaderboard" and C.MODEL_ID in names:
        return _lay_out_board(table, comparisons, most=most)
    chosen = next((kind for kind in (_PAIRS, _MEANS) if {C.MEASURE, C.K, *kind[-2:]}.issubset(names)), ())
    chosen = chosen if (chosen is _PAIRS) == ("delta" in names) else ()  # an interval of a mean, or of a difference
    is_sorted = bool(chosen) and table.num_rows <= MAX_SORTED
    facts = table.select([column for column in _SORTED_BY if column in names]).to_pylist() if is_sorted else []
    best = _best_values(facts) if chosen is _MEANS else {}
    ordered = table
    if facts and not is_ordered:
        ranks = list(map(_ranking(facts, C.VALUE if chosen is _MEANS else "delta"), facts))
        ordered = pc.take(table, pa.array(sorted(range(len(facts)), key=ranks.__getitem__)[:most], pa.int64()))
    shown: list[dict[str, Any]] = ordered.slice(0, most).to_pylist(maps_as_pydicts="lossy")
    merged = {other for first, others in _MERGED.items() if first in names for other in others}
    own = [column for column in chosen or names if column in names and column not in merged]
    said = _constants(facts or shown) if chosen else {}
    own = [column for column in own if column not in said]
    places, columns = _places(shown), list[Column]()
    for column in own:
        bold = [
            place
            for place, row in enumerate(shown)
            if (column == C.VALUE and row[C.VALUE] is not None and best.get(_group(row)) == row[C.VALUE])
            or (column in ("delta", "verdict") and chosen is _PAIRS and row["verdict"] in DECIDED)
        ]
        of_column = _decimals(row[column] for row in shown)
        cells = [_cell(column, row, places.get(_measure(row), of_column)) for row in shown]
        heading = HEADINGS.get(column, column) if chosen else column
        if column == "ci_low" and "ci_high" in names:
            level = shown[0].get("ci_level") if shown else None
            heading = f"{100 * level:.4g} % interval" if level else "interval"
        is_number = column == "ci_low" or _is_number(table.schema.field(column))
        columns.append(Column(heading, cells, is_number, frozenset(bold)))
    left_out = [column for column in names if column not in {*own, *merged, *said}] if chosen else []
    night = " on ".join(said[column] for column in _OF_NIGHT if column in said)
    title = f"{' of '.join(filter(None, (name or 'rows', night)))}: {wording.count(table.num_rows, 'row')}"
    notes = _explain_tests(shown, "Verdicts by") if chosen is _PAIRS else []
    return Layout(title, columns, table.num_rows - len(shown), left_out, notes)


def _lay_out_board(table: pa.Table, comparisons: pa.Table | None, *, most: int | None) -> Layout:
    """Lay out models by measures: best values in bold, and letters of the models that a value is better than."""
    rows, models = table.to_pylist(), list(map(str, table[C.MODEL_ID].to_pylist()))
    shown, columns = rows[:most], list[Column]()
    pairs = [] if comparisons is None else _pairs_of_all(comparisons)
    letters = dict(zip(models, _letters(len(models)), strict=True)) if pairs else {}
    between = "" if len(models) <= len(ascii_letters) else ","
    if letters:
        columns.append(Column("", list(letters.values())[:most]))
    columns.append(Column("model", [visible(model) for model in models[:most]]))
    measures = [name for name in table.column_names if name not in (C.MODEL_ID, "n_users")]
    for name in measures:
        values = [row[name] for row in rows]
        if not pa.types.is_floating(table.schema.field(name).type):
            columns.append(Column(name, [_text(value) for value in values[:most]]))
            continue
        places = _decimals(values)
        known = [value for value in values if value is not None]
        better = _better_of(name)
        best = None if better == "neither" else (min if better == "lower" else max)(known, default=None)
        bold = [place for place, row in enumerate(shown) if row[name] == best is not None and len(rows) > 1]
        beaten = [_beaten_by(model, name, pairs) for model in models[:most]]
        marks = [between.join(letter for other, letter in letters.items() if other in lost) for lost in beaten]
        columns.append(Column(name, [wording.number(row[name], places) for row in shown], True, frozenset(bold), marks))
    if "n_users" in table.column_names:
        columns.append(Column("users", [wording.count(row["n_users"]) for row in shown], True))
    is_marked = any(any(column.marks) for column in columns)
    notes = _explain_tests(pairs, "Letters name the models that a value is significantly better than, by")
    baselines = {row[C.BASELINE_MODEL_ID] for row in pairs}
    if len(baselines) == 1 and len(models) > 2:  # noqa: PLR2004 - of two models, all are compared with it
        notes.append(f"Models are compared with {visible(str(baselines.pop()))} alone.")
    title = f"leaderboard: {wording.count(len(rows), 'model')}"
    return Layout(title, columns, len(rows) - len(shown), [], notes if is_marked else [])


def _pairs_of_all(comparisons: pa.Table) -> list[dict[str, Any]]:
    """Return the comparisons over all users that have a verdict."""
    if "test" not in comparisons.column_names:
        return []
    rows = comparisons.filter(pc.equal(comparisons[C.SLICE], C.ALL_USERS))
    rows = rows.filter(pc.is_in(rows["test"], pa.array(C.DECIDING)))
    columns = (C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K, "verdict", "test", "correction", "ci_level")
    found: list[dict[str, Any]] = rows.select(list(columns)).to_pylist()
    return found


def _beaten_by(model: str, measure: str, pairs: Sequence[Row]) -> set[str]:
    """Return the models that a model is significantly better than."""
    of_measure = [row for row in pairs if with_cutoff(row[C.MEASURE], row[C.K]) == measure]
    sides = (("better", C.MODEL_ID, C.BASELINE_MODEL_ID), ("worse", C.BASELINE_MODEL_ID, C.MODEL_ID))
    return {
        row[loser]
        for verdict, winner, loser in sides
        for row in of_measure
        if (row["verdict"], row[winner]) == (verdict, model)
    }


def _letters(n: int) -> Sequence[str]:
    """Return a letter for each model, or numbers where there are more than letters."""
    return ascii_letters[:n] if n <= len(ascii_letters) else [str(number) for number in range(1, n + 1)]


def _explain_tests(rows: Sequence[Row], what: str) -> list[str]:
    """Return by which tests, corrections and levels something is decided."""
    decided = [row for row in rows if row["verdict"] in DECIDED]
    tests = (TESTS.get(row["test"], str(row["test"])) for row in decided)
    corrections = (CORRECTIONS.get(row["correction"], str(row["correction"])) for row in decided)
    levels = (f"{1 - row['ci_level']:.4g}" for row in decided)
    said = [wording.listed(dict.fromkeys(names)) for names in (tests, corrections, levels)]
    return [f"{what} {said[0]}, two-sided at {said[2]}, with {said[1]} within its family of tests."] if decided else []


def _group(row: Row) -> tuple[Any, ...]:
    """Return what rows of different models share."""
    return (*map(row.get, (*_OF_NIGHT, C.SLICE, C.SLICE_VALUE)), *_measure(row))


def _measure(row: Row) -> tuple[Any, Any]:
    return row.get(C.MEASURE), row.get(C.K)


def _best_values(rows: Sequence[Row]) -> dict[tuple[Any, ...], float]:
    """Return the best of the models' means in each slice; none where neither side is better, or of one model."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row[C.VALUE] is not None and row.get("has_support") is not False:
            found.setdefault(_group(row), []).append(row[C.VALUE])
    best = {}
    for group, values in found.items():
        better = _better_of(group[-2])
        if len(values) > 1 and better != "neither":
            best[group] = min(values) if better == "lower" else max(values)
    return best


def _better_of(label: str) -> str:
    """Return the better direction; neither for what this version does not know, such as a gap between groups."""
    return "neither" if measure_of(label) is None else defaults.better_of(label)


def _ranking(rows: Sequence[Row], column: str) -> Callable[[Row], tuple[Any, ...]]:
    """Return a sort key: the newest night, all users, what is not exploratory, each measure, and the best value."""
    measures = {key: place for place, key in enumerate(dict.fromkeys(map(_measure, rows)))}
    slices = {
        key: place
        for place, key in enumerate(dict.fromkeys((row.get(C.SLICE), row.get(C.SLICE_VALUE)) for row in rows))
    }
    signs = {label: 1 if defaults.is_lower_better(label) else -1 for label, _ in measures}

    def rank(row: Row) -> tuple[Any, ...]:
        day, value = row.get(C.EVALUATION_DATE), row[column]
        night = (0 if day is None else -day.toordinal(), row.get(C.EVALUATION) or "")
        what = (row.get("family") == "exploratory", slices[row.get(C.SLICE), row.get(C.SLICE_VALUE)])
        by_value = (measures[_measure(row)], value is None, signs[row[C.MEASURE]] * (value or 0.0))
        return (*night, row.get(C.SLICE) != C.ALL_USERS, *what, *by_value)

    return rank


def _constants(rows: Sequence[Row]) -> dict[str, str]:
    """Return columns that need not be shown, as they say the same of all rows: the night, all users, one test."""
    found = {}
    for name in (*_OF_NIGHT, "test", C.SLICE):
        values = {row[name] for row in rows if name in row}
        if len(values) == 1 and (name != C.SLICE or values == {C.ALL_USERS}):
            found[name] = _text(*values)
    return found


def _places(rows: Sequence[Row]) -> dict[tuple[Any, Any], int]:
    """Return the decimals of each measure: two digits of its narrowest interval."""
    by_measure: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        by_measure.setdefault(_measure(row), []).append(row)

    def halves(some: Sequence[Row]) -> list[float]:
        ends = [(row.get("ci_low"), row.get("ci_high")) for row in some]
        return [(high - low) / 2 for low, high in ends if low is not None and high is not None]

    def values(some: Sequence[Row]) -> list[float]:
        return [value for row in some for name in (C.VALUE, "delta") if isinstance(value := row.get(name), float)]

    return {key: wording.decimals(halves(some), values(some)) for key, some in by_measure.items()}


def _cell(name: str, row: Row, places: int) -> str:
    """Format a cell, with those of the columns that it is shown with."""
    value, text = row[name], ""
    if name == C.SLICE and row.get(C.SLICE_VALUE) is not None:
        has_value = row[C.SLICE_VALUE] or value == C.ALL_USERS
        text = visible(wording.slice_name(value, row[C.SLICE_VALUE]) if has_value else str(value))
    elif name == C.MEASURE and row.get(C.K) is not None:
        text = with_cutoff(value, row[C.K])
    elif name == "ci_low" and "delta" in row:
        text = wording.interval(value, row["ci_high"], places, has_sign=True)
    elif name == "ci_low" and "ci_high" in row:
        text = wording.mean_interval(row, places)
    elif name == "delta":
        text = wording.signed(value, places)
    elif name == "relative_delta":
        text = wording.signed_percent(value)
    elif name == "p_adjusted":
        text = wording.p_value(value) or str(row.get("reason") or "").replace("_", " ")
    elif isinstance(value, float) or (name == C.VALUE and value is None):
        text = wording.number(value, places)
    else:
        text = wording.count(value) if name.startswith("n_") and isinstance(value, int) else _text(value)
    return text or "-"


def _text(value: Any) -> str:  # noqa: ANN401 - a value of any column
    """Format a value of any type in one line."""
    match value:
        case None:
            text = "-"
        case bool():
            text = "yes" if value else "no"
        case float():
            text = wording.number(value, _decimals([value]))
        case dt.datetime():
            text = value.isoformat(sep=" ", timespec="seconds")
        case list():
            text = ", ".join(map(_text, value[:MAX_ELEMENTS])) + ", …" * (len(value) > MAX_ELEMENTS)
        case dict():
            text = ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items())
        case _:
            text = visible(str(value))
    return text


def _decimals(values: Iterable[object]) -> int:
    """Return the decimals of a column: four digits of its greatest number."""
    return wording.decimals([], [value for value in values if isinstance(value, float) and math.isfinite(value)])


def _is_number(field: pa.Field) -> bool:
    kind = field.type
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind)) and not field.name.endswith("_id")


def _described(layout: Layout, left_out: Sequence[str], *, where: str) -> list[str]:
    """Return the lines below a table: rows and columns that are not shown, and what marks mean."""
    lines = [f"{wording.count(layout.n_more, 'more row')}: {where}"] if layout.n_more else []
    if left_out:
        lines.append(f"{wording.count(len(left_out), 'more column')}: {', '.join(map(visible, left_out))}")
    return [*lines, *layout.notes]


def to_text(layout: Layout) -> str:
    """Write a layout for a terminal: columns that fit, numbers to the right."""
    from rich.cells import cell_len  # noqa: PLC0415 - no other part of a result needs it

    width = min(max(shutil.get_terminal_size((WIDTHS[1], 1)).columns, WIDTHS[0]), WIDTHS[1])
    columns, left_out, used = list[list[str]](), list(layout.left_out), -2
    for column in layout.columns:
        room = max(map(len, column.marks), default=0)
        marks = [f" {mark:<{room}}" for mark in column.marks] if room else [""] * len(column.cells)
        cells = [column.heading + " " * (room + 1 if room else 0), *map(str.__add__, map(_cut, column.cells), marks)]
        widest = max(map(cell_len, cells))
        used += widest + 2
        if columns and used > width:
            left_out.insert(len(left_out) - len(layout.left_out), column.heading)
            continue
        fills = (" " * (widest - cell_len(cell)) for cell in cells)
        columns.append([f + c if column.is_number else c + f for f, c in zip(fills, cells, strict=True)])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    below = _described(layout, left_out, where="to_pandas() has all")
    return "\n".join([layout.title, *lines, *(textwrap.fill(line, width, break_on_hyphens=False) for line in below)])


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


TABLE: Final = "margin:4px 0;border-collapse:collapse;color:inherit;font-size:inherit"
_CELL: Final = "padding:2px 10px;text-align:{side};white-space:nowrap;font-variant-numeric:tabular-nums"


def to_html(layout: Layout) -> str:
    """Write a layout for a notebook, in the colours that it has."""
    columns = layout.columns[:MAX_COLUMNS]
    styles = [_CELL.format(side="right" if column.is_number else "left") for column in columns]
    head = "".join(
        f'<th style="{style}">{escape(column.heading)}</th>' for style, column in zip(styles, columns, strict=True)
    )
    body = ""
    for place in range(len(columns[0].cells) if columns else 0):
        cells = [_html_cell(column, place) for column in columns]
        row = (f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, cells, strict=True))
        body += f"<tr>{''.join(row)}</tr>"
    left_out = [*(column.heading for column in layout.columns[MAX_COLUMNS:]), *layout.left_out]
    lines = _described(layout, left_out, where="to_pandas() has all")
    below = "".join(f'<div style="opacity:.75;max-width:60em">{escape(line)}</div>' for line in lines)
    above = f'<div style="opacity:.75">{escape(layout.title)}</div>'
    table = f'<table style="{TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"<div>{above}{table}{below}</div>"


def _html_cell(column: Column, place: int) -> str:
    text = escape(column.cells[place])
    text = f"<b>{text}</b>" if place in column.bold else text
    room = max(map(len, column.marks), default=0)
    style = f"display:inline-block;min-width:{room}ch;text-align:left"
    return f'{text}<sup style="{style}">{escape(column.marks[place])}</sup>' if room else text


_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>|~#])")


def to_markdown(layout: Layout) -> str:
    """Write a layout as a table of Markdown, as GitHub reads it."""
    lines = [
        [_MARKDOWN.sub(r"\\\1", column.heading) for column in layout.columns],
        ["---:" if column.is_number else ":---" for column in layout.columns],
    ]
    for place in range(len(layout.columns[0].cells) if layout.columns else 0):
        lines.append([])
        for column in layout.columns:
            text = _MARKDOWN.sub(r"\\\1", column.cells[place])
            text = f"**{text}**" if place in column.bold else text
            mark = column.marks[place] if column.marks else ""
            lines[-1].append(f"{text}<sup>{mark}</sup>" if mark else text)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    rows = (" | ".join(map(str.ljust, cells, widths)).rstrip() for cells in lines)
    return "\n".join([*(f"| {row} |" for row in rows), *(f"\n{note}" for note in layout.notes)]) + "\n"


_LATEX: Final = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$"},
    "…": r"\dots{}",
}


def to_latex(layout: Layout, *, caption: str | None = None, label: str | None = None) -> str:
    """Write a layout as a table of LaTeX with the rules of ``booktabs``."""

    def plain(text: str) -> str:
        return "".join(_LATEX.get(character, character) for character in text)

    lines = []
    for place in range(len(layout.columns[0].cells) if layout.columns else 0):
        cells = []
        for column in layout.columns:
            text = plain(column.cells[place])
            text = rf"\textbf{{{text}}}" if place in column.bold else text
            mark = column.marks[place] if column.marks else ""
            cells.append(rf"{text}\textsuperscript{{{mark}}}" if mark else text)
        lines.append(" & ".join(cells) + r" \\")
    said = " ".join([*([caption] if caption else []), *map(plain, layout.notes)])
    sides = "".join("r" if column.is_number else "l" for column in layout.columns)
    heading = " & ".join(plain(column.heading) for column in layout.columns) + r" \\"
    above = [r"\begin{table}", r"\centering", *([rf"\caption{{{said}}}"] if said else [])]
    above += [rf"\label{{{label}}}"] if label else []
    rules = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", heading, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*above, *rules, r"\end{tabular}", r"\end{table}", ""])
