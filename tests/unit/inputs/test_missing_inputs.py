"""What is said of a path with nothing behind it: the nearest days, or a name that is similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.inputs.input_files import NO_PATH, missing_input

if TYPE_CHECKING:
    from pathlib import Path


def fix_of(folder: Path, missing: str, *there: str) -> str:
    for name in there:
        (folder / name).mkdir(parents=True)
    return missing_input("held_out", str(folder / missing), "Parquet files", NO_PATH).fix


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
