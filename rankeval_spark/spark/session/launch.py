"""The start of the driver's JVM, one message that says why it does not start, and none when it is gone."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, FaultsError, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_START: Final = ("spark.driver.", "spark.jars", "spark.master", "spark.files", "spark.archives", "spark.submit.")
"""Settings that the JVM is started with, or that are read before its first answer."""

_SHORTEST_VALUE: Final = 3  # characters; a shorter value would be found in every message
_THROWN: Final = re.compile(r'^Exception in thread "main" (?P<what>.*)$', re.MULTILINE)
_REFUSED_OPTION: Final = re.compile(r"Could not create the Java Virtual Machine|initialization of VM")
# How lines begin that do not say what went wrong.
_NO_NEWS: Final = re.compile(
    r"WARNING|OpenJDK|Picked up|Error: (?:Could not create|A fatal)|Error occurred during|[:#]*$|:|\s"
)
# What Java says of a module that Spark's launcher always asks for.
_EXPECTED_WARNING: Final = re.compile(rb"^WARNING: Using incubator modules: .*\n", re.MULTILINE)


class _JvmOutput:
    """Output of a JVM: kept until it is known whether it starts, then passed on as it comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = b""
        self._is_passed_on = False
        self._read, self.pipe = os.pipe()
        self._thread = threading.Thread(target=self._listen, name="what the driver says", daemon=True)
        self._thread.start()

    def pass_on(self) -> None:
        """Write to our standard error what was said, and from now on at once."""
        with self._lock:
            self._is_passed_on = True
            self._tell(self._kept)
            self._kept = b""

    def text(self) -> str:
        """Return all that a JVM said that has ended."""
        self._thread.join(5)
        with self._lock:
            return self._kept.decode(errors="replace")

    def _listen(self) -> None:
        while said := os.read(self._read, 1 << 16):
            with self._lock:
                if self._is_passed_on:
                    self._tell(said)
                else:
                    self._kept += said
        os.close(self._read)

    @staticmethod
    def _tell(said: bytes) -> None:
        with suppress(OSError):  # no one reads it any more
            os.write(2, _EXPECTED_WARNING.sub(b"", said))


def launch_driver(options: Mapping[str, str], *, user_settings: Mapping[str, str]) -> Any:  # noqa: ANN401 - py4j has no types
    """Start the driver's JVM in a session of its own; return the connection to it.

    A scheduler that ends our process group would end the JVM too, and the run could no longer record that in ``runs``.
    The JVM ends by itself when this process does, because it reads our end of a pipe. Its output goes to our standard
    error: the standard output is that of the command. Where it does not start, see :func:`not_started`.
    """
    output = _JvmOutput()
    try:
        conf = SparkConf(loadDefaults=False).setAll([*options.items()])
        process = {"start_new_session": True, "stdout": output.pipe, "stderr": output.pipe}
        gateway = launch_gateway(conf, popen_kwargs=process)  # type: ignore[no-untyped-call]  # its own
    except PySparkRuntimeError as error:
        os.close(output.pipe)
        raise not_started(output.text(), user_settings) from error
    os.close(output.pipe)
    output.pass_on()
    return gateway


def not_started(said: str, user_settings: Mapping[str, str]) -> FaultsError:
    """Return the error of a JVM that did not start, with the settings of the user that likely caused it."""
    named = [key for key, value in user_settings.items() if _is_named(key, value, said)]
    names = " or ".join(named or [key for key in user_settings if key.startswith(OF_START)])
    thrown = _THROWN.search(said)
    lines = [thrown["what"]] if thrown else [line for line in said.splitlines() if not _NO_NEWS.match(line)]
    reason = first_line("\n".join(line.lstrip("# ") for line in lines)).rstrip(".")
    found = f"a driver that does not start: {reason}"
    where, fix = (f"spark.settings, {names}", f"correct or remove {names}") if names else ("Spark driver", "")
    if named or _REFUSED_OPTION.search(said):
        return ConfigError(Fault(where, found, "a value that Spark and Java take", fix))
    fix = "; ".join(filter(None, (fix, "run 'rankeval doctor'")))
    return EnvironmentFaultError(Fault(where, found, "a driver on this machine", fix))


def _is_named(key: str, value: str, said: str) -> bool:
    """Return True if a message is about a setting: it holds the value, or the words of the key."""
    has_value = len(value) >= _SHORTEST_VALUE and value in said
    words = key.removeprefix("spark.").lower().split(".")
    return has_value or (len(words) > 1 and " ".join(words) in said.lower())


def silence_lost_driver_traceback(session: SparkSession) -> None:
    """Keep pyspark's server of accumulators from printing a traceback when its connection to the JVM ends.

    Its other errors are reported as before. The next call to the JVM fails, and that failure is explained.
    """
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    report = server.handle_error

    def handle_error(*request_arguments: Any) -> None:  # noqa: ANN401 - a socket and its address, handed on
        if not isinstance(sys.exc_info()[1], EOFError):
            report(*request_arguments)

    server.handle_error = handle_error
