"""Checks that this machine is fit for a run: one for each thing that has gone wrong before."""

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
from typing import Final
from urllib.parse import unquote

from rankeval_spark import allowed_folders
from rankeval_spark.errors import FaultsError
from rankeval_spark.spark.session import jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import (
    CACHE_VARIABLE,
    cache_dir,
    conf_dir,
    find_spark_home,
    is_running,
    job_settings,
    spark_defaults,
)
from rankeval_spark.spark.version import INSTALL, SPARK_LINES, TESTED, require_spark

PYTHONS: Final = ((3, 11), (3, 13))
"""Oldest and newest version of Python that the locks are made for."""

LEAST_FREE_GIGABYTES: Final = 2
SECONDS: Final = 20.0  # that a check has
SECONDS_OF_JAVA: Final = 90.0  # for three places, in each of which a Java has 30
SECONDS_UNTIL_TOLD: Final = 2.0
_GIGABYTE: Final = 1 << 30
PYSPARK: Final = "pyspark"
DELTA_JARS: Final = "Delta jars"
_ZONE: Final = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class Check:
    """The outcome of one check: what was looked at, whether it is fit, what was found, and how to correct it."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def checks(results_root: str | None = None, tell: Callable[[str], None] = lambda _: None) -> Iterator[Check]:
    """Yield the outcomes of all checks as soon as they are known; no Spark starts, and nothing is left behind.

    ``results_root``: where a run would publish; a file is made there, and removed again. ``tell`` hears what is waited
    for.
    """
    run = partial(within, tell=tell)
    yield run(check_python_version, "Python of the driver")
    spark = run(check_packages, PYSPARK)
    yield spark
    yield run(check_arrow, "pyarrow")
    yield run(check_cache, "cache folder")
    if spark.ok:
        yield run(check_spark_version, "jars of Spark")
        yield run(check_java, "Java", seconds=SECONDS_OF_JAVA)
        yield run(check_delta_jars, "Delta jars")
        yield run(check_time_zone, "time zone")
    for folder in _filled_folders(results_root):
        yield run(partial(check_free_disk, folder), f"free disk for {folder}")
    if results_root is not None:
        yield run(partial(check_writable_root, results_root), "results root")


def within(check: Callable[[], Check], name: str, *, tell: Callable[[str], None], seconds: float = SECONDS) -> Check:
    """Run a check for so many seconds at most; after some of them ``tell`` hears what is waited for."""
    outcome = Future[Check]()

    def look() -> None:
        try:
            outcome.set_result(guarded(check))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=look, name=name, daemon=True).start()  # one that hangs ends with the process
    if not wait([outcome], SECONDS_UNTIL_TOLD).done:
        tell(f"waiting for {name}, at most {seconds:.0f} s")
        if not wait([outcome], seconds - SECONDS_UNTIL_TOLD).done:
            fix = "the machine is busy, or one of its disks does not answer: look at it, and try again"
            return Check(name, ok=False, found=f"no answer within {seconds:.0f} s", fix=fix)
    return outcome.result()


def _filled_folders(results_root: str | None) -> Iterator[Path]:
    """Yield the folders whose disks a run fills."""
    yield Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    with suppress(FaultsError):
        yield cache_dir(makes=False)
    root = _local_path(results_root) if results_root else None
    if root is not None:
        yield root


def require_startable(options: Mapping[str, str], *, why: str) -> None:
    """Refuse a machine on which no session starts: pyspark, Java or a build of Delta is missing; nothing is fetched.

    `options`: settings of the user; `why`: why Spark is needed.

    Raises EnvironmentFaultError as the start of a session does.
    """
    require_spark(why)
    if is_running():
        return
    find_java()
    if not jars.brings_delta({**spark_defaults(), **options}):
        jars.build()


def guarded(check: Callable[[], Check]) -> Check:
    """Run a check; an error that is made for people is its outcome."""
    try:
        return check()
    except FaultsError as error:
        fault = error.faults[0]
        return Check(fault.where, ok=False, found=fault.found, fix=fault.fix)


def check_python_version() -> Check:
    """Check the Python of the driver."""
    oldest, newest = PYTHONS
    found, is_fit = f"{sys.version.split()[0]}, {sys.executable}", oldest <= sys.version_info[:2] <= newest
    fix = "make an environment with Python 3.12; in a checkout: make clean && make PYTHON=/path/to/python3.12 setup"
    return Check("Python of the driver", is_fit, found, fix)


def check_packages() -> Check:
    """Check that pyspark is there, of a line that there are jars for; Delta's Python package is not used."""
    require_spark()
    found = _installed("pyspark")
    is_known = found.startswith(tuple(f"{line}." for line in SPARK_LINES))
    return Check(PYSPARK, is_known, f"{found}; tested with {TESTED}", INSTALL)


