"""Judgements that are incomplete: how many items have one, and measures that look only at those that do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, positions, ratio, running_count_by_list, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import FloatVector

_NO_RELEVANT = "no relevant judgement (R = 0)"
_NEVER = "never"
_TWO_OF_FOUR_JUDGED = Ranking([None, 1, 0, None])
_NOTHING_RELEVANT = Ranking([0, None], missed=[0])
_SMOOTHING: Final = 1e-5
"""Keeps infAP's share of relevant items away from 0 / 0; the value is trec_eval's."""


def judged_share_parts(cut: CutLists, *, denom: Literal["len", "k"] = "len") -> tuple[FloatMatrix, FloatMatrix]:
    """Items among the first k that have a judgement, and what they are divided by."""
    return _n_judged(cut), cut.n_items if denom == "len" else cut.k


def binary_preference_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Sum what the relevant recommended items add; and count the relevant items there are."""
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    n_nonrelevant = lists.count_judged(_is_nonrelevant(lists.judged_gain, rel))
    at_most = relevance.n_relevant[lists.hit_list, 0]
    counted = np.minimum(n_nonrelevant[lists.hit_list, 0], at_most)
    worth = 1 - ratio(np.minimum(_nonrelevant_above(cut, rel), at_most), counted)
    return cut.sum_hits(relevance.is_relevant * worth), relevance.n_relevant


