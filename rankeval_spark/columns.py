"""Names of columns, explained in ``docs/glossary.md``, and the limits that several layers share."""

from __future__ import annotations

from typing import Final

EVALUATION: Final = "evaluation"
EVALUATION_DATE: Final = "evaluation_date"
RUN_ID: Final = "run_id"

MODEL_ID: Final = "model_id"
BASELINE_MODEL_ID: Final = "baseline_model_id"
USER_ID: Final = "user_id"
ITEM_ID: Final = "item_id"
LIST_ID: Final = "list_id"
SCORE: Final = "score"
RANK: Final = "rank"
BASELINE_RANK: Final = "baseline_rank"
GAIN: Final = "gain"
PREDICTED_REWARD: Final = "predicted_reward"
PROPENSITY: Final = "propensity"
WEIGHT: Final = "weight"
INTERACTED_AT: Final = "interacted_at"
RECOMMENDED_AT: Final = "recommended_at"
CATEGORIES: Final = "categories"
VECTOR: Final = "vector"
PUBLISHED_AT: Final = "published_at"
TITLE: Final = "title"
NAME: Final = "name"

K: Final = "k"
MEASURE: Final = "measure"
VALUE: Final = "value"
SEGMENTS: Final = "segments"
SLICE: Final = "slice"
SLICE_VALUE: Final = "slice_value"
SLICE_VALUES: Final = "slice_values"

N_JUDGED: Final = "n_judged"
N_RELEVANT: Final = "n_relevant"
N_RECOMMENDED: Final = "n_recommended"
N_HITS: Final = "n_hits"
N_DUPLICATES: Final = "n_duplicates"
N_LISTS: Final = "n_lists"
HAS_TIES: Final = "has_ties"
QUANTILES: Final = "quantiles"
QUANTILE_ERROR: Final = "quantile_error"
HIT_RANKS: Final = "hit_ranks"
HIT_GAINS: Final = "hit_gains"
JUDGED_GAINS: Final = "judged_gains"
TIED_RANKS: Final = "tied_ranks"
HIT_SCORES: Final = "hit_scores"  # scores of the hits; measures that need them name it too
# First and last of consecutive ranks without an item, where lists keep the ranks of the log.
EMPTY_RANKS: Final = "empty_ranks"
HAS_RANK_GAPS: Final = "has_rank_gaps"
IS_OUT_OF_ORDER: Final = "is_out_of_order"
# Faults of the ranks of the log, by list; present where the log has ranks and they are renumbered.
OF_RANKS: Final = (HAS_RANK_GAPS, IS_OUT_OF_ORDER)
# Facts of the recommended items of a list. It and the next four exist where a measure needs them; not published.
ITEM_FACTS: Final = "_items"
PROFILE: Final = "_profile"  # facts of the user from the training data
TOTALS: Final = "_totals"  # totals of the training data
PAIRS: Final = "_pairs"  # similar items of a list
OTHER_LISTS: Final = "_other_lists"  # lists of named models for the same user
FACTS: Final = (ITEM_FACTS, TOTALS, PROFILE, PAIRS, OTHER_LISTS)
SEEN: Final = "_seen"  # number of recommended items that the user has in the training data; not published
# Facts from the times of a list's rows and of its user's interactions, where they are attributed by time: a struct of
# counts. Not published.
TIMING: Final = "_timing"
# Sum of the sizes of a list's scores, where these are probabilities of showing its items; not published.
SCORE_SUM: Final = "_score_sum"
FOR_CHECKS: Final = (*OF_RANKS, SEEN, TIMING, SCORE_SUM)  # columns of lists that only the checks read
# Item groups of the hits of a list as bits, by rank, where a measure is restricted to a group; not published.
HIT_GROUPS: Final = "_hit_groups"
JUDGED_GROUPS: Final = "_judged_groups"  # item groups of all judgements of the user, in the order of ``judged_gains``
HIT_VALUES: Final = "_hit_values"  # values of the hits, where a measure reads them; not published
JUDGED_VALUES: Final = "_judged_values"  # values of all judgements of the user, in the order of ``judged_gains``
HIT_PROPENSITIES: Final = "_hit_propensities"  # propensities of the hits, where a measure reads them; not published
HIT_PREDICTIONS: Final = "_hit_predictions"  # predicted rewards of the hits, where a measure reads them; not published
# Sum over the items of the list of score times predicted reward; not published.
PREDICTED_VALUE: Final = "_predicted_value"
HIT_WEIGHTS: Final = "_hit_weights"  # weights of the hits, where a measure reads them; not published
JUDGED_WEIGHTS: Final = "_judged_weights"  # weights of all judgements of the user, in the order of ``judged_gains``
OF_JUDGEMENTS: Final = (
    *(HIT_VALUES, JUDGED_VALUES, HIT_PROPENSITIES, HIT_PREDICTIONS, HIT_WEIGHTS, JUDGED_WEIGHTS),
    *(HIT_GROUPS, JUDGED_GROUPS),
)
USER_VALUES: Final = "_user_values"  # own values of the user of a list, a struct by name; not published
USER_WEIGHT: Final = "_user_weight"  # weight of the user of a list in the means; not published
OF_USERS: Final = (USER_VALUES, USER_WEIGHT)
READ_BY_MEASURES: Final = (*FACTS, *OF_JUDGEMENTS, PREDICTED_VALUE, *OF_USERS)

