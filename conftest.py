"""Names that examples in docstrings of measures use without an import."""

from __future__ import annotations

from typing import Any

import pytest

from rankeval_spark import measures


@pytest.fixture(autouse=True)
def _names_of_measures(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace |= {name: getattr(measures, name) for name in measures.__all__}
