"""Measures of all lists together: how many items are shown, how evenly, and how much the lists differ."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatVector  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.exposure import Exposure, Shown, positive
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.options import NotOffered
from rankeval_spark.measures.registry import Cutoff, Definition, Rule

_NEVER = "never"
_NOTHING_SHOWN = "no list holds an item"
_TWO_LISTS = Shown(("a b", "a c"))
_OF_FIVE = Shown(("a b", "a c"), catalogue="a b c d e")
_NOTHING = Shown(("", ""), catalogue="a b")
_JACCARD = "the Jaccard index takes every pair of lists, these follow from how often items are shown: take sim='cosine'"


@Definition(
    name="ItemCoverage",
    kind="exposure",
    interval="jackknife",
    formula="|union of L_u@k|",
    bounds=(0, np.inf),
    undefined=_NEVER,
    source="Elliot ItemCoverage; Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy",
    goldens=(
        Golden("ItemCoverage@2", (), ("3", "2"), shown=(_TWO_LISTS, Shown(("a b c d", "b a c")))),
        Golden("ItemCoverage", (), ("4", "0"), shown=(Shown(("a b c d", "b a c")), _NOTHING), note="whole lists"),
    ),
)
def item_coverage(exposure: Exposure) -> FloatVector:
    """Items that at least one of the lists shows.

    Parameters
    ----------
    exposure : Exposure
        The groups of lists.

    Returns
    -------
    float64, shape (n_groups,)
        A count; 0 without a list. Never undefined.

    Notes
    -----
    ``|union of L_u@k|``, over the users with a list, judged or not; items outside of the catalogue count too. It grows
    with the number of users, so that slices of different sizes do not compare.

    Examples
    --------
    >>> item_coverage(Exposure.of([Shown(("a b", "a c"))]))
    array([3.])
    """
    return exposure.n_distinct


@Definition(
    name="CatalogCoverage",
    kind="exposure",
    interval="jackknife",
    formula="|union of L_u@k, in T| / |T|",
    bounds=(0, 1),
    undefined="the catalogue, or train, is empty",
    source="Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy: evaluating recommender systems by coverage and "
    "serendipity",
    goldens=(
        Golden("CatalogCoverage@2", (), ("3/5", "1/2"), shown=(_OF_FIVE, Shown(("a z", "a"), "a b"))),
        Golden("CatalogCoverage", (), ("0", UNDEFINED), shown=(_NOTHING, Shown(("a",), ""))),
        Golden(
            "CatalogCoverage(items='train')@2",
            (),
            ("2/4",),
            shown=(Shown(("a b", "a z"), "a b c d"),),
            note="of the 4 items in train; z is not among them",
        ),
    ),
    needs_catalogue=lambda items, **_: items == "catalogue",
    needs_with=lambda *, items, **_: (needs.TRAINED_ITEMS,) if items == "train" else (),
)
def catalogue_coverage(
    exposure: Exposure,
    *,
    items: Literal["catalogue", "train"] = "catalogue",  # noqa: ARG001 - the exposure is that of these items
) -> FloatVector:
    """Share of the catalogue that at least one of the lists shows.

    Parameters
    ----------
    exposure : Exposure
        The groups of lists, with the items of ``items`` for a catalogue.
    items : {"catalogue", "train"}
        Items that could be shown, T: the input `items` or, without it, the distinct items of `train`; those of `train`
        in any case, as Evidently and Microsoft recommenders count.

    Returns
    -------
    float64, shape (n_groups,)
        In [0, 1]; NaN where the catalogue is empty.

    Notes
    -----
    ``|union of L_u@k, in T| / |T|``: items outside of T count on neither side. New items, which only `items` has, make
    the share smaller; with ``items='train'`` those that are shown do not count.

    Examples
    --------
    >>> catalogue_coverage(Exposure.of([Shown(("a b", "a z"), catalogue="a b c d")]))
    array([0.5])
    """
    return exposure.sum(exposure.n_catalogued) / positive(exposure.catalogue_size)


@Definition(
    name="Entropy",
    kind="exposure",
    interval="jackknife",
    formula="-sum_i p_i log2 p_i; p_i the share of item i in all places of the lists",
    bounds=(0, np.inf),
    undefined=f"{_NOTHING_SHOWN}, or with norm=True the catalogue has fewer than two items",
    source="Elliot ShannonEntropy, LensKit; Shannon (1948), A mathematical theory of communication",
    aliases={"DistributionalCoverage": {}, "ShannonEntropy": {}},
    goldens=(
        Golden("Entropy@2", (), ("2/4 * 1 + 2 * (1/4 * 2)",), shown=(_TWO_LISTS,), note="a half, two quarters"),
        Golden("Entropy(base='e')@1", (), ("0", "ln(2)"), shown=(_TWO_LISTS, Shown(("a", "b")))),
        Golden("Entropy(norm=True)@2", (), ("3/2 / log2(5)", UNDEFINED), shown=(_OF_FIVE, Shown(("a",), "a"))),
        Golden("Entropy(norm=True)", (), ("1",), shown=(Shown(("a z", "b"), "a b"),), note="z is not in the catalogue"),
        Golden("Entropy", (), (UNDEFINED,), shown=(_NOTHING,), note="no item in any list"),
    ),
    needs_catalogue=lambda norm, **_: bool(norm),
)
def entropy(exposure: Exposure, *, base: Literal["2", "e"] = "2", norm: bool = False) -> FloatVector:
    """Entropy of what the lists show: how evenly the places are spread over the items.

    Parameters
    ----------
    exposure : Exposure
        The groups of lists.
    base : {"2", "e"}
        Base of the logarithm: bits or nats.
    norm : bool
        Whether to divide by log |T|, T being the catalogue; items outside of it are then left out.

    Returns
    -------
    float64, shape (n_groups,)
        0 where one item takes every place, log |T| (with ``norm`` 1) where each item of the catalogue has as many; NaN
        where no list holds an item and, with ``norm``, where the catalogue has fewer than two.

    Notes
    -----
    ``-sum_i p_i log p_i``, computed as ``log S - (1/S) sum_i x_i log x_i`` with x_i lists that hold item i and S their
    sum. RecBole takes nats and divides by the number of distinct items, which is no entropy.

    Examples
    --------
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
    kind="exposure",
    interval="jackknife",
    formula="sum_{j=1..n} (2j - n - 1) x_(j) / ((n - 1) sum x); x_(1) <= ... <= x_(n) lists that hold an item of the "
    "catalogue, n = |T|",
    bounds=(0, 1),
    undefined="no list holds an item that counts, or with norm='n-1' there is only one",
    source="Elliot GiniIndex (which is 1 - Gini); Castells, Hurley & Vargas (2015), Novelty and diversity in "
    "recommender systems",
    goldens=(
        Golden("Gini@2", (), ("(0 * 1 + 2 * 1 + 4 * 2) / (4 * 4)", "1"), shown=(_OF_FIVE, Shown(("a z",), "a b"))),
        Golden("Gini(norm='n')@2", (), ("(0 * 1 + 2 * 1 + 4 * 2) / (5 * 4)",), shown=(_OF_FIVE,)),
        Golden(
            "Gini(items='recommended')@2",
            (),
            ("(2 * 2 + 0 * 1 - 2 * 1) / (2 * 4)", "0"),
            shown=(_OF_FIVE, Shown(("a b", "b a"))),
            note="items that are never recommended hide",
        ),
        Golden("Gini(items='recommended',norm='n')", (), ("0", UNDEFINED), shown=(Shown(("a", "a")), _NOTHING)),
        Golden("Gini(items='recommended')", (), (UNDEFINED, UNDEFINED), shown=(_NOTHING, Shown(("a", "a")))),
    ),
    needs_catalogue=lambda items, **_: items == "catalogue",
)
def gini(
    exposure: Exposure,
    *,
    items: Literal["catalogue", "recommended"] = "catalogue",
    norm: Literal["n-1", "n"] = "n-1",
) -> FloatVector:
    """Concentration of what the lists show: 0 where every item is in as many, 1 where one takes all.

    Parameters
    ----------
    exposure : Exposure
        The groups of lists.
    items : {"catalogue", "recommended"}
        Items that count: those of the catalogue, shown or not, or those that some list shows.
    norm : {"n-1", "n"}
        What the sum is divided by: n - 1, with which one item that takes all places gives 1, or n.

    Returns
    -------
    float64, shape (n_groups,)
        In [0, 1]; NaN where no list holds an item that counts and, with ``norm='n-1'``, where there is only one.

    Notes
    -----
    ``sum_{j=1..n} (2j - n - 1) x_(j) / ((n - 1) sum x)``, x ascending. A block of c items of equal x that starts after
    a items adds ``c (2a + c - n) x``. Elliot publishes 1 - Gini; RecBole and LensKit divide by n; Evidently counts the
    recommended items only, which understates concentration.

    Examples
    --------
    >>> gini(Exposure.of([Shown(("a b", "a c"), catalogue="a b c d e")]))
    array([0.625])
    """
    counted = exposure.n_catalogued if items == "catalogue" else exposure.n_items
    n = exposure.catalogue_size if items == "catalogue" else exposure.n_distinct
    never_shown = n - exposure.sum(counted)
    before = never_shown[exposure.group] + exposure.running_sum(counted) - counted
    weight = counted * (2 * before + counted - n[exposure.group])
    n_places = exposure.sum(counted * exposure.times)
    return exposure.sum(weight * exposure.times) / positive((n - 1 if norm == "n-1" else n) * n_places)


