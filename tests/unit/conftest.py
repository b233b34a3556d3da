"""Settings of the tests that start no JVM."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is not a fault of the code; what is too slow is seen in the durations.
settings.register_profile("unit", deadline=None, max_examples=50)
settings.load_profile("unit")
