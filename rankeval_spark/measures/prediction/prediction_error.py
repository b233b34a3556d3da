"""Distance of predicted ratings from the true ones, and of predicted probabilities from what happened."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import FloatVector, Ratio
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, NEVER_FILLED, Aggregation, Cutoff, Definition
from rankeval_spark.measures.lists import CutLists, Lists
from rankeval_spark.measures.options import Level, Meaning, option_text
from rankeval_spark.measures.required_facts import LIST_NAMES

Missing: TypeAlias = Annotated[
    Literal["drop", "error"],
    Meaning(
        "What a held-out pair without a score does: it is left out, and PredictedShare counts it; it ends the run."
    ),
]

NO_PREDICTION: Final = "no held-out pair of the user has a score"
NEGATIVE_RATING: Final = "a negative gain is a rating, as in Surprise"
NEGATIVE_CLASS: Final = "an item with a negative gain is not relevant, as -1 is in scikit-learn"
"""Where most measures take an item with a negative gain for one that was not judged."""

_GREATEST_ERROR: Final = 1e150  # its square, and the sum of more of them than a list has items, is a double

prediction_error = partial(
    Definition,
    bounds=(0, math.inf),
    undefined=NO_PREDICTION,
    cutoff=Cutoff("forbidden"),
    needs=lambda missing, **_: (HIT_SCORES, LIST_NAMES) if missing == "error" else (HIT_SCORES,),  # to name a list
    better="lower",
    aggregation=NEVER_FILLED,
    ties=ANY_ORDER_OF_TIES,
)


@prediction_error(
    name="RMSE",
    formula="sqrt((1 / n) sum over predicted pairs of (score - gain)^2)",
    source=f"LensKit, Surprise and RecTools RMSE; {NEGATIVE_RATING}",
    aggregation=Aggregation(micro_link="square", without_relevant=math.nan),
)
def root_mean_squared_error(cut: CutLists, *, missing: Missing = "drop") -> Ratio:
    """Root of the mean squared difference between predicted and true ratings.

    ``sqrt((1 / n) sum (score - gain)^2)`` over the n held-out pairs of the user that the log holds: from 0, in units of
    the rating; NaN where no held-out pair of the user was predicted.

    >>> root_mean_squared_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0])).values.round(4)
    array([[0.3536]])
    """
    squared = mean_squared_error(cut, missing=missing)
    return Ratio(squared.numerator, squared.denominator, where=squared.where, value=np.sqrt(squared.values))


@prediction_error(
    name="MSE",
    formula="(1 / n) sum over predicted pairs of (score - gain)^2",
    source=f"Surprise MSE; {NEGATIVE_RATING}",
)
def mean_squared_error(cut: CutLists, *, missing: Missing = "drop") -> Ratio:
    """Mean squared difference between predicted and true ratings.

    ``(1 / n) sum (score - gain)^2``: from 0; NaN where no held-out pair of the user was predicted.

    >>> mean_squared_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0])).values
    array([[0.125]])
    """
    return mean_over_hits(cut.lists, _error(cut, missing) ** 2)


@prediction_error(
    name="MAE",
    formula="(1 / n) sum over predicted pairs of |score - gain|",
    source=f"LensKit, Surprise and RecTools MAE; {NEGATIVE_RATING}",
)
def mean_absolute_error(cut: CutLists, *, missing: Missing = "drop") -> Ratio:
    """Mean distance between predicted and true ratings.

    ``(1 / n) sum |score - gain|``: from 0, in units of the rating; NaN where no held-out pair of the user was
    predicted.

    >>> mean_absolute_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0])).values
    array([[0.25]])
    """
    return mean_over_hits(cut.lists, np.abs(_error(cut, missing)))


@Definition(
    name="PredictedShare",
    formula="n / |J|, n being the held-out pairs that have a score",
    undefined="no judgement",
    source=f"LensKit and Surprise report it as the share of predictions that were possible; {NEGATIVE_RATING}",
    cutoff=Cutoff("forbidden"),
    ties=ANY_ORDER_OF_TIES,
    judged_only=False,
)
def predicted_share(cut: CutLists) -> Ratio:
    """Share of the user's held-out pairs for which there is a prediction.

    ``n / |J|``: in [0, 1]; NaN where the user has no judgement.

    >>> predicted_share(Lists.of([Ranking([4, None, 1], missed=[2, 2])]).cut([0])).values
    array([[0.5]])
    """
    n_judged = cut.lists.n_judged
    return Ratio(np.minimum(cut.lists.n_hits, n_judged), n_judged, where=n_judged > 0)


def mean_over_hits(lists: Lists, values: FloatVector) -> Ratio:
    """Mean over the hits of each list; undefined without a hit."""
    n = lists.n_hits
    return Ratio(lists.sum_hits(values), n, where=n > 0)


def _error(cut: CutLists, missing: str) -> FloatVector:
    """Score less gain of each predicted pair; refuse what is infinite or near, and a pair that must not be missing."""
    if missing == "error":
        _refuse_unpredicted(cut)
    error = cut.lists.scores - cut.lists.hit_gain
    is_too_large = ~(np.abs(error) <= _GREATEST_ERROR)
    if is_too_large.any():
        found = f"a score of {option_text(float(cut.lists.scores[is_too_large][0]))} for a held-out item"
        expected = f"predicted ratings within {option_text(_GREATEST_ERROR)} of the true ones"
        fix = "leave RMSE, MSE and MAE out, or give the log predicted ratings for scores"
        raise JudgementError(Fault("measures", found, expected, fix))
    return error


def _refuse_unpredicted(cut: CutLists) -> None:
    """Refuse a batch in which a held-out pair has no score; its first list is named, where the lists have names."""
    share = predicted_share(cut)
    n_missing = (share.denominator - share.numerator).sum(axis=1)
    if n_missing.any():
        of_items = f"{int(n_missing.sum())} of {int(share.denominator.sum())} held-out items"
        found = f"{of_items} without a score, in {np.count_nonzero(n_missing)} of {len(n_missing)} lists"
        names = cut.lists.names
        found += "" if names is None else f", such as that of {names[int(np.argmax(n_missing > 0))]}"
        fix = "score them, or leave missing out: PredictedShare, below 1 in user_metrics, tells whose they are"
        raise JudgementError(Fault("measures, missing='error'", found, "a score for every held-out item", fix))


SMALLEST: Final = 1e-15
"""A probability nearer to 0 or 1 than this is taken for this near, because the logarithm of 0 is infinite."""


@prediction_error(
    name="LogLoss",
    formula="-(1 / n) sum over predicted pairs of y ln p + (1 - y) ln(1 - p), y = 1[gain >= rel], p the score",
    bounds=(0, -math.log(SMALLEST)),
    source=f"scikit-learn log_loss; RecBole; {NEGATIVE_CLASS}",
    aliases={"CrossEntropy": {}},
    needs=(HIT_SCORES,),
)
def log_loss(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Mean negative logarithm of the probability that the model gave to what happened.

    ``-(1 / n) sum y ln p + (1 - y) ln(1 - p)``, p kept between 1e-15 and 1 - 1e-15: from 0 to 15 ln 10; NaN where no
    held-out pair of the user was predicted.

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
