"""The rows that the engine takes: all inputs that have users, in one table with a column that says which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rankeval_spark.engine.batch import row_checks

KIND: Final = "_kind"
"""Which input a row is of: one of the numbers below."""

LOG: Final = 0
"""A recommendation."""
HELD_OUT: Final = 1
"""A judgement."""
TRAIN: Final = 2
"""An interaction in the training data."""
SEGMENTS: Final = 3
"""The segments of a user, in :data:`SEGMENT_VALUES`."""
FAMILIARITY: Final = 4
"""Mean similarity of an item to those that the user has in the training data: a double in :data:`SIMILARITY`."""
PAIRS: Final = 5
"""Similar items of a list: structs in :data:`columns.PAIRS`."""

SEGMENT_VALUES: Final = "_segment_values"
"""Values of the segments of a user, in the order in which the job names them; NULL where unknown.

An array of texts, or that array as the field :data:`VALUES_IN_TEXT` of a JSON object: a column of Spark costs every row
of the log 32 bytes as an array and 8 as a text.
"""

VALUES_IN_TEXT: Final = "v"

SIMILARITY: Final = "_similarity"

LISTED_ITEMS: Final = "_listed_items"
"""Ids of the items of a list, best first, where a row of the log is a whole list: an array."""
LISTED_SCORES: Final = "_listed_scores"
"""Their scores, likewise."""
LISTED: Final = (LISTED_ITEMS, LISTED_SCORES)

ITEMS: Final = "_item_facts"
"""What is known of items: structs of ``item_id`` and facts."""

FACTS: Final = "_facts_of_row"
"""Facts of the item of a row, where the catalogue is too large for every worker to have it."""

NAMES: Final[Mapping[int, str]] = {LOG: "recommendations", HELD_OUT: "held_out", SEGMENTS: "segments"}
"""Name of each input whose unusable rows are counted."""

UNUSABLE: Final = (
    (LOG, row_checks.NULL_KEYS),
    (LOG, row_checks.ZERO_RANKS),
    (LOG, row_checks.INVALID_SCORES),
    (HELD_OUT, row_checks.NULL_KEYS),
    (HELD_OUT, row_checks.INVALID_GAINS),
    (SEGMENTS, row_checks.NULL_KEYS),
)
"""Input and failed check of the rows that are only counted."""

SHARED: Final = "_shared"
"""What is the same for all users as bytes, see :mod:`constants`, in the first row of a partition; NULL in all others.

One column without parts: Spark asks Arrow for the size of a batch after every row, and Arrow adds up all parts of all
columns each time.
"""

COUNTS: Final = "_row_counts"
"""Rows of inputs by the check that they fail: structs of input, check and count.

The check is NULL for rows that can be used, of which at most one is counted."""

MOST_COUNTED: Final = 10_000
"""Rows of an input that are looked at for the checks that they fail."""

FIRST_UNUSABLE: Final = 16
"""Kind of a row that is only counted: this number and the position of its input and check in :data:`UNUSABLE`."""


def unusable(kind: int, check: str) -> int:
    """Return the kind of a row of an input that does not pass a check."""
    return FIRST_UNUSABLE + UNUSABLE.index((kind, check))
