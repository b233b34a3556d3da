"""``rankeval plan``: the difference that a night would find, and the users and nights that a gain takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from rankeval_spark import columns as C, wording
from rankeval_spark.apps.published.comparison import ComparisonSelection
from rankeval_spark.apps.published.planning import COLUMNS, Aim, plan
from rankeval_spark.cli import tables
from rankeval_spark.cli.show import RowSelection, chosen_night, name_unknown_filters
from rankeval_spark.cli.terminal import console, say_done, say_note, write_out
from rankeval_spark.results import results_of

if TYPE_CHECKING:
    from rich.table import Table


def plan_command(
    root: str, selection: RowSelection, aim: Aim, *, baseline: str | None, is_json: bool, is_all: bool
) -> None:
    """Print what each measure would find or, with a gain, a sentence for each comparison."""
    night = chosen_night(root, selection)
    measures = [name for label, ks in selection.cutoffs.items() for name in ([f"{label}@{k}" for k in ks] or [label])]
    asked = ComparisonSelection(selection.models, measures, selection.ks)
    rows = plan(root, night, asked, aim, baseline=baseline)
    for text in name_unknown_filters(results_of(root), selection, "metrics", is_empty=not rows):
        say_note(text)
    if not rows:
        say_note("nothing to plan: no model is compared by these measures")
    if is_json:
        write_out(tables.to_json(rows, COLUMNS))
    elif aim.gain is None and rows:
        title = f"{night}: differences that a test finds in {100 * aim.power:g} % of samples; {_level_of(rows[0])}"
        choose = ", and --measure, --k and --model choose"
        tables.print_fitted(
            console(), rows, lambda some: _to_table(some, title), is_all=is_all, rank=lambda _: 0, choose=choose
        )
    else:
        for row in rows:
            say_done(_to_sentence(row))


def _level_of(row: Mapping[str, Any]) -> str:
    n_tests = row["n_tests"]
    return f"two-sided at {row['alpha']:g}" + (f" over {n_tests} primary tests" if n_tests > 1 else "")


def _to_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Build the table of what each measure would find, the most sensitive first."""
    explained = "sd: the difference in standard deviations of the baseline's users; the lower, the more a measure finds"
    table = tables.new_table("measure", "model - baseline", title=title, caption=[explained])
    for heading in ("users", "baseline", "finds", "of baseline", "sd"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        pair = f"{row[C.MODEL_ID]} - {row[C.BASELINE_MODEL_ID]}"
        numbers = [f"{row['n_users']:,}", tables.number(row["baseline_value"])]
        if row["detectable"] is None:
            numbers += [f"[dim]{str(row['reason']).replace('_', ' ')}[/dim]", "-", "-"]
        else:
            share, std_devs = row["detectable_share"], row["detectable_std_devs"]
            numbers += [
                f"{row['detectable']:.3g}",
                "-" if share is None else f"{share:.2%}",
                tables.number(std_devs),
            ]
        table.add_row(escape(tables.measure_label(row)), escape(pair), *numbers)
    return table


def _to_sentence(row: Mapping[str, Any]) -> str:
    """Write how many users and nights a gain takes."""
    about = f"{row[C.MODEL_ID]} against {row[C.BASELINE_MODEL_ID]}, {tables.measure_label(row)}"
    if row["n_users_needed"] is None:
        return f"{about}: no plan, {str(row['reason']).replace('_', ' ')}"
    power, needed, n_users = f"{100 * row['power']:g} %", row["n_users_needed"], row["n_users"]
    arms = f" of {row[C.MODEL_ID]} at the same split" if row["test"] == C.UNPAIRED else ""
    found = f"find {row['detectable']:.3g} or more" if row["detectable"] else "differ too seldom for this test"
    said = (
        f"{about}: a gain of {row['gain']:.4g} takes {needed:,} users{arms} for a power of {power}, {_level_of(row)}. "
    )
    said += f"The night has {n_users:,}, who {found}. "
    if needed <= n_users:
        return said + "It is enough."
    if row["night_correlation"] is None:
        return said + (
            f"Nights with other users: {-(-needed // n_users):,}. Users who come back say less; how much less is known "
            "only for a mean over users that an earlier night has too."
        )
    correlation, day = row["night_correlation"], row["earlier_date"]
    alike = f"as the mean differences of this night and {day} have a correlation of {correlation + 0.0:.2f}"
    if row["n_nights_needed"] is not None:
        return said + f"It takes {row['n_nights_needed']:,} such nights, {alike}."
    limit = wording.number(row["gain"] * (needed * correlation / n_users) ** 0.5)
    return said + f"No number of such nights does, {alike}: together they find {limit} at best."
