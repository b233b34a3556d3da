"""One file that holds the whole report: text, figures, tables, styles and scripts, and no address."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault
from rankeval_spark.report import scripts, sections, wording
from rankeval_spark.report.figures.look import DARK, INSTALL, LIGHT, PAGE, Palette, config_of, extra, library
from rankeval_spark.report.gate_summary import answer
from rankeval_spark.report.night import Night
from rankeval_spark.report.page_charts import Drawer, swatches
from rankeval_spark.report.page_parts import Page

if TYPE_CHECKING:
    from rankeval_spark.report.tables import ReportTables

_IN_CODE: Final = re.compile(r"`([^`]+)`")
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def report(
    tables: ReportTables, *, evaluation: str | None = None, day: date | None = None, baseline: str | None = None
) -> str:
    """Write the report of a night as HTML.

    Parameters
    ----------
    evaluation : str, optional
        Which one; needed where there are several.
    day : date, optional
        Evaluation date; the newest that was published where left out.
    baseline : str, optional
        Model that others are held against; that of the config where left out.
    """
    bundle = scripts.started()
    night = Night.of(tables, evaluation=evaluation, day=day, baseline=baseline)
    drawer = Drawer()
    page = page_of(night, drawer)
    return render(page, drawer.specs, bundle.result())


def require_extra() -> None:
    """Refuse at once what would be refused after all rows were read.

    Raises
    ------
    EnvironmentFaultError
        If a library of the extra ``report`` is not installed.
    """
    library()
    _engine()
    scripts.converter()


def page_of(night: Night, drawer: Drawer) -> Page:
    """Combine what the page shows."""
    day = night.day.isoformat()
    recorded = night.run["recorded_at"]
    written = f"{recorded:%Y-%m-%d %H:%M} UTC" if recorded is not None else ""
    subtitle = f"Evaluation date {day}, run {night.run[C.RUN_ID]}, recorded {written}"
    return Page(
        title=f"{night.evaluation}, {day}",
        evaluation=night.evaluation,
        day=day,
        subtitle=subtitle,
        answer=answer(night),
        sections=sections.all_sections(night, drawer),
        swatches=swatches(night.models, baseline=night.baseline),
        footer=f"rankeval-spark {night.run['code_version']}",
    )


def render(page: Page, specs: dict[str, Any], bundle: str) -> str:
    """Fill the template; every text is escaped, whatever it holds, but our own styles, scripts and JSON."""
    jinja2 = _engine()
    own = scripts.own("page.js")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(scripts.own),
    )
    environment.filters["parts"] = parts
    environment.filters["count"] = wording.count
    template = environment.get_template("page.html")
    text: str = template.render(
        page=page,
        style=f"{_variables()}\n{scripts.own('page.css')}",
        data=as_json({"config": {**config_of(PAGE), "aria": False}, "figures": specs}),
        library=bundle,
        script=own,
        admitted=f"{scripts.admitted(bundle)} {scripts.admitted(own)}",
    )
    return text


def _engine() -> Any:  # noqa: ANN401 - a module
    return extra("jinja2", Fault("report", "no jinja2", "the engine of the page", INSTALL))


def parts(text: str) -> list[tuple[bool, str]]:
    """Split a text of ours at its `code`: whether each part is code, and the part.

    Examples
    --------
    >>> parts("set `slices` first")
    [(False, 'set '), (True, 'slices'), (False, ' first')]
    """
    return [(place % 2 == 1, part) for place, part in enumerate(_IN_CODE.split(text)) if part]


def as_json(value: object) -> str:
    """Write JSON that no parser of HTML takes for markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def _variables() -> str:
    """Write both palettes as variables; the dark one where the reader, or their system, wants it."""
    light, dark = (_declared(palette) for palette in (LIGHT, DARK))
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}color-scheme:dark}}}}"
    )


def _declared(palette: Palette) -> str:
    names = ("ink", "muted", "line", "grid", "surface", "better", "worse", "baseline")
    single = "".join(f"--{name}:{getattr(palette, name)};" for name in names)
    return single + "".join(f"--model-{place}:{colour};" for place, colour in enumerate(palette.models, 1))