WHOLE_LIST: Final = 0  # value of ``k`` that means no cutoff
ALL_USERS: Final = "all"  # name of the slice of all users; its ``slice_value`` is empty
CROSSING: Final = "*"  # joins the names, and the readable values, of a slice by several segments
UNKNOWN: Final = "(unknown)"  # text of a segment value that is NULL
POOLED: Final = "pooled"  # ``test`` of rows of ``comparisons`` over several nights
ONE_LIST: Final = ""  # ``list_id`` where the log has one list per user
ONE_MODEL: Final = "model"  # ``model_id`` where the log does not name its model
LIST_KEY: Final = (MODEL_ID, USER_ID, LIST_ID)  # key of a list
SEGMENT_KEY: Final = (USER_ID,)  # key of the segments of a user
RUN_KEY: Final = (EVALUATION, EVALUATION_DATE, RUN_ID)  # first columns of every published table
MAX_ROWS_PER_USER: Final = 5_000_000  # rows of one user in all inputs together above which a run fails
MIN_USERS: Final = 30  # users below which a comparison has no p-value: the default of ``min_slice_size``
UNPAIRED: Final = "unpaired"  # test of two models, or nights, that do not have the same users
DECIDING: Final = (
    "t",
    UNPAIRED,
)  # tests with verdicts in ``comparisons``: one of them for each two models
MIN_NIGHTS: Final = 7  # earlier nights below which there is no band of expected means
# Error of the mean of many values, relative to their size, that decides no verdict and is no difference.
ROUNDING: Final = 1e-12
_QUOTE: Final = '"'


def readable_value(value: str | None) -> str:
    """Write the value of a segment unambiguously.

    A text that is :data:`UNKNOWN`, contains :data:`CROSSING` or begins with a quote is in double quotes, with quotes in
    it doubled.

    >>> " ".join(map(readable_value, ("DE", None, "(unknown)", "a*b", 'the "a"')))
    'DE (unknown) "(unknown)" "a*b" the "a"'
    """
    if value is None:
        return UNKNOWN
    if value == UNKNOWN or CROSSING in value or value.startswith(_QUOTE):
        return f"{_QUOTE}{value.replace(_QUOTE, 2 * _QUOTE)}{_QUOTE}"
    return value


def quoted_name(name: str) -> str:
    """Quote a column's name, or a part of a table's, so that Spark takes its dots for letters.

    >>> quoted_name("a.b"), quoted_name("a`b")
    ('`a.b`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"
