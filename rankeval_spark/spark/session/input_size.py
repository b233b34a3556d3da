"""How large inputs on this machine are: known before the JVM that reads them starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

SMALL: Final = 64 << 20
"""Bytes below which inputs are small: some millions of rows in Parquet."""


def are_small(locations: Iterable[str]) -> bool:
    """Return True if all inputs are files of this machine that come to less than :data:`SMALL` together.

    Parameters
    ----------
    locations : iterable of str
        Paths and addresses. A table counts with all files of its folder, whichever of its rows are read.
    """
    n_bytes = 0
    for location in locations:
        path = _local_path(location)
        if path is None or not path.exists():
            return False
        for size in _sizes(path):
            n_bytes += size
            if n_bytes >= SMALL:
                return False
    return True


def _local_path(location: str) -> Path | None:
    scheme, separator, rest = location.partition(":/")
    if not separator:
        return Path(location)
    return Path("/", unquote(rest).lstrip("/")) if scheme == "file" else None


def _sizes(path: Path) -> Iterator[int]:
    if path.is_file():
        yield path.stat().st_size
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                yield Path(folder, name).stat().st_size
            except OSError:  # another process removed it
                continue
