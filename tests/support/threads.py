"""The number of threads of Arrow, which ``evaluate`` in this process works with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Work with this many threads within the block."""
    before = pa.cpu_count()
    pa.set_cpu_count(number)
    try:
        yield
    finally:
        pa.set_cpu_count(before)
