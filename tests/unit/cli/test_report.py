"""``rankeval report``: the page of a night of a root that is read without Spark, and what is refused."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import Results, allowed_folders
from rankeval_spark.apps.published import report as app
from rankeval_spark.cli.shared_options import write_atomically
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.report.figures.charts import LIGHT
from rankeval_spark.report.night import Night
from rankeval_spark.results import journal
from rankeval_spark.results.run_record import RunRecord
from rankeval_spark.statistics.hashed_random import hash_ids
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, USERS, WITHOUT_ROWS
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from datetime import date

LEVELS = [f"IPrec@{level / 10:g}" for level in range(11)]


def made_at(folder: Path, **changes: Any) -> Root:  # noqa: ANN401 - the values of a config
    usual = {
        "comparisons": {"baseline": "pop"},
        "gates": [{"measure": "nDCG@2", "at_least": 0.1}],
        "measures": [*nights.MEASURES, *LEVELS],
        "slicing__min_slice_size": 1,
    }
    workspace = nights.workspace(folder / "workspace", **{**usual, **changes})
    return Root(workspace.root, load_config(workspace.config))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish both dates, and a third that failed."""
    made = made_at(tmp_path_factory.mktemp("report"))
    for day in (FIRST, SECOND):
        made.publish(day, frames_of(day), run_id=f"run-{day}")
    fail(made, WITHOUT_ROWS)
    return made.root


@pytest.fixture(scope="module")
def results(root: str) -> Results[Any]:
    return Results(root)


def fail(root: Root, day: date) -> None:
    """Record that a night failed."""
    error = {"stage": "read", "type": "InputError", "message": "no row in held_out"}
    root.record(journal.run_event(RunRecord("nightly", day, f"failed-{day}"), journal.FAILED, error=error))


def page_of(root: str, out: Path, *options: object) -> str:
    done = rankeval("report", root, "--out", out, *options)
    assert done.code == 0, done.err
    assert done.out.startswith(f"wrote {out}, ")
    return out.read_text(encoding="utf-8")


def test_the_newest_published_night_is_written_as_one_page(root: str, tmp_path: Path) -> None:
    html = page_of(root, tmp_path / "report.html")
    assert html.startswith("<!DOCTYPE html>")
    assert html.rstrip().endswith("</html>")
    assert f"<title>nightly, {SECOND}" in html
    assert f"run-{SECOND}" in html
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_date_chooses_the_night_and_a_failed_one_says_why(root: str, tmp_path: Path) -> None:
    assert f"<title>nightly, {FIRST}" in page_of(root, tmp_path / "first.html", "--date", FIRST)
    failed = page_of(root, tmp_path / "failed.html", "--date", WITHOUT_ROWS, "--evaluation", "nightly")
    assert f"<title>nightly, {WITHOUT_ROWS}" in failed
    assert "no row in held_out" in failed


