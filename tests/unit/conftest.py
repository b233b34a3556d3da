"""Settings of the tests that start no JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.cli import without_session

# A busy machine is not a fault of the code; what is too slow is seen in the durations.
settings.register_profile("unit", deadline=None, max_examples=50)
settings.load_profile("unit")


@pytest.fixture(scope="module", autouse=True)
def _no_session() -> Iterator[None]:
    """Run commands in this process, whatever other tests left active."""
    with without_session():
        yield
