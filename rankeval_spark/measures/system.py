"""Measures over all lists together (coverage, evenness, parity), and the quality of lists."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, divide_or_nan
from rankeval_spark.measures.definition import Cutoff, Definition, OptionRule
from rankeval_spark.measures.exposure import Exposure, Rates, nan_unless_positive
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Above, Category, Level, NotOffered


@Definition(
    name="ItemCoverage",
    words="number of distinct recommended items, aggregate diversity, item coverage, unique items, coverage",
    formula="|union of L_u@k|",
    bounds=(0, np.inf),
    undefined="never",
    source="Elliot ItemCoverage; Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy",
)
def item_coverage(exposure: Exposure) -> FloatVector:
    """Items that at least one of the lists shows.

    A count, over the users with a list, judged or not; 0 without a list.

    >>> item_coverage(Exposure.of([Shown(("a b", "a c"))]))
    array([3.])
    """
    return exposure.n_distinct


@Definition(
    name="CatalogCoverage",
    words="catalogue coverage, coverage, item space coverage, share of items recommended",
    aliases={"CatalogueCoverage": {}},
    formula="|union of L_u@k, in T| / |T|",
    undefined="the catalogue, or train, is empty",
    source="Ge, Delgado-Battenfeld & Jannach (2010), Beyond accuracy: evaluating recommender systems by coverage and "
    "serendipity",
    needs=lambda items, **_: (N.TRAINED_ITEMS,) if items == "train" else (),
    needs_catalogue=lambda items, **_: items == "catalogue",
)
def catalogue_coverage(
    exposure: Exposure,
    *,
    items: Annotated[  # noqa: ARG001 - the exposure is that of these items
        Literal["catalogue", "train"],
        "Items that could be shown, T: the input `items` or, without it, the distinct items of `train`; those of "
        "`train` in any case, as Evidently and Microsoft recommenders count.",
    ] = "catalogue",
) -> FloatVector:
    """Share of the catalogue that at least one of the lists shows.

    Items outside of T count on neither side.

    >>> catalogue_coverage(Exposure.of([Shown(("a b", "a z"), catalogue="a b c d")]))
    array([0.5])
    """
    return exposure.sum(exposure.n_catalogued) / nan_unless_positive(exposure.catalogue_size)


@Definition(
    name="UserCoverage",
    words="user coverage, share of users served, coverage",
    aliases={"CoveredUsers": {}},
    formula="1[m >= min_items]",
    undefined="never",
    source="RecTools CoveredUsers, Elliot UserCoverage (a count)",
    interval="wilson",
    group=False,
)
def user_coverage(cut: CutLists, *, min_items: Annotated[float, Above(0), "Least number of items."] = 1) -> FloatMatrix:
    """1 if the list of the user has at least ``min_items`` items, else 0; its mean is the share of users served.

    m is the number of items at ranks 1..k.

    >>> user_coverage(Lists.of([Ranking([None, 1]), Ranking([], missed=[1])]).cut([1]))
    array([[1.],
           [0.]])
    """
    return (cut.n_items >= min_items).astype(np.float64)


_NOTHING_SHOWN: Final = "no list holds an item"


@Definition(
    name="Entropy",
    words="Shannon entropy, distributional coverage, diversity over all lists, evenness of exposure, diversity",
    aliases={"DistributionalCoverage": {}, "ShannonEntropy": {}},
    formula="-sum_i p_i log2 p_i; p_i the share of item i in all places of the lists",
    bounds=(0, np.inf),
    undefined=f"{_NOTHING_SHOWN}, or with norm=True the catalogue has fewer than two items",
    source="Elliot ShannonEntropy, LensKit; Shannon (1948), A mathematical theory of communication",
    needs_catalogue=lambda norm, **_: bool(norm),
    at_most=lambda norm, **_: 1.0 if norm else math.inf,
)
def entropy(
    exposure: Exposure,
    *,
    base: Annotated[Literal["2", "e"], "Base of the logarithm: bits or nats."] = "2",
    norm: Annotated[
        bool, "Whether to divide by log |T|, T being the catalogue; items outside of it are then left out."
    ] = False,
) -> FloatVector:
    """Entropy of what the lists show: how evenly the places are spread over the items.

    0 where one item takes every place, log |T| (with ``norm`` 1) where each item of the catalogue has as many.

    >>> entropy(Exposure.of([Shown(("a b", "a c"))]))
    array([1.5])
    """
    log = np.log2 if base == "2" else np.log
    places = (exposure.n_catalogued if norm else exposure.n_items) * exposure.times
    n_places = nan_unless_positive(exposure.sum(places))
    value = np.maximum(log(n_places) - exposure.sum(places * log(exposure.times)) / n_places, 0.0)  # not -1e-17
    return value / nan_unless_positive(log(nan_unless_positive(exposure.catalogue_size))) if norm else value


@Definition(
    name="Gini",
    words="Gini index, Gini coefficient, concentration of exposure, inequality of exposure, item fairness, diversity",
    aliases={"GiniCoefficient": {}},
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
        "Items that count: those of the catalogue, shown or not; those that some list shows.",
    ] = "catalogue",
    norm: Annotated[
        Literal["n-1", "n"], "Divisor of the sum: n - 1, with which one item that takes all places gives 1; n."
    ] = "n-1",
) -> FloatVector:
    """Concentration of what the lists show: 0 where every item is in as many, 1 where one takes all.

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
    return exposure.sum(weight * exposure.times) / nan_unless_positive((n - 1 if norm == "n-1" else n) * n_places)


