"""Nights of this process: where a function takes a session, one that must not start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.spark.session import on_demand
from tests.support.nights import no_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def spark() -> SparkSession:
    """Give what stands for a session where none is needed."""
    return on_demand(no_session)
