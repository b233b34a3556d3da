"""Figures of groups of users, and of accuracy against what else lists are like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults, wording
from rankeval_spark.report.figures.look import (
    NOTEBOOK,
    Chart,
    Look,
    NothingToDrawError,
    axis,
    by_model,
    combine_panels,
    inline,
    layer,
    library,
    panel,
    require_rows,
    styles,
)
from rankeval_spark.report.figures.means import chosen, decimals_of, read_means
from rankeval_spark.report.tables import all_users_rows, distinct, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey

ROW_HEIGHT: Final = 44
POINT_HEIGHT: Final = 230
NAME_LIMIT: Final = 74


def groups(
    metrics: object,
    *,
    measure: str | None = None,
    slices: Sequence[str] = (),
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Chart:
    """Draw the means of the groups of each slicing, so that the gaps between them are seen: a panel a slicing.

    Groups that are too small to be compared are hollow and lie outside of the range. All slicings of the frame share
    one axis, so that a longer bar is a larger gap. ``slices`` are slicings such as ``["country"]``; all where left out.
    """
    table = read_means(metrics)
    (wanted,) = chosen(table, [] if measure is None else [measure])
    known = slicings(table)
    unknown = [name for name in slices if name not in known]
    if not known:
        fix = "call evaluate(..., segments=, slices=)"
        raise NothingToDrawError(Fault("groups", "means of all users only", "means of slices", fix))
    if unknown:
        expected = f"some of: {', '.join(known)}"
        raise ConfigError(Fault("groups(slices=)", ", ".join(unknown), expected, nearest(unknown[0], known)))
    rows = {name: group_rows(table, wanted, name) for name in known}
    means = [row["value"] for own in rows.values() for row in own]
    values = _ValueAxis(with_cutoff(*wanted), min(means, default=0.0), max(means, default=0.0))
    panels = [
        _groups(require_rows(rows[name], values.title), name, values, baseline, look) for name in list(slices) or known
    ]
    return combine_panels(panels, look)


def slicings(metrics: pa.Table) -> list[str]:
    """List the slicings of a frame, those by one segment first."""
    names = [str(name) for (name,) in distinct(metrics, C.SLICE) if name != C.ALL_USERS]
    return sorted(names, key=lambda name: (name.count(C.CROSSING), name))


def group_rows(metrics: pa.Table, measure: MeasureKey, slicing: str) -> list[dict[str, Any]]:
    """Give a row a model and group that has a value; ``is_end`` marks the least and the greatest of the model."""
    columns = (C.MODEL_ID, C.SLICE_VALUE, C.VALUE, "ci_low", "ci_high", "n_users", "is_small", "is_uncertain")
    found = rows_of(metrics, (*columns, C.SLICE_VALUES), slice=slicing, measure=measure[0], k=measure[1])
    places = decimals_of(found)
    rows = [
        {
            "model": row[C.MODEL_ID],
            "group": wording.crossed(row[C.SLICE_VALUE]),
            "value": row[C.VALUE],
            "text": wording.number(row[C.VALUE], places),
            "interval": wording.mean_interval(row, places),
            "users": row["n_users"],
            "is_small": bool(row["is_small"]) or None in row[C.SLICE_VALUES],
            "is_end": False,
        }
        for row in found
        if row[C.VALUE] is not None
    ]
    for model in {row["model"] for row in rows}:
        own = [row for row in rows if row["model"] == model and not row["is_small"]]
        for pick in (min, max) if own else ():
            pick(own, key=lambda row: row["value"])["is_end"] = True
    return sorted(rows, key=lambda row: (row["model"], row["value"], row["group"]))


class _ValueAxis(NamedTuple):
    """The axis that the slicings share: from the least to the greatest mean, with room for the names of groups."""

    title: str
    least: float
    most: float

    def channel(self) -> Chart:
        """Make its channel."""
        alt = library()
        ends = {"domain": [self.least, self.most]} if self.least < self.most else {}
        return alt.X("value:Q", scale=alt.Scale(zero=False, nice=False, padding=52, **ends), axis=axis(self.title))


def _groups(
    rows: Sequence[dict[str, Any]], slicing: str, values: _ValueAxis, baseline: str | None, look: Look
) -> Chart:
    alt, palette = library(), look.palette
    order = sorted({row["model"] for row in rows})
    encoded = by_model(styles(order, palette, baseline=baseline), look, has_axis=True)
    y = alt.Y("model:N", sort=order, scale=alt.Scale(domain=order), axis=axis(labelColor=palette.ink))
    x = values.channel()
    shown = [alt.Tooltip("model:N"), alt.Tooltip("group:N"), alt.Tooltip("text:N", title=values.title)]
    shown += [alt.Tooltip("interval:N"), alt.Tooltip("users:Q", format=",")]
    large = [row for row in rows if not row["is_small"]]
    ranges = [
        {"model": model, "low": min(own), "high": max(own)}
        for model in order
        if (own := [row["value"] for row in large if row["model"] == model])
    ]
    ends = [row for row in rows if row["is_end"]]
    lowest = [row for row in ends if row["value"] == min(e["value"] for e in ends if e["model"] == row["model"])]
    highest = [row for row in ends if row not in lowest]
    thick = {"strokeWidth": 5, "opacity": 0.22, "strokeCap": "round"}
    low, colour = alt.X("low:Q", title=values.title), encoded["color"]
    layers = (
        []
        if not large
        else [
            layer("rule", ranges, thick, y=y, x=low, x2="high:Q", color=colour),
            layer("point", large, {"filled": True, "size": 55, "opacity": 0.9}, y=y, x=x, tooltip=shown, **encoded),
        ]
    )
    small = [row for row in rows if row["is_small"]]
    if small:
        layers.append(layer("point", small, {"size": 40, "strokeDash": [2, 1]}, y=y, x=x, tooltip=shown, color=colour))
    words = {"dy": 13, "fontSize": 10.5, "color": palette.muted, "limit": NAME_LIMIT}
    for own, align in ((lowest, "right"), (highest, "left")):
        layers += [layer("text", own, {**words, "align": align}, y=y, x=x, text="group:N")] if own else []
    height = ROW_HEIGHT * max(len(order), 1)
    return panel(layers, look, height=height, title=wording.crossed(slicing))


def tradeoffs(
    metrics: object,
    *,
    measure: str | None = None,
    against: Sequence[str] = (),
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Chart:
    """Draw accuracy against coverage, novelty, popularity or whatever else was measured: a panel a measure.

    ``measure`` is that of accuracy; it is drawn ``against`` all measures beyond accuracy where none is named.
    """
    table = read_means(metrics)
    (accuracy,) = chosen(table, [] if measure is None else [measure])
    known = defaults.measures_of(all_users_rows(table))
    others = [defaults.named(text, known, where="against") for text in against] or beyond_accuracy(known)
    if not others:
        fix = "request measures such as CatalogCoverage@10 or MIUF@10, with train="
        raise NothingToDrawError(Fault("tradeoffs", "no measure beyond accuracy", "at least one", fix))
    panels = [
        _tradeoff(require_rows(tradeoff_rows(table, accuracy, one), with_cutoff(*one)), accuracy, one, baseline, look)
        for one in others
    ]
    return combine_panels(panels, look)


def beyond_accuracy(known: Sequence[MeasureKey], requested: Sequence[MeasureKey] = ()) -> list[MeasureKey]:
    """Choose one cutoff, near 10, of each measure that is not about accuracy."""
    labels = dict.fromkeys(label for label, _ in (requested or known))
    wanted = [label for label in labels if defaults.family_of(label) in defaults.BEYOND_ACCURACY]
    cutoffs = {label: [k for name, k in known if name == label] for label in wanted}
    return [(label, min(ks, key=lambda k: (abs(k - defaults.USUAL_CUTOFF), k))) for label, ks in cutoffs.items() if ks]


def tradeoff_rows(metrics: pa.Table, accuracy: MeasureKey, other: MeasureKey) -> list[dict[str, Any]]:
    """Give a row a model that has a value of both measures."""
    everyone = all_users_rows(metrics)
    of_both = [
        {row[C.MODEL_ID]: row for row in rows_of(everyone, measure=label, k=k) if row[C.VALUE] is not None}
        for label, k in (accuracy, other)
    ]
    places = [decimals_of(list(rows.values())) for rows in of_both]
    both = ((model, of_both[0][model], of_both[1][model]) for model in sorted(of_both[0].keys() & of_both[1].keys()))
    return [
        {
            "model": model,
            "x": mine[C.VALUE],
            "x_low": mine["ci_low"] if mine["ci_low"] is not None else mine[C.VALUE],
            "x_high": mine["ci_high"] if mine["ci_high"] is not None else mine[C.VALUE],
            "y": its[C.VALUE],
            "y_low": its["ci_low"] if its["ci_low"] is not None else its[C.VALUE],
            "y_high": its["ci_high"] if its["ci_high"] is not None else its[C.VALUE],
            "x_text": wording.number(mine[C.VALUE], places[0]),
            "y_text": wording.number(its[C.VALUE], places[1]),
        }
        for model, mine, its in both
    ]


def _tradeoff(
    rows: Sequence[dict[str, Any]], accuracy: MeasureKey, other: MeasureKey, baseline: str | None, look: Look
) -> Chart:
    alt = library()
    encoded = by_model(styles([row["model"] for row in rows], look.palette, baseline=baseline), look)
    names = with_cutoff(*accuracy), with_cutoff(*other)
    x = alt.X("x:Q", scale=alt.Scale(zero=False, padding=16), axis=axis(names[0]))
    y = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=16), axis=axis())
    shown = [alt.Tooltip("model:N"), alt.Tooltip("x_text:N", title=names[0]), alt.Tooltip("y_text:N", title=names[1])]
    data, thin, colour = inline(rows), {"strokeWidth": 1.5, "opacity": 0.6}, encoded["color"]
    x_low, y_low = alt.X("x_low:Q", title=names[0]), alt.Y("y_low:Q", title=None)
    layers = [
        layer("rule", data, thin, x=x_low, x2="x_high:Q", y=y, color=colour),
        layer("rule", data, thin, x=x, y=y_low, y2="y_high:Q", color=colour),
        layer("point", data, {"filled": True, "size": 100, "opacity": 1}, x=x, y=y, tooltip=shown, **encoded),
    ]
    return panel(layers, look, height=POINT_HEIGHT, title=names[1])
