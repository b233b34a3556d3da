"""Figures of ``metrics``: leaderboard, curves over cutoffs, history, groups of users, trade-offs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures import charts
from rankeval_spark.report.figures.charts import NOTEBOOK, Chart, Look, NothingToDrawError
from rankeval_spark.report.figures.figure import (
    Figure,
    combine_panels,
    count_users,
    intervals_of,
    list_names,
    night_of,
)
from rankeval_spark.report.tables import Row, all_users_rows, distinct, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey

NEEDED: Final = (C.MODEL_ID, C.SLICE, C.MEASURE, C.K, C.VALUE, "ci_low", "ci_high", "n_users")
READ: Final = (*NEEDED, C.EVALUATION_DATE, "ci_level", "is_uncertain", "has_support")
ROW_HEIGHT: Final = 36
PANEL_HEIGHT: Final = 200
GROUP_HEIGHT: Final = 44
POINT_HEIGHT: Final = 200
GROUP_NAME_LIMIT: Final = 96  # pixels
MAX_TICKS: Final = 5
MAX_LARGE_POINTS: Final = 12  # with more nights or cutoffs, points are smaller
MIN_CUTOFFS: Final = 2  # of a curve
_POINT: Final = {"filled": True, "size": 100, "opacity": 1}


@dataclass(frozen=True)
class Marks:
    """Events of the nights of a history."""

    bounds: Sequence[Row] = ()  # `date`, `bound` and `text` of the gates on the mean of all users
    # nights since which the measure is defined otherwise, with the change
    redefined: Mapping[date, str] = field(default_factory=dict)
    failures: Mapping[date, str] = field(default_factory=dict)  # unpublished nights, with the reason


def leaderboard(
    metrics: object, *, measures: Sequence[str] = (), baseline: str | None = None, look: Look = NOTEBOOK
) -> Figure:
    """Draw each model's mean over all users with its interval, best first, else the highest: a panel a measure."""
    table, panels, drawn = defaults.read_frame(metrics, NEEDED, what="metrics"), [], []
    found = find_measures(table, measures)
    for measure in found:
        rows = charts.require_rows(leaderboard_rows(table, measure), with_cutoff(*measure))
        panels.append(_leaderboard_panel(rows, measure, baseline, look))
        drawn += rows
    names = list_names((with_cutoff(*measure) for measure in found), "measure")
    orders = " or ".join(dict.fromkeys(defaults.order_in_words(label) for label, _ in found))
    caption = (
        f"Mean of {names} over all users, {orders}, with {intervals_of(table)}. {_of_whom(table, drawn, baseline)}"
    )
    return combine_panels(panels, look, f"{names} by model", caption)


def _of_whom(table: pa.Table, rows: Sequence[Row], baseline: str | None, *, each: str = "") -> str:
    """Return the sentences of a caption on users, models and night."""
    models = list_names(sorted({row["model"] for row in rows}), "model", baseline=baseline)
    users = f"{count_users(row['users'] for row in rows)}{each}. " if "users" in rows[0] else ""
    return f"{users}Models: {models}.{night_of(table)}"


def leaderboard_rows(metrics: pa.Table, measure: MeasureKey) -> list[dict[str, Any]]:
    """Return a row per model, best first. ``value`` is None if the measure is undefined for every user."""
    return ranked_rows(_all_users_of(metrics, measure), measure)


def ranked_rows(of_measure: Sequence[Row], measure: MeasureKey) -> list[dict[str, Any]]:
    """Return rows of ``metrics`` of one measure in order, best first, with their numbers as text."""
    rows = {row["model"]: row for row in _format_estimates(of_measure)}
    values = {name: row["value"] for name, row in rows.items()}
    order = defaults.best_first(values, is_lower=defaults.is_lower_better(measure[0]))
    return [{**rows[name], "place": place} for place, name in enumerate(order, 1)]


