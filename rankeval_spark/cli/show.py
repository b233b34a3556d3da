"""``rankeval show``, ``compare``, ``user`` and ``explain``: rows of a results root, two nights, and one user."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa
from rich.markup import escape

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_models, compare_nights
from rankeval_spark.apps.published.user_lists import UserLists, explain_published, user_lists
from rankeval_spark.apps.published_runs import PastNight, chosen_nights, earlier_nights, published_nights
from rankeval_spark.cli import tables
from rankeval_spark.cli.shared_options import new_session
from rankeval_spark.cli.tables import OTHER_TESTS
from rankeval_spark.cli.terminal import console, json_text, say_done, say_note, write_out
from rankeval_spark.config import parse_date
from rankeval_spark.config.request import request_of
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    InputError,
    InvalidCallError,
    listed,
    nearest,
    nearest_days,
    visible,
)
from rankeval_spark.measures import group_statistics
from rankeval_spark.report.defaults import newest_nights
from rankeval_spark.result_rows import gap_rows
from rankeval_spark.result_rows.night_change_rows import BY_GROUPS, BY_USERS, SHARES, count_inputs
from rankeval_spark.results import results_of
from rankeval_spark.results.filters import absent_names, cutoffs_of
from rankeval_spark.results.published_results import DELETED
from rankeval_spark.spark.session import on_demand

if TYPE_CHECKING:
    from rich.table import Table

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.results import Results

Row: TypeAlias = dict[str, Any]
ListKey: TypeAlias = tuple[str, str]  # model and list
View: TypeAlias = Literal["metrics", "gaps", "comparisons"]

COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, C.VALUE),
    *("ci_low", "ci_high", "ci_level", "n_users", "is_small"),
    *("n_nonzero", "is_uncertain", "n_effective", "has_support"),
)

_HIDDEN: Final = {C.RUN_ID, C.SLICE_VALUES, "replicates", "seed", "margin", "win_share", "loss_share"}
COMPARISON_COLUMNS: Final = (*(name for name in schemas.COMPARISONS.field_names() if name not in _HIDDEN), OTHER_TESTS)
GAP_COLUMNS: Final = (*gap_rows.NIGHT, *gap_rows.COLUMNS)
_OPTIONS: Final[Mapping[str, str]] = {C.MODEL_ID: "--model", C.MEASURE: "--measure", C.K: "--k", C.SLICE: "--slice"}
ANY_SLICE: Final = "any"
ORDER: Final = (C.EVALUATION, C.EVALUATION_DATE, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, C.MODEL_ID)


@dataclass(frozen=True)
class RowSelection:
    """Filters on rows of ``metrics``; by default those of all users on the newest date, without samples."""

    written_day: str | None = None
    evaluation: str | None = None
    models: Sequence[str] = ()
    measures: Sequence[str] = ()
    slices: Sequence[str] = ()
    ks: Sequence[int] = ()
    nights: int = 1  # comparisons over at most as many nights; 1: of the night alone

    @property
    def day(self) -> date | None:
        """The date, if one is named."""
        return parse_date(self.written_day, where="--date") if self.written_day else None

    @property
    def cutoffs(self) -> dict[str, list[int]]:
        """Cutoffs that were written, by measure; empty for all cutoffs."""
        return cutoffs_of(self.measures, where="--measure")

    @property
    def equal(self) -> dict[str, Any]:
        """Allowed values by column."""
        slices = [] if ANY_SLICE in self.slices else self.slices or [C.ALL_USERS]
        values = (self.models, [*self.cutoffs], self.ks, slices)
        return {column: list(chosen) for column, chosen in zip(_OPTIONS, values, strict=True) if chosen}


def show_command(
    root: str, selection: RowSelection, format_: str, *, gaps: bool, comparisons: bool, is_all: bool
) -> None:
    """Print the selected rows, gaps or comparisons; a table with ``is_all`` has more rows than fit a screen."""
    if gaps and comparisons:
        raise ConfigError(Fault("--gaps and --comparisons", "both", "one of them"))
    if selection.nights > 1 and not comparisons:
        raise ConfigError(Fault("--nights", str(selection.nights), "--nights next to --comparisons", "add it"))
    view: View = "gaps" if gaps else "comparisons" if comparisons else "metrics"
    columns, read, table_of = _VIEWS[view]
    results = results_of(root)
    rows = read(results, selection)
    gone = results.deleted() if rows else {}
    for name, day in sorted({(row[C.EVALUATION], row[C.EVALUATION_DATE]) for row in rows} & gone.keys()):
        say_note(f"{name}, {day}: {' and '.join(sorted(gone[name, day]))} were {DELETED}")
    # Raises InputError if nothing is published.
    nights = [] if rows else chosen_nights(root, evaluation=selection.evaluation, day=selection.day)
    empty = [night for night in nights if night.is_empty and selection.day is not None]
    for night in empty:
        say_note(f"{night}: nothing was measured, {night.row['reason']}")
    found = {f"{row[C.MEASURE]}@{row[C.K]}" for row in rows}
    written = {f"{label}@{k}" for label, ks in selection.cutoffs.items() for k in ks}
    others = (set(values) - {row.get(column) for row in rows} for column, values in selection.equal.items())
    if not empty and (not rows or any((written - found, *others))):  # a value of a filter is in no row
        notes = name_unknown_filters(results, selection, view, is_empty=not rows)
        if not rows and selection.nights > 1:
            pooled = f"no comparison over 2 to {selection.nights} nights matches"
            say_note(f"{pooled}; they need comparisons.nights in the config, and a night before with users")
        if not rows:
            say_note(f"no row matches; without filters: rankeval show {shlex.quote(root)}")
        for text in notes:
            say_note(text)
    if format_ in tables.WRITERS:
        write_out(tables.WRITERS[format_](rows, columns))
    elif rows:
        is_leaderboard = view == "metrics" and all(row[C.SLICE] == C.ALL_USERS for row in rows)
        _print_by_night(rows, _leaderboard if is_leaderboard else table_of, is_all=is_all)


def name_unknown_filters(results: Results[Any], selection: RowSelection, view: View, *, is_empty: bool) -> list[str]:
    """Return faults of filter values that no row of the selected night has, with the nearest known value.

    Raises ConfigError for them where no row is left; that a date has nothing of this kind is told and no fault.
    """
    of_means = (schemas.METRICS.name, schemas.GROUP_METRICS.name)
    tables_read = (schemas.COMPARISONS.name,) if view == "comparisons" else of_means
    nights = {night for table in tables_read for night in results.nights(table)}
    faults = [_unknown_value_fault("--evaluation", selection.evaluation, {name for name, _ in nights})]
    of_evaluation = {day for name, day in nights if selection.evaluation in (None, name)}
    faults.append(_unknown_value_fault("--date", selection.day, of_evaluation))
    if not any(faults):
        names = [C.EVALUATION_DATE, *_OPTIONS]
        every = pa.concat_tables(results.arrow(table, columns=names) for table in tables_read)
        days = set(_select_nights(results, selection).values())
        found = absent_names(every, selection.equal, selection.cutoffs, days, where=_OPTIONS.__getitem__, shown=str)
        unknown = [fault for some in found for fault in some]
        if is_empty and unknown:
            raise ConfigError(*unknown)
        faults += unknown
    return [str(fault) for fault in faults if fault is not None]


def _unknown_value_fault(option: str, value: Any, values: Collection[Any]) -> Fault | None:  # noqa: ANN401 - a text or a date
    """Build the fault of an option whose value the results do not have; None for one that they have."""
    if value is None or value in values:
        return None
    names = [str(name) for name in sorted(values)]
    fix = nearest_days(value, values) if isinstance(value, date) else nearest(str(value), names)
    return Fault(option, str(value), f"one of: {listed(str(value), names) or 'nothing is published'}", fix)


def selected_rows(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read the selected rows on the date, by default the newest of each evaluation."""
    rows = _read_selected(results, selection, schemas.METRICS.name).to_pylist()
    if any(map(group_statistics.parts_of, selection.cutoffs)):
        rows += _read_selected(results, selection, schemas.GROUP_METRICS.name).to_pylist()
    return sort_rows([{name: row.get(name) for name in COLUMNS} for row in rows], ORDER)


