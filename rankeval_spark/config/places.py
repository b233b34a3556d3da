"""The files and folders that a config names: inputs, results, and those of Spark settings, of which jars are code."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.allowed import demand, scheme_of
from rankeval_spark.config.locations import SCHEMES
from rankeval_spark.config.plain_settings import is_harmless

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

    from rankeval_spark.config.models import EvaluationConfig

_NAMES_FILES: Final = re.compile(
    r"spark\.(?:jars(?:\.ivy|\.ivySettings)?|files|archives|submit\.pyFiles|local\.dir|eventLog\.dir|log\.\w*dir|"
    r"(?:driver|executor)\.extra(?:Class|Library)Path|sql\.warehouse\.dir|pyspark\.(?:driver\.)?python|"
    r"yarn\.(?:jars|archive|dist\.\w+)|checkpoint\.dir|kubernetes\.file\.upload\.path)"
)
"""Settings whose value is nothing but files and folders, relative ones too."""

_SEPARATORS: Final = re.compile(r"[\s,;=\"']+")
_BEFORE_A_PATH: Final = re.compile(r"^(?:-\w[\w./-]*:|@)+(?=[/~.])")
"""What Java options have before a file, as ``-javaagent:``."""

_STARTS: Final = ("/", "~", "./", "../")
_OF_FILES: Final = (*SCHEMES, "local", "jar")


def check_roots(config: EvaluationConfig, date: dt.date, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a config that names a path outside the allowed folders; links and ``..`` are followed first.

    Tables of a catalog are its own to allow.

    Raises
    ------
    ConfigError
        Every path that lies outside.
    """
    named = {f"inputs.{name}.path": one.location(date) for name, one in config.inputs if one and one.path is not None}
    named["results.root"] = config.results.location
    demand(*named.items(), environment=environment)


def of_settings(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """List the files and folders that settings name, each with what names it; those that shape plans name none."""
    for key, value in settings.items():
        if not is_harmless(key):
            for part in _parts(key, value):
                yield f"spark.settings.{key}", _as_path(part)


def _parts(key: str, value: str) -> list[str]:
    words = [_BEFORE_A_PATH.sub("", word) for word in _SEPARATORS.split(value) if word]
    parts = [part for word in words for part in _of_class_path(word)]
    if _NAMES_FILES.fullmatch(key):
        return parts
    return [part for part in parts if part.startswith(_STARTS) or scheme_of(part) in _OF_FILES]


def _of_class_path(word: str) -> list[str]:
    return word.split(":") if word.startswith(_STARTS) and "://" not in word else [word]


def _as_path(part: str) -> str:
    """Write a file as it is compared: ``local:`` and ``jar:`` say only how it is reached."""
    return re.sub(r"^(?:local|jar):(?:file:)?", "", part)
