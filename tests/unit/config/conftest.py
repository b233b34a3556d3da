"""A valid config file to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
evaluation: nightly
inputs:
  recommendations: {format: delta, path: "logs/{date}", columns: {user_id: uid}}
  held_out: {format: csv, path: /data/held_out.csv, options: {sep: ";"}}
  segments: {format: parquet, table: main.users, columns: {gender: sex}}
measures: [nDCG, P@5, AP]
cutoffs: [5, 10, all]
slices: [age_band, [gender, age_band]]
results: {root: ../results}
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """Write the valid config."""
    path = tmp_path / "nightly.yaml"
    path.write_text(VALID, encoding="utf-8")
    return path
