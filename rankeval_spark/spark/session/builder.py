"""The Spark session: the one that is there, or a new one, whose driver tells in one message why it does not start."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import IllegalArgumentException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rankeval_spark import allowed_folders, jar_faults
from rankeval_spark.config import spark_settings
from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, FaultsError, first_line, hide
from rankeval_spark.spark.session import jars as delta, secrets, settings as driver_settings
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.version import require_spark, spark_line

Settings = Mapping[str, str]

OF_START: Final = ("spark.driver.", "spark.jars", "spark.master", "spark.files", "spark.archives", "spark.submit.")
"""Settings that the JVM is started with, or that are read before its first answer."""

_OF_MASTER: Final = re.compile(r"Could not parse Master URL|Asked to (?:run locally|launch cluster) with")
"""Words in Spark's error on an invalid master; the class of that error has many other causes."""

_MIN_LENGTH: Final = 3  # characters; a shorter value would be found in every message
_THROWN: Final = re.compile(r'^Exception in thread "main" (?P<what>.*)$', re.MULTILINE)
_REFUSED_OPTION: Final = re.compile(r"Could not create the Java Virtual Machine|initialization of VM")
# How lines begin that do not say what went wrong.
_NO_NEWS: Final = re.compile(
    r"WARNING|OpenJDK|Picked up|Error: (?:Could not create|A fatal)|Error occurred during|[:#]*$|:|\s"
)
# What Java says of a module that Spark's launcher always asks for.
_EXPECTED_WARNING: Final = re.compile(rb"^WARNING: Using incubator modules: .*\n", re.MULTILINE)


def build_session(
    app_name: str = "rankeval",
    master: str | None = None,
    settings: Settings | None = None,
    jars: Sequence[Path] | None = None,
) -> SparkSession:
    """Return a session with Delta, ready for an evaluation.

    A session that is active already is used unchanged, except for the settings below that can still be made. Under
    ``spark-submit`` its master and its ``--conf`` apply. With ``SPARK_REMOTE`` it is one on that Spark Connect server.
    Otherwise a driver is started on this machine.

    Parameters
    ----------
    app_name : str
        Name that Spark shows for a session started here.
    master : str, optional
        Where to run; by default what ``spark-submit`` or ``spark-defaults.conf`` says, else ``local[*]``.
    settings : mapping of str to str, optional
        Settings of the user. They win over what ``spark-submit`` was given, which wins over our own.
    jars : sequence of Path, optional
        The Delta jars; by default those in the cache, fetched once, and none where Delta is there already.

    Raises
    ------
    EnvironmentFaultError
        When Java or the Delta jars are missing, or Spark does not start.
    ConfigError
        When Spark refuses the master or a setting, or a setting names a file outside the allowed folders.
    """
    require_spark()
    user_settings = dict(settings or {})
    allowed_folders.require_allowed(*spark_settings.setting_files(user_settings))
    try:
        if (active := SparkSession.getActiveSession()) is not None:
            return _configure_running(active, user_settings)
        if os.environ.get("SPARK_REMOTE"):
            return _configure_running(SparkSession.builder.getOrCreate(), user_settings)
        if driver_settings.is_under_spark_submit():
            return _submit_session(app_name, master=master, user_settings=user_settings)
        return _start_driver(app_name, master=master, user_settings=user_settings, jars=jars)
    except (Py4JJavaError, IllegalArgumentException) as error:
        if not _is_refusal(error):
            raise
        # Only Spark's message says which setting it was.
        found = f"Spark refuses it: {first_line(str(error)).removesuffix('.')}"
        fix = "look at master and settings under spark in the config, at --conf, and at spark-defaults.conf"
        raise ConfigError(Fault("spark", found, "a master and settings that it takes", fix)) from error


def count_local_cores(master: str) -> int:
    """Count the tasks that run at a time under a local master; Spark itself refuses one that it cannot read.

    >>> count_local_cores("local[3]"), count_local_cores("local"), count_local_cores("local-cluster[2,4,1024]")
    (3, 1, 8)
    """
    if master == "local":
        return 1
    numbers = re.match(r"local\[(\d+)|local-cluster\[\s*(\d+)\s*,\s*(\d+)", master)
    if numbers is None:
        return os.cpu_count() or 1
    return max(1, math.prod(int(number) for number in numbers.groups() if number))


def _configure_running(session: SparkSession, user_settings: Settings) -> SparkSession:
    """Apply the settings that a running session still takes; what it was given on purpose is kept."""
    given = session.conf.getAll
    missing = {key: value for key, value in driver_settings.job_settings().items() if key not in given}
    secrets.refuse_late(session, user_settings)
    _set_modifiable(session, {**missing, **user_settings})
    return session


