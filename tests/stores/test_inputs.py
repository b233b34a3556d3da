"""Inputs of nights on servers of object stores, and what they are reached by."""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from rankeval_spark import allowed_folders, evaluate, object_stores
from rankeval_spark.apps import sampled_tables
from rankeval_spark.config import load_config
from rankeval_spark.errors import InputError
from rankeval_spark.inputs import places
from rankeval_spark.results import Results, object_storage
from rankeval_spark.results.object_storage import ObjectStorage
from tests.stores.conftest import ACCOUNT, BUCKET, KEY
from tests.support import nights as workspaces
from tests.support.cli import rankeval, without_session
from tests.support.nights import FIRST, SECOND, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stores.conftest import Drivers, Server

PLANTED: Final = "tr0ub4dor-planted"
INPUTS: Final = ("recommendations", "held_out", "segments")


@pytest.fixture(autouse=True)
def _as_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(places, "_places", {})
    monkeypatch.setattr(object_storage, "open_objects", cache(ObjectStorage))
    object_stores.cached_store.cache_clear()
    yield
    allowed_folders.STORE_SETTINGS.clear()


def uploaded(workspace: Workspace, address: str, **store: str) -> list[str]:
    """Copy the inputs of a workspace to a store; return the options by which a command reads them there."""
    allowed_folders.STORE_SETTINGS.update(store)
    bucket, _, key = address.removesuffix("/").partition(f"{BUCKET}/")
    opened = object_stores.open_store(f"{bucket}{BUCKET}", "test")
    for file in (workspace.folder / "inputs").rglob("*"):
        if file.is_file():
            opened.put(f"{key}/{file.relative_to(workspace.folder / 'inputs')}", file)
    return [f"--set=inputs.{name}.path={address}/{name}" for name in INPUTS]


@pytest.mark.in_ci
def test_nights_of_inputs_in_a_store_are_those_of_a_disk(drivers_of_each: Drivers, tmp_path: Path) -> None:
    made = workspaces.workspace(tmp_path / "workspace")
    there = uploaded(made, drivers_of_each.root)
    means = []
    for root, options in (("disk", []), ("store", there)):
        with without_session():
            done = rankeval(
                "backfill", made.config, "--from", FIRST, "--to", SECOND, f"--set=results.root={root}", *options
            )
            checked = rankeval("validate", made.config, "--date", FIRST, *options)
            user = rankeval("user", made.folder / root, "ann", "--date", FIRST)
        assert (done.code, checked.code, user.code) == (0, 0, 0), (done.err, checked.err, user.err)
        found = Results(str(made.folder / root)).metrics().to_pandas()
        means.append((found[["evaluation_date", "model_id", "measure", "k", "value"]], user.out))
    assert means[0][0].equals(means[1][0])
    assert means[0][1] == means[1][1]


@pytest.mark.in_ci
def test_a_call_reads_addresses_as_paths_of_a_disk(drivers_of_each: Drivers, tmp_path: Path) -> None:
    log = pa.table({"user_id": ["u", "u", "v"], "item_id": ["7", "8", "9"], "score": [0.9, 0.8, 0.7]})
    held_out = pa.table({"user_id": ["u", "v"], "item_id": ["8", "9"]})
    pq.write_table(log, tmp_path / "log.parquet")
    deltalake.write_deltalake(str(tmp_path / "delta"), held_out)
    csv.write_csv(held_out, tmp_path / "truth.csv")
    (tmp_path / "folder").mkdir()
    held_out.to_pandas().to_json(tmp_path / "folder" / "a.jsonl", orient="records", lines=True)
    root = drivers_of_each.root
    bucket, _, key = root.partition(f"{BUCKET}/")
    store = object_stores.open_store(f"{bucket}{BUCKET}", "test")
    for file in tmp_path.rglob("*.*"):
        store.put(f"{key}/{file.relative_to(tmp_path)}", file)
    for name in ("delta", "truth.csv", "folder"):
        result = evaluate(f"{root}/log.parquet", f"{root}/{name}/", measures=["RR"])
        assert result.metrics["value"].to_pylist() == [(1 / 2 + 1) / 2], name
        assert f"path: {root}/{name}/\n" in result.to_config()
    for lost, named in ((f"{root}/dleta", "did you mean 'delta'"), (f"{bucket}no-such-one/x", "no such bucket")):
        with pytest.raises(InputError, match=named):
            evaluate(log, lost, measures=["RR"])


