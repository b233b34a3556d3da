"""Default limits that several layers share."""

from __future__ import annotations

from typing import Final

MAX_ROWS_PER_USER: Final = 5_000_000
"""Rows of one user in all inputs together above which a run fails."""

LEAST_USERS: Final = 30
"""Users below which a comparison has no p-value: the default of ``min_slice_size``."""

ROUNDING: Final = 1e-12
"""Error of the mean of many values, relative to their size, that decides no verdict and is no difference."""

LEAST_NIGHTS: Final = 7
"""Earlier nights below which there is no band of expected means."""
