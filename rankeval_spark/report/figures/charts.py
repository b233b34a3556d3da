"""Palettes, the style of each model, and the building blocks of all charts.

No figure relies on colour alone: models differ in shape and dash too, verdicts in shape and filling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, TypeAlias

from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault

Chart: TypeAlias = Any  # A chart of Altair, or a part of one: an extra, whose types are not there for everyone

INSTALL: Final = "pip install 'altair>=5.5,<7' 'vl-convert-python>=1.8' 'jinja2>=3.1'"
"""The libraries of the extra `report` by name: this package need not be on an index."""

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
LABEL_LIMIT: Final = 150  # pixels of a label; a longer name is cut there and is whole in the tooltip and in the tables


class NothingToDrawError(ConfigError):
    """Raised if a figure has no value to show."""

    title = "the figure has nothing to show"


@dataclass(frozen=True)
class Palette:
    """Colours by purpose: hexadecimal in a notebook, variables of the style sheet in a page."""

    ink: str
    muted: str
    line: str
    grid: str
    surface: str
    better: str
    worse: str
    baseline: str
    models: tuple[str, ...]


LIGHT: Final = Palette(
    ink="#1d2733",
    muted="#566273",
    line="#aab3bf",
    grid="#e4e8ed",
    surface="#ffffff",
    better="#11776a",
    worse="#b4431b",
    baseline="#6a7583",
    models=("#2a68b0", "#bd5a12", "#2b8468", "#8450a6", "#927008", "#bb3f76", "#2f86ad"),
)

DARK: Final = Palette(
    ink="#e8ecf1",
    muted="#a6b1bf",
    line="#5d6978",
    grid="#2b333e",
    surface="#191f27",
    better="#56c7b2",
    worse="#f2916a",
    baseline="#a3aebb",
    models=("#79aef0", "#f0a061", "#66cbab", "#c8a2e6", "#d8b957", "#f091b9", "#7fcbea"),
)

COLOURS: Final = ("ink", "muted", "line", "grid", "surface", "better", "worse", "baseline")
# Variables, so that the style sheet alone changes the theme of a page.
PAGE_COLOURS: Final = Palette(
    **{name: f"var(--{name})" for name in COLOURS},
    models=tuple(f"var(--model-{number})" for number in range(1, len(LIGHT.models) + 1)),
)

SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-left")
DASHES: Final = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2), (1, 3), (12, 3))
BASELINE_SHAPE: Final = "triangle-right"
BASELINE_DASH: Final = (4, 4)


@dataclass(frozen=True)
class Look:
    """The place where a figure is shown."""

    palette: Palette
    width: int | Literal["container"]  # pixels of a panel, or the width of its container
    has_legend: bool  # in each figure; a page has one for all


NOTEBOOK: Final = Look(LIGHT, 440, has_legend=True)
NOTEBOOK_DARK: Final = Look(DARK, 440, has_legend=True)
PAGE: Final = Look(PAGE_COLOURS, "container", has_legend=False)


@dataclass(frozen=True)
class Style:
    """Colour, shape and dash of one model in every figure."""

    colour: str
    shape: str
    dash: tuple[int, ...]


def styles(models: Sequence[str], palette: Palette, *, baseline: str | None = None) -> dict[str, Style]:
    """Return the style of each model, by name, so that reports of two nights look alike.

    The baseline is grey. With more models than colours, a colour returns with another shape.

    >>> {name: (own.shape, own.dash) for name, own in styles(["b", "a", "pop"], LIGHT, baseline="pop").items()}
    {'a': ('circle', (1, 0)), 'b': ('square', (7, 3)), 'pop': ('triangle-right', (4, 4))}
    """
    n_colours, styles_by_model = len(palette.models), {}
    for place, name in enumerate(sorted(set(models) - {baseline})):
        turn = place + place // n_colours
        colour = palette.models[place % n_colours]
        styles_by_model[name] = Style(colour, SHAPES[turn % len(SHAPES)], DASHES[turn % len(DASHES)])
    if baseline is not None and baseline in models:
        styles_by_model[baseline] = Style(palette.baseline, BASELINE_SHAPE, BASELINE_DASH)
    return styles_by_model


def import_altair() -> Chart:
    """Import Altair, which only figures need; EnvironmentFaultError without it."""
    return import_extra("altair", Fault("figures", "no Altair", "the library that draws them", INSTALL))


def import_extra(name: str, missing: Fault) -> Chart:
    """Import a library of the extra ``report``; without it EnvironmentFaultError of the fault ``missing``."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EnvironmentFaultError(missing) from error


