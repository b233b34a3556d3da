"""Result rows as tables for people, and as CSV or JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, with_cutoff
from rankeval_spark.report.gates import FAILING, PASSED, verdict_of
from rankeval_spark.statistics.comparisons.shared_users import why_withheld

FORMULA_STARTS: Final = (*"=+-@", *"\uff1d\uff0b\uff0d\uff20", "\t", "\r", "\n")
"""A cell that begins with one of these is run as a formula by spreadsheets; some take their wide forms for them too."""


WIDE: Final = 120
"""Columns of a terminal where it is not said how many there are."""

OTHER_TESTS: Final = "other_tests"
"""Adjusted p of the requested tests other than t, by test."""


def headed(*headings: str, title: str | None = None) -> Table:
    """Begin a table whose cells go on in the next line where they are too long."""
    title = None if title is None else escape(title)
    table = Table(title=title, title_justify="left", show_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def measure_label(row: Mapping[str, Any]) -> str:
    """Write measure and cutoff together, such as ``nDCG@10``."""
    return with_cutoff(row[C.MEASURE], row[C.K])


def leaderboard(rows: Sequence[Mapping[str, Any]], title: str, *, width: int = WIDE) -> Table:
    """Lay out models x measures: a line a measure, a column a model, the best mean of each line in bold.

    Intervals are those of each mean by itself; overlapping ones do not say that two models are alike. They are below
    their means where the terminal has too few columns: no number is cut off.
    """
    by_cell = {(measure_label(row), row[C.MODEL_ID]): row for row in rows}
    measures, models = list(dict.fromkeys(cell[0] for cell in by_cell)), sorted({cell[1] for cell in by_cell})
    table = _with_caption(headed("measure", title=title), _uncertain(rows))
    for model in models:
        table.add_column(escape(model), justify="right", overflow="fold")
    columns = [max(map(len, measures)), *(max(len(model), _MEAN_AND_INTERVAL) for model in models)]
    before_interval = " " if sum(one + _BETWEEN for one in columns) <= width else "\n"
    for measure in measures:
        cells = [by_cell.get((measure, model)) for model in models]
        values = [row[C.VALUE] for row in cells if row and row[C.VALUE] is not None]
        table.add_row(escape(measure), *(_cell(row, _best(measure, values), before_interval) for row in cells))
    return table


_UNCERTAIN: Final = "~"
_MEAN_AND_INTERVAL: Final = len(f"0.1234 [0.1234, 0.1234] {_UNCERTAIN}")
_BETWEEN: Final = len(" │ ")


def _best(measure: str, values: Sequence[float]) -> float | None:
    """Pick the best value, if there is one; for a measure that this version does not know, the highest."""
    try:
        better = Measure.parse(measure).better
    except ConfigError:
        better = "higher"
    return None if better == "neither" else (min if better == "lower" else max)(values, default=None)


def comparisons(rows: Sequence[Mapping[str, Any]], title: str, *, width: int = WIDE) -> Table:
    """Lay out differences with their intervals, and in words what each comes to.

    Where the terminal has too few columns for a line a row, what a row is about stands below one another: no number is
    cut off.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of ``comparisons``, or of two nights: these have ``earlier_value`` instead of a baseline.
    """
    method, family_size = rows[0]["correction"], max(row["family_size"] for row in rows)
    corrected = "" if method == "none" else f", p by {method.title()} over {family_size:,} tests"
    table = headed(title=f"{title}: {_level(rows)} % intervals{corrected}")
    table.caption, table.caption_justify = _withheld(rows), "left"
    whom, has_slices = _whom(rows), any(row[C.SLICE] != C.ALL_USERS for row in rows)
    has_nights = "earlier_value" in rows[0]
    if width < _LINE + _OF_A_SLICE * has_slices + _OF_NIGHTS * has_nights:
        return _narrow(table, rows, whom)
    table.add_column(whom, overflow="fold")
    if has_slices:
        table.add_column("slice", overflow="fold")
    table.add_column("measure", overflow="fold")
    nights = list(_NIGHTS) if has_nights else []
    for heading in (*(_NIGHTS[name] for name in nights), "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for heading in ("change", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    has_others = any(row[OTHER_TESTS] for row in rows if OTHER_TESTS in row)
    if has_others:
        table.add_column("p of other tests", overflow="fold")
    for row in rows:
        names = [_model_of(row, whom), *([_slice_of(row)] if has_slices else []), measure_label(row)]
        values = (number(row[name]) for name in nights)
        others = [_others(row)] if has_others else []
        table.add_row(
            *map(escape, names), *values, _signed(row), _verdict(row), _change(row), _p(row["p_adjusted"]), *others
        )
    return table


def _withheld(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Say why differences are withheld, once for each pair of models and slice."""
    pairs = {(row[C.MODEL_ID], row[C.BASELINE_MODEL_ID], _slice_of(row)): row for row in rows if why_withheld(row)}
    lines = [
        f"{model} - {baseline}{'' if row[C.SLICE] == C.ALL_USERS else f', {slice_}'}: {why_withheld(row)}"
        for (model, baseline, slice_), row in pairs.items()
    ]
    more = [f"and {len(lines) - _MOST_WITHHELD} more"] if len(lines) > _MOST_WITHHELD else []
    return "\n".join(escape(line) for line in [*lines[:_MOST_WITHHELD], *more]) or None


