"""How much the lists of different users differ."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatVector
from rankeval_spark.measures.definition import Cutoff, Definition, OptionRule
from rankeval_spark.measures.kernel_inputs.exposure import Exposure, positive
from rankeval_spark.measures.options import Meaning, NotOffered

_JACCARD: Final = (
    "the Jaccard index takes every pair of lists, these follow from how often items are shown: take sim='cosine'"
)


@Definition(
    name="Personalization",
    formula="1 - mean over pairs of lists of |L_u@k and L_v@k| / k",
    undefined="fewer than two lists",
    source="Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma of recommender systems (as h); "
    "sim='cosine' as recmetrics",
    cutoff=Cutoff("required").but("optional", denom="min", sim="cosine"),
    rules=(
        OptionRule(
            "denom only with sim='overlap': a cosine has the root of the product of both lengths below",
            lambda options: options["denom"] != "k" and options["sim"] != "overlap",
        ),
    ),
    needs=lambda denom, sim, **_: (required_facts.LIST_LENGTHS,) if denom == "min" or sim == "cosine" else (),
)
def personalization(
    exposure: Exposure,
    *,
    denom: Annotated[
        Literal["k", "min"],
        Meaning(
            "What the items that two lists share are divided by: k; the length of the shorter one, at most k, so that "
            "short lists do not differ for being short."
        ),
    ] = "k",
    sim: Annotated[
        Literal["overlap", "cosine"],
        NotOffered("jaccard", _JACCARD),
        Meaning(
            "How alike two lists are: the items that they share, divided as `denom` says; the cosine of the two sets "
            "of items as vectors of 0 and 1, the items that they share divided by the root of the product of their "
            "lengths."
        ),
    ] = "overlap",
) -> FloatVector:
    """How much the lists of two users differ: 1 where no two share an item, 0 where all are the same.

    ``1 - mean over pairs {u, v} of |L_u@k and L_v@k| / k``, without a look at any pair: in [0, 1]; NaN below two lists.

    >>> from rankeval_spark.measures import Exposure, Shown
    >>> personalization(Exposure.of([Shown(("a b", "a c"))], k=2))
    array([0.5])
    """
    pairs = positive(exposure.n_lists * (exposure.n_lists - 1))
    if denom == "min" or sim == "cosine":
        alike = exposure.cosine if sim == "cosine" else exposure.shared
        return np.clip(1 - exposure.sum(alike) / pairs, 0, 1)  # sums of fractions: not -1e-17
    return 1 - exposure.sum(exposure.n_items * exposure.times * (exposure.times - 1)) / (pairs * exposure.k)
