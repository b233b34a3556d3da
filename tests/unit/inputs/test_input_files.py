"""Files of inputs that are not there or have another header: the nearest days, a similar name, the option to set."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.errors import InputError
from rankeval_spark.inputs.input_files import NO_PATH, check_header, missing_input_fault, read_local_header

if TYPE_CHECKING:
    from pathlib import Path


def fix_of(folder: Path, missing: str, *there: str) -> str:
    for name in there:
        (folder / name).mkdir(parents=True)
    return missing_input_fault("held_out", str(folder / missing), "Parquet files", NO_PATH).fix


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("log-2026-01-12.parquet", "3 other days: the nearest are 2026-01-02 and 2026-01-21"),
        ("log-2025-12-31.parquet", "3 other days: the nearest is 2026-01-01"),
        ("log-2026-02-01.parquet/part", "3 other days: the nearest is 2026-01-21"),
    ],
)
def test_a_missing_day_names_the_days_before_and_after(tmp_path: Path, missing: str, said: str) -> None:
    days = (f"log-2026-01-{day}.parquet" for day in ("01", "02", "21"))
    others = ("log-2026-13-41.parquet", "lists-2026-01-13.parquet", "log-2026-01-13.csv")

    assert fix_of(tmp_path, missing, *days, *others) == f"{tmp_path} has {said}"


def test_a_day_that_is_none_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert fix_of(tmp_path, "2026-02-30", "2026-02-27") == f"{tmp_path} has no '2026-02-30'"


def test_a_folder_without_other_days_names_what_is_similar_of_this_day(tmp_path: Path) -> None:
    others = ("2026-01-02.parquet.old", "lists-2026-01-03")
    assert fix_of(tmp_path, "list-2026-01-02", *others) == f"{tmp_path} has no 'list-2026-01-02'"
    hint = "did you mean 'lists-2026-01-02'?"
    assert fix_of(tmp_path, "list-2026-01-02", "lists-2026-01-02") == f"{tmp_path} has no 'list-2026-01-02', {hint}"


def test_a_name_without_a_day_has_the_most_similar_one(tmp_path: Path) -> None:
    assert fix_of(tmp_path, "lsits/2026-01-02", "lists") == f"{tmp_path} has no 'lsits', did you mean 'lists'?"


@pytest.mark.parametrize(
    ("header", "given", "option"),
    [("user_id;item_id", ",", '";"'), ("user_id\titem_id", ";", '"\\t"'), ("user_id,item_id", ";", '","')],
)
def test_one_column_with_a_separator_in_its_name(header: str, given: str, option: str) -> None:
    with pytest.raises(InputError) as caught:
        check_header([header], "recommendations.paths.als", "/logs", {"sep": given})

    (fault,) = caught.value.faults
    assert fault.found == f"one column, {header!r}, in the header at /logs"
    assert fault.expected == f'columns separated by "{given}"'
    assert fault.fix == f"write inputs.recommendations.options: {{sep: {option}}}"


def test_other_headers_are_taken_as_they_are() -> None:
    assert check_header(["item_id"], "items", "/items", {}) == ("item_id",)
    assert check_header(["user_id", "a;b"], "segments", "/users", {}) == ("user_id", "a;b")


def test_the_header_of_files_of_this_machine_is_read_here(tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_bytes(b'\r\nuser_id;"item;id"\r\nu;i\r\n')
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"user_id,item_id\n"))

    assert read_local_header(str(tmp_path / "part-0.csv"), {"sep": ";"}) == ["user_id", "item;id"]
    assert read_local_header(f"file://{tmp_path}/packed.csv.gz", {}) == ["user_id", "item_id"]
    assert read_local_header(str(tmp_path), {}) == ["user_id", "item_id"]  # of the first file


def test_what_spark_may_read_otherwise_is_left_to_it(tmp_path: Path) -> None:
    file = tmp_path / "part-0.csv"
    for content in (b"", b"\n\n", b"\xff\xfeu\n", b"u" * (1 << 20)):
        file.write_bytes(content)
        assert read_local_header(str(file), {}) is None
    file.write_text("user_id\n")
    assert read_local_header(str(file), {"comment": "#"}) is None
    assert read_local_header(str(file), {"sep": "||"}) is None
    assert read_local_header("s3a://bucket/part-0.csv", {}) is None
    (tmp_path / "day=2026-01-01").mkdir()
    assert read_local_header(str(tmp_path), {}) is None
    assert read_local_header(str(tmp_path / "none"), {}) is None
