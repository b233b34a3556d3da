"""How many users a test needs: apart from the tests, because a config names it and scipy takes a moment to import."""

from __future__ import annotations

from typing import Final

LEAST_USERS: Final = 30
"""Users below which there is no p, unless another number is requested: the default of ``min_slice_size``."""
