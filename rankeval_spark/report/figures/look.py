"""How figures look: two palettes, a colour, shape and dash for each model, and what all charts share.

No figure says anything by colour alone: models differ in shape and dash too, verdicts in shape and filling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, TypeAlias

from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault

Chart: TypeAlias = Any
"""A chart of Altair, or a part of one: an extra, whose types are not there for everyone."""

INSTALL: Final = "pip install 'altair>=5.5,<7' 'vl-convert-python>=1.8' 'jinja2>=3.1'"
"""What the extra `report` is, by names that an index has: this package need not be on one."""

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
LABEL_LIMIT: Final = 150
"""Pixels of a label; a longer name is cut there and is whole in the tooltip and in the tables."""


class NothingToDrawError(ConfigError):
    """There is no value that a figure could show."""

    title = "the figure has nothing to show"


@dataclass(frozen=True)
class Palette:
    """Colours by what they are for: hexadecimal in a notebook, variables of the style sheet in a page."""

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

PAGE_COLOURS: Final = Palette(
    ink="var(--ink)",
    muted="var(--muted)",
    line="var(--line)",
    grid="var(--grid)",
    surface="var(--surface)",
    better="var(--better)",
    worse="var(--worse)",
    baseline="var(--baseline)",
    models=tuple(f"var(--model-{number})" for number in range(1, len(LIGHT.models) + 1)),
)
"""A theme is changed by the style sheet alone: charts are not drawn again for it."""

SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-left")
DASHES: Final = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2), (1, 3), (12, 3))
BASELINE_SHAPE: Final = "triangle-right"
BASELINE_DASH: Final = (4, 4)


@dataclass(frozen=True)
class Look:
    """Where a figure is shown.

    Attributes
    ----------
    width : int or "container"
        Pixels of a panel, or the width of the place that it is put into.
    has_legend : bool
        Whether each figure explains the models; a page does so once.
    """

    palette: Palette
    width: int | Literal["container"]
    has_legend: bool


NOTEBOOK: Final = Look(LIGHT, 440, has_legend=True)
NOTEBOOK_DARK: Final = Look(DARK, 440, has_legend=True)
PAGE: Final = Look(PAGE_COLOURS, "container", has_legend=False)


@dataclass(frozen=True)
class Style:
    """How one model is drawn everywhere."""

    colour: str
    shape: str
    dash: tuple[int, ...]


def styles(models: Sequence[str], palette: Palette, *, baseline: str | None = None) -> dict[str, Style]:
    """Give each model its colour, shape and dash, by name, so that reports of two nights look alike.

    The baseline is grey; with more models than colours, colours come again with another shape.

    Examples
    --------
    >>> {name: (own.shape, own.dash) for name, own in styles(["b", "a", "pop"], LIGHT, baseline="pop").items()}
    {'a': ('circle', (1, 0)), 'b': ('square', (7, 3)), 'pop': ('triangle-right', (4, 4))}
    """
    others = sorted(set(models) - {baseline})
    n_colours, n_shapes = len(palette.models), len(SHAPES)
    styles_by_model = {
        name: Style(
            palette.models[place % n_colours],
            SHAPES[(place + place // n_colours) % n_shapes],
            DASHES[(place + place // n_colours) % len(DASHES)],
        )
        for place, name in enumerate(others)
    }
    if baseline is not None and baseline in models:
        styles_by_model[baseline] = Style(palette.baseline, BASELINE_SHAPE, BASELINE_DASH)
    return styles_by_model


def library() -> Chart:
    """Import Altair, which only figures need; as :func:`extra`."""
    return extra("altair", Fault("figures", "no Altair", "the library that draws them", INSTALL))


def extra(name: str, missing: Fault) -> Chart:
    """Import a library of the extra ``report``.

    Raises
    ------
    EnvironmentFaultError
        The fault ``missing``, if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise EnvironmentFaultError(missing) from error