def _leaderboard_panel(rows: Sequence[Row], measure: MeasureKey, baseline: str | None, look: Look) -> Chart:
    """Draw the means of one measure: interval, point and number of each model."""
    alt = charts.import_altair()
    order = [row["model"] for row in rows]
    defined = [row for row in rows if row["value"] is not None]
    encoded = charts.encode_models(charts.styles(order, look.palette, baseline=baseline), look, has_axis=True)
    y = alt.Y("model:N", sort=order, scale=alt.Scale(domain=order), axis=charts.axis(labelColor=look.palette.ink))
    x = alt.X("value:Q", scale=alt.Scale(zero=False, padding=14), axis=charts.axis())
    layers = []
    if defined:
        data, low = charts.to_chart_data(defined), alt.X("low:Q", title=None)
        thick = {"strokeWidth": 2.5, "strokeCap": "round"}
        words = {"dy": -12, "fontSize": 11.5, "color": look.palette.ink}
        layers = [
            charts.layer("rule", data, thick, y=y, x=low, x2="high:Q", color=encoded["color"]),
            charts.layer("point", data, _POINT, y=y, x=x, tooltip=_tooltips(measure), **encoded),
            charts.layer("text", data, words, y=y, x=x, text="text:N"),
        ]
    without = [{"model": row["model"], "text": wording.UNDEFINED} for row in rows if row["value"] is None]
    if without:
        words = {"align": "left", "fontStyle": "italic", "color": look.palette.muted}
        layers.append(charts.layer("text", without, words, y=y, x={"value": 4}, text="text:N"))
    return charts.panel(layers, look, height=ROW_HEIGHT * max(len(order), 1), title=with_cutoff(*measure))


def curves(
    metrics: object, *, measures: Sequence[str] = (), baseline: str | None = None, look: Look = NOTEBOOK
) -> Figure:
    """Draw means over cutoffs with intervals: a panel a measure, by default those with two cutoffs or more."""
    alt, table = charts.import_altair(), defaults.read_frame(metrics, NEEDED, what="metrics")
    panels, drawn = [], []
    labels = list(measures) or curve_labels(defaults.measures_of(all_users_rows(table)))
    for label in labels:
        rows = charts.require_rows(curve_rows(table, label), label)
        drawn += rows
        ticks = charts.axis(
            "k", values=sorted({row["k"] for row in rows}), format="d", grid=False, labelOverlap="greedy"
        )
        x = alt.X("k:Q", scale=alt.Scale(type="log", nice=False, padding=10), axis=ticks)
        shown = [alt.Tooltip("k:Q"), *_tooltips((label, C.WHOLE_LIST))]
        panels.append(
            charts.panel(_line_layers(rows, x, baseline, look, shown), look, height=PANEL_HEIGHT, title=label)
        )
    if not panels:
        fix = "request several, such as nDCG@5, nDCG@10"
        raise NothingToDrawError(Fault("curves", "measures of one cutoff", "a measure at two cutoffs or more", fix))
    names, whom = list_names(labels, "measure"), _of_whom(table, drawn, baseline)
    caption = f"Mean over all users at each cutoff k, a logarithmic axis, with bands of {intervals_of(table)}. {whom}"
    return combine_panels(panels, look, f"{names} over the cutoff", caption)


def curve_labels(computed: Sequence[MeasureKey], requested: Sequence[MeasureKey] = ()) -> list[str]:
    """List the measures that have two cutoffs or more, in the order of the request."""
    labels = dict.fromkeys(label for label, _ in (requested or computed))
    cutoffs = Counter(label for label, k in set(computed) if k != C.WHOLE_LIST)
    return [label for label in labels if cutoffs[label] >= MIN_CUTOFFS]


def curve_rows(metrics: pa.Table, label: str) -> list[dict[str, Any]]:
    """Return a row per model and cutoff at which the measure has a value."""
    found = [row for row in rows_of(all_users_rows(metrics), READ, measure=label) if row[C.K] != C.WHOLE_LIST]
    rows = [{**estimate, "k": row[C.K]} for row, estimate in zip(found, _format_estimates(found), strict=True)]
    return sorted((row for row in rows if row["value"] is not None), key=lambda row: (row["model"], row["k"]))


