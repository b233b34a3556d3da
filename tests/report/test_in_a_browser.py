"""The report as a person uses it: opened, read, clicked, narrowed, printed."""

from __future__ import annotations

import itertools
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark.report.figures import leaderboard
from tests.report.conftest import HOSTILE, LONG
from tests.support import report_tables
from tests.support.report_tables import Plan

if TYPE_CHECKING:
    from tests.report.conftest import Opened, Opener

pytestmark = pytest.mark.browser

PHONE: Final = 375
PAPER: Final = 688  # pixels of a sheet of A4 between its margins
BOARD: Final = "table:has(caption:text-is('Models by measures'))"
CHECKS: Final = "div.table:has(caption:text-is('Checks with nothing to look at'))"
FOLDED: Final = "details:has(caption:text-is('Checks with nothing to look at')) > summary"


def column(opened: Opened, table: str, place: int) -> list[str]:
    """Read the texts of a column, hidden rows left out."""
    cells = opened.page.locator(f"{table} tbody tr:not([hidden]) > :nth-child({place}) > span")
    return [text.removeprefix("best:").strip() for text in cells.all_inner_texts()]


def colour(opened: Opened, selector: str, name: str) -> str:
    """Read a colour as the browser paints it."""
    found: str = opened.page.locator(selector).first.evaluate(f"(one) => getComputedStyle(one)['{name}']")
    return found


# ---- opening it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["usual", "hostile"])
def test_it_opens_with_an_empty_console_and_without_a_network_request(open_page: Opener, name: str) -> None:
    opened = open_page(name).wait_until_drawn()
    assert opened.console == []
    assert opened.dialogs == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1


def test_the_first_screen_answers_whether_it_may_ship(open_page: Opener) -> None:
    opened = open_page()
    headline = opened.page.get_by_role("heading", name="als may ship")
    assert headline.is_visible()
    box = headline.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 400


def test_every_figure_is_drawn_with_marks_and_no_number_is_missing(open_page: Opener) -> None:
    opened = open_page().wait_until_drawn()
    drawn = opened.run(
        "[...document.querySelectorAll('.chart')].map((one) => ({"
        "id: one.id, marks: one.querySelectorAll('svg :is(.mark-symbol, .mark-rect, .mark-line) path').length,"
        "texts: one.querySelectorAll('svg text').length, svg: one.innerHTML}))"
    )
    assert len(drawn) == 6 + 3 + 6 + 4 + 4 + 3 + 3 + 5
    for one in drawn:
        assert one["marks"] >= 2, one["id"]
        assert one["texts"] >= 3, one["id"]
        assert "NaN" not in one["svg"]
        assert "undefined" not in one["svg"]


def test_the_leaderboard_is_drawn_best_first_with_its_numbers(open_page: Opener) -> None:
    opened = open_page().wait_until_drawn()
    texts = opened.page.locator("#leaderboard .chart").first.locator("svg text").all_text_contents()
    board = column(opened, BOARD, 1)
    assert [text for text in texts if text in board] == board
    assert set(column(opened, BOARD, 2)) <= set(texts)


def test_verdicts_have_a_shape_and_a_sign_in_addition_to_a_colour(open_page: Opener) -> None:
    opened = open_page()
    forest = opened.page.locator("#comparison .forests").first
    forest.locator("summary").click()
    said = forest.locator(".said").all_inner_texts()
    assert {text[:1] for text in said} >= {"▲", "○"}
    assert {text[2:].partition(",")[0] for text in said} >= {"better", "undecided"}
    shapes = forest.locator("tbody .plot b").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).clipPath + getComputedStyle(one).borderRadius)"
    )
    assert len(set(shapes)) >= 2


