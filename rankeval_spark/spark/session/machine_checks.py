"""Checks that this machine and a session are fit for a run: one for each thing that has gone wrong before.

Those of a session are the smallest jobs that show a fault: a worker, and a Delta table.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rankeval_spark import allowed_folders
from rankeval_spark.errors import EnvironmentFaultError, Fault, FaultsError
from rankeval_spark.spark.session import jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import (
    CACHE_VARIABLE,
    NEEDED,
    cache_dir,
    conf_dir,
    find_spark_home,
    is_local,
    is_running,
    job_settings,
    spark_defaults,
)
from rankeval_spark.spark.version import INSTALL, SPARK_LINES, TESTED, require_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PYTHONS: Final = ((3, 11), (3, 13))
"""Oldest and newest version of Python that the locks are made for."""

MIN_FREE_GIGABYTES: Final = 2
SECONDS: Final = 20.0  # that a check has
SECONDS_OF_JAVA: Final = 90.0  # three places are tried, 30 seconds each
SECONDS_UNTIL_TOLD: Final = 2.0
MAX_LOOKS: Final = 32  # tasks that look for packages on a cluster
MAX_NAMED: Final = 3  # workers in an error
_fit: Final = set[str]()  # applications on clusters whose workers have been looked at
_GIGABYTE: Final = 1 << 30
PYSPARK: Final = "pyspark"
_ZONE: Final = "spark.sql.session.timeZone"
_N_ROWS: Final = 3  # that are written and read back


@dataclass(frozen=True)
class Check:
    """The outcome of one check: what was looked at, whether it is fit, what was found, and how to correct it."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def check_machine(results_root: str | None = None, tell: Callable[[str], None] = lambda _: None) -> Iterator[Check]:
    """Yield the outcomes of all checks as soon as they are known; no Spark starts, and nothing is left behind."""
    run = partial(run_within, tell=tell)
    yield run(check_python_version, "Python of the driver")
    pyspark = run(check_packages, PYSPARK)
    yield pyspark
    yield run(check_arrow, "pyarrow")
    yield run(check_cache, "cache folder")
    if pyspark.ok:
        yield run(check_spark_version, "jars of Spark")
        yield run(check_java, "Java", seconds=SECONDS_OF_JAVA)
        yield run(check_delta_jars, "Delta jars")
        yield run(check_time_zone, "time zone")
    filled = [Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])]
    with suppress(FaultsError):
        filled.append(cache_dir(makes=False))
    root = _folder_of_root(results_root) if results_root else None
    for folder in (*filled, *([] if root is None else [root])):
        yield run(partial(check_free_disk, folder), f"free disk for {folder}")
    if results_root is not None:
        yield run(partial(check_writable_root, results_root), "results root")


def run_within(
    check: Callable[[], Check], name: str, *, tell: Callable[[str], None], seconds: float = SECONDS
) -> Check:
    """Run a check with a time limit; after some seconds ``tell`` gets the name of what is awaited."""
    outcome = Future[Check]()

    def look() -> None:
        try:
            outcome.set_result(run_guarded(check))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=look, name=name, daemon=True).start()  # one that hangs ends with the process
    if not wait([outcome], SECONDS_UNTIL_TOLD).done:
        tell(f"waiting for {name}, at most {seconds:.0f} s")
        if not wait([outcome], seconds - SECONDS_UNTIL_TOLD).done:
            fix = "the machine is busy, or one of its disks does not answer: look at it, and try again"
            return Check(name, ok=False, found=f"no answer within {seconds:.0f} s", fix=fix)
    return outcome.result()


def require_startable(options: Mapping[str, str], *, why: str) -> None:
    """Refuse a machine on which no session starts: pyspark, Java or a build of Delta is missing; nothing is fetched."""
    require_spark(why)
    if is_running():
        return
    find_java()
    if not jars.brings_delta({**spark_defaults(), **options}):
        jars.pinned_build()


def run_guarded(check: Callable[[], Check]) -> Check:
    """Run a check; a FaultsError becomes a failed check."""
    try:
        return check()
    except FaultsError as error:
        fault = error.faults[0]
        return Check(fault.where, ok=False, found=fault.found, fix=fault.fix)