_MOST_WITHHELD: Final = 3


def _narrow(table: Table, rows: Sequence[Mapping[str, Any]], whom: str) -> Table:
    """Say below one another what a row is about, and below the verdict its p."""
    table.add_column(f"{whom}, measure", overflow="fold")
    table.add_column("difference", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        slice_ = [] if row[C.SLICE] == C.ALL_USERS else [_slice_of(row)]
        about = "\n".join(escape(text) for text in (_model_of(row, whom), *slice_, measure_label(row)))
        p = "" if row["p_adjusted"] is None else f"\np = {_p(row['p_adjusted'])}"
        others = f"\n{_others(row)}" if row.get(OTHER_TESTS) else ""
        values = " -> ".join(number(row[name]) for name in _NIGHTS) if "earlier_value" in row else ""
        table.add_row(about, "\n".join(filter(None, (_signed(row), values))), f"{_verdict(row)}{p}{others}")
    return table


_NIGHTS: Final = {"earlier_value": "then", C.VALUE: "now"}
"""Values of two nights, and their headings."""

_LINE: Final = 100
_OF_A_SLICE: Final = 15
_OF_NIGHTS: Final = 20
"""Columns of a line, and what a slice and the values of two nights take more."""

_VERDICTS: Final = {
    "better": "[bold green]better[/bold green]",
    "worse": "[bold red]worse[/bold red]",
    "different": "[bold]different[/bold]",
    "undecided": "undecided",
}


_EACH_ITS_OWN: Final = "model - baseline"


def _whom(rows: Sequence[Mapping[str, Any]]) -> str:
    """Head the column of the models, the baseline in it where there is one."""
    baselines = {str(row[C.BASELINE_MODEL_ID]) for row in rows if C.BASELINE_MODEL_ID in row}
    if not baselines:
        return "model"
    return f"model - {escape(baselines.pop())}" if len(baselines) == 1 else _EACH_ITS_OWN


def _model_of(row: Mapping[str, Any], whom: str) -> str:
    return f"{row[C.MODEL_ID]} - {row[C.BASELINE_MODEL_ID]}" if whom == _EACH_ITS_OWN else str(row[C.MODEL_ID])


def _verdict(row: Mapping[str, Any]) -> str:
    reason = str(row["reason"] or "too many tests").replace("_", " ")
    return _VERDICTS.get(row["verdict"], f"[dim]not tested: {escape(reason)}[/dim]")


def _change(row: Mapping[str, Any]) -> str:
    return "-" if row["relative_delta"] is None else f"{row['relative_delta']:+.1%}"


def _p(p: float | None) -> str:
    return "-" if p is None else f"{p:.2g}"


def _others(row: Mapping[str, Any]) -> str:
    """Write the p of each other test; as that of t, each is adjusted for the tests of its own kind."""
    return ", ".join(f"{test.replace('_', ' ')} {_p(p)}" for test, p in row[OTHER_TESTS].items())


def _level(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"{100 * rows[0]['ci_level']:.4g}"


def _slice_of(row: Mapping[str, Any]) -> str:
    """Name a slice; rows of all its groups together, such as ``GroupGap(nDCG)``, have no value."""
    return f"{row[C.SLICE]}={row[C.SLICE_VALUE]}" if row[C.SLICE_VALUE] else str(row[C.SLICE])


def number(value: float | None) -> str:
    """Write a value with four decimals."""
    return "-" if value is None else f"{value:.4f}"


def _signed(row: Mapping[str, Any]) -> str:
    """Write the difference with its interval."""
    if row["delta"] is None:
        return "-"
    shown = _plus(row["delta"])
    if row["ci_low"] is None:
        return shown
    interval = f"[{_plus(row['ci_low'])}, {_plus(row['ci_high'])}]"
    return f"{shown} [dim]{escape(interval)}[/dim]"


def _plus(value: float) -> str:
    """Write a number with its sign; what rounds to 0 has none of its own."""
    return f"{round(value, 4) + 0.0:+.4f}"


def gates(rows: Sequence[Mapping[str, Any]], title: str | None = "gates") -> Table:
    """Lay out what the rules say, the sentence of each verdict included."""
    table = headed(title=title)
    table.add_column("rule", justify="right")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", overflow="fold")
    for row in rows:
        table.add_row(str(row["gate"]), _outcome(row["verdict"]), escape(row["explanation"]))
    return table


def rules(rows: Sequence[Mapping[str, Any]], title: str | None = "gates") -> Table:
    """Lay out what each rule comes to: how many cases have which verdict."""
    table = headed("rule", "asks for", "cases", title=title)
    for rule in dict.fromkeys(row["gate"] for row in rows):
        own = [row for row in rows if row["gate"] == rule]
        counts = Counter(row["verdict"] for row in own)
        cases = ", ".join(f"{n} {_outcome(one)}" for one, n in counts.items())
        table.add_row(str(rule), escape(own[0]["rule"]), cases)
    return table


def _outcome(verdict: str) -> str:
    return _OUTCOMES.get(verdict, f"[yellow]{escape(verdict.replace('_', ' '))}[/yellow]")


def gates_in_a_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say what all rules come to; where none could be judged, also what the exit code makes of it."""
    verdict = verdict_of(rows)
    return str(verdict) if is_decided(rows) else f"{verdict} {_UNDECIDED}"


def is_decided(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a rule could be judged."""
    return any(row["verdict"] in {PASSED, *FAILING} for row in rows)


_UNDECIDED: Final = "The exit code is 0, as without rules: look at the verdicts before a model ships."

_OUTCOMES: Final = {
    "passed": "[green]passed[/green]",
    **{name: f"[bold red]{name.replace('_', ' ')}[/bold red]" for name in ("failed", "no_match", "missing_slice")},
}


def means(rows: Sequence[Mapping[str, Any]], title: str, *, width: int = WIDE) -> Table:  # noqa: ARG001 - as the others
    """Lay out means of slices: a line a row, with its interval; a single slice is in the heading."""
    small = [_OF_SMALL] if any(row["is_small"] for row in rows) else []
    table = _of_a_night(rows, title, captions=[*small, *_uncertain(rows)])
    names = {row[C.SLICE] for row in rows}
    only = names.pop() if len(names) == 1 else None
    for heading in ("model", only or "slice", "measure"):
        table.add_column(escape(heading), overflow="fold")
    table.add_column("mean", no_wrap=True)
    table.add_column("users", justify="right", no_wrap=True)
    for row in rows:
        about = (row[C.MODEL_ID], (row[C.SLICE_VALUE] or "-") if only else _slice_of(row), measure_label(row))
        users = f"{_MARK} {row['n_users']:,}" if row["is_small"] else f"{row['n_users']:,}"
        table.add_row(*map(escape, about), _cell(row, None), users)
    return table


def gaps(rows: Sequence[Mapping[str, Any]], title: str, *, width: int = WIDE) -> Table:
    """Lay out how far the groups of each slicing lie apart, marked where the interval of the gap lies above 0.

    As in :func:`comparisons`, what a row is about stands below one another where there are few columns.
    """
    table = _of_a_night(rows, title, captions=[_OF_GAPS])
    is_narrow = width < _LINE_OF_GAPS
    about, groups = ("model", "slice", "measure"), ("lowest", "highest", "groups")
    for heading in (", ".join(about),) if is_narrow else about:
        table.add_column(heading, overflow="fold")
    for heading in ("gap", "ratio"):
        table.add_column(heading, no_wrap=True)
    for heading in groups[-1:] if is_narrow else groups:
        table.add_column(heading, overflow="fold")
    for row in rows:
        names = [escape(text) for text in (row[C.MODEL_ID], row[C.SLICE], measure_label(row))]
        numbers = _gap(row), _under(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"])
        lowest, highest, compared = _end(row, "lowest"), _end(row, "highest"), _compared(row)
        if is_narrow:
            table.add_row("\n".join(names), *numbers, f"lowest {lowest}\nhighest {highest}\n{compared}")
        else:
            table.add_row(*names, *numbers, lowest, highest, compared)
    return table


_MARK: Final = "*"
_OF_SMALL: Final = f"{_MARK} fewer users than min_slice_size"
_OF_UNCERTAIN: Final = f"{_UNCERTAIN} uncertain: few users decide about it"
_OF_GAPS: Final = f"{_MARK} the interval of the gap lies above 0: the groups can be told apart"

_LINE_OF_GAPS: Final = 118


def _of_a_night(rows: Sequence[Mapping[str, Any]], title: str, *, captions: Sequence[str]) -> Table:
    """Begin a table of one night, the level of its intervals in the title."""
    return _with_caption(headed(title=f"{title}: {_level(rows)} % intervals"), captions)


def _with_caption(table: Table, captions: Sequence[str]) -> Table:
    """Explain the marks of a table below it, a line each."""
    table.caption, table.caption_justify = "\n".join(captions) or None, "left"
    return table


def _uncertain(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Explain the mark of uncertain intervals, where there is one."""
    return [_OF_UNCERTAIN] if any(row.get("is_uncertain") for row in rows) else []


def _gap(row: Mapping[str, Any]) -> str:
    is_told_apart = row["ci_low"] is not None and row["ci_low"] > 0
    return _under(row["gap"], row["ci_low"], row["ci_high"], mark=f" {_MARK}" if is_told_apart else "")


def _under(value: float | None, low: float | None, high: float | None, mark: str = "") -> str:
    """Write a number with its mark, and its interval in the next line."""
    interval = "" if low is None else f"\n{escape(f'[{number(low)}, {number(high)}]')}"
    return f"{number(value)}{mark}{interval}"


def _end(row: Mapping[str, Any], end: str) -> str:
    """Name the group at one end, and its value."""
    group = row[f"{end}_group"]
    return "-" if group is None else f"{escape(group)} {number(row[f'{end}_value'])}"


def _compared(row: Mapping[str, Any]) -> str:
    return f"{row['n_groups']} compared\n{row['n_left_out']} left out"


def to_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Write rows as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_inert(_plain_value(row[name])) for name in columns] for row in rows)
    return out.getvalue()


def to_json(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Write rows as a JSON array of objects."""
    return json.dumps([{name: row[name] for name in columns} for row in rows], default=str, indent=2) + "\n"


WRITERS: Final = {"csv": to_csv, "json": to_json}
"""How rows are written for programs, by format."""


def _cell(row: Mapping[str, Any] | None, best: float | None, before_interval: str = " ") -> str:
    if row is None or row[C.VALUE] is None:
        return "-"
    text = f"{row[C.VALUE]:.4f}"
    shown = f"[bold green]{text}[/bold green]" if row[C.VALUE] == best else text
    return f"{shown}{before_interval}[dim]{_interval(row)}[/dim]"


def _interval(row: Mapping[str, Any]) -> str:
    mark = f" {_UNCERTAIN}" if row.get("is_uncertain") else ""
    return "-" if row["ci_low"] is None else escape(f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]{mark}")


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    return "" if value is None else json.dumps(value) if isinstance(value, list | dict) else value


def _inert(value: Any) -> Any:  # noqa: ANN401 - as above
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
