"""Differences by slice as a table with a plot in each row, which a page of any width and paper can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rankeval_spark import wording
from rankeval_spark.report.figures.forest_plot import DECIDED, GAINS, SIGNS

Row: TypeAlias = Mapping[str, Any]
MAX_SHOWN: Final = 6  # decided slices that are shown; losses come before gains, and large differences before small
MAX_FOLDED: Final = 60  # slices to be opened; the table of all differences has the others
N_STEPS: Final = 5  # at most, between the ticks of an axis
ROOM: Final = 0.05  # share of the width that is left free at each end


@dataclass(frozen=True)
class Plot:
    """Rows by slicing, each with its places on one axis, in percent of the width."""

    groups: Sequence[tuple[str, Sequence[Row]]]  # name of a slicing, empty for all users, and its rows
    zero: str
    ticks: Sequence[tuple[str, str]]  # place and number


@dataclass(frozen=True)
class Forest:
    """One candidate against the baseline: what is decided, and the other slices to be opened."""

    title: str
    counts: str
    shown: Plot
    folded: Plot | None
    others: str  # what the folded plot has
    n_left_out: int


def forest_table(title: str, rows: Sequence[Row]) -> Forest | None:
    """Build the table from rows of ``forest_rows``; None if no row has a difference."""
    drawn = [row for row in rows if row["delta"] is not None]
    if not drawn:
        return None
    n_slices = sum(not row["is_all"] for row in rows)
    counts = {word: sum(row["outcome"] == word and not row["is_all"] for row in rows) for word in GAINS}
    said = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    said += ", exploratory" * (rows[0].get("family") == "exploratory")
    decided = [row for row in drawn if row["outcome"] in DECIDED and not row["is_all"]]
    decided.sort(key=lambda row: (row["outcome"] != "worse", -abs(row["delta"])))
    shown = [row for row in drawn if row["is_all"] or row in decided[:MAX_SHOWN]]
    others = [row for row in drawn if row not in shown]
    n_others, more = wording.count(len(others), "other slice" if decided[MAX_SHOWN:] else "slice"), decided[MAX_SHOWN:]
    hidden = {word: sum(row["outcome"] == word for row in more) for word in ("worse", "better", "different")}
    n_decided = ", ".join(f"{n} {word}" for word, n in hidden.items() if n)
    return Forest(
        title,
        f"{wording.count(n_slices, 'slice')}: {said}" if n_slices else "",
        _plot(shown or others[:1]),
        _plot(others[:MAX_FOLDED]) if others else None,
        f"{n_others}, {n_decided}" if more else f"{n_others} undecided or not tested",
        max(0, len(others) - MAX_FOLDED),
    )


def _plot(rows: Sequence[Row]) -> Plot:
    """Place rows on an axis that holds 0 and every interval."""
    low, high = min(0.0, *(row["low"] for row in rows)), max(0.0, *(row["high"] for row in rows))
    span = (high - low) or 1.0
    start, width = low - ROOM * span, (1 + 2 * ROOM) * span

    def place(value: float) -> str:
        return f"{100 * (value - start) / width:.2f}"

    groups: dict[str, list[Row]] = {}
    for row in rows:
        left, right = float(place(row["low"])), float(place(row["high"]))
        tested = f"{row['outcome']}, {wording.p_in_words(row['p_adjusted'])}"
        said = {"sign": SIGNS[row["outcome"]], "verdict": row["said"] if row["p_adjusted"] is None else tested}
        placed = {**row, **said, "left": f"{left:.2f}", "width": f"{right - left:.2f}", "middle": place(row["delta"])}
        groups.setdefault(row["slicing"], []).append(placed)
    return Plot(list(groups.items()), place(0.0), [(place(tick), text) for tick, text in nice_ticks(low, high)])


def nice_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers within a range that holds 0, with their texts.

    >>> nice_ticks(-0.012, 0.07)
    [(0.0, '0.00'), (0.02, '+0.02'), (0.04, '+0.04'), (0.06, '+0.06')]
    >>> [text for _, text in nice_ticks(-2e6, 1e6)], [text for _, text in nice_ticks(0, 9e-5)]
    (['−2,000,000', '−1,000,000', '0', '+1,000,000'], ['0.00000', '+0.00002', '+0.00004', '+0.00006', '+0.00008'])
    """
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / N_STEPS))
    step = next(power * size for size in (1, 2, 5, 10) if span / (power * size) <= N_STEPS)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(number * step, wording.signed(number * step, places)) for number in range(first, last + 1)]
