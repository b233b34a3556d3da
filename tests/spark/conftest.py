"""The session of the tests is active where a published night is given: commands run on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


@pytest.fixture
def published(published: Workspace, spark: SparkSession) -> Workspace:  # noqa: ARG001 - is active
    """Give the published workspace, only to be read, next to an active session."""
    return published
