"""A Chromium that is there already, and pages to open in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark.report.page import report
from rankeval_spark.report.tables import ReportTables
from tests.support import report_tables
from tests.support.report_tables import Plan, failed, together

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

PATIENCE_SECONDS: Final = 60
NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
HOSTILE: Final = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"`{{ 7 * 7 }}"
LONG: Final = "L" * 1000


@dataclass
class Opened:
    """A page in a tab, with everything that it said and wanted to fetch."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def wait_until_drawn(self) -> Opened:
        """Wait for every figure that is not folded away."""
        self.wait_for(
            "[...document.querySelectorAll('.chart')].every((one) => 'drawn' in one.dataset || !one.clientWidth)"
        )
        return self

    def wait_for(self, condition: str) -> None:
        """Wait until a condition holds; the page's own policy forbids what playwright's function for it does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.run(condition):
            assert time.monotonic() < deadline, f"not so after {PATIENCE_SECONDS} s: {condition}"
            self.page.wait_for_timeout(50)

    def dismiss(self, dialog: Dialog) -> None:
        """Note what a script wanted to say, and go on."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script returns
        """Run a script in the page."""
        return self.page.evaluate(script)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the browser, once."""
    reason = "no playwright: it comes with the extra `test`"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium: install it, such as by apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the pages that tests open: of usual and failing nights, an empty and a large one, and of hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    models = {"als": 0.8, "bpr": 0.6, "item_knn": 0.55, "popular": 0.1}
    usual = together([*(report_tables.night(Plan(models=models), number) for number in (0, 1)), failed(2)])
    hostile = Plan(
        models={HOSTILE: 0.8, LONG: 0.5, "pop": 0.1},
        baseline="pop",
        segments={"country": (HOSTILE, LONG, None)},
        slices=("country",),
        n_nights=1,
    )
    rules: list[dict[str, Any]] = [{"least_gain": 0.1}, {"at_least": 0.3}, {"slice": "country", "margin": 0.001}]
    failing = Plan(models=models, gates=tuple({"measure": "nDCG@10", **rule} for rule in rules), n_nights=2)
    segments = {name: tuple(f"{name} {number}" for number in range(15)) for name in ("city", "device")}
    five = {**models, "two_tower": 0.7}
    large = Plan(models=five, segments=segments, slices=("city", "device"), n_users=900, n_nights=1)
    run = {"evaluation": report_tables.EVALUATION, "evaluation_date": report_tables.FIRST_NIGHT, "run_id": "run-000"}
    nothing = report_tables.published(Plan(), run, reason="no rows for 2026-01-01 in held_out")
    states = {
        "usual": usual,
        "failing": report_tables.nights(failing),
        "large": report_tables.nights(large),
        "empty": ReportTables.without_rows(report_tables.runs(nothing)),
        "hostile": report_tables.nights(hostile),
    }
    found = {name: folder / f"{name}.html" for name in (*states, "tiny", "huge")}
    measures = tuple(f"{name}@{k}" for name in ("DCG", "RR", "MIUF", "ARP") for k in (1, 10))
    plain = report_tables.nights(Plan(measures=measures, gates=(), n_nights=2))
    for name, factor in (("tiny", 1e-4), ("huge", 1e6)):
        found[name].write_text(report(scaled(plain, factor)), encoding="utf-8")
    for name, tables in states.items():
        found[name].write_text(report(tables), encoding="utf-8")
    return found


def scaled(tables: ReportTables, factor: float) -> ReportTables:
    """Multiply every value and interval."""
    wanted = {"value", "ci_low", "ci_high", "delta", "baseline_value", "detectable"}
    changed = {}
    for name in ("metrics", "group_metrics", "comparisons", "user_metrics"):
        table = getattr(tables, name)
        for place, column in enumerate(table.schema):
            if column.name in wanted or (name == "user_metrics" and pa.types.is_floating(column.type)):
                table = table.set_column(place, column, pc.multiply(table[column.name], factor))
        changed[name] = table
    return replace(tables, **changed)


class Opener:
    """Opens pages in contexts of their own."""

    def __init__(self, browser: Browser, pages: dict[str, Path]) -> None:
        self._browser, self._pages = browser, pages
        self._contexts: list[Any] = []

    def __call__(self, name: str = "usual", *, width: int = 1200, **options: Any) -> Opened:  # noqa: ANN401 - of playwright
        """Open a page; options are those of a context, such as ``color_scheme``."""
        context = self._browser.new_context(viewport={"width": width, "height": 800}, **options)
        self._contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.console.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.console.append(f"error: {error}"))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("dialog", opened.dismiss)
        opened.page.goto(self._pages[name].as_uri())
        return opened

    def close(self) -> None:
        """Close all of them."""
        for context in self._contexts:
            context.close()


@pytest.fixture
def open_page(browser: Browser, pages: dict[str, Path]) -> Iterator[Opener]:
    """Give what opens a page; it is closed after the test."""
    opener = Opener(browser, pages)
    yield opener
    opener.close()