def check_python_version() -> Check:
    oldest, newest = PYTHONS
    found, is_fit = f"{sys.version.split()[0]}, {sys.executable}", oldest <= sys.version_info[:2] <= newest
    fix = "make an environment with Python 3.12; in a checkout: make clean && make PYTHON=/path/to/python3.12 setup"
    return Check("Python of the driver", is_fit, found, fix)


def check_packages() -> Check:
    """Check that pyspark is there, of a line that there are jars for; Delta's Python package is not used."""
    require_spark()
    found = _installed_version("pyspark")
    is_known = found.startswith(tuple(f"{line}." for line in SPARK_LINES))
    return Check(PYSPARK, is_known, f"{found}; tested with {TESTED}", INSTALL)


def check_arrow() -> Check:
    """Import pyarrow: one that does not fit numpy passes every resolver and fails here."""
    try:
        found = str(import_module("pyarrow").__version__)
    except ImportError as error:
        fix = "pip install --upgrade pyarrow numpy"
        return Check("pyarrow", ok=False, found=f"it cannot be imported: {error}", fix=fix)
    return Check("pyarrow", ok=True, found=f"{found}, numpy {_installed_version('numpy')}")


def check_spark_version() -> Check:
    """Check that the Spark that would be started is the one that pyspark belongs to."""
    folder, wanted = find_spark_home() / "jars", _installed_version("pyspark")
    installed = [file.stem.rpartition("-")[2] for file in folder.glob("spark-core_*.jar")]
    found = f"{', '.join(installed) or 'none'} in {folder}; pyspark is {wanted}"
    fix = "unset SPARK_HOME, or install the pyspark of that Spark's version"
    return Check("jars of Spark", installed == [wanted], found, fix)


def check_cache() -> Check:
    """Check the cache folder, which is not made."""
    folder = cache_dir(makes=False)
    return Check("cache folder", ok=True, found=str(folder) + ("" if folder.exists() else ", will be made"))


def check_java() -> Check:
    with allowed_folders.temporary_folder() as folder:  # for the wrapper of the wheel's
        found = find_java({**os.environ, CACHE_VARIABLE: folder})
    home = "" if str(found.home).startswith(folder) else f", {found.home}"
    return Check("Java", ok=True, found=f"{found.version} from {found.source}{home}")


def check_delta_jars() -> Check:
    """Check the Delta jars; none is fetched."""
    if any((find_spark_home() / "jars").glob("delta-spark*.jar")):
        return Check("Delta jars", ok=True, found=f"brought by {find_spark_home()}")
    folder = cache_dir(makes=False) / jars.FOLDER
    if paths := jars.cached_jars(folder):
        return Check("Delta jars", ok=True, found=f"{' and '.join(path.stem for path in paths)} in the cache")
    return Check("Delta jars", ok=True, found=f"not in {folder} yet; the first start of Spark fetches them")


def check_time_zone() -> Check:
    """Check the zone of a session: it decides about dates, which must not change with the machine."""
    wanted = job_settings()[_ZONE]
    zone = spark_defaults().get(_ZONE, wanted)
    fix = f"remove {_ZONE} from {conf_dir() / 'spark-defaults.conf'}, or set it to {wanted}"
    return Check("time zone", zone == wanted, f"session {zone}, this machine {time.strftime('%Z (%z)')}", fix)


def check_free_disk(folder: Path) -> Check:
    """Check the free space of the disk that a folder is on, or will be."""
    free = shutil.disk_usage(_nearest_existing(folder)).free / _GIGABYTE
    fix = f"free {MIN_FREE_GIGABYTES} GB there; SPARK_LOCAL_DIRS moves what Spark spills, RANKEVAL_CACHE the cache"
    return Check("free disk", free >= MIN_FREE_GIGABYTES, f"{free:.1f} GB for {folder}", fix)


