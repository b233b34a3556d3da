"""Names of the checks of single rows of the inputs."""

from __future__ import annotations

from typing import Final

NULL_KEYS: Final = "null_keys"
ZERO_RANKS: Final = "zero_ranks"
INVALID_SCORES: Final = "invalid_scores"
INVALID_GAINS: Final = "invalid_gains"

UNUSABLE: Final = (NULL_KEYS, ZERO_RANKS, INVALID_SCORES, INVALID_GAINS)
"""Checks of rows that are left out of the evaluation; a row fails one of them at most."""

NEGATIVE_GAINS: Final = "negative_gains"
LOW_GAINS: Final = "low_gains"
INVALID_VALUES: Final = "invalid_values"
INVALID_WEIGHTS: Final = "invalid_weights"

OF_USABLE_JUDGEMENTS: Final = (NEGATIVE_GAINS, LOW_GAINS, INVALID_VALUES, INVALID_WEIGHTS)
"""Checks of judgements that are used; the last two where the judgements have the column."""

UNMATCHED_LISTS: Final = "unmatched_lists"
"""Check of judgements of a list that the log does not have; made where judgements name lists."""

TRAIN_AFTER_CUT: Final = "train_after_cut"
INVALID_FACTS: Final = "invalid_facts"

REFUSALS: Final = (*UNUSABLE, INVALID_VALUES, INVALID_WEIGHTS, INVALID_FACTS)
"""Checks of rows that are kept for whoever fixes the input: they cannot be used, or not all that they say."""
