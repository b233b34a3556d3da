"""What makes a folder a results root, and the refusal of one that is not ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rankeval_spark.results.storage.file_store import LocalStorage, Storage

MARKER: Final = "_rankeval.json"
LAYOUT: Final = 1
"""Number of the layout of a results root; raised when older code must not write to it any more."""


def claim(storage: Storage, *, create: bool) -> None:
    """Check that the root is ours, and make an empty or missing folder ours if ``create`` says so.

    The folder is never taken over when it holds anything else: a typing mistake must not scatter tables
    over other data.
    """
    try:
        if create and is_free(storage):
            storage.create(MARKER, json.dumps({"product": "rankeval-spark", "layout": LAYOUT}).encode())
        _require_ours(storage, _names(storage))
    except OSError as error:
        raise unusable_root(storage, error) from error


def check_local(storage: LocalStorage) -> None:
    """Refuse a folder that :func:`claim` would refuse, or cannot be written to; nothing is made.

    Raises
    ------
    ConfigError
        It is not ours, or cannot be used.
    """
    try:
        if not is_free(storage):
            _require_ours(storage, _names(storage))
        storage.require_writable()
    except OSError as error:
        raise unusable_root(storage, error) from error


def is_free(storage: Storage) -> bool:
    """Whether a root is an empty or missing folder."""
    return not _names(storage)


def _names(storage: Storage) -> list[str]:
    """Names in a root, without a draft of the marker."""
    return [name for name in storage.names("") if not name.startswith(f".{MARKER}.")]


def unusable_root(storage: Storage, error: OSError) -> ConfigError:
    """Say that the root cannot be read or written."""
    expected, fix = "a folder that can be read and written", "check its permissions and the free space"
    return _refused(storage, f" ({error.strerror or error})", expected, fix)


def _require_ours(storage: Storage, names: list[str]) -> None:
    if MARKER in names:
        _require_known_layout(storage)
    elif names:
        found = f", a folder that holds other things ({', '.join(names[:3])})"
        expected, fix = "an empty folder or the results of earlier runs", "choose a folder of its own for the results"
        raise _refused(storage, found, expected, fix)
    else:
        raise _refused(storage, ", where there are no results", "the root of an earlier run")


def _require_known_layout(storage: Storage) -> None:
    # Another process may be writing the marker this moment: an empty one is as good as a new one.
    content = storage.read(MARKER) or b"{}"
    try:
        layout = int(json.loads(content).get("layout", LAYOUT))
    except (ValueError, TypeError, AttributeError, RecursionError):
        found, expected = f", whose {MARKER} cannot be read", f'{{"layout": {LAYOUT}}} in it'
        raise _refused(storage, found, expected, "write it again, if these are our tables") from None
    if layout > LAYOUT:
        expected = f"layout {LAYOUT}, the newest that this version knows"
        fix = "run the version of rankeval-spark that wrote it, or a newer one"
        raise _refused(storage, f" in layout {layout}", expected, fix)


def _refused(storage: Storage, found: str, expected: str, fix: str = "") -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.root!r}{found}", expected, fix))
