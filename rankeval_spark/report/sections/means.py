"""Sections of the means: leaderboard, candidate against baseline, curves and history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults, figures, wording
from rankeval_spark.report.figures.forest_plot import GAINS, forest_rows
from rankeval_spark.report.figures.means import curve_labels, leaderboard_rows
from rankeval_spark.report.page_charts import Caption
from rankeval_spark.report.page_parts import Block, Cell, FigureView, Section, TableView, Tone
from rankeval_spark.report.tables import Row, all_users_rows, rows_of

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer

OPEN_FORESTS: Final = 2
"""Candidates whose forest is open, the best ones; others are folded."""
MOST_CURVES: Final = 6
VERDICT_TONES: Final[Mapping[str, Tone]] = {"better": "good", "worse": "bad", "undecided": "open"}

NO_VALUES: Final = "Nothing to draw: every value is undefined for every user."


def leaderboard_section(night: Night, drawer: Drawer) -> Section:
    """Show the mean of each model over all users."""
    id_, title = "leaderboard", "Leaderboard"
    if night.first is None:
        return Section(id_, title, hint="No means: this night has no rows over all users.")
    drawn: list[FigureView] = []
    for one in night.headlines:
        name = with_cutoff(*one)
        rows = leaderboard_rows(night.metrics, one)
        spoken = "; ".join(f"{row['model']} {row['text']} ({row['interval']})" for row in rows)
        caption = Caption(name, f"{name} by model, {defaults.order_in_words(one[0])}: {spoken}")
        drawn += drawer.draw(
            figures.leaderboard, night.metrics, caption=caption, measures=[name], baseline=night.baseline
        )
    level = next((row["ci_level"] for row in rows_of(all_users_rows(night.metrics), ["ci_level"])), 0.95)
    n_all = len(night.known)
    left = f" {len(drawn)} of {n_all} measures are drawn; the table below has all." if len(drawn) < n_all else ""
    orders = " or ".join(dict.fromkeys(defaults.order_in_words(label) for label, _ in night.headlines))
    lead = (
        f"Means over all users with {100 * level:.4g} % intervals, {orders}. Overlapping intervals do not say that "
        "two models are alike: the comparisons below pair the same users. So few users decide about an uncertain mean "
        f"that its interval may miss more often.{left}"
    )
    return Section(id_, title, lead, [Block(figures=drawn), Block(tables=[_board(night), _all_means(night)])])


def _board(night: Night) -> TableView:
    """Lay out models by measures; the best mean of each column is marked, if either side is better."""
    boards = {one: {row["model"]: row for row in leaderboard_rows(night.metrics, one)} for one in night.headlines}
    order = list(dict.fromkeys([*boards[night.headlines[0]], *night.models]))
    rows = []
    for model in order:
        cells = [Cell(model, note="baseline" if model == night.baseline else "")]
        cells += [_mean_cell(one, boards[one], model) for one in night.headlines]
        users = max((own[model]["users"] for own in boards.values() if model in own), default=0)
        rows.append([*cells, Cell(wording.count(users), users)])
    numbers = [*(with_cutoff(*one) for one in night.headlines), "users"]
    return TableView.of("board", "Models by measures", ["model", *numbers], rows, numbers=numbers)


def _mean_cell(measure: MeasureKey, rows: Mapping[str, Row], model: str) -> Cell:
    row = rows.get(model)
    if row is None:
        return Cell("not computed")
    has_best = len(rows) > 1 and defaults.has_better_side(measure[0])
    is_best = row["place"] == 1 and has_best and row["value"] is not None
    return Cell(row["text"], row["value"], interval_of(row), is_best=is_best)


def interval_of(row: Row) -> str:
    """Write the interval of a row of a figure; empty where it has none."""
    return "" if row["interval"] == "none" else str(row["interval"])


def _all_means(night: Night) -> TableView:
    rows = [
        [
            with_cutoff(*one),
            row["model"],
            Cell(row["text"], row["value"]),
            interval_of(row),
            Cell(wording.count(row["users"]), row["users"]),
        ]
        for one in night.requested
        for row in leaderboard_rows(night.metrics, one)
    ]
    headings, caption = ["measure", "model", "mean", "interval", "users"], "Every measure at every cutoff"
    return TableView.of("means", caption, headings, rows, numbers=("mean", "users")).folded


def comparison_section(night: Night, drawer: Drawer) -> Section:
    """Show each candidate against the baseline, slice by slice."""
    id_, title = "comparison", "Candidate against baseline"
    compared = defaults.measures_of(night.comparisons)
    if night.first is None or night.baseline is None:
        hint = "No comparisons: set `comparisons.baseline` in the config and run the night again."
        return Section(id_, title, hint=hint)
    first = night.first if night.first in compared else defaults.headline_measure(compared, night.requested)
    if first is None:
        return Section(id_, title, hint="No comparisons: none of the measures is a mean over users.")
    blocks: list[Block] = []
    for row in leaderboard_rows(night.metrics, first):
        if row["model"] != night.baseline:
            blocks += _forest(night, drawer, first, row["model"], is_folded=len(blocks) >= OPEN_FORESTS)
    notes = _withheld_models(night, first)
    hint = "" if blocks or notes else f"No user has a value of {with_cutoff(*first)} under two models."
    said = [Block(notes=[f"{model}: {why}." for model, why in notes.items()])] if notes else []
    tables = Block(tables=[_differences(night, first)])
    return Section(id_, title, _about_forests(night, first), [*said, *blocks, tables], hint)


def _withheld_models(night: Night, measure: MeasureKey) -> dict[str, str]:
    """Return the models that are not compared over all users because they serve others, and why."""
    found = {}
    for model in night.models:
        for row in forest_rows(night.comparisons, measure, model=model, baseline=str(night.baseline)):
            if row["is_all"] and row["withheld"]:
                found[model] = row["withheld"]
    return found


def _about_forests(night: Night, first: MeasureKey) -> str:
    row = rows_of(night.comparisons.slice(0, 1))[0]
    is_corrected = row["correction"] != "none"
    corrected = (
        f"adjusted by {row['correction'].title()} for {row['family_size']:,} tests" if is_corrected else "not adjusted"
    )
    return (
        f"Mean difference of {with_cutoff(*first)} on the same users, with {100 * row['ci_level']:.4g} % intervals; p "
        f"by the paired t test, {corrected}. {_marks(first)}; ○ hollow: undecided. Intervals are not adjusted, so "
        "one that leaves out 0 may still be undecided."
    )


def _marks(measure: MeasureKey) -> str:
    """Explain the filled marks of a forest."""
    if defaults.has_better_side(measure[0]):
        return "▲ filled: significantly better; ▼ filled: significantly worse"
    return "◆ filled: significantly different, neither side being better"


def _forest(night: Night, drawer: Drawer, first: MeasureKey, model: str, *, is_folded: bool) -> list[Block]:
    """Show one candidate; nothing where no user has a difference."""
    name, title = with_cutoff(*first), f"{model} − {night.baseline}, {with_cutoff(*first)}"
    rows = forest_rows(night.comparisons, first, model=model, baseline=str(night.baseline))
    counts = {word: sum(row["outcome"] == word for row in rows) for word in GAINS}
    said = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    caption = Caption(
        title,
        f"Differences of {name} by slice, {model} less {night.baseline}: {said}. The table below has every number.",
        note=f"{wording.count(len(rows), 'slice')}: {said}",
        is_wide=True,
    )
    drawn = drawer.draw(
        figures.forest, night.comparisons, caption=caption, measure=name, model=model, baseline=night.baseline
    )
    if not drawn:
        return []
    return [Block(f"{title}: {said}" if is_folded else "", figures=drawn, is_folded=is_folded)]


def _differences(night: Night, first: MeasureKey) -> TableView:
    rows = [
        [
            with_cutoff(*one),
            model,
            row["slice"],
            Cell(row["text"], row["delta"], interval_of(row)),
            Cell(row["relative"], row["relative_delta"]),
            Cell(row["outcome"], tone=VERDICT_TONES.get(row["outcome"], "plain")),
            Cell(row["p"], row["p_adjusted"]),
            Cell(wording.count(row["users"]), row["users"]),
        ]
        for one in dict.fromkeys([first, *night.headlines])
        for model in night.models
        for row in forest_rows(night.comparisons, one, model=model, baseline=str(night.baseline))
    ]
    headings = ["measure", "model", "slice", "difference", "relative", "verdict", "adjusted p", "users"]
    numbers = ("difference", "relative", "adjusted p", "users")
    caption = f"Differences from {night.baseline} by measure, model and slice"
    return TableView.of("differences", caption, headings, rows, numbers=numbers).folded


def curves_section(night: Night, drawer: Drawer) -> Section:
    """Show measures over cutoffs."""
    id_, title = "curves", "Measures over k"
    labels = [label for label in curve_labels(night.known, night.requested) if defaults.parent_of(label) is None]
    if not labels:
        hint = "No curves: request a measure at two cutoffs or more, such as `cutoffs: [1, 5, 10, 20]`."
        return Section(id_, title, hint=hint)
    drawn: list[FigureView] = []
    for label in labels[:MOST_CURVES]:
        caption = Caption(label, f"{label} over the cutoff k, a line a model. The table of all means has every number.")
        drawn += drawer.draw(figures.curves, night.metrics, caption=caption, measures=[label], baseline=night.baseline)
    if not drawn:
        return Section(id_, title, hint=NO_VALUES)
    left = f" {MOST_CURVES} of {len(labels)} measures are drawn." if len(labels) > MOST_CURVES else ""
    lead = f"The mean at each cutoff, k on a logarithmic scale, with the band of its interval.{left}"
    return Section(id_, title, lead, [Block(figures=drawn, has_legend=True)])


def history_section(night: Night, drawer: Drawer) -> Section:
    """Show the nights up to this one."""
    id_, title = "history", "History over nights"
    known = defaults.measures_of(night.history)
    first = night.first or defaults.headline_measure(known)
    failed = [f"{day}: the night failed ({why})." for day, why in night.failures.items()]
    drawn: list[FigureView] = []
    changes: dict[tuple[date, str], list[str]] = {}
    for one in night.headlines or ([first] if first else []):
        name = with_cutoff(*one)
        caption = Caption(name, f"{name} over {wording.count(night.n_nights, 'night')}, a line a model.")
        drawn += drawer.draw(
            figures.history, night.history, caption=caption, measures=[name], baseline=night.baseline, marks=night.marks
        )
        for change in night.marks(one).redefined.items():
            changes.setdefault(change, []).append(name)
    if not drawn:
        hint = "No history: no night of this evaluation has a mean yet."
        return Section(id_, title, hint=hint, blocks=[Block(notes=failed)])
    notes = [
        f"{day}: the definition of {wording.listed(names)} changed ({what})."
        for (day, what), names in sorted(changes.items(), key=lambda each: each[0][0])
    ]
    only = "One night so far; more nights make a line. " if night.n_nights == 1 else ""
    lead = (
        f"{only}Means over all users with the bands of their intervals. Dotted lines are bounds of the gates, ✕ is a "
        "night that failed, and a dashed upright line is a night from which on a measure is defined otherwise."
    )
    return Section(id_, title, lead, [Block(figures=drawn, notes=[*notes, *failed], has_legend=True)])
