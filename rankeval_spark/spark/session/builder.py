"""Build the session that an evaluation runs in, or take the one that is there."""

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import IllegalArgumentException, PySparkRuntimeError
from pyspark.sql import SparkSession

from rankeval_spark import allowed_folders
from rankeval_spark.config import spark_settings
from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, first_line, hide
from rankeval_spark.spark.session import jars as delta, secrets, settings as ours
from rankeval_spark.spark.session.cache import cache_dir
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.launch import launch_driver, silence_lost_driver_traceback
from rankeval_spark.spark.session.spark_home import (
    driver_environment,
    find_spark_home,
    is_under_spark_submit,
    spark_defaults,
)
from rankeval_spark.spark.version import require_spark

Settings = Mapping[str, str]
_OF_MASTER = re.compile(r"Could not parse Master URL|Asked to (?:run locally|launch cluster) with")
"""What Spark says of a master that it does not take; the class of that error has many other causes."""

NEEDED: Final = ("numpy", "pyarrow")
"""Packages that a worker imports and that Spark does not bring."""

_LOOK: Final = (
    "import importlib.util as util, sys; "
    "print(*(name for name in sys.argv[1:] if util.find_spec(name) is None), sep=', ')"
)


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
    allowed_folders.require_allowed(*spark_settings.setting_files(settings or {}))
    try:
        return _built(app_name, master=master, user_settings=dict(settings or {}), jars=jars)
    except (Py4JJavaError, IllegalArgumentException) as error:
        if _is_refusal(error):
            raise ConfigError(_refusal(error)) from error
        raise


def _built(app_name: str, *, master: str | None, user_settings: Settings, jars: Sequence[Path] | None) -> SparkSession:
    if (active := SparkSession.getActiveSession()) is not None:
        return _with_settings(active, user_settings)
    if os.environ.get("SPARK_REMOTE"):
        return _with_settings(SparkSession.builder.getOrCreate(), user_settings)
    if is_under_spark_submit():
        return _submitted(app_name, master=master, user_settings=user_settings)
    return _started(app_name, master=master, user_settings=user_settings, jars=jars)


