"""A results root on a session of Spark Connect, which has no JVM at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from rankeval_spark.errors import ConfigError
from rankeval_spark.results.file_store import LocalStorage, open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTED = cast("SparkSession", object())


def test_a_folder_needs_no_jvm(tmp_path: Path) -> None:
    assert isinstance(open_storage(CONNECTED, str(tmp_path)), LocalStorage)


def test_another_store_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"through Spark Connect.*; expected a folder .* or run on the cluster"):
        open_storage(CONNECTED, "abfss://results@account.example/root")
