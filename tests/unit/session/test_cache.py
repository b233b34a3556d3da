"""Which folder keeps fetched files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.spark.session.settings import cache_dir


def test_named_folder_comes_first_and_is_made(tmp_path: Path) -> None:
    named = tmp_path / "my cache"

    assert cache_dir({"RANKEVAL_CACHE": str(named), "XDG_CACHE_HOME": str(tmp_path / "xdg")}) == named
    assert named.is_dir()


def test_xdg_folder_comes_before_home_which_is_the_usual_one(tmp_path: Path) -> None:
    home, xdg = {"HOME": str(tmp_path)}, tmp_path / "xdg"
    assert cache_dir({**home, "XDG_CACHE_HOME": str(xdg)}) == xdg / "rankeval-spark"
    assert cache_dir(home) == tmp_path / ".cache" / "rankeval-spark"


def test_user_whose_home_cannot_be_written_gets_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()  # a folder below a file can be made by nobody, root included
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    found = cache_dir({"HOME": str(tmp_path / "file")})
    assert found.parent == tmp_path
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert cache_dir({"HOME": str(tmp_path / "file")}) == found


def _link(folder: Path) -> None:
    (folder.parent / "planted").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "planted")


def _of_mode(mode: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        folder.mkdir()
        folder.chmod(mode)

    return make


def _of_another_user(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, os.getuid() + 1, -1)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (_link, "which is a link to "),
        (_of_mode(0o777), "which is of mode 0777"),
        (_of_mode(0o1777), "which is of mode 1777"),
        (_of_mode(0o750), "which is of mode 0750"),
        (Path.touch, "which is no folder"),
        pytest.param(
            _of_another_user, "owned by user", marks=pytest.mark.skipif(os.getuid() != 0, reason="only root gives away")
        ),
    ],
    ids=["link", "0777", "1777", "0750", "file", "owner"],
)
def test_temporary_folder_that_others_may_have_filled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None], found: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plant(tmp_path / f"rankeval-spark-{os.getuid()}")

    with pytest.raises(EnvironmentFaultError, match="set RANKEVAL_CACHE") as refused:
        cache_dir({"HOME": str(tmp_path / "file")})
    assert found in str(refused.value)


def test_named_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EnvironmentFaultError, match="set RANKEVAL_CACHE"):
        cache_dir({"RANKEVAL_CACHE": str(tmp_path / "file" / "cache"), "HOME": str(tmp_path)})
