"""How many users the model serves at all."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.golden import Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above
from rankeval_spark.measures.registry import Definition


@Definition(
    name="UserCoverage",
    takes_group=False,
    formula="1[m >= min_items]",
    bounds=(0, 1),
    undefined="never",
    interval="wilson",
    source="RecTools CoveredUsers, Elliot UserCoverage (a count)",
    aliases={"CoveredUsers": {}},
    goldens=(
        Golden("UserCoverage@2", (Ranking([None, 1]), Ranking([], missed=[1])), ("1", "0"), mean="1/2"),
        Golden("UserCoverage(min_items=3)", (Ranking([None, 1]), Ranking([None, None, 1])), ("0", "1"), mean="1/2"),
        Golden("UserCoverage(min_items=3)@2", (Ranking([None, None, 1]),), ("0",), note="at ranks 1 to 2"),
    ),
)
def user_coverage(cut: CutLists, *, min_items: Annotated[float, Above(0)] = 1) -> FloatMatrix:
    """Whether the user got a list, of at least so many items; the mean is the share of users served.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    min_items : float
        Least number of items.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        0 or 1. Never undefined: under the populations ``truth`` and ``judged`` the mean is over every user of the
        held-out table; under ``run`` and ``intersection``, which are the users with a list, it says little.

    Notes
    -----
    ``1[m >= min_items]``, m being the number of items at ranks 1..k.

    Examples
    --------
    A list of two items, and none:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> user_coverage(Lists.of([Ranking([None, 1]), Ranking([], missed=[1])]).cut([1]))
    array([[1.],
           [0.]])
    """
    return (cut.n_items >= min_items).astype(np.float64)