_JACCARD: Final = (
    "the Jaccard index takes every pair of lists, these follow from how often items are shown: take sim='cosine'"
)


@Definition(
    name="Personalization",
    words="personalisation, inter-list diversity, diversity between users, Hamming distance between lists, diversity",
    aliases={"Personalisation": {}},
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
    needs=lambda denom, sim, **_: (N.LIST_LENGTHS,) if denom == "min" or sim == "cosine" else (),
)
def personalization(
    exposure: Exposure,
    *,
    denom: Annotated[
        Literal["k", "min"],
        "Divisor of the items that two lists share: k; the length of the shorter one, at most k, so that "
        "short lists do not differ for being short.",
    ] = "k",
    sim: Annotated[
        Literal["overlap", "cosine"],
        NotOffered("jaccard", _JACCARD),
        "Similarity of two lists: the items that they share, divided as `denom` says; the cosine of the two sets "
        "of items as vectors of 0 and 1, the items that they share divided by the root of the product of their "
        "lengths.",
    ] = "overlap",
) -> FloatVector:
    """Mean difference between the lists of two users: 1 where no two share an item, 0 where all are the same.

    Computed from counts by item, without looking at pairs.

    >>> personalization(Exposure.of([Shown(("a b", "a c"))], k=2))
    array([0.5])
    """
    pairs = nan_unless_positive(exposure.n_lists * (exposure.n_lists - 1))
    if denom == "min" or sim == "cosine":
        alike = exposure.cosine if sim == "cosine" else exposure.shared
        return np.clip(1 - exposure.sum(alike) / pairs, 0, 1)  # sums of fractions: not -1e-17
    return 1 - exposure.sum(exposure.n_items * exposure.times * (exposure.times - 1)) / (pairs * exposure.k)


_NO_LIST: Final = "the user has no list"


@Definition(
    name="SufficientReco",
    words="full lists, sufficient recommendations, length of the list",
    formula="1[m >= k]",
    undefined=_NO_LIST,
    source="RecTools SufficientReco",
    cutoff=Cutoff("required"),
    without_relevant=math.nan,
    is_bounded_by_gains=True,
    group=False,
)
def sufficient_recommendations(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["full", "share"], "Whether all places are filled, 1 or 0; the share of those that are."
    ] = "full",
) -> FloatMatrix:
    """1 if the list has an item at each of the first k places, else 0.

    The mean is the share of lists that are long enough; with ``kind='share'`` the value is m / k.

    >>> sufficient_recommendations(Lists.of([Ranking([None, None])]).cut([2, 3]))
    array([[1., 0.]])
    """
    filled = cut.n_items / cut.k
    return np.where(cut.n_recommended > 0, np.floor(filled) if kind == "full" else filled, np.nan)


