"""What changed a mean since an earlier night, in about ten lines: the same for the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rankeval_spark import columns as C, wording
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report.page_parts import Block, Cell, Section, TableView
from rankeval_spark.report.tables import rows_of

if TYPE_CHECKING:
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_parts import Drawer
    from rankeval_spark.report.tables import Row

MAX_SLICES: Final = 2  # two lines each; those whose shares changed the means most
BY_USERS: Final = {"delta_left": "users who left", "delta_came": "users who came", "delta_same": "the same users"}
INPUTS: Final = {"log_rows": "log", "judgement_rows": "judgements", "catalogue_rows": "catalogue"}


class ChangeLines(NamedTuple):
    """Lines of one measure."""

    title: str
    models: list[str]
    lines: list[tuple[str, list[Cell]]]  # heading, and a cell a model
    inputs: str  # rows of the inputs on both nights; empty where no run recorded them


def change_lines(rows: Sequence[Row]) -> ChangeLines:
    """Build the lines from rows of one measure, as ``Results.what_changed`` has them."""
    first, all_users = rows[0], {row[C.MODEL_ID]: row for row in rows if row[C.SLICE] == C.ALL_USERS}
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in all_users.values() if row["ci_low"] is not None]
    places = wording.decimals(halves, [row[C.VALUE] for row in all_users.values()])
    lines = [(f"mean on {first['earlier_date']}", _mean_cells(all_users.values(), "earlier_value", places))]
    for name, words in BY_USERS.items():
        cells = []
        for row in all_users.values():
            n_all = row[{"delta_left": "n_earlier_users", "delta_came": "n_users"}.get(name, "n_common_users")]
            n_users = n_all if name == "delta_same" else n_all - row["n_common_users"]
            cells.append(_part_cell(row, row[name], places, wording.count(n_users, "user")))
        lines.append((words, cells))
    lines.append((f"mean on {first[C.EVALUATION_DATE]}", _mean_cells(all_users.values(), C.VALUE, places)))
    sizes: dict[str, float] = {}
    for row in rows:
        if row["delta_mix"] is not None:
            sizes[row[C.SLICE]] = sizes.get(row[C.SLICE], 0.0) + abs(row["delta_mix"])
    for slice_ in sorted(sizes, key=lambda name: -sizes[name])[:MAX_SLICES]:
        for name, words in (("delta_mix", "mix of"), ("delta_within", "within")):
            cells = []
            for model, of_all in all_users.items():
                own = [row for row in rows if (row[C.SLICE], row[C.MODEL_ID]) == (slice_, model)]
                known = [row for row in own if row[name] is not None]
                most = max(known, key=lambda row: abs(row[name]), default=None)
                total = sum(row[name] for row in known) if known else None
                note = f"{wording.group_name(most[C.SLICE_VALUE])} {wording.signed(most[name], places)}" if most else ""
                cells.append(_part_cell(of_all, total, places, note))
            lines.append((f"{words} {wording.crossed(slice_)}", cells))
    counts = [(words, *(first.get(f"{start}{end}") for start in ("n_earlier_", "n_"))) for end, words in INPUTS.items()]
    inputs = [f"{words} {then:,} → {now:,}" for words, then, now in counts if then is not None and now is not None]
    title = f"What changed {with_cutoff(first[C.MEASURE], first[C.K])} since {first['earlier_date']}"
    return ChangeLines(title, list(all_users), lines, f"Rows then and now: {', '.join(inputs)}." if inputs else "")


def _mean_cells(rows: Iterable[Row], name: str, places: int) -> list[Cell]:
    return [Cell(wording.number(row[name], places), row[name]) for row in rows]


def _part_cell(row: Row, value: float | None, places: int, note: str) -> Cell:
    """Build the cell of a part of the change of a row; empty where there is no change."""
    if value is None:
        return Cell("" if row["delta"] is None else "no common user")
    return Cell(wording.signed(value, places), value, note)


def changes_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of what changed since the night before."""
    rows = rows_of(night.tables.night_changes)
    if not rows:
        return Section(hint=night.tables.no_changes)
    found = change_lines(rows)
    share = night.tables.user_share
    lead = (
        f"{found.title}: users who left, came and stayed add up to the change of the mean. So do the mix of a slice, "
        "whose values have other shares of the users, and what changed within them; the greatest part is named. "
    )
    lead += "" if share >= 1 else f"Of {wording.percent(share)} of the users, the same on both nights. "
    table = [[Cell(words), *cells] for words, cells in found.lines]
    view = TableView("changes", found.title, ["", *found.models], table, numbers=found.models)
    return Section(f"{lead}{found.inputs}".strip(), [Block(tables=[view])])
