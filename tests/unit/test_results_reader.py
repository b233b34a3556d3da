"""Published results read in this process: what is pinned, what is left out, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pytest

from rankeval_spark import Results, ResultTable, schemas
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.results import journal, table_scans
from rankeval_spark.results.run_record import RunRecord
from rankeval_spark.results.storage import Storage
from tests.support import nights
from tests.support.cli import PROJECT
from tests.support.nights import FIRST, SECOND
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from tests.support.nights import Workspace

AGAIN: Final = "again"


def made_at(folder: Path, **changes: Any) -> tuple[Workspace, Root]:  # noqa: ANN401 - the values of a config
    workspace = nights.workspace(folder, **{"comparisons": {"baseline": "pop"}, **changes})
    return workspace, Root(workspace.root, load_config(workspace.config))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Publish both dates of the small workspace."""
    _, root = made_at(tmp_path / "workspace")
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    return root


def runs_of(table: pa.Table) -> set[str]:
    return set(table["run_id"].to_pylist())


def test_rows_are_narrowed_down_by_a_value_or_by_several(root: Root) -> None:
    results = Results(root.root)
    (row,) = results.metrics(date="2026-01-01", slice="all", measure="RR", k=2, model_id="als").to_pylist()
    assert row["value"] == (1 + 0 + 0 + 0) / 4

    several = results.metrics(date=[FIRST, "2026-01-02"], slice=["all"], measure=["RR", "nDCG"], k=[1], model_id="als")
    found = {(row["evaluation_date"], row["measure"]) for row in several.to_pylist()}
    assert found == {(day, measure) for day in (FIRST, SECOND) for measure in ("RR", "nDCG")}
    assert results.metrics(measure=[]).num_rows == 0
    assert results.metrics(evaluation=["nightly"], date=SECOND).num_rows


def test_results_show_nights_models_and_measures(root: Root, tmp_path: Path) -> None:
    results = Results(root.root)
    assert repr(results).splitlines() == [
        f"Results of {root.root}",
        "nightly: 2026-01-01 to 2026-01-02, 2 nights; 2 models: als, pop; "
        "6 measures: RR@1, RR@2, nDCG@1, nDCG@2, Success@1, Success@2",
    ]
    assert "nightly: 2026-01-01 to 2026-01-02, 2 nights; 2 models: als, pop; " in results._repr_html_()
    assert "expected the results of an earlier run" in repr(Results(tmp_path / "nowhere"))


def test_a_leaderboard_of_a_night_has_the_letters_of_its_comparisons(root: Root) -> None:
    """Two users decide nothing: models have letters, and beat nobody."""
    board = Results(root.root).leaderboard(k=2)
    assert type(board) is ResultTable
    assert repr(board.select(["model_id", "RR@2"])).splitlines() == [
        "leaderboard: 2 models",
        "   model    RR@2",
        "a  als    0.7500",
        "b  pop    0.5000",
    ]


def test_two_models_of_a_night_are_compared_in_a_paragraph(root: Root) -> None:
    results = Results(root.root)
    found = results.compare("als", "pop")
    (row,) = results.comparisons(date=SECOND, slice="all", measure="RR@1").to_pylist()
    assert found.row == row
    assert results.compare("pop", "als", measure="RR@2").row["delta"] == 1 / 2 - 3 / 4
    assert found.text.startswith(
        "als and pop tie by RR@1: 0.5000 against 0.5000 on the same 2 users, a difference of 0.0"
    )
    with pytest.raises(ConfigError, match=r"expected models that nightly, 2026-01-02 compared: als and pop; run "):
        results.compare("als", "knn")


def test_a_root_may_be_a_path_and_comes_before_the_session(root: Root) -> None:
    assert Results(Path(root.root)).metrics().equals(Results(root=root.root).metrics())
    session, as_in_calls_of_spark = type("SparkSession", (), {})(), cast("Any", Results)
    with pytest.raises(
        ConfigError, match=r"Results\(root=\): found a SparkSession; .*Results\('/data/results', spark\)"
    ):
        as_in_calls_of_spark(session, root.root)


def test_a_measure_may_have_its_cutoff_in_a_filter(root: Root) -> None:
    results = Results(root.root)

    def found(measure: str | list[str], table: str = "metrics") -> set[tuple[str, int]]:
        rows = results.arrow(table, measure=measure, date=FIRST).to_pylist()
        return {(row["measure"], row["k"]) for row in rows}

    assert found("nDCG@2") == found("ndcg@2") == {("nDCG", 2)}
    assert found(["nDCG@2", "RR"]) == {("nDCG", 2), ("RR", 1), ("RR", 2)}
    assert found("GroupGap(RR@1)", "group_metrics") == {("GroupGap(RR)", 1)}
    assert results.metrics(measure="MRR@2", slice="all").equals(results.metrics(measure="RR", k=2, slice="all"))


