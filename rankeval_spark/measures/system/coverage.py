"""How much of the catalogue is shown, and to how many users."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector
from rankeval_spark.measures.definition import Aggregation, Definition, Restrictions
from rankeval_spark.measures.kernel_inputs.exposure import Exposure, positive
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Above, Meaning


@Definition(
    name="ItemCoverage",
    formula="|union of L_u@k|",
    bounds=(0, np.inf),
    undefined="never",
    source="Elliot ItemCoverage; Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy",
)
def item_coverage(exposure: Exposure) -> FloatVector:
    """Items that at least one of the lists shows.

    ``|union of L_u@k|``, over the users with a list, judged or not: a count; 0 without a list. Never undefined.

    >>> from rankeval_spark.measures import Exposure, Shown
    >>> item_coverage(Exposure.of([Shown(("a b", "a c"))]))
    array([3.])
    """
    return exposure.n_distinct


@Definition(
    name="CatalogCoverage",
    formula="|union of L_u@k, in T| / |T|",
    undefined="the catalogue, or train, is empty",
    source="Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy: evaluating recommender systems by coverage and "
    "serendipity",
    needs=lambda items, **_: (required_facts.TRAINED_ITEMS,) if items == "train" else (),
    needs_catalogue=lambda items, **_: items == "catalogue",
)
def catalogue_coverage(
    exposure: Exposure,
    *,
    items: Annotated[  # noqa: ARG001 - the exposure is that of these items
        Literal["catalogue", "train"],
        Meaning(
            "Items that could be shown, T: the input `items` or, without it, the distinct items of `train`; those of "
            "`train` in any case, as Evidently and Microsoft recommenders count."
        ),
    ] = "catalogue",
) -> FloatVector:
    """Share of the catalogue that at least one of the lists shows.

    ``|union of L_u@k, in T| / |T|``, items outside of T counting on neither side: in [0, 1]; NaN where the catalogue is
    empty.

    >>> from rankeval_spark.measures import Exposure, Shown
    >>> catalogue_coverage(Exposure.of([Shown(("a b", "a z"), catalogue="a b c d")]))
    array([0.5])
    """
    return exposure.sum(exposure.n_catalogued) / positive(exposure.catalogue_size)


@Definition(
    name="UserCoverage",
    formula="1[m >= min_items]",
    undefined="never",
    source="RecTools CoveredUsers, Elliot UserCoverage (a count)",
    aliases={"CoveredUsers": {}},
    aggregation=Aggregation(interval="wilson"),
    restrictions=Restrictions(group=False),
)
def user_coverage(
    cut: CutLists, *, min_items: Annotated[float, Above(0), Meaning("Least number of items.")] = 1
) -> FloatMatrix:
    """Whether the user got a list, of at least so many items; the mean is the share of users served.

    ``1[m >= min_items]``, m being the number of items at ranks 1..k: 0 or 1. Never undefined.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> user_coverage(Lists.of([Ranking([None, 1]), Ranking([], missed=[1])]).cut([1]))
    array([[1.],
           [0.]])
    """
    return (cut.n_items >= min_items).astype(np.float64)