@pytest.mark.parametrize("width", [390, 1400])
def test_a_forest_is_readable_at_every_width_and_on_paper(open_page: Opener, width: int) -> None:
    """No label is cut, and each point lies within its interval, which lies within its plot."""
    opened = open_page(width=width)
    forest = opened.page.locator("#comparison .forests").first
    forest.locator("summary").click()
    for media in ("screen", "print"):
        opened.page.emulate_media(media=media)
        cut = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        assert forest.locator("th:not(.sr *), .said, .number").evaluate_all(cut) == 0
        inside = forest.locator("tbody .plot").evaluate_all(
            "(all) => all.map((one) => [one, one.querySelector('i'), one.querySelector('b')].map("
            "(part) => part.getBoundingClientRect())).every(([plot, line, point]) => plot.left <= line.left + 1 "
            "&& line.right <= plot.right + 1 && line.left <= point.left + 8 && point.right <= line.right + 8)"
        )
        assert inside
    assert forest.locator(".slicing").count() >= 3


@pytest.mark.parametrize("name", ["usual", "failing", "large"])
def test_a_phone_page_is_short(open_page: Opener, name: str) -> None:
    opened = open_page(name, width=390, is_mobile=True).wait_until_drawn()
    assert opened.run("document.documentElement.scrollHeight") <= 8000


def test_on_a_phone_a_button_shows_the_other_figures(open_page: Opener) -> None:
    opened = open_page(width=390, is_mobile=True).wait_until_drawn()
    figures = opened.page.locator("#leaderboard figure")
    assert [one.is_visible() for one in figures.all()] == [True] + [False] * 5
    button = opened.page.locator("#leaderboard .more")
    assert button.inner_text() == "Show 5 more figures"
    button.click()
    opened.wait_until_drawn()
    assert all(one.is_visible() for one in figures.all())
    assert not button.is_visible()


def test_the_navigation_stays_and_marks_the_section_that_is_read(open_page: Opener) -> None:
    opened = open_page(width=390).wait_until_drawn()
    opened.run("document.documentElement.style.scrollBehavior = 'auto'")
    opened.run("document.getElementById('history').scrollIntoView()")
    opened.wait_for("document.querySelector('nav [aria-current]')?.hash === '#history'")
    box = opened.page.locator("nav").bounding_box()
    assert box is not None
    assert box["y"] == 0
    top = opened.run("document.getElementById('history').getBoundingClientRect().top")
    assert top >= box["height"]


def test_a_table_that_is_wider_than_the_page_says_so(open_page: Opener) -> None:
    wide, narrow = open_page(width=1400), open_page(width=390)
    note = "#leaderboard .table:has(caption:text-is('Models by measures')) .wider"
    narrow.page.locator(note).wait_for(state="visible")
    assert not wide.page.locator(note).is_visible()


def test_without_scripts_the_answer_and_the_tables_are_there(open_page: Opener) -> None:
    opened = open_page(java_script_enabled=False)
    assert opened.page.get_by_role("heading", name="als may ship").is_visible()
    assert opened.page.locator(BOARD).is_visible()


def test_a_folded_forest_is_shown_when_it_is_opened(open_page: Opener) -> None:
    opened = open_page()
    folded = opened.page.locator("#comparison details:has(.forests)").first
    assert not folded.locator(".forests").is_visible()
    folded.locator("summary").first.click()
    assert folded.locator(".forest").first.is_visible()
    assert folded.locator(".forest").first.evaluate("(one) => one.getBoundingClientRect().width") > 600


# ---- tables --------------------------------------------------------------------------------------------------------


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order(open_page: Opener) -> None:
    opened = open_page()
    opened.page.locator(f"{BOARD} thead button").nth(1).click()
    means = [float(text) for text in column(opened, BOARD, 2)]
    assert means == sorted(means, reverse=True)
    assert opened.page.locator(f"{BOARD} thead th").nth(1).get_attribute("aria-sort") == "descending"
    opened.page.locator(f"{BOARD} thead button").nth(1).click()
    assert [float(text) for text in column(opened, BOARD, 2)] == means[::-1]
    assert opened.page.locator(f"{BOARD} thead th").nth(1).get_attribute("aria-sort") == "ascending"