@Definition(
    name="Personalization",
    kind="exposure",
    interval="jackknife",
    formula="1 - mean over pairs of lists of |L_u@k and L_v@k| / k",
    bounds=(0, 1),
    undefined="fewer than two lists",
    source="Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma of recommender systems (as h); "
    "sim='cosine' as recmetrics",
    cutoff=Cutoff("required").but("optional", denom="min", sim="cosine"),
    rules=(
        Rule(
            "denom only with sim='overlap': a cosine has the root of the product of both lengths below",
            lambda options: options["denom"] != "k" and options["sim"] != "overlap",
        ),
    ),
    goldens=(
        Golden("Personalization@2", (), ("1 - 1/2", "0"), shown=(_TWO_LISTS, Shown(("a b", "b a")))),
        Golden(
            "Personalization@2",
            (),
            ("1 - (1/2 + 1/2 + 0) / 3",),
            shown=(Shown(("a b", "a", "b", "")),),
            note="an empty list is none",
        ),
        Golden("Personalization@2", (), (UNDEFINED,), shown=(Shown(("a b",)),), note="one list"),
        Golden(
            "Personalization(denom='min')@2",
            (),
            ("1 - (1/1 + 1/1 + 0) / 3", "0"),
            shown=(Shown(("a b", "a", "b", "")), Shown(("a b c", "b a"))),
            note="a short list can share no more than it has",
        ),
        Golden("Personalization(denom='min')", (), ("1 - 2/3",), shown=(Shown(("a b c d", "c b z")),)),
        Golden("Personalization(sim='cosine')@2", (), ("1 - 1/2", "0"), shown=(_TWO_LISTS, Shown(("a b c", "b a")))),
        Golden(
            "Personalization(sim='cosine')@2",
            (),
            ("1 - (1 / sqrt(2) + 1 / sqrt(2) + 0) / 3", UNDEFINED),
            shown=(Shown(("a b", "a", "b", "")), Shown(("a b", ""))),
            note="an empty list is none",
        ),
        Golden(
            "Personalization(sim='cosine')",
            (),
            ("1 - 1 / sqrt(1 * 4)", "1 - (3/6 + 1/2 + 1/3) / 3", "1"),
            shown=(Shown(("a", "b c a d")), Shown(("a b c d", "x c b a e f g h j", "a")), Shown(("a b", "c d"))),
        ),
    ),
    needs_with=lambda *, denom, sim, **_: (needs.LIST_LENGTHS,) if denom == "min" or sim == "cosine" else (),
)
def personalization(
    exposure: Exposure,
    *,
    denom: Literal["k", "min"] = "k",
    sim: Annotated[Literal["overlap", "cosine"], NotOffered("jaccard", _JACCARD)] = "overlap",
) -> FloatVector:
    """How much the lists of two users differ: 1 where no two share an item, 0 where all are the same.

    Parameters
    ----------
    exposure : Exposure
        The groups of lists.
    denom : {"k", "min"}
        What the items that two lists share are divided by: k; the length of the shorter one, at most k, so that short
        lists do not differ for being short.
    sim : {"overlap", "cosine"}
        How alike two lists are: the items that they share, divided as ``denom`` says; the cosine of the two sets of
        items as vectors of 0 and 1, the items that they share divided by the root of the product of their lengths.

    Returns
    -------
    float64, shape (n_groups,)
        In [0, 1]; NaN below two lists.

    Notes
    -----
    ``1 - mean over pairs {u, v} of |L_u@k and L_v@k| / k``. No pair is looked at: item i, which is in x_i of V
    lists, is shared by x_i (x_i - 1) / 2 pairs, so that the value is ``1 - sum_i x_i (x_i - 1) / (V (V - 1) k)``.

    With ``denom='min'`` it is ``1 - sum_i sum_{a,b} x_ia (x_ib - [a = b]) / min(a, b) / (V (V - 1))``, x_ia being the
    lists of length a that hold item i.

    With ``sim='cosine'`` it is ``1 - sum_i [(sum_a x_ia / sqrt(a))^2 - sum_a x_ia / a] / (V (V - 1))``, as recmetrics
    computes it of the matrix of all pairs. Where all lists have one length, it is the same as ``denom='min'``.

    The Jaccard index of two lists is no sum over the items that they share: its denominator, the size of the union,
    depends on how many these are. It would take every pair of lists, of which a million users have 5e11, and is not
    offered. Of two lists of one length it is ``c / (2 - c)``, c being their cosine, and puts pairs in the same order.

    Examples
    --------
    >>> personalization(Exposure.of([Shown(("a b", "a c"))], k=2))
    array([0.5])
    """
    pairs = positive(exposure.n_lists * (exposure.n_lists - 1))
    if denom == "min" or sim == "cosine":
        alike = exposure.cosine if sim == "cosine" else exposure.shared
        return np.clip(1 - exposure.sum(alike) / pairs, 0, 1)  # sums of fractions: not -1e-17
    return 1 - exposure.sum(exposure.n_items * exposure.times * (exposure.times - 1)) / (pairs * exposure.k)
