"""Jars that do not fit the Spark that runs are named, with what to remove, and no input is blamed for them."""

from __future__ import annotations

import pytest

from rankeval_spark.apps import error_translation
from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.jar_faults import DELTA, S3A, STORAGE, describe_linkage_error, jar_faults

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
OWN = "delta-spark_4.2_2.13-4.4.0.jar"
OWN_STORAGE = "delta-storage-4.4.0.jar"


def faults(deltas: list[str], storages: list[str] | None = None, s3a: list[str] | None = None) -> list[str]:
    jars = {DELTA: deltas, STORAGE: [OWN_STORAGE] if storages is None else storages, S3A: s3a or []}
    return [str(fault) for fault in jar_faults(jars, spark="4.2", hadoop="3.5.0", package=PACKAGE)]


@pytest.mark.parametrize(
    "deltas",
    [[OWN], [OWN, OWN], [f"io.delta_{OWN}", OWN], ["vendor-lakehouse.jar"], ["delta-spark_2.13-4.4.0.jar"], []],
)
def test_one_delta_of_this_spark_is_no_fault(deltas: list[str]) -> None:
    assert faults(deltas) == []


def test_several_jars_of_delta_are_named_with_those_to_remove() -> None:
    (fault,) = faults(["delta-spark_4.2_2.13-4.3.0.jar", OWN])

    assert fault.startswith(
        f"Delta jars: found 2 on the class path: delta-spark_4.2_2.13-4.3.0.jar, {OWN}; expected {OWN}"
    )
    assert "; remove delta-spark_4.2_2.13-4.3.0.jar: look at --jars, --packages, " in fault


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("delta-spark_4.0_2.13-4.4.0.jar", "Spark 4.0 and Scala 2.13"),
        ("delta-spark_4.2_2.12-4.4.0.jar", "Spark 4.2 and Scala 2.12"),
        ("delta-spark_2.13-3.3.2.jar", "Spark 3 and Scala 2.13"),
        ("delta-core_2.12-2.4.0.jar", "Spark 3 and Scala 2.12"),
    ],
)
def test_a_delta_of_another_spark_or_scala_is_named(name: str, of: str) -> None:
    told = faults([name], ["some-storage.jar"])

    assert told == [
        f"Delta jar: found {name}, which is built for {of}; expected {OWN}, for Spark 4.2; "
        f"replace it, as by --packages {PACKAGE}"
    ]


@pytest.mark.parametrize(
    ("storages", "found"),
    [
        ([], "no delta-storage jar"),
        (["delta-storage-4.0.0.jar"], "delta-storage-4.0.0.jar"),
        ([OWN_STORAGE, "delta-storage-3.2.0.jar"], f"delta-storage-3.2.0.jar, {OWN_STORAGE}"),
    ],
)
def test_the_storage_of_delta_is_of_its_version(storages: list[str], found: str) -> None:
    (fault,) = faults([OWN], storages)

    assert fault.startswith(
        f"Delta storage jar: found {found} next to {OWN}; expected one delta-storage jar of 4.4.0; "
    )


def test_hadoop_aws_of_another_hadoop_is_named() -> None:
    (fault,) = faults([OWN], s3a=["org.apache.hadoop_hadoop-aws-3.3.4.jar"])

    assert fault.startswith("hadoop-aws: found hadoop-aws-3.3.4.jar with Hadoop 3.5.0; expected one version of both; ")
    assert faults([OWN], s3a=["hadoop-aws-3.5.0.jar"]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("o.load.\n: java.lang.NoSuchMethodError: 'void x.Y.z()'\n\tat q", "NoSuchMethodError: 'void x.Y.z()'"),
        (
            "java.util.ServiceConfigurationError: o.a.X: Provider y could not be instantiated\n",
            "ServiceConfigurationError: X: Provider y could not be",
        ),
        ("Caused by: java.lang.ClassNotFoundException: io.delta.storage.LogStore", "ClassNotFoundException: LogStore"),
        ("java.lang.UnsupportedClassVersionError: X has been compiled by", "UnsupportedClassVersionError: X has"),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure",
            "Failed to find the data source: d",
        ),
        ("Multiple sources found for parquet (a.B, c.D), please specify", "Multiple sources found for parquet (a.B"),
    ],
)
def test_errors_of_jars_end_as_a_fault_of_the_environment(text: str, said: str) -> None:
    error = error_translation.translate_error(RuntimeError(text), {})

    assert isinstance(error, EnvironmentFaultError)
    assert error.exit_code == 8
    assert f"jars of Spark: found {said}" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        "[PATH_NOT_FOUND] Path does not exist: file:/delta/data",
        "[FAILED_READ_FILE] java.lang.RuntimeException: x is not a Parquet file",
    ],
)
def test_errors_of_inputs_are_none_of_jars(text: str) -> None:
    assert describe_linkage_error(text) == ""
