"""Where a config reaches object stores: the endpoint, the region, and no secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import allowed_folders, object_stores
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.nights import Workspace


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    yield
    allowed_folders.STORE_SETTINGS.clear()


def test_a_config_names_the_server_of_the_stores(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    given = {"endpoint": "http://minio:9000", "region": "eu-central-1"}
    load_config(workspace.config, [f"stores.{name}={value}" for name, value in given.items()])
    there = object_stores.open_store("s3a://bucket/a", "test").config
    assert {name: there[name] for name in given} == given
    load_config(workspace.config)
    assert object_stores.open_store("s3a://bucket/a", "test").config.get("endpoint") in (None, "http://elsewhere:1")


@pytest.mark.parametrize(
    "endpoint",
    ["http://key:word@host:9000", "https://token@host", "minio:9000", "ftp://host", "https://host?sig=word", "http://"],
)
def test_an_endpoint_is_an_address_without_a_secret(workspace: Workspace, endpoint: str) -> None:
    with pytest.raises(ConfigError, match=r"stores\.endpoint: found") as raised:
        load_config(workspace.config, [f"stores.endpoint={endpoint}"])
    assert "word@" not in str(raised.value)


@pytest.mark.parametrize("root", ["main.analytics", "analytics.nightly.results", "hive_metastore.eval"])
def test_a_root_that_reads_as_a_schema_is_asked_about(workspace: Workspace, root: str) -> None:
    with pytest.raises(ConfigError, match="was a schema of a catalog meant") as raised:
        load_config(workspace.config, [f"results.root={root}"])
    assert f"write ./{root} for a folder of this name" in str(raised.value)
    config = load_config(workspace.config, [f"results.root=./{root}"])
    assert Path(config.results.location) == workspace.folder / root


@pytest.mark.parametrize("root", ["s3://bucket/results", "s3a://bucket/results", "az://box/results", "gs://bucket/r"])
def test_a_root_may_be_in_a_store(workspace: Workspace, root: str) -> None:
    assert load_config(workspace.config, [f"results.root={root}", "results.quarantine=true"]).results.root == root


@pytest.mark.parametrize("root", ["hdfs://name/results", "viewfs://name/results", "dbfs:/results"])
def test_a_root_on_another_file_system_is_refused_by_validate_and_run(workspace: Workspace, root: str) -> None:
    fix = "may hold inputs alone: give an object store, or a folder that all machines mount"
    for command in ("validate", "run"):
        refused = rankeval(command, workspace.config, "--date", FIRST, "--set", f"results.root={root}")
        assert (refused.code, fix in refused.message, "results.root" in refused.message) == (2, True, True), refused.err
    for command in ("show", "gate", "maintain"):
        refused = rankeval(command, root)
        assert (refused.code, fix in refused.message) == (2, True), refused.err
