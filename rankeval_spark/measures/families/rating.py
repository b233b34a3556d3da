"""How near the predicted ratings of held-out pairs come to the true ones: the score predicts the gain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.needs import LIST_NAMES
from rankeval_spark.measures.options import Level, show
from rankeval_spark.measures.registry import Cutoff, Definition

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.lists import Lists

Missing: TypeAlias = Literal["drop", "error"]
"""What a held-out pair without a score does: it is left out; it ends the run."""

_NO_PREDICTION = "no held-out pair of the user has a score"
_TWO_PREDICTED = Ranking([4, None, 1], missed=[5], scores=[3, 3, 3])
_ONE_PREDICTED = Ranking([2], scores=[6])
_ALL_PREDICTED = Ranking([4, None, 1], scores=[3, 3, 3])
_NONE_PREDICTED = Ranking([None], missed=[4], scores=[3])

SMALLEST: Final = 1e-15
"""A probability nearer to 0 or 1 than this is taken for this near, because the logarithm of 0 is infinite."""

_GREATEST_ERROR: Final = 1e150
"""Its square, and the sum of more of them than a list has items, is a double."""


def _names_of_refused(*, missing: Missing, **_: object) -> tuple[str, ...]:
    """Ask for the names of the lists where one may be refused."""
    return (LIST_NAMES,) if missing == "error" else ()


def squared_error_parts(cut: CutLists, *, missing: Missing = "drop") -> tuple[FloatMatrix, FloatMatrix]:
    """Sum of the squared errors of the predicted pairs, and their number."""
    return _total(cut.lists, _error(cut, missing) ** 2)


def absolute_error_parts(cut: CutLists, *, missing: Missing = "drop") -> tuple[FloatMatrix, FloatMatrix]:
    """Sum of the distances of the predicted pairs, and their number."""
    return _total(cut.lists, np.abs(_error(cut, missing)))


def predicted_share_parts(cut: CutLists) -> tuple[FloatMatrix, FloatMatrix]:
    """Predicted and all held-out pairs."""
    lists = cut.lists
    n_judged = lists.count_judged(np.ones(len(lists.judged_list), dtype=np.bool_))
    return np.minimum(n_hits(lists), n_judged), n_judged


def log_loss_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Sum of the negative logarithms of the predicted pairs, and their number."""
    return _total(cut.lists, _surprise(cut.lists, rel))


@Definition(
    name="RMSE",
    formula="sqrt((1 / n) sum over predicted pairs of (score - gain)^2)",
    bounds=(0, math.inf),
    undefined=_NO_PREDICTION,
    source="LensKit, Surprise and RecTools RMSE",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    needs_with=_names_of_refused,
    parts=squared_error_parts,
    micro_link="square",
    better="lower",
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("RMSE", (_TWO_PREDICTED, _ONE_PREDICTED), ("sqrt((1 + 4) / 2)", "4"), mean="(sqrt(5/2) + 4) / 2"),
        Golden(
            "RMSE(agg='micro')",
            (_TWO_PREDICTED, _ONE_PREDICTED),
            ("(1 + 4) / 2", "16"),
            mean="sqrt((1 + 4 + 16) / 3)",
            note="per user the mean squared error, whose root is taken of all pairs together",
        ),
        Golden("RMSE(missing='error')", (_ALL_PREDICTED,), ("sqrt((1 + 4) / 2)",), note="nothing is missing"),
        Golden("RMSE", (_NONE_PREDICTED,), (UNDEFINED,), note="the held-out item was not predicted"),
    ),
)
def root_mean_squared_error(cut: CutLists, *, missing: Missing = "drop") -> FloatMatrix:
    """Root of the mean squared difference between predicted and true ratings.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    missing : {"drop", "error"}
        What a held-out pair without a score does: it is left out, and PredictedShare counts it; it ends the run.

    Returns
    -------
    float64, shape (n_lists, 1)
        From 0, in units of the rating; NaN where no held-out pair of the user was predicted.

    Raises
    ------
    JudgementError
        With ``missing='error'``, if a held-out pair has no score.

    Notes
    -----
    ``sqrt((1 / n) sum (score - gain)^2)`` over the n held-out pairs of the user that the log holds: the score predicts,
    the gain is the truth. Pairs without a prediction are left out: publish PredictedShare with it. The mean is that
    of the users' roots, as in LensKit; with ``agg='micro'`` it is the root over all pairs, as in Surprise and RecTools.
    The value of a user is then their mean squared error, and ``std_dev`` and ``std_error`` are those of it.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> root_mean_squared_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0])).round(4)
    array([[0.3536]])
    """
    return np.sqrt(mean_squared_error(cut, missing=missing))