@pytest.mark.in_ci
def test_init_guesses_a_config_of_tables_in_a_store(
    drivers_of_each: Drivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled_tables, "MAX_BYTES", 2000)  # the first file of a table
    users = [f"u{n}" for n in range(40)]
    for n, day in enumerate(("2026-01-01", "2026-01-02")):
        lists = pa.table({"day": [day] * 40, "userId": users, "movieId": [n] * 40, "score": [1.0] * 40})
        deltalake.write_deltalake(str(tmp_path / "lists"), lists, mode="append", partition_by=["day"])
        (tmp_path / "truth").mkdir(exist_ok=True)
        csv.write_csv(pa.table({"userId": users, "movieId": [n] * 40}), tmp_path / "truth" / f"{day}.csv")
    root = drivers_of_each.root
    bucket, _, key = root.partition(f"{BUCKET}/")
    store = object_stores.open_store(f"{bucket}{BUCKET}", "test")
    for file in tmp_path.rglob("*.*"):
        if file.is_file():
            store.put(f"{key}/{file.relative_to(tmp_path)}", file)
    there = ["--recommendations", f"{root}/lists", "--held-out", f"{root}/truth"]
    written = rankeval("init", tmp_path / "night.yaml", *there, "--results", tmp_path / "results")
    assert written.code == 0, written.err
    config = load_config(tmp_path / "night.yaml")
    assert config.inputs.recommendations.path == f"{root}/lists"
    assert config.inputs.held_out.path == f"{root}/truth/{{date}}.csv"
    assert config.inputs.recommendations.columns["item_id"] == "movieId"
    with without_session():
        assert rankeval("run", tmp_path / "night.yaml", "--date", "2026-01-02").code == 0
    lost = rankeval("init", tmp_path / "other.yaml", *there[:3], f"{root}/thruth")
    assert (lost.code, "--held-out: found no such path at" in lost.message) == (4, True), lost.err


@pytest.mark.in_ci
def test_the_config_names_the_server_and_no_secret_is_written(
    s3: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secrets = {"AWS_ACCESS_KEY_ID": f"AKIA{PLANTED}", "AWS_SECRET_ACCESS_KEY": PLANTED, "AWS_SESSION_TOKEN": PLANTED}
    for name, value in {**s3.variables, **secrets, "HOOK": f"http://127.0.0.1:1/services/{PLANTED}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION")
    place = {"endpoint": f"http://127.0.0.1:{s3.port}", "region": "us-east-1"}
    never = [{"measure": "nDCG@1", "at_least": 2.0}]  # so that the webhook is told
    notify = [{"url": "${env:HOOK}"}]
    made = workspaces.workspace(tmp_path / "workspace", gates=never, notify=notify)
    root = f"s3a://{BUCKET}/of-a-config"
    there = uploaded(made, f"s3://{BUCKET}/inputs-of-a-config", **place)
    keys = [f"--set=stores.{name}={value}" for name, value in place.items()]
    with without_session():
        told = [rankeval("run", made.config, "--date", FIRST, f"--set=results.root={root}", *keys, *there, "--debug")]
        assert told[0].code == 6, told[0].err
        assert "notify[0]: the webhook cannot be reached" in told[0].err
        lost = [option.replace("inputs-of-a-config", "inputs-of-a-confg") for option in there]
        told += [rankeval("validate", made.config, "--date", FIRST, *keys, *lost)]
        told += [rankeval("validate", made.config, "--date", FIRST, *keys, "--set=inputs.segments.path=s3://buket/x")]
        told += [rankeval("report", root, "--out", tmp_path / "report.html")]
    assert [each.code for each in told] == [6, 4, 4, 0]
    assert f"s3://{BUCKET} has no 'inputs-of-a-confg', did you mean 'inputs-of-a-config'?" in told[1].message
    assert "no such bucket or container at s3://buket/x" in told[2].message
    store = object_stores.open_store(f"s3://{BUCKET}", "test")
    written = [bytes(store.get(each["path"]).bytes()) for batch in store.list("of-a-config") for each in batch]
    written += [(tmp_path / "report.html").read_bytes(), *(f"{each.out}{each.err}".encode() for each in told)]
    runs = Results(root).runs().to_pylist()
    assert runs
    assert not [text for text in [*written, repr(runs).encode()] if PLANTED.encode() in text]


@pytest.mark.in_ci
def test_a_night_with_a_shared_access_signature_needs_no_key_and_writes_it_nowhere(
    azure: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Of the container: azurite does not take that of an account for deleting several objects at once.
    rights = {"sp": "racwdl", "se": "2099-01-01T00:00:00Z", "sv": "2021-08-06", "sr": "c"}
    signed = [rights["sp"], "", rights["se"], f"/blob/{ACCOUNT}/{BUCKET}", "", "", "", rights["sv"], "c", *[""] * 7]
    digest = hmac.digest(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256)
    signature = base64.b64encode(digest).decode()
    token = urlencode({**rights, "sig": signature})
    for name, value in {**azure.environment(), "AZURE_STORAGE_SAS_TOKEN": token}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    object_stores.cached_store.cache_clear()
    made = workspaces.workspace(tmp_path / "workspace")
    root = f"az://{BUCKET}/by-a-signature"
    with without_session():
        told = [rankeval("run", made.config, "--date", day, f"--set=results.root={root}") for day in (FIRST, SECOND)]
        told += [rankeval("show", root)]
    assert [each.code for each in told] == [0, 0, 0], [each.err for each in told]
    storage = ObjectStorage(root)
    storage.create("there", b"1")
    storage.forget(["missing", "there"])  # Azure refuses to delete the first, S3 does not
    storage.remove("missing")
    assert "there" not in storage.names("")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", token.replace("sig=", "sig=not"))
    object_stores.cached_store.cache_clear()
    monkeypatch.setattr(object_storage, "open_objects", cache(ObjectStorage))
    refused = rankeval("show", root)
    assert refused.code == 2, refused.err
    assert "Permission denied" in refused.message
    for secret in (signature, quote(signature, safe="")):
        assert not [each for each in (*told, refused) if secret in f"{each.out}{each.err}"]