def gap_rows_of(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read the gaps between the groups of the selected rows."""
    measures = []  # nDCG for GroupGap(nDCG), which are read together
    for text in selection.measures:
        kind_and_measure = group_statistics.at_cutoff(text)
        measures.append(kind_and_measure[1] if kind_and_measure else text)
    statistics = [group_statistics.name_of(kind, name) for kind in group_statistics.KINDS for name in measures]
    of_both = replace(selection, measures=[*measures, *statistics])
    means = _read_selected(results, of_both, schemas.METRICS.name)
    group_metrics = _read_selected(results, of_both, schemas.GROUP_METRICS.name)
    gaps = gap_rows.to_gaps(means, group_metrics).select(GAP_COLUMNS).to_pylist()
    return sort_rows(gaps, [name for name in ORDER if name in GAP_COLUMNS])


def comparison_rows_of(results: Results[Any], selection: RowSelection) -> list[Row]:
    """Read the selected comparisons: the rows with verdicts, with the adjusted p of the other tests."""
    order = (*ORDER[:4], C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K)
    compared: dict[tuple[str, ...], list[Row]] = {}
    for row in sort_rows(_read_selected(results, selection, schemas.COMPARISONS.name).to_pylist(), (*order, "test")):
        compared.setdefault(tuple(str(row[name]) for name in order), []).append(row)
    found = []
    for rows in compared.values():
        others = {row["test"]: row["p_adjusted"] for row in rows if row["test"] not in (*C.DECIDING, C.POOLED)}
        if selection.nights > 1:
            pooled = (row for row in rows if row["test"] == C.POOLED and 1 < row["nights"] <= selection.nights)
            found += [{**row, OTHER_TESTS: {}} for row in pooled]
        else:
            found += [{**row, OTHER_TESTS: others} for row in rows if row["test"] in C.DECIDING]
    return [{name: row.get(name) for name in COMPARISON_COLUMNS} for row in found]


def sort_rows(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Sort rows by some columns, NULL first."""
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])


