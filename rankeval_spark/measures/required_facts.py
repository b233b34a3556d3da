"""Facts that kernels read in addition to ranks and gains, by the names under which measures declare them.

They cost joins, so they are collected only where a requested measure needs them. Those that begin with `item_`
are known of every recommended item, those with `total_` of all of them together, those with `profile_` of the user.
At the end: the groups of items to which a measure can be restricted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from rankeval_spark.measures.arrays import BoolVector, IntVector

ITEM_INTERACTIONS: Final = "item_interactions"  # c(i): interactions of the item in `train`; 0 where it has none
ITEM_USERS: Final = "item_users"  # U(i): users who have the item in `train`
ITEM_TAIL: Final = "item_tail"  # 1 for an item not among the fewest, most popular ones with 80 % of the interactions
ITEM_POPULARITY_GROUP: Final = "item_popularity_group"  # place of its group in BY_POPULARITY; 2, the tail, if unseen
ITEM_KNOWN: Final = "item_known"  # 1 for an item of the catalogue: `items` or, where there is no such input, `train`
ITEM_LEVEL: Final = "item_level"  # dense rank by interactions, 1 for those that have most; infinite if not in `train`
ITEM_PLACE: Final = "item_place"  # place by interactions, ties by item id, 1 for the first; infinite if not in `train`
# Rank of the item by users, the least popular first and equal ones sharing their mean, / |T|; 0 if not in `train`
ITEM_QUANTILE: Final = "item_quantile"
ITEM_SEEN: Final = "item_seen"  # 1 where the user has the item in `train`
# Mean similarity, by co-occurrence, of the item to those that the user has in `train`; NaN where they have none
ITEM_FAMILIARITY: Final = "item_familiarity"
ITEM_COPIES: Final = "item_copies"  # times that the item is in the list before repeated items are removed
ITEM_AGE: Final = "item_age"  # days from publication to the evaluation date; NaN where unknown
ITEM_CATEGORIES: Final = "item_categories"  # distinct categories of the item
ITEM_VECTORS: Final = "item_vectors"  # vector of the item
# Similarity of the pairs of items of a list by co-occurrence: users of both / sqrt(U(i) U(j)), where it is not 0
ITEM_PAIRS: Final = "item_pairs"
TOTAL_INTERACTIONS: Final = "total_interactions"  # C: all interactions in `train`
MOST_INTERACTIONS: Final = "total_most_interactions"  # c(i) of the most popular item
LEAST_INTERACTIONS: Final = "total_least_interactions"  # c(i) of the least popular item in `train`
TOTAL_USERS: Final = "total_users"  # |U|: users in `train`
TOTAL_CATEGORIES: Final = "total_categories"  # categories that any item of the catalogue has
CATALOGUE_ITEMS: Final = "total_catalogue_items"  # items of `items` or, where there is no such input, of `train`
PROFILE_CATEGORIES: Final = (
    "profile_categories"  # of the user's distinct items, each of which shares out 1 among its own
)
PROFILE_VECTORS: Final = "profile_vectors"  # mean of the unit vectors of the distinct items of the user in `train`
# Gain and categories of the judged items of the user that the catalogue gives a category, the highest ids first
JUDGED_CATEGORIES: Final = "judged_categories"
PROFILE_INTERACTIONS: Final = "profile_interactions"  # mean c(i) of the user's distinct items; 0 where they have none
# Items of the catalogue that the user has in `train`, and that no judgement of the user names
PROFILE_UNJUDGED: Final = "profile_unjudged"
OTHER_LISTS: Final = "other_lists"  # lists of named models for the same user: lengths, and which items are here too
ITEM_IDS: Final = "item_ids"  # id of the item, which only own measures read
ITEM_SCORES: Final = "item_scores"  # score of the item in the log; NaN without one
USER_VALUES: Final = "user_values"  # own values of the user, by the names that measures read
USER_WEIGHTS: Final = "user_weights"  # weight of the user in the means

# For measures of all lists together: lengths of the lists that hold an item; relevant judgements in each group of
# popularity, and the recommended of them; items of each group that can be recommended, and that are; items of a
# category and all items, among the recommended ones and in `train`; the items of `train` as the catalogue
LIST_LENGTHS: Final = "list_lengths"
GROUP_RELEVANT: Final = "group_relevant"
GROUP_AVAILABLE: Final = "group_available"
CATEGORY_SHARES: Final = "category_shares"
TRAINED_ITEMS: Final = "trained_items"
GROUP_SIZES: Final = ("total_head_items", "total_middle_items", "total_tail_items")  # of the catalogue

POPULARITY_GROUP: Final = "popularity_group"  # whether a judged item is in the head, the middle or the tail
HISTORY_GROUP: Final = "history_group"  # whether the user has a judged item in `train`, for groups of items
CATEGORY_GROUP: Final = "category_group"  # whether a judged item has a category
VALUES: Final = "judged_values"  # values of the judgements, other than their gains
WEIGHTS: Final = "judged_weights"  # weights of the judgements
PROPENSITIES: Final = "propensities"  # propensity of each judged item that is recommended
# Predicted reward of each judged item that is recommended; of each list, the sum of score times predicted reward
PREDICTIONS: Final = "predicted_rewards"
JUDGED_SEEN: Final = "judged_seen"  # whether the user has a judged item in `train`; no measure reads it, a check does

LOG: Final = "the rows of the log"  # in every run, but not in published lists and TREC files
TRAIN: Final = "train"
CATEGORIES: Final = "items.categories"
VECTOR: Final = "items.vector"
PUBLISHED_AT: Final = "items.published_at"
EVALUATION_DATE: Final = "evaluation_date"
VALUE: Final = "held_out.value"
PROPENSITY: Final = "held_out.propensity"
WEIGHT: Final = "held_out.weight"
PREDICTED_REWARD: Final = "recommendations.predicted_reward"

# What a run must be given for each fact: an input, a column of one, or the date. Other needs are met by the log.
_OF_ALL_LISTS: Final = {
    **dict.fromkeys((GROUP_RELEVANT, GROUP_AVAILABLE, TRAINED_ITEMS), (TRAIN,)),
    CATEGORY_SHARES: (TRAIN, CATEGORIES),
}
_OF_JUDGEMENTS: Final = {
    **dict.fromkeys((POPULARITY_GROUP, HISTORY_GROUP), (TRAIN,)),
    CATEGORY_GROUP: (CATEGORIES,),
    VALUES: (VALUE,),
    PROPENSITIES: (PROPENSITY,),
    WEIGHTS: (WEIGHT,),
    PREDICTIONS: (PREDICTED_REWARD,),
}
_OF_ITEMS: Final = {  # and of their users
    **dict.fromkeys((ITEM_INTERACTIONS, ITEM_USERS, ITEM_TAIL, ITEM_LEVEL, ITEM_PLACE, ITEM_QUANTILE), (TRAIN,)),
    **dict.fromkeys((ITEM_SEEN, ITEM_PAIRS, ITEM_FAMILIARITY, ITEM_POPULARITY_GROUP), (TRAIN,)),
    **dict.fromkeys((PROFILE_INTERACTIONS, PROFILE_UNJUDGED), (TRAIN,)),
    **dict.fromkeys((TOTAL_INTERACTIONS, MOST_INTERACTIONS, LEAST_INTERACTIONS, TOTAL_USERS), (TRAIN,)),
    **dict.fromkeys((ITEM_COPIES, ITEM_IDS, ITEM_SCORES, OTHER_LISTS), (LOG,)),
    **dict.fromkeys((ITEM_CATEGORIES, TOTAL_CATEGORIES, JUDGED_CATEGORIES), (CATEGORIES,)),
    ITEM_AGE: (PUBLISHED_AT, EVALUATION_DATE),
    ITEM_VECTORS: (VECTOR,),
    PROFILE_CATEGORIES: (TRAIN, CATEGORIES),
    PROFILE_VECTORS: (TRAIN, VECTOR),
}
_OF_USERS: Final = {name: (name,) for name in (USER_VALUES, USER_WEIGHTS)}  # each is an input
REQUIRES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {**_OF_ITEMS, **_OF_JUDGEMENTS, **_OF_USERS, **_OF_ALL_LISTS}
)
DESCRIBED: Final = frozenset(_OF_ITEMS)  # what is known of the recommended items and their users

ITEM_VALUES: Final = (  # facts of an item that are one number
    *(ITEM_INTERACTIONS, ITEM_USERS, ITEM_TAIL, ITEM_LEVEL, ITEM_PLACE, ITEM_SEEN, ITEM_AGE, ITEM_QUANTILE),
    *(ITEM_FAMILIARITY, ITEM_COPIES),
)
PROFILE_NUMBERS: Final = (PROFILE_INTERACTIONS, PROFILE_UNJUDGED)  # facts of a user that are one number
TOTALS: Final = (  # facts that are one number for all lists
    *(TOTAL_INTERACTIONS, MOST_INTERACTIONS, LEAST_INTERACTIONS, TOTAL_USERS, TOTAL_CATEGORIES, CATALOGUE_ITEMS),
)

HEAD: Final = "head"
MIDDLE: Final = "middle"
TAIL: Final = "tail"
BY_POPULARITY: Final = (HEAD, MIDDLE, TAIL)
REPEAT: Final = "repeat"
EXPLORE: Final = "explore"
BY_HISTORY: Final = (REPEAT, EXPLORE)

# Items of each group of BY_POPULARITY and BY_HISTORY; recorded with every measure of one
_RULES: Final = {
    HEAD: "the fewest, most popular items that hold at least 20 % of the interactions in train, ties by item id",
    MIDDLE: "items in neither the head (the fewest that hold 20 % of the interactions in train) nor the tail (not "
    "among the fewest that hold 80 %)",
    TAIL: "items that are not among the fewest that hold 80 % of the interactions in train, or without interactions",
    REPEAT: "items that the user has in train",
    EXPLORE: "items that the user does not have in train",
}
MAX_GROUPS: Final = 62  # groups of one run: the bits of a whole number of 64 without its sign, and one to spare


class Groups(NamedTuple):
    """The groups of the judged items of a batch, as bits."""

    names: tuple[str, ...]  # group of each bit, the lowest first
    of_hits: IntVector  # shape (n_hits,): bits of the groups that each judged item that was recommended belongs to
    of_judged: IntVector  # shape (n_judged,): the same of each judgement

    def members(self, group: str) -> tuple[BoolVector, BoolVector]:
        """Return which hits and which judgements belong to a group.

        >>> import numpy as np
        >>> groups = Groups(("head", "rock"), np.array([1, 3]), np.array([1, 2, 3]))
        >>> groups.members("rock")
        (array([False,  True]), array([False,  True,  True]))
        """
        bit = 1 << self.names.index(group) if group in self.names else 0
        return (self.of_hits & bit) != 0, (self.of_judged & bit) != 0

    def subset(self, hits: BoolVector | IntVector, judged: BoolVector | slice) -> Groups:
        """Subset the groups to some hits and judgements."""
        return self._replace(of_hits=self.of_hits[hits], of_judged=self.of_judged[judged])


def need_of(group: str) -> str:
    """Return the fact of judged items that decides which of them belong to a group.

    >>> need_of("tail"), need_of("rock"), need_of("repeat")
    ('popularity_group', 'category_group', 'history_group')
    """
    if group in BY_HISTORY:
        return HISTORY_GROUP
    return POPULARITY_GROUP if group in BY_POPULARITY else CATEGORY_GROUP


def rule_of(group: str) -> str:
    """Return which items belong to a group, in words.

    >>> rule_of("rock")
    'category of inputs.items'
    """
    return _RULES.get(group, "category of inputs.items")
