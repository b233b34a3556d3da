"""Files of a results root that are empty, cut, missing or other: which night it is, and that a rerun heals it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from rankeval_spark import Results, schemas
from rankeval_spark.results.local_tables import DamagedResultsError
from tests.support import nights
from tests.support.cli import Finished, rankeval

if TYPE_CHECKING:
    from tests.support.nights import Workspace

DAYS: Final = [date(2026, 1, day) for day in (1, 2, 3, 4)]
"""The first three are published."""

LAST, NEXT = DAYS[2], DAYS[3]

TABLES: Final = [schema.name for schema in schemas.PUBLISHED]


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwritten(file: Path) -> None:
    file.write_bytes(b"\x00 no Parquet \xff" * 100)


DAMAGES: Final[list[Callable[[Path], None]]] = [emptied, cut, overwritten, Path.unlink]
IDS: Final = ["empty", "cut", "overwritten", "missing"]


@pytest.fixture(scope="module")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    rules = [
        {"measure": "nDCG@2", "at_least": 0.0},
        {"measure": "nDCG@2", "against": "previous", "least_gain": -1.0},
    ]
    workspace = nights.workspace(tmp_path_factory.mktemp("damage"), comparisons__baseline="pop", gates=rules)
    workspace.write("recommendations", nights.recommendations({day: nights.LISTS[nights.FIRST] for day in DAYS}))
    workspace.write("held_out", nights.held_out({day: nights.GAINS[nights.FIRST] for day in DAYS}))
    workspace.write("segments", nights.segments(DAYS))
    for day in DAYS[:3]:
        done = rankeval("run", workspace.config, "--date", day)
        assert done.code == 0, done.err
    return workspace


@pytest.fixture
def workspace(_published: Workspace, tmp_path: Path) -> Workspace:
    return _published.copy(tmp_path)


def file_of(workspace: Workspace, table: str, day: date) -> Path:
    (file,) = Path(workspace.root, table, "evaluation=nightly", f"evaluation_date={day}").glob("*.parquet")
    return file


def events_of(workspace: Workspace) -> list[Path]:
    return sorted(Path(workspace.root, "runs").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)


def commands(workspace: Workspace) -> dict[str, tuple[Any, ...]]:
    """All that reads results: of a damaged night, or next to it."""
    root, config = workspace.root, workspace.config
    return {
        "show": ("show", root, "--slice", "any"),
        "comparisons": ("show", root, "--comparisons"),
        "gaps": ("show", root, "--gaps"),
        "runs": ("runs", root),
        "gate": ("gate", root),
        "compare": ("compare", root, "--against", "previous"),
        "report": ("report", root, "--out", workspace.folder / "report.html"),
        "user": ("user", root, "ann"),
        "score": ("score", root, "--date", LAST, "--measure", "P@1"),
        "backfill": ("backfill", config, "--from", DAYS[0], "--to", LAST, "--missing"),
        "erase": ("maintain", root, "--erase-user", "ann"),
        "maintain": ("maintain", root, "--keep-days", 1, "--vacuum"),
        "run": ("run", config, "--date", NEXT),
    }


def assert_clear(done: Finished, damage: str) -> None:
    """Check that a command did its work, or says what is wrong with a file and what to do."""
    assert "unexpected" not in done.err, damage + done.err
    assert "Traceback" not in done.err, damage + done.err
    assert done.code in (0, 2, 4, 6), damage + done.err
    if done.code in (2, 4):
        done.assert_readable()


@pytest.mark.parametrize("damage", DAMAGES[1::2], ids=IDS[1::2])
@pytest.mark.filterwarnings("ignore:an earlier night is left out")
def test_no_command_fails_unexpectedly_on_a_damaged_night(
    workspace: Workspace, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for table, day in (("metrics", DAYS[1]), ("metrics", LAST), ("user_metrics", LAST)):
        copy = workspace.copy(tmp_path / table / str(day))
        damage(file_of(copy, table, day))
        for name, arguments in commands(copy).items():
            assert_clear(rankeval(*arguments), f"{table} {day} {name}: ")


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_night_is_named_and_a_rerun_heals_it(
    workspace: Workspace, table: str, damage: Callable[[Path], None]
) -> None:
    before = Results(workspace.root).arrow(table, date=LAST).num_rows
    file = file_of(workspace, table, LAST)
    damage(file)
    with pytest.raises(DamagedResultsError) as refused:
        Results(workspace.root).arrow(table, date=LAST)
    assert refused.value.exit_code == 4
    assert refused.value.nights == {("nightly", LAST)}
    (fault,) = refused.value.faults
    assert fault.where == f"table {table}, nightly, {LAST}"
    assert file.name in fault.found
    assert f"--date {LAST}" in fault.fix
    assert Results(workspace.root).arrow(table, date=DAYS[1]).num_rows  # the others are read as before

    assert rankeval("run", workspace.config, "--date", LAST).code == 0
    assert Results(workspace.root).arrow(table, date=LAST).num_rows == before
    assert rankeval("show", workspace.root).code == 0


@pytest.mark.parametrize("table", ["metrics", "user_metrics"])
@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_a_later_night_goes_on_without_a_damaged_one_and_says_so(
    workspace: Workspace, table: str, damage: Callable[[Path], None]
) -> None:
    damage(file_of(workspace, table, LAST))
    done = rankeval("run", workspace.config, "--date", NEXT)
    assert done.code == 0, done.err
    said = " ".join((done.out + done.err).split())
    assert f"an earlier night is left out: table {table}, nightly, {LAST}: found" in said
    verdicts = Results(workspace.root).gates(date=NEXT)["verdict"].to_pylist()
    assert ("no_baseline" in verdicts) == (table == "user_metrics")


def test_a_checkpoint_that_is_gone_or_damaged_is_repaired_by_the_next_run(workspace: Workspace, tmp_path: Path) -> None:
    for number, damage in enumerate([*DAMAGES, None]):
        copy = workspace.copy(tmp_path / str(number))
        for table in ("runs", "metrics"):
            deltalake.DeltaTable(f"{copy.root}/{table}").create_checkpoint()
            log = Path(copy.root, table, "_delta_log")
            if damage is None:
                (log / "_last_checkpoint").write_text(json.dumps({"version": 77, "size": 3}))
            else:
                damage(next(log.glob("*.checkpoint.parquet")))
        for name, arguments in commands(copy).items():
            if name not in ("maintain", "erase", "run"):
                assert_clear(rankeval(*arguments), f"{number} {name}: ")
        done = rankeval("run", copy.config, "--date", NEXT)
        assert done.code == 0, done.err
        assert rankeval("show", copy.root, "--date", DAYS[0]).code == 0


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_damaged_events_are_named_and_maintain_gives_them_up(
    workspace: Workspace, damage: Callable[[Path], None]
) -> None:
    file = events_of(workspace)[-1]  # that the last night is published
    damage(file)
    for name, arguments in commands(workspace).items():
        if name not in ("maintain", "erase"):
            done = rankeval(*arguments)
            assert done.code == 4, f"{name}: {done.err}"
            assert file.name in done.message
            assert "rankeval maintain" in done.message

    done = rankeval("maintain", workspace.root)
    assert done.code == 0, done.err
    assert f"events of {file.name}" in done.out
    assert rankeval("show", workspace.root, "--date", DAYS[1]).code == 0
    assert rankeval("show", workspace.root, "--date", LAST).code == 4  # it is no longer published
    assert Results(workspace.root).metrics(date=LAST).num_rows == 0
    assert rankeval("run", workspace.config, "--date", LAST).code == 0
    assert Results(workspace.root).metrics(date=LAST).num_rows


def test_roots_of_any_name_are_read_and_a_damaged_night_of_them_is_named(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("a b#c", "wer fragt?", "größe (1)", "100%", 'a"b'):
        root = Path(workspace.root).rename(tmp_path / name)
        workspace.change(results__root=str(root))
        assert rankeval("show", root).code == 0
        file = max(root.glob(f"metrics/*/evaluation_date={LAST}/*.parquet"), key=lambda one: one.stat().st_ctime_ns)
        cut(file)
        done = rankeval("show", root)
        assert done.code == 4
        assert f"table metrics, nightly, {LAST}: found evaluation=nightly/" in done.message
        assert rankeval("run", workspace.config, "--date", LAST).code == 0
        assert rankeval("show", root).code == 0
        root.rename(workspace.root)
