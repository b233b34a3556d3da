"""Start the driver's JVM, and say in one message why it does not start."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, FaultsError, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Gateway: TypeAlias = Any
"""The connection to a JVM: py4j has no types."""

OF_START: Final = ("spark.driver.", "spark.jars", "spark.master", "spark.files", "spark.archives", "spark.submit.")
"""Settings that the JVM is started with, or that are seen to before its first answer."""

_STDERR: Final = 2
_THROWN: Final = re.compile(r'^Exception in thread "main" (?P<what>.*)$', re.MULTILINE)
_REFUSED_OPTION: Final = re.compile(r"Could not create the Java Virtual Machine|initialization of VM")
_NO_NEWS: Final = re.compile(
    r"WARNING|OpenJDK|Picked up|Error: (?:Could not create|A fatal)|Error occurred during|[:#]*$|:|\s"
)
"""How lines begin that do not say what went wrong."""

_EXPECTED_WARNING: Final = re.compile(rb"^WARNING: Using incubator modules: .*\n", re.MULTILINE)
"""What Java says of a module that Spark's launcher always asks for."""

_SHORTEST_VALUE: Final = 3
"""Characters from which on a value is looked for in what was said: a shorter one would be found everywhere."""

_SECONDS_TO_END: Final = 5


class _JvmOutput:
    """What a JVM says: kept until it is known whether it starts, then passed on as it comes."""

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
        self._thread.join(_SECONDS_TO_END)
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
            os.write(_STDERR, _EXPECTED_WARNING.sub(b"", said))


def launch_driver(options: Mapping[str, str], *, user_settings: Mapping[str, str]) -> Gateway:
    """Start the driver's JVM in a session of its own.

    A scheduler that ends our process group would end the JVM too, and the run could no longer record that in ``runs``.
    The JVM ends by itself when this process does, because it reads our end of a pipe. Its output goes to our standard
    error: the standard output is that of the command.

    Parameters
    ----------
    options : mapping
        Settings that it is started with.
    user_settings : mapping
        Those of them that a user or an administrator wrote: one of these is at fault where it does not start.

    Raises
    ------
    ConfigError
        The JVM refuses an option.
    EnvironmentFaultError
        It does not start for another reason, such as a jar that cannot be fetched.
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


def end_driver(session: SparkSession) -> None:
    """End a session and the JVM that was started for it, and wait until that is gone."""
    gateway = SparkContext._gateway
    session.stop()
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def not_started(said: str, user_settings: Mapping[str, str]) -> FaultsError:
    """Say why a JVM did not start, and which settings are the likely cause.

    Parameters
    ----------
    said : str
        All that it wrote.
    user_settings : mapping
        Settings that a user or an administrator wrote.
    """
    named = [key for key, value in user_settings.items() if _is_named(key, value, said)]
    names = " or ".join(named or [key for key in user_settings if key.startswith(OF_START)])
    found = f"a driver that does not start: {_reason(said)}"
    where, fix = (f"spark.settings, {names}", f"correct or remove {names}") if names else ("Spark driver", "")
    if named or _REFUSED_OPTION.search(said):
        return ConfigError(Fault(where, found, "a value that Spark and Java take", fix))
    return EnvironmentFaultError(
        Fault(where, found, "a driver on this machine", "; ".join(filter(None, (fix, "run 'rankeval doctor'"))))
    )


def _is_named(key: str, value: str, said: str) -> bool:
    """Whether a message is about a setting: it holds the value, or the words of the key."""
    has_value = len(value) >= _SHORTEST_VALUE and value in said
    words = key.removeprefix("spark.").lower().split(".")
    return has_value or (len(words) > 1 and " ".join(words) in said.lower())


def _reason(said: str) -> str:
    thrown = _THROWN.search(said)
    lines = [thrown["what"]] if thrown else [line for line in said.splitlines() if not _NO_NEWS.match(line)]
    return first_line("\n".join(line.lstrip("# ") for line in lines)).rstrip(".")
