"""The forest plot of ``comparisons``: one model against the baseline, slice by slice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures import charts
from rankeval_spark.report.figures.charts import NOTEBOOK, Chart, Look, NothingToDrawError, Palette
from rankeval_spark.report.figures.figure import Figure, combine_panels, count_users, intervals_of, list_names, night_of
from rankeval_spark.report.tables import Row, distinct, keep, rows_of
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT, why_withheld

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey

NEEDED: Final = (
    *(C.BASELINE_MODEL_ID, C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, "n_users", "delta"),
    *("ci_low", "ci_high", "ci_level", "test", "p_adjusted", "relative_delta", "is_small", "verdict", "reason"),
    *("n_with_baseline", "n_with_model", "n_with_both"),
)
ROW_HEIGHT: Final = 22
GAINS: Final = ("better", "worse", "different", "undecided", "not tested")
DECIDED: Final = ("better", "worse", "different")
SHAPES: Final = {
    "better": "triangle-up",
    "worse": "triangle-down",
    "different": "diamond",
    "undecided": "circle",
    "not tested": "M0,-1V1",  # an upright stroke: a level one cannot be seen on its interval
}
SIGNS: Final = {"better": "▲", "worse": "▼", "different": "◆", "undecided": "○", "not tested": "|"}
"""Signs of the verdicts next to the rows; the marks of the plot have the same shapes."""


def forest(
    comparisons: object,
    *,
    measure: str | None = None,
    model: str | None = None,
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw the differences of a model from the baseline with their intervals, by slice, the greatest gain first.

    A filled triangle that points up is significantly better, one that points down worse, a hollow circle undecided: the
    p behind it is adjusted within its family of tests. Where neither side of the measure is better, a filled diamond is
    significantly different. Each pair of a model and a baseline has a panel of its own, unless they are named.
    """
    table = keep(defaults.read_frame(comparisons, NEEDED, what="comparisons"), test=C.DECIDING)
    all_pairs = [(str(other), str(compared)) for other, compared in distinct(table, C.BASELINE_MODEL_ID, C.MODEL_ID)]
    pairs = [
        (other, compared) for other, compared in all_pairs if model in (None, compared) and baseline in (None, other)
    ]
    if all_pairs and not pairs:
        names = sorted({name for pair in all_pairs for name in pair})
        wanted = model if model is not None and model not in names else baseline
        expected = f"a pair of: {', '.join(f'{compared} against {other}' for other, compared in all_pairs)}"
        given = f"{model or 'any'} against {baseline or 'any'}"
        raise ConfigError(Fault("forest(model=, baseline=)", given, expected, nearest(wanted or "", names)))
    computed = defaults.measures_of(table)
    primary = defaults.measures_of(keep(table, family="primary")) if "family" in table.column_names else []
    first = (
        defaults.headline_measure(primary or computed) if measure is None else defaults.find_measure(measure, computed)
    )
    if first is None or not pairs:
        fix = "compare with evaluate(..., baseline=...)"
        raise NothingToDrawError(Fault("comparisons", "no row", "at least one", fix))
    drawn = {pair: forest_rows(table, first, model=pair[1], baseline=pair[0]) for pair in pairs}
    panels = [_forest_panel(rows, first, (compared, other), look) for (other, compared), rows in drawn.items()]
    of_first, name = keep(table, **{C.MEASURE: first[0], C.K: first[1]}), with_cutoff(*first)
    is_unpaired = C.UNPAIRED in of_first["test"].to_pylist()
    users = count_users(row["users"] for rows in drawn.values() for row in rows)
    others = {other for other, _ in pairs}
    models = list_names([*(f"{compared} − {other}" for other, compared in pairs)], "pair of models")
    caption = (
        f"Mean difference of {name} {'between the users of each model' if is_unpaired else 'on the same users'}, over "
        f"all users and by slice, with {intervals_of(of_first)}. Filled marks are decided by a p that is adjusted for "
        f"all tests of their family; the intervals are not adjusted. {models}; {users} in a row.{night_of(table)}"
    )
    whom = f"from {min(others)}" if len(others) == 1 else "between models"
    return combine_panels(panels, look, f"Differences of {name} {whom}", caption)


