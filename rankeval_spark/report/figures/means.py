"""Figures of ``metrics``: the leaderboard, measures over cutoffs, and the history of nights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults, wording
from rankeval_spark.report.figures.look import (
    NOTEBOOK,
    Chart,
    Look,
    NothingToDrawError,
    Palette,
    Style,
    axis,
    by_model,
    combine_panels,
    dashes,
    inline,
    layer,
    library,
    panel,
    require_rows,
    styles,
)
from rankeval_spark.report.tables import Row, all_users_rows, demand_columns, rows_of, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey

NEEDED: Final = (C.MODEL_ID, C.SLICE, C.MEASURE, C.K, C.VALUE, "ci_low", "ci_high", "n_users")
READ: Final = (*NEEDED, C.EVALUATION_DATE, "ci_level", "is_uncertain")
ROW_HEIGHT: Final = 36
PANEL_HEIGHT: Final = 220
MOST_TICKS: Final = 5
MANY_PLACES: Final = 12
"""Nights or cutoffs from which on points are smaller."""
_THICK: Final = {"strokeWidth": 2.5, "strokeCap": "round"}
_POINT: Final = {"filled": True, "size": 100, "opacity": 1}
LEAST_CURVE: Final = 2
"""Cutoffs that a curve needs."""


@dataclass(frozen=True)
class Marks:
    """What happened in the nights of a history, in addition to its values.

    Attributes
    ----------
    bounds : sequence of mapping
        ``date``, ``bound`` and ``text`` of the gates on the mean of all users.
    redefined : mapping of date to str
        Nights from which on the measure is defined otherwise, with what changed.
    failures : mapping of date to str
        Nights of which nothing was published, with the reason.
    """

    bounds: Sequence[Row] = ()
    redefined: Mapping[date, str] = field(default_factory=dict)
    failures: Mapping[date, str] = field(default_factory=dict)


def leaderboard(
    metrics: object, *, measures: Sequence[str] = (), baseline: str | None = None, look: Look = NOTEBOOK
) -> Chart:
    """Draw each model's mean over all users with its interval, best first: a panel a measure.

    Of a measure such as ARP, of which neither side is better, the highest mean is first.
    """
    table = read_means(metrics)
    wanted = chosen(table, measures)
    panels = [
        _leaderboard(require_rows(leaderboard_rows(table, one), with_cutoff(*one)), one, baseline, look)
        for one in wanted
    ]
    return combine_panels(panels, look)


def leaderboard_rows(metrics: pa.Table, measure: MeasureKey) -> list[dict[str, Any]]:
    """Give a row a model, best first; ``value`` is None where the measure is undefined for every user."""
    found = rows_of(all_users_rows(metrics), READ, measure=measure[0], k=measure[1])
    by_name = {row[C.MODEL_ID]: row for row in found}
    values = {name: row[C.VALUE] for name, row in by_name.items()}
    places = decimals_of(found)
    return [
        {**_estimate(by_name[name], places), "place": place}
        for place, name in enumerate(defaults.best_first(values, is_lower=defaults.is_lower_better(measure[0])), 1)
    ]


def _leaderboard(rows: Sequence[Row], measure: MeasureKey, baseline: str | None, look: Look) -> Chart:
    alt = library()
    order = [row["model"] for row in rows]
    known = [row for row in rows if row["value"] is not None]
    encoded = by_model(styles(order, look.palette, baseline=baseline), look, has_axis=True)
    y = alt.Y("model:N", sort=order, scale=alt.Scale(domain=order), axis=axis(labelColor=look.palette.ink))
    x = alt.X("value:Q", scale=alt.Scale(zero=False, padding=14), axis=axis())
    data = inline(known)
    colour = encoded["color"]
    layers = (
        []
        if not known
        else [
            layer("rule", data, _THICK, y=y, x=alt.X("low:Q", title=None), x2="high:Q", color=colour),
            layer("point", data, _POINT, y=y, x=x, tooltip=tooltips(measure), **encoded),
            layer("text", data, {"dy": -12, "fontSize": 11.5, "color": look.palette.ink}, y=y, x=x, text="text:N"),
        ]
    )
    without = [{"model": row["model"], "text": wording.UNDEFINED} for row in rows if row["value"] is None]
    if without:
        words = {"align": "left", "fontStyle": "italic", "color": look.palette.muted}
        layers.append(layer("text", without, words, y=y, x={"value": 4}, text="text:N"))
    return panel(layers, look, height=ROW_HEIGHT * max(len(order), 1), title=with_cutoff(*measure))


def curves(
    metrics: object, *, measures: Sequence[str] = (), baseline: str | None = None, look: Look = NOTEBOOK
) -> Chart:
    """Draw means over cutoffs with their intervals, a line a model: a panel a measure.

    Measures are named without cutoffs, such as ``["nDCG"]``; where left out, those with two cutoffs or more.
    """
    table = read_means(metrics)
    labels = list(measures) or curve_labels(defaults.measures_of(all_users_rows(table)))
    panels = [_curve(require_rows(curve_rows(table, label), label), label, baseline, look) for label in labels]
    if not panels:
        expected = "a measure at two cutoffs or more"
        raise NothingToDrawError(
            Fault("curves", "measures of one cutoff", expected, "request several, such as nDCG@5, nDCG@10")
        )
    return combine_panels(panels, look)


def curve_labels(known: Sequence[MeasureKey], requested: Sequence[MeasureKey] = ()) -> list[str]:
    """List the measures that have two cutoffs or more, in the order of the request."""
    labels = dict.fromkeys(label for label, _ in (requested or known))
    return [label for label in labels if len(_cutoffs(label, known)) >= LEAST_CURVE]


def _cutoffs(label: str, known: Sequence[MeasureKey]) -> list[int]:
    return sorted(k for name, k in known if name == label and k != C.WHOLE_LIST)


def curve_rows(metrics: pa.Table, label: str) -> list[dict[str, Any]]:
    """Give a row a model and cutoff at which the measure has a value."""
    found = [row for row in rows_of(all_users_rows(metrics), READ, measure=label) if row[C.K] != C.WHOLE_LIST]
    places = decimals_of(found)
    rows = [{**_estimate(row, places), "k": row[C.K]} for row in found if row[C.VALUE] is not None]
    return sorted(rows, key=lambda row: (row["model"], row["k"]))


def _curve(rows: Sequence[Row], label: str, baseline: str | None, look: Look) -> Chart:
    alt = library()
    styles_by_model = styles([row["model"] for row in rows], look.palette, baseline=baseline)
    ks = sorted({row["k"] for row in rows})
    ticks = axis("k", values=ks, format="d", grid=False, labelOverlap="greedy")
    x = alt.X("k:Q", scale=alt.Scale(type="log", nice=False, padding=10), axis=ticks)
    lines = _lines(rows, x, styles_by_model, look, shown=[alt.Tooltip("k:Q"), *tooltips((label, C.WHOLE_LIST))])
    return panel(lines, look, height=PANEL_HEIGHT, title=label)


def history(
    metrics: object,
    *,
    measures: Sequence[str] = (),
    baseline: str | None = None,
    marks: Callable[[MeasureKey], Marks] | None = None,
    look: Look = NOTEBOOK,
) -> Chart:
    """Draw means over nights with their intervals, a line a model: a panel a measure.

    The frame is ``Results(...).metrics()`` of several nights of one evaluation. ``marks`` gives the bounds of gates,
    changed definitions and failed nights of a measure.
    """
    table = to_arrow(metrics, what="metrics")
    demand_columns(table, NEEDED, what="metrics")
    if C.EVALUATION_DATE not in table.column_names:
        fix = "a history is drawn of Results(...).metrics(), which has several nights"
        raise ConfigError(Fault("history", f"a frame without {C.EVALUATION_DATE}", "published metrics", fix))
    wanted = chosen(table, measures)
    panels = [
        _history(
            require_rows(history_rows(table, one), with_cutoff(*one)),
            one,
            baseline,
            Marks() if marks is None else marks(one),
            look,
        )
        for one in wanted
    ]
    return combine_panels(panels, look)


def history_rows(metrics: pa.Table, measure: MeasureKey) -> list[dict[str, Any]]:
    """Give a row a model and night on which the measure has a value."""
    found = rows_of(all_users_rows(metrics), READ, measure=measure[0], k=measure[1])
    places = decimals_of(found)
    rows = [
        {**_estimate(row, places), "date": row[C.EVALUATION_DATE].isoformat()}
        for row in found
        if row[C.VALUE] is not None
    ]
    return sorted(rows, key=lambda row: (row["model"], row["date"]))


def _history(rows: Sequence[Row], measure: MeasureKey, baseline: str | None, marks: Marks, look: Look) -> Chart:
    alt, palette = library(), look.palette
    styles_by_model = styles([row["model"] for row in rows], palette, baseline=baseline)
    # A day is a day everywhere: in the zone of the reader it could be the one before.
    ticks = axis(format="%-d %b %Y", grid=False, labelOverlap="greedy", values=_ticks({row["date"] for row in rows}))
    x = alt.X("date:T", scale=alt.Scale(type="utc", padding=12), axis=ticks)
    shown = [alt.Tooltip("date:N", title="night"), *tooltips(measure)]
    lines = _lines(rows, x, styles_by_model, look, shown=shown)
    layers = [*_bounds(marks.bounds, x, palette), *lines, *_events(marks, x, palette)]
    return panel(layers, look, height=PANEL_HEIGHT, title=with_cutoff(*measure))


def _ticks(days: set[str]) -> list[Any]:
    """Choose some of the nights: a tick between two of them would be of no night."""
    alt = library()
    found = [date.fromisoformat(day) for day in sorted(days)]
    some = found[:: -(-len(found) // MOST_TICKS)] if found else []
    return [alt.DateTime(year=day.year, month=day.month, date=day.day, utc=True) for day in some]


def _bounds(bounds: Sequence[Row], x: Chart, palette: Palette) -> list[Any]:
    if not bounds:
        return []
    alt = library()
    dotted = {"interpolate": "step-after", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": palette.ink}
    newest = {row["rule"]: row for row in sorted(bounds, key=lambda row: str(row["date"]))}
    words = {"align": "right", "dy": -6, "fontSize": 11, "color": palette.ink, "limit": 180}
    y = alt.Y("bound:Q", title=None)
    return [
        layer("line", bounds, dotted, x=x, y=y, detail="rule:N"),
        layer("text", list(newest.values()), words, x={"value": "width"}, y=y, text="text:N"),
    ]


def _events(marks: Marks, x: Chart, palette: Palette) -> list[Any]:
    alt = library()
    layers = []
    if marks.redefined:
        rows = [
            {"date": day.isoformat(), "text": "definition changed", "what": what}
            for day, what in marks.redefined.items()
        ]
        shown = [alt.Tooltip("date:N", title="from"), alt.Tooltip("what:N", title="changed")]
        dashed = {"strokeDash": [6, 3], "strokeWidth": 1.5, "color": palette.ink}
        words = {"align": "left", "baseline": "top", "dx": 5, "fontSize": 11, "color": palette.ink}
        layers += [
            layer("rule", rows, dashed, x=x, tooltip=shown),
            layer("text", rows, words, x=x, y={"value": 0}, text="text:N", tooltip=shown),
        ]
    if marks.failures:
        rows = [{"date": day.isoformat(), "what": what} for day, what in marks.failures.items()]
        shown = [alt.Tooltip("date:N", title="failed night"), alt.Tooltip("what:N", title="why")]
        cross = {"text": "✕", "fontSize": 15, "fontWeight": "bold", "color": palette.worse}
        layers.append(layer("text", rows, cross, x=x, y={"value": PANEL_HEIGHT - 8}, tooltip=shown))
    return layers


def _lines(
    rows: Sequence[Row], x: Chart, styles_by_model: Mapping[str, Style], look: Look, *, shown: Sequence[Any]
) -> list[Any]:
    """Draw a line a model, with points and the band of its intervals."""
    alt = library()
    encoded = by_model(styles_by_model, look)
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, nice=True), axis=axis())
    data, colour = inline(rows), encoded["color"]
    n_places = len({(row.get("date"), row.get("k")) for row in rows})
    line = {"strokeWidth": 2, "strokeJoin": "round"}
    low = alt.Y("low:Q", title=None)
    return [
        layer("area", data, {"opacity": 0.13}, x=x, y=low, y2="high:Q", color=colour),
        layer("line", data, line, x=x, y=y, color=colour, strokeDash=dashes(styles_by_model)),
        layer(
            "point",
            data,
            {**_POINT, "size": 46 if n_places <= MANY_PLACES else 20},
            x=x,
            y=y,
            tooltip=list(shown),
            **encoded,
        ),
    ]


def read_means(metrics: object) -> pa.Table:
    """Read a frame of means, of several nights the newest."""
    return defaults.read_frame(metrics, NEEDED, what="metrics")


def chosen(table: pa.Table, measures: Sequence[str]) -> list[MeasureKey]:
    """Find the measures that are named, or the one that is looked at first."""
    known = defaults.measures_of(all_users_rows(table))
    if measures:
        return [defaults.named(text, known, where="measures") for text in measures]
    first = defaults.headline_measure(known)
    if first is None:
        raise ConfigError(Fault("metrics", "no row over all users", "at least one"))
    return [first]


def decimals_of(rows: Sequence[Row]) -> int:
    """Decimals of the values of one measure."""
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in rows if row["ci_high"] is not None]
    return wording.decimals(halves, [row[C.VALUE] for row in rows])


def tooltips(measure: MeasureKey) -> list[Any]:
    """Name what a point says."""
    alt = library()
    return [
        alt.Tooltip("model:N", title="model"),
        alt.Tooltip("text:N", title=with_cutoff(*measure)),
        alt.Tooltip("interval:N", title="interval"),
        alt.Tooltip("users:Q", title="users", format=","),
    ]


def _estimate(row: Row, places: int) -> dict[str, Any]:
    value, low, high = row[C.VALUE], row["ci_low"], row["ci_high"]
    return {
        "model": row[C.MODEL_ID],
        "value": value,
        "low": value if low is None else low,
        "high": value if high is None else high,
        "text": wording.number(value, places),
        "interval": wording.mean_interval(row, places),
        "users": row["n_users"],
    }