def by_model(styles_by_model: Mapping[str, Style], look: Look, *, has_axis: bool = False) -> dict[str, Any]:
    """Encode models by colour and shape; their legend is one, and none where an axis names them."""
    alt, names = library(), list(styles_by_model)
    legend = None
    if look.has_legend and not has_axis:
        legend = alt.Legend(title=None, orient="top", symbolSize=90, symbolOpacity=1, columns=4)
    colours, shapes = ([getattr(one, what) for one in styles_by_model.values()] for what in ("colour", "shape"))
    return {
        "color": alt.Color("model:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        "shape": alt.Shape("model:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
    }


def dashes(styles_by_model: Mapping[str, Style]) -> Chart:
    """Encode models by the dash of their lines."""
    alt = library()
    ranges = [list(one.dash) for one in styles_by_model.values()]
    return alt.StrokeDash("model:N", scale=alt.Scale(domain=list(styles_by_model), range=ranges), legend=None)


class _Rows:
    """Rows that Altair takes as they are: it copies a chart for each thing that is set, with all values in a list."""

    _schema: ClassVar = {"type": "array"}

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def to_dict(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return self._rows


def inline(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Put rows into the chart as plain JSON."""
    return library().Data(values=_Rows([{name: _short(value) for name, value in row.items()} for row in rows]))


def _short(value: object) -> object:
    """Keep six digits of a number: no eye sees more, and the file is half as large."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def layer(kind: str, rows: Chart, options: Mapping[str, Any], **channels: Chart) -> Chart:
    """Make one layer of a figure: a kind of mark, its data and options, and what its channels show.

    A channel that is a text is a field with its type; in a dictionary it is a place that does not depend on the data.
    Altair's own chain of ``mark_...().encode()`` copies the chart at each step, which takes half of a report's time.
    """
    alt = library()
    data = inline(rows) if isinstance(rows, Sequence) else rows
    encoded = {name: _channel(name, value) for name, value in channels.items()}
    mark = alt.MarkDef(type=kind, **options)
    return alt.Chart(data, mark=mark, encoding=alt.FacetedEncoding(**encoded))


def _channel(name: str, value: Chart) -> Chart:
    alt = library()
    if isinstance(value, str):
        return getattr(alt, f"{name[0].upper()}{name[1:]}")(value)
    if isinstance(value, dict):
        return getattr(alt, f"{name[0].upper()}{name[1:]}Value")(value["value"])
    return value


def panel(layers: Sequence[Any], look: Look, *, height: int, title: str) -> Chart:
    """Put layers on top of one another."""
    return library().layer(*layers, title=title, width=look.width, height=height)


def require_rows(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Return rows of which there is at least one.

    Raises
    ------
    NothingToDrawError
        If there is none: no model has the measure, or it is undefined for every user.
    """
    if not rows:
        raise NothingToDrawError(Fault(what, "no value: not computed, or undefined for every user", "at least one"))
    return rows


def axis(title: str | None = None, **options: Chart) -> Chart:
    """Make an axis with few ticks."""
    return library().Axis(**{"title": title, "tickCount": 5, **options})


def config_of(look: Look) -> dict[str, Any]:
    """Set what all charts share: font, quiet axes, no frame, in a page no background of their own."""
    palette = look.palette
    return {
        "font": FONT,
        "background": "transparent" if look.width == "container" else palette.surface,
        "padding": {"left": 2, "top": 4, "right": 6, "bottom": 2},
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
            "titlePadding": 8,
        },
        "axisY": {"domain": False, "ticks": False},
        "title": {
            "color": palette.ink,
            "fontSize": 13,
            "fontWeight": 600,
            "anchor": "start",
            "frame": "group",
            "offset": 10,
            "limit": 420,
        },
        "legend": {"labelColor": palette.ink, "labelFontSize": 12, "labelLimit": LABEL_LIMIT, "padding": 0},
    }


def combine_panels(panels: Sequence[Any], look: Look) -> Chart:
    """Put panels below one another and set what they share; a page sets that itself, once for all of its charts."""
    chart = panels[0] if len(panels) == 1 else library().vconcat(*panels, spacing=26)
    if look.width != "container":
        chart.config = config_of(look)  # a method that configures would copy the chart
    return chart