@Definition(
    name="NotInTrain",
    words="items not in the training data, repeated consumption, already seen items",
    formula="(1 / m) |{i <= m : the user does not have item i in train}|",
    undefined=_NO_LIST,
    source="RecTools; shared task hygiene: a list should not repeat what its user has",
    needs=(N.ITEM_SEEN,),
)
def not_in_train(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that their user does not have in the training data.

    1 for a user who is not in the training data.

    >>> not_in_train(Lists.of([Ranking([None, None], items=[Item(), Item(is_seen=True)])]).cut([1, 2]))
    array([[1. , 0.5]])
    """
    n_seen = cut.sum_items(cut.lists.known_items.values[N.ITEM_SEEN])
    return divide_or_nan(cut.n_items - n_seen, cut.n_items)


@Definition(
    name="UnrepeatedReco",
    words="unrepeated recommendations, repeated items, duplicates within a list",
    formula="m / sum_{i<=m} copies(i)",
    undefined=_NO_LIST,
    source="RecTools UnrepeatedReco",
    needs=(N.ITEM_COPIES,),
)
def unrepeated_recommendations(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["share", "full"], "The share; 1 where none of the items is repeated and 0 otherwise."
    ] = "share",
) -> FloatMatrix:
    """Share of the rows of a list that are left when each item counts once: 1 where none is repeated.

    copies(i) are the rows of the log with item i in this list; 0 or 1 with ``kind='full'``.

    >>> items = [Item(copies=3), Item()]
    >>> unrepeated_recommendations(Lists.of([Ranking([None, None], items=items)]).cut([1, 2])).round(4)
    array([[0.3333, 0.5   ]])
    """
    n_rows = cut.sum_items(cut.lists.known_items.values[N.ITEM_COPIES])
    share = divide_or_nan(cut.n_items, n_rows)
    return share if kind == "share" else np.where(np.isnan(share), np.nan, (n_rows == cut.n_items).astype(np.float64))


_SOURCE: Final = "Zhu, Wang & Caverlee (2020), Measuring and mitigating item under-recommendation bias; Elliot"
_UNEVEN: Final = math.sqrt(2)  # all but one of three rates are 0: the standard deviation is sqrt(2) times the mean


@Definition(
    name="PopREO",
    words="popularity-based ranking-based equal opportunity, equal opportunity, fairness of items",
    formula="sd_g(p_g) / mean_g(p_g); p_g = relevant items of group g that are recommended / relevant items of group g",
    bounds=(0, _UNEVEN),
    undefined="a group has no relevant item, or no relevant item is recommended",
    source=_SOURCE,
    needs=(N.GROUP_RELEVANT,),
    is_bounded_by_gains=False,
    better="lower",
)
def equal_opportunity(rates: Rates, *, rel: Level = 1) -> FloatVector:  # noqa: ARG001 - judgements are counted at it
    """Spread of recall over groups of popular and rare items; 0 where all groups are found equally well.

    The standard deviation of the population of three rates over their mean: at most sqrt(2).

    >>> offered = Offered(("a c",), ("a", "b", "c"), relevant=("a b c",))
    >>> equal_opportunity(Rates.of([offered], need="group_relevant")).round(4)
    array([0.7071])
    """
    return _coefficient_of_variation(rates)


@Definition(
    name="PopRSP",
    words="popularity-based ranking-based statistical parity, statistical parity, demographic parity, exposure "
    "fairness",
    formula="sd_g(p_g) / mean_g(p_g); p_g = recommended items of group g / items of group g that could be",
    bounds=(0, _UNEVEN),
    undefined="a group has no item that can be recommended, or no list holds an item of the catalogue",
    source=_SOURCE,
    needs=(N.GROUP_AVAILABLE,),
    needs_catalogue=True,
    better="lower",
)
def statistical_parity(rates: Rates) -> FloatVector:
    """Spread of exposure over groups of popular and rare items; 0 where an item in each is shown equally often.

    The standard deviation of the population of three rates over their mean: at most sqrt(2).

    >>> statistical_parity(Rates.of([Offered(("a b c",), ("a", "b", "c"))], need="group_available"))
    array([0.])
    """
    return _coefficient_of_variation(rates)


@Definition(
    name="BiasDisparity",
    words="bias disparity of a category, preference amplification",
    formula="B_rec / B_train - 1; B = share of items that are of the category / the category's share of the catalogue",
    bounds=(-1, math.inf),
    undefined="no user with a list has an item of the category in train",
    source="Tsintzou, Pitoura & Tsaparas (2018), Bias disparity in recommendation systems",
    needs=(N.CATEGORY_SHARES,),
    better="neither",
)
def bias_disparity(rates: Rates, *, category: Category) -> FloatVector:  # noqa: ARG001 - items are counted of it
    """Relative change of a category's share, from the training data of the users to their lists.

    0 where the category has the share of the lists that it has of the users' items, 1 where it has twice that, -1 where
    it is never recommended.

    >>> one = Preferred(("a b",), "a", own=("a b c d",))
    >>> bias_disparity(Rates.of([one], need="category_shares"), category="Drama")
    array([1.])
    """
    shares = divide_or_nan(rates.taken, rates.possible)
    return divide_or_nan(shares[:, 0], shares[:, 1]) - 1


def _coefficient_of_variation(rates: Rates) -> FloatVector:
    """sd_g(p_g) / mean_g(p_g) of the rates p_g of the groups."""
    shares = divide_or_nan(rates.taken, rates.possible)
    mean = shares.mean(axis=1)
    spread: FloatVector = shares.std(axis=1) / np.where(mean > 0, mean, np.nan)
    return spread
