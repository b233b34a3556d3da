"""A figure with its title and caption, shown in a notebook and saved as a file without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import Fault, InvalidCallError
from rankeval_spark.report.figures.charts import INSTALL, Chart, Look, config_of, import_altair, import_extra

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS: Final = (".png", ".svg", ".html", ".json")
VEGA_LITE: Final = "application/vnd.vegalite.v5+json"
"""The newest type that JupyterLab 4 and VS Code draw themselves; these figures read the same in Vega-Lite 5 and 6."""
VEGA_LITE_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"  # a name: no front end fetches it
SCALE: Final = 2.0  # pixels of a PNG for each of the figure
LINE: Final = 84  # characters of a caption's line
MAX_NAMES: Final = 6  # of models or measures in a caption
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
# The policy of the file forbids every request; expressions of Vega are compiled, as everywhere but in a report.
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
style-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body style="background:{background}">
<main id="figure" role="img" aria-label="{label}"></main>
<script>{library}</script>
<script>vegaEmbed("#figure", {spec}, {{renderer: "svg", actions: {{export: true, source: false, compiled: false, \
editor: false}}}});</script>
</body>
</html>
"""

MEASURED_FONT: Final = '"Liberation Sans", Arial, Helvetica, sans-serif'
"""Of SVG, whose room for labels is fixed: these are equally wide here, where it is measured, and where it is shown."""


