"""Figures from results: those of an evaluation, and the same from frames of any library."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

from rankeval_spark import ResultTable, evaluate
from rankeval_spark.errors import ConfigError, EnvironmentFaultError, InvalidCallError
from rankeval_spark.report import figures
from rankeval_spark.report.figures.charts import NothingToDrawError
from rankeval_spark.report.tables import keep
from tests.support.html import parsed
from tests.support.logs import Logs
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankeval_spark import Evaluation
    from rankeval_spark.report.tables import ReportTables

MEASURES = ["nDCG@3", "nDCG@5", "P@3", "CatalogCoverage@5", *(f"IPrec@{level / 10:g}" for level in range(11))]
LOGS = Logs.make(seed=7)


def evaluated(**options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate a small log."""
    tables = LOGS.tables()
    items = pa.table({"item_id": [f"{number:03}" for number in range(30)]})
    given = {
        "measures": MEASURES,
        "segments": tables.segments,
        "slices": ["tier"],
        "baseline": "popular",
        "items": items,
    }
    return evaluate(tables.recommendations, tables.held_out, **sections(**{**given, "min_slice_size": 5, **options}))


@pytest.fixture(scope="module")
def result() -> Evaluation:
    """Give an evaluation, only to be read."""
    return evaluated()


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("leaderboard", {"rule", "point", "text"}),
        ("forest", {"rule", "point"}),
        ("curves", {"area", "line", "point"}),
        ("groups", {"rule", "point", "text"}),
        ("tradeoffs", {"rule", "point"}),
        ("pr_curve", {"line", "area", "point", "rule", "text"}),
        ("user_values", {"bar", "text"}),
        ("user_differences", {"bar", "rule"}),
    ],
)
def test_each_figure_is_a_valid_chart(result: Evaluation, name: str, marks: set[str]) -> None:
    spec = getattr(result.plot, name)().chart.to_dict(validate=True)
    found = {layer["mark"]["type"] for panel in spec.get("vconcat", [spec]) for layer in _layers(panel)}
    assert found == marks


def _layers(panel: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for layer in panel["layer"] for each in (_layers(layer) if "layer" in layer else [layer])]


def _domains(panel: dict[str, Any], channel: str) -> set[tuple[float, ...]]:
    scales = [layer["encoding"].get(channel, {}).get("scale", {}) for layer in _layers(panel)]
    return {tuple(scale["domain"]) for scale in scales if "domain" in scale}


def _rows(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for panel in panels for layer in _layers(panel) for row in layer["data"]["values"]]


@pytest.mark.parametrize("name", ["user_values", "user_differences"])
def test_the_bars_of_all_models_have_the_same_axes(result: Evaluation, name: str) -> None:
    spec = getattr(result.plot, name)().chart.to_dict()
    panels = spec.get("vconcat", [spec])
    alone = getattr(result.plot, name)(models=[panels[0]["title"].partition(":")[0]]).chart.to_dict()
    for channel in ("x", "y"):
        (shared,) = set().union(*(_domains(panel, channel) for panel in panels))
        assert _domains(alone, channel) == {shared}
    largest = max(row["share"] for row in _rows(panels) if "share" in row)
    assert shared == pytest.approx((0, largest), rel=0, abs=1e-6)  # what is drawn has six digits


ENDS = ("low", "high", "value", "precision", "x_low", "x_high")


@pytest.mark.parametrize("n_users", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["leaderboard", "curves", "pr_curve", "forest", "tradeoffs", "groups"])
def test_figures_of_few_users_stay_in_the_range_of_the_measure(name: str, n_users: int) -> None:
    """Differences of values in [0, 1] lie in [-1, 1]; an area of a frame from elsewhere is cut off at its panel."""
    users = [f"u{number}" for number in range(n_users)]
    items = "abcdef"
    rows = [
        (model, user, items[(place * (1 + turn) + number) % 6], -float(place))
        for turn, model in enumerate(("popular", "als"))
        for number, user in enumerate(users)
        for place in range(5)
    ]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id", "score"), zip(*rows, strict=True), strict=True)))
    held_out = pa.table({"user_id": users * 2, "item_id": ["a"] * n_users + ["d"] * n_users})
    segments = pa.table({"user_id": users, "tier": [("one", "two")[number % 2] for number in range(n_users)]})
    given = {"segments": segments, "slices": ["tier"], "min_slice_size": 1, "baseline": "popular"}
    catalogue = pa.table({"item_id": list(items)})
    plot = evaluate(log, held_out, **sections(measures=MEASURES, items=catalogue, **given)).plot
    spec = getattr(plot, name)().chart.to_dict(validate=True)
    ends = [row[end] for row in _drawn(spec) for end in ENDS if row.get(end) is not None]
    assert ends
    assert all((-1 if name == "forest" else 0) <= end <= 1 for end in ends)
    if name == "pr_curve":
        areas = [
            layer["mark"] for panel in spec["vconcat"] for layer in panel["layer"] if layer["mark"]["type"] == "area"
        ]
        assert [mark["clip"] for mark in areas] == [True, True, True]


