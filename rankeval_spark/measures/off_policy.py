"""Reward of a target policy, estimated from what a logging policy showed: importance sampling.

A judgement is one impression: its gain is the reward, such as 1 for a click, and its propensity the probability with
which the logging policy showed the item. The score of a recommended item is the probability with which the target
policy would show it; an item that it does not list it never shows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import Fault, JudgementError
from rankeval_spark.measures.arrays import FloatVector, Ratio
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.lists import CutLists, Lists
from rankeval_spark.measures.options import Above, option_text
from rankeval_spark.measures.required_facts import PREDICTIONS, PROPENSITIES

_NEEDS: Final = (HIT_SCORES, PROPENSITIES)
_REWARD: Final = "a negative gain is a reward, as in obp"

Limit: TypeAlias = Annotated[float, Above(0), "Largest weight of an impression; larger ones are set to it."]
Power: TypeAlias = Annotated[
    Literal["1", "2"],
    "Whether weights are averaged, or their squares: n mean(w)^2 / mean(w^2) is the effective sample size.",
]

estimator = partial(
    Definition,
    bounds=(-math.inf, math.inf),
    undefined="the user has no impression",
    cutoff=Cutoff("forbidden"),
    needs=_NEEDS,
    default_agg="micro",
    without_relevant=0.0,
    is_bounded_by_gains=True,
    group=False,
    judged_only=False,
)


@estimator(
    name="IPS",
    words="inverse propensity score, inverse propensity weighting, importance sampling, Horvitz-Thompson estimator, "
    "off-policy evaluation, counterfactual evaluation",
    aliases={
        "InverseProbabilityWeighting": {},
        "IPW": {},
        "InversePropensityScore": {},
        "InversePropensityScoring": {},
        "InversePropensityWeighting": {},
    },
    formula="(1 / |J|) sum over impressions of w g, w = score / propensity",
    source=f"Horvitz and Thompson (1952); Strehl et al. (2010); obp InverseProbabilityWeighting; {_REWARD}",
)
def inverse_propensity_score(cut: CutLists) -> Ratio:
    """Mean reward that the target policy would have had, by inverse propensity scores.

    In units of the gain; items that are not listed add 0. Unbiased where the logging policy can show whatever the
    target policy can.

    >>> batch = Lists.of([Ranking([1, 0], missed=[1], scores=[0.5, 0.25], propensities=[0.25, 0.5])])
    >>> inverse_propensity_score(batch.cut([0])).values.round(4)
    array([[0.6667]])
    """
    lists = cut.lists
    return Ratio(lists.sum_hits(_importance_weights(lists) * lists.hit_gain), lists.n_judged)


@estimator(
    name="ClippedIPS",
    words="clipped inverse propensity score, capped importance sampling, truncated importance sampling",
    formula="(1 / |J|) sum over impressions of min(w, limit) g",
    bias="the interval is around the mean with cut weights, a biased value, not around the target's reward",
    source=f"Ionides (2008), Truncated importance sampling; {_REWARD}",
)
def clipped_inverse_propensity_score(cut: CutLists, *, limit: Limit = 10) -> Ratio:
    """Mean reward as IPS has it, with weights that are cut off: less variance, at the price of a bias towards 0.

    In units of the gain. Its interval is around that biased mean: more impressions make it narrow, and do not bring it
    nearer to the reward of the target policy. No impression tells how large the bias is.

    >>> batch = Lists.of([Ranking([1, 0], missed=[1], scores=[0.5, 0.25], propensities=[0.25, 0.5])])
    >>> clipped_inverse_propensity_score(batch.cut([0]), limit=1).values.round(4)
    array([[0.3333]])
    """
    lists = cut.lists
    return Ratio(lists.sum_hits(np.minimum(_importance_weights(lists), limit) * lists.hit_gain), lists.n_judged)


@estimator(
    name="SNIPS",
    words="self-normalized inverse propensity score, weighted importance sampling, Hájek estimator",
    aliases={
        "SelfNormalizedIPS": {},
        "SelfNormalizedInverseProbabilityWeighting": {},
        "SelfNormalizedInversePropensityScore": {},
    },
    formula="sum over impressions of w g / sum of w",
    bias="the interval is around a value with a bias of order 1 / n: small only where the effective sample is large",
    undefined="the target policy would show none of the user's impressions",
    source="Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual learning; obp "
    "SelfNormalizedInverseProbabilityWeighting; "
    f"{_REWARD}",
    without_relevant=math.nan,
)
def self_normalised_inverse_propensity_score(cut: CutLists) -> Ratio:
    """Mean reward by weights that are divided by their sum: within the range of the rewards, slightly biased.

    Between the least and the greatest gain. The bias is of order 1 / n, as that of any ratio of sums: small against the
    interval where the effective sample is large.

    >>> batch = Lists.of([Ranking([1, 0], missed=[1], scores=[0.5, 0.25], propensities=[0.25, 0.5])])
    >>> self_normalised_inverse_propensity_score(batch.cut([0])).values
    array([[0.8]])
    """
    lists, weights = cut.lists, _importance_weights(cut.lists)
    return Ratio(lists.sum_hits(weights * lists.hit_gain), lists.sum_hits(weights))


@estimator(
    name="DR",
    words="doubly robust estimator, augmented inverse propensity weighting, AIPW",
    aliases={"DoublyRobust": {}},
    formula="(1 / |J|) sum over impressions of v + w (g - q), v = sum over the list of score q",
    source=f"Dudík et al. (2011), Doubly robust policy evaluation and learning; obp DoublyRobust; {_REWARD}",
    needs=(*_NEEDS, PREDICTIONS),
)
def doubly_robust(cut: CutLists) -> Ratio:
    """Mean reward that a model of the rewards predicts, corrected by the weighted errors of its predictions.

    q is the predicted reward of the shown item, v that of the target policy, in units of the gain. Unbiased where the
    propensities are right or the predictions are, and less variable than IPS where predictions are good.

    >>> shown = Ranking([1, None], scores=[0.5, 0.25], propensities=[0.25, 1], predictions=[0.5, 0.25])
    >>> doubly_robust(Lists.of([shown]).cut([0])).values  # 0.5 * 0.5 + 0.25 * 0.25 + 2 * (1 - 0.5)
    array([[1.3125]])
    """
    lists, n_judged, weights = cut.lists, cut.lists.n_judged, _importance_weights(cut.lists)
    predicted, expected = lists.predictions  # (n_hits,), (n_lists,)
    if not np.isfinite(expected[n_judged[:, 0] > 0]).all():
        found = "a predicted_reward that is NULL, NaN or infinite"
        fix = "predict the reward of every item that the target policy shows"
        raise JudgementError(Fault("measures", found, "a number for each item with a score above 0", fix))
    errors = np.where(weights > 0, weights * (lists.hit_gain - predicted), 0.0)
    return Ratio(lists.sum_hits(errors) + n_judged * expected[:, None], n_judged)


@estimator(
    name="ImportanceWeight",
    words="mean importance weight, average weight of impressions, weight check",
    formula="(1 / |J|) sum over impressions of w",
    bounds=(0, math.inf),
    source=f"Owen (2013), Monte Carlo theory, methods and examples, chapter 9; {_REWARD}",
    better="neither",
)
def importance_weight(cut: CutLists, *, power: Power = "1") -> Ratio:
    """Mean weight of the impressions: near 1 where propensities and target probabilities are what they say.

    With ``power='2'`` it is the mean of w^2.

    >>> batch = Lists.of([Ranking([1, 0], missed=[1], scores=[0.5, 0.25], propensities=[0.25, 0.5])])
    >>> importance_weight(batch.cut([0])).values.round(4), importance_weight(batch.cut([0]), power="2").values.round(4)
    (array([[0.8333]]), array([[1.4167]]))
    """
    return Ratio(cut.lists.sum_hits(_importance_weights(cut.lists) ** int(power)), cut.lists.n_judged)


def _importance_weights(lists: Lists) -> FloatVector:
    """Weight of each impression of a listed item; JudgementError for numbers that are no probability."""
    propensity, chance = lists.propensities, lists.scores
    for what, wrong, expected in (
        ("propensity", propensity[~((propensity > 0) & (propensity <= 1))], "above 0 to 1"),
        ("score", chance[~((chance >= 0) & (chance <= 1))], "from 0 to 1"),
    ):
        if len(wrong):
            found = f"a {what} of {option_text(float(wrong[0]))} for an impression"
            fix = "give scores that are probabilities of the target policy, and the propensities of the log"
            raise JudgementError(Fault("measures", found, f"a probability {expected}: that of showing the item", fix))
    return chance / propensity
