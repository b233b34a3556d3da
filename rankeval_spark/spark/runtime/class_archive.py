"""The classes of Spark and Delta as the JVM keeps them in memory: an archive that a local driver maps at its start.

Without it every driver unpacks, parses and verifies some 17,000 classes. Java makes the archive (class data sharing)
from a list that a session wrote while it worked, for one Java, one class path and the present jars: a JVM for which it
does not fit ignores it. It takes 200 MB and half a minute, and is therefore made only on request, by ``rankeval
doctor``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.spark.runtime.cache import cache_dir
from rankeval_spark.spark.runtime.spark_home import find_spark_home

if TYPE_CHECKING:
    from rankeval_spark.spark.runtime.java import Java

_SECONDS_TO_MAKE: Final = 600
_SILENT: Final = ("-Xlog:cds=off", "-Xlog:class+path=off")
"""A JVM has nothing to say of an archive that does not fit: it starts as without one."""


def archive_name(java: Java, jars: Sequence[Path]) -> str:
    """Name the archive of a Java by what its content depends on.

    Parameters
    ----------
    java : Java
        What the driver runs on.
    jars : sequence of Path
        The Delta jars on its class path.
    """
    depends_on = "\n".join(map(str, (java.home, find_spark_home(), *jars)))
    digest = hashlib.sha256(depends_on.encode()).hexdigest()[:12]
    return f"spark-{version('pyspark')}-java-{java.version}-{digest}"


def class_path(jars: Sequence[Path]) -> str:
    """Return the class path that an archive is made for: the head of that of a driver.

    Spark's own begins with a folder of settings, and names a jar twice. Java archives nothing where a folder has files,
    and Java 21 takes no archive where a jar is there twice. Behind the head neither matters.
    """
    return os.pathsep.join([*map(str, jars), str(find_spark_home() / "jars" / "*")])


def find_archive(name: str) -> Path | None:
    """Return the archive of a name, if there is one and it is whole: a JVM that maps a truncated one dies."""
    return next((path for path in _folder().glob(f"{name}-*.jsa") if path.name == _file_name(name, path)), None)


def options_to_use(archive: Path) -> list[str]:
    """Return the options of a JVM that maps an archive where it fits."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_SILENT]


def options_to_list(listed: Path) -> list[str]:
    """Return the options of a JVM that writes the names of its classes to a file until it ends; it maps no archive."""
    return ["-Xshare:off", f"-XX:DumpLoadedClassList={listed}"]


def fits(java: Java, archive: Path, class_path: str) -> bool:
    """Return True if a JVM with a class path takes an archive."""
    options = [f"-XX:SharedArchiveFile={archive}", "-Xshare:on", "-cp", class_path, "-version"]
    return _run(java, options, seconds=60)


def make_archive(java: Java, name: str, *, listed: Path, class_path: str) -> Path | None:
    """Make an archive and move it into place in one step; return it, or None where Java makes none.

    Parameters
    ----------
    listed : Path
        The names of the classes, as a session wrote them.
    class_path : str
        That of the session.
    """
    with tempfile.TemporaryDirectory(prefix=".make-", dir=_folder()) as folder:
        draft = Path(folder) / "draft.jsa"
        options = ["-Xshare:dump", "-XX:+UseParallelGC", f"-XX:SharedClassListFile={listed}"]
        if not _run(java, [*options, f"-XX:SharedArchiveFile={draft}", "-cp", class_path], seconds=_SECONDS_TO_MAKE):
            return None
        if not draft.is_file():
            return None
        for earlier in _folder().glob(f"{name}-*.jsa"):  # a JVM that has it mapped keeps it
            earlier.unlink(missing_ok=True)
        return draft.replace(_folder() / _file_name(name, draft))


def _folder() -> Path:
    folder = cache_dir() / "classes"
    folder.mkdir(exist_ok=True)
    return folder


def _file_name(name: str, file: Path) -> str:
    """Name a file by its size too, by which a part of it is known."""
    return f"{name}-{file.stat().st_size}.jsa"


def _run(java: Java, options: Sequence[str], *, seconds: int) -> bool:
    """Run a ``java`` and discard its output; return True if it succeeded."""
    command = [str(java.home / "bin" / "java"), *options]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
