"""Charts of a page: drawn by the same functions as in a notebook, their titles taken out as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rankeval_spark.report.figures.look import BASELINE_SHAPE, PAGE, NothingToDrawError, library, styles
from rankeval_spark.report.page_parts import FigureView, Swatch

DEFAULT_HEIGHT: Final = 220
_PATHS: Final = {
    "circle": "M8 3.5a4.5 4.5 0 1 0 .01 0Z",
    "square": "M4 4h8v8h-8Z",
    "diamond": "M8 2.2l5.2 5.8l-5.2 5.8l-5.2-5.8Z",
    "triangle-up": "M8 3l5 9.5h-10Z",
    "triangle-down": "M8 13l5-9.5h-10Z",
    "triangle-left": "M3 8l9.5 5v-10Z",
    "triangle-right": "M13 8l-9.5 5v-10Z",
    "cross": "M6.3 3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z",
}
"""Shapes of the charts as paths in a square of 16, for the legend."""


@dataclass(frozen=True)
class Caption:
    """The text next to a figure: its title, a note, and what it shows for those who do not see it."""

    title: str
    summary: str
    note: str = ""
    is_wide: bool = False


class Drawer:
    """Draws the figures of one page and keeps their specifications."""

    def __init__(self) -> None:
        self.specs: dict[str, Any] = {}

    def draw(self, make: Callable[..., Any], *frames: object, caption: Caption, **options: object) -> list[FigureView]:
        """Draw a figure by one of :mod:`rankeval_spark.report.figures`; none where there is nothing to draw."""
        library()
        from altair.utils import schemapi  # noqa: PLC0415 - an extra

        with schemapi.debug_mode(False):  # the tests check each part, which takes a third of the time
            try:
                spec = make(*frames, look=PAGE, **options).to_dict(validate=False)
            except NothingToDrawError:
                return []
        for name in ("$schema", "config", "title"):
            spec.pop(name, None)
        number = f"figure-{len(self.specs) + 1}"
        self.specs[number] = spec
        height = int(spec.get("height") or DEFAULT_HEIGHT)
        return [FigureView(number, caption.title, caption.summary, height, caption.note, caption.is_wide)]


def swatches(models: Sequence[str], *, baseline: str | None) -> list[Swatch]:
    """Describe each model for the legend."""
    styles_by_model = styles(models, PAGE.palette, baseline=baseline)
    return [
        Swatch(
            name,
            style.colour,
            _PATHS[style.shape],
            ",".join(map(str, style.dash)),
            role="baseline" if style.shape == BASELINE_SHAPE else "",
        )
        for name, style in styles_by_model.items()
    ]