def _read_selected(results: Results[Any], selection: RowSelection, table: str) -> pa.Table:
    """Read rows on the selected date, by default the newest of each evaluation."""
    newest = _select_nights(results, selection)
    asked = {**selection.equal, **({C.MEASURE: list(selection.measures)} if selection.measures else {})}
    rows = results.arrow(table, date=sorted(set(newest.values())), evaluation=sorted(newest), **asked)
    cells = zip(*(rows[name].to_pylist() for name in (C.EVALUATION, C.EVALUATION_DATE)), strict=True)
    return rows.filter(pa.array([newest[name] == day for name, day in cells], pa.bool_()))


def _select_nights(results: Results[Any], selection: RowSelection) -> dict[str, date]:
    """Return the selected night of each evaluation."""
    nights = [night for night in results.nights() if selection.day in (None, night[1])]
    return newest_nights(dict.fromkeys(nights, True), selection.evaluation)


def _print_by_night(rows: Sequence[Row], table_of: Callable[..., Table], *, is_all: bool) -> None:
    """Print a table for each night of the rows."""
    out, nights = console(), dict[str, list[Row]]()
    for row in rows:
        n_nights = row.get("nights") or 1
        last = f"differences of each user over {n_nights} nights until " if n_nights > 1 else ""
        nights.setdefault(f"{row[C.EVALUATION]}, {last}{row[C.EVALUATION_DATE]}", []).append(row)
    for title, rows_of_night in nights.items():
        tables.print_fitted(
            out,
            rows_of_night,
            partial(table_of, title=title, width=out.width),
            is_all=is_all,
            rank=tables.row_ranking(rows_of_night),
            unit=tables.measure_label if table_of is _leaderboard else id,  # rows of a unit are shown or left out
            choose=tables.CHOOSE_ROWS,
        )


