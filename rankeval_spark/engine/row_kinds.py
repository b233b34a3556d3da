"""Rows that the engine reads, all inputs that have users in one table."""

from __future__ import annotations

from typing import Final

from rankeval_spark import columns as C

UNMATCHED_LISTS: Final = "unmatched_lists"  # the check of judgements of a list that the log does not have
HELD_OUT_IN_TRAIN: Final = "held_out_in_train"  # that of judgements of items that the user has in the training data

KIND: Final = "_kind"  # which input a row is of: one of the numbers below
LOG: Final = 0  # a recommendation
HELD_OUT: Final = 1  # a judgement
TRAIN: Final = 2  # an interaction in the training data
SEGMENTS: Final = 3  # the segments of a user, in SEGMENT_VALUES
FAMILIARITY: Final = 4  # mean similarity of an item to those that the user has in the training data, in SIMILARITY
PAIRS: Final = 5  # similar items of a list: structs in :data:`columns.PAIRS`
USER_VALUES: Final = 7  # an own value of a user, in USER_VALUE, of the name in VALUE_NAME; of one model or of every one
USER_WEIGHTS: Final = 8  # the weight of a user in the means, in USER_VALUE
UNNAMED: Final = 6  # a recommendation that names no model, where rows do not name theirs: there is one

VALUE_NAME: Final = "_value_name"
USER_VALUE: Final = "_user_value"

CARRIED_BY: Final = {
    LOG: {C.RECOMMENDED_AT: C.INTERACTED_AT},
    HELD_OUT: {C.GAIN: C.SCORE},
    **{kind: {USER_VALUE: C.SCORE} for kind in (USER_VALUES, USER_WEIGHTS)},
}
"""Columns of an input that travel in a column of another one: one column less for every row to carry.

Times of lists do on Spark; gains, own values and weights of users where the log has scores that are doubles.
"""

SEGMENT_VALUES: Final = "_segment_values"
"""Values of the segments of a user, in the order in which the job names them; NULL where unknown.

An array of texts, or that array as the field :data:`VALUES_IN_TEXT` of a JSON object: a column of Spark costs every row
of the log 32 bytes as an array and 8 as a text.
"""
VALUES_IN_TEXT: Final = "v"
SIMILARITY: Final = "_similarity"

LISTED_ITEMS: Final = "_listed_items"  # where a row of the log is a whole list: ids of its items, best first
LISTED_SCORES: Final = "_listed_scores"  # a score of each of them
LISTED: Final = (LISTED_ITEMS, LISTED_SCORES)

ITEMS: Final = "_item_facts"  # what is known of items: structs of ``item_id`` and facts
FACTS: Final = "_facts_of_row"  # facts of the item of a row, where the catalogue is too large for every worker

HISTORY: Final = "_history"  # of a judgement, bits of the groups of items that depend on what its user has in `train`

SHARED: Final = "_shared"
"""Facts that all users share, as bytes (see :mod:`batch`), in the first row of a partition; NULL in all others.

One column without parts: Spark asks Arrow for the size of a batch after every row, and Arrow adds up all parts of all
columns each time.
"""

COUNTS: Final = "_row_counts"
"""Rows of inputs by the check that they fail: structs of input, check and count.

The check is NULL for usable rows; at most one of them is counted.
"""

MAX_COUNTED: Final = 10_000  # rows of an input that are looked at for the checks that they fail
