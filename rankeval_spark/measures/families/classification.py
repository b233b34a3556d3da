"""Lists as classifications of the whole catalogue: what is in the first k is said to be relevant, all else not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Background
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

_UNDEFINED = "no relevant judgement (R = 0); a catalogue of fewer items than k and those that were missed"
_TEN = Background(catalogue=10)
_ONE_OF_TWO = Ranking([1, None, None], missed=[1], background=_TEN)
_EVERYTHING = Ranking([1, None], background=Background(catalogue=2))


class _Confusion(NamedTuple):
    """How the items of the catalogue are classified, as counts: shape (n_lists, n_cutoffs)."""

    true_positive: FloatMatrix
    false_positive: FloatMatrix
    false_negative: FloatMatrix
    true_negative: FloatMatrix

    @classmethod
    def of(cls, cut: CutLists, rel: float) -> _Confusion:
        hits, size = cut.hits(rel), cut.lists.known_items.totals[needs.CATALOGUE_ITEMS][:, None]
        missed = cut.n_relevant(rel) - hits
        # The whole list, which has no k, is never requested.
        places = np.where(np.isfinite(cut.k), cut.k, 0.0)
        return cls(hits, places - hits, missed, size - places - missed)

    def is_defined(self, cut: CutLists, rel: float) -> np.ndarray:
        """Whether there is something to find, and the catalogue holds what was recommended and what was missed."""
        is_possible: np.ndarray = (cut.n_relevant(rel) > 0) & (self.true_negative >= 0)
        return is_possible


@Definition(
    name="ClassAccuracy",
    formula="(TP + TN) / |T|, TP = h_k, TN = |T| - k - (R - h_k)",
    bounds=(0, 1),
    undefined=_UNDEFINED,
    source="RecTools Accuracy",
    cutoff=Cutoff("required"),
    needs=(needs.CATALOGUE_ITEMS,),
    needs_catalogue=lambda **_: True,
    without_relevant=lambda **_: math.nan,
    takes_group=False,
    goldens=(
        Golden("ClassAccuracy@3", (_ONE_OF_TWO,), ("(1 + 6) / 10",), note="of 10 items 2 are wrong above, 1 below"),
        Golden("ClassAccuracy@1", (Ranking([None], missed=[1], background=_TEN),), ("8/10",), note="without a hit"),
        Golden("ClassAccuracy@5", (_EVERYTHING,), (UNDEFINED,), note="the catalogue has fewer than 5 items"),
    ),
)
def class_accuracy(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of the catalogue that the first k places classify rightly; not recommended.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement, or the catalogue fewer items than k and those missed.

    Notes
    -----
    ``(h_k + TN) / |T|`` with ``TN = |T| - k - (R - h_k)``; T are the items of the input ``items``, or without it those
    in ``train``. **Not recommended**: nearly all items of a catalogue are true negatives, so that any list, the empty
    one among them, scores near 1. It is here for comparison with RecTools. Missing ranks count as wrong.

    Examples
    --------
    A catalogue of ten; a hit at rank 1 of 3, and a relevant item that was missed:

    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, None], missed=[1], background=Background(catalogue=10))])
    >>> class_accuracy(batch.cut([1, 3]))
    array([[0.9, 0.7]])
    """
    table = _Confusion.of(cut, rel)
    total = cut.lists.known_items.totals[needs.CATALOGUE_ITEMS][:, None]
    return where_defined(ratio(table.true_positive + table.true_negative, total), table.is_defined(cut, rel))


@Definition(
    name="MCC",
    formula="(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)); 0 where the root is 0",
    bounds=(-1, 1),
    undefined=_UNDEFINED,
    source="Matthews (1975); RecTools MCC",
    cutoff=Cutoff("required"),
    needs=(needs.CATALOGUE_ITEMS,),
    needs_catalogue=lambda **_: True,
    without_relevant=lambda **_: math.nan,
    takes_group=False,
    goldens=(
        Golden("MCC@3", (_ONE_OF_TWO,), ("(1 * 6 - 2 * 1) / sqrt(3 * 2 * 8 * 7)",)),
        Golden("MCC@1", (Ranking([None], missed=[1], background=_TEN),), ("-1 / sqrt(1 * 1 * 9 * 9)",)),
        Golden("MCC@2", (_EVERYTHING,), ("0",), note="everything is recommended, nothing is told apart"),
    ),
)
def matthews_correlation(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Correlation of being among the first k with being relevant, over the whole catalogue; not recommended.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [-1, 1]. NaN where the user has no relevant judgement, or the catalogue has fewer items than k and those
        missed.

    Notes
    -----
    ``(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN))``. Here ``TP = h_k``, ``FP = k - h_k``,
    ``FN = R - h_k`` and ``TN = |T| - k - FN``; T as for ClassAccuracy. **Not recommended**: in a large catalogue it
    comes to the geometric mean of P@k and R@k, which say more separately.

    Examples
    --------
    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, None], missed=[1], background=Background(catalogue=10))])
    >>> matthews_correlation(batch.cut([3])).round(4)
    array([[0.2182]])
    """
    table = _Confusion.of(cut, rel)
    tp, fp, fn, tn = table
    is_defined = table.is_defined(cut, rel)
    root = np.sqrt(np.where(is_defined, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), 0.0))
    return where_defined(ratio(tp * tn - fp * fn, root), is_defined)