def history(
    metrics: object,
    *,
    measures: Sequence[str] = (),
    baseline: str | None = None,
    marks: Callable[[MeasureKey], Marks] | None = None,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw means over nights with their intervals, a line a model: a panel a measure.

    The frame is ``Results(...).metrics()`` of several nights of one evaluation. ``marks`` returns the events of a
    measure: bounds of gates, changed definitions and failed nights.
    """
    table = defaults.read_frame(metrics, NEEDED, what="metrics", is_of_several_nights=True)
    if C.EVALUATION_DATE not in table.column_names:
        fix = "a history is drawn of Results(...).metrics(), which has several nights"
        raise ConfigError(Fault("history", f"a frame without {C.EVALUATION_DATE}", "published metrics", fix))
    panels, drawn, found = [], [], find_measures(table, measures)
    for measure in found:
        rows = charts.require_rows(history_rows(table, measure), with_cutoff(*measure))
        panels.append(_history_panel(rows, measure, baseline, Marks() if marks is None else marks(measure), look))
        drawn += rows
    names, nights = list_names((with_cutoff(*measure) for measure in found), "measure"), {row["date"] for row in drawn}
    caption = (
        f"Mean over all users of each night, with bands of {intervals_of(table)}. {_of_whom(table, drawn, baseline)}"
    )
    return combine_panels(panels, look, f"{names} over {wording.count(len(nights), 'night')}", caption)


def history_rows(metrics: pa.Table, measure: MeasureKey) -> list[dict[str, Any]]:
    """Return a row per model and night on which the measure has a value."""
    found = _all_users_of(metrics, measure)
    pairs = zip(found, _format_estimates(found), strict=True)
    rows = [
        {**estimate, "date": row[C.EVALUATION_DATE].isoformat()}
        for row, estimate in pairs
        if estimate["value"] is not None
    ]
    return sorted(rows, key=lambda row: (row["model"], row["date"]))


def _history_panel(rows: Sequence[Row], measure: MeasureKey, baseline: str | None, marks: Marks, look: Look) -> Chart:
    """Draw one measure over the nights: bounds of gates, lines, changed definitions and failures."""
    alt, palette = charts.import_altair(), look.palette
    # A day is a day everywhere: in the zone of the reader it could be the one before.
    days = [date.fromisoformat(day) for day in sorted({row["date"] for row in rows})]
    some = [
        alt.DateTime(year=day.year, month=day.month, date=day.day, utc=True)
        for day in days[:: -(-len(days) // MAX_TICKS)]  # a tick between two nights would be of no night
    ]
    ticks = charts.axis(format="%-d %b %Y", grid=False, labelOverlap="greedy", values=some)
    x = alt.X("date:T", scale=alt.Scale(type="utc", padding=12), axis=ticks)
    shown = [alt.Tooltip("date:N", title="night"), *_tooltips(measure)]
    layers = []
    if marks.bounds:
        dotted = {"interpolate": "step-after", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": palette.ink}
        newest = {row["rule"]: row for row in sorted(marks.bounds, key=lambda row: str(row["date"]))}
        words = {"align": "right", "dy": -6, "fontSize": 11, "color": palette.ink, "limit": 180}
        y = alt.Y("bound:Q", title=None)
        layers = [
            charts.layer("line", marks.bounds, dotted, x=x, y=y, detail="rule:N"),
            charts.layer("text", list(newest.values()), words, x={"value": "width"}, y=y, text="text:N"),
        ]
    layers += _line_layers(rows, x, baseline, look, shown)
    if marks.redefined:
        text = "definition changed"
        redefined = [{"date": day.isoformat(), "text": text, "what": what} for day, what in marks.redefined.items()]
        shown = [alt.Tooltip("date:N", title="from"), alt.Tooltip("what:N", title="changed")]
        dashed = {"strokeDash": [6, 3], "strokeWidth": 1.5, "color": palette.ink}
        words = {"align": "left", "baseline": "top", "dx": 5, "fontSize": 11, "color": palette.ink}
        layers += [
            charts.layer("rule", redefined, dashed, x=x, tooltip=shown),
            charts.layer("text", redefined, words, x=x, y={"value": 0}, text="text:N", tooltip=shown),
        ]
    if marks.failures:
        failures = [{"date": day.isoformat(), "what": what} for day, what in marks.failures.items()]
        shown = [alt.Tooltip("date:N", title="failed night"), alt.Tooltip("what:N", title="why")]
        cross = {"text": "✕", "fontSize": 15, "fontWeight": "bold", "color": palette.worse}
        layers.append(charts.layer("text", failures, cross, x=x, y={"value": PANEL_HEIGHT - 8}, tooltip=shown))
    return charts.panel(layers, look, height=PANEL_HEIGHT, title=with_cutoff(*measure))


def _line_layers(rows: Sequence[Row], x: Chart, baseline: str | None, look: Look, shown: Sequence[Any]) -> list[Any]:
    """Draw a line a model, with points, whose tooltips are ``shown``, and the band of its intervals."""
    alt = charts.import_altair()
    styles_by_model = charts.styles([row["model"] for row in rows], look.palette, baseline=baseline)
    encoded = charts.encode_models(styles_by_model, look)
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, nice=True), axis=charts.axis())
    data, colour, low = charts.to_chart_data(rows), encoded["color"], alt.Y("low:Q", title=None)
    n_places = len({(row.get("date"), row.get("k")) for row in rows})
    line = {"strokeWidth": 2, "strokeJoin": "round"}
    point = {**_POINT, "size": 46 if n_places <= MAX_LARGE_POINTS else 20}
    dashes = alt.Scale(domain=list(styles_by_model), range=[list(style.dash) for style in styles_by_model.values()])
    dash = alt.StrokeDash("model:N", scale=dashes, legend=None)
    return [
        charts.layer("area", data, {"opacity": 0.13}, x=x, y=low, y2="high:Q", color=colour),
        charts.layer("line", data, line, x=x, y=y, color=colour, strokeDash=dash),
        charts.layer("point", data, point, x=x, y=y, tooltip=list(shown), **encoded),
    ]


def find_measures(table: pa.Table, measures: Sequence[str]) -> list[MeasureKey]:
    """Return the named measures, or the headline measure if none is named."""
    computed = defaults.measures_of(all_users_rows(table))
    if measures:
        return [defaults.find_measure(text, computed, where="measures") for text in measures]
    first = defaults.headline_measure(computed)
    if first is None:
        raise ConfigError(Fault("metrics", "no row over all users", "at least one"))
    return [first]


def _tooltips(measure: MeasureKey) -> list[Any]:
    return charts.tooltips(model="model", text=with_cutoff(*measure), interval="interval", users="users")


def _all_users_of(metrics: pa.Table, measure: MeasureKey) -> list[dict[str, Any]]:
    return rows_of(all_users_rows(metrics), READ, measure=measure[0], k=measure[1])


def _format_estimates(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the mean and interval of each row, as numbers and as texts with the same decimals."""
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in rows if row["ci_high"] is not None]
    places = wording.decimals(halves, [row[C.VALUE] for row in rows])
    return [
        {
            "model": row[C.MODEL_ID],
            "value": row[C.VALUE],
            "low": row[C.VALUE] if row["ci_low"] is None else row["ci_low"],
            "high": row[C.VALUE] if row["ci_high"] is None else row["ci_high"],
            "text": wording.number(row[C.VALUE], places),
            "interval": wording.mean_interval(row, places),
            "users": row["n_users"],
            "has_support": row.get("has_support") is not False,
        }
        for row in rows
    ]


