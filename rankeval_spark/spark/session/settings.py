"""Settings that a driver starts with: Python's Spark, those of rankeval, the environment, the cache folder."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.config import spark_settings
from rankeval_spark.errors import EnvironmentFaultError, Fault

if TYPE_CHECKING:
    from rankeval_spark.spark.session.java import Java

NEEDED: Final = ("numpy", "pyarrow")
"""Packages that a worker imports and that Spark does not bring."""

CACHE_VARIABLE: Final = "RANKEVAL_CACHE"  # folder where files that are fetched or made once are kept between runs
DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_QUIET_CONF: Final = Path(__file__).parent / "spark_conf"
_MIN_HEAP, _MAX_HEAP = 1, 4  # gigabytes
_PARTITIONS_A_CORE: Final = 8
_MAX_PARTITIONS: Final = 200
_MIN_MEGABYTES: Final = 16  # of the files of a shuffle, for all cores together: some seconds of work


def is_local(master: str) -> bool:
    """Return True if a master's executors are on this machine, started by the driver."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def job_settings() -> dict[str, str]:
    """Return what a session of our own has, on a cluster too; an evaluation needs none of it for its speed."""
    return {
        # A pyarrow that cannot be imported is an error, not a warning and a slower way without Arrow.
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default is the zone of whichever machine runs the driver; dates would change with it.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        # Readers are pinned to the versions last published. Where nothing was published for longer than the retention,
        # and a publish is under way, these are neither new nor the newest; VACUUM keeps their files all the same, as
        # it goes by when a file was removed from the table, and Delta's refusal goes by the version's own age.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        # ${env:NAME} in a path or a name from a config would print a variable of the driver.
        "spark.sql.variable.substitute": "false",
        # The default, INT96, is deprecated in Parquet and has no statistics for other readers to skip files by.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # What Spark hides in its event log and pages; its own pattern knows neither account keys nor private ones.
        "spark.redaction.regex": f"(?i:{spark_settings.CREDENTIAL_NAME})",
        # The terminal belongs to our own progress lines.
        "spark.ui.showConsoleProgress": "false",
        # Python's stack would be walked for every expression of every plan, for messages that ours replace; and with
        # it a module be looked for that is mostly not there. No setting of a running session: it is read once.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def local_settings(warehouse: Path, *, cores: int) -> dict[str, str]:
    """Return what a driver that is its own executor needs besides; ``cores`` tasks run at a time."""
    return {
        # Nothing of a local run is open to the network.
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Managed tables; the default is a folder in whichever one the job was started from.
        "spark.sql.warehouse.dir": str(warehouse),
        # One heap holds driver and executor, and the default of 1 GB was meant for a driver alone.
        "spark.driver.memory": f"{local_heap_gigabytes()}g",
        # Throughput matters, pauses do not: publishing four tables took 20 s, not 61, with this and the next.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        # Delta reads its log in 50 tasks by default: ten rows written and read took 24 s, with 1 task 10 s.
        "spark.databricks.delta.snapshotPartitions": "1",
        # A task costs 60 ms in Python before its first row. Eight a core, and fewer where the rows are few: adaptive
        # execution merges down to the least size, not to the advised one, below a cross join (users and models).
        # On 2 cores a million rows took 3.8 s with 32 of at least 1 MB, now 2.6; ten million gain a twentieth.
        "spark.sql.shuffle.partitions": str(min(_MAX_PARTITIONS, _PARTITIONS_A_CORE * cores)),
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": f"{max(1, _MIN_MEGABYTES // cores)}MB",
        # The package may be a folder or an archive that only the driver was started with.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[3]),
    }


def local_heap_gigabytes() -> int:
    """Return a quarter of this machine's memory, within bounds, in whole gigabytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_MIN_HEAP, min(_MAX_HEAP, memory // 4 >> 30))


def find_spark_home(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``SPARK_HOME``, else the folder of the pyspark package without importing it."""
    if home := env.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name="pyspark")
    return Path(spec.origin).parent


def submit_script(env: Mapping[str, str] = os.environ) -> Path:
    return find_spark_home(env) / "bin" / "spark-submit"


def conf_dir(env: Mapping[str, str] = os.environ) -> Path:
    return Path(env["SPARK_CONF_DIR"]) if env.get("SPARK_CONF_DIR") else find_spark_home(env) / "conf"


def spark_defaults(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read ``spark-defaults.conf``, the settings of whoever runs this machine; empty without that file or Spark."""
    try:
        file = conf_dir(env) / "spark-defaults.conf"
    except ModuleNotFoundError:
        return {}
    if not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    # A key, then its value after white space or an equals sign, as in every properties file.
    pairs = (re.fullmatch(r"([^#\s=][^\s=]*)\s*[\s=]\s*(.+)", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair}


def quiet_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for a driver on this machine that says little and listens on the loopback only."""
    # spark-submit looks for its home with a script that fails on a Python path with a space.
    quiet = {"SPARK_HOME": str(find_spark_home(env)), "SPARK_LOCAL_IP": "127.0.0.1"}
    # A user with a conf folder has their own logging and defaults in it.
    if not conf_dir(env).is_dir() and _QUIET_CONF.is_dir():
        quiet["SPARK_CONF_DIR"] = str(_QUIET_CONF)
    return quiet


@contextmanager
def driver_environment(
    java: Java,
    *,
    is_local: bool,
    worker_python: str | None = None,  # the setting `spark.pyspark.python`
    env: Mapping[str, str] = os.environ,
) -> Iterator[None]:
    """Set what the driver's JVM is started with, and put the environment back as it was."""
    variables = {"JAVA_HOME": str(java.home)}
    if is_local:
        # Workers would run the first python3 on the PATH, not the one that has our packages. On a cluster the
        # driver's path means nothing, so there it is the submitter's to say.
        variables |= quiet_environment(env) | {"PYSPARK_PYTHON": sys.executable}
    elif worker_python:
        # Only spark-submit hands the setting on; a driver that Python starts knows the variable alone.
        variables["PYSPARK_PYTHON"] = worker_python
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def is_chosen(master: str | None) -> bool:
    """Return True if someone chose a Spark: an active session, a server, ``spark-submit``, or a master."""
    return is_running() or bool(master or spark_defaults().get("spark.master"))


def is_running() -> bool:
    """Return True if a Spark is there already: an active session, a server, or a driver of ``spark-submit``."""
    sql = sys.modules.get("pyspark.sql")  # a session is active only where its module was loaded
    is_active = sql is not None and sql.SparkSession.getActiveSession() is not None
    return is_active or is_under_spark_submit() or bool(os.environ.get("SPARK_REMOTE"))


def is_under_spark_submit() -> bool:
    """Return True if ``spark-submit`` started this process, and with it the driver's JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def cache_dir(env: Mapping[str, str] = os.environ, *, makes: bool = True) -> Path:
    """Return the cache folder, made if missing unless ``makes`` is false; refused where none can be written to.

    ``RANKEVAL_CACHE`` and no other where it is set, else ``rankeval-spark`` in ``XDG_CACHE_HOME``, else in
    ``~/.cache``, else in the folder for temporary files (a user without a writable home, as in many containers). In
    that last one any user may make a folder of any name, and Java runs what is in it, so it has to be private.
    """
    if named := env.get(CACHE_VARIABLE):
        candidates = [Path(named).expanduser().absolute()]
    else:
        homes = [Path(xdg)] if (xdg := env.get("XDG_CACHE_HOME")) else []
        homes += [Path(home) / ".cache"] if (home := env.get("HOME")) else []
        candidates = [home / "rankeval-spark" for home in homes if home.is_absolute()]
    for candidate in candidates:
        if _is_writable(candidate, makes=makes):
            return candidate
    found = f"no writable folder among {', '.join(map(str, candidates))}"
    expected = "a folder that this user may write to"
    if not named:
        # The user id keeps two users of one machine out of each other's temporary cache.
        temporary = Path(tempfile.gettempdir()) / f"rankeval-spark-{os.getuid()}"
        with suppress(OSError):
            if makes:
                temporary.mkdir(mode=stat.S_IRWXU)
        reason = _why_not_private(temporary) if makes or temporary.exists() else None
        if reason is None and _is_writable(temporary, makes=makes):
            return temporary
        found = f"{temporary}, which is {reason or 'not writable'}"
        expected = "a folder of this user with mode 0700, as the home of the user has no writable one"
    raise EnvironmentFaultError(Fault("cache folder", found, expected, f"set {CACHE_VARIABLE} to one"))


def _why_not_private(path: Path) -> str | None:
    """Return why other users may have written to a folder, in words; None if only this user can."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"not usable: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return f"a link to {os.readlink(path)}"
    if found.st_uid != os.getuid():
        return f"owned by user {found.st_uid}"
    if not stat.S_ISDIR(found.st_mode):
        return "no folder"
    mode = stat.S_IMODE(found.st_mode)
    return None if mode == stat.S_IRWXU else f"of mode {mode:04o}"


def _is_writable(folder: Path, *, makes: bool) -> bool:
    """Return True if a file can be created in a folder, which is made, or could be made, if it is missing."""
    try:
        if makes:
            folder.mkdir(parents=True, exist_ok=True)
        folder = next(place for place in (folder, *folder.parents) if place.exists())
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