class Figure:
    """A figure of results: a chart of Altair, a title, and a caption that says what is shown.

    A notebook shows it as SVG; JupyterLab and VS Code draw it themselves, so that marks answer the pointer. Nothing is
    fetched from a network. All three attributes can be set, such as
    ``figure.chart = figure.chart.properties(width=600)``.
    """

    def __init__(self, chart: Chart, title: str, caption: str) -> None:
        self.chart, self.title, self.caption = chart, title, caption

    def __repr__(self) -> str:
        """Return title and caption, and how to save the figure."""
        fix = f'save("figure.png") writes it, also as {wording.listed(ENDINGS[1:])}; chart is the chart of Altair'
        return f"Figure: {self.title}\n{self.caption}\n{fix}"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return the figure as SVG, as a chart for front ends that draw it, and as text; IPython passes None twice."""
        spec = self.to_dict()
        bundle = {
            VEGA_LITE: {**spec, "$schema": VEGA_LITE_SCHEMA},
            "image/svg+xml": convert("vegalite_to_svg", spec),
            "text/plain": repr(self),
        }
        left_out = {*bundle} - {*(include or bundle)} | {*(exclude or ())}
        return {kind: data for kind, data in bundle.items() if kind not in left_out}

    def to_dict(self) -> dict[str, Any]:
        """Return the specification of Vega-Lite, with title and caption."""
        spec: dict[str, Any] = self.chart.to_dict()
        lines = textwrap.wrap(self.caption, LINE)
        spec["title"] = {"text": textwrap.wrap(self.title, LINE), "subtitle": lines, "frame": "bounds"}
        return {**spec, "description": f"{self.title}. {self.caption}"}

    def save(self, path: str | Path, *, scale: float = SCALE) -> None:
        """Write the figure as ``.png``, ``.svg``, ``.html`` or ``.json``, by the ending of the path.

        Parameters
        ----------
        path
            The file, which is replaced. HTML of 0.9 MB is interactive and needs no network; JSON is the specification
            of Vega-Lite.
        scale
            Pixels of a PNG for each pixel of the figure.

        Raises
        ------
        InvalidCallError
            If the path has another ending, or its folder is not there.
        EnvironmentFaultError
            If the extra ``report`` is not installed.
        """
        file = Path(path)
        kind = file.suffix.lower()
        if kind not in ENDINGS:
            expected = f"a name that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
            raise InvalidCallError(
                Fault("figure.save(path)", repr(str(path)), expected, f"such as {file.stem or 'figure'}.png")
            )
        if not file.parent.is_dir():
            raise InvalidCallError(Fault("figure.save(path)", repr(str(path)), "a file in a folder that is there"))
        spec = self.to_dict()
        if kind == ".png":
            file.write_bytes(convert("vegalite_to_png", spec, scale=scale))
        elif kind == ".svg":
            file.write_text(convert("vegalite_to_svg", spec), encoding="utf-8")
        elif kind == ".html":
            background = spec.get("config", {}).get("background", "#ffffff")
            filled = {"title": escape(self.title), "label": escape(spec["description"]), "background": background}
            file.write_text(_PAGE.format(**filled, library=drawing_library(), spec=as_json(spec)), encoding="utf-8")
        else:
            file.write_text(json.dumps(spec, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def combine_panels(panels: Sequence[Any], look: Look, title: str, caption: str) -> Figure:
    """Combine panels below one another to a figure; a page sets the config once for all of its charts."""
    chart = panels[0] if len(panels) == 1 else import_altair().vconcat(*panels, spacing=26)
    if look.width != "container":
        chart.config = config_of(look)  # a method would copy the chart
    return Figure(chart, title, caption)


# ---- what captions say ----------------------------------------------------------------------------------------------


def list_names(names: Iterable[str], noun: str, *, baseline: str | None = None) -> str:
    """Return names as a list, or their number if there are many; the baseline is marked.

    >>> list_names(["als", "popular"], "model", baseline="popular"), list_names("abcdefgh", "model", baseline="a")
    ('als and popular (baseline)', '8 models, the baseline is a')
    """
    found = list(dict.fromkeys(names))
    if len(found) <= MAX_NAMES:
        return wording.listed(f"{name} (baseline)" if name == baseline else name for name in found)
    return wording.count(len(found), noun) + (f", the baseline is {baseline}" if baseline in found else "")


def count_users(numbers: Iterable[int]) -> str:
    """Return numbers of users that the values of a figure are of, as a range.

    >>> count_users([943, 943]), count_users([930, 943]), count_users([1])
    ('943 users', '930 to 943 users', '1 user')
    """
    first, *others = sorted(set(numbers))
    return f"{first:,} to {others[-1]:,} users" if others else wording.count(first, "user")


def intervals_of(table: pa.Table) -> str:
    """Return what the intervals of a frame are called, with their confidence where the frame has it."""
    levels = pc.unique(table["ci_level"]).drop_null().to_pylist() if "ci_level" in table.column_names else []
    return f"{100 * levels[0]:.4g} % intervals" if len(levels) == 1 else "intervals"


def night_of(table: pa.Table) -> str:
    """Return evaluation and night of published rows as a sentence; empty for rows of ``evaluate``."""
    if not {C.EVALUATION, C.EVALUATION_DATE} <= set(table.column_names) or not table.num_rows:
        return ""
    days = pc.min_max(table[C.EVALUATION_DATE]).as_py()
    nights = str(days["min"]) if days["min"] == days["max"] else f"{days['min']} to {days['max']}"
    return f" Evaluation {table[C.EVALUATION][0].as_py()}, {nights}."


# ---- what draws -----------------------------------------------------------------------------------------------------


def convert(name: str, spec: dict[str, Any], **options: object) -> Any:  # noqa: ANN401 - text or bytes
    """Call a function of vl-convert with a specification, in the version of Vega-Lite that Altair writes for."""
    if name == "vegalite_to_svg":
        spec = {**spec, "config": {**spec.get("config", {}), "font": MEASURED_FONT}}
    return getattr(import_converter(), name)(spec, vl_version=vega_lite_version(), **options)


def import_converter() -> Any:  # noqa: ANN401 - an extra
    """Import vl-convert; EnvironmentFaultError without it."""
    return import_extra("vl_convert", Fault("figures", "no vl_convert", "the library that turns them to SVG", INSTALL))


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes for, such as ``6.4``."""
    return ".".join(str(import_altair().SCHEMA_VERSION).lstrip("v").split(".")[:2])


@cache
def drawing_library() -> str:
    """Return Vega-Embed, Vega-Lite and Vega as one script, in the version that Altair writes for."""
    snippet, version = "window.vegaEmbed = vegaEmbed;", vega_lite_version()
    bundle: str = import_converter().javascript_bundle(snippet, vl_version=version)
    # Nothing in it may end its element: the text of an end tag occurs in strings only.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def as_json(value: object) -> str:
    """Return JSON that no HTML parser reads as markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def script_hash(script: str) -> str:
    """Return the hash by which a content security policy admits this script only."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
