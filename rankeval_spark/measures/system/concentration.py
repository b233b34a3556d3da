"""How evenly the places of the lists are spread over the items."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures.arrays import FloatVector
from rankeval_spark.measures.definition import Definition
from rankeval_spark.measures.kernel_inputs.exposure import Exposure, positive
from rankeval_spark.measures.options import Meaning

_NOTHING_SHOWN: Final = "no list holds an item"


@Definition(
    name="Entropy",
    formula="-sum_i p_i log2 p_i; p_i the share of item i in all places of the lists",
    bounds=(0, np.inf),
    undefined=f"{_NOTHING_SHOWN}, or with norm=True the catalogue has fewer than two items",
    source="Elliot ShannonEntropy, LensKit; Shannon (1948), A mathematical theory of communication",
    aliases={"DistributionalCoverage": {}, "ShannonEntropy": {}},
    needs_catalogue=lambda norm, **_: bool(norm),
)
def entropy(
    exposure: Exposure,
    *,
    base: Annotated[Literal["2", "e"], Meaning("Base of the logarithm: bits or nats.")] = "2",
    norm: Annotated[
        bool, Meaning("Whether to divide by log |T|, T being the catalogue; items outside of it are then left out.")
    ] = False,
) -> FloatVector:
    """Entropy of what the lists show: how evenly the places are spread over the items.

    ``-sum_i p_i log p_i``: 0 where one item takes every place, log |T| (with ``norm`` 1) where each item of the
    catalogue has as many; NaN where no list holds an item and, with ``norm``, where the catalogue has fewer than two.

    >>> from rankeval_spark.measures import Exposure, Shown
    >>> entropy(Exposure.of([Shown(("a b", "a c"))]))
    array([1.5])
    """
    log = np.log2 if base == "2" else np.log
    places = (exposure.n_catalogued if norm else exposure.n_items) * exposure.times
    n_places = positive(exposure.sum(places))
    value = np.maximum(log(n_places) - exposure.sum(places * log(exposure.times)) / n_places, 0.0)  # not -1e-17
    return value / positive(log(positive(exposure.catalogue_size))) if norm else value


@Definition(
    name="Gini",
    formula="sum_{j=1..n} (2j - n - 1) x_(j) / ((n - 1) sum x); x_(1) <= ... <= x_(n) lists that hold an item of the "
    "catalogue, n = |T|",
    undefined="no list holds an item that counts, or with norm='n-1' there is only one",
    source="Elliot GiniIndex (which is 1 - Gini); Castells, Hurley & Vargas (2015), Novelty and diversity in "
    "recommender systems",
    needs_catalogue=lambda items, **_: items == "catalogue",
    better="lower",
)
def gini(
    exposure: Exposure,
    *,
    items: Annotated[
        Literal["catalogue", "recommended"],
        Meaning("Items that count: those of the catalogue, shown or not; those that some list shows."),
    ] = "catalogue",
    norm: Annotated[
        Literal["n-1", "n"],
        Meaning("What the sum is divided by: n - 1, with which one item that takes all places gives 1; n."),
    ] = "n-1",
) -> FloatVector:
    """Concentration of what the lists show: 0 where every item is in as many, 1 where one takes all.

    ``sum_{j=1..n} (2j - n - 1) x_(j) / ((n - 1) sum x)``, x ascending: in [0, 1]; NaN where no list holds an item that
    counts and, with ``norm='n-1'``, where there is only one.

    >>> from rankeval_spark.measures import Exposure, Shown
    >>> gini(Exposure.of([Shown(("a b", "a c"), catalogue="a b c d e")]))
    array([0.625])
    """
    counted = exposure.n_catalogued if items == "catalogue" else exposure.n_items
    n = exposure.catalogue_size if items == "catalogue" else exposure.n_distinct
    never_shown = n - exposure.sum(counted)
    # c items of equal x that come after a others add c (2a + c - n) x.
    before = never_shown[exposure.group] + exposure.running_sum(counted) - counted
    weight = counted * (2 * before + counted - n[exposure.group])
    n_places = exposure.sum(counted * exposure.times)
    return exposure.sum(weight * exposure.times) / positive((n - 1 if norm == "n-1" else n) * n_places)
