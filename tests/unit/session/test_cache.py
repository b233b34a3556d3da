"""Which folder keeps fetched files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.spark.runtime.cache import cache_dir


def test_named_folder_comes_first_and_is_made(tmp_path: Path) -> None:
    named = tmp_path / "my cache"

    assert cache_dir({"RANKEVAL_CACHE": str(named), "XDG_CACHE_HOME": str(tmp_path / "xdg")}) == named
    assert named.is_dir()


def test_xdg_folder_comes_before_home(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path / "home")}

    assert cache_dir(env) == tmp_path / "xdg" / "rankeval-spark"


def test_home_folder_is_the_usual_one(tmp_path: Path) -> None:
    assert cache_dir({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "rankeval-spark"


def test_user_whose_home_cannot_be_written_gets_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()  # a folder below a file can be made by nobody, root included
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert cache_dir({"HOME": str(tmp_path / "file")}).parent == tmp_path


def test_named_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EnvironmentFaultError, match="set RANKEVAL_CACHE"):
        cache_dir({"RANKEVAL_CACHE": str(tmp_path / "file" / "cache"), "HOME": str(tmp_path)})