def _set_modifiable(session: SparkSession, settings: Settings) -> None:
    """Set what a running session still takes; Spark refuses a value of another type than the setting's."""
    with warnings.catch_warnings():
        # Spark Connect has no way but that by Arrow.
        warnings.filterwarnings("ignore", message="The SQL config .* is NOT supported in Spark Connect")
        for key, value in settings.items():
            if session.conf.isModifiable(key):
                session.conf.set(key, value)


def _default_settings(master: str) -> dict[str, str]:
    """Return our own settings for a master."""
    local = (
        driver_settings.local_settings(driver_settings.cache_dir() / "warehouse", cores=count_local_cores(master))
        if driver_settings.is_local(master)
        else {}
    )
    return driver_settings.job_settings() | local


def _submit_session(app_name: str, *, master: str | None, user_settings: Settings) -> SparkSession:
    """Create the session of a driver that ``spark-submit`` started, to which jars can no longer be given."""
    SparkContext._ensure_initialized()  # connects to that driver, as creating a context would; SparkConf then sees it
    given, jvm = dict(SparkConf().getAll()), SparkContext._jvm
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(driver_settings.DELTA_EXTENSION):
        package, expected = delta.pinned_build().package, "the Delta jars among its own"
        fix = f"add --packages {package}, or --jars with the two files in {delta.jars_dir()}"
        raise EnvironmentFaultError(Fault("spark-submit", "a driver without Delta", expected, fix))
    _refuse_other_delta()
    target = {"spark.master": master} if master else {}
    wanted = _default_settings(master or given.get("spark.master", ""))
    return _create_session({"spark.app.name": app_name, **wanted, **given, **target, **user_settings})


def _start_driver(
    app_name: str, *, master: str | None, user_settings: Settings, jars: Sequence[Path] | None
) -> SparkSession:
    """Start a driver on this machine and create its session."""
    java = find_java()
    given = driver_settings.spark_defaults()
    target = master or user_settings.get("spark.master") or given.get("spark.master") or "local[*]"
    options = {
        "spark.app.name": app_name,
        **_default_settings(target),
        **given,
        **user_settings,
        "spark.master": target,
    }
    is_brought = jars is None and delta.brings_delta(options)
    if jars is None and not is_brought:
        jars = delta.delta_jars(java)
    options |= _jar_setting(options, jars or ())
    is_local, worker_python = driver_settings.is_local(target), options.get("spark.pyspark.python")
    with (
        driver_settings.driver_environment(java, is_local=is_local, worker_python=worker_python),
        secrets.command_line_settings(options) as jvm_settings,
    ):
        shown = _add_delta_extension(jvm_settings)
        session = _create_session(options, jvm_settings=shown, user_settings={**given, **user_settings})
    if is_brought:
        _refuse_other_delta()
    return session


def _jar_setting(options: Settings, jars: Sequence[Path]) -> dict[str, str]:
    """Return the setting that adds jars to those of the user."""
    others = options["spark.jars"].split(",") if options.get("spark.jars") else []
    return {"spark.jars": ",".join([*others, *map(str, jars)])} if jars else {}


def _refuse_other_delta() -> None:
    """Refuse several Delta jars, or one of another Spark: jobs would fail for them, in words about the inputs."""
    if faults := [fault for fault in find_jar_faults() if fault.where.startswith("Delta")]:
        raise EnvironmentFaultError(*faults)


def find_jar_faults() -> list[Fault]:
    """Find jars of the driver of this process that do not fit its Spark; none where there is no driver."""
    jvm = SparkContext._jvm
    if jvm is None or spark_line() not in delta.BUILDS:
        return []
    loader, found = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader(), dict[str, list[str]]()
    for kind, mark in jar_faults.MARKS.items():
        places = loader.getResources(mark)
        while places.hasMoreElements():  # such as jar:file:/opt/jars/delta-spark_4.2_2.13-4.4.0.jar!/io/delta/...
            jar = places.nextElement().toString().partition("!")[0]
            found.setdefault(kind, []).append(unquote(jar.rpartition("/")[2]))
    hadoop = str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    return jar_faults.jar_faults(found, spark=spark_line(), hadoop=hadoop, package=delta.pinned_build().package)


