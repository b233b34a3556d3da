"""Agreement with the list that another model gave the same user."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, quotient, where_defined
from rankeval_spark.measures.definition import NEVER_FILLED, Cutoff, Definition
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Meaning, OtherModel, Persistence

_NO_TWO_LISTS: Final = "the user has no list of one of the two models, or they are one model"
_ABOUT: Final = "; B is the list of the named model for the same user"

agreement = partial(
    Definition, undefined=_NO_TWO_LISTS, needs=(required_facts.OTHER_LISTS,), better="neither", aggregation=NEVER_FILLED
)


@agreement(
    name="Overlap",
    formula=f"|L_k and B_k| / k{_ABOUT}",
    undefined=f"{_NO_TWO_LISTS}; denom='len' and 'min': no item at ranks 1..k",
    source="share of a page of k places; denom='len' RecTools Intersection; denom='min' Szymkiewicz-Simpson",
    cutoff=Cutoff("required").but("optional", denom="len").but("optional", denom="min"),
)
def overlap(
    cut: CutLists,
    *,
    model: OtherModel,
    denom: Annotated[
        Literal["k", "len", "min"],
        Meaning(
            "What the common items are divided by: k; the items of the list; those of the shorter of the two lists."
        ),
    ] = "k",
) -> FloatMatrix:
    """Share of the first k places that the list and that of another model have in common.

    ``|L_k and B_k| / k``: in [0, 1]; min(k, n) / k for equal lists, 1 with another ``denom``. NaN where the user has no
    list of one of the two models. Here a b c is compared with b d:

    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> overlap(batch.cut([1, 2]), model="popular")
    array([[0. , 0.5]])
    """
    if denom == "k":
        return where_defined(_n_shared(cut, model) / cut.k, _shorter(cut, model) > 0)
    n_others = cut.n_items_of_other(cut.lists.shared_with(model))
    n_items = cut.n_items if denom == "len" else np.minimum(cut.n_items, n_others)
    return quotient(_n_shared(cut, model), np.where(_shorter(cut, model) > 0, n_items, 0))


@agreement(name="Jaccard", formula=f"|L_k and B_k| / |L_k or B_k|{_ABOUT}", source="Jaccard (1901)")
def jaccard(cut: CutLists, *, model: OtherModel) -> FloatMatrix:
    """Share of the items of either list, the model's own and that of another one, that both show.

    ``|L_k and B_k| / |L_k or B_k|``: in [0, 1]; 1 for equal lists. NaN where the user has no list of one of the two
    models. Of a b c and b d, one in three is common at the first two places:

    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> jaccard(batch.cut([2, 3]), model="popular").round(4)
    array([[0.3333, 0.25  ]])
    """
    n_shared, n_others = _n_shared(cut, model), cut.n_items_of_other(cut.lists.shared_with(model))
    n_either = np.where(_shorter(cut, model) > 0, cut.n_items + n_others - n_shared, 0)
    return quotient(n_shared, n_either)


@agreement(
    name="RBO",
    formula=f"(1 - p) sum_{{d>=1}} p^(d-1) |L_d and B_d| / d, extrapolated beyond k and the ends of the lists{_ABOUT}",
    source="Webber, Moffat & Zobel (2010), A similarity measure for indefinite rankings, equation 32; LensKit RBO",
    aliases={"RankBiasedOverlap": {}},
    always_printed=("p",),
)
def rank_biased_overlap(cut: CutLists, *, model: OtherModel, p: Persistence = 0.9) -> FloatMatrix:
    """Mean overlap with the list of another model, of a user who looks one place further with probability p.

    ``(1 - p) sum_{d>=1} p^(d-1) |L_d and B_d| / d``: in [0, 1]; 1 for equal lists. NaN where the user has no list of
    one of the two models. Of a b and b a half of the weight lies below rank 1:

    >>> batch = Lists.of([Ranking([None] * 2, background=Background(others=[("popular", (2, 1))]))])
    >>> rank_biased_overlap(batch.cut([1, 2]), model="popular", p=0.5)
    array([[0. , 0.5]])
    """
    shared, shorter = cut.lists.shared_with(model), _shorter(cut, model)
    longer = np.maximum(cut.depth, np.minimum(cut.k, shared.length[:, None]))
    short, long = (np.maximum(length, 1).astype(np.int64) for length in (shorter, longer))
    depths = np.arange(1, long.max(initial=1) + 1)
    powers, shares = _running(p**depths), _running(p**depths / depths)
    is_in_short = shared.depth <= np.minimum(cut.lists.n_recommended, shared.length)[shared.owner]
    in_short, n_shared = cut.sum_shared(shared, is_in_short.astype(np.float64)), _n_shared(cut, model)
    agreed = n_shared * shares[long] - cut.sum_shared(shared, shares[np.minimum(shared.depth, len(depths)) - 1])
    unseen = in_short * ((powers[long] - powers[short]) / short - (shares[long] - shares[short]))
    beyond = ((n_shared - in_short) / long + in_short / short) * p**long
    return where_defined(np.clip((1 - p) / p * (agreed + unseen) + beyond, 0, 1), shorter > 0)


def _n_shared(cut: CutLists, model: str) -> FloatMatrix:
    """Count the items that both lists hold at ranks <= k."""
    shared = cut.lists.shared_with(model)
    return cut.once(("shared with", model), lambda: cut.sum_shared(shared, np.ones(len(shared.depth))))


def _shorter(cut: CutLists, model: str) -> FloatMatrix:
    """Length of the shorter list of the two, cut at k; 0 where one model gave none."""
    return np.minimum(cut.depth, cut.lists.shared_with(model).length[:, None])


def _running(terms: FloatVector) -> FloatVector:
    """Sum the terms up to each depth, 0 of none: the sum of the first d is at index d."""
    return np.concatenate([[0.0], np.cumsum(terms)])
