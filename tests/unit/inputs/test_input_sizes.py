"""How large inputs are, by logs and footers: against tables whose files, rows and bytes are counted by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark.config.inputs import HeldOutInput
from rankeval_spark.inputs.arrow.input_sizes import InputSize, look_up_size

if TYPE_CHECKING:
    from pathlib import Path

DAY: Final = date(2026, 1, 2)
BY_DAY: Final = ({"column": "day", "op": "=", "value": "{date}"},)
ROWS: Final = {"2026-01-01": 2, "2026-01-02": 3, "2026-01-03": 5}


def table_of(day: str, n_rows: int) -> pa.Table:
    return pa.table({"day": [day] * n_rows, "user_id": ["u"] * n_rows, "item_id": [f"i{n}" for n in range(n_rows)]})


def size(path: Path, format_: str, **given: Any) -> InputSize:  # noqa: ANN401 - keys of an input
    config = HeldOutInput.model_validate({"format": format_, "path": str(path), **given}, context={"folder": "/"})
    return look_up_size("held_out", config, DAY)


def bytes_below(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def test_delta_counts_the_files_of_the_date_by_partition(tmp_path: Path) -> None:
    for day, n_rows in ROWS.items():
        deltalake.write_deltalake(tmp_path, table_of(day, n_rows), partition_by=["day"], mode="append")

    found = size(tmp_path, "delta", filters=BY_DAY)

    assert (found.version, found.n_files, found.n_partitions, found.n_rows) == (2, 1, 1, 3)
    assert found.n_bytes == bytes_below(tmp_path / "day=2026-01-02")
    whole = size(tmp_path, "delta")
    assert (whole.n_files, whole.n_partitions, whole.n_rows, whole.n_bytes) == (3, 3, 10, bytes_below(tmp_path))
    before = size(tmp_path, "delta", version=0)
    assert (before.version, before.n_rows) == (0, 2)


TWO_FILTERS: Final = (
    {"column": "day", "op": ">=", "value": "{date-1}"},
    {"column": "day", "op": "<=", "value": "{date}"},
)
LAST: Final = ({"column": "day", "op": "last", "value": "2d"},)


@pytest.mark.parametrize("window", [TWO_FILTERS, LAST], ids=["two filters", "last"])
def test_files_of_a_window_of_days_are_counted(tmp_path: Path, window: tuple[dict[str, str], ...]) -> None:
    for day, n_rows in ROWS.items():
        deltalake.write_deltalake(tmp_path, table_of(day, n_rows), partition_by=["day"], mode="append")

    found = size(tmp_path, "delta", filters=window)

    assert (found.n_files, found.n_partitions, found.n_rows) == (2, 2, 5)


def test_delta_without_partitions_counts_by_the_statistics_of_its_files(tmp_path: Path) -> None:
    for day, n_rows in ROWS.items():
        deltalake.write_deltalake(tmp_path, table_of(day, n_rows), mode="append")

    found = size(tmp_path, "delta", filters=BY_DAY)

    assert (found.n_files, found.n_partitions, found.n_rows) == (1, None, 3)


def test_a_removed_file_of_delta_does_not_count(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, table_of("2026-01-02", 4))
    deltalake.write_deltalake(tmp_path, table_of("2026-01-02", 1), mode="overwrite")

    assert size(tmp_path, "delta").n_rows == 1


def test_folders_of_parquet_count_those_of_the_date(tmp_path: Path) -> None:
    for day, n_rows in ROWS.items():
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pq.write_table(table_of(day, n_rows).drop_columns(["day"]), folder / "part.parquet")
    (tmp_path / "_SUCCESS").touch()

    found = size(tmp_path, "parquet", filters=BY_DAY)

    assert (found.n_files, found.n_partitions, found.n_rows) == (1, 1, 3)
    assert found.n_bytes == bytes_below(tmp_path / "day=2026-01-02")
    window = size(tmp_path, "parquet", filters=LAST)
    assert (window.n_files, window.n_partitions, window.n_rows) == (2, 2, 5)


def test_files_of_parquet_count_by_their_footers(tmp_path: Path) -> None:
    for day, n_rows in ROWS.items():
        pq.write_table(table_of(day, n_rows), tmp_path / f"{day}.parquet")

    assert (size(tmp_path, "parquet", filters=BY_DAY).n_rows, size(tmp_path, "parquet").n_rows) == (3, 10)
    one = size(tmp_path / "{date}.parquet", "parquet")
    assert (one.location, one.n_files, one.n_rows) == (str(tmp_path / "2026-01-02.parquet"), 1, 3)


def test_a_filter_that_only_spark_understands_leaves_all_files(tmp_path: Path) -> None:
    pq.write_table(table_of("2026-01-02", 3), tmp_path / "part.parquet")

    assert size(tmp_path, "parquet", filters=[{"column": "day", "op": ">", "value": 20260101}]).n_rows == 3


def test_of_text_the_bytes_are_known(tmp_path: Path) -> None:
    (tmp_path / "held_out.csv").write_text("user_id,item_id\nu,i\n")

    found = size(tmp_path / "held_out.csv", "csv")

    assert (found.n_files, found.n_rows, found.n_bytes) == (1, None, 20)
    assert found.remark == "rows of csv are known only when they are read"


def test_what_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text("no footer")

    missing = size(tmp_path / "none", "parquet")
    assert (missing.is_missing, missing.remark) == (True, "nothing at this path")
    assert size(tmp_path / "*.parquet", "parquet").is_missing is False
    assert (size(tmp_path / "broken.parquet", "parquet").remark or "").startswith("cannot be opened: ")
    assert (size(tmp_path, "delta").remark or "").startswith("cannot be opened: ")
    elsewhere = HeldOutInput.model_validate({"format": "delta", "path": "hdfs://host/x"}, context={"folder": "/"})
    assert look_up_size("held_out", elsewhere, DAY).remark == "on another file system, which only Spark opens"
    catalog = HeldOutInput.model_validate({"format": "delta", "table": "a.b"}, context={"folder": "/"})
    assert look_up_size("held_out", catalog, DAY).remark == "a table of a catalog, which only Spark opens"