@Definition(
    name="MSE",
    formula="(1 / n) sum over predicted pairs of (score - gain)^2",
    bounds=(0, math.inf),
    undefined=_NO_PREDICTION,
    source="Surprise MSE",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    needs_with=_names_of_refused,
    parts=squared_error_parts,
    better="lower",
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("MSE", (_TWO_PREDICTED, _ONE_PREDICTED), ("(1 + 4) / 2", "16"), mean="(5/2 + 16) / 2"),
        Golden("MSE(agg='micro')", (_TWO_PREDICTED, _ONE_PREDICTED), ("5/2", "16"), mean="(1 + 4 + 16) / 3"),
        Golden("MSE(missing='error')", (_ALL_PREDICTED,), ("(1 + 4) / 2",), note="nothing is missing"),
        Golden("MSE", (_NONE_PREDICTED,), (UNDEFINED,), note="the held-out item was not predicted"),
    ),
)
def mean_squared_error(cut: CutLists, *, missing: Missing = "drop") -> FloatMatrix:
    """Mean squared difference between predicted and true ratings.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    missing : {"drop", "error"}
        What a held-out pair without a score does: it is left out, and PredictedShare counts it; it ends the run.

    Returns
    -------
    float64, shape (n_lists, 1)
        From 0; NaN where no held-out pair of the user was predicted.

    Raises
    ------
    JudgementError
        With ``missing='error'``, if a held-out pair has no score.

    Notes
    -----
    ``(1 / n) sum (score - gain)^2`` over the n held-out pairs of the user that the log holds.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> mean_squared_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0]))
    array([[0.125]])
    """
    return _mean(squared_error_parts(cut, missing=missing))


@Definition(
    name="MAE",
    formula="(1 / n) sum over predicted pairs of |score - gain|",
    bounds=(0, math.inf),
    undefined=_NO_PREDICTION,
    source="LensKit, Surprise and RecTools MAE",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    needs_with=_names_of_refused,
    parts=absolute_error_parts,
    better="lower",
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("MAE", (_TWO_PREDICTED, _ONE_PREDICTED), ("(1 + 2) / 2", "4"), mean="(3/2 + 4) / 2"),
        Golden("MAE(agg='micro')", (_TWO_PREDICTED, _ONE_PREDICTED), ("3/2", "4"), mean="(1 + 2 + 4) / 3"),
        Golden("MAE(missing='error')", (_ALL_PREDICTED,), ("(1 + 2) / 2",), note="nothing is missing"),
        Golden("MAE", (_NONE_PREDICTED,), (UNDEFINED,), note="the held-out item was not predicted"),
    ),
)
def mean_absolute_error(cut: CutLists, *, missing: Missing = "drop") -> FloatMatrix:
    """Mean distance between predicted and true ratings.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    missing : {"drop", "error"}
        What a held-out pair without a score does: it is left out, and PredictedShare counts it; it ends the run.

    Returns
    -------
    float64, shape (n_lists, 1)
        From 0, in units of the rating; NaN where no held-out pair of the user was predicted.

    Raises
    ------
    JudgementError
        With ``missing='error'``, if a held-out pair has no score.

    Notes
    -----
    ``(1 / n) sum |score - gain|`` over the n held-out pairs of the user that the log holds.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> mean_absolute_error(Lists.of([Ranking([4, None, 1], scores=[4.5, 4, 1])]).cut([0]))
    array([[0.25]])
    """
    return _mean(absolute_error_parts(cut, missing=missing))


@Definition(
    name="PredictedShare",
    formula="n / |J|, n being the held-out pairs that have a score",
    bounds=(0, 1),
    undefined="no judgement",
    source="LensKit and Surprise report it as the share of predictions that were possible",
    cutoff=Cutoff("forbidden"),
    parts=predicted_share_parts,
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("PredictedShare", (_TWO_PREDICTED, _NONE_PREDICTED), ("2/3", "0"), mean="1/3"),
        Golden("PredictedShare(agg='micro')", (_TWO_PREDICTED, _NONE_PREDICTED), ("2/3", "0"), mean="2/4"),
        Golden("PredictedShare", (Ranking([None]),), (UNDEFINED,), note="nothing was held out"),
    ),
)
def predicted_share(cut: CutLists) -> FloatMatrix:
    """Share of the user's held-out pairs for which there is a prediction.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN where the user has no judgement.

    Notes
    -----
    ``n / |J|``. A model that predicts the easy pairs only has a small RMSE and a small share. An item that the log
    keeps twice (``duplicates='keep'``) counts twice, up to all of them.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> predicted_share(Lists.of([Ranking([4, None, 1], missed=[2, 2])]).cut([0]))
    array([[0.5]])
    """
    return _mean(predicted_share_parts(cut))