def _drawn(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the rows of a chart and of its parts."""
    yield from spec.get("data", {}).get("values", [])
    for part in (*spec.get("vconcat", []), *spec.get("layer", [])):
        yield from _drawn(part)


def test_the_groups_of_all_slicings_have_the_same_axis() -> None:
    """Tier and region are sliced; the axis goes from the least to the greatest mean of any of their groups."""
    tables = LOGS.tables()
    regions = pa.array(["north" if number % 3 else "south" for number in range(tables.segments.num_rows)])
    drawn = evaluated(segments=tables.segments.append_column("region", regions), slices=["tier", "region"])
    spec = drawn.plot.groups().chart.to_dict()
    (shared,) = set().union(*(_domains(panel, "x") for panel in spec["vconcat"]))
    means = [row["value"] for row in _rows(spec["vconcat"]) if "value" in row]
    assert shared == pytest.approx((min(means), max(means)), rel=0, abs=1e-6)  # what is drawn has six digits
    assert _domains(drawn.plot.groups(slices=["region"]).chart.to_dict(), "x") == {shared}


def test_a_history_is_a_valid_chart_of_published_metrics(nights: ReportTables) -> None:
    marks = figures.Marks(
        bounds=[{"date": "2026-01-02", "bound": 0.1, "text": "at least 0.1", "rule": "1"}],
        redefined={date(2026, 1, 2): "was a; is b"},
        failures={date(2026, 1, 3): "no rows"},
    )
    figure = figures.history(nights.metrics, measures=["nDCG@10"], baseline="popular", marks=lambda _: marks)
    spec = figure.chart.to_dict(validate=True)
    assert [layer["mark"]["type"] for layer in spec["layer"]] == [
        *("line", "text", "area", "line", "point", "rule", "text", "text"),
    ]


def test_a_history_needs_dates(result: Evaluation) -> None:
    with pytest.raises(ConfigError, match="a frame without evaluation_date; expected published metrics"):
        figures.history(result.metrics)


@pytest.mark.parametrize("convert", [ResultTable.to_pandas, pl.from_arrow, lambda table: table.to_batches()[0]])
def test_frames_of_every_library_give_the_same_chart(result: Evaluation, convert: Any) -> None:  # noqa: ANN401 - a frame
    metrics = result.metrics.combine_chunks()
    wanted = figures.leaderboard(metrics, measures=["nDCG@3"]).chart.to_dict()
    assert figures.leaderboard(convert(metrics), measures=["nDCG@3"]).chart.to_dict() == wanted


def test_of_several_nights_the_newest_is_drawn(nights: ReportTables) -> None:
    newest = keep(nights.metrics, evaluation_date=date(2026, 1, 3))
    drawn = [figures.leaderboard(table, measures=["nDCG@10"]).chart.to_dict() for table in (nights.metrics, newest)]
    assert drawn[0] == drawn[1]


def test_a_chart_of_several_measures_has_a_panel_each(result: Evaluation) -> None:
    spec = result.plot.leaderboard("nDCG@5", "P@3").chart.to_dict()
    assert [panel["title"] for panel in spec["vconcat"]] == ["nDCG@5", "P@3"]


def test_a_dark_notebook_has_its_own_colours(result: Evaluation) -> None:
    dark = result.plot.dark.leaderboard().chart.to_dict()
    assert dark["config"]["background"] == figures.NOTEBOOK_DARK.palette.surface


def test_a_frame_that_is_no_result_says_which_columns_it_lacks(result: Evaluation) -> None:
    with pytest.raises(ConfigError, match="metrics: found a frame without slice, measure, k, value"):
        figures.leaderboard(result.checks.append_column("model_id", result.checks["input"]))
    with pytest.raises(ConfigError, match="metrics: found a list; expected a frame of Spark, pandas, polars, DuckDB"):
        figures.leaderboard([1, 2])


def test_a_measure_that_was_not_requested_is_an_error_with_the_nearest(result: Evaluation) -> None:
    with pytest.raises(ConfigError, match=r"found 'nDCG@10'; expected one of: .*; did you mean 'nDCG@5'\?|nDCG@3"):
        result.plot.leaderboard("nDCG@10")


def test_a_forest_names_its_measure(result: Evaluation) -> None:
    spec = result.plot.forest("nDCG@5").chart.to_dict()
    assert all(panel["title"].endswith(", nDCG@5") for panel in spec.get("vconcat", [spec]))


def test_groups_without_slices_have_nothing_to_show() -> None:
    rows = evaluated().metrics
    with pytest.raises(NothingToDrawError, match=r"the figure has nothing to show:\n.*segments=, slices="):
        figures.groups(keep(rows, slice="all"))


def test_without_a_baseline_a_forest_says_how_to_compare() -> None:
    alone = evaluated(baseline=None)
    with pytest.raises(InvalidCallError, match=r"call evaluate\(..., baseline='popular'\)"):
        alone.plot.forest()
    with pytest.raises(ConfigError, match="baseline"):
        alone.plot.user_differences()
    assert alone.plot.user_differences(baseline="popular").chart.to_dict()


@pytest.mark.filterwarnings("ignore:segments= is given")
def test_what_cannot_be_drawn_says_what_to_request() -> None:
    bare = evaluated(measures=["nDCG@3"], slices=(), items=None)
    for draw, fix in (
        (bare.plot.curves, "request several"),
        (bare.plot.pr_curve, "request IPrecCurve"),
        (bare.plot.tradeoffs, "CatalogCoverage@10"),
    ):
        with pytest.raises(NothingToDrawError, match=fix):
            draw()
    with pytest.raises(ConfigError, match="slices"):
        bare.plot.groups()


def test_a_pair_that_was_not_compared_is_an_error_that_names_the_pairs(result: Evaluation) -> None:
    with pytest.raises(ConfigError, match="found popular against any; expected a pair of: als against popular"):
        result.plot.forest(model="popular")


def test_without_altair_the_error_names_the_extra(result: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(EnvironmentFaultError, match=r"found no Altair; .*; pip install 'altair>="):
        result.plot.leaderboard()


# ---- what a notebook shows -------------------------------------------------------------------------------------------


def test_a_summary_computes_nothing_and_says_how_to_go_on() -> None:
    fresh = evaluated()
    text = parsed(fresh._repr_html_()).words
    assert "metrics" not in vars(fresh)
    for part in (
        "nDCG@3",
        "tier",
        "baseline popular",
        "Nothing is computed for this summary",
        ".leaderboard()",
        ".plot",
    ):
        assert part in text


def test_a_summary_names_comparisons_only_where_they_were_requested() -> None:
    alone = evaluate(LOGS.tables().recommendations, LOGS.tables().held_out, measures=["P@3"])
    for result, is_there in ((evaluated(), True), (alone, False)):
        text = result._repr_html_()
        assert (".comparisons<" in text, ".plot.forest()" in text) == (is_there, is_there)


def test_a_summary_shows_the_leaderboard_once_the_means_are_computed() -> None:
    fresh = evaluated()
    board = fresh.leaderboard()
    table = parsed(fresh._repr_html_()).all("table")[1]
    assert [one.words for one in table.one("thead").all("th")][:4] == ["", "model", "nDCG@3", "nDCG@5"]
    first = [one.words for one in table.one("tbody").all("tr")[0].all("td")]
    assert first[:2] == ["a", board["model_id"][0].as_py()]
    assert first[2].startswith(f"{board['nDCG@3'][0].as_py():.4f}")


def test_a_hostile_model_is_text_in_a_summary() -> None:
    name = "<script>alert(1)</script>"
    tables = LOGS.tables()
    models = pa.array([name if one == "als" else one for one in tables.recommendations["model_id"].to_pylist()])
    log = tables.recommendations.set_column(0, "model_id", models)
    fresh = evaluate(log, tables.held_out, measures=["P@3"], models=[name, "popular"])
    fresh.leaderboard()
    page = parsed(fresh._repr_html_())
    assert page.all("script") == []
    assert name in [one.words for one in page.all("td")]


def test_the_summary_without_the_extra_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = evaluated()
    wanted = fresh._repr_html_()
    for library in ("altair", "vl_convert", "jinja2"):
        monkeypatch.setitem(sys.modules, library, None)
    assert fresh._repr_html_() == wanted
