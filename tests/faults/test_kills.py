"""A publish that is killed at every point: whoever reads sees whole runs, and the next run mends what was left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.spark.results import nights
from tests.support.processes import held_at, started
from tests.support.readers import read_with_duckdb

if TYPE_CHECKING:
    from datetime import date

pytestmark = pytest.mark.faults

TABLES: Final = [schema.name for schema in schemas.PUBLISHED]
POINTS: Final = (
    *("before_staging", "after_staging", "after_list", "after_intent"),
    *(f"after_{table}" for table in TABLES),
    "before_marker",
)
"""Every named place of a publish, in the order in which a run comes by them."""

IN_CI: Final = ("after_staging", "after_user_metrics", "before_marker")
"""Nothing announced, half of it done, all but the last row."""

UNTOUCHED: Final = POINTS[:3]
CHANGED: Final[nights.Ranks] = {"ann": 2, "kim": 1}

CHILD: Final = f"""
import sys
from tests.spark.results import nights
nights.publish(sys.argv[1], nights.facts("killed"), {CHANGED!r})
"""

AT_A_TIME: Final = 2


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a root in which the first night was published, and one in which all went well afterwards."""
    folder = tmp_path_factory.mktemp("roots")
    nights.publish(str(folder / "before"), nights.facts("first"))
    shutil.copytree(folder / "before", folder / "clean")
    nights.publish(str(folder / "clean"), nights.facts("next", nights.SECOND))
    nights.publish(str(folder / "clean"), nights.facts("rerun"), CHANGED)
    return folder


@pytest.fixture(scope="module")
def killed(roots: Path, request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[str]]]:
    """Give the roots in which the first night was run again and killed at a point; made while others are looked at."""
    of_tests = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    chosen = [spec.params["point"] for spec in of_tests if spec is not None and "point" in spec.params]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {point: pool.submit(kill_at, point, roots / point, before=roots / "before") for point in chosen}
        pool.shutdown(cancel_futures=True)


def kill_at(point: str, folder: Path, *, before: Path) -> str:
    root = shutil.copytree(before, folder / "results")
    with started([sys.executable, "-c", CHILD, root], folder, held_at(point)) as running:
        running.wait_until_it_says(f"failpoint {point} holds")
        running.kill()
    return str(root)


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=pytest.mark.in_ci) if point in IN_CI else point for point in POINTS]
)
def test_a_publish_that_was_killed_shows_whole_runs_and_is_repaired(
    roots: Path, killed: Mapping[str, Future[str]], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = killed[point].result()

    assert rows_by_helper(root) == rows_by_helper(str(roots / "before"))
    assert_whole(root, {nights.FIRST: {"first"}})
    plain_runs = {run for table in TABLES for run in runs_by_night(f"{root}/{table}").get(nights.FIRST, set())}
    assert plain_runs <= ({"first"} if point in (*UNTOUCHED, "after_intent") else {"first", "killed"})
    own = ["RUNNING"] if point in UNTOUCHED else ["RUNNING", "PUBLISHING"]
    assert [status for run, status in events(root) if run == "killed"] == own
    assert events(root)[2] == ("first", "PUBLISHED")

    publish_and_look_at_every_step(root, monkeypatch)
    of_first = {"first"} if point in UNTOUCHED else {"killed"}
    assert_whole(root, {nights.FIRST: of_first, nights.SECOND: {"next"}})
    assert [event for event in events(root)[len(own) + 3 :] if event[1] != "RUNNING"] == [
        *([] if point in UNTOUCHED else [("killed", "PUBLISHED")]),  # before the other night is touched
        ("next", "PUBLISHING"),
        ("next", "PUBLISHED"),
    ]

    nights.publish(root, nights.facts("rerun"), CHANGED)
    assert_whole(root, {nights.FIRST: {"rerun"}, nights.SECOND: {"next"}})
    for table in TABLES:
        assert rows_of(f"{root}/{table}") == rows_of(f"{roots}/clean/{table}"), table
    assert [*Path(root, "_staging").glob("*")] == []
    is_named = {file for table in TABLES for file in deltalake.DeltaTable(f"{root}/{table}").file_uris()}
    unnamed = {str(file) for file in Path(root).rglob("killed.*.parquet")} - is_named
    assert bool(unnamed) == (point not in UNTOUCHED), (
        "older versions name them, or the next run of the date removes them"
    )
    assert ("killed", "FAILED" if point in UNTOUCHED else "PUBLISHED") in events(root)


def publish_and_look_at_every_step(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish the second night, and look at the first one whenever something was written."""
    steps = []

    def look(name: str) -> None:
        steps.append(name)
        assert_whole(root)

    with monkeypatch.context() as patched:
        patched.setattr("rankeval_spark.results.publish.failpoint", look)
        nights.publish(root, nights.facts("next", nights.SECOND))
    assert steps[-len(POINTS) + 3 :] == list(POINTS[3:])


def assert_whole(root: str, expected: Mapping[date, set[str]] | None = None) -> None:
    """Check what readers see: through the helper one run a night in all tables, in each table alone one run a night."""
    versions = Results(root).table_versions()
    pin_config: dict[date, set[str]] = {}
    for schema in schemas.PUBLISHED:
        path = f"{root}/{schema.name}"
        plain = list(map(str, read_with_duckdb(path, schema.key)))
        assert len(set(plain)) == len(plain), f"{schema.name}: a key twice"
        assert all(len(runs) == 1 for runs in runs_by_night(path).values()), f"{schema.name}: {runs_by_night(path)}"
        for night, runs in runs_by_night(path, versions[schema.name]).items():
            pin_config.setdefault(night, set()).update(runs)
    assert all(len(runs) == 1 for runs in pin_config.values()), f"through the helper: {pin_config}"
    assert expected is None or pin_config == expected


def runs_by_night(path: str, version: int | None = None) -> dict[date, set[str]]:
    table = deltalake.DeltaTable(path, version=version).to_pyarrow_table(columns=[C.EVALUATION_DATE, C.RUN_ID])
    found: dict[date, set[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row[C.EVALUATION_DATE], set()).add(row[C.RUN_ID])
    return found


def rows_by_helper(root: str) -> list[list[str]]:
    results = Results(root)
    return [nights.rows_of(results.published(table), without=()) for table in TABLES]


def rows_of(path: str) -> list[str]:
    """Rows as they are in the newest version, whoever wrote them."""
    rows = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(str({name: value for name, value in row.items() if name != C.RUN_ID}) for row in rows)


def events(root: str) -> list[tuple[str, str]]:
    columns = ["recorded_at", C.RUN_ID, "status"]
    rows = deltalake.DeltaTable(f"{root}/runs").to_pyarrow_table(columns=columns).to_pylist()
    return [(row[C.RUN_ID], row["status"]) for row in sorted(rows, key=lambda row: row["recorded_at"])]
