"""How much a list has in common with the list that another model gave the same user."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, quotient, where_defined
from rankeval_spark.measures.families.rank_biased_precision import Persistence  # noqa: TC001 - as OtherModel
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Background
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import OtherModel  # noqa: TC001 - the registry reads annotations at run time
from rankeval_spark.measures.registry import Cutoff, Definition

_NO_TWO_LISTS = "the user has no list of one of the two models, or they are one model"
_ABOUT = "; B is the list of the named model for the same user"


def _beside(n_items: int, *others: tuple[str, tuple[int | None, ...]]) -> Ranking:
    """Write a list of so many items with those of other models: the rank here of the item at each place there."""
    return Ranking([None] * n_items, background=Background(others=others))


_SWAPPED = _beside(4, ("popular", (2, 1, None)))
"""a b c d compared with b a e."""
_SAME = _beside(2, ("popular", (1, 2)))
_APART = _beside(2, ("popular", (None, None)))
_ALONE = _beside(2, ("random", (1, 2)))
_NONE = _beside(0, ("popular", (None,)))
_TWO_OTHERS = _beside(2, ("popular", (1, None)), ("random", (2, 1)))


@Definition(
    name="Overlap",
    takes_group=False,
    formula=f"|L_k and B_k| / k{_ABOUT}",
    bounds=(0, 1),
    undefined=f"{_NO_TWO_LISTS}; denom='len' and 'min': no item at ranks 1..k",
    source="share of a page of k places; denom='len' RecTools Intersection; denom='min' Szymkiewicz-Simpson",
    cutoff=Cutoff("required").but("optional", denom="len").but("optional", denom="min"),
    needs=(needs.OTHER_LISTS,),
    without_relevant=lambda **_: math.nan,
    goldens=(
        Golden("Overlap(model='popular')@1", (_SWAPPED, _NONE), ("0", UNDEFINED), mean="0", note="a b c d and b a e"),
        Golden("Overlap(model='popular')@2", (_SWAPPED,), ("2/2",), note="the order does not matter"),
        Golden("Overlap(model='popular')@3", (_SWAPPED, _SAME), ("2/3", "2/3"), note="a short list has empty places"),
        Golden("Overlap(model='popular')@2", (_APART, _ALONE), ("0", UNDEFINED), note="only another model has a list"),
        Golden("Overlap(model='random')@2", (_TWO_OTHERS,), ("2/2",), note="each model by itself"),
        Golden(
            "Overlap(denom='len',model='popular')", (_SWAPPED, _SAME), ("2/4", "2/2"), note="of the list's own items"
        ),
        Golden(
            "Overlap(denom='min',model='popular')", (_SWAPPED, _NONE), ("2/3", UNDEFINED), note="of the shorter list"
        ),
    ),
)
def overlap(cut: CutLists, *, model: OtherModel, denom: Literal["k", "len", "min"] = "k") -> FloatMatrix:
    """Share of the first k places that the list and that of another model have in common.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    model : str
        The other model. Its own lists have no value.
    denom : {"k", "len", "min"}
        What the common items are divided by: k; the items of the list; those of the shorter of the two lists.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; min(k, n) / k for equal lists, 1 with another ``denom``. NaN where the user has no list of one of the
        two models.

    Notes
    -----
    ``|L_k and B_k| / k``. Where the log names lists, those of the same name are compared. An item that the policy
    ``duplicates='keep'`` leaves in both lists twice counts twice.

    Examples
    --------
    a b c compared with b d:

    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> overlap(batch.cut([1, 2]), model="popular")
    array([[0. , 0.5]])
    """
    if denom == "k":
        return where_defined(_n_shared(cut, model) / cut.k, _shorter(cut, model) > 0)
    n_others = cut.n_items_of_other(cut.lists.shared_with(model))
    n_items = cut.n_items if denom == "len" else np.minimum(cut.n_items, n_others)
    return quotient(_n_shared(cut, model), np.where(_shorter(cut, model) > 0, n_items, 0))


@Definition(
    name="Jaccard",
    takes_group=False,
    formula=f"|L_k and B_k| / |L_k or B_k|{_ABOUT}",
    bounds=(0, 1),
    undefined=_NO_TWO_LISTS,
    source="Jaccard (1901)",
    needs=(needs.OTHER_LISTS,),
    without_relevant=lambda **_: math.nan,
    goldens=(
        Golden("Jaccard(model='popular')@3", (_SWAPPED,), ("2 / (3 + 3 - 2)",), note="a b c and b a e"),
        Golden("Jaccard(model='popular')", (_SWAPPED,), ("2 / (4 + 3 - 2)",), note="a b c d and b a e"),
        Golden("Jaccard(model='popular')@3", (_SAME, _APART, _NONE), ("1", "0", UNDEFINED), mean="1/2"),
    ),
)
def jaccard(cut: CutLists, *, model: OtherModel) -> FloatMatrix:
    """Share of the items of either list, the model's own and that of another one, that both show.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    model : str
        The other model. Its own lists have no value.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 1 for equal lists. NaN where the user has no list of one of the two models.

    Notes
    -----
    ``|L_k and B_k| / |L_k or B_k|``: unlike Overlap, lists that are too short lose nothing.

    Examples
    --------
    a b c compared with b d: of a b d e, one in three at the first two places.

    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> jaccard(batch.cut([2, 3]), model="popular").round(4)
    array([[0.3333, 0.25  ]])
    """
    n_shared, n_others = _n_shared(cut, model), cut.n_items_of_other(cut.lists.shared_with(model))
    n_either = np.where(_shorter(cut, model) > 0, cut.n_items + n_others - n_shared, 0)
    return quotient(n_shared, n_either)


@Definition(
    name="RBO",
    takes_group=False,
    formula=f"(1 - p) sum_{{d>=1}} p^(d-1) |L_d and B_d| / d, extrapolated beyond k and the ends of the lists{_ABOUT}",
    bounds=(0, 1),
    undefined=_NO_TWO_LISTS,
    source="Webber, Moffat & Zobel (2010), A similarity measure for indefinite rankings, equation 32; LensKit RBO",
    aliases={"RankBiasedOverlap": {}},
    always_printed=("p",),
    needs=(needs.OTHER_LISTS,),
    without_relevant=lambda **_: math.nan,
    goldens=(
        Golden(
            "RBO(model='popular',p=0.5)@2",
            (_SWAPPED,),
            ("2/2 * 0.5**2 + 2/2 * 0.5**2",),
            note="a b and b a: nothing at rank 1, all of it at 2 and, supposedly, below",
        ),
        Golden(
            "RBO(model='popular',p=0.5)",
            (_SWAPPED,),
            ("2/2 * 0.5**2 + 2/3 * 0.5**3 + 2/4 * 0.5**4 + 2/3 * 1/4 * 0.5**4 + 2/3 * 0.5**4",),
            note="a b c d and b a e, which is supposed to go on with 2 of 3",
        ),
        Golden(
            "RBO(model='popular',p=0.9)@1", (_SWAPPED, _SAME, _NONE), ("0", "1", UNDEFINED), mean="1/2", note="the top"
        ),
        Golden("RBO(model='popular',p=0.9)", (_SAME, _APART), ("1", "0"), mean="1/2"),
    ),
)
def rank_biased_overlap(cut: CutLists, *, model: OtherModel, p: Persistence = 0.9) -> FloatMatrix:
    """Mean overlap with the list of another model, of a user who looks one place further with probability p.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    model : str
        The other model. Its own lists have no value.
    p : float
        Probability of looking one place further; the expected depth is 1 / (1 - p).

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 1 for equal lists. NaN where the user has no list of one of the two models.

    Notes
    -----
    With s <= l the lengths of the two lists cut at k and X_d the items that both hold at ranks 1..d: ``(1-p)/p
    (sum_{d=1..l} X_d p^d / d + sum_{d=s+1..l} X_s (d-s) p^d / (s d)) + ((X_l - X_s) / l + X_s / s) p^l``. A common item
    adds its part of the first sum from the greater of its two ranks on, so that nothing is computed depth by depth.

    Examples
    --------
    a b compared with b a: half of the weight lies below rank 1.

    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([None] * 2, background=Background(others=[("popular", (2, 1))]))])
    >>> rank_biased_overlap(batch.cut([1, 2]), model="popular", p=0.5)
    array([[0. , 0.5]])
    """
    shared, shorter, longer = cut.lists.shared_with(model), _shorter(cut, model), _longer(cut, model)
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
    """Length of the shorter of the two lists, cut at k; 0 where there is none of one model."""
    return np.minimum(cut.depth, cut.lists.shared_with(model).length[:, None])


def _longer(cut: CutLists, model: str) -> FloatMatrix:
    return np.maximum(cut.depth, np.minimum(cut.k, cut.lists.shared_with(model).length[:, None]))


def _running(terms: FloatVector) -> FloatVector:
    """Sum the terms up to each depth, 0 of none: the sum of the first d is at index d."""
    return np.concatenate([[0.0], np.cumsum(terms)])