def _leaderboard(rows: Sequence[Row], title: str, *, width: int) -> Table:
    users, level = max(row["n_users"] for row in rows), f"{100 * rows[0]['ci_level']:.4g}"
    return tables.leaderboard(rows, f"{title}: up to {users:,} users, {level} % intervals", width=width)


_VIEWS: Final[Mapping[View, tuple[Sequence[str], Callable[..., list[Row]], Callable[..., Table]]]] = {
    "metrics": (COLUMNS, selected_rows, tables.means),
    "gaps": (GAP_COLUMNS, gap_rows_of, tables.gaps),
    "comparisons": (COMPARISON_COLUMNS, comparison_rows_of, tables.comparisons),
}
"""Columns of each view, the reader of its rows, and the layout of the rows of one night."""

_HIT: Final = "\u2713"
_LIST_KEY_OF: Final = itemgetter(C.MODEL_ID, C.LIST_ID)


def chosen_night(root: str, selection: RowSelection) -> PastNight:
    """Find the night that is selected, or the newest."""
    nights = chosen_nights(root, evaluation=selection.evaluation, day=selection.day)
    if len(nights) > 1:
        names = ", ".join(night.evaluation for night in nights)
        found = "several evaluations" + (f" with results of {selection.day}" if selection.day else "")
        raise ConfigError(Fault("--evaluation", found, f"one of: {names}", "name one"))
    return nights[0]


def user_command(root: str, user: str, selection: RowSelection, *, is_json: bool) -> None:
    """Read the inputs of a published night again and show the lists of one user side by side."""
    spark = on_demand(partial(new_session, "rankeval user"))
    night = chosen_night(root, selection)
    found = user_lists(spark, root, night, [user])
    if not is_json:
        _show_lists(found, f"{night}, user {user}", selection.ks[0])
        return
    ranked, judged, values = (table.to_pylist() for table in (found.ranked, found.judged, found.values))
    for row in (*ranked, *judged) if found.titles else ():
        row[C.TITLE] = found.titles.get(str(row[C.ITEM_ID]))

    def rows_of_list(rows: Iterable[Row], key: ListKey) -> list[Row]:
        of_list = (row for row in rows if _LIST_KEY_OF(row) == key)
        return [{name: value for name, value in row.items() if name not in C.LIST_KEY} for row in of_list]

    document = {
        C.EVALUATION: night.evaluation,
        C.EVALUATION_DATE: night.evaluation_date,
        C.USER_ID: user,
        "judged": [{name: value for name, value in row.items() if name != C.USER_ID} for row in judged],
        "lists": [
            {
                **{C.MODEL_ID: key[0], C.LIST_ID: key[1]},
                **{"items": rows_of_list(ranked, key), "values": rows_of_list(values, key)},
            }
            for key in sorted({*map(_LIST_KEY_OF, ranked), *map(_LIST_KEY_OF, values)})
        ],
    }
    write_out(json_text(document))


_ARGUMENTS: Final = {"user": "USER", "measure": "MEASURE", "model": "--model", "list_id": "--list"}
"""Arguments of the command by those of the call."""