def test_the_keyboard_sorts_too_and_only_one_column_says_so(open_page: Opener) -> None:
    opened = open_page()
    opened.page.locator(f"{BOARD} thead button").first.focus()
    opened.page.keyboard.press("Enter")
    assert column(opened, BOARD, 1) == sorted(column(opened, BOARD, 1))
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Space")
    assert opened.page.locator(f"{BOARD} [aria-sort]").count() == 1


def test_counts_are_sorted_as_numbers_and_cells_without_one_come_last(open_page: Opener) -> None:
    opened = open_page()
    opened.page.locator(FOLDED).click()
    opened.page.locator(f"{CHECKS} thead button", has_text="share").click()
    counts = column(opened, CHECKS, 5)
    known = [text for text in counts if text]
    assert counts == [*known, *[""] * (len(counts) - len(known))]
    assert len(known) < len(counts)


def test_words_in_the_filter_leave_the_rows_that_have_them_all(open_page: Opener) -> None:
    opened = open_page()
    opened.page.locator(FOLDED).click()
    field = opened.page.locator(CHECKS).get_by_label("Filter")
    field.fill("HELD_OUT gains")
    rows = column(opened, CHECKS, 3)
    assert rows
    assert all("gains" in text for text in rows)
    assert set(column(opened, CHECKS, 2)) == {"held_out"}
    total = opened.page.locator(f"{CHECKS} tbody tr").count()
    assert opened.page.locator(f"{CHECKS} output").inner_text() == f"{len(rows)} of {total} rows"
    field.fill("")
    assert len(column(opened, CHECKS, 1)) == total


# ---- themes, phones and paper --------------------------------------------------------------------------------------


def test_the_theme_is_that_of_the_system_until_it_is_changed(open_page: Opener) -> None:
    dark, light = open_page(color_scheme="dark"), open_page(color_scheme="light")
    assert colour(dark, "body", "backgroundColor") != colour(light, "body", "backgroundColor")
    before = colour(light, "body", "backgroundColor")
    light.page.get_by_role("button", name="Theme: system").click()
    light.page.get_by_role("button", name="Theme: light").click()
    assert light.page.get_by_role("button", name="Theme: dark").is_visible()
    assert colour(light, "body", "backgroundColor") == colour(dark, "body", "backgroundColor") != before


def test_figures_change_their_colours_with_the_theme_and_are_not_drawn_again(open_page: Opener) -> None:
    opened = open_page(color_scheme="light").wait_until_drawn()
    opened.run("document.querySelector('.chart svg').kept = true")
    label, mark = ".chart svg .role-axis-label text", ".chart svg .mark-symbol path"
    before = colour(opened, label, "fill"), colour(opened, mark, "fill")
    opened.page.locator("#theme").click()
    opened.page.locator("#theme").click()
    after = colour(opened, label, "fill"), colour(opened, mark, "fill")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert opened.run("document.querySelector('.chart svg').kept") is True


def test_the_theme_is_remembered(open_page: Opener) -> None:
    opened = open_page()
    opened.page.locator("#theme").click()
    opened.page.reload()
    assert opened.page.locator("#theme").inner_text() == "Theme: light"


@pytest.mark.parametrize(
    ("name", "width", "media"),
    [
        *((name, PHONE, "screen") for name in ("usual", "failing", "large", "empty", "hostile")),
        *((name, PAPER, "print") for name in ("large", "hostile")),
        ("hostile", 1400, "screen"),
    ],
)
def test_nothing_is_wider_than_the_screen_or_the_paper(open_page: Opener, name: str, width: int, media: Any) -> None:  # noqa: ANN401 - of playwright
    opened = open_page(name, width=width, is_mobile=width == PHONE).wait_until_drawn()
    opened.run(f"window.dispatchEvent(new Event('before{media}'))")
    opened.page.emulate_media(media=media)
    opened.wait_until_drawn()
    assert opened.run("document.documentElement.scrollWidth") == width
    charts = opened.run("[...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect().right)")
    assert all(right <= width for right in charts)


