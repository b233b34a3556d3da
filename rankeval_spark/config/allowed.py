"""The folders that a config may name, where whoever runs the job says which: in the environment, not in the config."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rankeval_spark.config.locations import scheme_of
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from rankeval_spark.config.models import EvaluationConfig

VARIABLE: Final = "RANKEVAL_ROOTS"
"""Folders separated by commas; every path is allowed where it is not set."""


def check_roots(config: EvaluationConfig, date: dt.date, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a config that reads or writes outside the allowed folders; links and ``..`` are followed first.

    Tables of a catalog are its own to allow.

    Raises
    ------
    ConfigError
        Every path that lies outside.
    """
    roots = [_real(root.strip()) for root in environment.get(VARIABLE, "").split(",") if root.strip()]
    places = {f"inputs.{name}.path": one.location(date) for name, one in config.inputs if one and one.path is not None}
    places["results.root"] = config.results.location
    faults = [
        Fault(where, repr(path), f"a path below {', '.join(roots)}", f"{VARIABLE} says so")
        for where, path in places.items()
        if roots and not _is_allowed(path, roots)
    ]
    if faults:
        raise ConfigError(*faults)


def _is_allowed(path: str, roots: Sequence[str]) -> bool:
    """Judge a path as it is written and with its %20 read: stores and readers differ in this."""
    return all(any(_is_below(_real(form), root) for root in roots) for form in (path, unquote(path)))


def _real(path: str) -> str:
    """Write a path in the one form in which it is compared; ``?`` and ``#`` are characters of names to Spark."""
    scheme = scheme_of(path)
    authority, rest = _parts(path.partition(":")[2]) if scheme else ("", path)
    if scheme in ("", "file"):
        return os.path.realpath(rest)
    return f"{scheme}://{authority}{posixpath.normpath('/' + rest.lstrip('/'))}"


def _parts(address: str) -> tuple[str, str]:
    """Split what follows the scheme into authority and path."""
    if not address.startswith("//"):
        return "", address
    authority, slash, rest = address[2:].partition("/")
    return authority, slash + rest


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
