"""Result rows as tables for people, and as CSV or JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from rich.markup import escape
from rich.table import Table

from rankeval_spark import columns as C, schemas
from rankeval_spark.cli.terminal import json_text
from rankeval_spark.config.inference import Family
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, with_cutoff
from rankeval_spark.measures.names import find_biases
from rankeval_spark.report.defaults import headline_measure, headlines
from rankeval_spark.report.night import verdict_of
from rankeval_spark.report.night_changes import change_lines
from rankeval_spark.report.winner import PASSED, UNMET, deciding_measure, winner_of
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT, why_withheld
from rankeval_spark.statistics.unpaired_tests import describe_shared_users
from rankeval_spark.wording import NO_SUPPORT, group_name, slice_name

if TYPE_CHECKING:
    from rich.console import Console

FORMULA_STARTS: Final = (*"=+-@", *"\uff1d\uff0b\uff0d\uff20", "\t", "\r", "\n")
"""A cell that begins with one of these is run as a formula by spreadsheets; some take their wide forms for them too."""

WIDE: Final = 120  # columns of a terminal of unknown width
LINE: Final = 100  # columns of a line of comparisons
SLICE_WIDTH: Final = 15  # and of its slice
NIGHTS_WIDTH: Final = 20  # and of the values of two nights
GAPS_LINE: Final = 118  # columns of a line of gaps
OTHER_TESTS: Final = "other_tests"  # adjusted p of the requested tests other than t, by test
MAX_WITHHELD: Final = 3
UNCERTAIN: Final = "~"
UNSUPPORTED: Final = "!"
EXPLORATORY: Final = "?"
MARK: Final = "*"
DETECTED: Final = "undecided < x: the test would find a difference of x or more in 80 % of samples"
EACH_BASELINE: Final = "model - baseline"
NIGHTS: Final = {"earlier_value": "then", C.VALUE: "now"}  # values of two nights, and their headings

VERDICTS: Final = {
    "better": "[bold green]better[/bold green]",
    "worse": "[bold red]worse[/bold red]",
    "different": "[bold]different[/bold]",
    "undecided": "undecided",
}
OUTCOMES: Final = {
    "passed": "[green]passed[/green]",
    **{name: f"[bold red]{name.replace('_', ' ')}[/bold red]" for name in ("failed", "no_match", "missing_slice")},
}
Row: TypeAlias = Mapping[str, Any]
GATE_FIELDS: Final = tuple(name for name in schemas.GATES.field_names() if name not in C.RUN_KEY)
"""Columns of a verdict for programs."""


def new_table(*headings: str, title: str | None = None, caption: Sequence[str] = ()) -> Table:
    """Return a table without rows, whose long cells wrap; the caption, a line each, is below it."""
    title, explained = None if title is None else escape(title), "\n".join(caption) or None
    options: dict[str, Any] = {"title_justify": "left", "caption_justify": "left", "header_style": "bold"}
    table = Table(title=title, caption=explained, show_edge=False, **options)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def measure_label(row: Row) -> str:
    """Return measure and cutoff, such as ``nDCG@10``."""
    return with_cutoff(row[C.MEASURE], row[C.K])


def leaderboard(rows: Sequence[Row], title: str, *, width: int = WIDE) -> Table:
    """Build the table of measures x models, the best mean of each line in bold; narrow with intervals below means."""
    by_cell = {(measure_label(row), row[C.MODEL_ID]): row for row in rows}
    measures, models = list(dict.fromkeys(cell[0] for cell in by_cell)), sorted({cell[1] for cell in by_cell})
    table = new_table("measure", title=title, caption=_explain_marks(rows))
    for model in models:
        table.add_column(escape(model), justify="right", overflow="fold")
    cell_width = len(f"0.1234 [0.1234, 0.1234] {UNCERTAIN}")
    columns = [max(map(len, measures)), *(max(len(model), cell_width) for model in models)]
    before_interval = " " if sum(column + len(" │ ") for column in columns) <= width else "\n"
    for measure in measures:
        cells = [by_cell.get((measure, model)) for model in models]
        values = [row[C.VALUE] for row in cells if row and row[C.VALUE] is not None and _has_support(row)]
        try:
            better = Measure.parse(measure).better
        except ConfigError:  # a measure that this version does not know
            better = "higher"
        best = None if better == "neither" else (min if better == "lower" else max)(values, default=None)
        table.add_row(escape(measure), *(_format_mean(row, best, before_interval) for row in cells))
    return table


def comparisons(rows: Sequence[Row], title: str, *, width: int = WIDE) -> Table:
    """Build the table of differences between models or nights; a narrow one has several lines a row."""
    corrected, explained = _describe_families(rows)
    caption = [*_list_withheld(rows), *explained, *([DETECTED] if any(map(_has_detectable, rows)) else [])]
    table = new_table(title=f"{title}: {_percent_of_level(rows)} % intervals{corrected}", caption=caption)
    baselines = sorted({str(row[C.BASELINE_MODEL_ID]) for row in rows if C.BASELINE_MODEL_ID in row})
    whom = EACH_BASELINE if len(baselines) > 1 else " - ".join(["model", *map(escape, baselines)])
    has_slices = any(row[C.SLICE] != C.ALL_USERS for row in rows)
    has_others = any(row.get(OTHER_TESTS) for row in rows)
    nights = list(NIGHTS) if "earlier_value" in rows[0] else []
    is_narrow = width < LINE + SLICE_WIDTH * has_slices + NIGHTS_WIDTH * bool(nights)
    for heading in (f"{whom}, measure",) if is_narrow else (whom, *(["slice"] if has_slices else []), "measure"):
        table.add_column(heading, overflow="fold")
    for heading in () if is_narrow else (NIGHTS[name] for name in nights):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("difference", justify="left" if is_narrow else "right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for heading in () if is_narrow else ("change", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    if has_others and not is_narrow:
        table.add_column("p of other tests", overflow="fold")
    for row in sorted(rows, key=lambda row: row.get("family") == "exploratory"):
        name = measure_label(row) if row.get("family") != "exploratory" else f"{measure_label(row)} {EXPLORATORY}"
        model = str(row[C.MODEL_ID])
        model = f"{model} - {row[C.BASELINE_MODEL_ID]}" if whom == EACH_BASELINE else model
        values = [number(row[name]) for name in nights]
        p = "-" if row["p_adjusted"] is None else f"{row['p_adjusted']:.2g}"
        of_tests = (row.get(OTHER_TESTS) or {}).items()  # each adjusted within its kind, as that of t
        others = ", ".join(f"{test.replace('_', ' ')} {'-' if q is None else f'{q:.2g}'}" for test, q in of_tests)
        if is_narrow:
            slice_ = [] if row[C.SLICE] == C.ALL_USERS else [_slice_text(row)]
            about = "\n".join(map(escape, (model, *slice_, name)))
            tests = ("" if p == "-" else f"p = {p}", others)
            verdict = "\n".join(filter(None, (_format_verdict(row), *tests)))
            table.add_row(about, "\n".join(filter(None, (_format_difference(row), " -> ".join(values)))), verdict)
        else:
            names = [model, *([_slice_text(row)] if has_slices else []), name]
            change = "-" if row["relative_delta"] is None else f"{row['relative_delta']:+.1%}"
            numbers = (*values, _format_difference(row), _format_verdict(row), change, p)
            table.add_row(*map(escape, names), *numbers, *([others] if has_others else []))
    return table


def _describe_families(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """Return how p is adjusted, for a title, and what the mark of exploratory rows means."""
    sizes = {str(row.get("family") or "alike"): row["family_size"] for row in rows}  # earlier versions had one family
    tests = ", ".join(f"{sizes[name]:,} {name}" for name in (*get_args(Family), "alike") if name in sizes)
    method = rows[0]["correction"]
    corrected = "" if method == "none" else f", p by {method.title()} within families of tests ({tests})"
    why = "no primary measure at its cutoff, so what it finds is to be confirmed (comparisons.primary)"
    return corrected, [f"{EXPLORATORY} exploratory: {why}"] if "exploratory" in sizes else []


def what_changed(rows: Sequence[Row]) -> Table:
    """Build the table of what changed a mean, a column a model."""
    found = change_lines(rows)
    table = new_table("", title=found.title, caption=[found.inputs] if found.inputs else ())
    for model in found.models:
        table.add_column(escape(model), justify="right", overflow="fold")
    for words, cells in found.lines:
        texts = (f"{cell.text} ({cell.note})" if cell.note else cell.text for cell in cells)
        table.add_row(*(escape(text.replace("−", "-")) for text in (words, *texts)))  # as the other tables here
    return table


def _list_withheld(rows: Sequence[Row]) -> list[str]:
    """Return why differences are withheld, or not of different users, once for each pair of models and slice."""
    said = ((row, why_withheld(row) or describe_shared_users(row)) for row in rows if C.BASELINE_MODEL_ID in row)
    pairs = {(row[C.MODEL_ID], row[C.BASELINE_MODEL_ID], _slice_text(row)): (row, text) for row, text in said if text}
    lines = [
        f"{model} - {baseline}{'' if row[C.SLICE] == C.ALL_USERS else f', {slice_}'}: {text}"
        for (model, baseline, slice_), (row, text) in pairs.items()
    ]
    more = [f"and {len(lines) - MAX_WITHHELD} more"] if len(lines) > MAX_WITHHELD else []
    return [escape(line) for line in [*lines[:MAX_WITHHELD], *more]]


def _format_verdict(row: Row) -> str:
    """Format a verdict in its colour, or why there is none."""
    if row["reason"] == TOO_LITTLE_SUPPORT:
        return NO_SUPPORT
    if _has_detectable(row):
        return f"undecided [dim]< {row['detectable']:.2g}[/dim]"
    reason = str(row["reason"] or "too many tests").replace("_", " ")
    return VERDICTS.get(row["verdict"], f"[dim]not tested: {escape(reason)}[/dim]")


def _has_detectable(row: Row) -> bool:
    return row["verdict"] == "undecided" and row.get("detectable") is not None


def _percent_of_level(rows: Sequence[Row]) -> str:
    """Format the level of the intervals in percent."""
    return f"{100 * rows[0]['ci_level']:.4g}"


def _slice_text(row: Row) -> str:
    """Return the name of a slice; rows of all its groups, such as ``GroupGap(nDCG)``, have no value."""
    return slice_name(row[C.SLICE], row[C.SLICE_VALUE]) if row[C.SLICE_VALUE] else str(row[C.SLICE])


def number(value: float | None) -> str:
    """Format a value with four decimals."""
    return "-" if value is None else f"{value:.4f}"


def _format_difference(row: Row) -> str:
    """Format the difference with its interval."""
    if row["delta"] is None:
        return "-"
    low, high = row["ci_low"], row["ci_high"]
    numbers = [row["delta"]] if low is None else [row["delta"], low, high]
    delta, *ends = (f"{round(value, 4) + 0.0:+.4f}" for value in numbers)  # -0 is +0
    return f"{delta} [dim]{escape(f'[{ends[0]}, {ends[1]}]')}[/dim]" if ends else delta


def gates(rows: Sequence[Row], title: str | None = "gates") -> Table:
    """Build the table of gates: rule, verdict and explanation."""
    table = new_table(title=title)
    table.add_column("rule", justify="right")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", overflow="fold")
    for row in rows:
        table.add_row(str(row["gate"]), _format_outcome(row["verdict"]), escape(row["explanation"]))
    return table


def rules(rows: Sequence[Row], title: str | None = "gates") -> Table:
    """Build the table of rules: the number of cases by verdict."""
    table = new_table("rule", "asks for", "cases", title=title)
    for rule in dict.fromkeys(row["gate"] for row in rows):
        of_rule = [row for row in rows if row["gate"] == rule]
        counts = Counter(row["verdict"] for row in of_rule)
        cases = ", ".join(f"{n} {_format_outcome(verdict)}" for verdict, n in counts.items())
        table.add_row(str(rule), escape(of_rule[0]["rule"]), cases)
    return table


def _format_outcome(verdict: str) -> str:
    return OUTCOMES.get(verdict, f"[yellow]{escape(verdict.replace('_', ' '))}[/yellow]")


def gates_sentence(rows: Sequence[Row]) -> str:
    """Return the verdict of all rules; if none could be judged, also the meaning of the exit code."""
    verdict = verdict_of(rows)
    undecided = "The exit code is 0, as without rules: look at the verdicts before a model ships."
    return str(verdict) if is_decided(rows) else f"{verdict} {undecided}"


def winner_sentence(
    gates: Sequence[Row],
    means: Sequence[Row],
    pairs: Sequence[Row],
    *,
    requested: Sequence[tuple[str, int]],
    baseline: str | None,
    compare: Callable[..., list[dict[str, Any]]],
) -> str:
    """Return which model may ship, or leads, against the next best one; empty where no rule could be judged.

    ``compare`` takes the deciding measure and these rows, and returns the comparison of the two best models that
    ``pairs`` lacks.
    """
    if not is_decided(gates):
        return ""
    known = list(dict.fromkeys((row[C.MEASURE], row[C.K]) for row in means))
    first = deciding_measure(known, [key for key in requested if key in known], gates, pairs)
    of_best = [] if first is None else compare(first, gates, means, pairs, baseline)
    return str(winner_of(gates, means, [*pairs, *of_best], first=first, baseline=baseline))


def is_decided(rows: Sequence[Row]) -> bool:
    """Return whether a rule is met, or not met: undecided is not met."""
    return any(row["verdict"] in {PASSED, *UNMET} for row in rows)


def means(rows: Sequence[Row], title: str, *, width: int = WIDE) -> Table:  # noqa: ARG001 - as the others
    """Build the table of means of slices; a single slice is in the heading."""
    small = [f"{MARK} fewer users than min_slice_size"] if any(row["is_small"] for row in rows) else []
    table = new_table(title=f"{title}: {_percent_of_level(rows)} % intervals", caption=[*small, *_explain_marks(rows)])
    names = {row[C.SLICE] for row in rows}
    only = names.pop() if len(names) == 1 else None
    for heading in ("model", only or "slice", "measure"):
        table.add_column(escape(heading), overflow="fold")
    table.add_column("mean", no_wrap=True)
    table.add_column("users", justify="right", no_wrap=True)
    for row in rows:
        about = (
            row[C.MODEL_ID],
            group_name(row[C.SLICE_VALUE] or "-") if only else _slice_text(row),
            measure_label(row),
        )
        users = f"{MARK} {row['n_users']:,}" if row["is_small"] else f"{row['n_users']:,}"
        table.add_row(*map(escape, about), _format_mean(row, None), users)
    return table


def gaps(rows: Sequence[Row], title: str, *, width: int = WIDE) -> Table:
    """Build the table of gaps between groups, marked if the interval lies above 0; narrow as in :func:`comparisons`."""
    caption = f"{MARK} the interval of the gap lies above 0: the groups can be told apart"
    table = new_table(title=f"{title}: {_percent_of_level(rows)} % intervals", caption=[caption])
    is_narrow = width < GAPS_LINE
    about, groups = ("model", "slice", "measure"), ("lowest", "highest", "groups")
    for heading in (", ".join(about),) if is_narrow else about:
        table.add_column(heading, overflow="fold")
    for heading in ("gap", "ratio"):
        table.add_column(heading, no_wrap=True)
    for heading in groups[-1:] if is_narrow else groups:
        table.add_column(heading, overflow="fold")
    for row in rows:
        names = [escape(text) for text in (row[C.MODEL_ID], row[C.SLICE], measure_label(row))]
        mark = f" {MARK}" if row["ci_low"] is not None and row["ci_low"] > 0 else ""
        gap = _format_with_interval(row["gap"], row["ci_low"], row["ci_high"], mark)
        numbers = gap, _format_with_interval(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"])
        lowest, highest = (
            "-"
            if row[f"{end}_group"] is None
            else f"{escape(group_name(row[f'{end}_group']))} {number(row[f'{end}_value'])}"
            for end in ("lowest", "highest")
        )
        compared = f"{row['n_groups']} compared\n{row['n_left_out']} left out"
        if is_narrow:
            table.add_row("\n".join(names), *numbers, f"lowest {lowest}\nhighest {highest}\n{compared}")
        else:
            table.add_row(*names, *numbers, lowest, highest, compared)
    return table


def _explain_marks(rows: Sequence[Row]) -> list[str]:
    """Return the explanations of marks that intervals have."""
    explained = {
        f"{UNCERTAIN} uncertain: few users decide about it": any(
            row.get("is_uncertain") and _has_support(row) for row in rows
        ),
        f"{UNSUPPORTED} {NO_SUPPORT} (n_effective is below min_slice_size)": not all(map(_has_support, rows)),
    }
    biases = map(escape, find_biases(row[C.MEASURE] for row in rows))
    return [*(text for text, is_there in explained.items() if is_there), *biases]


def _has_support(row: Row) -> bool:
    return row.get("has_support") is not False


def _format_with_interval(value: float | None, low: float | None, high: float | None, mark: str = "") -> str:
    """Format a number with its mark, and its interval in the next line."""
    interval = "" if low is None else f"\n{escape(f'[{number(low)}, {number(high)}]')}"
    return f"{number(value)}{mark}{interval}"


def to_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return rows as CSV; text that a spreadsheet would run as a formula gets an apostrophe."""

    def cell(value: Any) -> Any:  # noqa: ANN401 - a value of any column
        plain = "" if value is None else json.dumps(value) if isinstance(value, list | dict) else value
        return f"'{plain}" if isinstance(plain, str) and plain.startswith(FORMULA_STARTS) else plain

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([cell(row[name]) for name in columns] for row in rows)
    return out.getvalue()


