"""Settings of the tests that start no JVM."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine is not a fault of the code; what is too slow is seen in the durations.
settings.register_profile("unit", deadline=None, max_examples=50)
settings.load_profile("unit")


@pytest.fixture(scope="module", autouse=True)
def _no_session() -> Iterator[None]:
    """Hide the session that other tests of this process left active: commands would choose it."""
    with pytest.MonkeyPatch.context() as patched:
        if (sql := sys.modules.get("pyspark.sql")) is not None:
            patched.setattr(sql.SparkSession, "getActiveSession", lambda: None)
        yield