def check_writable_root(root: str) -> Check:
    """Check that a file can be made where the results would go; a store that is not a folder is left to the run."""
    name = "results root"
    allowed_folders.require_allowed((name, root))
    if not (path := _folder_of_root(root)):
        return Check(name, ok=True, found=f"{root}: not a folder of this machine, so only a run can try it")
    existing = _nearest_existing(path)
    try:
        with tempfile.TemporaryFile(dir=existing):
            return Check(name, ok=True, found=f"{path}, writable" + ("" if existing == path else ", will be made"))
    except OSError as error:
        fix = "choose another root, or let this user write there"
        return Check(name, ok=False, found=f"{existing}: {error.strerror}", fix=fix)


def _nearest_existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _folder_of_root(root: str) -> Path | None:
    """Return the folder of this machine that a root names, with %20 decoded as runs do; None for another store."""
    if not allowed_folders.scheme_of(root):
        return Path(root).absolute()
    path = allowed_folders.local_path(unquote(root))
    return path.absolute() if path else None


def session_checks(spark: SparkSession) -> Iterator[tuple[str, Callable[[], Check]]]:
    """Yield the checks of a worker and, on a local master, of a Delta table, each after what is awaited."""
    yield "a worker of Spark", partial(check_worker, spark)
    if spark.conf.getAll.get("spark.master", "").startswith("local"):
        yield "a table of Delta", partial(check_delta_table, spark)


def check_worker(spark: SparkSession) -> Check:
    """Check that a worker has the Python and the pyarrow of the driver, as kernels travel by value."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - this module is loaded without Spark too

    name = "Python of the workers"
    fix = "set PYSPARK_PYTHON to a Python of the driver's version that has our packages on every executor"
    try:
        (answer,) = spark.range(1).repartition(1).mapInArrow(_describe_worker, "python string, arrow string").collect()
    except PySparkException as error:
        return Check(name, ok=False, found=_last_line(error), fix=fix)
    driver = "{}.{}".format(*sys.version_info[:2])
    found = f"{answer.python} with pyarrow {answer.arrow}; driver {driver}"
    return Check(name, answer.python.startswith(f"{driver}."), found, fix)


def _describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - one that cannot be imported is what `check_arrow` reports

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.version.split()[0]], "arrow": [pa.__version__]})


def require_packages_of_cluster(session: SparkSession) -> None:
    """Refuse a cluster whose workers lack :data:`NEEDED`, by one small job a session."""
    context = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
    if context is None or is_local(session.conf.get("spark.master", "") or "") or context.applicationId in _fit:
        return
    needed = NEEDED

    def look(_: object) -> Iterator[str]:  # pickled by its value: a worker without packages cannot import this module
        import socket  # noqa: PLC0415 - in the worker
        import sys as own  # noqa: PLC0415 - in the worker
        from importlib import util  # noqa: PLC0415 - in the worker

        if missing := [name for name in needed if util.find_spec(name) is None]:
            yield f"{own.executable} on {socket.gethostname()} without {', '.join(missing)}"

    n_tasks = min(max(context.defaultParallelism, 1), MAX_LOOKS)
    if found := sorted(set(context.parallelize(range(n_tasks), n_tasks).mapPartitions(look).collect())):
        expected = f"{' and '.join(NEEDED)} in the Python of every worker"
        fix = (
            "make cluster-env, then spark-submit --archives dist/environment.tar.gz#environment "
            "--conf spark.pyspark.python=./environment/bin/python; or install requirements/workers.txt on each worker"
        )
        raise EnvironmentFaultError(Fault("Python of the workers", "; ".join(found[:MAX_NAMED]), expected, fix))
    _fit.add(context.applicationId)


def check_delta_table(spark: SparkSession) -> Check:
    """Check that a Delta table can be written and read back."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above

    name = "Delta write and read"
    with tempfile.TemporaryDirectory(prefix="rankeval-probe-") as folder:
        path = str(Path(folder) / "table")
        try:
            spark.range(_N_ROWS).write.format("delta").save(path)
            n_rows = len(spark.read.format("delta").load(path).collect())
        except PySparkException as error:
            return Check(name, ok=False, found=_last_line(error), fix="see 'Delta jars' above")
    return Check(name, ok=n_rows == _N_ROWS, found=f"{n_rows} of {_N_ROWS} rows came back")


def _last_line(error: Exception) -> str:
    """Return the line of a trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line or "[" in line), str(error))