@pytest.mark.parametrize("name", ["tiny", "huge"])
@pytest.mark.parametrize("width", [390, 1400])
def test_numbers_of_any_size_are_whole_on_axes_and_do_not_touch(open_page: Opener, name: str, width: int) -> None:
    """Values from 0.00001 to some 100,000,000: no label is cut, outside of its figure, or on its neighbour."""
    opened = open_page(name, width=width).wait_until_drawn()
    texts = opened.run(
        "[...document.querySelectorAll('.chart')].filter((one) => one.clientWidth).map((one) => {"
        "const box = one.getBoundingClientRect();"
        "return [...one.querySelectorAll('.role-axis')].map((axis) => "
        "[...axis.querySelectorAll('.role-axis-label text')].filter((text) => getComputedStyle(text).opacity !== '0')"
        ".map((text) => { const own = text.getBoundingClientRect(); return {text: text.textContent,"
        "left: own.left - box.left, right: own.right - box.right, top: own.top, start: own.left, end: own.right}; }))})"
    )
    labels = [label for chart in texts for axis in chart for label in axis]
    assert len(labels) > 40
    assert [label["text"] for label in labels if "…" in label["text"]] == []
    assert [label for label in labels if label["left"] < -1 or label["right"] > 1] == []
    for axis in (axis for chart in texts for axis in chart):
        across = sorted(
            (one for one in axis if one["text"] and one["top"] == axis[0]["top"]), key=lambda one: one["start"]
        )
        assert all(one["end"] < after["start"] for one, after in itertools.pairwise(across)), across


def test_figures_follow_the_width_of_the_window(open_page: Opener) -> None:
    opened = open_page(width=1200).wait_until_drawn()
    chart = "#leaderboard .chart svg"
    wide = opened.run(f"document.querySelector('{chart}').getBoundingClientRect().width")
    opened.page.set_viewport_size({"width": PHONE, "height": 800})
    opened.wait_for(f"document.querySelector('{chart}').getAttribute('width') != {wide:.0f}")
    narrow = opened.run(f"document.querySelector('{chart}').getBoundingClientRect().width")
    assert narrow != wide
    assert narrow < PHONE


def test_it_prints_on_white_without_what_is_for_clicking(open_page: Opener, tmp_path: Path) -> None:
    opened = open_page(color_scheme="dark").wait_until_drawn()
    printed = opened.page.pdf(path=tmp_path / "report.pdf", print_background=True)
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") >= 5
    opened.page.emulate_media(media="print")
    assert colour(opened, "body", "backgroundColor") == "rgb(255, 255, 255)"
    for selector in ("nav", "#theme", ".tools"):
        assert not opened.page.locator(selector).first.is_visible()


def test_folded_figures_are_opened_and_drawn_for_paper_and_folded_again(open_page: Opener) -> None:
    opened = open_page().wait_until_drawn()
    n_folded = opened.run("document.querySelectorAll('details:not([open])').length")
    assert n_folded > 3
    opened.run("window.dispatchEvent(new Event('beforeprint'))")
    opened.wait_until_drawn()
    assert opened.run("document.querySelectorAll('details[open]:has(.forests)').length") == 2
    assert opened.run("document.querySelectorAll('details:not([open])').length") == n_folded - 2
    assert opened.run("[...document.querySelectorAll('.chart')].every((one) => one.querySelector('svg'))") is True
    opened.run("window.dispatchEvent(new Event('afterprint'))")
    assert opened.run("document.querySelectorAll('details:not([open])').length") == n_folded


# ---- figures of a notebook -----------------------------------------------------------------------------------------