def forest_rows(table: pa.Table, measure: MeasureKey, *, model: str, baseline: str) -> list[dict[str, Any]]:
    """Return a row per slice with its outcome, or why it is withheld: all users, then each slicing, best first."""
    wanted = {C.BASELINE_MODEL_ID: baseline, C.MODEL_ID: model, C.MEASURE: measure[0], C.K: measure[1]}
    found = rows_of(table, (*NEEDED, "family", "detectable"), test=C.DECIDING, **wanted)
    sign = -1 if defaults.is_lower_better(measure[0]) else 1
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in found if row["ci_high"] is not None]
    places = wording.decimals(halves)

    def rank(row: Row) -> tuple[bool, int, str, bool, float, str]:
        slicing, delta = row[C.SLICE], row["delta"]
        place = (delta is None, 0.0 if delta is None else -sign * delta, row[C.SLICE_VALUE])
        return (slicing != C.ALL_USERS, slicing.count(C.CROSSING), slicing, *place)

    return [forest_row(row, places) for row in sorted(found, key=rank)]


def pair_row(rows: Sequence[Row], measure: MeasureKey, model: str, other: str) -> dict[str, Any] | None:
    """Return the row of two models over all users, whichever of them is the baseline; None without one."""
    for turns, names in ((False, (other, model)), (True, (model, other))):
        for row in rows:
            key = (row[C.BASELINE_MODEL_ID], row[C.MODEL_ID], row[C.MEASURE], row[C.K], row[C.SLICE])
            if key == (*names, *measure, C.ALL_USERS):
                found = turn_row(row) if turns else row
                half = None if row["ci_high"] is None else (row["ci_high"] - row["ci_low"]) / 2
                return forest_row(found, wording.decimals([half], [row["delta"]]))
    return None


_SWAPPED: Final = (
    *((C.MODEL_ID, C.BASELINE_MODEL_ID), (C.VALUE, "baseline_value"), ("n_with_model", "n_with_baseline")),
    *(("n_wins", "n_losses"), ("win_share", "loss_share")),
)


def turn_row(row: Row) -> dict[str, Any]:
    """Return a row of ``comparisons`` with the model and the baseline in each other's place."""
    swapped = {one: row.get(other) for pair in _SWAPPED for one, other in (pair, pair[::-1]) if one in row}
    if row.get("n_baseline_users") is not None:
        swapped |= {"n_users": row["n_baseline_users"], "n_baseline_users": row["n_users"]}
    other = {"better": "worse", "worse": "better"}
    ends = {"delta": "delta", "effect_size": "effect_size", "ci_low": "ci_high", "ci_high": "ci_low"}
    turned = {name: None if row.get(end) is None else 0.0 - row[end] for name, end in ends.items() if name in row}
    relative = {name: None for name in row if name.startswith("relative_")}  # of the other baseline
    return {**row, **swapped, **turned, **relative, "verdict": other.get(row["verdict"], row["verdict"])}


def outcomes_of(measure: MeasureKey) -> list[str]:
    """Return the outcomes that rows of a measure can have."""
    unused = ("better", "worse") if defaults.better_of(measure[0]) == "neither" else ("different",)
    return [outcome for outcome in GAINS if outcome not in unused]


def forest_row(row: Row, places: int) -> dict[str, Any]:
    """Return a row of the plot with its numbers as text: of one slice in ``comparisons``."""
    outcome = row["verdict"] or "not tested"
    delta, p = row["delta"], wording.p_value(row["p_adjusted"])
    why = (row["reason"] or "").replace("_", " ") or "none"
    said = f"{outcome}: {why}" if row["reason"] == TOO_LITTLE_SUPPORT else outcome
    return {
        "slice": wording.slice_name(row[C.SLICE], row[C.SLICE_VALUE]),
        "slicing": "" if row[C.SLICE] == C.ALL_USERS else wording.crossed(row[C.SLICE]),
        "group": "all users" if row[C.SLICE] == C.ALL_USERS else wording.group_name(row[C.SLICE_VALUE]),
        "delta": delta,
        "low": delta if row["ci_low"] is None else row["ci_low"],
        "high": delta if row["ci_high"] is None else row["ci_high"],
        "outcome": outcome,
        "text": wording.signed(delta, places),
        "interval": wording.interval(row["ci_low"], row["ci_high"], places, has_sign=True) or "none",
        "relative": wording.signed_percent(row["relative_delta"]),
        "relative_delta": row["relative_delta"],
        "p_adjusted": row["p_adjusted"],
        "said": said,
        "p": p or why,
        "family": row.get("family") or "",
        "detectable": row.get("detectable"),
        "nights": row.get("nights"),
        "users": row["n_users"],
        "is_all": row[C.SLICE] == C.ALL_USERS,
        "note": f"{SIGNS[outcome]} {wording.p_in_words(row['p_adjusted']) if said == outcome else said}",
        "withheld": why_withheld(row),
    }