def groups(
    metrics: object,
    *,
    measure: str | None = None,
    slices: Sequence[str] = (),
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw the means of the groups of each slicing, so that the gaps between them are seen: a panel a slicing.

    Groups that are too small to be compared are hollow and lie outside of the range. All slicings of the frame share
    one axis, so that a longer bar is a larger gap. ``slices`` are slicings such as ``["country"]``; all where left out.
    """
    table = defaults.read_frame(metrics, NEEDED, what="metrics")
    (wanted,) = find_measures(table, [] if measure is None else [measure])
    computed = slicings(table)
    unknown = [name for name in slices if name not in computed]
    if not computed:
        fix = "call evaluate(..., segments=, slices=)"
        raise NothingToDrawError(Fault("groups", "means of all users only", "means of slices", fix))
    if unknown:
        expected = f"some of: {', '.join(computed)}"
        raise ConfigError(Fault("groups(slices=)", ", ".join(unknown), expected, nearest(unknown[0], computed)))
    rows = {name: group_rows(table, wanted, name) for name in computed}
    means = [row["value"] for of_slicing in rows.values() for row in of_slicing]
    title, span = with_cutoff(*wanted), (min(means, default=0.0), max(means, default=0.0))
    shown = {name: charts.require_rows(rows[name], title) for name in slices or computed}
    panels = [_groups_panel(of_slicing, name, title, span, baseline, look) for name, of_slicing in shown.items()]
    drawn = [row for of_slicing in shown.values() for row in of_slicing]
    caption = (
        f"Mean of {title} in each group; a bar runs from the lowest to the highest group of a model. Hollow points are "
        f"small groups and users of unknown segment, which are not compared. "
        f"{_of_whom(table, drawn, baseline, each=' a group')}"
    )
    return combine_panels(panels, look, f"{title} by {list_names(map(wording.crossed, shown), 'slicing')}", caption)


def slicings(metrics: pa.Table) -> list[str]:
    """List the slicings of a frame, those by one segment first."""
    names = [str(name) for (name,) in distinct(metrics, C.SLICE) if name != C.ALL_USERS]
    return sorted(names, key=lambda name: (name.count(C.CROSSING), name))


def group_rows(metrics: pa.Table, measure: MeasureKey, slicing: str) -> list[dict[str, Any]]:
    """Return a row per model and group with a value. ``is_end`` marks the least and the greatest of a model."""
    columns = (C.MODEL_ID, C.SLICE_VALUE, C.VALUE, "ci_low", "ci_high", "n_users", "is_small", "is_uncertain")
    found = rows_of(metrics, (*columns, "has_support", C.SLICE_VALUES), slice=slicing, measure=measure[0], k=measure[1])
    rows = [
        {
            **of_model,
            "group": wording.group_name(row[C.SLICE_VALUE]),
            "is_small": bool(row["is_small"]) or not of_model["has_support"] or None in row[C.SLICE_VALUES],
            "is_end": False,
        }
        for row, of_model in zip(found, _format_estimates(found), strict=True)
        if of_model["value"] is not None
    ]
    for model in {row["model"] for row in rows}:
        of_model = [row for row in rows if row["model"] == model and not row["is_small"]]
        for pick in (min, max) if of_model else ():
            pick(of_model, key=lambda row: row["value"])["is_end"] = True
    return sorted(rows, key=lambda row: (row["model"], row["value"], row["group"]))


def _groups_panel(
    rows: Sequence[dict[str, Any]],
    slicing: str,
    title: str,
    span: tuple[float, float],  # least and greatest mean of all slicings
    baseline: str | None,
    look: Look,
) -> Chart:
    """Draw one slicing: a bar from the lowest to the highest group of each model, and a point a group."""
    alt, palette = charts.import_altair(), look.palette
    order = sorted({row["model"] for row in rows})
    encoded = charts.encode_models(charts.styles(order, palette, baseline=baseline), look, has_axis=True)
    y = alt.Y("model:N", sort=order, scale=alt.Scale(domain=order), axis=charts.axis(labelColor=palette.ink))
    domain = {"domain": list(span)} if span[0] < span[1] else {}
    scale = alt.Scale(zero=False, nice=False, padding=52, **domain)  # with room for the names of groups
    x = alt.X("value:Q", scale=scale, axis=charts.axis(title))
    shown = charts.tooltips(model="model", group="group", text=title, interval="interval", users="users")
    large = [row for row in rows if not row["is_small"]]
    ranges = [
        {"model": model, "low": min(at_end), "high": max(at_end)}
        for model in order
        if (at_end := [row["value"] for row in large if row["model"] == model])
    ]
    ends = [row for row in rows if row["is_end"]]
    lowest = [row for row in ends if row["value"] == min(e["value"] for e in ends if e["model"] == row["model"])]
    highest = [row for row in ends if row not in lowest]
    layers = []
    if large:
        thick = {"strokeWidth": 5, "opacity": 0.22, "strokeCap": "round"}
        low, point = alt.X("low:Q", title=title), {"filled": True, "size": 55, "opacity": 0.9}
        layers = [
            charts.layer("rule", ranges, thick, y=y, x=low, x2="high:Q", color=encoded["color"]),
            charts.layer("point", large, point, y=y, x=x, tooltip=shown, **encoded),
        ]
    small = [row for row in rows if row["is_small"]]
    if small:
        hollow = {"size": 40, "strokeDash": [2, 1]}
        layers.append(charts.layer("point", small, hollow, y=y, x=x, tooltip=shown, color=encoded["color"]))
    words = {"dy": 13, "fontSize": 10.5, "color": palette.muted, "limit": GROUP_NAME_LIMIT}
    for at_end, align in ((lowest, "right"), (highest, "left")):
        aligned = {**words, "align": align, "dx": -4 if align == "right" else 4}
        layers += [charts.layer("text", at_end, aligned, y=y, x=x, text="group:N")] if at_end else []
    height = GROUP_HEIGHT * max(len(order), 1)
    return charts.panel(layers, look, height=height, title=wording.crossed(slicing))


def tradeoffs(
    metrics: object,
    *,
    measure: str | None = None,
    against: Sequence[str] = (),
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw an accuracy measure against each measure beyond accuracy in ``against`` (default: all), a panel each."""
    table = defaults.read_frame(metrics, NEEDED, what="metrics")
    (accuracy,) = find_measures(table, [] if measure is None else [measure])
    computed = defaults.measures_of(all_users_rows(table))
    others = [defaults.find_measure(text, computed, where="against") for text in against] or beyond_accuracy(computed)
    if not others:
        fix = "request measures such as CatalogCoverage@10 or MIUF@10, with train="
        raise NothingToDrawError(Fault("tradeoffs", "no measure beyond accuracy", "at least one", fix))
    panels, drawn = [], []
    for other in others:
        rows = charts.require_rows(tradeoff_rows(table, accuracy, other), with_cutoff(*other))
        panels.append(_tradeoff_panel(rows, accuracy, other, baseline, look))
        drawn += rows
    names, whom = list_names((with_cutoff(*other) for other in others), "measure"), _of_whom(table, drawn, baseline)
    caption = f"Means over all users, a point a model, with {intervals_of(table)} both ways. {whom}"
    return combine_panels(panels, look, f"{names} against {with_cutoff(*accuracy)}", caption)


def beyond_accuracy(computed: Sequence[MeasureKey], requested: Sequence[MeasureKey] = ()) -> list[MeasureKey]:
    """Choose one cutoff, near 10, of each measure that is not about accuracy."""
    labels = dict.fromkeys(label for label, _ in (requested or computed))
    wanted = [label for label in labels if defaults.family_of(label) in defaults.BEYOND_ACCURACY]
    cutoffs = {label: [k for name, k in computed if name == label] for label in wanted}
    return [(label, min(ks, key=lambda k: (abs(k - defaults.USUAL_CUTOFF), k))) for label, ks in cutoffs.items() if ks]


def tradeoff_rows(metrics: pa.Table, accuracy: MeasureKey, other: MeasureKey) -> list[dict[str, Any]]:
    """Return a row per model that has a value of both measures."""
    found = []
    for measure in (accuracy, other):
        defined = [row for row in _all_users_of(metrics, measure) if row[C.VALUE] is not None]
        found.append({row["model"]: row for row in _format_estimates(defined)})
    return [
        {"model": model}
        | {
            f"{name}{suffix}": rows[model][column]
            for name, rows in zip("xy", found, strict=True)
            for suffix, column in {"": "value", "_low": "low", "_high": "high", "_text": "text"}.items()
        }
        for model in sorted(found[0].keys() & found[1].keys())
    ]


def _tradeoff_panel(
    rows: Sequence[dict[str, Any]], accuracy: MeasureKey, other: MeasureKey, baseline: str | None, look: Look
) -> Chart:
    """Draw two measures against each other: a point a model, with both intervals."""
    alt = charts.import_altair()
    encoded = charts.encode_models(charts.styles([row["model"] for row in rows], look.palette, baseline=baseline), look)
    names = with_cutoff(*accuracy), with_cutoff(*other)
    x = alt.X("x:Q", scale=alt.Scale(zero=False, padding=16), axis=charts.axis(names[0]))
    y = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=16), axis=charts.axis())
    shown = charts.tooltips(model="model", x_text=names[0], y_text=names[1])
    data, thin, colour = charts.to_chart_data(rows), {"strokeWidth": 1.5, "opacity": 0.6}, encoded["color"]
    x_low, y_low = alt.X("x_low:Q", title=names[0]), alt.Y("y_low:Q", title=None)
    layers = [
        charts.layer("rule", data, thin, x=x_low, x2="x_high:Q", y=y, color=colour),
        charts.layer("rule", data, thin, x=x, y=y_low, y2="y_high:Q", color=colour),
        charts.layer("point", data, _POINT, x=x, y=y, tooltip=shown, **encoded),
    ]
    return charts.panel(layers, look, height=POINT_HEIGHT, title=names[1])
