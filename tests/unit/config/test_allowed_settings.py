"""RANKEVAL_ROOTS holds for what needs no Spark too: files of TREC, and files that Spark settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankeval_spark import allowed_folders
from rankeval_spark.allowed_folders import outside_faults, spark_address
from rankeval_spark.config.spark_settings import setting_files
from rankeval_spark.errors import ConfigError
from rankeval_spark.spark.session import build_session
from rankeval_spark.spark.session.machine_checks import check_machine
from tests.support.cli import rankeval

ROOTS = {"RANKEVAL_ROOTS": "/data,s3a://bucket/a"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars", "/data/a.jar,/opt/b.jar"),
        ("spark.jars", "b.jar"),
        ("spark.jars", "http://host/x.jar"),
        ("spark.jars", "local:/opt/b.jar"),
        ("spark.jars", "s3a://bucket/b/x.jar"),
        ("spark.files", "/data/../etc/passwd"),
        ("spark.archives", "file:///opt/x.zip"),
        ("spark.submit.pyFiles", "/opt/x.py"),
        ("spark.driver.extraClassPath", "/data/a.jar:/opt/*"),
        ("spark.sql.warehouse.dir", "warehouse"),
        ("spark.eventLog.dir", "hdfs://host/x"),
        ("spark.pyspark.python", "/opt/python"),
        ("spark.driver.extraJavaOptions", "-Xss4m -javaagent:/opt/a.jar"),
        ("spark.driver.extraJavaOptions", "-Xbootclasspath/a:/opt/a.jar"),
        ("spark.driver.extraJavaOptions", "@/opt/options"),
        ("spark.driver.extraJavaOptions", "-Dconfig=/etc/x"),
        ("spark.hadoop.fs.defaultFS", "hdfs://host:8020"),
        ("spark.sql.catalog.mine.warehouse", "/opt/warehouse"),
        ("spark.mine", "~/x"),
    ],
)
def test_setting_names_no_file_elsewhere(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"RANKEVAL_ROOTS says so"):
        allowed_folders.require_allowed(*setting_files({key: value}), environment=ROOTS)
    allowed_folders.require_allowed(*setting_files({key: value}), environment={})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars", "/data/a.jar,s3a://bucket/a/b.jar, file:///data/c.jar"),
        ("spark.driver.extraClassPath", "/data/a.jar:/data/b/*"),
        ("spark.hadoop.fs.s3a.endpoint", "https://host:9000/"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.driver.extraJavaOptions", "-Xss4m -Duser.timezone=Europe/Berlin -javaagent:/data/a.jar"),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "org.example.Provider"),
        ("spark.hadoop.hive.metastore.uris", "thrift://host:9083"),
    ],
)
def test_setting_may_name_files_below_the_roots_and_what_is_no_file(key: str, value: str) -> None:
    allowed_folders.require_allowed(*setting_files({key: value}), environment=ROOTS)


def test_session_is_not_built_with_jars_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path))
    with pytest.raises(ConfigError, match=r"spark\.settings\.spark\.jars: found '/opt/x\.jar'"):
        build_session(settings={"spark.jars": "/opt/x.jar"})


def test_files_of_trec_lie_below_the_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, run = tmp_path / "in" / "qrels", tmp_path / "in" / "run"
    qrels.parent.mkdir()
    qrels.write_text("t 0 d 1\n", encoding="utf-8")
    run.write_text("t Q0 d 1 1.0 x\n", encoding="utf-8")
    outside = Path(qrels.rename(tmp_path / "qrels"))
    qrels.symlink_to(outside)
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path / "in"))
    done = rankeval("trec", qrels, run)
    assert (done.code, "RANKEVAL_ROOTS says so" in done.message, done.out) == (2, True, "")
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path))
    assert rankeval("trec", qrels, run).code == 0


def test_doctor_tries_no_root_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path / "in"))
    (outcome,) = [one for one in check_machine(str(tmp_path)) if one.name == "results root"]
    assert not outcome.ok
    assert outcome.found == repr(str(tmp_path))


def test_temporary_folder_is_allowed_while_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path))
    with allowed_folders.temporary_folder() as folder:
        allowed_folders.require_allowed(("x", f"{folder}/y"))
    assert not Path(folder).exists()
    with pytest.raises(ConfigError):
        allowed_folders.require_allowed(("x", folder))


def test_path_without_a_file_system_is_of_the_default_one() -> None:
    """On a cluster, /data is a folder of HDFS, and so are the files that Spark finds there."""
    default = "hdfs://host:8020"
    allowed_folders.require_allowed(("x", f"{default}/data/y"), ("x", "/data/y"), default=default, environment=ROOTS)
    with pytest.raises(ConfigError):
        allowed_folders.require_allowed(("x", "file:///data/y"), default=default, environment=ROOTS)
    with pytest.raises(ConfigError):
        allowed_folders.require_allowed(("x", "hdfs://other/data/y"), default=default, environment=ROOTS)


@pytest.mark.parametrize("written", ["az://box/logs/a", "abfss://box@kept.dfs.core.windows.net/logs/a"])
def test_a_container_is_the_same_place_by_both_of_its_names(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "kept")
    assert spark_address(written) == "abfss://box@kept.dfs.core.windows.net/logs/a"
    for root in ("az://box/logs", "abfss://box@kept.dfs.core.windows.net/logs"):
        assert outside_faults([("input", written)], environment={"RANKEVAL_ROOTS": root}) == []
    elsewhere = {"RANKEVAL_ROOTS": "abfss://box@other.dfs.core.windows.net/logs,az://box2/logs"}
    assert len(outside_faults([("input", written)], environment=elsewhere)) == 1


def test_spark_needs_the_account_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigError, match=r"az://box/logs.*AZURE_STORAGE_ACCOUNT_NAME"):
        spark_address("az://box/logs")
    assert outside_faults([("input", "az://box/logs")], environment={"RANKEVAL_ROOTS": "az://box"}) == []
