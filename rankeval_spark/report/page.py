"""The whole report in one file: text, figures, tables, styles and scripts, and no address."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib import resources
from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import Fault
from rankeval_spark.report.figures.charts import (
    COLOURS,
    DARK,
    INSTALL,
    LIGHT,
    PAGE,
    config_of,
    import_altair,
    import_extra,
)
from rankeval_spark.report.figures.figure import as_json, drawing_library, import_converter, script_hash
from rankeval_spark.report.night import Night, answer
from rankeval_spark.report.page_parts import Drawer, swatches
from rankeval_spark.report.sections import BUILDERS, SHORT

if TYPE_CHECKING:
    from rankeval_spark.report.tables import ReportTables

_ENGINE: Final = ("jinja2", Fault("report", "no jinja2", "the engine of the page", INSTALL))
_IN_CODE: Final = re.compile(r"`([^`]+)`")


def report(
    tables: ReportTables,
    *,
    evaluation: str | None = None,  # required if there are several
    day: date | None = None,  # default: the newest published date
    baseline: str | None = None,  # default: that of the config
) -> str:
    """Return the report of a night as HTML."""
    pool = ThreadPoolExecutor(max_workers=1)
    drawing = pool.submit(drawing_library)  # takes a second, in which the page is built
    pool.shutdown(wait=False)
    night = Night(tables, evaluation=evaluation, day=day, baseline=baseline)
    drawer, date_ = Drawer(night.baseline), night.day.isoformat()
    sections = {id_: (title, build(night, drawer)) for id_, (title, build) in BUILDERS.items()}
    recorded = night.run["recorded_at"]
    written = f"{recorded:%Y-%m-%d %H:%M} UTC" if recorded is not None else ""
    page = {
        "title": f"{night.evaluation}, {date_}",
        "evaluation": night.evaluation,
        "day": date_,
        "subtitle": f"Evaluation date {date_}, run {night.run[C.RUN_ID]}, recorded {written}",
        "answer": answer(night),
        "sections": {id_: built for id_, built in sections.items() if built[1].blocks},
        "missing": {title: one.hint for title, one in sections.values() if night.metrics.num_rows and not one.blocks},
        "short": SHORT,
        "swatches": swatches(night.models, baseline=night.baseline),
        "footer": f"rankeval-spark {night.run['code_version']}",
    }
    jinja2, bundle, script = import_extra(*_ENGINE), drawing.result(), read_own_file("page.js")
    options = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(autoescape=True, loader=jinja2.FunctionLoader(read_own_file), **options)
    environment.filters |= {"parts": _split_code, "count": wording.count}
    text: str = environment.get_template("page.html").render(  # escapes all but our own styles, scripts and JSON
        page=page,
        style=f"{_palette_variables()}\n{read_own_file('page.css')}",
        data=as_json({"config": {**config_of(PAGE), "aria": False}, "figures": drawer.specs}),
        library=bundle,
        script=script,
        admitted=f"{script_hash(bundle)} {script_hash(script)}",
    )
    return text


def require_extra() -> None:
    """Raise EnvironmentFaultError if a library of the extra ``report`` is missing, before any row is read."""
    import_altair()
    import_extra(*_ENGINE)
    import_converter()


def _split_code(text: str) -> list[tuple[bool, str]]:
    """Split a text of ours at its `code`: whether each part is code, and the part.

    >>> _split_code("set `slices` first")
    [(False, 'set '), (True, 'slices'), (False, ' first')]
    """
    return [(place % 2 == 1, part) for place, part in enumerate(_IN_CODE.split(text)) if part]


def _palette_variables() -> str:
    """Return both palettes as CSS variables. The dark one applies if the reader or their system wants it."""
    light, dark = (
        "".join(f"--{name}:{getattr(palette, name)};" for name in COLOURS)
        + "".join(f"--model-{place}:{colour};" for place, colour in enumerate(palette.models, 1))
        for palette in (LIGHT, DARK)
    )
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}color-scheme:dark}}}}"
    )


def read_own_file(name: str) -> str:
    """Read a file that is shipped with the page."""
    return resources.files("rankeval_spark.report").joinpath(name).read_text(encoding="utf-8")
