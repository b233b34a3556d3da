"""Sections of groups of users, and of what else lists are like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C
from rankeval_spark.measures import group_statistics, with_cutoff
from rankeval_spark.report import figures, wording
from rankeval_spark.report.figures.groups_and_tradeoffs import beyond_accuracy, group_rows, slicings, tradeoff_rows
from rankeval_spark.report.page_charts import Caption
from rankeval_spark.report.page_parts import Block, Cell, FigureView, Section, TableView
from rankeval_spark.report.sections.means import NO_VALUES, interval_of
from rankeval_spark.report.tables import Row, rows_of

if TYPE_CHECKING:
    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer

MOST_SLICINGS: Final = 6
MOST_TRADEOFFS: Final = 6


def groups_section(night: Night, drawer: Drawer) -> Section:
    """Show how groups of users compare."""
    id_, title = "groups", "Gaps between groups"
    known = slicings(night.metrics)
    if night.first is None or not known:
        return Section(id_, title, hint="No groups: set `slices` in the config, such as `slices: [country]`.")
    name = with_cutoff(*night.first)
    drawn: list[FigureView] = []
    for slicing in known[:MOST_SLICINGS]:
        shown = wording.crossed(slicing)
        caption = Caption(shown, f"{name} of each group of {shown} by model. The tables below have every number.")
        drawn += drawer.draw(
            figures.groups, night.metrics, caption=caption, measure=name, slices=[slicing], baseline=night.baseline
        )
    if not drawn:
        return Section(id_, title, hint=NO_VALUES)
    left = f" {MOST_SLICINGS} of {len(known)} slicings are drawn." if len(known) > MOST_SLICINGS else ""
    lead = (
        f"{name} of each group; the bar runs from the lowest to the highest group of a model. Hollow points are small "
        f"groups and users of unknown segment, which are not compared.{left}"
    )
    tables = [_gaps(night, night.first), _values(night, night.first)]
    return Section(id_, title, lead, [Block(figures=drawn), Block(tables=tables)])


def _gaps(night: Night, measure: MeasureKey) -> TableView:
    """Lay out gap, ratio and worst group of each slicing and model."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows_of(night.group_metrics, k=measure[1]):
        kind, label = group_statistics.parts_of(row[C.MEASURE]) or ("", "")
        if label == measure[0] and kind in group_statistics.KINDS:
            found.setdefault((row[C.SLICE], row[C.MODEL_ID]), {})[kind] = row
    rows: list[list[Cell | str]] = []
    for (slicing, model), own in sorted(found.items()):
        gap, ratio, worst = (own.get(kind) for kind in _SHOWN)
        left = None if gap is None else gap["n_left_out"]
        rows.append(
            [
                wording.crossed(slicing),
                model,
                _cell(gap, wording.interval(gap["ci_low"], gap["ci_high"]) if gap else ""),
                _cell(ratio),
                Cell(wording.crossed(worst[C.SLICE_VALUE]) if worst else "", note=_cell(worst).text),
                Cell(wording.count(left), left),
            ]
        )
    numbers = ("gap", "worst / best", "users left out")
    headings = ["slicing", "model", "gap", "worst / best", "worst group", "users left out"]
    return TableView.of("gaps", f"Gaps of {with_cutoff(*measure)} between groups", headings, rows, numbers=numbers)


_SHOWN: Final = (group_statistics.GROUP_GAP, group_statistics.GROUP_RATIO, group_statistics.WORST_GROUP)


def _cell(row: Row | None, note: str = "") -> Cell:
    return Cell("") if row is None else Cell(wording.number(row[C.VALUE]), row[C.VALUE], note)


def _values(night: Night, measure: MeasureKey) -> TableView:
    rows = [
        [
            wording.crossed(slicing),
            Cell(row["group"], note="small or unknown" if row["is_small"] else ""),
            row["model"],
            Cell(row["text"], row["value"], interval_of(row)),
            Cell(wording.count(row["users"]), row["users"]),
        ]
        for slicing in slicings(night.metrics)
        for row in group_rows(night.metrics, measure, slicing)
    ]
    headings, caption = ["slicing", "group", "model", "mean", "users"], f"{with_cutoff(*measure)} of every group"
    return TableView.of("values", caption, headings, rows, numbers=("mean", "users")).folded


def tradeoffs_section(night: Night, drawer: Drawer) -> Section:
    """Show accuracy against coverage, novelty and popularity."""
    id_, title = "beyond", "Accuracy against coverage, novelty and popularity"
    others = beyond_accuracy(night.known, night.requested)
    if night.first is None or not others:
        measures = "`CatalogCoverage`, `MIUF` or `ARP`"
        hint = f"Nothing beyond accuracy: request measures such as {measures}, which read `inputs.train`."
        return Section(id_, title, hint=hint)
    accuracy = with_cutoff(*night.first)
    drawn: list[FigureView] = []
    for one in others[:MOST_TRADEOFFS]:
        name, rows = with_cutoff(*one), tradeoff_rows(night.metrics, night.first, one)
        values = "; ".join(f"{row['model']} {row['y_text']} at {row['x_text']}" for row in rows)
        drawn += drawer.draw(
            figures.tradeoffs,
            night.metrics,
            caption=Caption(name, f"{name} against {accuracy}: {values}"),
            measure=accuracy,
            against=[name],
            baseline=night.baseline,
        )
    if not drawn:
        return Section(id_, title, hint=NO_VALUES)
    left = f" {MOST_TRADEOFFS} of {len(others)} measures are drawn." if len(others) > MOST_TRADEOFFS else ""
    lead = f"What else the lists are like, each upright against {accuracy}, with intervals both ways.{left}"
    return Section(id_, title, lead, [Block(figures=drawn, has_legend=True)])