def check_arrow() -> Check:
    """Import pyarrow: one that does not fit numpy passes every resolver and fails here."""
    try:
        found = str(import_module("pyarrow").__version__)
    except ImportError as error:
        fix = "pip install --upgrade pyarrow numpy"
        return Check("pyarrow", ok=False, found=f"it cannot be imported: {error}", fix=fix)
    return Check("pyarrow", ok=True, found=f"{found}, numpy {_installed('numpy')}")


def check_spark_version() -> Check:
    """Check that the Spark that would be started is the one that pyspark belongs to."""
    folder, wanted = find_spark_home() / "jars", _installed("pyspark")
    installed = [file.stem.rpartition("-")[2] for file in folder.glob("spark-core_*.jar")]
    found = f"{', '.join(installed) or 'none'} in {folder}; pyspark is {wanted}"
    fix = "unset SPARK_HOME, or install the pyspark of that Spark's version"
    return Check("jars of Spark", installed == [wanted], found, fix)


def check_cache() -> Check:
    """Check the cache folder, which is not made."""
    folder = cache_dir(makes=False)
    return Check("cache folder", ok=True, found=str(folder) + ("" if folder.exists() else ", will be made"))


def check_java() -> Check:
    """Check Java, and where it was found."""
    with allowed_folders.temporary_folder() as folder:  # for the wrapper of the wheel's
        found = find_java({**os.environ, CACHE_VARIABLE: folder})
    home = "" if str(found.home).startswith(folder) else f", {found.home}"
    return Check("Java", ok=True, found=f"{found.version} from {found.source}{home}")


def check_delta_jars() -> Check:
    """Check the Delta jars; none is fetched."""
    if any((find_spark_home() / "jars").glob("delta-spark*.jar")):
        return Check(DELTA_JARS, ok=True, found=f"brought by {find_spark_home()}")
    folder = cache_dir(makes=False) / jars.FOLDER
    if paths := jars.cached_jars(folder):
        return Check(DELTA_JARS, ok=True, found=f"{' and '.join(path.stem for path in paths)} in the cache")
    return Check(DELTA_JARS, ok=True, found=f"not in {folder} yet; the first start of Spark fetches them")


def check_time_zone() -> Check:
    """Check the zone of a session: it decides about dates, which must not change with the machine."""
    wanted = job_settings()[_ZONE]
    zone = spark_defaults().get(_ZONE, wanted)
    fix = f"remove {_ZONE} from {conf_dir() / 'spark-defaults.conf'}, or set it to {wanted}"
    return Check("time zone", zone == wanted, f"session {zone}, this machine {time.strftime('%Z (%z)')}", fix)


def check_free_disk(folder: Path) -> Check:
    """Check the free space of the disk that a folder is on, or will be."""
    free = shutil.disk_usage(_existing(folder)).free / _GIGABYTE
    fix = f"free {LEAST_FREE_GIGABYTES} GB there; SPARK_LOCAL_DIRS moves what Spark spills, RANKEVAL_CACHE the cache"
    return Check("free disk", free >= LEAST_FREE_GIGABYTES, f"{free:.1f} GB for {folder}", fix)


def check_writable_root(root: str) -> Check:
    """Check that a file can be made where the results would go; a store that is not a folder is left to the run."""
    name = "results root"
    allowed_folders.require_allowed((name, root))
    if not (path := _local_path(root)):
        return Check(name, ok=True, found=f"{root}: not a folder of this machine, so only a run can try it")
    existing = _existing(path)
    try:
        with tempfile.TemporaryFile(dir=existing):
            return Check(name, ok=True, found=f"{path}, writable" + ("" if existing == path else ", will be made"))
    except OSError as error:
        fix = "choose another root, or let this user write there"
        return Check(name, ok=False, found=f"{existing}: {error.strerror}", fix=fix)


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _installed(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _local_path(root: str) -> Path | None:
    """Return the folder that a root names on this machine, as a run writes to it; None for one in another store."""
    if not allowed_folders.scheme_of(root):
        return Path(root).absolute()
    path = allowed_folders.local_path(unquote(root))
    return path.absolute() if path else None
