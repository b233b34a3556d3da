"""The archive of classes, on the Java of this machine: mapped where it fits, and not heard of where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rankeval_spark.spark.runtime import class_archive
from rankeval_spark.spark.runtime.cache import cache_dir
from rankeval_spark.spark.runtime.java import Java, find_java
from rankeval_spark.spark.runtime.spark_home import find_spark_home
from tests.support.cli import PROJECT

USERS_CACHE = cache_dir()
CLASSES = ("java/lang/Object", "java/lang/String", "org/slf4j/LoggerFactory")

SESSION = """
import sys
from pathlib import Path
from rankeval_spark.spark.session import build_session
from rankeval_spark.spark.runtime import class_archive
from rankeval_spark.spark.doctor import class_listing as kept_classes
from rankeval_spark.spark.session.launch import end_driver
listed = Path(sys.argv[1])
spark = build_session(master="local[1]", settings=kept_classes.settings_to_list(listed), is_small=True)
end_driver(spark)
listed.write_text("".join(line + chr(10) for line in listed.read_text().splitlines()[:2000]))
java, jars = kept_classes.default_archive()
name, class_path = class_archive.archive_name(java, jars), class_archive.class_path(jars)
archive = class_archive.make_archive(java, name, listed=listed, class_path=class_path)
spark = build_session(master="local[1]", settings={"spark.driver.extraJavaOptions": "-Dtheirs=kept"})
pid = spark._jvm.java.lang.ProcessHandle.current().pid()
print(str(archive) in Path(f"/proc/{pid}/maps").read_text(), spark._jvm.java.lang.System.getProperty("theirs"))
print(spark.range(3).count())
end_driver(spark)
"""


@pytest.fixture(scope="module")
def java() -> Java:
    """Give the Java that a session would run on."""
    return find_java()


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the class path of one jar, copied: of one jar in a folder with a space, Java 17 archives no class."""
    (jar,) = (find_spark_home() / "jars").glob("slf4j-api-*.jar")
    return str(shutil.copy(jar, tmp_path_factory.mktemp("jars")))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a cache of the test's own, in a folder with a space in its name."""
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.fixture
def archive(java: Java, class_path: str, tmp_path: Path) -> Path:
    """Make an archive of a few classes."""
    listed = tmp_path / "classes.lst"
    listed.write_text("\n".join(CLASSES) + "\n")
    archive = class_archive.make_archive(java, "few", listed=listed, class_path=class_path)
    assert archive is not None
    return archive


def said(java: Java, options: Sequence[str], class_path: str) -> tuple[int, str, str]:
    """Run a JVM and return its exit code and what it says."""
    command = [str(java.home / "bin" / "java"), *options, "-cp", class_path, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    version = "".join(line for line in done.stderr.splitlines(keepends=True) if "VM" not in line)
    return done.returncode, done.stdout, version


def test_an_archive_fits_its_class_path_alone(java: Java, archive: Path, class_path: str) -> None:
    assert class_archive.find_archive("few") == archive
    assert class_archive.fits(java, archive, class_path)
    assert not class_archive.fits(java, archive, str(archive))
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_an_archive_of_another_class_path_is_not_heard_of(java: Java, archive: Path, class_path: str) -> None:
    other = str(Path(class_path).with_name("other.jar"))

    assert said(java, class_archive.options_to_use(archive), other) == said(java, [], other)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\0" * 65536])
def test_a_broken_archive_is_not_heard_of(java: Java, tmp_path: Path, class_path: str, content: bytes) -> None:
    broken = tmp_path / "broken.jsa"
    broken.write_bytes(content)

    assert not class_archive.fits(java, broken, class_path)
    assert said(java, class_archive.options_to_use(broken), class_path) == said(java, [], class_path)


def test_an_archive_that_was_cut_short_is_not_found(archive: Path) -> None:
    content = archive.read_bytes()
    archive.unlink()
    archive.write_bytes(content[:100_000])

    assert class_archive.find_archive("few") is None


def test_an_archive_that_cannot_be_made_leaves_nothing(
    java: Java, tmp_path: Path, cache: Path, class_path: str
) -> None:
    assert class_archive.make_archive(java, "none", listed=tmp_path / "no.lst", class_path=class_path) is None
    assert list((cache / "classes").iterdir()) == []


def test_the_name_depends_on_java_and_jars() -> None:
    javas = [Java(Path("/a"), 17, ""), Java(Path("/b"), 17, ""), Java(Path("/a"), 21, "")]
    names = {class_archive.archive_name(java, jars) for java in javas for jars in ([], [Path("/delta.jar")])}
    assert len(names) == 6


@pytest.mark.slow
def test_a_local_driver_maps_the_archive_and_keeps_options_of_the_user(tmp_path: Path, cache: Path) -> None:
    cache.mkdir()
    (cache / "jars").symlink_to(USERS_CACHE / "jars")

    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path / "classes.lst")],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.splitlines() == ["True kept", "3"], done.stderr