def explain_command(
    root: str, user: str, measure: str, selection: RowSelection, list_id: str | None, *, is_json: bool
) -> None:
    """Read the inputs of a published night again and show how a value of a user comes about."""
    night = chosen_night(root, selection)
    spark, model = on_demand(partial(new_session, "rankeval explain")), next(iter(selection.models), None)
    try:
        found = explain_published(spark, root, night.row, user, measure, model=model, list_id=list_id)
    except InvalidCallError as error:
        places = {f"explain({name}=)": place for name, place in _ARGUMENTS.items()}
        raise ConfigError(*(replace(each, where=places.get(each.where, each.where)) for each in error.faults)) from None
    key = {C.MODEL_ID: found.model_id, C.USER_ID: found.user_id, C.LIST_ID: found.list_id}
    if is_json:
        of_night = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date}
        parts = {"numbers": found.numbers, "ranks": found.table.to_pylist(), "ideal": found.ideal.to_pylist()}
        write_out(json_text({**of_night, **key, C.MEASURE: str(found.measure), C.VALUE: found.value, **parts}))
        return
    say_done(str(night))
    console().print(repr(found), markup=False, highlight=False, soft_wrap=True)


def _show_lists(found: UserLists, title: str, k: int) -> None:
    """Print the items of each list down to rank ``k``, missed judgements, and the values at the cutoff for ``k``."""
    ranked, judged, values = (table.to_pylist() for table in (found.ranked, found.judged, found.values))
    # A model without a list has values if missing users count.
    lists, out = sorted({*map(_LIST_KEY_OF, ranked), *map(_LIST_KEY_OF, values)}), console()
    headings = [escape(", ".join(filter(None, key))) for key in lists]

    def is_relevant(row: Row) -> bool:
        return row[C.GAIN] is not None and row[C.GAIN] >= RELEVANT

    def format_item(row: Row) -> str:
        """Format an item: a mark if it is relevant, and its gain if that is not 1."""
        gain = "" if row[C.GAIN] in (None, 1) else f"({row[C.GAIN]:g})"
        item = str(row[C.ITEM_ID])
        return " ".join(
            filter(None, (_HIT if is_relevant(row) else "", item, visible(found.titles.get(item, "")), gain))
        )

    n_relevant = sum(map(is_relevant, judged))
    say_done(f"{title}: {n_relevant:,} of {len(judged):,} judged items are relevant; {_HIT} marks them")
    table = tables.new_table("rank", *headings)
    cells = {(_LIST_KEY_OF(row), row[C.RANK]): format_item(row) for row in ranked}
    for rank in range(1, min(k, max((row[C.RANK] for row in ranked), default=0)) + 1):
        table.add_row(str(rank), *(escape(cells.get((key, rank), "")) for key in lists))
    out.print(table)
    of_list = [C.LIST_ID] if C.LIST_ID in found.judged.column_names else []
    place = itemgetter(C.ITEM_ID, *of_list)
    listed = {place(row) for row in ranked if row[C.RANK] <= k}
    missed = [
        " of ".join([format_item(row), *(row[name] for name in of_list)]) for row in judged if place(row) not in listed
    ]
    if missed:
        out.print(f"judged, and in no list down to rank {k}: {', '.join(missed)}", markup=False, soft_wrap=True)
    out.print()
    # Measures x lists at one cutoff: the first that is not below ``k``, else the last.
    cutoffs = sorted({row[C.K] for row in values if row[C.K]})
    shown = next((cutoff for cutoff in cutoffs if cutoff >= k), cutoffs[-1] if cutoffs else 0)
    at_cutoff = [row for row in values if row[C.K] in (shown, 0)]
    numbers = {(tables.measure_label(row), _LIST_KEY_OF(row)): row[C.VALUE] for row in at_cutoff}
    table = tables.new_table("measure", *headings)
    for label in dict.fromkeys(map(tables.measure_label, at_cutoff)):
        table.add_row(label, *(tables.number(numbers.get((label, key))) for key in lists))
    out.print(table)


PREVIOUS: Final = "previous"

