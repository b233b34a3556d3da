"""Folders of partitions are read in this process, and a missing day is said without Spark."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.cli import run as run_commands
from rankeval_spark.config import load_config
from rankeval_spark.config.inputs import HeldOutInput
from rankeval_spark.config.loading import validate_model
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS, Workspace, no_session

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.files import FileTable

DAY = [{"column": "day", "op": "=", "value": "{date}"}]


def write(path: Path, **columns: Any) -> None:  # noqa: ANN401 - values that Arrow takes
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"item_id": [str(path.parent.name)]}), path)


def opened(path: Path, format_: str = "parquet", **keys: Any) -> FileTable:  # noqa: ANN401 - of a config
    return files.open_files(validate_model(HeldOutInput, {"format": format_, "path": str(path), **keys}), FIRST)


@pytest.mark.parametrize(
    ("names", "kind", "values"),
    [
        (["7", "011"], pa.int32(), [11, 7]),
        (["-1", "2147483648"], pa.int64(), [-1, 2**31]),
        (["2026-01-01", "2026-01-02"], pa.date32(), [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
        (["2026-01-01", "2026-02-30"], pa.string(), ["2026-01-01", "2026-02-30"]),
        (["2026-01-01", "20260102", "last"], pa.string(), ["2026-01-01", "20260102", "last"]),
        (["a%20b", "c%3Dd", "e=f", "v1.5"], pa.string(), ["a b", "c=d", "e=f", "v1.5"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [1, None]),
    ],
)
def test_folders_become_columns_of_the_types_that_spark_infers(
    tmp_path: Path, names: list[str], kind: pa.DataType, values: list[Any]
) -> None:
    for name in names:
        write(tmp_path / f"part={name}" / "p.parquet")

    table = opened(tmp_path)

    assert table.schema.field("part").type == kind
    assert table.read(["part"], None)["part"].to_pylist() == values


def test_folders_in_folders_are_columns_in_their_order(tmp_path: Path) -> None:
    for month, day in ((11, "27"), (12, "01")):
        write(tmp_path / "year=2026" / f"month={month}" / f"day={day}" / "p.parquet", item_id=["a"])
    filters = [{"column": "month", "op": "=", "value": 12}]

    table = opened(tmp_path, filters=filters)

    assert table.schema.names == ["item_id", "year", "month", "day"]
    condition = RowFilter(
        validate_model(HeldOutInput, {"format": "csv", "path": "x", "filters": filters}).filters, FIRST
    )
    rows = table.read(table.schema.names, condition.arrow_condition(table.schema)).to_pylist()
    assert rows == [{"item_id": "a", "year": 2026, "month": 12, "day": 1}]


@pytest.mark.parametrize(
    "paths",
    [
        ["day=1.5/p"],
        ["day=1e3/p"],
        ["day=2026-01-01 00%3A00%3A00/p"],
        ["day=1d/p"],
        ["day=9223372036854775808/p"],
        ["day=__HIVE_DEFAULT_PARTITION__/p"],
        ["day=/p"],
        ["day=1/p", "p"],
        ["day=1/p", "hour=1/p"],
        ["day=1/p", "day=1/hour=2/p"],
        ["day=1/more/p"],
        ["day=1/DAY=2/p"],
        ["item_id=1/p"],
        ["more/p"],
    ],
)
def test_folders_that_only_spark_surely_reads_are_left_to_it(tmp_path: Path, paths: list[str]) -> None:
    for path in paths:
        write(tmp_path / f"{path}.parquet")

    with pytest.raises(ForSparkError):
        opened(tmp_path)


def test_only_files_of_the_date_have_to_have_the_columns_of_the_first(tmp_path: Path) -> None:
    write(tmp_path / "day=2025-12-31" / "p.parquet", item_id=["a"])
    write(tmp_path / f"day={FIRST}" / "p.parquet", item_id=["b"], more=[1])
    write(tmp_path / f"day={SECOND}" / "p.parquet", other=["c"])
    (tmp_path / f"day={WITHOUT_ROWS}").mkdir()
    (tmp_path / f"day={WITHOUT_ROWS}" / "p.parquet").write_text("damaged")

    assert opened(tmp_path, filters=DAY).schema.names == ["item_id", "day"]
    with pytest.raises(ForSparkError, match=r"files of different columns, such as p\.parquet"):
        opened(tmp_path, filters=[{**DAY[0], "value": "{date+1}"}])
    with pytest.raises(ForSparkError):
        opened(tmp_path)


def in_folders(folder: Path, format_: str) -> Workspace:
    """Make a workspace whose log and judgements have a folder of each day."""
    made = nights.workspace(folder, format_=nights.PARQUET)
    for name, rows in (("recommendations", nights.recommendations()), ("held_out", nights.held_out())):
        for day in {row["day"] for row in rows}:
            of_day = [{key: value for key, value in row.items() if key != "day"} for row in rows if row["day"] == day]
            path = folder / "folders" / name / f"day={day}" / f"part-0.{format_}"
            path.parent.mkdir(parents=True)
            if format_ == "parquet":
                pq.write_table(pa.Table.from_pylist(of_day), path)
            elif format_ == "json":
                path.write_text("".join(f"{json.dumps(row)}\n" for row in of_day))
            else:
                with path.open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(of_day[0]))
                    writer.writeheader()
                    writer.writerows(of_day)
        keys = {"format": format_, "path": f"folders/{name}", "filters": DAY}
        made.change(**{f"inputs__{name}__{key}": value for key, value in keys.items()})
    return made


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_a_night_of_folders_of_days_is_that_of_a_column_of_days(tmp_path: Path, format_: str) -> None:
    plain, made = nights.workspace(tmp_path / "plain"), in_folders(tmp_path / "made", format_)

    results = [run_night(on_demand(no_session), load_config(one.config), FIRST) for one in (plain, made)]

    assert results[0].n_rows == results[1].n_rows
    shown = [rankeval("show", one.root, "--json").out for one in (plain, made)]
    values = [[(row["measure"], row["value"]) for row in json.loads(text)] for text in shown]
    assert values[0] == values[1]
    empty = run_night(on_demand(no_session), load_config(made.config), WITHOUT_ROWS)
    assert empty.reason == "no rows for 2026-01-03 in recommendations and held_out"


@pytest.mark.parametrize("override", ["spark.always=false", "spark.always=true", "spark.master=local[1]"])
def test_a_missing_day_is_said_before_any_spark_starts(tmp_path: Path, override: str) -> None:
    made = nights.workspace(tmp_path, format_=nights.PARQUET)
    made.change(inputs__held_out__path="inputs/{date}")
    config = load_config(made.config, [override])

    with pytest.raises(InputError, match=f"no such path at {tmp_path}/inputs/{FIRST}"):
        run_night(on_demand(no_session, why="chosen" if "false" not in override else None), config, FIRST)

    assert rankeval("runs", made.root).out.count("FAILED") == 1


@pytest.mark.parametrize("override", ["spark.always=false", "spark.always=true"])
def test_a_backfill_over_missing_days_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    made = in_folders(tmp_path, "parquet")
    made.change(inputs__recommendations__path="folders/recommendations/day={date}", inputs__recommendations__filters=[])
    started = list[str]()

    def start(name: str, **_: Any) -> NoReturn:  # noqa: ANN401 - options of a session
        started.append(name)
        raise InputError

    monkeypatch.setattr(run_commands, "new_session", start)

    done = rankeval("backfill", made.config, "--from", "2025-12-30", "--to", WITHOUT_ROWS, "--set", override)

    assert done.code == 4
    counts = {"spark.always=false": ("2 published, 3 failed", 0), "spark.always=true": ("5 failed", 1)}
    assert (done.out.splitlines()[-1], len(started)) == counts[override]
    assert "2 other days: the nearest is 2026-01-01" in " ".join(done.out.split()).replace("│ ", "")
