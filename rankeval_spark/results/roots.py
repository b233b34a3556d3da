"""Results roots: which addresses can hold results, which folders are ours, and the storage of each."""

from __future__ import annotations

import errno
import json
import os
import re
from typing import Final
from urllib.parse import unquote, urlsplit

from rankeval_spark.allowed_folders import RESULT_SCHEMES, scheme_fix, scheme_of
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results.locks import LOCKS_FOLDER
from rankeval_spark.results.storage import Storage

MARKER: Final = "_rankeval.json"
LAYOUT: Final = 1  # number of the layout of a results root; raised when older code must not write to it any more
_UNSAFE: Final = re.compile(r"[`$\x00-\x1f]")
_MISREAD: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}")  # parts of a local path that deltalake takes for `/` or a character


def normalise(root: str) -> str:
    """Return a root in canonical form: absolute, without a trailing slash.

    >>> normalise("file:///data/results/"), normalise("s3a://bucket/results/")
    ('/data/results', 's3://bucket/results')
    """
    scheme = scheme_of(root)
    if _UNSAFE.search(root) or not root.strip():
        # Delta pastes a location between backticks, and Spark substitutes ${...} in statements.
        raise ConfigError(Fault("results root", repr(root), "a path without backticks, '$' and control characters"))
    if scheme == "file":
        if urlsplit(root).netloc:
            raise ConfigError(Fault("results root", repr(root), "a folder of this machine, as file:///data/results"))
        return normalise(unquote(urlsplit(root).path))
    if not scheme and (misread := _MISREAD.search(root)):
        expected = f"a path without {misread[0]!r}, which readers of Delta tables take for another one"
        raise ConfigError(Fault("results root", repr(root), expected, "rename the folder"))
    fix = scheme_fix(scheme, is_root=True)
    if fix is not None:
        expected = f"a local path or a URI of one of {', '.join(RESULT_SCHEMES)}"
        raise ConfigError(Fault("results root", repr(root), expected, fix))
    # `s3a` is Hadoop's name of the same place.
    return root.rstrip("/").replace("s3a://", "s3://", 1) if scheme else os.path.abspath(root)


def storage_at(root: str) -> Storage:
    """Return the store of a root; ConfigError if it cannot hold results."""
    location = normalise(root)
    if not scheme_of(location):
        return Storage(location)
    from rankeval_spark.results.object_storage import open_objects  # noqa: PLC0415 - needs the extra `stores`

    return open_objects(location)


def check_root(root: str) -> None:
    """Raise ConfigError for a root that is not ours or cannot be used."""
    storage = storage_at(root)
    try:
        if not _is_ours(storage) and (names := _names(storage)):
            raise _with_other_things(storage, names)
        storage.require_writable()
    except OSError as error:
        raise unusable_root(storage, error) from error


def claim_root(storage: Storage, *, create: bool) -> None:
    """Check that the root is ours; with ``create`` an empty or missing folder becomes ours, and never another."""
    try:
        if _is_ours(storage):
            return
        names = _names(storage)
        if not names and not create:
            raise _refused(storage, ", where there are no results", "the root of an earlier run")
        if not names:
            storage.create(MARKER, json.dumps({"product": "rankeval-spark", "layout": LAYOUT}).encode())
        if not _is_ours(storage):  # another process may have made it meanwhile
            raise _with_other_things(storage, names)
    except OSError as error:
        raise unusable_root(storage, error) from error


def _names(storage: Storage) -> list[str]:
    """Return the names in a root, without a draft of the marker and what a probe of the locks left."""
    names = [name for name in storage.names("") if not name.startswith(f".{MARKER}.")]
    return [] if names == [LOCKS_FOLDER] else names


def _is_ours(storage: Storage) -> bool:
    """Return whether a root has our marker; ConfigError if it is in a newer layout."""
    try:
        # Another process may be writing the marker this moment: an empty one is as good as a new one.
        content = storage.read(MARKER) or b"{}"
    except FileNotFoundError:
        return False
    try:
        layout = int(json.loads(content).get("layout", LAYOUT))
    except (ValueError, TypeError, AttributeError, RecursionError):
        found, expected = f", whose {MARKER} cannot be read", f'{{"layout": {LAYOUT}}} in it'
        raise _refused(storage, found, expected, "write it again, if these are our tables") from None
    if layout > LAYOUT:
        expected = f"layout {LAYOUT}, the newest that this version knows"
        fix = "run the version of rankeval-spark that wrote it, or a newer one"
        raise _refused(storage, f" in layout {layout}", expected, fix)
    return True


def _with_other_things(storage: Storage, names: list[str]) -> ConfigError:
    found = f", a folder that holds other things ({', '.join(names[:3])})"
    expected, fix = "an empty folder or the results of earlier runs", "choose a folder of its own for the results"
    return _refused(storage, found, expected, fix)


def unusable_root(storage: Storage, error: OSError) -> Exception:
    expected, fix = "a folder that can be read and written", "check its permissions and the free space"
    if storage.is_mirror:
        if error.errno == errno.EIO:  # no fault of the config
            return error
        expected, fix = "a store that can be read and written", "check address, endpoint, and rights of the credentials"
    return _refused(storage, f" ({error.strerror or error})", expected, fix)


def _refused(storage: Storage, found: str, expected: str, fix: str = "") -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.address!r}{found}", expected, fix))
