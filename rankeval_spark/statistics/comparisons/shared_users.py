"""How many users two models share, and the comparisons that are withheld because they share too few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

FEW_COMMON_LISTS: Final = "few_common_lists"
"""Reason of a comparison that is withheld."""

LEAST_SHARE: Final = 10
"""One in this many users of the smaller model, at least, has lists of both."""


def are_too_few(n_both: np.ndarray, n_baseline: np.ndarray, n_model: np.ndarray) -> np.ndarray:
    """Return where fewer than one in ten users of the smaller model have lists of both.

    A user without a list counts 0 in most populations. Where two models serve different users, such as the arms of an
    experiment, the paired difference compares how many each one serves, not how well. A model without any list is
    compared: it fails its users.

    >>> are_too_few(np.array([9, 10, 0]), np.array([900, 900, 900]), np.array([100, 100, 0])).tolist()
    [True, False, False]
    """
    too_few: np.ndarray = LEAST_SHARE * n_both < np.minimum(n_baseline, n_model)
    return too_few


def why_withheld(row: Mapping[str, Any]) -> str:
    """Say why a row of ``comparisons`` is withheld, and which means can be compared; empty where it is not.

    >>> why_withheld({"reason": "few_common_lists", "n_with_both": 3, "n_with_baseline": 900, "n_with_model": 93})
    "withheld: 3 of the 93 users of the smaller model have lists of both, fewer than 1 in 10; compare the means of
    population='run', which are over each model's own users"
    """
    if row.get("reason") != FEW_COMMON_LISTS:
        return ""
    smaller = min(row["n_with_baseline"], row["n_with_model"])
    return (
        f"withheld: {row['n_with_both']:,} of the {smaller:,} users of the smaller model have lists of both, fewer "
        "than 1 in 10; compare the means of population='run', which are over each model's own users"
    )
