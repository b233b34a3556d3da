"""The page as a file: what is in it, and what is not."""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.report.figures.figure import as_json, drawing_library, script_hash
from rankeval_spark.report.page import report
from tests.support import report_tables
from tests.support.html import Element, parsed
from tests.support.report_tables import FIRST_NIGHT, Plan, failed, published, runs, together

if TYPE_CHECKING:
    from rankeval_spark.report.tables import ReportTables

SECTIONS: Final = [
    *(
        "leaderboard",
        "comparison",
        "curves",
        "history",
        "precision-recall",
        "users",
        "groups",
        "beyond",
        "checks",
    ),
    *("definitions", "provenance"),
]
HOSTILE: Final = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"`{{ 7 * 7 }}"
LONG: Final = "L" * 1000
MOST_BYTES: Final = 2_000_000
MOST_SECONDS: Final = 4


@pytest.fixture(scope="module")
def page(nights: ReportTables) -> Element:
    """Give the page of three nights."""
    return parsed(report(nights))


def section(page: Element, id_: str) -> Element:
    """Find a section."""
    return page.one("section", id=id_)


def figures(page: Element) -> dict[str, Any]:
    """Read the specifications of the figures."""
    found: dict[str, Any] = json.loads(page.one("script", id="figures").text)["figures"]
    return found


# ---- what is in it -------------------------------------------------------------------------------------------------


def test_the_answer_comes_first_then_rules_and_sections_in_the_order_of_reading(page: Element) -> None:
    ids = [one.attributes.get("id") for one in page.one("main").all("section")]
    assert ids == ["answer", "rules", *SECTIONS, None]  # the last says how to get what is missing
    assert [one.attributes["href"] for one in page.one("nav").all("a")] == [f"#{one}" for one in ["rules", *SECTIONS]]


def test_headings_go_down_one_level_at_a_time(page: Element) -> None:
    levels = [int(one.tag[1]) for one in page.all() if re.fullmatch("h[1-6]", one.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_figure_has_a_title_a_summary_and_a_specification(page: Element) -> None:
    specs = figures(page)
    charts = page.all("div", class_="chart")
    assert [one.attributes["id"] for one in charts] == list(specs)
    assert len(charts) == 6 + 3 + 6 + 3 + 3 + 2 + 4 + 4
    assert all(one.attributes["role"] == "img" and one.attributes["aria-label"] for one in charts)
    assert all("title" not in spec and spec["width"] == "container" for spec in specs.values())


def test_every_number_of_a_figure_is_in_a_table_too(page: Element) -> None:
    captions = [one.words for one in page.all("caption")]
    candidates = ("als", "item_knn")
    assert captions == [
        "Models by measures",
        "Every measure at every cutoff",
        *(
            f"{model} − popular, nDCG@10, {which}"
            for model in candidates
            for which in ("decided slices", "other slices")
        ),
        "Differences from popular by measure, model and slice",
        "Gaps of nDCG@10 between groups",
        "nDCG@10 of every group",
        "Checks to look at",
        "Checks with nothing to look at",
        "Users behind nDCG@10",
        "Inputs",
    ]


def test_the_board_shows_means_and_intervals_and_marks_the_best(page: Element, nights: ReportTables) -> None:
    board = next(one for one in page.all("table") if one.one("caption").words == "Models by measures")
    body = board.one("tbody")
    assert len(body.all("tr")) == 3
    best = body.all("td", class_="best")
    assert len(best) == 6
    newest = nights.metrics.to_pylist()
    values = [
        row["value"]
        for row in newest
        if (row["evaluation_date"], row["slice"], row["measure"], row["k"]) == (date(2026, 1, 3), "all", "nDCG", 10)
    ]
    assert f"{max(values):.3f}" in best[0].words


def test_every_measure_that_is_shown_is_defined_with_what_was_recorded(page: Element) -> None:
    terms = section(page, "definitions").all("dt")
    names = [
        "every measure",
        "nDCG",
        "P",
        "R",
        "RR",
        "CatalogCoverage",
        "MIUF",
        "ARP",
        "Personalization",
        "IPrec at 11 levels of recall",
    ]
    assert [one.words for one in terms] == names
    assert "Recorded: nDCG(rel=1, agg=macro, dcg=log2" in section(page, "definitions").words


def test_provenance_names_run_version_inputs_and_config(page: Element) -> None:
    text = section(page, "provenance").words
    for part in (
        "run-002",
        "2026-01-04 03:00:00 UTC",
        "data/recommendations",
        "21,600",
        "metrics 4",
        '"at_least": 0.1',
    ):
        assert part in text


def test_what_is_sampled_is_said(nights: ReportTables) -> None:
    page = parsed(report(replace(nights, user_share=0.05)))
    assert "a sample of 5 % of the users, chosen by a hash of their id" in section(page, "users").words
    assert "Faint lines are 50 users at most" in section(page, "precision-recall").words


# ---- what is not in it ---------------------------------------------------------------------------------------------


def test_only_its_own_scripts_may_run_and_nothing_may_be_fetched(page: Element) -> None:
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert rules["default-src"] == "'none'"
    (data, library, own) = page.all("script")
    assert data.attributes["type"] == "application/json"
    assert rules["script-src"].split() == [script_hash(library.text), script_hash(own.text)]


def test_no_element_points_out_of_the_file(page: Element) -> None:
    for one in page.all():
        assert one.tag not in {"link", "img", "iframe", "base", "object", "embed"}
        assert "src" not in one.attributes
        assert one.attributes.get("href", "#").startswith("#")
    assert "url(" not in page.one("style").text
    assert "@import" not in page.one("style").text


def test_hostile_names_are_text_everywhere() -> None:
    plan = Plan(
        models={HOSTILE: 0.8, LONG: 0.5, "pop": 0.1},
        baseline="pop",
        segments={"country": (HOSTILE, LONG, None)},
        slices=("country",),
        n_nights=1,
    )
    text = report(report_tables.nights(plan))
    page = parsed(text)
    assert [one.tag for one in page.all() if one.tag in {"img", "iframe"}] == []
    assert len(page.all("script")) == 3
    assert not any(name.startswith("on") for one in page.all() for name in one.attributes)
    assert HOSTILE in [row.one("th").words for row in page.all("tr") if row.all("th", scope="row")]
    assert LONG in [row.one("th").words for row in page.all("tr") if row.all("th", scope="row")]
    assert json.dumps(HOSTILE) in json.dumps(figures(page))
    assert "<script>alert" not in text
    assert "{{ 7 * 7 }}" in text


def test_json_holds_no_character_of_markup() -> None:
    value = {"<!--": ["</script>", "&", "\u2028"]}
    assert json.loads(as_json(value)) == value
    assert not set(as_json(value)) & set("<>&\u2028")


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"value": float("nan")})


