"""The header of csv: a separator that is another one is named with the option that sets it."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.errors import InputError
from rankeval_spark.inputs.input_files import checked_header, header_here

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("header", "given", "option"),
    [("user_id;item_id", ",", '";"'), ("user_id\titem_id", ";", '"\\t"'), ("user_id,item_id", ";", '","')],
)
def test_one_column_with_a_separator_in_its_name(header: str, given: str, option: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_header([header], "recommendations.paths.als", "/logs", {"sep": given})

    (fault,) = caught.value.faults
    assert fault.found == f"one column, {header!r}, in the header at /logs"
    assert fault.expected == f'columns separated by "{given}"'
    assert fault.fix == f"write inputs.recommendations.options: {{sep: {option}}}"


def test_other_headers_are_taken_as_they_are() -> None:
    assert checked_header(["item_id"], "items", "/items", {}) == ("item_id",)
    assert checked_header(["user_id", "a;b"], "segments", "/users", {}) == ("user_id", "a;b")


def test_the_header_of_files_of_this_machine_is_read_here(tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_bytes(b'\r\nuser_id;"item;id"\r\nu;i\r\n')
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"user_id,item_id\n"))

    assert header_here(str(tmp_path / "part-0.csv"), {"sep": ";"}) == ["user_id", "item;id"]
    assert header_here(f"file://{tmp_path}/packed.csv.gz", {}) == ["user_id", "item_id"]
    assert header_here(str(tmp_path), {}) == ["user_id", "item_id"]  # of the first file


def test_what_spark_may_read_otherwise_is_left_to_it(tmp_path: Path) -> None:
    file = tmp_path / "part-0.csv"
    for content in (b"", b"\n\n", b"\xef\xbb\xbfuser_id\n", b"\xff\xfeu\n", b"u" * (1 << 20)):
        file.write_bytes(content)
        assert header_here(str(file), {}) is None
    file.write_text("user_id\n")
    assert header_here(str(file), {"comment": "#"}) is None
    assert header_here(str(file), {"sep": "||"}) is None
    assert header_here("s3a://bucket/part-0.csv", {}) is None
    (tmp_path / "day=2026-01-01").mkdir()
    assert header_here(str(tmp_path), {}) is None
    assert header_here(str(tmp_path / "none"), {}) is None
