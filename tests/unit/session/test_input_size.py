"""Whether the inputs of a run are few, looked at before its JVM starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankeval_spark.spark.session import input_size
from rankeval_spark.spark.session.input_size import SMALL, are_small


def test_files_and_folders_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_size, "SMALL", 30)
    (tmp_path / "a b" / "date=1").mkdir(parents=True)
    (tmp_path / "a b" / "date=1" / "part").write_bytes(b"x" * 15)
    (tmp_path / "file.csv").write_bytes(b"x" * 14)

    assert are_small([str(tmp_path / "a b"), (tmp_path / "file.csv").as_uri()])
    assert are_small([(tmp_path / "a b").as_uri()])
    assert not are_small([str(tmp_path / "a b"), str(tmp_path / "a b")])


def test_one_byte_too_many_is_not_small(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(SMALL)
    assert not are_small([str(tmp_path)])


@pytest.mark.parametrize("location", ["s3a://bucket/log", "hdfs://name/log", "/no/such/folder"])
def test_what_is_elsewhere_or_not_there_is_not_small(location: str) -> None:
    assert not are_small([location])
