"""A valid config file to start from, and the faults of what is changed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rankeval_spark.errors import Fault

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


@pytest.fixture
def refused(config_file: Path) -> Callable[..., tuple[Fault, ...]]:
    """Load the config with overrides that must be refused, and return all faults."""

    def faults(*overrides: str) -> tuple[Fault, ...]:
        with pytest.raises(ConfigError) as raised:
            load_config(config_file, overrides)
        return raised.value.faults

    return faults