def test_a_saved_figure_and_a_cell_of_a_notebook_are_drawn_offline(
    open_page: Opener, pages: dict[str, Path], tmp_path: Path
) -> None:
    figure = leaderboard(report_tables.nights(Plan(n_nights=1)).metrics, measures=["nDCG@10"])
    figure.save(tmp_path / "figure.html")
    cell = f"<!DOCTYPE html><title>cell</title><div>{figure._repr_mimebundle_()['image/svg+xml']}</div>"
    (tmp_path / "cell.html").write_text(cell, encoding="utf-8")
    for name in ("figure", "cell"):
        pages[name] = tmp_path / f"{name}.html"
        opened = open_page(name, offline=True)
        opened.page.locator("svg .mark-symbol path").first.wait_for(state="visible")
        assert figure.title in opened.page.locator("svg text").all_text_contents()
        assert opened.console == []
        assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []


# ---- names, tooltips and accessibility ------------------------------------------------------------------------------


def test_hostile_names_are_text_on_axes_in_titles_and_in_tables(open_page: Opener) -> None:
    opened = open_page("hostile").wait_until_drawn()
    assert opened.run("document.querySelectorAll('img, iframe').length") == 0
    assert opened.run("document.scripts.length") == 3
    labels = opened.page.locator("#leaderboard .chart").first.locator("svg text").all_text_contents()
    assert any(label.startswith("<script>") and label.endswith("…") for label in labels)
    assert any(label.startswith("LLLL") and label.endswith("…") for label in labels)
    assert {HOSTILE, LONG, "pop"} == set(column(opened, BOARD, 1))
    titles = opened.page.locator("#users figcaption span").all_inner_texts()
    assert HOSTILE in titles


def test_a_tooltip_shows_the_whole_name_as_text(open_page: Opener) -> None:
    opened = open_page("hostile").wait_until_drawn()
    chart = opened.page.locator("#leaderboard .chart").first
    chart.scroll_into_view_if_needed()
    for place in range(chart.locator("svg .mark-symbol path").count()):
        chart.locator("svg .mark-symbol path").nth(place).hover(force=True)
        tip = opened.page.locator("#tip")
        tip.wait_for(state="visible")
        found = opened.run("[...document.querySelectorAll('#tip span')].map((one) => one.textContent)")
        assert found[0] == "model"
        assert found[1] in {HOSTILE, LONG, "pop"}
        assert set(opened.run("[...document.querySelectorAll('#tip *')].map((one) => one.tagName)")) == {"DIV", "SPAN"}
    assert opened.dialogs == []


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        *(("usual", "light", 1200), ("usual", "dark", 1200), ("failing", "light", PHONE), ("hostile", "dark", PHONE)),
        *(("large", "light", 1200), ("empty", "light", PHONE)),
    ],
)
def test_axe_finds_nothing_in_headings_labels_and_contrast(
    open_page: Opener, name: str, scheme: str, width: int
) -> None:
    """With everything unfolded, on the whole page; the large one as it opens."""
    opened = open_page(name, width=width, color_scheme=scheme, bypass_csp=True).wait_until_drawn()
    opened.run(f"document.querySelectorAll('details').forEach((one) => {{ one.open = {int(name != 'large')}; }})")
    opened.wait_until_drawn()
    axe = resources.files(pytest.importorskip("axe_playwright_python", reason="it comes with the extra `test`"))
    opened.run((axe / "axe.min.js").read_text(encoding="utf-8"))
    found: dict[str, Any] = opened.run("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
    told = [{each["id"]: [node["target"] for node in each["nodes"]][:5]} for each in found["violations"]]
    assert told == [], json.dumps(told, indent=1)
    checked = {
        "heading-order",
        "color-contrast",
        "document-title",
        *(["label"] if name not in ("empty", "large") else []),
    }
    assert {one["id"] for one in found["passes"]} >= checked


def test_every_control_is_reached_by_the_keyboard_and_seen_when_it_is(open_page: Opener) -> None:
    opened = open_page()
    seen = []
    for _ in range(6):
        opened.page.keyboard.press("Tab")
        seen.append(opened.run("document.activeElement.textContent.trim()"))
    assert seen[:2] == ["Skip to the answer", "Theme: system"]
    assert seen[2:6] == [
        "1 of 24",
        "held out in train in held_out: 290, 19 %, more than 0 %.",
        "Rules",
        "Leaderboard",
    ]
    assert opened.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
