"""Users that two models share, and the comparisons that are withheld because they share too few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

FEW_COMMON_LISTS: Final = "few_common_lists"  # reason of a comparison that is withheld

FEW_COMMON_JUDGED_LISTS: Final = "few_common_judged_lists"
"""Reason where judgements name their list, so that lists are counted, not users."""

LEAST_SHARE: Final = 10  # one in this many users, at least, has lists of both models


class Listed(NamedTuple):
    """Users, or lists that judgements name, with a list from the baseline, the model, and both: one shape."""

    n_baseline: np.ndarray
    n_model: np.ndarray
    n_both: np.ndarray


def are_too_few(everyone: Listed, evaluated: Listed) -> np.ndarray:
    """Return where two models serve different users, so that paired differences compare how many each one serves.

    Fewer than one in ten users of the smaller model have lists of both, judged or not. It is no matter if the users
    that are compared are shared: if one in ten of them with a list of the larger model have lists of both, such as a
    panel that both models serve. A model without any list is compared: it fails its users.

    >>> everyone = Listed(np.array([900, 900, 900, 5000]), np.array([100, 100, 0, 5000]), np.array([9, 10, 0, 80]))
    >>> evaluated = Listed(np.array([900, 900, 900, 80]), np.array([100, 100, 0, 80]), np.array([9, 10, 0, 80]))
    >>> are_too_few(everyone, evaluated).tolist()
    [True, False, False, False]
    """
    too_few: np.ndarray = LEAST_SHARE * everyone.n_both < np.minimum(everyone.n_baseline, everyone.n_model)
    larger = np.maximum(evaluated.n_baseline, evaluated.n_model)
    too_few &= ~((evaluated.n_both > 0) & (LEAST_SHARE * evaluated.n_both >= larger))
    return too_few


def why_withheld(row: Mapping[str, Any]) -> str:
    """Return why a row of ``comparisons`` is withheld, and which means can be compared; empty where it is not.

    >>> why_withheld({"reason": "few_common_lists", "n_with_both": 3, "n_with_baseline": 900, "n_with_model": 93})
    "withheld: 3 of the 93 users of the smaller model have lists of both, fewer than 1 in 10; compare the means of
    population='run', which are over each model's own users"
    """
    if row.get("reason") == FEW_COMMON_JUDGED_LISTS:
        return (
            "withheld: fewer than 1 in 10 of the judged lists of the smaller model are answered by both; compare the "
            "means of population='run', which are over each model's own lists"
        )
    if row.get("reason") != FEW_COMMON_LISTS:
        return ""
    smaller = min(row["n_with_baseline"], row["n_with_model"])
    return (
        f"withheld: {row['n_with_both']:,} of the {smaller:,} users of the smaller model have lists of both, fewer "
        "than 1 in 10; compare the means of population='run', which are over each model's own users"
    )
