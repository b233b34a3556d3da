"""How novel the recommended items are: how few users know them, or how rare an interaction with them was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.definition import Definition, TieHandling, only_with
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Meaning
from rankeval_spark.measures.shared_options import Level

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

CountedItems: TypeAlias = Annotated[Literal["on", "off"], Meaning("Which items count: those that are relevant; all.")]

_NO_DATA: Final = "the user has no list, or train is empty"
_ZHOU: Final = "Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma"
_VARGAS: Final = "Vargas & Castells (2011), Rank and relevance in novelty and diversity metrics"
_REL_IS_FOR_RELEVANCE: Final = only_with("rel", 1, "relevance", "on")
_TIES: Final = TieHandling(bounded_by_gains=lambda relevance, **_: relevance == "off")


@Definition(
    name="MIUF",
    formula="(1 / m) sum_{i<=m} -log2(U(i) / |U|)",
    bounds=(0, math.inf),
    undefined="the user has no list, train is empty, or unseen='drop' leaves no item",
    source=f"{_ZHOU}; RecTools ('one'), Evidently ('drop')",
    aliases={"Novelty": {}},
    needs=(required_facts.ITEM_USERS, required_facts.TOTAL_USERS),
)
def mean_inverse_user_frequency(
    cut: CutLists,
    *,
    unseen: Annotated[
        Literal["one", "drop"],
        Meaning(
            "What an item that no user had counts: as if one had it; nothing, and the others of the first k count."
        ),
    ] = "one",
) -> FloatMatrix:
    """Mean novelty of the recommended items: how few users had them in the training data, in bits.

    ``(1 / m) sum_{i<=m} -log2(U(i) / |U|)``: at least 0, at most log2 |U|. NaN without a list.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(users=2)], background=Background(users=8))
    >>> mean_inverse_user_frequency(Lists.of([one]).cut([1]))
    array([[2.]])
    """
    users = cut.lists.known_items.values[required_facts.ITEM_USERS]
    bits = _surprise(cut, users, required_facts.TOTAL_USERS)
    if unseen == "one":
        return _where_trained(cut, quotient(cut.sum_items(bits), cut.n_items), required_facts.TOTAL_USERS)
    is_seen = (users > 0).astype(np.float64)
    return quotient(cut.sum_items(bits * is_seen), cut.sum_items(is_seen))


@Definition(
    name="SelfInfo",
    formula="(1 / m) sum_{i<=m} -log2(max(c(i), 1) / C)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source=f"{_ZHOU}, by events",
    needs=(required_facts.ITEM_INTERACTIONS, required_facts.TOTAL_INTERACTIONS),
)
def self_information(cut: CutLists) -> FloatMatrix:
    """Mean surprise of the recommended items: how rare an interaction with them was in the training data, in bits.

    ``(1 / m) sum_{i<=m} -log2(max(c(i), 1) / C)``: at least 0, at most log2 C. NaN without a list.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(interactions=2)], background=Background(interactions=16))
    >>> self_information(Lists.of([one]).cut([1]))
    array([[3.]])
    """
    bits = _surprise(
        cut, cut.lists.known_items.values[required_facts.ITEM_INTERACTIONS], required_facts.TOTAL_INTERACTIONS
    )
    return _where_trained(cut, quotient(cut.sum_items(bits), cut.n_items), required_facts.TOTAL_INTERACTIONS)


@Definition(
    name="EPC",
    formula="sum_{i<=m} D(i) r_i (1 - U(i) / |U|) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    undefined=_NO_DATA,
    source=_VARGAS,
    rules=(_REL_IS_FOR_RELEVANCE,),
    needs=(required_facts.ITEM_USERS, required_facts.TOTAL_USERS),
    ties=_TIES,
)
def expected_popularity_complement(cut: CutLists, *, rel: Level = 1, relevance: CountedItems = "on") -> FloatMatrix:
    """How many users do not know a recommended item, the first places counting most.

    ``sum_{i<=m} D(i) w_i (1 - U(i) / |U|) / sum_{i<=m} D(i)``, w_i = r_i or 1: in [0, 1]. NaN without a list; 0, not
    NaN, for a list without a relevant item.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([1], items=[Item(users=2)], background=Background(users=8))
    >>> expected_popularity_complement(Lists.of([one]).cut([1]))
    array([[0.75]])
    """
    facts = cut.lists.known_items
    totals = np.maximum(facts.totals[required_facts.TOTAL_USERS], 1)[facts.item_list]
    unknown_to = 1 - facts.values[required_facts.ITEM_USERS] / totals
    return _where_trained(cut, _discounted_mean(cut, unknown_to, rel, relevance), required_facts.TOTAL_USERS)


@Definition(
    name="EFD",
    formula="sum_{i<=m} D(i) r_i -log2(c(i) / C) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source=f"{_VARGAS}; an unseen item as in Elliot",
    rules=(_REL_IS_FOR_RELEVANCE,),
    needs=(required_facts.ITEM_INTERACTIONS, required_facts.TOTAL_INTERACTIONS, required_facts.LEAST_INTERACTIONS),
    ties=_TIES,
)
def expected_free_discovery(cut: CutLists, *, rel: Level = 1, relevance: CountedItems = "on") -> FloatMatrix:
    """How rare an interaction with a recommended item was, in bits, the first places counting most.

    ``sum_{i<=m} D(i) w_i -log2(c(i) / C) / sum_{i<=m} D(i)``, w_i = r_i or 1: at least 0, at most log2 C. NaN without a
    list; 0, not NaN, for a list without a relevant item.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> background = Background(interactions=16, least_interactions=1)
    >>> one = Ranking([1], items=[Item(interactions=2)], background=background)
    >>> expected_free_discovery(Lists.of([one]).cut([1]))
    array([[3.]])
    """
    facts = cut.lists.known_items
    counts, least = (
        facts.values[required_facts.ITEM_INTERACTIONS],
        facts.totals[required_facts.LEAST_INTERACTIONS][facts.item_list],
    )
    bits = _surprise(cut, np.where(counts > 0, counts, least), required_facts.TOTAL_INTERACTIONS)
    return _where_trained(cut, _discounted_mean(cut, bits, rel, relevance), required_facts.TOTAL_INTERACTIONS)


def _surprise(cut: CutLists, counts: FloatVector, total: str) -> FloatVector:
    """-log2(count / total) of each item, a count of 0 taken as 1; 0 where nothing was seen at all."""
    facts = cut.lists.known_items
    totals = facts.totals[total][facts.item_list]
    return np.log2(np.maximum(totals, 1)) - np.log2(np.maximum(counts, 1))


def _where_trained(cut: CutLists, values: FloatMatrix, total: str) -> FloatMatrix:
    return np.where(cut.lists.known_items.totals[total][:, None] > 0, values, np.nan)


def _discounted_mean(cut: CutLists, values: FloatVector, rel: float, relevance: str) -> FloatMatrix:
    """Sum D(i) w_i x_i / sum D(i), D(i) = 1 / log2(i + 1)."""
    discounts = 1 / np.log2(cut.lists.known_items.item_rank + 1)
    counted = cut.lists.relevant_items(rel) if relevance == "on" else np.ones(len(values))
    return quotient(cut.sum_items(discounts * counted * values), cut.sum_items(discounts))