NIGHT_COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, "earlier_date", C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K),
    *("n_users", "n_earlier_users", "n_common_users", C.VALUE, "earlier_value", "delta", "ci_low", "ci_high"),
    *("ci_level", "relative_delta", "relative_ci_low", "relative_ci_high", "test", "p_value", "p_adjusted"),
    *("correction", "family", "family_size", "detectable", "reason", "is_small", "verdict"),
    *(*BY_USERS, *BY_GROUPS, *SHARES, *count_inputs({}, {})),
)


def compare_command(root: str, against: str, selection: RowSelection, format_: str, *, is_all: bool) -> None:
    """Print the differences between two nights, or between a night's models and one of them."""
    night = chosen_night(root, selection)  # first, as it knows its own measures
    slices = None if ANY_SLICE in selection.slices else list(selection.slices) or [C.ALL_USERS]
    measures = [name for label, ks in selection.cutoffs.items() for name in ([f"{label}@{k}" for k in ks] or [label])]
    asked = ComparisonSelection(selection.models, measures, selection.ks, slices)
    before = _find_night_before(root, night, against)
    names: dict[str, Any] = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date}
    if before is None:
        found, columns = compare_models(root, night, against, asked), COMPARISON_COLUMNS
        names[OTHER_TESTS] = {}
    else:
        found, columns = compare_nights(root, night, before, asked), NIGHT_COLUMNS
        names["earlier_date"] = before.evaluation_date
        names |= count_inputs(night.n_input_rows, before.n_input_rows)
    notes = [*found.notes, *([] if found.rows else ["nothing to compare: no row matches"])]
    has_all = found.rows and all({row[name] for row in found.rows} >= {*own} for name, own in selection.equal.items())
    if not has_all or any(selection.cutoffs.values()):
        notes += name_unknown_filters(results_of(root), selection, "metrics", is_empty=not found.rows)
    for text in notes:
        say_note(text)  # on standard error, so that CSV and JSON stay what they are
    order = (C.SLICE, C.SLICE_VALUE, C.MODEL_ID, C.MEASURE, C.K)
    in_place = sorted(found.rows, key=lambda row: (row[C.SLICE] != C.ALL_USERS, *(row[name] for name in order)))
    rows = [{**names, **row} for row in in_place]
    if format_ in tables.WRITERS:
        write_out(tables.WRITERS[format_](rows, columns))
    elif rows:
        title, out, below = str(night), console(), None
        if before is not None:
            title += f" against {before.evaluation_date}, unpaired: the nights share only some of their users"
            primary = request_of(night.config, night.evaluation_date).primary
            there = {(row[C.MEASURE], row[C.K]) for row in rows}
            first = next(each for each in (*primary, *asked.measures_of(night)) if (each.label, each.k) in there)
            of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
            changes = results_of(root).what_changed(str(first), against=before.evaluation_date, **of_night).to_pylist()
            models = {row[C.MODEL_ID] for row in rows}
            below = tables.what_changed([row for row in changes if row[C.MODEL_ID] in models])
        build = partial(tables.comparisons, title=title, width=out.width)
        options: dict[str, Any] = {"rank": tables.row_ranking(rows), "choose": tables.CHOOSE_ROWS, "below": below}
        tables.print_fitted(out, rows, build, is_all=is_all, **options)


def _find_night_before(root: str, night: PastNight, against: str) -> PastNight | None:
    """Return the night to compare with; None if ``against`` is a model."""
    if against == PREVIOUS:
        earlier = earlier_nights(root, night, at_most=1)
        if not earlier:
            found, fix = f"no published night before {night}", "name a date or a model with --against"
            raise InputError(Fault("--against previous", found, "an earlier night with results", fix))
        return earlier[0]
    if not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", against):
        return None
    day = parse_date(against, where="--against")
    if day == night.evaluation_date:
        raise ConfigError(Fault("--against", f"{day}, the night itself", "another night, or a model"))
    return published_nights(root, evaluation=night.evaluation, dates=[day])[0]
