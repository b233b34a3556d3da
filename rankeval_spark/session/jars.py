"""The two Delta jars: fetched once by Spark's own resolver, checked, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.session import spark_home
from rankeval_spark.session.cache import cache_dir

if TYPE_CHECKING:
    from rankeval_spark.session.java import Java

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
# Delta's kernel and the client of a catalog server, which we do not use: they bring 31 more jars, some of them older
# copies of what Spark ships.
_EXCLUDED = "io.delta:delta-kernel-*,io.unitycatalog:*"
_SECONDS_TO_FETCH = 300
_LINES_SHOWN = 12


@dataclass(frozen=True)
class Jar:
    """A jar of group ``io.delta`` and the SHA-256 that it must have."""

    name: str
    sha256: str


DELTA_JARS = (
    Jar(
        "delta-spark_4.2_2.13-4.4.0.jar",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "delta-storage-4.4.0.jar",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


def jars_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that the jars are kept in."""
    return cache_dir(env) / "jars"


def cached_jars(folder: Path) -> tuple[Path, ...] | None:
    """Return the paths of both jars, or None unless each is there with its pinned sum."""
    paths = tuple(folder / jar.name for jar in DELTA_JARS)
    is_whole = all(_sum(path) == jar.sha256 for path, jar in zip(paths, DELTA_JARS, strict=True))
    return paths if is_whole else None


def delta_jars(java: Java, *, env: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the paths of both jars, fetched first where the cache does not hold them.

    Raises
    ------
    EnvironmentFaultError
        When they cannot be fetched, or are not the files that were pinned.
    """
    folder = jars_dir(env)
    if cached := cached_jars(folder):
        return cached
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the move into place is one step: a cache never holds half a jar.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as draft:
        said = _resolve(Path(draft), java=java, env=env)
        for jar in DELTA_JARS:
            _place(Path(draft) / "jars" / f"io.delta_{jar.name}", jar=jar, folder=folder, said=said)
    return tuple(folder / jar.name for jar in DELTA_JARS)


def _resolve(ivy: Path, *, java: Java, env: Mapping[str, str]) -> str:
    """Let spark-submit resolve the package into a folder for Ivy; return what it said on the way."""
    nothing_to_do = ivy / "nothing.py"
    nothing_to_do.touch()
    command = [str(spark_home.submit_script()), "--master", "local", "--packages", PACKAGE]
    command += ["--exclude-packages", _EXCLUDED, "--conf", f"spark.jars.ivy={ivy}", str(nothing_to_do)]
    try:
        run = subprocess.run(
            command,
            env=_environment(java, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS_TO_FETCH,
            check=False,  # judged by the files and their sums, which say more than the exit code
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_SECONDS_TO_FETCH} s"
    return run.stdout


def _environment(java: Java, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the resolver: ours, without what belongs to a driver that runs already."""
    own = {name: value for name, value in env.items() if not name.startswith(("PYSPARK_", "_PYSPARK_"))}
    own.update(spark_home.quiet_environment(env), JAVA_HOME=str(java.home), PYSPARK_PYTHON=sys.executable)
    return own


def _place(fetched: Path, *, jar: Jar, folder: Path, said: str) -> None:
    """Move a fetched jar into the cache if it is the pinned one."""
    found = _sum(fetched)
    if found is None:
        raise EnvironmentFaultError(_not_fetched(folder, said))
    if found != jar.sha256:
        raise EnvironmentFaultError(
            Fault(
                where=f"Delta jar {jar.name}",
                found=f"SHA-256 {found}",
                expected=f"SHA-256 {jar.sha256}",
                fix="the mirror that Spark resolves from serves another file: do not use it, and tell who runs it",
            )
        )
    fetched.replace(folder / jar.name)


def _not_fetched(folder: Path, said: str) -> Fault:
    """Describe a failed fetch, with the last lines of the resolver."""
    lines = [line.strip() for line in said.splitlines() if line.strip()][-_LINES_SHOWN:]
    names = " and ".join(jar.name for jar in DELTA_JARS)
    return Fault(
        where="Delta jars",
        found="they could not be fetched; the resolver said:\n      " + "\n      ".join(lines) + "\n   ",
        expected=f"{names} in {folder}",
        fix="connect to the network once, or copy the two files there from a machine that has them, "
        f"or bring Delta yourself: spark-submit --packages {PACKAGE}",
    )


def _sum(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
