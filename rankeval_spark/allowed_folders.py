"""The file systems that locations may name, and the folders that may be read and written.

Everything that is read or written passes one place that asks :func:`require_allowed`: where inputs, tables of
``rankeval init`` and TREC files are opened or measured, ``results.storage``, and a report before it is made.
``config.check_roots`` checks all paths of a config first.
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from rankeval_spark.errors import ConfigError, Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

VARIABLE: Final = "RANKEVAL_ROOTS"  # folders separated by commas; every path is allowed where it is not set

MAX_SHOWN: Final = 5  # files that are named of those outside; a pattern can find thousands


class FileSystem(NamedTuple):
    """A file system that locations may name by a scheme."""

    has_user: bool = False  # whether the part of an address before the "@" is a container or a user, and no secret
    is_object_store: bool = False  # read and written by conditional requests; only these and folders hold results


# Every file system by its scheme: configs, inputs and results go by this table.
FILE_SYSTEMS: Final[Mapping[str, FileSystem]] = {
    "file": FileSystem(),
    "hdfs": FileSystem(has_user=True),
    "viewfs": FileSystem(),
    "s3": FileSystem(is_object_store=True),
    "s3a": FileSystem(is_object_store=True),
    "az": FileSystem(is_object_store=True),
    "abfss": FileSystem(has_user=True, is_object_store=True),
    "abfs": FileSystem(has_user=True, is_object_store=True),
    "gs": FileSystem(is_object_store=True),
    "dbfs": FileSystem(),
}

RESULT_SCHEMES: Final = ("file", *(name for name, one in FILE_SYSTEMS.items() if one.is_object_store))
_ACCOUNT: Final = "AZURE_STORAGE_ACCOUNT_NAME"
_OF_S3: Final = ("s3n",)  # an older name, which Hadoop no longer has

STORE_SETTINGS: Final[dict[str, str]] = {}
"""Endpoint and region of object stores, if the config of this process names them; secrets are never among them."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_own: set[str] = set()  # temporary folders that this process made, which no config names


def is_limited(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the environment names the allowed folders."""
    return bool(_allowed_roots(environment))


def require_allowed(*places: tuple[str, str], default: str = "", environment: Mapping[str, str] = os.environ) -> None:
    """Refuse paths outside the allowed folders; links and ``..`` are followed first.

    ``places`` are pairs of what names a path, for the message, and the path. ``default`` is the file system of paths
    without one, as ``hdfs://host:8020``; by default that of this machine. Raises ConfigError with those outside.
    """
    if faults := outside_faults(places, default=default, environment=environment):
        raise ConfigError(*faults)


def require_each(where: str, paths: Iterable[str], *, default: str = "") -> None:
    """Refuse paths of one place, as :func:`require_allowed`; they are listed only if not every folder is allowed."""
    if faults := outside_faults(((where, path) for path in paths), default=default):
        raise ConfigError(*faults)


def outside_faults(
    places: Iterable[tuple[str, str]], *, default: str = "", environment: Mapping[str, str] = os.environ
) -> list[Fault]:
    """Return the first of the paths outside the allowed folders, as :func:`require_allowed` refuses them."""
    given = _allowed_roots(environment)
    if not given:
        return []
    roots = [_normalise(root, default) for root in (*given, *_own)]

    def is_below(path: str) -> bool:
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)

    # A path is judged as it is written and with its %20 read: stores and readers differ in this.
    expected, fix = f"a path below {', '.join(given)}", f"{VARIABLE} says so"
    faults = (
        Fault(where, repr(path), expected, fix)
        for where, path in places
        if not all(is_below(_normalise(form, default)) for form in (path, unquote(path)))
    )
    return list(islice(faults, MAX_SHOWN))


def scheme_of(path: str) -> str:
    """Return the file system of a path in lower case; empty for a path without one."""
    found = _SCHEME.match(path)
    return found.group(1).lower() if found else ""


def scheme_fix(scheme: str, *, is_root: bool = False) -> str | None:
    """Return what to write in place of a scheme of inputs (``is_root``: of results); None where it may be used."""
    if scheme in ("", *(RESULT_SCHEMES if is_root else FILE_SYSTEMS)):
        return None
    if scheme in FILE_SYSTEMS:
        return f"{scheme} may hold inputs alone: give an object store, or a folder that all machines mount"
    return "did you mean 's3'?" if scheme in _OF_S3 else nearest(scheme, RESULT_SCHEMES if is_root else FILE_SYSTEMS)


def spark_address(location: str) -> str:
    """Return a location as Hadoop opens it: S3 as ``s3a``, a container of Azure with the server of its account.

    >>> spark_address("s3://bucket/log")
    's3a://bucket/log'
    >>> spark_address("/data/log")
    '/data/log'
    """
    scheme, _, rest = location.partition("://")
    if scheme.lower() == "s3":
        return f"s3a://{rest}"
    if scheme.lower() != "az":
        return location
    account = os.environ.get(_ACCOUNT)
    if not account:
        expected = f"the name of the storage account in {_ACCOUNT}, as Spark needs it in the address"
        raise ConfigError(Fault("address", repr(location), expected, f"set {_ACCOUNT}"))
    container, slash, path = rest.partition("/")
    return f"abfss://{container}@{account}.dfs.core.windows.net{slash}{path}"


def local_path(location: str) -> Path | None:
    """Return the path of a location on this machine, None for any other location.

    Spark reads ``%20`` in an address as three characters, and so does this.

    >>> local_path("file:///data/a%20b").as_posix(), local_path("s3a://bucket/a"), local_path("schema.table")
    ('/data/a%20b', None, None)
    """
    if scheme_of(location) == "file":
        return Path("/", location.partition(":")[2].lstrip("/"))
    return Path(location) if location.startswith("/") else None


def delta_log_paths(location: str) -> Iterator[str]:
    """Yield the log folder of a Delta table and, on this machine, the links in it, which readers follow."""
    log = f"{location.rstrip('/')}/_delta_log"
    yield log
    folder = local_path(log)
    if folder is not None:
        with suppress(OSError):  # whoever opens the table says what is wrong
            yield from [entry.path for entry in os.scandir(folder) if entry.is_symlink()]


def allow_own(folder: str) -> None:
    """Allow a folder that only this process names."""
    _own.add(folder)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a folder of this machine that is removed afterwards; it is allowed, as only this process names it."""
    with tempfile.TemporaryDirectory(prefix="rankeval-") as folder:
        _own.add(folder)
        try:
            yield folder
        finally:
            _own.discard(folder)


def _allowed_roots(environment: Mapping[str, str]) -> list[str]:
    return [root.strip() for root in environment.get(VARIABLE, "").split(",") if root.strip()]


def _normalise(path: str, default: str) -> str:
    """Write a path in the one form in which it is compared; ``?`` and ``#`` are characters of names to Spark."""
    if not scheme_of(path) and scheme_of(default) not in ("", "file"):
        path = f"{default.rstrip('/')}{path}"
    if scheme_of(path) != "az" or os.environ.get(_ACCOUNT):  # one name of a place that has several
        path = spark_address(path)
    scheme, authority, rest = scheme_of(path), "", path
    if scheme:
        rest = path.partition(":")[2]
    if scheme and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    if scheme in ("", "file"):
        return os.path.realpath(rest)
    return f"{scheme}://{authority}{posixpath.normpath('/' + rest.lstrip('/'))}"
