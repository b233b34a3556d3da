"""Result rows as tables for people, and as CSV or JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure

if TYPE_CHECKING:
    from pyspark.sql import Row

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is run as a formula by spreadsheets."""


OTHER_TESTS: Final = "other_tests"
"""Adjusted p of the tests that were asked for beside t, by their names."""


def name_of(row: Mapping[str, Any]) -> str:
    """Write measure and cutoff together, such as ``nDCG@10``."""
    return f"{row[C.MEASURE]}@{row[C.K]}" if row[C.K] else str(row[C.MEASURE])


def leaderboard(rows: Sequence[Row], title: str) -> Table:
    """Lay out models x measures: a line a measure, a column a model, the best mean of each line in bold.

    Intervals are those of each mean by itself; overlapping ones do not say that two models are alike.
    """
    by_cell = {(name_of(row.asDict()), row[C.MODEL_ID]): row for row in rows}
    measures, models = list(dict.fromkeys(cell[0] for cell in by_cell)), sorted({cell[1] for cell in by_cell})
    table = Table(title=title, title_justify="left", show_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True)
    for model in models:
        table.add_column(escape(model), justify="right", no_wrap=True)
    for measure in measures:
        cells = [by_cell.get((measure, model)) for model in models]
        values = [row[C.VALUE] for row in cells if row and row[C.VALUE] is not None]
        table.add_row(escape(measure), *(_cell(row, _best(measure, values)) for row in cells))
    return table


def _best(measure: str, values: Sequence[float]) -> float | None:
    """Pick the best value; for a measure that this version does not know, the highest."""
    try:
        is_lower = Measure.parse(measure).entry.definition.better == "lower"
    except ConfigError:
        is_lower = False
    return (min if is_lower else max)(values, default=None)


def slices(rows: Sequence[Row], whole: Row, title: str) -> Table:
    """Lay out slices of one model beside the mean over everyone."""
    table = Table(title=title, title_justify="left", show_edge=False, header_style="bold")
    for heading in ("slice", "value", "users", "mean", "interval", "against all"):
        table.add_column(heading, justify="left" if heading in ("slice", "value") else "right", no_wrap=True)
    for row in rows:
        mean, interval = f"{row[C.VALUE]:.4f}", _interval(row)
        difference = f"{row[C.VALUE] - whole[C.VALUE]:+.4f}"
        names = (escape(row[C.SLICE]), escape(row[C.SLICE_VALUE]))
        table.add_row(*names, f"{row['n_users']:,}", mean, interval, difference)
    return table


def comparisons(rows: Sequence[Row], title: str) -> Table:
    """Lay out models against their baseline: the difference with its interval, and in words what it comes to.

    The verdict stands before the numbers that are left out first where the terminal is narrow.
    """
    level = f"{100 * rows[0]['ci_level']:.4g}"
    corrected = "" if rows[0]["correction"] == "none" else f", p by {rows[0]['correction']} over {_family(rows)} tests"
    table = Table(title=f"{title}: {level} % intervals{corrected}", title_justify="left", show_edge=False)
    has_slices = any(row[C.SLICE] != C.ALL_USERS for row in rows)
    table.add_column("model - baseline", overflow="fold")
    if has_slices:
        table.add_column("slice", overflow="fold")
    table.add_column("measure", overflow="fold")
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=9)
    for heading in ("change", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    has_others = any(row[OTHER_TESTS] for row in rows if OTHER_TESTS in row)
    if has_others:
        table.add_column("p of other tests", overflow="fold")
    for row in rows:
        names = [f"{row[C.MODEL_ID]} - {row[C.BASELINE_MODEL_ID]}"]
        names += [_slice_of(row)] if has_slices else []
        table.add_row(
            *(escape(name) for name in (*names, name_of(row.asDict()))),
            _signed(row),
            _VERDICTS.get(row["verdict"], f"[dim]not tested: {_reason(row)}[/dim]"),
            "-" if row["relative_delta"] is None else f"{row['relative_delta']:+.1%}",
            _p(row["p_adjusted"]),
            *([_others(row)] if has_others else []),
        )
    return table


def _p(p: float | None) -> str:
    return "-" if p is None else f"{p:.2g}"


def _others(row: Row) -> str:
    """Write the p of each other test; as that of t, each is adjusted for the tests of its own kind."""
    return ", ".join(f"{test.replace('_', ' ')} {_p(p)}" for test, p in row[OTHER_TESTS].items())


_VERDICTS: Final = {
    "better": "[bold green]better[/bold green]",
    "worse": "[bold red]worse[/bold red]",
    "undecided": "not distinguishable",
}


def _reason(row: Row) -> str:
    return str(row["reason"] or "too many tests").replace("_", " ")


def _family(rows: Sequence[Row]) -> str:
    return f"{max(row['family_size'] for row in rows):,}"


def _slice_of(row: Row) -> str:
    return C.ALL_USERS if row[C.SLICE] == C.ALL_USERS else f"{row[C.SLICE]}={row[C.SLICE_VALUE]}"


def _signed(row: Row) -> str:
    """Write the difference with its interval."""
    if row["delta"] is None:
        return "-"
    shown = f"{row['delta']:+.4f}"
    if row["ci_low"] is None:
        return shown
    interval = f"[{row['ci_low']:+.4f}, {row['ci_high']:+.4f}]"
    return f"{shown} [dim]{escape(interval)}[/dim]"


def gates(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out what the rules say, the sentence of each verdict included."""
    table = Table(title="gates", title_justify="left", show_edge=False, header_style="bold")
    table.add_column("rule", justify="right")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", overflow="fold")
    for row in rows:
        shown = _OUTCOMES.get(row["verdict"], f"[yellow]{row['verdict'].replace('_', ' ')}[/yellow]")
        table.add_row(str(row["gate"]), shown, escape(row["explanation"]))
    return table


_OUTCOMES: Final = {
    "passed": "[green]passed[/green]",
    **{name: f"[bold red]{name.replace('_', ' ')}[/bold red]" for name in ("failed", "no_match", "missing_slice")},
}


def plain(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    """Lay out rows as they are."""
    table = Table(show_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, no_wrap=name in (C.MEASURE, C.MODEL_ID))
    for row in rows:
        table.add_row(*(escape(_text(row[name])) for name in columns))
    return table


def to_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Write rows as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_inert(_plain_value(row[name])) for name in columns] for row in rows)
    return out.getvalue()


def to_json(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Write rows as a JSON array of objects."""
    return json.dumps([{name: row[name] for name in columns} for row in rows], default=str, indent=2) + "\n"


def _cell(row: Row | None, best: float | None) -> str:
    if row is None or row[C.VALUE] is None:
        return "-"
    text = f"{row[C.VALUE]:.4f}"
    shown = f"[bold green]{text}[/bold green]" if row[C.VALUE] == best else text
    return f"{shown} [dim]{_interval(row)}[/dim]"


def _interval(row: Row) -> str:
    return "-" if row["ci_low"] is None else escape(f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]")


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    return "" if value is None else json.dumps(value) if isinstance(value, list | dict) else value


def _inert(value: Any) -> Any:  # noqa: ANN401 - as above
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
