"""Jars that do not fit the running Spark: several versions of Delta, or one for another Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rankeval_spark.errors import Fault, first_line

DELTA: Final = "Delta"
STORAGE: Final = "storage of Delta"
S3A: Final = "S3A"
# A file that every jar of a kind has.
MARKS: Final[Mapping[str, str]] = {
    DELTA: "io/delta/sql/DeltaSparkSessionExtension.class",
    STORAGE: "io/delta/storage/LogStore.class",
    S3A: "org/apache/hadoop/fs/s3a/S3AFileSystem.class",
}

_DELTA_JAR: Final = re.compile(r"delta-(?:spark|core)_(?:(\d+\.\d+)_)?(\d+\.\d+)-(\d+(?:\.\w+)*)\.jar")
_STORAGE_JAR: Final = re.compile(r"delta-storage-(\d+(?:\.\w+)*)\.jar")
_S3A_JAR: Final = re.compile(r"hadoop-aws-(\d+(?:\.\d+)*)\.jar")
_FIRST_OF_SPARK_4: Final = 4  # the major version of Delta
_REMEDY: Final = "look at --jars, --packages, spark.jars, spark.jars.packages and the folder jars of SPARK_HOME"

_LINKAGE: Final = re.compile(
    r"(?:java\.lang\.(?:NoSuchMethod|NoSuchField|NoClassDefFound|IncompatibleClassChange|AbstractMethod|IllegalAccess|"
    r"UnsupportedClassVersion|Verify|BootstrapMethod|ExceptionInInitializer)Error|java\.util\.ServiceConfigurationError|"
    r"Multiple sources found for|Detected an incompatible DataSourceRegister|"
    r"java\.lang\.ClassNotFoundException: (?:io\.delta|org\.apache\.spark\.sql\.delta))[^\n]*"
)
_NO_DELTA: Final = re.compile(r"Failed to find (?:the )?data source: delta\b")


def describe_linkage_error(text: str) -> str:
    """Return what an error of Java or Spark says of jars that do not fit together; empty for any other error."""
    found = _LINKAGE.search(text) or _NO_DELTA.search(text)
    return first_line(found[0]) if found else ""


def jar_faults(jars: Mapping[str, Sequence[str]], *, spark: str, hadoop: str, package: str) -> list[Fault]:
    """Find jars of the driver, by kind, that do not fit a line of ``spark``, such as 4.2, and a version of Hadoop."""
    faults, deltas = list[Fault](), _plain_names(jars.get(DELTA, ()))
    expected_jar = f"{package.partition(':')[2].replace(':', '-')}.jar"
    if len(deltas) > 1:
        found = f"{len(deltas)} on the class path: {', '.join(deltas)}"
        fix = f"remove {' and '.join(name for name in deltas if name != expected_jar)}: {_REMEDY}"
        faults.append(Fault("Delta jars", found, f"{expected_jar} alone, for Spark {spark}", fix))
    else:
        faults += [fault for name in deltas for fault in _find_wrong_build(name, spark, expected_jar, package)]
    storages = _plain_names(jars.get(STORAGE, ()))
    versions = {match[3] for name in deltas if (match := _DELTA_JAR.fullmatch(name))}
    known = {match[1] for name in storages if (match := _STORAGE_JAR.fullmatch(name))}
    if deltas and (not storages or len(storages) > 1 or (versions and known and known.isdisjoint(versions))):
        found = f"{', '.join(storages) or 'no delta-storage jar'} next to {', '.join(deltas)}"
        wanted = f"one delta-storage jar of {' or '.join(sorted(versions)) or 'its version'}"
        faults.append(Fault("Delta storage jar", found, wanted, _REMEDY))
    for name in _plain_names(jars.get(S3A, ())):
        version = _S3A_JAR.fullmatch(name)
        if version and hadoop and version[1] != hadoop:
            fix = f"take hadoop-aws-{hadoop}.jar, and the SDK of AWS that it was built with"
            faults.append(Fault("hadoop-aws", f"{name} with Hadoop {hadoop}", "one version of both", fix))
    return faults


def _find_wrong_build(name: str, spark: str, expected_jar: str, package: str) -> list[Fault]:
    """Find a Delta jar that is built for another Spark; a name that says nothing of it is no fault."""
    built = _DELTA_JAR.fullmatch(name)
    if built is None:
        return []
    line, scala, version = built.groups()
    is_old = line is None and int(version.partition(".")[0]) < _FIRST_OF_SPARK_4
    if is_old or scala != "2.13" or (line is not None and line != spark):
        of_spark = f"Spark {line}" if line else "Spark 3" if is_old else "another Spark"
        found = f"{name}, which is built for {of_spark} and Scala {scala}"
        return [
            Fault("Delta jar", found, f"{expected_jar}, for Spark {spark}", f"replace it, as by --packages {package}")
        ]
    return []


def _plain_names(files: Sequence[str]) -> list[str]:
    """Return the names of jars, each once; a resolver puts the group before them."""
    return sorted({name.removeprefix("io.delta_").removeprefix("org.apache.hadoop_") for name in files})