def is_local(master: str) -> bool:
    """Return True if a master's executors are on this machine, started by the driver."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def cores_of(master: str) -> int:
    """Count the tasks that run at a time under a local master; Spark itself refuses one that it cannot read.

    Examples
    --------
    >>> cores_of("local[3]"), cores_of("local"), cores_of("local-cluster[2,4,1024]")
    (3, 1, 8)
    """
    if master == "local":
        return 1
    numbers = re.match(r"local\[(\d+)|local-cluster\[\s*(\d+)\s*,\s*(\d+)", master)
    if numbers is None:
        return os.cpu_count() or 1
    return max(1, math.prod(int(number) for number in numbers.groups() if number))


def _with_settings(session: SparkSession, user_settings: Settings) -> SparkSession:
    """Apply the settings that a running session still takes; what it was given on purpose is kept."""
    already = session.conf.getAll
    wanted = ours.job_settings()
    missing = {key: value for key, value in wanted.items() if key not in already}
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


def _submitted(app_name: str, *, master: str | None, user_settings: Settings) -> SparkSession:
    """Create the session of a driver that ``spark-submit`` started."""
    SparkContext._ensure_initialized()  # connects to that driver, as creating a context would; SparkConf then sees it
    given = dict(SparkConf().getAll())
    _demand_delta()
    wanted = ours.job_settings()
    target = master or given.get("spark.master", "")
    if is_local(target):
        wanted |= ours.local_settings(cache_dir() / "warehouse", cores=cores_of(target))
    return _create({"spark.app.name": app_name, **wanted, **given, **_master(master), **user_settings})


def _demand_delta() -> None:
    """Refuse a driver without Delta: jars can no longer be given to a JVM that runs."""
    jvm = SparkContext._jvm
    if jvm is None or jvm.org.apache.spark.util.Utils.classIsLoadable(ours.DELTA_EXTENSION):
        return
    raise EnvironmentFaultError(
        Fault(
            where="spark-submit",
            found="a driver without Delta",
            expected="the Delta jars among its own",
            fix=f"add --packages {delta.build().package}, or --jars with the two files in {delta.jars_dir()}",
        )
    )


def _started(
    app_name: str, *, master: str | None, user_settings: Settings, jars: Sequence[Path] | None
) -> SparkSession:
    """Start a driver on this machine and create its session."""
    java = find_java()
    given = spark_defaults()
    target = master or user_settings.get("spark.master") or given.get("spark.master") or "local[*]"
    wanted = ours.job_settings()
    if is_local(target):
        wanted |= ours.local_settings(cache_dir() / "warehouse", cores=cores_of(target))
    options = {"spark.app.name": app_name, **wanted, **given, **user_settings, "spark.master": target}
    if jars is None and not brings_delta(options):
        jars = delta.delta_jars(java)
    options |= _added_jars(options, jars or ())
    with driver_environment(java, is_local=is_local(target)), secrets.command_line(options) as jvm_settings:
        shown = _with_delta_extension(jvm_settings)
        return _create(options, jvm_settings=shown, user_settings={**given, **user_settings})


def _added_jars(options: Settings, jars: Sequence[Path]) -> dict[str, str]:
    """Return the setting that has Spark load jars, and send them to executors."""
    others = options["spark.jars"].split(",") if options.get("spark.jars") else []
    return {"spark.jars": ",".join([*others, *map(str, jars)])} if jars else {}


def brings_delta(options: Settings) -> bool:
    """Return True if settings or the Spark installation bring Delta already."""
    places = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    is_given = any("delta" in options.get(place, "") for place in places)
    return is_given or any((find_spark_home() / "jars").glob("delta-spark*.jar"))


def _master(master: str | None) -> dict[str, str]:
    """Return the setting of a master that was named."""
    return {"spark.master": master} if master else {}


def _create(
    options: Settings, *, jvm_settings: Settings | None = None, user_settings: Settings = MappingProxyType({})
) -> SparkSession:
    """Create the session; a driver that does not come up is a fault of the environment.

    ``jvm_settings`` are the settings that its JVM is started with, where that does not run yet; ``user_settings`` those
    that others than we wrote.
    """
    builder = SparkSession.builder
    for key, value in secrets.redacting(_with_delta_extension(options)).items():
        if spark_settings.is_written_out(key, value):
            hide(value)
        builder = builder.config(key, value)
    try:
        if jvm_settings is not None and SparkContext._gateway is None:
            SparkContext._ensure_initialized(gateway=launch_driver(jvm_settings, user_settings=user_settings))
        with _handled_as_before(signal.SIGINT):
            session = builder.getOrCreate()
            # Settings of queries that a session is created with are looked at by its first query: have it done now.
            _set_modifiable(session, options)
    except PySparkRuntimeError as error:
        raise EnvironmentFaultError(
            Fault(
                where="Spark driver",
                found=f"it did not start: {error}",
                expected="a driver on this machine",
                fix="see the lines above, and run 'rankeval doctor'",
            )
        ) from error
    silence_lost_driver_traceback(session)
    return session


def _is_refusal(error: Py4JJavaError | IllegalArgumentException) -> bool:
    """Return True if a master or a setting is wrong, not the machine (such as a full disk, a cluster out of reach)."""
    if isinstance(error, IllegalArgumentException):
        return True
    thrown = error.java_exception
    is_of_setting = is_instance_of(SparkContext._gateway, thrown, "java.lang.IllegalArgumentException")
    return is_of_setting or _OF_MASTER.search(str(thrown)) is not None


def _refusal(error: Py4JJavaError | IllegalArgumentException) -> Fault:
    """Say in Spark's words what it does not take: only its message says which setting it was."""
    return Fault(
        where="spark",
        found=f"Spark refuses it: {first_line(str(error)).removesuffix('.')}",
        expected="a master and settings that it takes",
        fix="look at master and settings under spark in the config, at --conf, and at spark-defaults.conf",
    )


@contextmanager
def _handled_as_before(number: signal.Signals) -> Iterator[None]:
    """Put a handler that was made on purpose back after pyspark has put its own in place.

    Its own speaks to the JVM on a connection that may be waiting for an answer, so that the jobs are cancelled when
    the one under way is over: then perhaps the one that records the interruption.
    """
    before = signal.getsignal(number)
    try:
        yield
    finally:
        if before is not signal.default_int_handler and threading.current_thread() is threading.main_thread():
            signal.signal(number, before)


def _with_delta_extension(options: Settings) -> dict[str, str]:
    """Keep the extensions of the user and add Delta's."""
    extensions = [name for name in options.get("spark.sql.extensions", "").split(",") if name]
    if ours.DELTA_EXTENSION not in extensions:
        extensions.append(ours.DELTA_EXTENSION)
    return {**options, "spark.sql.extensions": ",".join(extensions)}


def require_packages(session: SparkSession) -> None:
    """Refuse a session of this machine whose workers run a Python without :data:`NEEDED`.

    A session that was started from an environment which is not activated runs ``python3`` of the PATH. Workers of a
    cluster are not looked at: that would be a job.

    Raises
    ------
    EnvironmentFaultError
        With the setting that fixes it.
    """
    context = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
    if context is None or not is_local(session.conf.get("spark.master", "") or ""):
        return
    executable = str(context.pythonExec)
    missing = _missing(executable)
    if missing:
        raise EnvironmentFaultError(
            Fault(
                where="Python of the workers",
                found=f"{shutil.which(executable) or executable} without {missing}",
                expected="the Python of the driver, or one with the same packages",
                fix=f"set PYSPARK_PYTHON={sys.executable} in the environment before the session starts",
            )
        )


@cache
def _missing(executable: str) -> str:
    """Return the packages that an interpreter lacks; none where it cannot be started, which Spark reports itself."""
    if shutil.which(executable) == sys.executable:
        return ""
    try:
        found = subprocess.run(
            [executable, "-c", _LOOK, *NEEDED], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
