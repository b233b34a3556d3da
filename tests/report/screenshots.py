"""Takes the pictures of a report that the docs show: ``python -m tests.report.screenshots REPORT FOLDER``.

Like the tests it drives a Chromium that is there already. The docs do not show ``report-print.png``, the
first sheet of A4 as it is printed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import sync_playwright

from tests.report.conftest import FLAGS, NAMES, Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES: Final[dict[str, dict[str, Any]]] = {
    "report": {"width": 1136, "height": 1500, "section": None, "scheme": "light"},
    "report-comparison": {"width": 1100, "height": 900, "section": "comparison", "scheme": "dark"},
    "report-phone": {"width": 390, "height": 900, "section": None, "scheme": "light"},
    "report-print": {"width": 688, "height": 1017, "section": None, "scheme": "dark", "media": "print"},
}
"""The file of each picture, without its ending, and what it shows."""


def take(browser: Browser, report: Path, folder: Path) -> None:
    """Open the report once for each picture."""
    for name, wanted in PICTURES.items():
        context = browser.new_context(
            viewport={"width": wanted["width"], "height": wanted["height"]}, color_scheme=wanted["scheme"]
        )
        opened = Opened(context.new_page())
        opened.page.goto(report.absolute().as_uri())
        opened.wait_until_drawn()
        if "media" in wanted:
            opened.run("window.dispatchEvent(new Event('beforeprint'))")
            opened.page.emulate_media(media=wanted["media"])
            opened.wait_until_drawn()
        if wanted["section"]:
            opened.run("document.documentElement.style.scrollBehavior = 'auto'")
            opened.run(f"document.getElementById('{wanted['section']}').scrollIntoView()")
        opened.page.screenshot(path=folder / f"{name}.png")
        context.close()


def main(report: str, folder: str) -> None:
    """Take all pictures of a report."""
    found = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        take(browser, Path(report), Path(folder))
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
