"""Delta tables that are opened once: again and again, drivers of a schedule open the same versions of the same logs.

deltalake reads a log of ten commits in 4 ms, which would be a third of the time of a schedule. What a table is depends
on nothing but its commits; so one table is kept for each log, and is led on by each further commit.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import deltalake

_AT_ITS_PLACE: Final = ("create_checkpoint", "cleanup_metadata", "vacuum")  # what changes or lists files
_open: Final = deltalake.DeltaTable


class _Kept:
    """A table at the newest version that was asked for."""

    def __init__(self, commits: Sequence[bytes]) -> None:
        self.folder = tempfile.mkdtemp()
        self._log = Path(self.folder, "_delta_log")
        self._log.mkdir()
        for version, commit in enumerate(commits):
            self._write(version, commit)
        self.version = len(commits) - 1
        self.table = _open(self.folder)

    def lead_on(self, commit: bytes) -> None:
        self.version += 1
        self._write(self.version, commit)
        self.table.update_incremental()

    def _write(self, version: int, commit: bytes) -> None:
        (self._log / f"{version:020d}.json").write_bytes(commit)


class _View:
    """A version of a table, as whoever opened it at a location sees it."""

    def __init__(self, kept: _Kept, location: str) -> None:
        self._table, self._is_current, self._version = kept.table, partial(_is_at, kept, kept.version), kept.version
        self._open = partial(_open, location, version=kept.version)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as of a table
        if name in _AT_ITS_PLACE or not self._is_current():
            return getattr(self._open(), name)
        return getattr(self._table, name)


def _is_at(kept: _Kept, version: int) -> bool:
    return kept.version == version


class Tables:
    """The tables of one schedule; ``start`` are those that others begin with, which stay as they are."""

    def __init__(self, start: Tables | None = None) -> None:
        self._start = start._kept if start else {}
        self._kept: dict[str, _Kept] = {}  # by the digest of all commits

    def open(self, location: str, version: int | None = None) -> Any:  # noqa: ANN401 - in place of `deltalake.DeltaTable`
        """Open a table at a version; by deltalake alone if the location has not all of its commits."""
        log = Path(location, "_delta_log")
        try:
            commits = [(log / f"{number:020d}.json").read_bytes() for number in range((version or 0) + 1)]
        except OSError:
            commits = []
        if not commits or version is None:
            return _open(location, version=version)
        digest, before = hashlib.md5(usedforsecurity=False), ""
        for commit in commits:
            before = digest.hexdigest()
            digest.update(commit)
        key = digest.hexdigest()
        kept = self._start.get(key) or self._kept.get(key)
        if kept is None:
            if kept := self._kept.pop(before, None):
                kept.lead_on(commits[-1])
            self._kept[key] = kept = kept or _Kept(commits)
        return _View(kept, location)

    def remove(self) -> None:
        """Remove what this schedule kept."""
        for kept in self._kept.values():
            shutil.rmtree(kept.folder, ignore_errors=True)
