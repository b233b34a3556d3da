"""Inputs in object stores: a store of obstore in a folder, asked as one of S3 is."""

from __future__ import annotations

import datetime as dt
import gzip
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from obstore.store import LocalStore

from rankeval_spark import object_stores
from rankeval_spark.config import validate_model
from rankeval_spark.config.inputs import HeldOutInput
from rankeval_spark.inputs import places
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.arrow.input_sizes import look_up_size
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_files import ForSparkError
from tests.support.cli import rankeval
from tests.support.nights import FIRST, Workspace

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.files import FileTable

DAY = [{"column": "day", "op": "=", "value": "{date}"}]


class Bucket:
    """A store in a folder, whose requests are counted; only ``s3://bucket`` exists."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self._store = folder, LocalStore(folder)
        self.seen: Counter[str] = Counter()
        self.got: list[str] = []
        self.n_bytes = 0

    def __call__(self, address: str, where: str) -> Bucket:  # noqa: ARG002 - in place of `open_store`
        assert address in ("s3://bucket", "s3a://bucket", "gs://bucket")
        return self

    def list(self, **keys: Any) -> Any:  # noqa: ANN401 - of obstore
        self.seen["list"] += 1
        return self._store.list(**keys)

    def list_with_delimiter(self, **keys: Any) -> Any:  # noqa: ANN401 - of obstore
        self.seen["list"] += 1
        return self._store.list_with_delimiter(**keys)

    def head(self, key: str) -> Any:  # noqa: ANN401 - of obstore
        self.seen["head"] += 1
        return self._store.head(key)

    def get(self, key: str, **keys: Any) -> Any:  # noqa: ANN401 - of obstore
        self.seen["get"] += 1
        self.got.append(key)
        answer = self._store.get(key, **keys)
        start, end = answer.range
        self.n_bytes += end - start
        return answer


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket(tmp_path / "bucket")
    monkeypatch.setattr(object_stores, "open_store", made)
    monkeypatch.setattr(places, "_places", {})
    return made


def config_of(location: str, format_: str = "parquet", **keys: Any) -> HeldOutInput:  # noqa: ANN401 - of a config
    return validate_model(HeldOutInput, {"format": format_, "path": location, **keys})


def opened(location: str, format_: str = "parquet", **keys: Any) -> FileTable:  # noqa: ANN401 - of a config
    return files.open_files(config_of(location, format_, **keys), FIRST)


def rows(table: FileTable, *filters: Any) -> pa.Table:  # noqa: ANN401 - of a config
    config = config_of(table.location, filters=list(filters))
    condition = RowFilter(config.filters, FIRST).arrow_condition(table.schema)
    return table.read(table.schema.names, condition)


def write_parquet(folder: Path, days: int = 3, n_rows: int = 2) -> None:
    for day in range(days):
        own = folder / f"day={FIRST + dt.timedelta(days=day)}"
        own.mkdir(parents=True)
        pq.write_table(pa.table({"item_id": [f"{day} {place}" for place in range(n_rows)]}), own / "part 0%.parquet")


def write_delta(folder: Path, versions: int = 3) -> None:
    for version in range(versions):
        table = pa.table({"item_id": [str(version)], "day": [f"{FIRST + dt.timedelta(days=version % 2)}: a/b c"]})
        deltalake.write_deltalake(folder, table, mode="append", partition_by=["day"])


def test_a_folder_of_partitions_is_read_as_on_a_disk(bucket: Bucket) -> None:
    write_parquet(bucket.folder / "log")
    there, here = opened("s3://bucket/log/", filters=DAY), opened(str(bucket.folder / "log"), filters=DAY)
    assert there.location == "s3://bucket/log/"
    assert rows(there, *DAY).equals(rows(here, *DAY))
    assert rows(there, *DAY).to_pylist() == [{"item_id": f"0 {place}", "day": FIRST} for place in range(2)]


def test_only_the_files_of_the_date_are_copied_after_one_listing(bucket: Bucket) -> None:
    write_parquet(bucket.folder / "log", days=20)
    rows(opened("s3://bucket/log", filters=DAY), *DAY)
    assert (bucket.seen, {key.split("/")[1] for key in bucket.got}) == ({"list": 1, "get": 1}, {f"day={FIRST}"})


def test_a_table_is_opened_by_footers_and_read_once(bucket: Bucket) -> None:
    write_parquet(bucket.folder / "log", days=1)
    noise = np.random.default_rng(0).random(200_000)
    (file,) = bucket.folder.rglob("*.parquet")
    pq.write_table(pa.table({"item_id": noise}), file, row_group_size=50_000)
    size = file.stat().st_size
    table = opened("s3://bucket/log", filters=DAY)
    assert table.count(None) == 200_000
    assert bucket.n_bytes < size / 4
    assert pc.sum(rows(table)["item_id"]).as_py() == pytest.approx(noise.sum(), rel=1e-12)
    rows(table)
    assert bucket.n_bytes < size * 1.25
    assert look_up_size("held_out", config_of("s3://bucket/log", filters=DAY), FIRST).n_bytes == size


def test_a_footer_that_is_longer_than_the_first_request_is_read(bucket: Bucket) -> None:
    wide = pa.table({f"{'x' * 200}_{place}": [1.0] for place in range(3000)})
    (bucket.folder / "log").mkdir()
    pq.write_table(wide, bucket.folder / "log" / "a.parquet")
    assert opened("s3://bucket/log").schema.names == wide.schema.names
    assert bucket.seen["get"] == 2


@pytest.mark.parametrize("version", [None, 0, 1])
def test_a_version_of_a_delta_table_is_read_as_on_a_disk(bucket: Bucket, version: int | None) -> None:
    write_delta(bucket.folder / "log")
    keys = {} if version is None else {"version": version}
    there, here = (opened(one, "delta", **keys) for one in ("s3://bucket/log", str(bucket.folder / "log")))
    assert (there.version, there.count(None)) == (here.version, 3 if version is None else version + 1)
    assert rows(there).sort_by("item_id").equals(rows(here).sort_by("item_id"))


def test_of_a_log_only_what_follows_the_checkpoint_is_copied(bucket: Bucket) -> None:
    write_delta(bucket.folder / "log", versions=5)
    deltalake.DeltaTable(bucket.folder / "log").create_checkpoint()
    write_delta(bucket.folder / "log", versions=2)
    table = opened("s3://bucket/log", "delta")
    names = [key.rpartition("/")[2] for key in bucket.got]
    assert sorted(names) == [f"{4:020d}.checkpoint.parquet", *(f"{number:020d}.json" for number in (4, 5, 6))]
    assert (table.version, rows(table).num_rows) == (6, 7)
    assert rows(opened("s3://bucket/log", "delta", version=1)).num_rows == 2


def test_of_a_delta_table_only_the_files_of_the_filters_are_copied(bucket: Bucket) -> None:
    write_delta(bucket.folder / "log", versions=4)
    where = [{"column": "day", "op": "=", "value": "{date}: a/b c"}]
    assert rows(opened("s3://bucket/log", "delta", filters=where), *where).num_rows == 2
    assert len([key for key in bucket.got if key.endswith(".parquet")]) == 2


@pytest.mark.parametrize(
    ("name", "format_", "text"),
    [
        ("log.csv", "csv", "user_id,item_id\nu,a\nu,b\n"),
        ("log/day=2026-01-01/a.csv.gz", "csv", "user_id,item_id\nu,a\n"),
        ("log/a.json", "json", '{"user_id": "u", "item_id": "a"}\n{"user_id": "v"}\n'),
        ("log.jsonl.gz", "json", '{"user_id": "u", "item_id": "a"}\n'),
        ("qrels.txt", "trec", "u 0 a 1\nu 0 b 0\n"),
    ],
)
def test_text_is_read_as_on_a_disk(bucket: Bucket, name: str, format_: str, text: str) -> None:
    file = bucket.folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    place = name.partition("/")[0]
    there, here = (opened(one, format_) for one in (f"gs://bucket/{place}", str(bucket.folder / place)))
    assert rows(there).equals(rows(here))
    assert rows(there).num_rows > 0


def test_what_was_written_since_is_read_when_it_is_opened_again(bucket: Bucket) -> None:
    file = bucket.folder / "log.csv"
    for text in ("a,b\n1,2\n", "a,b\n3,4\n5,6\n"):
        file.write_text(text, encoding="utf-8")
        assert rows(opened("s3://bucket/log.csv", "csv")).num_rows == text.count("\n") - 1
    write_parquet(bucket.folder / "days", days=2)
    assert rows(opened("s3://bucket/days")).num_rows == 4
    (bucket.folder / "days" / f"day={FIRST}" / "part 0%.parquet").unlink()
    assert rows(opened("s3://bucket/days")).num_rows == 2


def test_an_object_that_changes_between_its_footer_and_its_rows_is_refused(bucket: Bucket) -> None:
    file = bucket.folder / "log.parquet"
    pq.write_table(pa.table({"item_id": np.random.default_rng(0).random(100_000)}), file)
    table = opened("s3://bucket/log.parquet")
    pq.write_table(pa.table({"item_id": [1.0]}), file)
    with pytest.raises(OSError, match=r"written again while it was read: 's3://bucket/log.parquet'"):
        rows(table)


@pytest.mark.parametrize(
    ("format_", "path", "found", "fix"),
    [
        ("parquet", "s3://bucket/logs", "no such path at s3://bucket/logs", "s3://bucket has no 'logs', did you mean"),
        ("delta", "s3a://bucket/logs/x", "no such path at s3a://bucket/logs/x", "s3a://bucket has no 'logs'"),
        ("delta", "s3://bucket/log", "no Delta table at s3://bucket/log", ""),
        ("parquet", "s3://bucket/log/day=2026-01-09", "no such path", "s3://bucket/log has 3 other days: "),
        ("parquet", "s3://bucket/damaged", "a file that cannot be read", ""),
    ],
)
def test_what_is_not_there_is_named_by_its_address(
    bucket: Bucket, format_: str, path: str, found: str, fix: str
) -> None:
    write_parquet(bucket.folder / "log")
    (bucket.folder / "damaged").mkdir()
    (bucket.folder / "damaged" / "a.parquet").write_bytes(b"PAR1 no Parquet PAR1")
    size = look_up_size("held_out", config_of(path, format_), FIRST)
    assert size.fault is not None
    assert found in size.fault.found
    assert size.fault.fix.startswith(fix)
    with pytest.raises(ForSparkError) as raised:
        opened(path, format_)
    for told in (str(size), str(raised.value)):
        assert "rankeval-input-" not in told


def test_copies_are_dropped_above_a_limit(bucket: Bucket) -> None:
    write_parquet(bucket.folder / "log", days=1)
    table = opened("s3://bucket/log")
    rows(table)
    places.release_copies(above=10**9)
    rows(table)
    assert bucket.seen["get"] == 1
    places.release_copies(above=0)
    assert rows(opened("s3://bucket/log")).num_rows == 2
    assert bucket.seen["get"] == 2


def test_a_night_of_a_store_has_the_numbers_of_one_of_a_disk(workspace: Workspace, bucket: Bucket) -> None:
    found = []
    (bucket.folder / "inputs").symlink_to(workspace.folder / "inputs")
    for root, place in (("disk", str(workspace.folder / "inputs")), ("store", "s3://bucket/inputs")):
        paths = {name: f"{place}/{name}" for name in ("recommendations", "held_out")}
        keys = [f"--set=inputs.{name}.path={path}" for name, path in paths.items()]
        done = rankeval("run", workspace.config, "--date", FIRST, f"--set=results.root={root}", *keys)
        assert done.code == 0, done.err
        means, runs = (deltalake.DeltaTable(workspace.folder / root / name) for name in ("metrics", "runs"))
        keyed = means.to_pyarrow_table().select(["model_id", "slice", "measure", "k", "value"])
        found.append(keyed.sort_by([(name, "ascending") for name in keyed.column_names]))
        read = [each["location"] for run in runs.to_pyarrow_table().to_pylist() for each in run["inputs"] or ()]
        assert {*paths.values()} < {*read}
    assert found[0].equals(found[1])