# ---- nights with little in them --------------------------------------------------------------------------------------


def without_values(table: pa.Table) -> pa.Table:
    """Set every number of a table to NULL, and with them the verdicts of comparisons."""
    for place, field in enumerate(table.schema):
        is_verdict = field.name == "verdict" and "delta" in table.column_names
        if (pa.types.is_floating(field.type) and field.name != "ci_level") or is_verdict:
            table = table.set_column(place, field, pa.nulls(table.num_rows, field.type))
    return table


def test_one_model_on_one_night_without_slices_says_how_to_get_the_rest() -> None:
    plan = Plan(models={"only": 0.5}, baseline=None, slices=(), gates=(), n_nights=1, measures=("nDCG@10",))
    page = parsed(report(report_tables.nights(plan)))
    shown = ["leaderboard", "users", "checks", "definitions", "provenance"]
    assert [one.attributes["href"] for one in page.one("nav").all("a")] == [f"#{one}" for one in shown]
    assert [one.attributes.get("id") for one in page.one("main").all("section")] == ["answer", *shown, None]
    missing = page.one("section", class_="quiet")
    assert [one.words for one in missing.all("dt")] == [
        *(
            "Candidate against baseline",
            "What changed",
            "Measures over k",
            "History over nights",
            "Precision over recall",
        ),
        *("Examples of users", "Gaps between groups", "Accuracy against coverage, novelty and popularity"),
    ]
    assert "comparisons.baseline" in missing.words
    assert "slices: [country]" in missing.words
    assert len(figures(page)) == 2


def test_a_night_that_failed_shows_the_nights_before_it(nights: ReportTables) -> None:
    page = parsed(report(together([nights, failed(3)]), day=FIRST_NIGHT + timedelta(days=3)))
    assert "Nothing was published" in section(page, "answer").words
    assert '"domain":["als","item_knn","popular"],"range":["var(--model-1)","var(--model-2)","var(--baseline)"]' in (
        json.dumps(figures(page), separators=(",", ":"))
    )
    assert "2026-01-04: the night failed (read: no row in data/held_out)." in section(page, "history").words
    assert len(section(page, "history").all("div", class_="chart")) == 1
    assert [one.attributes["href"] for one in page.one("nav").all("a")] == ["#history", "#definitions", "#provenance"]
    assert page.all("section", class_="quiet") == []


