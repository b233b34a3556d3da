"""The notebooks of ``docs/notebooks`` run from top to bottom, and their stored output is what they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.notebooks import NOTEBOOKS, code_cells, run, texts

if TYPE_CHECKING:
    from pathlib import Path

ON_SPARK = "on-spark"
MOST_BYTES = 300_000


def stored(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    return notebook


@pytest.mark.parametrize("name", sorted(NOTEBOOKS.keys() - {ON_SPARK}))
def test_a_notebook_shows_what_is_stored(name: str, tmp_path: Path) -> None:
    if name == "real-library":
        pytest.importorskip("implicit")  # not on every machine
    notebook = stored(name)
    found = run(notebook, tmp_path)
    assert [texts(outputs) for outputs in found] == [texts(cell["outputs"]) for cell in code_cells(notebook)]
    assert any("image/svg+xml" in output.get("data", {}) for outputs in found for output in outputs)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_short_and_small(name: str) -> None:
    assert 10 <= len(stored(name)["cells"]) <= 24
    assert NOTEBOOKS[name].stat().st_size < MOST_BYTES
    assert "/tmp" not in NOTEBOOKS[name].read_text(encoding="utf-8")
