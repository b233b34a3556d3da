"""Figures as they are shown and saved: with a title, a caption and nothing from a network."""

from __future__ import annotations

import json
import re
import struct
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
import vl_convert

from rankeval_spark import evaluate
from rankeval_spark.errors import EnvironmentFaultError, InvalidCallError
from rankeval_spark.report import figures
from rankeval_spark.report.figures.figure import MEASURED_FONT, drawing_library
from tests.support.html import parsed

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.report.notebook import Plots
    from rankeval_spark.report.tables import ReportTables

VEGA_LITE = "application/vnd.vegalite.v5+json"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><script>alert(1)</script>{{&\"'"
WHOM = f"4 users. Models: {HOSTILE} and popular (baseline)."
CAPTIONS = {
    "leaderboard": (
        "nDCG@2 by model",
        f"Mean of nDCG@2 over all users, best first, with 90 % intervals. {WHOM}",
    ),
    "forest": (
        "Differences of nDCG@2 from popular",
        "Mean difference of nDCG@2 on the same users, over all users and by slice, with 90 % intervals. Filled marks "
        "are decided by a p that is adjusted for all tests of their family; the intervals are not adjusted. "
        f"{HOSTILE} − popular; 2 to 4 users in a row.",
    ),
    "curves": (
        "nDCG over the cutoff",
        f"Mean over all users at each cutoff k, a logarithmic axis, with bands of 90 % intervals. {WHOM}",
    ),
    "groups": (
        "nDCG@2 by tier",
        "Mean of nDCG@2 in each group; a bar runs from the lowest to the highest group of a model. Hollow points are "
        "small groups and users of unknown segment, which are not compared. "
        f"2 users a group. {WHOM.removeprefix('4 users. ')}",
    ),
    "tradeoffs": (
        "CatalogCoverage@2 against nDCG@2",
        f"Means over all users, a point a model, with 90 % intervals both ways. {WHOM.removeprefix('4 users. ')}",
    ),
    "pr_curve": (
        "Precision over recall",
        "Interpolated precision at levels of recall: the mean over 4 users with bands of 90 % intervals. No two "
        "models cross. Faint lines are 50 users at most, chosen by a hash of their id; the dashed line is the recall "
        f"that the lists could reach by their length, on average. {WHOM.removeprefix('4 users. ')}",
    ),
    "user_values": (
        "nDCG@1 of single users",
        "Users by their value of nDCG@1, in bins; those at exactly 0 are the hollow bar (25 %, 75 %). Models, with 4 "
        f"users each: {HOSTILE} and popular (baseline).",
    ),
    "user_differences": (
        "Differences of nDCG@2 from popular, by user",
        "Users by their difference of nDCG@2 from popular, in bins; those without a difference are counted, not drawn: "
        f"{HOSTILE}: better for 3, worse for 1, equal for 0 users. Models, with 4 users each: {HOSTILE}.",
    ),
}


@pytest.fixture(scope="module")
def plot() -> Plots:
    """Give figures of four users: one model has the item first for three of them, the other for the fourth."""
    users = ["u1", "u2", "u3", "u4"]
    first = {HOSTILE: "aaab", "popular": "bbba"}
    rows = [
        (model, user, item, rank)
        for model, items in first.items()
        for user, own in zip(users, items, strict=True)
        for rank, item in enumerate((own, "b" if own == "a" else "a"), 1)
    ]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id", "rank"), zip(*rows, strict=True), strict=True)))
    segments = pa.table({"user_id": users, "tier": ["one", "one", "two", "two"]})
    return evaluate(
        log,
        pa.table({"user_id": users, "item_id": ["a"] * 4}),
        measures=["nDCG@1", "nDCG@2", "CatalogCoverage@2", *(f"IPrec@{level / 10:g}" for level in range(11))],
        items=pa.table({"item_id": ["a", "b", "c"]}),
        segments=segments,
        slices=["tier"],
        slicing={"min_slice_size": 1},
        baseline="popular",
        intervals={"confidence": 0.9},
    ).plot


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_notebook_gets_svg_chart_and_text_with_title_and_caption(plot: Plots, name: str) -> None:
    """The chart is the same in Vega-Lite 5, which JupyterLab 4 and VS Code have; Altair writes for the next one."""
    figure = getattr(plot, name)(*["nDCG@1"] * (name == "user_values"))
    assert (figure.title, figure.caption) == CAPTIONS[name]
    bundle = figure._repr_mimebundle_()
    assert list(bundle) == [VEGA_LITE, "image/svg+xml", "text/plain"]
    svg = ElementTree.fromstring(bundle["image/svg+xml"])
    assert f"{figure.title} {figure.caption}" in " ".join(svg.itertext())
    assert {each.get("font-family") for each in svg.findall(".//{*}text")} == {MEASURED_FONT}  # labels have their room
    assert set(re.findall(r"\w+://[^\"]*", bundle["image/svg+xml"])) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert bundle["text/plain"].splitlines()[:2] == [f"Figure: {figure.title}", figure.caption]
    assert 'save("figure.png")' in bundle["text/plain"]
    assert bundle[VEGA_LITE]["$schema"].endswith("/v5.json")
    drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(bundle[VEGA_LITE], vl_version="5.20"))
    assert [one.tag for one in drawn.iter()] == [one.tag for one in svg.iter()]
    assert [*drawn.itertext()] == [*svg.itertext()]


def test_a_front_end_gets_only_the_types_that_it_asks_for(plot: Plots) -> None:
    figure = plot.leaderboard()
    assert figure._repr_mimebundle_(include=None, exclude=None) == figure._repr_mimebundle_()  # as IPython calls it
    assert [*figure._repr_mimebundle_(include={"text/plain"})] == ["text/plain"]
    assert [*figure._repr_mimebundle_(exclude={VEGA_LITE})] == ["image/svg+xml", "text/plain"]


def test_a_saved_picture_is_a_png_of_twice_the_pixels_of_the_svg(plot: Plots, tmp_path: Path) -> None:
    figure = plot.forest()
    figure.save(tmp_path / "forest.svg")
    svg = ElementTree.parse(tmp_path / "forest.svg").getroot()
    for scale, options in ((2, {}), (3, {"scale": 3})):
        figure.save(str(tmp_path / "forest.PNG"), **options)
        written = (tmp_path / "forest.PNG").read_bytes()
        assert written.startswith(b"\x89PNG\r\n\x1a\n")
        size = struct.unpack(">II", written[16:24])
        assert size == pytest.approx([scale * float(svg.attrib[side]) for side in ("width", "height")], abs=scale)


def test_a_saved_page_forbids_every_request_and_names_are_text(plot: Plots, tmp_path: Path) -> None:
    figure = plot.leaderboard()
    figure.save(tmp_path / "board.html")
    page = parsed((tmp_path / "board.html").read_text(encoding="utf-8"))
    library, own = page.all("script")
    assert library.text == drawing_library()
    assert own.text.startswith('vegaEmbed("#figure", {')
    assert HOSTILE not in own.text
    assert not any("src" in one.attributes or "href" in one.attributes for one in page.all("script"))
    (policy,) = (one for one in page.all("meta") if "http-equiv" in one.attributes)
    assert policy.attributes["content"].startswith("default-src 'none'; ")
    assert page.one("main").attributes["aria-label"] == f"{figure.title}. {figure.caption}"


def test_saved_json_is_a_valid_chart_with_what_was_changed(plot: Plots, tmp_path: Path) -> None:
    figure = plot.leaderboard("nDCG@1", "nDCG@2")
    figure.title, figure.caption = "Which model", ""
    figure.chart = figure.chart.properties(spacing=5)
    figure.save(tmp_path / "board.json")
    spec: dict[str, Any] = json.loads((tmp_path / "board.json").read_text(encoding="utf-8"))
    assert [spec["title"][name] for name in ("text", "subtitle")] == [["Which model"], []]
    assert (spec["spacing"], [panel["title"] for panel in spec["vconcat"]]) == (5, ["nDCG@1", "nDCG@2"])
    assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def test_another_ending_or_no_folder_is_an_error_that_says_what_is_expected(plot: Plots, tmp_path: Path) -> None:
    figure = plot.leaderboard()
    expected = r"expected a name that ends in \.png, \.svg, \.html or \.json; such as board\.png"
    for name in ("board.gif", "board", "a.b/board.pdf"):
        with pytest.raises(InvalidCallError, match=expected):
            figure.save(tmp_path / name)
    with pytest.raises(InvalidCallError, match="expected a file in a folder that is there"):
        figure.save(tmp_path / "nowhere" / "board.png")
    assert [*tmp_path.iterdir()] == []


def test_without_vl_convert_the_error_names_the_extra(plot: Plots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    figure = plot.leaderboard()
    for use in (figure._repr_mimebundle_, lambda: figure.save("board.png")):
        with pytest.raises(EnvironmentFaultError, match=r"found no vl_convert; .*; pip install 'altair>="):
            use()


def test_figures_of_a_night_name_it_in_the_caption(nights: ReportTables) -> None:
    (name,) = set(nights.metrics["evaluation"].to_pylist())
    board = figures.leaderboard(nights.metrics, measures=["nDCG@10"])
    history = figures.history(nights.metrics, measures=["nDCG@10"])
    assert board.caption.endswith(f" Evaluation {name}, 2026-01-03.")
    assert history.title == "nDCG@10 over 3 nights"
    assert history.caption.endswith(f" Evaluation {name}, 2026-01-01 to 2026-01-03.")


def test_a_dark_figure_has_a_dark_background_and_light_text(plot: Plots) -> None:
    found = {}
    for whose, plots in {"light": plot, "dark": plot.dark}.items():
        svg = ElementTree.fromstring(plots.leaderboard()._repr_mimebundle_()["image/svg+xml"])
        background = svg.find(f"{SVG}rect")
        title = next(text for text in svg.iter(f"{SVG}text") if "nDCG@2 by model" in "".join(text.itertext()))
        assert background is not None
        found[whose] = background.attrib["fill"], title.attrib["fill"]
    for whose, palette in (("light", figures.NOTEBOOK.palette), ("dark", figures.NOTEBOOK_DARK.palette)):
        assert found[whose] == (palette.surface, palette.ink)
