"""The stores of results roots: disks, object stores, and what only Spark reaches through Hadoop's file systems."""

from __future__ import annotations

import errno
import os
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias

from rankeval_spark.allowed_folders import FILE_SYSTEMS, scheme_of
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results.file_store import LocalStorage, Storage, inside, normalise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JavaObject: TypeAlias = Any  # an object of the JVM: py4j has no types


class HadoopStorage(Storage):
    """A folder of a store that Spark reaches through a Hadoop ``FileSystem``."""

    def __init__(self, spark: SparkSession, root: str, *, has_locks: bool) -> None:
        self.root = root
        self.has_locks = has_locks
        self._jvm: JavaObject = spark._jvm
        configuration: JavaObject = spark._jsparkSession.sessionState().newHadoopConf()
        self._system: JavaObject = self._path("").getFileSystem(configuration)

    def _path(self, path: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(inside(self.root, path))

    def names(self, path: str) -> list[str]:
        target = self._path(path)
        if not self._system.exists(target):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(target))

    def read(self, path: str) -> bytes:
        stream = self._system.open(self._known(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def create(self, path: str, content: bytes) -> bool:
        try:
            self._write(path, content, overwrite=False)
        except Exception:
            if self._system.exists(self._path(path)):  # each store has its own exception for this
                return False
            raise
        return True

    def put(self, path: str, content: bytes) -> None:
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{uuid.uuid4().hex}"
        self._write(draft, content, overwrite=False)
        if not self._system.rename(self._path(draft), self._path(path)):
            self.remove(draft)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{self.root}/{path}")

    def age(self, path: str) -> float:
        modified_ms = self._system.getFileStatus(self._known(path)).getModificationTime()
        return max(0.0, time.time() - float(modified_ms) / 1000)

    def size(self, path: str) -> int:
        return int(self._system.getFileStatus(self._known(path)).getLen())

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def _known(self, path: str) -> JavaObject:
        """Return the path of a file; FileNotFoundError if it does not exist."""
        target = self._path(path)
        if not self._system.exists(target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.root}/{path}")
        return target

    def _write(self, path: str, content: bytes, *, overwrite: bool) -> None:
        stream = self._system.create(self._path(path), overwrite)
        try:
            stream.write(content)
        finally:
            stream.close()


def open_storage(spark: SparkSession | None, root: str, *, one_run_per_root: bool = False) -> Storage:
    """Open the store of ``root`` to write to it; ConfigError without locks, unless one run at a time is promised."""
    location = normalise(root)
    if storage := open_native(location):
        storage.prove_locks(one_run_per_root=one_run_per_root)
        return storage
    if spark is None or getattr(spark, "_jvm", None) is None:
        found = f"{root!r}, through Spark Connect, which has no call for locks in that store"
        expected = "a folder that this process and the server both have, such as a mounted one"
        raise ConfigError(Fault("results root", found, expected, "or run on the cluster, by spark-submit"))
    return HadoopStorage(spark, location, has_locks=True)


def open_native(location: str) -> LocalStorage | None:
    """Return the store of a root that this process reaches itself; None if only Spark does."""
    scheme = scheme_of(location)
    if not scheme:
        return LocalStorage(location)
    if not FILE_SYSTEMS[scheme].is_object_store:
        return None
    from rankeval_spark.results.object_storage import open_objects  # noqa: PLC0415 - needs the extra `stores`

    return open_objects(location)


def reachable_storage(spark: SparkSession | None, location: str) -> Storage | None:
    """Return the store of a root to read from it; None if its files are out of reach, as through Spark Connect."""
    if (storage := open_native(location)) is not None:
        return storage
    if spark is None or getattr(spark, "_jvm", None) is None:
        return None
    return HadoopStorage(spark, location, has_locks=False)