def encode_models(styles_by_model: Mapping[str, Style], look: Look, *, has_axis: bool = False) -> dict[str, Any]:
    """Encode models by colour and shape, with one legend, or none if an axis names the models."""
    alt, names = import_altair(), list(styles_by_model)
    legend = None
    if look.has_legend and not has_axis:
        legend = alt.Legend(title=None, orient="top", symbolSize=90, symbolOpacity=1, columns=4)
    colours, shapes = ([getattr(style, what) for style in styles_by_model.values()] for what in ("colour", "shape"))
    return {
        "color": alt.Color("model:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        "shape": alt.Shape("model:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
    }


class _Rows:
    """Rows that Altair does not copy: it copies a list of values at each property that is set."""

    _schema: ClassVar = {"type": "array"}

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def to_dict(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return self._rows


def to_chart_data(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Return rows as data of a chart, numbers with six digits: no eye sees more, and the file is half as large."""

    def short(value: object) -> object:
        return float(f"{value:.6g}") if isinstance(value, float) else value

    return import_altair().Data(values=_Rows([{name: short(value) for name, value in row.items()} for row in rows]))


def layer(kind: str, rows: Chart, options: Mapping[str, Any], **channels: Chart) -> Chart:
    """Build one layer of a figure; a channel is a field as text, a position as a dictionary, or one of Altair.

    Altair's own chain of ``mark_...().encode()`` copies the chart at each step, which takes half of a report's time.
    """
    alt = import_altair()
    encoded = {}
    for name, value in channels.items():
        channel = f"{name[0].upper()}{name[1:]}"
        if isinstance(value, str):
            encoded[name] = getattr(alt, channel)(value)
        elif isinstance(value, dict):
            encoded[name] = getattr(alt, f"{channel}Value")(value["value"])
        else:
            encoded[name] = value
    data = to_chart_data(rows) if isinstance(rows, Sequence) else rows
    return alt.Chart(data, mark=alt.MarkDef(type=kind, **options), encoding=alt.FacetedEncoding(**encoded))


def tooltips(**titles: str) -> list[Any]:
    """Return fields of a tooltip with their titles; ``users`` and ``count`` are numbers."""
    number = {"type": "quantitative", "format": ","}
    kinds = {name: number if name in ("users", "count") else {"type": "nominal"} for name in titles}
    return [import_altair().Tooltip(name, title=title, **kinds[name]) for name, title in titles.items()]


def panel(layers: Sequence[Any], look: Look, *, height: int, title: str) -> Chart:
    """Combine layers on top of one another."""
    return import_altair().layer(*layers, title=title, width=look.width, height=height)


def require_rows(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Return rows if there is one. NothingToDrawError: no model has the measure, or no user has a value."""
    if not rows:
        raise NothingToDrawError(Fault(what, "no value: not computed, or undefined for every user", "at least one"))
    return rows


def axis(title: str | None = None, **options: Chart) -> Chart:
    """Build an axis with few ticks."""
    return import_altair().Axis(**{"title": title, "tickCount": 5, **options})


def config_of(look: Look) -> dict[str, Any]:
    """Return the config of all charts: font, quiet axes, no frame, and in a page no background."""
    palette = look.palette
    return {
        "font": FONT,
        "background": "transparent" if look.width == "container" else palette.surface,
        "padding": {"left": 2, "top": 4, "right": 14, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"} if look.width == "container" else {"type": "pad"},
        "view": {"stroke": None},
        "axis": {
            "labelColor": palette.muted,
            "titleColor": palette.muted,
            "domainColor": palette.line,
            "tickColor": palette.line,
            "gridColor": palette.grid,
            "labelFontSize": 12,
            "labelLimit": LABEL_LIMIT,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "tickSize": 4,
            "labelPadding": 5,
            "labelOverlap": "parity",
            "labelSeparation": 8,
            "titlePadding": 8,
        },
        "axisX": {"labelBound": 12},  # pixels beyond the axis: the padding has room for them
        "axisY": {"domain": False, "ticks": False},
        "title": {
            "color": palette.ink,
            "fontSize": 13,
            "fontWeight": 600,
            "anchor": "start",
            "frame": "group",
            "offset": 10,
            "subtitleColor": palette.muted,
            "subtitleFontSize": 11.5,
            "subtitlePadding": 5,
            "subtitleLineHeight": 15,
            "limit": 560,
        },
        "legend": {"labelColor": palette.ink, "labelFontSize": 12, "labelLimit": LABEL_LIMIT, "padding": 0},
    }
