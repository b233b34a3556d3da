"""Spark settings: which are harmless to store, which Spark itself shows, and which name files (jars are code)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.allowed_folders import scheme_of
from rankeval_spark.config.sections.locations import SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HARMLESS: Final = re.compile(
    r"spark\.(?:"
    r"default\.parallelism|task\.(?:cpus|maxFailures)|(?:driver|executor)\.(?:cores|memory|memoryOverhead|"
    r"memoryOverheadFactor|instances|maxResultSize|pyspark\.memory)|cores\.max|memory\.[\w.]+|"
    r"dynamicAllocation\.[\w.]+|speculation(?:\.[\w.]+)?|locality\.wait(?:\.[\w.]+)?|scheduler\.mode|"
    r"python\.worker\.(?:memory|reuse)|serializer|kryoserializer\.buffer(?:\.max)?|rdd\.compress|"
    r"shuffle\.(?:compress|spill\.compress|sort\.bypassMergeThreshold|file\.buffer|io\.\w+)|reducer\.\w+|"
    r"io\.compression\.[\w.]+|network\.timeout|rpc\.message\.maxSize|ui\.(?:enabled|showConsoleProgress)|"
    r"eventLog\.(?:enabled|compress)|databricks\.delta\.(?:snapshotPartitions|[\w.]+\.enabled)|"
    r"sql\.(?:adaptive|codegen|execution|objectHashAggregate|join|files|parquet|optimizer|statistics|cbo|"
    r"inMemoryColumnarStorage|sources\.parallelPartitionDiscovery|legacy|ansi)\.[\w.]+|"
    r"sql\.(?:shuffle\.partitions|autoBroadcastJoinThreshold|broadcastTimeout|session\.timeZone|caseSensitive|"
    r"requireAllClusterKeysForCoPartition|windowExec\.buffer\.[\w.]+|sortMergeJoinExec\.buffer\.[\w.]+)"
    r")"
)
"""Settings of plans and sizes, which hold no secret and name no file."""

_HARMLESS_VALUE: Final = re.compile(r"-?[\w.+]{1,40}%?(?:/[A-Za-z_]{1,40})?")
"""A number, a size, a time, a switch, a name or a zone."""

_SHOWN: Final = re.compile(
    r"spark\.(?:app\..*|master|jars.*|files|archives|submit\..*|driver\.(?!(?:extra|default)JavaOptions$).*|executor\..*|"
    r"rpc\..*|network\..*|auth(?!enticate\.secret$).*|ssl(?!.*Password$).*|.*\.port|port\..*|yarn\.am\..*|"
    r"(?:sql\.)?redaction\..*)"
)
"""Settings that Spark shows on a command line, such as the memory of a JVM, or in its event log."""

_NAMES_FILES: Final = re.compile(
    r"spark\.(?:jars(?:\.ivy|\.ivySettings)?|files|archives|submit\.pyFiles|local\.dir|eventLog\.dir|log\.\w*dir|"
    r"(?:driver|executor)\.extra(?:Class|Library)Path|sql\.warehouse\.dir|pyspark\.(?:driver\.)?python|"
    r"yarn\.(?:jars|archive|dist\.\w+)|checkpoint\.dir|kubernetes\.file\.upload\.path)"
)
"""Settings whose value consists of files and folders, relative ones too."""

_SEPARATORS: Final = re.compile(r"[\s,;=\"']+")
_BEFORE_A_PATH: Final = re.compile(r"^(?:-\w[\w./-]*:|@)+(?=[/~.])")
"""Prefix of a file in Java options, such as ``-javaagent:``."""

_STARTS: Final = ("/", "~", "./", "../")
_OF_FILES: Final = (*SCHEMES, "local", "jar")


def is_plain(key: str, value: str) -> bool:
    """Return True if a setting may be stored with its value: key and value are both harmless."""
    return _HARMLESS.fullmatch(key) is not None and _HARMLESS_VALUE.fullmatch(value) is not None


def is_shown(key: str) -> bool:
    """Return True if Spark itself shows the value of a setting, so that it must not come from the environment.

    Java options of the driver are not shown: Spark passes them in a file.
    """
    return _SHOWN.fullmatch(key) is not None


def setting_files(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """List the files and folders that settings name, each with the place of its setting."""
    for key, value in settings.items():
        if not _HARMLESS.fullmatch(key):
            for part in _parts(key, value):
                # `local:` and `jar:` only say how a file is reached
                yield f"spark.settings.{key}", re.sub(r"^(?:local|jar):(?:file:)?", "", part)


def _parts(key: str, value: str) -> list[str]:
    words = [_BEFORE_A_PATH.sub("", word) for word in _SEPARATORS.split(value) if word]
    parts = [part for word in words for part in _class_path(word)]
    if _NAMES_FILES.fullmatch(key):
        return parts
    return [part for part in parts if part.startswith(_STARTS) or scheme_of(part) in _OF_FILES]


def _class_path(word: str) -> list[str]:
    return word.split(":") if word.startswith(_STARTS) and "://" not in word else [word]
