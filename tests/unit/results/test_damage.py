"""Files of a results root that are empty, cut, missing or other: which night it is, and that a rerun heals it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pyarrow as pa
import pytest

from rankeval_spark import Results, schemas
from rankeval_spark.errors import ConfigError
from rankeval_spark.results.table_scans import DamagedResultsError
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
    changes: dict[str, Any] = {"comparisons__baseline": "pop", "results__examples": 1}
    workspace = nights.workspace(tmp_path_factory.mktemp("damage"), gates=rules, **changes)
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


WRITE: Final = ("score", "backfill", "run")
"""Commands that publish, or count on knowing what is published."""

LEFT_OUT: Final = "ignore:events that cannot be read are left out"


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
@pytest.mark.filterwarnings(LEFT_OUT)
def test_damaged_events_stop_who_writes_and_maintain_gives_them_up(
    workspace: Workspace, damage: Callable[[Path], None]
) -> None:
    file = events_of(workspace)[-1]  # that the last night is published
    damage(file)
    before = Results(workspace.root).table_versions()
    for name in WRITE:
        done = rankeval(*commands(workspace)[name])
        assert done.code == 4, f"{name}: {done.err}"
        if name != "score":  # of a night that is not among those that can be read
            assert f"table runs, nightly, {LAST}: found {file.name}" in done.message
            assert "rankeval maintain and run the date again" in done.message
    assert Results(workspace.root).table_versions() == before

    done = rankeval("maintain", workspace.root)
    assert done.code == 0, done.err
    assert f"events of {file.name}" in done.out
    assert rankeval("show", workspace.root, "--date", DAYS[1]).code == 0
    assert rankeval("show", workspace.root, "--date", LAST).code == 4  # it is no longer published
    with pytest.raises(ConfigError, match=rf"metrics\(date=\): found {LAST}; expected a night of nightly"):
        Results(workspace.root).metrics(date=LAST)
    assert rankeval("run", workspace.config, "--date", LAST).code == 0
    assert Results(workspace.root).metrics(date=LAST).num_rows


@pytest.mark.parametrize("command", ["show", "comparisons", "gaps", "runs", "gate", "compare", "report", "user"])
def test_the_other_nights_are_read_next_to_damaged_events(workspace: Workspace, command: str) -> None:
    file = events_of(workspace)[-1]
    cut(file)
    warning = rf"table runs, nightly, {LAST}: found {file.name}, which is cut off; .* maintain and run the date again"
    with pytest.warns(UserWarning, match=f"^events that cannot be read are left out: {warning}$") as warned:
        done = rankeval(*commands(workspace)[command])
    assert done.code == 0, done.err
    assert len({str(one.message) for one in warned}) == 1
    assert str(LAST) not in done.out
    assert command == "report" or str(DAYS[1]) in done.out


@pytest.mark.filterwarnings(LEFT_OUT)
def test_a_night_with_damaged_events_is_not_judged_as_an_earlier_run_had_it(workspace: Workspace) -> None:
    assert rankeval("run", workspace.config, "--date", DAYS[1]).code == 0  # a second time
    again = events_of(workspace)[-1]
    assert rankeval("run", workspace.config, "--date", LAST).code == 0
    emptied(again)
    assert rankeval("gate", workspace.root, "--date", LAST).code == 0
    judged = rankeval("gate", workspace.root, "--date", DAYS[1])
    assert (judged.code, "no published run of 2026-01-02" in judged.message) == (4, True)


def test_merged_and_rewritten_events_say_of_which_nights_they_are(workspace: Workspace) -> None:
    assert rankeval("maintain", workspace.root, "--erase-user", "ann").code == 0
    files = pa.table(deltalake.DeltaTable(f"{workspace.root}/runs").get_add_actions()).to_pylist()
    merged = max(files, key=lambda file: int(file["num_records"]))
    assert rankeval("run", workspace.config, "--date", LAST).code == 0
    emptied(Path(workspace.root, "runs", merged["path"]))
    with pytest.warns(UserWarning, match=rf"table runs, nightly, {DAYS[0]} to {LAST}: found .* run their dates again"):
        events = Results(workspace.root).runs()
    assert events["evaluation_date"].to_pylist() == [LAST] * 3


def test_files_of_events_without_nights_in_their_names_are_named(workspace: Workspace) -> None:
    """As an earlier version wrote them."""
    log = max(Path(workspace.root, "runs", "_delta_log").glob("*.json"))
    file = events_of(workspace)[-1]
    file.rename(file.with_name("0123.parquet"))
    log.write_text(log.read_text().replace(file.name, "0123.parquet"))
    assert rankeval("show", workspace.root, "--date", LAST).code == 0
    emptied(file.with_name("0123.parquet"))
    with pytest.warns(UserWarning, match=r"left out: table runs: found 0123.parquet, which is empty"):
        assert Results(workspace.root).nights("metrics") == [("nightly", day) for day in DAYS[:2]]


def test_events_that_are_all_damaged_are_no_empty_journal(workspace: Workspace) -> None:
    for file in events_of(workspace):
        emptied(file)
    with pytest.raises(DamagedResultsError) as refused:
        Results(workspace.root).metrics()
    assert refused.value.nights == {("nightly", day) for day in DAYS[:3]}
    for name in ("show", "runs", "run"):  # the last one adds that it failed
        done = rankeval(*commands(workspace)[name])
        assert (done.code, "table runs, nightly, 2026-01-0" in done.message) == (4, True), name


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