def _forest_panel(rows: Sequence[dict[str, Any]], measure: MeasureKey, pair: tuple[str, str], look: Look) -> Chart:
    """Draw one pair of models: intervals and points by slice, and notes next to them."""
    alt, palette = charts.import_altair(), look.palette
    order = [row["slice"] for row in rows]
    drawn = [row for row in rows if row["delta"] is not None]
    if not drawn and any(row["withheld"] for row in rows):
        found, expected = rows[0]["withheld"], "models of the same users"
        raise NothingToDrawError(Fault(f"{pair[0]} against {pair[1]}, {with_cutoff(*measure)}", found, expected))
    drawn = charts.require_rows(drawn, f"difference of {with_cutoff(*measure)}")
    # The row of all users, which is the first, is separated from its parts.
    weight = {"condition": {"test": "datum.index == 0", "value": "bold"}, "value": "normal"}
    ticks = charts.axis(labelColor=palette.ink, labelFontSize=11.5, labelFontWeight=weight)
    y = alt.Y("slice:N", sort=order, scale=alt.Scale(domain=order), axis=ticks)
    name = f"{pair[0]} − {pair[1]}, {with_cutoff(*measure)}"  # the axis has the title of no layer
    x = alt.X("delta:Q", scale=alt.Scale(zero=True, padding=10), axis=charts.axis())
    outcomes = outcomes_of(measure)
    by_outcome = dict(zip(GAINS, (palette.better, palette.worse, palette.ink, *[palette.muted] * 2), strict=True))
    colours, shapes = [by_outcome[outcome] for outcome in outcomes], [SHAPES[outcome] for outcome in outcomes]
    legend = alt.Legend(title=None, orient="top", symbolSize=80) if look.has_legend else None
    colour = alt.Color("outcome:N", scale=alt.Scale(domain=outcomes, range=colours), legend=legend)
    shape = alt.Shape("outcome:N", scale=alt.Scale(domain=outcomes, range=shapes), legend=legend)
    shown = charts.tooltips(
        slice="slice",
        text=f"difference of {with_cutoff(*measure)}",
        interval="interval",
        relative="of the baseline",
        outcome="verdict",
        p="adjusted p",
        users="users",
    )
    layers = [charts.layer("rule", [{"zero": 0}], {"color": palette.line, "strokeWidth": 1.5}, x="zero:Q")]
    for is_decided in (False, True):
        of_kind = [row for row in drawn if (row["outcome"] in DECIDED) == is_decided]
        if not of_kind:
            continue
        data = charts.to_chart_data(of_kind)
        filling = {"filled": True} if is_decided else {"fill": palette.surface}
        line = {"strokeCap": "round", "strokeWidth": 2.8 if is_decided else 1.4}
        point = {"size": 85, "opacity": 1, "strokeWidth": 1.6, **filling}
        layers += [
            charts.layer("rule", data, line, y=y, x=alt.X("low:Q", title=None), x2="high:Q", color=colour),
            charts.layer("point", data, point, y=y, x=x, color=colour, shape=shape, tooltip=shown),
        ]
    height = ROW_HEIGHT * max(len(order), 2)
    both = charts.panel([alt.layer(*layers), _row_labels(rows, palette)], look, height=height, title=name)
    both.resolve = alt.Resolve(scale={"y": "independent"})
    return both


def _row_labels(rows: Sequence[Row], palette: Palette) -> Chart:
    """Build verdict and p of each row as labels of a second axis; an expression has only our own words, as JSON."""
    alt, places = charts.import_altair(), list(range(len(rows)))
    ticks = alt.Axis(
        title=None,
        orient="right",
        values=places,
        labelExpr=f"{json.dumps([row['note'] for row in rows])}[datum.value]",
        labelColor=palette.ink,
        labelFontSize=11.5,
        labelAlign="left",
        labelLimit=90,
        domain=False,
        ticks=False,
        grid=False,
    )
    y = alt.Y("place:O", sort=places, scale=alt.Scale(domain=places), axis=ticks)
    return charts.layer("point", [{"place": place} for place in places], {"opacity": 0, "size": 0}, y=y)