def test_the_page_is_replaced_and_may_be_read_by_others(root: str, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("the page of yesterday")
    before = os.umask(0o022)
    try:
        assert "yesterday" not in page_of(root, out)
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--evaluation", "nigthly"), 4, "found 'nigthly'; expected one of: nightly; did you mean 'nightly'?"),
        (("--date", "2026-01-09"), 4, f"from {FIRST} to {WITHOUT_ROWS}; the nearest is {WITHOUT_ROWS}"),
        (("--date", "2025-12-01"), 4, f"found no night of nightly on 2025-12-01; expected a night from {FIRST}"),
        (("--date", "tomorrow"), 2, "--date: found 'tomorrow'; expected"),
        (("--baseline", "als"), 2, "--baseline: found 'als'; expected one of those compared with: pop"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(
    root: str, tmp_path: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    done = rankeval("report", root, "--out", tmp_path / "report.html", *options)
    done.assert_readable()
    assert (done.code, os.listdir(tmp_path)) == (code, [])
    assert said in done.message


def test_a_place_that_takes_no_file_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = rankeval("report", "/no/such/root", "--out", tmp_path / "not here" / "report.html")
    nowhere.assert_readable()
    assert nowhere.code == 2
    assert f"--out: found no folder {tmp_path}/not here; expected" in nowhere.message
    assert f"mkdir -p '{tmp_path}/not here'" in nowhere.message

    folder = rankeval("report", "/no/such/root", "--out", tmp_path)
    assert folder.code == 2
    assert f"which is no file; expected a file; --out {tmp_path}/report.html" in folder.message

    monkeypatch.setenv(allowed_folders.VARIABLE, str(tmp_path / "allowed"))
    outside = rankeval("report", "/no/such/root", "--out", tmp_path / "report.html")
    assert outside.code == 2
    assert "expected a path below" in outside.message


def test_a_page_that_cannot_be_written_leaves_the_one_before_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report.html"
    out.write_text("the page of yesterday")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match=r"report\.html: No space left on device"):
        write_atomically("the page of today", out, "--out")
    assert out.read_text() == "the page of yesterday"
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("library", ["altair", "vl_convert", "jinja2"])
def test_without_the_extra_the_command_that_installs_it_is_named(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    done = rankeval("report", root, "--out", tmp_path / "report.html")
    done.assert_readable()
    assert done.code == 8
    assert "pip install 'altair>=" in done.message


def test_a_root_in_which_every_night_failed_has_a_page(tmp_path: Path) -> None:
    made = made_at(tmp_path)
    fail(made, FIRST)
    assert "no row in held_out" in page_of(made.root, tmp_path / "report.html")


def test_all_of_the_night_is_read_and_of_those_before_it_the_rows_over_all_users(results: Results[Any]) -> None:
    tables = app.report_tables(results)
    slices = {(row["evaluation_date"], row["slice"]) for row in tables.metrics.to_pylist()}
    assert slices == {(FIRST, "all"), (SECOND, "all"), (SECOND, "country")}
    assert set(tables.gates["evaluation_date"].to_pylist()) == {FIRST, SECOND}
    for own in (tables.group_metrics, tables.comparisons, tables.checks, tables.user_metrics):
        assert set(own["evaluation_date"].to_pylist()) == {SECOND}
    assert app.report_tables(results, day=FIRST).metrics["evaluation_date"].to_pylist().count(SECOND) == 0


def test_the_values_of_users_are_those_that_were_published(results: Results[Any]) -> None:
    tables = app.report_tables(results, day=FIRST)
    assert tables.user_share == 1
    found = tables.user_metrics
    published = results.user_metrics(date=FIRST, k=sorted({0, *found["k"].to_pylist()})).select(found.column_names)
    order = [(name, "ascending") for name in ("model_id", "user_id", "list_id", "k")]
    assert published.sort_by(order).equals(found.sort_by(order))
    assert {"ndcg", "rr", "success"} <= set(found.column_names)
    assert len([name for name in found.column_names if name.startswith("iprec")]) == 11


def test_of_many_users_a_sample_by_hash_is_read_and_its_share_said(
    results: Results[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = app.report_tables(results, day=FIRST)
    n_users = max(whole.metrics["n_users"].to_pylist())
    monkeypatch.setattr(app, "MAX_USERS", n_users / 2)
    tables = app.report_tables(results, day=FIRST)

    everyone = set(whole.user_metrics["user_id"].to_pylist())
    lowest = {name for name, hashed in zip(USERS, hash_ids(USERS).tolist(), strict=True) if hashed < 0}
    assert tables.user_share == 0.5
    assert set(tables.user_metrics["user_id"].to_pylist()) == lowest & everyone
    assert 0 < len(lowest & everyone) < len(everyone)
    assert tables.metrics.equals(whole.metrics)


def test_the_baseline_of_the_config_is_grey_in_a_notebook_too(results: Results[Any]) -> None:
    for chart in (results.plot.history("nDCG@2"), results.plot.leaderboard("nDCG@2")):
        (scale,) = {json.dumps(one) for one in colour_scales(chart.to_dict())}
        colours = dict(zip(*(json.loads(scale)[name] for name in ("domain", "range")), strict=True))
        assert colours["pop"] == LIGHT.baseline != colours["als"]


def colour_scales(spec: object) -> list[Any]:
    """Find the scales of colours in a chart."""
    if isinstance(spec, list):
        return [found for each in spec for found in colour_scales(each)]
    if not isinstance(spec, dict):
        return []
    own = [spec["color"]["scale"]] if isinstance(spec.get("color"), dict) and "scale" in spec["color"] else []
    return [*own, *(found for each in spec.values() for found in colour_scales(each))]


def test_the_two_best_models_are_compared_whatever_the_baseline(tmp_path: Path) -> None:
    """The night compared neither with the other: its users do, as those of `rankeval compare --against`."""
    made = made_at(tmp_path, comparisons=None)
    made.publish(FIRST, frames_of(FIRST), run_id="run")
    page = page_of(made.root, tmp_path / "report.html")
    found = re.search(r"models by nDCG@2, [0-9.]+: (\S+) against (\w+) \(", page)
    assert found is not None
    compared = rankeval("compare", made.root, "--against", found[2], "--measure", "nDCG@2", "--json")
    (delta,) = [row["delta"] for row in json.loads(compared.out)]
    assert found[1] == f"+{delta:.{len(found[1].partition('.')[2])}f}"
    workspace = nights.workspace(tmp_path / "judged", gates=[{"measure": "nDCG@2", "at_least": 0}])
    judged = rankeval("gate", made.root, "--config", workspace.config)
    assert f"{found[1]} against {found[2]} (" in judged.out, judged.out
    ran = rankeval("run", workspace.config, "--date", FIRST)
    assert re.search(r"models by nDCG@2, [0-9.]+: \S+ against \w+ \(", ran.out), ran.out


def test_a_night_whose_users_were_deleted_is_reported_without_them(tmp_path: Path) -> None:
    made = made_at(tmp_path)
    made.publish(FIRST, frames_of(FIRST), run_id="run")
    facts, versions = RunRecord("nightly", FIRST, "maintain"), Results(made.root).table_versions()
    for status in (journal.MAINTAINING, journal.MAINTAINED):
        made.record(journal.run_event(facts, status, n_rows={"user_metrics": 0}, table_versions=versions))
    assert "No rows of single users" in page_of(made.root, tmp_path / "report.html")


def test_at_most_sixty_nights_are_read(results: Results[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_NIGHTS", 1)
    tables = app.report_tables(results)
    assert set(tables.metrics["evaluation_date"].to_pylist()) == {SECOND}
    assert Night(tables, evaluation=None, day=None).n_nights == 1


def test_a_run_that_publishes_meanwhile_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events and rows are of the same versions."""
    made = made_at(tmp_path)
    made.publish(FIRST, frames_of(FIRST), run_id="early")
    results, reads = Results(made.root), Results.runs

    def interrupted(*arguments: Any, **wanted: Any) -> Any:  # noqa: ANN401 - as `runs`
        monkeypatch.setattr(Results, "runs", reads)
        found = reads(*arguments, **wanted)
        made.publish(FIRST, frames_of(FIRST), run_id="late")
        return found

    monkeypatch.setattr(Results, "runs", interrupted)
    tables = app.report_tables(results)
    assert Night(tables, evaluation=None, day=None).run["run_id"] == "late"
    assert set(tables.metrics["run_id"].to_pylist()) == {"late"}


def test_the_help_has_an_example() -> None:
    done = rankeval("report", "--help")
    assert done.code == 0
    assert "Example: rankeval report /data/results --out report.html" in " ".join(done.out.split())


def test_published_nights_are_drawn_from_a_root(results: Results[Any]) -> None:
    plot = results.plot
    drawn = {
        "history": plot.history("RR@2", baseline="pop"),
        "leaderboard": plot.leaderboard("RR@2", date=FIRST),
        "forest": plot.forest("RR@2"),
    }
    specs = {name: json.dumps(chart.to_dict()) for name, chart in drawn.items()}
    assert str(FIRST) in specs["history"]
    assert str(SECOND) in specs["history"]
    mean = results.metrics(date=FIRST, slice="all", measure="RR", k=2, model_id="pop")["value"][0].as_py()
    assert json.dumps(mean) in specs["leaderboard"]
    deltas = results.comparisons(date=SECOND, slice="all", measure="RR", k=2, model_id="als", test="t")["delta"]
    assert json.dumps(deltas[0].as_py()) in specs["forest"]
    curve = plot.pr_curve(date=FIRST)
    assert [panel["title"] for panel in curve.chart.to_dict()["vconcat"]] == ["all models", "als", "pop"]
    assert "curves of" not in curve.caption
    assert f"Evaluation nightly, {FIRST}" in curve.caption
    assert "vconcat" not in plot.pr_curve(users=False).chart.to_dict()
    with pytest.raises(ConfigError, match=r"found 'nightli'; expected one of: nightly; did you mean 'nightly'\?"):
        plot.history(evaluation="nightli")


def test_a_history_marks_the_night_from_which_on_a_measure_is_defined_otherwise(tmp_path: Path) -> None:
    made = made_at(tmp_path)
    made.publish(FIRST, frames_of(FIRST), run_id="first")
    other = load_config(tmp_path / "workspace" / "nightly.yaml", ["policies.ties=item_desc"])
    made.publish(SECOND, frames_of(SECOND), run_id="second", config=other)
    drawn = json.dumps(Results(made.root).plot.history("RR@2").to_dict())
    assert "was ties=item_asc; is ties=item_desc" in drawn