def test_a_root_with_nothing_but_a_failure_is_a_page_too() -> None:
    page = parsed(report(failed(0)))
    assert "Nothing was published" in section(page, "answer").words
    assert figures(page) == {}


def test_a_night_without_rows_says_why() -> None:
    run = {"evaluation": "nightly", "evaluation_date": FIRST_NIGHT, "run_id": "r"}
    tables = failed(0).without_rows(runs(published(Plan(), run, reason="no rows for 2026-01-01 in held_out")))
    assert "No rows for 2026-01-01 in held_out." in section(parsed(report(tables)), "answer").words


def test_values_that_are_all_undefined_are_said_to_be_and_not_drawn_as_zero(nights: ReportTables) -> None:
    names = ("metrics", "group_metrics", "comparisons", "user_metrics", "checks")
    page = parsed(report(replace(nights, **{name: without_values(getattr(nights, name)) for name in names})))
    board = next(one for one in page.all("table") if one.one("caption").words == "Models by measures")
    assert {one.words for one in board.all("td")[:6]} == {"undefined"}
    assert "Measures over k Every value is undefined" in page.one("section", class_="quiet").words
    drawn = figures(page)
    assert len(drawn) == 6  # the boards, which name the models
    assert '"value": 0' not in json.dumps([spec["layer"] for spec in drawn.values()])


def test_users_that_were_deleted_are_said_to_be(nights: ReportTables) -> None:
    page = parsed(report(replace(nights, user_metrics=nights.user_metrics.slice(0, 0))))
    assert "rankeval maintain --keep-days" in page.one("section", class_="quiet").words
    assert len(section(page, "precision-recall").all("div", class_="chart")) == 1 + 3


def test_a_measure_that_this_version_does_not_know_is_shown(nights: ReportTables) -> None:
    place = nights.metrics.schema.get_field_index("measure")
    renamed = pa.array(["Novel" if name == "nDCG" else name for name in nights.metrics["measure"].to_pylist()])
    changed = replace(nights, metrics=nights.metrics.set_column(place, "measure", renamed))
    page = parsed(report(changed))
    assert "This version does not know the measure." in section(page, "definitions").words
    assert "Novel@10" in section(page, "leaderboard").words


# ---- size, time and what it needs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large() -> ReportTables:
    """Give 30 nights of 5 models on 32 slices: one that is evaluated, and the same under other dates."""
    segments = {
        "country": ("DE", "FR", "IT", "ES", None),
        "device": ("phone", "desktop"),
        "age": ("18", "25", "35", "50"),
    }
    models = {"als": 0.8, "bert4rec": 0.85, "item_knn": 0.55, "popular": 0.1, "two_tower": 0.7}
    slices = ("country", "device", "age", ("country", "age"))
    plan = Plan(models=models, segments=segments, slices=slices, n_users=1000, n_nights=1)
    newest = report_tables.night(plan, 29)
    return together([*(_dated(newest, plan, number) for number in range(29)), newest])


def _dated(tables: ReportTables, plan: Plan, number: int) -> ReportTables:
    day = FIRST_NIGHT + timedelta(days=number)

    def at(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("evaluation_date")
        return table.set_column(place, "evaluation_date", pa.repeat(pa.scalar(day), table.num_rows))

    run = {"evaluation": report_tables.EVALUATION, "evaluation_date": day, "run_id": f"run-{number:03}"}
    names = ("metrics", "group_metrics", "comparisons", "gates", "checks")
    changed = {name: at(getattr(tables, name)) for name in names}
    return replace(tables, runs=runs(published(plan, run)), user_metrics=tables.user_metrics.slice(0, 0), **changed)


@pytest.mark.slow
def test_a_month_of_five_models_on_thirty_slices_fits_into_2_mb_and_4_s(large: ReportTables) -> None:
    """The time of the processor, not of a busy machine: the scripts are bundled in a thread while the page is built."""
    assert large.metrics.num_rows > 30 * 5 * 32 * 20
    wall, cpu = time.perf_counter(), time.process_time()
    text = report(large)
    spent = min(time.perf_counter() - wall, time.process_time() - cpu)
    assert len(text.encode()) < MOST_BYTES
    assert spent < MOST_SECONDS
    page = parsed(text)
    assert len(section(page, "comparison").all("div", class_="forests")) == 4
    assert len(page.all("tr")) > 500


@pytest.mark.parametrize("library", ["altair", "vl_convert", "jinja2"])
def test_a_library_that_is_not_there_is_named_with_the_extra(
    nights: ReportTables, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing_library.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EnvironmentFaultError, match=r"pip install 'altair>="):
        report(nights)
