"""Reading MovieLens from a wheel, and doing without. The wheels here are made by the tests."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from rankeval_spark.demo import movielens
from rankeval_spark.demo.dataset import INTERACTION_COLUMNS, ITEM_COLUMNS, USER_COLUMNS
from rankeval_spark.demo.movielens import DataUnavailableError
from rankeval_spark.demo.workspace import load_dataset

FILES = {
    "ml-100k.inter": (
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3\t881250949\n186\t302\t5\t891717742\n"
    ),
    "ml-100k.user": (
        "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
        "196\t24\tM\ttechnician\t85711\n"
        "186\t53\tF\tnone\t94043\n"
    ),
    "ml-100k.item": (
        "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
        "242\tA Film\t1995\tAnimation Comedy\n"
        '302\tCafé "Là"\t1996\tDrama\n'
    ),
}
METADATA = "Metadata-Version: 2.1\nName: recbole\nVersion: 1.2.1\nRequires-Dist: no-such-dependency\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Make a wheel of the right name with two ratings in it, in a folder of its own."""
    path = tmp_path / "served here" / movielens.WHEEL.name
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(f"recbole/dataset_example/ml-100k/{name}", text)
        archive.writestr("recbole/__init__.py", "raise SystemExit('the code of the wheel was run')")
        archive.writestr("recbole-1.2.1.dist-info/METADATA", METADATA)
        archive.writestr("recbole-1.2.1.dist-info/WHEEL", WHEEL)
        archive.writestr("recbole-1.2.1.dist-info/RECORD", "")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Make an empty cache folder."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def pin(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expect the sum of a wheel that a test made."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(movielens, "WHEEL", replace(movielens.WHEEL, sha256=digest))


def test_tables_are_read_with_declared_columns_and_types(wheel: Path) -> None:
    data = movielens.read_wheel(wheel)

    for frame, columns in (
        (data.interactions, INTERACTION_COLUMNS),
        (data.users, USER_COLUMNS),
        (data.items, ITEM_COLUMNS),
    ):
        assert {str(name): str(type_) for name, type_ in frame.dtypes.items()} == columns
    assert data.interactions.to_numpy().tolist() == [[196, 242, 3, 881250949], [186, 302, 5, 891717742]]
    assert data.source_name == "MovieLens 100K"


def test_occupation_none_is_a_value_and_titles_are_unicode(wheel: Path) -> None:
    data = movielens.read_wheel(wheel)

    assert data.users["occupation"].to_list() == ["technician", "none"]
    assert data.items["title"].to_list() == ["A Film", 'Café "Là"']
    assert data.items["genres"].to_list() == ["Animation Comedy", "Drama"]


def test_wheel_is_fetched_once_without_its_dependencies(
    wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(wheel, monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())

    fetched = movielens.WHEEL.cached(cache)
    monkeypatch.delenv("PIP_FIND_LINKS")

    assert movielens.WHEEL.cached(cache) == fetched == cache / movielens.WHEEL.name
    assert [path.name for path in cache.iterdir()] == [movielens.WHEEL.name]


def test_damaged_copy_in_the_cache_is_fetched_again(wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(wheel, monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())
    (cache / movielens.WHEEL.name).write_bytes(b"half a file")

    assert movielens.WHEEL.cached(cache).read_bytes() == wheel.read_bytes()


def test_wheel_of_another_sum_is_refused(wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())

    with pytest.raises(DataUnavailableError):
        movielens.load(cache)
    assert list(cache.iterdir()) == []


def test_without_network_and_cache_the_demo_says_so_and_makes_synthetic_data(cache: Path) -> None:
    said: list[str] = []

    data = load_dataset(cache, said.append)

    assert data.source_name == "synthetic"
    assert len(said) == 1
    assert "MovieLens 100K is not in the cache and could not be fetched" in said[0]
    assert "synthetic" in said[0]
