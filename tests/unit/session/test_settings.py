"""Settings, and whose word counts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rankeval_spark.spark.session import builder, jars, settings
from rankeval_spark.spark.session.java import Java
from rankeval_spark.spark.session.settings import driver_environment, quiet_environment, spark_defaults

JAVA = Java(Path("/opt/jdk"), 17, "JAVA_HOME")


def test_local_heap_is_between_one_and_four_gigabytes() -> None:
    assert 1 <= settings.local_heap_gigabytes() <= 4


def test_masters_of_this_machine_are_told_from_those_of_clusters() -> None:
    for master in ("local", "local[2]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]"):
        assert settings.is_local(master), master
    for master in ("spark://host:7077", "yarn", "k8s://https://host", "", "localhost"):
        assert not settings.is_local(master), master


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local-cluster[2,4,1024]", 8),
        ("local[*]", os.cpu_count()),
        ("local[*,2]", os.cpu_count()),
        ("local[0]", 1),
        ("local-cluster[2]", os.cpu_count()),
    ],
)
def test_cores_of_local_masters(master: str, cores: int) -> None:
    assert builder.count_local_cores(master) == cores


@pytest.mark.parametrize(
    ("cores", "partitions", "least"), [(1, 8, "16MB"), (2, 16, "8MB"), (16, 128, "1MB"), (64, 200, "1MB")]
)
def test_small_machines_have_few_partitions(tmp_path: Path, cores: int, partitions: int, least: str) -> None:
    local = settings.local_settings(tmp_path, cores=cores)

    assert local["spark.sql.shuffle.partitions"] == str(partitions)
    assert local["spark.sql.adaptive.coalescePartitions.minPartitionSize"] == least


def test_workers_find_the_package_of_the_driver(tmp_path: Path) -> None:
    folder = settings.local_settings(tmp_path, cores=1)["spark.executorEnv.PYTHONPATH"]
    assert (Path(folder) / "rankeval_spark" / "__init__.py").is_file()


def test_defaults_file_is_read_with_spaces_and_equals_signs(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n\nspark.master   yarn\nspark.jars=/a b/delta.jar\nspark.x.options  -Da=b -Dc=d\nspark.empty\n"
    )

    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {
        "spark.master": "yarn",
        "spark.jars": "/a b/delta.jar",
        "spark.x.options": "-Da=b -Dc=d",
    }


def test_logging_of_a_conf_folder_is_left_alone(tmp_path: Path) -> None:
    assert "SPARK_CONF_DIR" not in quiet_environment({"SPARK_CONF_DIR": str(tmp_path)})
    assert "SPARK_CONF_DIR" in quiet_environment({})


def test_environment_is_as_before_after_the_driver_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    before = dict(os.environ)

    with driver_environment(JAVA, is_local=True):
        inside = dict(os.environ)

    assert inside["PYSPARK_PYTHON"] == sys.executable
    assert inside["JAVA_HOME"] == "/opt/jdk"
    assert "SPARK_HOME" in inside
    assert dict(os.environ) == before


def test_python_of_a_cluster_is_not_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python/bin/python")

    with driver_environment(JAVA, is_local=False):
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python/bin/python"


def test_python_of_the_settings_wins_on_a_cluster_as_by_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python/bin/python")
    for is_local, expected in ((False, "./environment/bin/python"), (True, sys.executable)):
        with driver_environment(JAVA, is_local=is_local, worker_python="./environment/bin/python"):
            assert os.environ["PYSPARK_PYTHON"] == expected
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python/bin/python"


@pytest.mark.parametrize(
    "options",
    [
        {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0"},
        {"spark.jars": "/opt/delta-spark_4.2_2.13-4.4.0.jar,/opt/delta-storage-4.4.0.jar"},
        {"spark.driver.extraClassPath": "/opt/delta-spark_4.2_2.13-4.4.0.jar"},
    ],
)
def test_nothing_is_fetched_where_delta_is_configured(options: dict[str, str]) -> None:
    assert jars.brings_delta(options)


def test_given_jars_are_added_to_those_of_the_user() -> None:
    assert builder._jar_setting({"spark.jars": "/a/b.jar"}, [Path("/c d/e.jar")]) == {
        "spark.jars": "/a/b.jar,/c d/e.jar"
    }
    assert builder._jar_setting({}, []) == {}


def test_extensions_of_the_user_are_kept() -> None:
    extended = builder._add_delta_extension({"spark.sql.extensions": "org.example.Extension"})

    assert extended["spark.sql.extensions"] == f"org.example.Extension,{settings.DELTA_EXTENSION}"
