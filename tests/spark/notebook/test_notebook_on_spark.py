"""The notebook on Spark runs from top to bottom, and its stored output is what it shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.notebooks import NOTEBOOKS, code_cells, run, texts

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_the_notebook_shows_what_is_stored(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the session of the tests, which the notebook would make for itself."""
    monkeypatch.setattr("rankeval_spark.build_session", lambda *_, **__: spark)
    notebook = json.loads(NOTEBOOKS["on-spark"].read_text(encoding="utf-8"))
    found = run(notebook, tmp_path)
    assert [texts(outputs) for outputs in found] == [texts(cell["outputs"]) for cell in code_cells(notebook)]
