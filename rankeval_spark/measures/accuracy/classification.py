"""Lists as classifications of the whole catalogue: what is in the first k is said to be relevant, all else not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.shared_options import Level

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolMatrix

_UNDEFINED: Final = "no relevant judgement (R = 0); a catalogue of fewer items than k and those that were missed"


class _Confusion(NamedTuple):
    """How the items of the catalogue are classified, as counts: shape (n_lists, n_cutoffs)."""

    true_positive: FloatMatrix
    false_positive: FloatMatrix
    false_negative: FloatMatrix
    true_negative: FloatMatrix

    @classmethod
    def of(cls, cut: CutLists, rel: float) -> _Confusion:
        hits = cut.hits(rel)
        missed = cut.n_relevant(rel) - hits
        # The whole list, which has no k, is never requested.
        places = np.where(np.isfinite(cut.k), cut.k, 0.0)
        return cls(hits, places - hits, missed, _catalogue_size(cut) - places - missed)

    def is_defined(self, cut: CutLists, rel: float) -> BoolMatrix:
        """Whether there is something to find, and the catalogue holds what was recommended and what was missed."""
        return (cut.n_relevant(rel) > 0) & (self.true_negative >= 0)


def _catalogue_size(cut: CutLists) -> FloatMatrix:
    return cut.lists.known_items.totals[required_facts.CATALOGUE_ITEMS][:, None]


@Definition(
    name="ClassAccuracy",
    formula="(TP + TN) / |T|, TP = h_k, TN = |T| - k - (R - h_k)",
    undefined=_UNDEFINED,
    source="RecTools Accuracy",
    cutoff=Cutoff("required"),
    needs=(required_facts.CATALOGUE_ITEMS,),
    needs_catalogue=True,
)
def class_accuracy(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of the catalogue that the first k places classify rightly; not recommended.

    ``(h_k + TN) / |T|`` with ``TN = |T| - k - (R - h_k)``: in [0, 1]; NaN where the user has no relevant judgement, or
    the catalogue fewer items than k and those missed.

    >>> from rankeval_spark.measures import Background, Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, None], missed=[1], background=Background(catalogue=10))])
    >>> class_accuracy(batch.cut([1, 3]))
    array([[0.9, 0.7]])
    """
    table = _Confusion.of(cut, rel)
    right = table.true_positive + table.true_negative
    return where_defined(ratio(right, _catalogue_size(cut)), table.is_defined(cut, rel))


@Definition(
    name="MCC",
    formula="(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)); 0 where the root is 0",
    bounds=(-1, 1),
    undefined=_UNDEFINED,
    source="Matthews (1975); RecTools MCC",
    cutoff=Cutoff("required"),
    needs=(required_facts.CATALOGUE_ITEMS,),
    needs_catalogue=True,
)
def matthews_correlation(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Correlation of being among the first k with being relevant, over the whole catalogue; not recommended.

    ``(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN))``: in [-1, 1]. NaN where the user has no relevant
    judgement, or the catalogue has fewer items than k and those missed.

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