@Definition(
    name="LogLoss",
    formula="-(1 / n) sum over predicted pairs of y ln p + (1 - y) ln(1 - p), y = 1[gain >= rel], p the score",
    bounds=(0, -math.log(SMALLEST)),
    undefined=_NO_PREDICTION,
    source="scikit-learn log_loss; RecBole",
    aliases={"CrossEntropy": {}},
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    parts=log_loss_parts,
    better="lower",
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("LogLoss", (Ranking([1, None, 0], scores=[0.75, 0.5, 0.25]),), ("-ln(3/4)",), note="right both times"),
        Golden("LogLoss", (Ranking([0], scores=[1]),), ("15 * ln(10)",), note="sure and wrong: p is at most 1 - 1e-15"),
        Golden(
            "LogLoss(agg='micro')",
            (Ranking([1, 1], scores=[1, 1]), Ranking([1], scores=[0.5])),
            ("-ln(1 - 1/10**15)", "ln(2)"),
            mean="(ln(2) - 2 * ln(1 - 1/10**15)) / 3",
        ),
        Golden("LogLoss(rel=2)", (Ranking([1], scores=[0.75]),), ("-ln(1/4)",), note="relevant from gain 2 on"),
        Golden("LogLoss", (_NONE_PREDICTED._replace(scores=[0.5]),), (UNDEFINED,)),
    ),
)
def log_loss(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Mean negative logarithm of the probability that the model gave to what happened.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores in [0, 1], and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, 1)
        From 0 to 15 ln 10; NaN where no held-out pair of the user was predicted.

    Raises
    ------
    JudgementError
        If a score is not a probability.

    Notes
    -----
    ``-(1 / n) sum y ln p + (1 - y) ln(1 - p)`` over the n held-out pairs that the log holds, p kept between 1e-15 and
    1 - 1e-15. It says something only where items that are not relevant were held out and scored too.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> log_loss(Lists.of([Ranking([1, 0], scores=[0.9, 0.2])]).cut([0])).round(4)
    array([[0.1643]])
    """
    return _mean(log_loss_parts(cut, rel=rel))


def n_hits(lists: Lists) -> FloatMatrix:
    """Count the judged items of each list: float64, shape (n_lists, 1)."""
    return np.bincount(lists.hit_list, minlength=lists.n_lists)[:, None].astype(np.float64)


def _total(lists: Lists, worth: FloatVector) -> tuple[FloatMatrix, FloatMatrix]:
    """Sum over the hits of each list, and count them."""
    return sum_by_list(lists.hit_list, worth, n_lists=lists.n_lists)[:, None], n_hits(lists)


def _mean(parts: tuple[FloatMatrix, FloatMatrix]) -> FloatMatrix:
    """Divide a sum by what it is over; NaN where that is nothing."""
    total, n = parts
    return where_defined(ratio(total, n), n > 0)


def _error(cut: CutLists, missing: Missing) -> FloatVector:
    """Score less gain of each predicted pair; refuse what is infinite or near, and a pair that must not be missing."""
    if missing == "error":
        _refuse_unpredicted(cut)
    error = cut.lists.scores - cut.lists.hit_gain
    is_too_large = ~(np.abs(error) <= _GREATEST_ERROR)
    if is_too_large.any():
        found = f"a score of {show(float(cut.lists.scores[is_too_large][0]))} for a held-out item"
        expected = f"predicted ratings within {show(_GREATEST_ERROR)} of the true ones"
        fix = "leave RMSE, MSE and MAE out, or give the log predicted ratings for scores"
        raise JudgementError(Fault("measures", found, expected, fix))
    return error


def _refuse_unpredicted(cut: CutLists) -> None:
    """Refuse a batch in which a held-out pair has no score; its first list is named, where the lists have names."""
    predicted, judged = predicted_share_parts(cut)
    n_missing = (judged - predicted).sum(axis=1)
    if n_missing.any():
        of_items = f"{int(n_missing.sum())} of {int(judged.sum())} held-out items"
        found = f"{of_items} without a score, in {np.count_nonzero(n_missing)} of {len(n_missing)} lists"
        names = cut.lists.names
        found += "" if names is None else f", such as that of {names[int(np.argmax(n_missing > 0))]}"
        fix = "score them, or leave missing out: PredictedShare, below 1 in user_metrics, tells whose they are"
        raise JudgementError(Fault("measures, missing='error'", found, "a score for every held-out item", fix))


def _surprise(lists: Lists, rel: float) -> FloatVector:
    """Negative logarithm of the probability of what happened, for each hit."""
    scores = lists.scores
    is_outside = (scores < 0) | (scores > 1)
    if is_outside.any():
        found = f"a score of {show(float(scores[is_outside][0]))} for a held-out item"
        fix = "leave LogLoss out, or give the log probabilities for scores"
        raise JudgementError(Fault("measures, LogLoss", found, "probabilities, from 0 to 1", fix))
    # The probability of the other outcome is subtracted here: 1 - 1e-15 itself has no sixteen digits.
    of_truth = np.where(lists.relevance(rel).is_relevant > 0, scores, 1 - scores)
    surprise: FloatVector = -np.log(np.clip(of_truth, SMALLEST, 1 - SMALLEST))
    return surprise
