"""``rankeval show``: what the results root holds."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.history.published_runs import PastNight, chosen_nights
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.tables import OTHER_TESTS
from rankeval_spark.cli.display.terminal import console, say_note, write_out
from rankeval_spark.cli.sessions import session_for
from rankeval_spark.config import parse_date
from rankeval_spark.errors import ConfigError, Fault, nearest, nearest_days
from rankeval_spark.measures import Measure, group_statistics
from rankeval_spark.report.defaults import newest_nights
from rankeval_spark.result_rows.groups import gap_rows
from rankeval_spark.results import results_of
from rankeval_spark.results.published_results import DELETED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.table import Table

    from rankeval_spark.results import Results

Row: TypeAlias = dict[str, Any]

View: TypeAlias = Literal["metrics", "gaps", "comparisons"]

COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, C.VALUE),
    *("ci_low", "ci_high", "ci_level", "n_users", "is_small"),
    *("n_nonzero", "is_uncertain"),
)

_LEFT_OUT: Final = {C.RUN_ID, C.SLICE_VALUES, "replicates", "seed", "margin", "win_share", "loss_share"}
"""Columns of ``comparisons`` that are not shown."""

COMPARISON_COLUMNS: Final = (
    *(name for name in schemas.COMPARISONS.field_names() if name not in _LEFT_OUT),
    OTHER_TESTS,
)

GAP_COLUMNS: Final = (*gap_rows.NIGHT, *gap_rows.COLUMNS)

ANY_SLICE: Final = "any"

MOST_NAMED: Final = 20
"""Names that there are, in the note on one that there is not."""

ORDER: Final = (C.EVALUATION, C.EVALUATION_DATE, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, C.MODEL_ID)


@dataclass(frozen=True)
class RowSelection:
    """Which rows of ``metrics`` are read; the newest date and everyone where nothing is said, and no sample."""

    written_day: str | None
    evaluation: str | None
    models: Sequence[str]
    measures: Sequence[str]
    slices: Sequence[str]
    ks: Sequence[int]

    @property
    def day(self) -> date | None:
        """The date, if one is named."""
        return parse_date(self.written_day, where="--date") if self.written_day else None

    @property
    def labels(self) -> list[str]:
        """Canonical names of the measures, without cutoff."""
        return [*self.cutoffs]

    @property
    def names(self) -> list[str]:
        """Canonical names of the measures, with the cutoffs that were written."""
        return [name for label, ks in self.cutoffs.items() for name in ([f"{label}@{k}" for k in ks] or [label])]

    @property
    def cutoffs(self) -> dict[str, list[int]]:
        """Cutoffs that were written, by measure; none where it is named without one, which means all."""
        found: dict[str, list[int]] = {}
        named = [_named(text) for text in self.measures]
        for label, k in named:
            found.setdefault(label, [])
            if k is not None and (label, None) not in named:
                found[label].append(k)
        return found

    @property
    def equal(self) -> dict[str, Any]:
        """Columns that must have one of some values."""
        slices = [] if ANY_SLICE in self.slices else list(self.slices) or [C.ALL_USERS]
        conditions: dict[str, Sequence[Any]] = {
            C.MODEL_ID: self.models,
            C.MEASURE: self.labels,
            C.K: self.ks,
            C.SLICE: slices,
        }
        return {column: list(values) for column, values in conditions.items() if values}


def _named(text: str) -> tuple[str, int | None]:
    """Read the name and the cutoff of a measure, also where it cannot be computed without one, or ``GroupGap(...)``."""
    parts = group_statistics.at_cutoff(text)
    if parts is not None:
        label, k = _named(parts[1])
        return group_statistics.name_of(parts[0], label), k
    try:
        measure = Measure.parse(text, where="--measure")
    except ConfigError as error:
        try:
            return Measure.parse(f"{text}@1").label, None
        except ConfigError:
            raise error from None
    return measure.label, measure.k or None


def view_of(*, gaps: bool, comparisons: bool) -> View:
    """Choose what is shown: the means, or one of the two that were requested."""
    if gaps and comparisons:
        raise ConfigError(Fault("--gaps and --comparisons", "both", "one of them"))
    return "gaps" if gaps else "comparisons" if comparisons else "metrics"


def show_command(root: str, selection: RowSelection, format_: str, view: View = "metrics") -> None:
    """Print the selected rows, the gaps between their groups, or comparisons: as a table, CSV or JSON."""
    columns, read, lay_out = _VIEWS[view]
    session = session_for(root, "show")
    results = results_of(session, root)
    rows = read(results, selection)
    for text in _notes(results, rows):
        say_note(text)
    empty = [] if rows else _empty_nights(session, root, selection)
    for night in empty:
        say_note(f"{night}: nothing was measured, {night.row['reason']}")
    if not rows and not empty:
        say_note(f"no row matches; without filters: rankeval show {shlex.quote(root)}")
    if not empty and _has_unmatched(selection, rows):
        for text in unknown_filters(results, selection, view):
            say_note(text)
    if format_ in tables.WRITERS:
        write_out(tables.WRITERS[format_](rows, columns))
    elif rows:
        lay_out(rows)


def _notes(results: Results[Any], rows: Sequence[Row]) -> list[str]:
    """Say of which nights only what is shown is left."""
    nights = sorted({(row[C.EVALUATION], row[C.EVALUATION_DATE]) for row in rows})
    gone = results.deleted() if rows else {}
    return [
        f"{name}, {day}: {' and '.join(sorted(gone[name, day]))} were {DELETED}"
        for name, day in nights
        if (name, day) in gone
    ]


def _empty_nights(session: SparkSession | None, root: str, selection: RowSelection) -> list[PastNight]:
    """List the published nights of the selected date on which nothing was measured.

    Raises
    ------
    InputError
        Nothing is published of the date or of the evaluation.
    """
    nights = chosen_nights(session, root, evaluation=selection.evaluation, day=selection.day)
    return [night for night in nights if night.is_empty and selection.day is not None]


def _has_unmatched(selection: RowSelection, rows: Sequence[Row]) -> bool:
    """Whether a value of a filter is in no row, although other values of it may be."""
    found = {f"{row[C.MEASURE]}@{row[C.K]}" for row in rows}
    written = {f"{label}@{k}" for label, ks in selection.cutoffs.items() for k in ks}
    others = (set(values) - {row.get(column) for row in rows} for column, values in selection.equal.items())
    return not rows or any((written - found, *others))


def unknown_filters(results: Results[Any], selection: RowSelection, view: View) -> list[str]:
    """Name what no row of the selected night has, with the nearest name that it has."""
    tables_read = _TABLES[view]
    nights = {night for table in tables_read for night in results.nights(table)}
    faults = [_fault_of("--evaluation", selection.evaluation, {name for name, _ in nights})]
    of_evaluation = {day for name, day in nights if selection.evaluation in (None, name)}
    faults.append(_fault_of("--date", selection.day, of_evaluation))
    night = RowSelection(selection.written_day, selection.evaluation, (), (), (ANY_SLICE,), ())
    rows = [_read_selected(results, night, table) for table in tables_read] if not any(faults) else []
    for column, values in selection.equal.items() if rows else ():
        known = {value for table in rows for value in table[column].unique().to_pylist()}
        faults += [_fault_of(_OPTIONS[column], value, known) for value in values]
    pairs = {pair for table in rows for pair in zip(table[C.MEASURE].to_pylist(), table[C.K].to_pylist(), strict=True)}
    for label, ks in selection.cutoffs.items():
        of_measure = sorted({k for own, k in pairs if own == label})
        expected = f"{label} at one of: {', '.join(map(str, of_measure))}"
        faults += [Fault("--measure", f"{label}@{k}", expected) for k in ks if of_measure and k not in of_measure]
    return [str(fault) for fault in faults if fault is not None]


_OPTIONS: Final[Mapping[str, str]] = {C.MODEL_ID: "--model", C.MEASURE: "--measure", C.K: "--k", C.SLICE: "--slice"}


def _fault_of(option: str, value: Any, known: Collection[Any]) -> Fault | None:  # noqa: ANN401 - a text or a number
    if value is None or value in known:
        return None
    names = [str(one) for one in sorted(known)]
    shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    fix = nearest_days(value, known) if isinstance(value, date) else nearest(str(value), names)
    return Fault(option, str(value), f"one of: {shown or 'nothing is published'}", fix)


def selected_rows(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read the selected rows of the date, or of the newest one of each evaluation."""
    rows = _read_selected(results, selection, schemas.METRICS.name).to_pylist()
    if any(group_statistics.parts_of(label) for label in selection.labels):
        rows += _read_selected(results, selection, schemas.GROUP_METRICS.name).to_pylist()
    return in_order([{name: row.get(name) for name in COLUMNS} for row in rows], ORDER)