def inferred_average_precision_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Estimated precision at the rank of each hit, summed, and the relevant items there are."""
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    n_relevant_above = relevance.n_above - relevance.is_relevant
    n_judged_above = n_relevant_above + _nonrelevant_above(cut, rel)
    n_pooled_above = positions(lists.hit_list, n_lists=lists.n_lists) - 1
    relevant_share = (n_relevant_above + _SMOOTHING) / (n_judged_above + 2 * _SMOOTHING)
    precision = (1 + n_pooled_above * relevant_share) / lists.hit_rank
    return cut.sum_hits(relevance.is_relevant * precision), relevance.n_relevant


@Definition(
    name="Judged",
    formula="(items with a judgement at ranks 1..k) / m",
    bounds=(0, 1),
    undefined=_NEVER,
    source="ir_measures Judged",
    cutoff=Cutoff("optional").but("required", denom="k"),
    bounded_by_gains=False,
    parts=judged_share_parts,
    takes_judged_only=False,
    goldens=(
        Golden("Judged@2", (_TWO_OF_FOUR_JUDGED,), ("1/2",)),
        Golden("Judged@10", (_TWO_OF_FOUR_JUDGED,), ("2/4",), note="of the items there are"),
        Golden("Judged(denom='k')@10", (_TWO_OF_FOUR_JUDGED,), ("2/10",), note="of the places there are"),
        Golden(
            "Judged(agg='micro')",
            (_TWO_OF_FOUR_JUDGED, Ranking([1])),
            ("2/4", "1"),
            mean="3/5",
            note="of all items shown",
        ),
        Golden("Judged", (_NOTHING_RELEVANT, Ranking([], missed=[1])), ("1/2", "0"), note="relevant or not"),
    ),
)
def judged_share(cut: CutLists, *, denom: Literal["len", "k"] = "len") -> FloatMatrix:
    """Share of the first k recommendations that have a judgement, whatever it is.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    denom : {"len", "k"}
        What the judged items are divided by: the items at ranks 1..k; k.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a list. Never undefined: a user whose judgements are all irrelevant has a value too.

    Notes
    -----
    ``|{i <= k : item i has a judgement}| / m``. Most items that a recommender shows have none and count as not
    relevant in the other measures, which this share puts into proportion.

    Examples
    --------
    Judgements at ranks 2 and 3 of 4:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> judged_share(Lists.of([Ranking([None, 1, 0, None])]).cut([1, 2, 10]))
    array([[0. , 0.5, 0.5]])
    """
    return ratio(*judged_share_parts(cut, denom=denom))


@Definition(
    name="unj",
    formula="(items without a judgement at ranks 1..k) / k",
    bounds=(0, 1),
    undefined=_NEVER,
    source="trec_eval 10 unj",
    aliases={"Unjudged": {}},
    cutoff=Cutoff("required"),
    bounded_by_gains=False,
    takes_judged_only=False,
    goldens=(
        Golden("unj@2", (_TWO_OF_FOUR_JUDGED,), ("1/2",)),
        Golden("unj@10", (_TWO_OF_FOUR_JUDGED,), ("2/10",), note="places without an item are not unjudged items"),
        Golden("unj@2", (_NOTHING_RELEVANT, Ranking([], missed=[1])), ("1/2", "0"), note="relevant or not"),
        Golden("unj@2", (Ranking([-1, 1]),), ("1/2",), note="pooled and not judged"),
    ),
)
def unjudged_share(cut: CutLists) -> FloatMatrix:
    """Unjudged items among the first k recommendations, per place.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a list. Never undefined.

    Notes
    -----
    ``|{i <= k : item i has no judgement}| / k``. A negative gain marks an item of the pool that was not judged.
    Where there is none, it equals 1 - Judged@k for lists of at least k items; in a shorter one the places that it does
    not fill count as if they were judged.

    Examples
    --------
    Judgements at ranks 2 and 3 of 4:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> unjudged_share(Lists.of([Ranking([None, 1, 0, None])]).cut([1, 2, 10]))
    array([[1. , 0.5, 0.2]])
    """
    return (cut.n_items - cut.sum_hits((cut.lists.hit_gain >= 0).astype(np.float64))) / cut.k


@Definition(
    name="Bpref",
    formula="(1 / R) sum over relevant recommended items of 1 - min(b, R) / min(N, R); b judged non-relevant items "
    "above it, N of them in all",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Buckley & Voorhees (2004), Retrieval evaluation with incomplete information; trec_eval bpref",
    cutoff=Cutoff("forbidden"),
    parts=binary_preference_parts,
    takes_judged_only=False,
    goldens=(
        Golden("Bpref", (Ranking([None, 1, 0, 1], missed=[1, 0]),), ("(1 + (1 - 1/2)) / 3",), note="N = 2"),
        Golden("Bpref", (Ranking([0, 0, 1], missed=[0, 0]),), ("1 - 1/1",), note="min(b, R) / min(N, R) with R = 1"),
        Golden("Bpref", (Ranking([None, None, 1]),), ("1",), note="items without a judgement do not count"),
        Golden("Bpref", (Ranking([-1, 1], missed=[0]),), ("1",), note="nor do those whose judgement is negative"),
        Golden(
            "Bpref(agg='micro')", (Ranking([1], missed=[1, 1]), Ranking([1])), ("1/3", "1"), mean="(1 + 1) / (3 + 1)"
        ),
        Golden("Bpref", (_NOTHING_RELEVANT,), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def binary_preference(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """How seldom an item judged as not relevant is above a relevant one.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant; from 0 to below it, the item is judged as not relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 / R) sum over relevant recommended items of 1 - min(b, R) / min(N, R)``, b being the items above that were
    judged as not relevant and N all of them; the item adds 1 where b = 0. Items without a judgement are left out, and
    so are those with a negative one, which in trec_eval marks an item that was pooled and not judged. Of use only
    where irrelevant items are judged: with held-out interactions alone it is the recall of the whole list.

    Examples
    --------
    Relevant items at ranks 2 and 4, the second below one of two that are not; a third one is missing:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> binary_preference(Lists.of([Ranking([None, 1, 0, 1], missed=[1, 0])]).cut([0]))
    array([[0.5]])
    """
    total, n_relevant = binary_preference_parts(cut, rel=rel)
    return where_defined(ratio(total, n_relevant), n_relevant > 0)


@Definition(
    name="infAP",
    formula="(1 / R) sum over relevant recommended items, at rank i, of 1/i + (j/i) (a + e) / (a + b + 2 e); "
    "j judged items above it, a relevant, b not relevant; e = 0.00001",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments; trec_eval "
    "infAP",
    aliases={"InferredAP": {}},
    cutoff=Cutoff("forbidden"),
    bounded_by_gains=False,
    parts=inferred_average_precision_parts,
    takes_judged_only=False,
    goldens=(
        Golden("infAP", (Ranking([1, None, 1]),), ("(1 + (1/3 + 1/3 * 1.00001 / 1.00002)) / 2",), note="AP is 5/6"),
        Golden("infAP", (Ranking([0, 1], missed=[1]),), ("(1/2 + 1/2 * 0.00001 / 1.00002) / 2",)),
        Golden("infAP", (Ranking([-1, 1]),), ("1/2 + 1/2 * 1/2",), note="pooled and not judged: relevant or not"),
        Golden(
            "infAP(agg='micro')",
            (Ranking([-1, 1]), Ranking([1], missed=[1])),
            ("3/4", "1/2"),
            mean="(3/4 + 1) / (1 + 2)",
        ),
        Golden("infAP", (_NOTHING_RELEVANT,), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def inferred_average_precision(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Average precision as estimated from a sample of the judgements.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant; from 0 to below it, the item is judged as not relevant. A negative
        gain marks an item of the pool that was not judged.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 / R) sum 1/i + ((i-1)/i) (j/(i-1)) (a+e)/(a+b+2e)`` over the relevant recommended items. Here i is the rank, j
    the pooled items above it (judged or not), a and b those judged as relevant and as not relevant, e = 0.00001. The
    share of relevant items among those judged above estimates that of the pool; items outside of the pool count as
    not relevant. Where all of the pool is judged it is AP up to e.

    Examples
    --------
    An item that was pooled and not judged, then a relevant one: 1/2 + 1/2 * 1/2.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> inferred_average_precision(Lists.of([Ranking([-1, 1])]).cut([0]))
    array([[0.75]])
    """
    total, n_relevant = inferred_average_precision_parts(cut, rel=rel)
    return where_defined(ratio(total, n_relevant), n_relevant > 0)


def _n_judged(cut: CutLists) -> FloatMatrix:
    """Items at ranks 1..k that have a judgement: shape (n_lists, n_cutoffs)."""
    return cut.once("judged", lambda: cut.sum_hits(np.ones(len(cut.lists.hit_rank))))


def _is_nonrelevant(gains: FloatVector, rel: float) -> NDArray[np.bool_]:
    """Whether a judgement says that the item is not relevant; a negative one says nothing."""
    return (gains >= 0) & (gains < rel)


def _nonrelevant_above(cut: CutLists, rel: float) -> FloatVector:
    """Items judged as not relevant at the rank of each hit or above it: shape (n_hits,)."""
    lists = cut.lists

    def count() -> FloatVector:
        flags = _is_nonrelevant(lists.hit_gain, rel).astype(np.float64)
        return running_count_by_list(flags, lists.hit_list, n_lists=lists.n_lists)

    return lists.once(("nonrelevant above", rel), count)