@pytest.mark.parametrize(
    ("method", "filters", "found"),
    [
        (
            "metrics",
            {"slice": "contry"},
            "slice=): found 'contry'; expected one of: all, country; did you mean 'country'?",
        ),
        ("metrics", {"slice": ["all", "contry"]}, "slice=): found 'contry'"),
        (
            "metrics",
            {"slice": "country", "slice_value": "FR"},
            "slice_value=): found 'FR'; expected one of: (unknown), AT, DE",
        ),
        ("metrics", {"measure": "nDCG@3"}, "measure=): found 'nDCG@3'; expected nDCG at one of: 1, 2"),
        ("metrics", {"measure": "nDGC@2"}, "did you mean 'nDCG'?"),
        ("metrics", {"measure": "AP"}, "measure=): found 'AP'; expected one of: RR, Success, nDCG"),
        ("metrics", {"measure": "RR", "k": 5}, "k=): found 5; expected one of: 1, 2"),
        ("metrics", {"run_id": "night"}, "run_id=): found 'night'; expected one of: "),
        ("metrics", {"date": "2026-01-09"}, "found 2026-01-09; expected a night of nightly: 2026-01-01 to 2026-01-02"),
        ("metrics", {"evaluation": ["nightly", "weekly"]}, "evaluation=): found 'weekly'; expected one of: nightly"),
        (
            "group_metrics",
            {"measure": "GroupGap(RR)@9"},
            "found 'GroupGap(RR)@9'; expected GroupGap(RR) at one of: 1, 2",
        ),
        ("checks", {"check": "tyes"}, "did you mean 'ties'?"),
        (
            "user_metrics",
            {"model_id": "alss"},
            "model_id=): found 'alss'; expected one of: als, pop; did you mean 'als'?",
        ),
        ("user_metrics", {"k": 7}, "k=): found 7; expected one of: 1, 2"),
        ("user_values", {"measure": "RR@7"}, "measure=): found 'RR@7'; expected RR at one of: 1, 2"),
        ("user_values", {"measure": "nothing"}, "unknown measure 'nothing'"),
        ("latest", {"model_id": "alss"}, "latest(model_id=): found 'alss'"),
        ("latest", {"table": "metric"}, "latest(table=): found 'metric'; expected one of: "),
        ("arrow", {"table": "gate"}, "arrow(table=): found 'gate'; expected one of: "),
        ("runs", {"date": "2026-01-09"}, "the nearest is 2026-01-02"),
        ("runs", {"evaluation": "nightyl"}, "did you mean 'nightly'?"),
    ],
)
def test_a_name_that_no_row_has_is_refused_with_the_nearest(
    root: Root, method: str, filters: dict[str, Any], found: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        getattr(Results(root.root), method)(**filters)
    assert found in str(refused.value)


def test_a_figure_of_nights_names_its_own_argument(root: Root) -> None:
    with pytest.raises(ConfigError, match=r"leaderboard\(date=\): found 2026-01-09; expected a night of nightly"):
        Results(root.root).plot.leaderboard(date="2026-01-09")
    with pytest.raises(ConfigError, match=r"history\(evaluation=\): found 'nightyl'; expected one of: nightly"):
        Results(root.root).plot.history(evaluation="nightyl")


def test_a_name_that_only_another_night_has_finds_no_row_and_a_warning(tmp_path: Path) -> None:
    workspace, root = made_at(tmp_path / "workspace")
    root.publish(FIRST, frames_of(FIRST), run_id="first")
    workspace.change(measures=["P"])
    root.publish(SECOND, frames_of(SECOND), run_id="second", config=load_config(workspace.config))
    results = Results(root.root)

    with pytest.warns(UserWarning, match="measure: found 'RR'; expected one of: P; it has rows on 2026-01-01$"):
        assert results.metrics(date=SECOND, measure="RR").num_rows == 0
    with pytest.warns(UserWarning, match="date: nothing is published of 2026-01-09"):
        assert results.metrics(date=[SECOND, date(2026, 1, 9)], measure="P").num_rows
    with pytest.warns(UserWarning, match="no row has measure='P@1', k=2 together"):
        assert results.metrics(measure="P@1", k=2).num_rows == 0


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"date": "2026-13-01"}, "date=): found '2026-13-01'; expected YYYY-MM-DD"),
        ({"modle_id": "als"}, "filter of metrics: found modle_id; expected columns: evaluation, "),
        ({"k": "ten"}, "filter of metrics, k: found 'ten'; expected a value of type int32"),
        ({"date": 20260101}, "date=): found 20260101; expected YYYY-MM-DD"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(root: Root, filters: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Results(root.root).metrics(**filters)
    assert found in str(refused.value)


def test_the_long_view_has_a_row_for_every_measure_that_was_requested(root: Root) -> None:
    values = Results(root.root).user_values(date=FIRST, user_id="bob", model_id="pop", measure=["RR", "Success"])
    assert sorted((row["measure"], row["k"], row["value"]) for row in values.to_pylist()) == [
        ("RR", 1, 1.0),
        ("RR", 2, 1.0),
        ("Success", 1, 1.0),
        ("Success", 2, 1.0),
    ]
    assert values.column_names == [
        *("evaluation", "evaluation_date", "run_id", "model_id", "user_id", "list_id", "measure", "k", "value")
    ]
    at_two = Results(root.root).user_values(date=FIRST, user_id="bob", measure=["RR@2", "Success"]).to_pylist()
    assert {(row["measure"], row["k"]) for row in at_two} == {("RR", 2), ("Success", 1), ("Success", 2)}


def test_a_night_with_other_measures_has_no_value_of_those_that_it_was_not_requested(tmp_path: Path) -> None:
    workspace, root = made_at(tmp_path / "workspace")
    root.publish(FIRST, frames_of(FIRST), run_id="first")
    workspace.change(measures=["P"])
    root.publish(SECOND, frames_of(SECOND), run_id="second", config=load_config(workspace.config))

    values = Results(root.root).user_values().to_pylist()
    assert {(row["run_id"], row["measure"]) for row in values} == {
        *(("first", measure) for measure in nights.MEASURES),
        ("second", "P"),
    }


def test_no_file_of_another_night_is_opened(root: Root) -> None:
    expected = Results(root.root).metrics(date=FIRST).sort_by("measure")
    others = [file for file in Path(root.root, "metrics").rglob("*.parquet") if SECOND.isoformat() in str(file)]
    for file in others:
        file.write_bytes(b"no Parquet")
    assert len(others) == 1

    results = Results(root.root)
    assert results.metrics(date=FIRST).sort_by("measure").equals(expected)
    assert results.nights() == [("nightly", FIRST), ("nightly", SECOND)]
    with pytest.raises(pa.ArrowInvalid):
        results.metrics()


def test_readers_keep_their_versions_until_they_are_refreshed(root: Root) -> None:
    early = Results(root.root)
    before = early.table_versions()
    root.publish(FIRST, frames_of(FIRST), run_id=AGAIN)

    assert early.table_versions() == before
    assert runs_of(early.metrics(date=FIRST)) == {f"run-{FIRST}"}
    assert runs_of(Results(root.root).metrics(date=FIRST)) == {AGAIN}
    assert runs_of(early.refresh().metrics(date=FIRST)) == {AGAIN}


@pytest.mark.parametrize(
    "until", [*(schema.name for schema in schemas.PUBLISHED if schema is not schemas.LISTS), "runs"]
)
def test_nothing_of_a_publish_is_seen_before_its_commit(root: Root, until: str) -> None:
    root.publish(FIRST, frames_of(FIRST), run_id=AGAIN, until=until)

    results = Results(root.root)
    for schema in schemas.PUBLISHED:
        assert AGAIN not in runs_of(results.published(schema.name)), schema.name
    statuses = {(row["run_id"], row["status"]) for row in results.runs(date=FIRST).to_pylist()}
    assert statuses == {(f"run-{FIRST}", "PUBLISHING"), (f"run-{FIRST}", "PUBLISHED"), (AGAIN, "PUBLISHING")}


def deleted_from(root: Root, day: date, **tables: int) -> None:
    """Record what maintenance records of a deletion."""
    facts = RunRecord("nightly", day, f"maintain-{day}")
    versions = Results(root.root).table_versions()
    for status in (journal.MAINTAINING, journal.MAINTAINED):
        root.record(journal.run_event(facts, status, n_rows=tables, table_versions=versions))


def test_a_night_whose_users_were_deleted_is_not_an_empty_one(root: Root) -> None:
    deleted_from(root, FIRST, lists=0, user_metrics=0)

    results = Results(root.root)
    assert results.deleted() == {("nightly", FIRST): {"lists", "user_metrics"}}
    with pytest.raises(InputError, match="no user_metrics: deleted by rankeval maintain"):
        results.user_metrics(date=FIRST)
    with pytest.raises(InputError, match="no user_metrics: deleted by rankeval maintain"):
        results.scan("user_metrics", date=[FIRST, SECOND])
    assert results.metrics(date=FIRST).num_rows
    assert results.user_metrics(date=SECOND).num_rows


def test_no_file_is_read_through_python(root: Root) -> None:
    """A thread of Arrow that holds a file of Python's when the interpreter ends aborts the process."""
    (files,) = {
        fragment.filesystem.base_fs.type_name for fragment in Results(root.root).scan("metrics").get_fragments()
    }
    assert files == "local"


def test_a_scan_reads_what_is_asked_of_it(root: Root) -> None:
    scan = Results(root.root).scan("user_metrics", date=FIRST, k=2)
    batches = list(scan.to_batches(columns=["user_id", "rr"]))
    assert pa.Table.from_batches(batches).column_names == ["user_id", "rr"]
    assert sum(batch.num_rows for batch in batches) == Results(root.root).user_metrics(date=FIRST, k=2).num_rows


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (
            "hdfs://name/results",
            "hdfs may hold inputs alone: give an object store, or a folder that all machines mount",
        ),
        ("s3n://bucket/results", "did you mean 's3'?"),
        ("/data/results%20x", "a path without '%20'"),
        ("/no/such/folder", "'/no/such/folder' (no such folder)"),
        (None, "Results(root=): found none"),
    ],
)
def test_a_root_that_cannot_be_read_says_so(root: str | None, found: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Results(root=root).metrics()  # type: ignore[arg-type]  # None is what is refused
    assert found in str(refused.value)


def test_a_root_in_which_nothing_was_published_says_so(tmp_path: Path) -> None:
    _, root = made_at(tmp_path / "workspace")
    with pytest.raises(InputError, match="no published run"):
        Results(root.root).metrics()
    assert Results(root.root).runs().num_rows == 0


def test_a_version_that_is_gone_is_named(root: Root) -> None:
    storage = Storage(root.root)
    with pytest.raises(ConfigError, match="table metrics at version 99"):
        table_scans.scan(storage, "metrics", version=99)


def without_spark(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python where pyspark cannot be imported."""
    for name in ("pyspark", "py4j", "delta"):
        (folder / "first" / name).mkdir(parents=True, exist_ok=True)
        text = f'raise ModuleNotFoundError("No module named {name!r}", name={name!r})\n'
        (folder / "first" / name / "__init__.py").write_text(text)
    path = os.pathsep.join([str(folder / "first"), str(PROJECT)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        (("show",), 0, "nDCG@2"),
        (("show", "--gaps"), 0, "country"),
        (("show", "--comparisons"), 0, "als"),
        (("compare", "--against", "pop"), 0, "als"),
        (("compare", "--against", "als"), 0, "pop"),
        (("compare", "--against", "previous", "--slice", "any"), 0, "unpaired"),
        (("gate", "--date", str(SECOND)), 6, "failed"),
        (("report", "--out", "report.html"), 0, "wrote report.html"),
    ],
)
def test_what_only_reads_needs_no_spark(
    judged: str, tmp_path: Path, options: tuple[str, ...], code: int, found: str
) -> None:
    command, *rest = options
    done = without_spark(tmp_path, "-m", "rankeval_spark", command, judged, *rest)
    assert done.returncode == code, done.stderr
    assert found in done.stdout


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish two nights with a rule against the previous one."""
    gates = [
        {"measure": "RR@2", "at_least": 1.0, "models": ["als"]},
        {"measure": "RR@2", "margin": 1.0, "against": "previous", "models": ["pop"]},
    ]
    _, root = made_at(tmp_path_factory.mktemp("judged") / "workspace", gates=gates, slicing__min_slice_size=1)
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    return root.root


def test_results_are_read_in_a_notebook_without_spark(judged: str, tmp_path: Path) -> None:
    program = (
        "from rankeval_spark import Results\n"
        f"print(Results({judged!r}).metrics(slice='all', measure='RR', k=2).num_rows)"
    )
    done = without_spark(tmp_path, "-c", program)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def n_files(table: str, results: Results[pa.Table], **night: Any) -> int:  # noqa: ANN401 - as `Results` takes them
    return len(list(results.scan(table, **night).get_fragments()))


@pytest.mark.parametrize("night", [{"date": FIRST}, {"date": FIRST, "evaluation": "nightly"}, {"date": str(FIRST)}])
def test_a_scan_of_a_night_has_its_files_alone(root: Root, night: dict[str, Any]) -> None:
    results = Results(root.root)
    assert (n_files("metrics", results, **night), n_files("metrics", results)) == (1, 2)