def gap_rows_of(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read how far the groups lie apart that the selected rows are of."""
    of_both = replace(selection, measures=_with_kinds(selection.measures))
    read = (_read_selected(results, of_both, table) for table in (schemas.METRICS.name, schemas.GROUP_METRICS.name))
    gaps = gap_rows.to_gaps(*read).select(GAP_COLUMNS).to_pylist()
    return in_order(gaps, [name for name in ORDER if name in GAP_COLUMNS])


def _with_kinds(measures: Sequence[str]) -> list[str]:
    """Name each measure and the statistics of its groups; the name of a statistic is that of its measure too."""
    wholes = [parts[1] if (parts := group_statistics.at_cutoff(text)) else text for text in measures]
    return [*wholes, *(group_statistics.name_of(kind, one) for kind in group_statistics.KINDS for one in wholes)]


def comparison_rows_of(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read the comparisons of the selected models, measures and slices: a row each, next to t the other tests."""
    order = (*ORDER[:4], C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K)
    rows = in_order(_read_selected(results, selection, schemas.COMPARISONS.name).to_pylist(), (*order, "test"))
    others: dict[tuple[str, ...], dict[str, float | None]] = {}
    for row in rows:
        if row["test"] != "t":
            others.setdefault(_compared(row, order), {})[row["test"]] = row["p_adjusted"]
    names = [name for name in COMPARISON_COLUMNS if name != OTHER_TESTS]
    of_t = (row for row in rows if row["test"] == "t")
    return [{**{name: row[name] for name in names}, OTHER_TESTS: others.get(_compared(row, order), {})} for row in of_t]


def _compared(row: Row, key: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in key)


def in_order(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Sort rows by some columns, NULL first."""
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])


def _read_selected(results: Results[Any], selection: RowSelection, table: str) -> pa.Table:
    """Read rows of the selected date; where none is named, of the newest night of each evaluation."""
    nights = results.nights()
    if selection.day is not None:
        nights = [night for night in nights if night[1] == selection.day]
    newest = newest_nights(dict.fromkeys(nights, True), selection.evaluation)
    rows = results.arrow(table, date=sorted(set(newest.values())), evaluation=sorted(newest), **selection.equal)
    cells = zip(*(rows[name].to_pylist() for name in (C.EVALUATION, C.EVALUATION_DATE)), strict=True)
    of_newest = rows.filter(pa.array([newest[name] == day for name, day in cells], pa.bool_()))
    return _at_cutoffs(of_newest, selection.cutoffs)


def _at_cutoffs(rows: pa.Table, cutoffs: Mapping[str, Sequence[int]]) -> pa.Table:
    """Keep of each measure the cutoffs that are written in its name."""
    if not any(cutoffs.values()):
        return rows
    cells = zip(*(rows[name].to_pylist() for name in (C.MEASURE, C.K)), strict=True)
    return rows.filter(pa.array([not cutoffs[label] or k in cutoffs[label] for label, k in cells], pa.bool_()))


def _print_metrics(rows: Sequence[Row]) -> None:
    is_of_everyone = {row[C.SLICE] for row in rows} == {C.ALL_USERS}
    _print_by_night(_leaderboard if is_of_everyone else tables.means, rows)


def _print_by_night(lay_out: Callable[..., Table], rows: Sequence[Row]) -> None:
    """Print a table of each night."""
    out, nights = console(), dict[str, list[Row]]()
    for row in rows:
        nights.setdefault(f"{row[C.EVALUATION]}, {row[C.EVALUATION_DATE]}", []).append(row)
    for title, own in nights.items():
        out.print(lay_out(own, title, width=out.width))


def _leaderboard(rows: Sequence[Row], night: str, *, width: int) -> Table:
    users, level = max(row["n_users"] for row in rows), f"{100 * rows[0]['ci_level']:.4g}"
    return tables.leaderboard(rows, f"{night}: up to {users:,} users, {level} % intervals", width=width)


_VIEWS: Final[Mapping[View, tuple[Sequence[str], Callable[..., list[Row]], Callable[[Sequence[Row]], None]]]] = {
    "metrics": (COLUMNS, selected_rows, _print_metrics),
    "gaps": (GAP_COLUMNS, gap_rows_of, partial(_print_by_night, tables.gaps)),
    "comparisons": (COMPARISON_COLUMNS, comparison_rows_of, partial(_print_by_night, tables.comparisons)),
}
"""Columns of each view, how its rows are read, and how they are laid out."""

_TABLES: Final[Mapping[View, Sequence[str]]] = {
    "metrics": (schemas.METRICS.name, schemas.GROUP_METRICS.name),
    "gaps": (schemas.METRICS.name, schemas.GROUP_METRICS.name),
    "comparisons": (schemas.COMPARISONS.name,),
}
"""Tables that each view reads."""