def _create_session(
    options: Settings, *, jvm_settings: Settings | None = None, user_settings: Settings = MappingProxyType({})
) -> SparkSession:
    """Create the session; a driver that does not come up is a fault of the environment."""
    builder = SparkSession.builder
    for key, value in secrets.add_redaction(_add_delta_extension(options)).items():
        if spark_settings.is_written_out(key, value):
            hide(value)
        builder = builder.config(key, value)
    # pyspark's handler speaks to the JVM on a connection that may be waiting for an answer, so that the jobs are
    # cancelled when the one under way is over: then perhaps the one that records the interruption.
    before = signal.getsignal(signal.SIGINT)
    try:
        if jvm_settings is not None and SparkContext._gateway is None:
            SparkContext._ensure_initialized(gateway=_launch_driver(jvm_settings, user_settings=user_settings))
        session = builder.getOrCreate()
        # Settings of queries that a session is created with are looked at by its first query: have it done now.
        _set_modifiable(session, options)
    except PySparkRuntimeError as error:
        fix = "see the lines above, and run 'rankeval doctor'"
        fault = Fault("Spark driver", f"it did not start: {error}", "a driver on this machine", fix)
        raise EnvironmentFaultError(fault) from error
    finally:
        if before is not signal.default_int_handler and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
    _silence_lost_driver_traceback(session)
    return session


def _is_refusal(error: Py4JJavaError | IllegalArgumentException) -> bool:
    """Return True if a master or a setting is wrong, not the machine (such as a full disk, a cluster out of reach)."""
    if isinstance(error, IllegalArgumentException):
        return True
    thrown = error.java_exception
    is_of_setting = is_instance_of(SparkContext._gateway, thrown, "java.lang.IllegalArgumentException")
    return is_of_setting or _OF_MASTER.search(str(thrown)) is not None


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


def _launch_driver(options: Settings, *, user_settings: Settings) -> Any:  # noqa: ANN401 - py4j has no types
    """Start the driver's JVM in a session of its own; return the connection to it.

    A scheduler that ends our process group would end the JVM too, and the run could no longer record that in ``runs``.
    The JVM ends by itself when this process does, because it reads our end of a pipe. Its output goes to our standard
    error: the standard output is that of the command. Where it does not start, see :func:`startup_error`.
    """
    output = _JvmOutput()
    try:
        conf = SparkConf(loadDefaults=False).setAll([*options.items()])
        process = {"start_new_session": True, "stdout": output.pipe, "stderr": output.pipe}
        gateway = launch_gateway(conf, popen_kwargs=process)  # type: ignore[no-untyped-call]  # its own
    except PySparkRuntimeError as error:
        os.close(output.pipe)
        raise startup_error(output.text(), user_settings) from error
    os.close(output.pipe)
    output.pass_on()
    return gateway


def startup_error(said: str, user_settings: Settings) -> FaultsError:
    """Return the error of a JVM that did not start, with the settings of the user that likely caused it."""

    def is_named(key: str, value: str) -> bool:  # by its value, or by the words of its key
        words = key.removeprefix("spark.").lower().split(".")
        return (len(value) >= _MIN_LENGTH and value in said) or (len(words) > 1 and " ".join(words) in said.lower())

    named = [key for key, value in user_settings.items() if is_named(key, value)]
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


def _silence_lost_driver_traceback(session: SparkSession) -> None:
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


def _add_delta_extension(options: Settings) -> dict[str, str]:
    """Keep the extensions of the user and add Delta's."""
    extensions = [name for name in options.get("spark.sql.extensions", "").split(",") if name]
    if driver_settings.DELTA_EXTENSION not in extensions:
        extensions.append(driver_settings.DELTA_EXTENSION)
    return {**options, "spark.sql.extensions": ",".join(extensions)}


def require_packages(session: SparkSession) -> None:
    """Refuse a session of this machine whose workers run a Python without ``settings.NEEDED``."""
    context = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
    if context is None or not driver_settings.is_local(session.conf.get("spark.master", "") or ""):
        return
    executable = str(context.pythonExec)
    if missing := _find_missing_packages(executable):
        found = f"{shutil.which(executable) or executable} without {missing}"
        expected = "the Python of the driver, or one with the same packages"
        fix = f"set PYSPARK_PYTHON={sys.executable} in the environment before the session starts"
        raise EnvironmentFaultError(Fault("Python of the workers", found, expected, fix))


@cache
def _find_missing_packages(executable: str) -> str:
    """Return the packages that an interpreter lacks; empty where it cannot be started, which Spark reports itself."""
    if shutil.which(executable) == sys.executable:
        return ""
    look = "import importlib.util as util, sys; "
    look += "print(*(name for name in sys.argv[1:] if util.find_spec(name) is None), sep=', ')"
    try:
        found = subprocess.run(
            [executable, "-c", look, *driver_settings.NEEDED], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
