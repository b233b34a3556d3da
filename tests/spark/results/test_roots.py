"""Which folders become results roots, and on which stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.errors import ConfigError, InputError, ResultsBusyError, ResultsError
from rankeval_spark.results import Results, ResultsStore
from rankeval_spark.results.locks import Lock
from rankeval_spark.results.roots import normalise
from rankeval_spark.results.storage import Storage
from tests.spark.results import nights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_folder_that_holds_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds other things \(thesis.txt\)") as refused:
        ResultsStore.open(str(tmp_path))
    assert refused.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_missing_root_is_not_made_unless_requested(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="where there are no results"):
        ResultsStore.open(str(tmp_path / "typo"), create=False)
    assert not (tmp_path / "typo").exists()


def test_a_root_that_cannot_be_written_is_a_readable_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Not a directory"):
        ResultsStore.open(str(tmp_path / "file" / "results"))


def test_a_root_in_a_newer_layout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_rankeval.json").write_text('{"layout": 2}')
    with pytest.raises(ConfigError, match="in layout 2"):
        ResultsStore.open(str(tmp_path))


@pytest.mark.parametrize("root", ["ftp://host/results", "/data/`id`", "/data/${env:HOME}", " "])
def test_a_root_of_another_kind_is_refused(root: str) -> None:
    with pytest.raises(ConfigError, match="results root"):
        normalise(root)


def test_a_night_that_another_run_works_on_is_busy_and_another_night_is_not(empty_root: str) -> None:
    store = ResultsStore.open(empty_root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "first"):
        with (
            pytest.raises(ResultsBusyError, match="run first") as busy,
            store.run_lock(nights.NIGHTLY, nights.FIRST, "second"),
        ):
            pass
        with store.run_lock(nights.NIGHTLY, nights.SECOND, "third") as other:
            assert other.is_held
    assert busy.value.exit_code == 5


def test_a_root_without_a_published_run_says_so(empty_root: str) -> None:
    with pytest.raises(InputError, match="no published run"):
        Results(empty_root).metrics()


def test_a_first_run_that_was_killed_while_it_made_a_table_blocks_no_other_run(empty_root: str) -> None:
    """What a SIGTERM in the middle of the first commit left behind, file by file."""
    ResultsStore.open(empty_root)
    log = Path(empty_root, "user_metrics", "_delta_log")
    shutil.rmtree(log)
    (log / "_staged_commits").mkdir(parents=True)
    (log / ".00000000000000000000.json.26cf5e7c-7dd6-4d57-8197-dc280f1f5f47.tmp").write_bytes(b"")

    nights.publish(empty_root, nights.facts("first"))

    assert Results(empty_root).user_metrics().num_rows == len(nights.user_rows(nights.RANKS))
    assert [path.name for path in log.iterdir() if path.name.endswith(".tmp")] == []


def test_a_table_without_a_log_keeps_its_files(empty_root: str) -> None:
    """Whatever became of its log, rows are not thrown away unasked."""
    nights.publish(empty_root, nights.facts("first"))
    for commit in Path(empty_root, "lists", "_delta_log").glob("*.json"):
        commit.unlink()
    files = sorted(Path(empty_root, "lists").rglob("*.parquet"))
    assert files
    with pytest.raises(ResultsError, match=r"table lists: found files without a log of Delta"):
        ResultsStore.open(empty_root)
    assert sorted(Path(empty_root, "lists").rglob("*.parquet")) == files


def test_a_root_may_have_spaces_and_the_characters_of_patterns(spark: SparkSession, root: str, tmp_path: Path) -> None:
    odd = str(Path(root).rename(tmp_path / "my {a,b} [x] *? é'results#%|^"))
    nights.publish(odd, nights.facts("again"), {"ann": 1})
    assert [row["user_id"] for row in Results(odd, spark).user_metrics(k=1).collect()] == ["ann"]
    assert Results(odd).user_metrics(k=1)["user_id"].to_pylist() == ["ann"]


def test_a_folder_without_results_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no table runs"):
        Results(str(tmp_path), spark).metrics()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def test_a_store_creates_a_file_once(storage: Storage) -> None:
    assert storage.create("a/b", b"one")
    assert not storage.create("a/b", b"two")
    assert storage.read("a/b") == b"one"


def test_a_store_writes_a_register_only_if_its_version_is_known(storage: Storage) -> None:
    first = storage.swap("a/lock", b"one", None)
    assert storage.load("a/lock") == (b"one", first)
    second = storage.swap("a/lock", b"two", first)
    assert [storage.swap("a/lock", b"three", mark) for mark in (None, first)] == [None, None]
    assert storage.load("a/lock") == (b"two", second)
    assert storage.load("a/none") is None


def test_a_store_lists_and_removes(storage: Storage) -> None:
    storage.create("a/b", b"two")
    assert (storage.read("a/b"), storage.names("a"), storage.names("none")) == (b"two", ["b"], [])
    assert 0 <= storage.age("a/b") < 60
    storage.remove("a")
    storage.remove("a")
    assert storage.names("a") == []
    with pytest.raises(FileNotFoundError):
        storage.read("a/b")


def test_a_store_puts_a_file_with_nothing_next_to_it(storage: Storage) -> None:
    storage.put("a/b/c", b"whole")
    assert (storage.read("a/b/c"), storage.names("a/b")) == (b"whole", ["c"])


def test_a_lock_has_one_holder(storage: Storage) -> None:
    with Lock(storage, "night", owner="first"), pytest.raises(ResultsBusyError, match="run first"):
        Lock(storage, "night", owner="second").acquire()
    with Lock(storage, "night", owner="third") as third:
        assert third.is_held
