"""Results roots to test with: made once, copied for each test, for a Delta table may be moved as a folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.results import ResultsStore
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def originals() -> dict[str, Path]:
    """Roots that were already made in this test session."""
    return {}


@pytest.fixture
def copied(
    originals: dict[str, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Callable[[str], object]], str]:
    """Give a copy of a root, which the first test that asks for it has to make."""

    def copy(name: str, make: Callable[[str], object]) -> str:
        if name not in originals:
            original = tmp_path_factory.mktemp(name) / "results"
            make(str(original))
            originals[name] = original
        return str(shutil.copytree(originals[name], tmp_path / "results"))

    return copy


@pytest.fixture
def empty_root(copied: Callable[[str, Callable[[str], object]], str]) -> str:
    """Give a root with its tables, in which nothing was published."""
    return copied("empty", ResultsStore.open)


@pytest.fixture
def root(copied: Callable[[str, Callable[[str], object]], str]) -> str:
    """Give a root in which the first night was published by run ``first``."""
    return copied("published", lambda new: nights.publish(new, nights.facts("first")))
