"""The project names no package registry and no path of the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.code import ROOT

REGISTRY: Final = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi|pythonhosted|maven|sonatype|artifactory|jfrog|nexus|devpi|conda|anaconda|mirrors?)"
    r"(?:\.[\w-]+)*\.(?:org|com|io|net|dev|cloud|internal|local|lan|corp)\b",
    re.IGNORECASE,
)
"""A host from which packages are installed."""

MACHINE_PATH: Final = re.compile(
    r"(?<![\w.$}~:/\\-])/(?:home|Users|root|work|mnt|media|private)/[\w.-]+|[A-Z]:\\Users\\"
)
"""A path that exists on somebody's machine; of the usual folders only those that hold people's files."""

LOCK_LINE: Final = re.compile(
    r"""
    \s*                                                     # empty
    | \#.*                                                  # a comment
    | [A-Za-z0-9._-]+(?:\[[\w,-]+\])?==\S+(?:\s*;[^\\]*?)?\s*\\?   # name==version ; marker
    | \s+--hash=sha256:[0-9a-f]{64}\s*\\?
    """,
    re.VERBOSE,
)
LOCKS: Final = sorted((ROOT / "requirements").glob("*.txt"))


@cache
def project_files() -> tuple[Path, ...]:
    """Text files that are, or would be, under version control."""
    names = _from_git() or (str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if _is_ours(path))
    paths = (ROOT / name for name in names)
    return tuple(path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:4096])


def _from_git() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return []  # an unpacked archive
    return [name for name in done.stdout.split("\0") if name]


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return path.suffix != ".pyc" and not any(part.startswith((".", "__pycache__", "build")) for part in parts)


def found(pattern: re.Pattern[str]) -> Iterator[str]:
    """Places in the project's files where a pattern matches."""
    for path in project_files():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            yield from (f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in pattern.finditer(line))


def test_the_files_of_the_project_are_found() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert {"pyproject.toml", "Makefile", "rankeval_spark/__init__.py", "requirements/run.txt"} <= names


def test_no_file_names_a_package_registry() -> None:
    assert list(found(REGISTRY)) == []


def test_no_file_names_a_folder_of_a_machine() -> None:
    assert list(found(MACHINE_PATH)) == []


def test_no_file_names_the_folder_of_this_checkout() -> None:
    assert list(found(re.compile(re.escape(f"{ROOT}/")))) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_holds_versions_and_hashes_and_no_option(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_version_has_a_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8").strip())
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("see repo1.maven" + ".org/x", True), ("https://test.pypi" + ".org", True), ("a pypi package", False)],
)
def test_a_registry_is_known_by_its_host(text: str, is_found: bool) -> None:
    assert bool(REGISTRY.search(text)) is is_found


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("/home" + "/ann/data", True),
        ("s3://bucket/home/x", False),
        ("path: /data/logs", False),
        ("$HOME/wo" + "rk/x", False),
    ],
)
def test_a_folder_of_a_machine_is_known_by_its_beginning(text: str, is_found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is is_found
