"""How probable the model took what happened to be: the score is a probability of being relevant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, NEVER_FILLED, Cutoff, Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists, Lists
from rankeval_spark.measures.options import option_text
from rankeval_spark.measures.prediction.rating_error import NO_PREDICTION, mean_over_hits
from rankeval_spark.measures.prediction.roc_area import NEGATIVE_CLASS
from rankeval_spark.measures.shared_options import Level

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

SMALLEST: Final = 1e-15
"""A probability nearer to 0 or 1 than this is taken for this near, because the logarithm of 0 is infinite."""


@Definition(
    name="LogLoss",
    formula="-(1 / n) sum over predicted pairs of y ln p + (1 - y) ln(1 - p), y = 1[gain >= rel], p the score",
    bounds=(0, -math.log(SMALLEST)),
    undefined=NO_PREDICTION,
    source=f"scikit-learn log_loss; RecBole; {NEGATIVE_CLASS}",
    aliases={"CrossEntropy": {}},
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    better="lower",
    aggregation=NEVER_FILLED,
    ties=ANY_ORDER_OF_TIES,
)
def log_loss(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Mean negative logarithm of the probability that the model gave to what happened.

    ``-(1 / n) sum y ln p + (1 - y) ln(1 - p)``, p kept between 1e-15 and 1 - 1e-15: from 0 to 15 ln 10; NaN where no
    held-out pair of the user was predicted.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> log_loss(Lists.of([Ranking([1, 0], scores=[0.9, 0.2])]).cut([0])).values.round(4)
    array([[0.1643]])
    """
    return mean_over_hits(cut.lists, _surprise(cut.lists, rel))


def _surprise(lists: Lists, rel: float) -> FloatVector:
    """-ln of the probability of what happened, for each hit."""
    scores = lists.scores
    is_outside = (scores < 0) | (scores > 1)
    if is_outside.any():
        found = f"a score of {option_text(float(scores[is_outside][0]))} for a held-out item"
        fix = "leave LogLoss out, or give the log probabilities for scores"
        raise JudgementError(Fault("measures, LogLoss", found, "probabilities, from 0 to 1", fix))
    # The probability of the other outcome is subtracted here: 1 - 1e-15 itself has no sixteen digits.
    of_truth = np.where(lists.relevance(rel).is_relevant > 0, scores, 1 - scores)
    surprise: FloatVector = -np.log(np.clip(of_truth, SMALLEST, 1 - SMALLEST))
    return surprise
