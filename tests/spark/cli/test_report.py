"""``rankeval report`` of a root that only Spark can read."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from rankeval_spark import Results
from rankeval_spark.apps.published import report as app
from rankeval_spark.config import load_config
from rankeval_spark.results.readers import is_native
from tests.support import nights
from tests.support.nights import FIRST, SECOND
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_spark_reads_the_same_rows_and_the_same_sample(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = nights.workspace(tmp_path / "workspace", comparisons={"baseline": "pop"}, slicing__min_slice_size=1)
    root = Root(made.root, load_config(made.config))
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    other = shutil.copytree(made.root, tmp_path / "results [1]")
    assert not is_native(str(other))

    for most in (app.MAX_USERS, 2):
        monkeypatch.setattr(app, "MAX_USERS", most)
        native = app.report_tables(Results(made.root), day=FIRST)
        by_spark = app.report_tables(Results(spark, str(other)), day=FIRST)
        assert by_spark.user_share == native.user_share
        assert native.user_metrics.num_rows
        for name in ("metrics", "comparisons", "checks", "user_metrics"):
            found, expected = getattr(by_spark, name), getattr(native, name)
            assert found.column_names == expected.column_names
            assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())), name
    assert app.report_of(spark, str(other), day=FIRST).rstrip().endswith("</html>")
