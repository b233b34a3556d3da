"""The wheel and the source distribution: what is in them, what an index shows, and that they run elsewhere."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.code import ROOT

if TYPE_CHECKING:
    from email.message import Message

NO_SOURCES: Final = (".git", ".*cache", ".venv*", "build", "dist")

pytestmark = pytest.mark.slow


def build(project: Path, kind: str, folder: Path) -> Path:
    """Build without a network and without an environment of its own."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution, from which an index's users build theirs."""
    return build(unpacked, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def readme(metadata: Message) -> str:
    """Return README as an index has it."""
    return str(metadata.get_payload())


def test_builds_of_a_clone_and_of_the_source_have_the_same_bytes(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a clone of another day"
    shutil.copytree(ROOT, copy, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(*NO_SOURCES))
    assert build(copy, "wheel", tmp_path / "wheel").read_bytes() == wheel.read_bytes()
    assert build(copy, "sdist", tmp_path / "sdist").read_bytes() == sdist.read_bytes()
    assert build(copy, "wheel:editable", tmp_path / "editable").suffix == ".whl"  # as `make setup` installs it


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "rankeval_spark"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names >= {f"rankeval_spark/{name}" for name in ("py.typed", "config/template.yaml", "report/page.css")}
    assert names == set(listed.stdout.split()) or listed.returncode != 0  # an unpacked archive has no git


def test_the_source_holds_licence_changes_and_every_page_that_its_readme_names(unpacked: Path, readme: str) -> None:
    named = re.findall(r"`((?:docs|benchmarks|jobs|conf|rankeval_spark)/[\w./-]+)`", readme)
    assert len(named) > 40
    expected = {"LICENSE", "README.md", "CHANGELOG.md", "rankeval_spark/py.typed", *named}
    assert {name for name in expected if not (unpacked / name).exists()} == set()


def test_no_link_of_the_readme_leads_nowhere_on_an_index(readme: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", readme)
    headings = {
        re.sub(r"[^\w ]", "", line).replace(" ", "-") for line in re.findall(r"^#+ (.+)$", readme.lower(), re.M)
    }
    assert {link for link in links if not link.startswith("https://") and link.strip("#") not in headings} == set()
    assert "<!--" not in readme
    assert "-->" not in readme
    assert re.findall(r"`?make [a-z]+", readme) == []
    assert 'pip install "rankeval-spark[' in readme


def test_every_extra_is_in_the_readme(metadata: Message, readme: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", readme.partition("| extra |")[2], re.MULTILINE)
    assert [name for name in metadata.get_all("Provides-Extra", []) if name not in {*rows, "test"}] == []


def test_the_wheel_runs_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "site"
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place), str(wheel)]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    env = {"PYTHONPATH": str(place), "PATH": "/nowhere"}
    session = shutil.copy(ROOT / "tests" / "support" / "first_session.py", tmp_path / "site")
    done = subprocess.run([sys.executable, session], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    expected = ["True set()", str(place / "rankeval_spark" / "__init__.py")]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr

    command = [sys.executable, str(place / "bin" / "rankeval"), "init", "nightly.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"site", "evaluation.schema.json", "nightly.yaml"}
