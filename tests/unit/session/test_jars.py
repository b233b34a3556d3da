"""The Delta jars: fetched once, checked, placed whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.spark.session import jars, settings
from rankeval_spark.spark.session.java import Java
from rankeval_spark.spark.version import SPARK_LINES

JAVA = Java(Path("/opt/jdk"), 17, "JAVA_HOME")
CONTENT = b"a jar"


@pytest.fixture(autouse=True)
def _small_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin jars of a few bytes instead of the real ones."""
    pin_config = hashlib.sha256(CONTENT).hexdigest()
    small = jars.Build("io.delta:one", {"one.jar": pin_config, "two.jar": pin_config})
    monkeypatch.setattr(jars, "BUILDS", dict.fromkeys(jars.BUILDS, small))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"RANKEVAL_CACHE": str(tmp_path / "my cache"), "PATH": "/usr/bin:/bin"}


def resolver(monkeypatch: pytest.MonkeyPatch, folder: Path, *, content: str | None) -> Path:
    """Stand in for spark-submit: put both jars where Ivy would, or fail; return the file that counts the calls."""
    script, calls = folder / "spark-submit", folder / "calls"
    fetch = f"printf '%s' '{content}' | tee \"$ivy/jars/io.delta_one.jar\" > \"$ivy/jars/io.delta_two.jar\""
    script.write_text(
        "#!/bin/sh\n"
        f"echo \"$@\" >> '{calls}'\n"
        'for a do case $a in spark.jars.ivy=*) ivy="${a#*=}";; esac; done\n'
        'mkdir -p "$ivy/jars"\n' + (f"{fetch}\n" if content else "echo ':: UNRESOLVED DEPENDENCIES ::' >&2; exit 1\n")
    )
    script.chmod(0o755)
    monkeypatch.setattr(settings, "submit_script", lambda: script)
    return calls


@pytest.mark.parametrize("line", SPARK_LINES)
def test_every_line_has_jars_of_its_own(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(jars, "spark_line", lambda: line)

    build = jars.pinned_build()

    assert build.package == f"io.delta:delta-spark_{line}_2.13:{jars.DELTA}"
    assert [*build.jars] == [
        f"delta-spark_{line}_2.13-{jars.DELTA}.jar",
        f"delta-storage-{jars.DELTA}.jar",
    ]
    assert len({sha256 for one in jars.BUILDS.values() for sha256 in one.jars.values()}) == len(SPARK_LINES) + 1


def test_a_line_without_pinned_jars_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "spark_line", lambda: "4.9")

    with pytest.raises(EnvironmentFaultError, match=r"Delta jars: found none pinned for Spark 4\.9; expected"):
        jars.pinned_build()


def test_jars_are_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str]) -> None:
    calls = resolver(monkeypatch, tmp_path, content="a jar")

    first, second = jars.delta_jars(JAVA, env=env), jars.delta_jars(JAVA, env=env)

    assert first == second == (tmp_path / "my cache/jars/one.jar", tmp_path / "my cache/jars/two.jar")
    assert len(calls.read_text().splitlines()) == 1
    assert sorted(path.name for path in first[0].parent.iterdir()) == ["one.jar", "two.jar"]


@pytest.mark.parametrize("planted", [b"a j", b"a rat", b""], ids=["torn", "of the same size", "empty"])
def test_changed_jar_is_not_loaded_but_fetched_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str], planted: bytes
) -> None:
    resolver(monkeypatch, tmp_path, content="a jar")
    (one, _) = jars.delta_jars(JAVA, env=env)
    one.write_bytes(planted)

    jars.delta_jars(JAVA, env=env)

    assert one.read_bytes() == CONTENT


def test_jar_with_another_sum_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str]) -> None:
    resolver(monkeypatch, tmp_path, content="another jar")

    with pytest.raises(EnvironmentFaultError, match=r"one\.jar: found SHA-256"):
        jars.delta_jars(JAVA, env=env)

    assert list(jars.jars_dir(env).iterdir()) == []


def test_failed_fetch_shows_what_the_resolver_said_and_where_the_files_belong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str]
) -> None:
    resolver(monkeypatch, tmp_path, content=None)

    with pytest.raises(EnvironmentFaultError) as caught:
        jars.delta_jars(JAVA, env=env)

    (fault,) = caught.value.faults
    assert ":: UNRESOLVED DEPENDENCIES ::" in fault.found
    assert fault.expected == f"one.jar and two.jar in {tmp_path}/my cache/jars"


def test_resolver_does_not_inherit_the_gateway_of_a_running_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str]
) -> None:
    resolver(monkeypatch, tmp_path, content="a jar")
    submit = tmp_path / "spark-submit"
    submit.write_text(submit.read_text() + f"env > '{tmp_path}/environment'\n")

    jars.delta_jars(JAVA, env={**env, "PYSPARK_GATEWAY_PORT": "1", "PYSPARK_SUBMIT_ARGS": "--master yarn"})

    seen = (tmp_path / "environment").read_text()
    assert "PYSPARK_GATEWAY_PORT" not in seen
    assert "PYSPARK_SUBMIT_ARGS" not in seen
    assert "JAVA_HOME=/opt/jdk" in seen
