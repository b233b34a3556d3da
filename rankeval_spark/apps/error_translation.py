"""Failures as errors that a user can act on: refused data, an input that is gone, a full disk, a lost driver."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from rankeval_spark.errors import (
    ChecksFailedError,
    ConfigError,
    DriverLostError,
    EnvironmentFaultError,
    Fault,
    FaultsError,
    RankevalError,
    first_line,
    note,
    notes_of,
)
from rankeval_spark.jar_faults import describe_linkage_error
from rankeval_spark.refusals import find_refusal, find_unreadable

# Texts of the system, the same in Python and in Java: of a disk that takes no more, and of one mounted read-only.
_NO_ROOM: Final = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_READ_ONLY: Final = "Read-only file system"


def translate_error(error: Exception, locations: Mapping[str, str]) -> Exception:
    """Return the error that a user can act on, with the notes of ``error``, or that itself: nothing is known of it."""
    if isinstance(error, RankevalError):
        return error
    fault = find_refusal(str(error))
    found = (
        _store_error(error)
        or _machine_error(error)
        or (ChecksFailedError(fault) if fault else find_unreadable(str(error)))
    )
    if found is None and "pyspark" in sys.modules:
        from rankeval_spark.inputs.spark.opening import explain  # noqa: PLC0415 - imports pyspark

        found = explain(error, dict(locations))
    return _choose_error(error, found)


def machine_fault(error: Exception) -> Exception:
    """Return the error of a full disk or a lost driver that is behind another one, else that one itself."""
    if isinstance(error, RankevalError):
        return error
    return _choose_error(error, _store_error(error) or _machine_error(error))


def _choose_error(error: Exception, found: FaultsError | None) -> Exception:
    """Return the error that was found, with the notes of the original one; without one the original itself."""
    if found is None:
        return error
    for line in notes_of(error):
        note(found, line)
    return found


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what goes wrong within the block as the error that a user can act on."""
    try:
        yield
    except Exception as error:
        known = translate_error(error, {})
        if known is error:
            raise
        raise known from error


def _store_error(error: Exception) -> FaultsError | None:
    """Return the error of an object store without the bucket, or that did not answer for a minute."""
    if not isinstance(error, OSError) or "://" not in str(error.filename):
        return None
    said = first_line(str(error))
    if error.errno == errno.ENODEV:
        return ConfigError(Fault("object store", said, "a bucket that exists", "check the address and the endpoint"))
    if error.errno == errno.EIO:
        fix = "check the endpoint and the network, and run again: that repairs what was left"
        return EnvironmentFaultError(Fault("object store", said, "a store that answers", fix))
    return None


def _machine_error(error: Exception) -> FaultsError | None:
    """Return the error of a full disk, a file without permission or a lost driver."""
    found = _NO_ROOM.search(str(error))
    if found is not None:
        expected = "room for staging, for the tables and for what Spark spills"
        fix = "free space for the results root, or let Spark spill elsewhere (SPARK_LOCAL_DIRS), and run again"
        return EnvironmentFaultError(Fault("disk", f"no room: {found[0]}", expected, fix))
    is_denied = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    if is_denied or _READ_ONLY in str(error):  # a root became read-only, or has other permissions
        expected, fix = "files that can be read and written", "check the permissions and the mounts, and run again"
        return ConfigError(Fault("files of the run", first_line(str(error)), expected, fix))
    if said := describe_linkage_error(str(error)):
        return EnvironmentFaultError(*_jar_faults(said))
    # A lost JVM: py4j has no answer, no connection, or an error without Java's trace.
    protocol = sys.modules.get("py4j.protocol")
    if protocol is None:
        return None
    is_unanswered = type(error) is protocol.Py4JError and "Trace:" not in str(error)
    if not (is_unanswered or isinstance(error, protocol.Py4JNetworkError | ConnectionError)):
        return None
    fix = "was it killed for its memory (spark.driver.memory), or by the scheduler? Run again"
    return DriverLostError(Fault("Spark driver", "its JVM gone in the middle of the run", "one that answers", fix))


def _jar_faults(said: str) -> list[Fault]:
    """Return the jars that do not fit the Spark of this process; where all seem to, what Java said of them."""
    faults = list[Fault]()
    if "pyspark" in sys.modules:
        from rankeval_spark.spark.session.builder import find_jar_faults  # noqa: PLC0415 - imports pyspark

        with suppress(Exception):  # the JVM may be gone by now
            faults = find_jar_faults()
    expected, fix = (
        "jars that are built for this Spark, Scala and Hadoop",
        "run 'rankeval doctor', and remove other jars",
    )
    return faults or [Fault("jars of Spark", said, expected, fix)]
