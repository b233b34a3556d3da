"""What is known of single Spark settings: which are harmless to store, and which Spark shows to everyone."""

from __future__ import annotations

import re
from typing import Final

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
"""Settings that shape plans and sizes."""

_HARMLESS_VALUE: Final = re.compile(r"-?[\w.+]{1,40}%?(?:/[A-Za-z_]{1,40})?")
"""A number, a size, a time, a switch, a name or a zone."""

_SHOWN: Final = re.compile(
    r"spark\.(?:app\..*|master|jars.*|files|archives|submit\..*|driver\.(?!(?:extra|default)JavaOptions$).*|executor\..*|"
    r"rpc\..*|network\..*|auth(?!enticate\.secret$).*|ssl(?!.*Password$).*|.*\.port|port\..*|yarn\.am\..*|"
    r"(?:sql\.)?redaction\..*)"
)
"""Settings that Spark puts on a command line, such as the memory of a JVM, or into the events that it publishes."""


def is_harmless(key: str) -> bool:
    """Return True if a setting is one of those that shape plans and sizes."""
    return _HARMLESS.fullmatch(key) is not None


def is_plain(key: str, value: str) -> bool:
    """Return True if a setting may be stored with its value: its key is on the list and its value looks harmless."""
    return is_harmless(key) and _HARMLESS_VALUE.fullmatch(value) is not None


def is_shown(key: str) -> bool:
    """Return True if Spark itself shows the value of a setting, so that none may come from the environment.

    The Java options of the driver are not among them: they are handed over in a file.
    """
    return _SHOWN.fullmatch(key) is not None
