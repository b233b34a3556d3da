"""Nights that many tests of the report look at, evaluated once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import report_tables

if TYPE_CHECKING:
    from rankeval_spark.report.tables import ReportTables


@pytest.fixture(scope="session")
def nights() -> ReportTables:
    """Give three nights of three models with slices, a baseline and gates; only to be read."""
    return report_tables.nights()
