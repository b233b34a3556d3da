"""Who enters the means: the population policy, applied to lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.engine.failures import refuse

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.measures.arrays import BoolVector, IntVector


IS_EVALUATED: Final = "_is_evaluated"
"""Whether a scored row belongs to the population; the others are only counted."""


class Members(NamedTuple):
    """What each list counts for; all of shape (n_lists,).

    Attributes
    ----------
    is_evaluated : bool
        Whether the user belongs to the population; the others are only counted.
    is_missing : bool
        Whether a judged user has no list.
    is_zero_relevant : bool
        Whether a judged user has no relevant judgement.
    is_extra : bool
        Whether the user has no judgement.
    has_both : bool
        Whether the user has judgements and a list.
    """

    is_evaluated: BoolVector
    is_missing: BoolVector
    is_zero_relevant: BoolVector
    is_extra: BoolVector
    has_both: BoolVector


def members_of(n_judged: IntVector, n_relevant: IntVector, n_recommended: IntVector, *, policies: Policies) -> Members:
    """Decide about each list.

    ``truth`` and ``judged`` take every user of the held-out table (they differ in what a user without a relevant
    judgement scores) unless ``missing`` leaves out those without a list; ``intersection`` and ``intersection_judged``
    take those who also got a list, ``run`` all who got one.
    """
    is_judged, has_list = n_judged > 0, n_recommended > 0
    has_both, is_missing = is_judged & has_list, is_judged & ~has_list
    is_zero_relevant = is_judged & (n_relevant == 0)
    belongs = {"intersection": has_both, "intersection_judged": has_both, "run": has_list}.get(
        policies.population, is_judged
    )
    if policies.missing == "exclude":
        belongs = belongs & has_list
    if policies.missing == "error" and np.any(is_missing):
        refuse("missing", "a judged user has no list")
    if policies.zero_relevant == "error" and np.any(belongs & is_zero_relevant):
        refuse("zero_relevant", "a user has no judgement with a gain of 1 or more")
    return Members(belongs, is_missing, is_zero_relevant, ~is_judged, has_both)
