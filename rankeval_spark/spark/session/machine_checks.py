"""Checks that this machine is fit for a run: one for each thing that has gone wrong before."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rankeval_spark import allowed_folders
from rankeval_spark.errors import FaultsError
from rankeval_spark.spark.session import jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import (
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
_GIGABYTE: Final = 1 << 30
PYSPARK: Final = "pyspark"
_ZONE: Final = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class Check:
    """The outcome of one check: what was looked at, whether it is fit, what was found, and how to correct it."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def checks(results_root: str | None = None) -> Iterator[Check]:
    """Yield the outcomes of all checks as soon as they are known; no Spark starts.

    ``results_root``: where a run would publish; a file is made there, and removed again.
    """
    yield guarded(check_python_version)
    spark = guarded(check_packages)
    yield spark
    of_spark = (check_spark_version, check_java, check_delta_jars, check_time_zone)
    yield guarded(check_arrow)
    yield guarded(lambda: Check("cache folder", ok=True, found=str(cache_dir())))
    for check in of_spark if spark.ok else ():
        yield guarded(check)
    spill = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    root = _local_path(results_root) if results_root else None
    for folder in filter(None, (spill, cache_dir(), root)):  # whose disks a run fills
        yield check_free_disk(folder)
    if results_root is not None:
        yield guarded(lambda: check_writable_root(results_root))


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


def check_java() -> Check:
    """Check Java, and where it was found."""
    found = find_java()
    return Check("Java", ok=True, found=f"{found.version} from {found.source}, {found.home}")


def check_delta_jars() -> Check:
    """Check the Delta jars; they are fetched if a run would fetch them."""
    if any((find_spark_home() / "jars").glob("delta-spark*.jar")):
        return Check("Delta jars", ok=True, found=f"brought by {find_spark_home()}")
    how = "in the cache" if jars.cached_jars(jars.jars_dir()) else "fetched now"
    paths = jars.delta_jars(find_java())
    return Check("Delta jars", ok=True, found=f"{' and '.join(path.stem for path in paths)} {how}")


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
