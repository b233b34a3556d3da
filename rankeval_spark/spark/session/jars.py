"""The two Delta jars for the installed Spark: fetched once by its own resolver, checked, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.spark.session import settings
from rankeval_spark.spark.session.settings import cache_dir
from rankeval_spark.spark.version import INSTALL, TESTED, spark_line

if TYPE_CHECKING:
    from rankeval_spark.spark.session.java import Java

# Delta's kernel and the client of a catalog server, which we do not use: they bring 31 more jars, some of them older
# copies of what Spark ships.
_EXCLUDED = "io.delta:delta-kernel-*,io.unitycatalog:*"
_SECONDS_TO_FETCH = 300
_LINES_SHOWN = 12


class Build(NamedTuple):
    """Delta's files for one line of Spark."""

    package: str  # the name that a resolver takes
    jars: Mapping[str, str]  # the SHA-256 that each jar of group ``io.delta`` must have, by its name


FOLDER: Final = "jars"  # in the cache
DELTA: Final = "4.4.0"
_STORAGE: Final = {f"delta-storage-{DELTA}.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"}
_SUMS: Final = {
    "4.0": "49e899667168b9412f83cbe894ce264107d7b896d6c5e12edca4e216845c1104",
    "4.1": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "4.2": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
}
# By the line of Spark; a jar of another line loads, and fails in the middle of a run.
BUILDS: Final[Mapping[str, Build]] = {
    line: Build(
        f"io.delta:delta-spark_{line}_2.13:{DELTA}", {f"delta-spark_{line}_2.13-{DELTA}.jar": sha256, **_STORAGE}
    )
    for line, sha256 in _SUMS.items()
}


def pinned_build() -> Build:
    """Return the build of Delta for the installed pyspark; refused if its line has none."""
    line = spark_line()
    if line not in BUILDS:
        fix = f"{INSTALL}, or bring Delta yourself: spark.jars.packages"
        raise EnvironmentFaultError(Fault("Delta jars", f"none pinned for Spark {line}", f"Spark {TESTED}", fix))
    return BUILDS[line]


def brings_delta(options: Mapping[str, str]) -> bool:
    """Return True if settings or the Spark installation bring Delta already."""
    places = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    is_given = any("delta" in options.get(place, "") for place in places)
    return is_given or any((settings.find_spark_home() / "jars").glob("delta-spark*.jar"))


def jars_dir(env: Mapping[str, str] = os.environ) -> Path:
    return cache_dir(env) / FOLDER


def cached_jars(folder: Path) -> tuple[Path, ...] | None:
    """Return the paths of both jars, or None unless each is there with its pinned sum."""
    paths = {folder / name: sha256 for name, sha256 in pinned_build().jars.items()}
    return tuple(paths) if all(_sha256_of(path) == sha256 for path, sha256 in paths.items()) else None


def delta_jars(java: Java, *, env: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the paths of both jars, fetched first if the cache lacks them; refused unless they are those pinned."""
    folder, pinned = jars_dir(env), pinned_build().jars
    if cached := cached_jars(folder):
        return cached
    folder.mkdir(parents=True, exist_ok=True)
    # Next to the target, so that the move into place is one step: a cache never holds half a jar.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as draft:
        said = _resolve(Path(draft), java=java, env=env)
        for name, sha256 in pinned.items():
            fetched = Path(draft) / "jars" / f"io.delta_{name}"
            found = _sha256_of(fetched)
            if found is None:
                lines = [line.strip() for line in said.splitlines() if line.strip()][-_LINES_SHOWN:]
                told = "they could not be fetched; the resolver said:\n      " + "\n      ".join(lines) + "\n   "
                expected = f"{' and '.join(pinned)} in {folder}"
                fix = (
                    "connect to the network once, or copy the two files there from a machine that has them, "
                    f"or bring Delta yourself: spark-submit --packages {pinned_build().package}"
                )
                raise EnvironmentFaultError(Fault("Delta jars", told, expected, fix))
            if found != sha256:
                fix = "the mirror that Spark resolves from serves another file: do not use it, and tell who runs it"
                where, expected = f"Delta jar {name}", f"SHA-256 {sha256}"
                raise EnvironmentFaultError(Fault(where, f"SHA-256 {found}", expected, fix))
            fetched.replace(folder / name)
    return tuple(folder / name for name in pinned)


def _resolve(ivy: Path, *, java: Java, env: Mapping[str, str]) -> str:
    """Resolve the package into a folder for Ivy, by spark-submit; return what it said on the way."""
    nothing_to_do = ivy / "nothing.py"
    nothing_to_do.touch()
    command = [str(settings.submit_script()), "--master", "local", "--packages", pinned_build().package]
    command += ["--exclude-packages", _EXCLUDED, "--conf", f"spark.jars.ivy={ivy}", str(nothing_to_do)]
    # Ours, without what belongs to a driver that runs already.
    own = {name: value for name, value in env.items() if not name.startswith(("PYSPARK_", "_PYSPARK_"))}
    own |= settings.quiet_environment(env) | {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as resolver:
        try:  # judged by the files and their sums, which say more than the exit code
            return resolver.communicate(timeout=_SECONDS_TO_FETCH)[0]
        except subprocess.TimeoutExpired:
            resolver.kill()
            return f"no answer within {_SECONDS_TO_FETCH} s"


def _sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it does not exist."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
