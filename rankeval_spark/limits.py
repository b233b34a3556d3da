"""Sizes above which a job is refused by default."""

from __future__ import annotations

from typing import Final

MAX_ROWS_PER_USER: Final = 5_000_000
"""Rows of a user in all inputs together that a worker takes; it holds them all at once."""