def to_json(rows: Sequence[Row], columns: Sequence[str], *, indent: int | None = 2) -> str:
    """Return rows as a JSON array of objects; with ``indent=None`` it is one line."""
    return json_text([{name: row[name] for name in columns} for row in rows], indent=indent)


def trec_json(lines: Iterable[str]) -> str:
    r"""Return lines of trec_eval, ``name, topic, value`` between tabs, as a JSON array; the name of a run stays text.

    >>> print(trec_json(["map \tall\t0.5"]).replace("\n", ""))
    [  {    "measure": "map",    "topic": "all",    "value": 0.5  }]
    """
    rows = []
    for line in lines:
        name, topic, text = (cell.strip() for cell in line.split("\t"))
        value: float | int | str = text
        for kind in (float, int):
            with suppress(ValueError):
                value = kind(text)
        rows.append({"measure": name, "topic": topic, "value": value})
    return json_text(rows)


WRITERS: Final = {"csv": to_csv, "json": to_json}  # formats for programs


MAX_LINES: Final = 40  # of a table without --all: it fits a screen with its title and notes


def print_fitted(
    out: Console,
    rows: Sequence[Row],
    build: Callable[[Sequence[Row]], Table],  # the table of some rows
    *,
    is_all: bool,  # whether all rows are wanted, however many there are
    rank: Callable[[Row], Any],  # of a row: the lowest stay where not all of them fit
    unit: Callable[[Row], Any] = id,  # what rows of one line have in common
    choose: str = "",  # options that choose rows
    below: Table | None = None,  # a short table that belongs to them
) -> None:
    """Print a table of all rows where they fit a screen, else of the decisive ones, with a line about the others."""
    most = MAX_LINES - (0 if below is None else len(out.render_lines(below, pad=False)))
    units: dict[Any, list[Row]] = {}
    for row in rows:
        units.setdefault(unit(row), []).append(row)
    n_units = n_shown = len(units)
    ordered, table = list(units.values()), build(rows)
    while not is_all and n_shown > 1 and (n_lines := len(out.render_lines(table, pad=False))) > most:
        if n_shown == n_units:
            ordered.sort(key=lambda unit_rows: rank(unit_rows[0]))
        n_shown = max(1, min(n_shown - 1, n_shown * most // n_lines))
        table = build([row for unit_rows in ordered[:n_shown] for row in unit_rows])
    out.print(table)
    if below is not None:
        out.print(below)
    if n_shown < n_units:
        text = f"{n_shown:,} of {n_units:,} lines, the decisive ones; --all shows all{choose}"
        out.print(text, markup=False)


def row_ranking(rows: Sequence[Row]) -> Callable[[Row], tuple[Any, ...]]:
    """Return a sort key of rows: all users, the usual measures at one cutoff each, and what was found come first."""
    measures = list(dict.fromkeys((row[C.MEASURE], row[C.K]) for row in rows))
    first = headline_measure(measures)
    usual = headlines(measures, measures, first=first, at_most=len(measures)) if first else []
    places = {name: place for place, name in enumerate(usual)}

    def rank(row: Row) -> tuple[Any, ...]:
        is_found = row.get("verdict") in ("better", "worse", "different") or ("gap" in row and (row["ci_low"] or 0) > 0)
        place = places.get((row[C.MEASURE], row[C.K]), len(places))
        is_of_all = row[C.SLICE] == C.ALL_USERS
        is_open = row.get("family") == "exploratory"
        return (not is_of_all, is_open, place == len(places), not is_found, place if is_of_all else min(place, 1))

    return rank


CHOOSE_ROWS: Final = ", and --measure, --k, --slice and --model choose"


def _format_mean(row: Row | None, best: float | None, before_interval: str = " ") -> str:
    """Format a mean with its interval and marks, bold if it is the best."""
    if row is None or row[C.VALUE] is None:
        return "-"
    text = f"{row[C.VALUE]:.4f}"
    shown = f"[bold green]{text}[/bold green]" if row[C.VALUE] == best and _has_support(row) else text
    unsupported = "" if _has_support(row) else f" {UNSUPPORTED}"
    mark = unsupported or (f" {UNCERTAIN}" if row.get("is_uncertain") else "")
    ends = "-" if row["ci_low"] is None else f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]"
    interval = escape(f"{ends}{unsupported if row['ci_low'] is None else mark}")
    return f"{shown}{before_interval}[dim]{interval}[/dim]"
