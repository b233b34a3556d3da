"""Other ways to the same numbers: each measure as a few lines of plain Python, and trec_eval.

The naive references follow the formulas of the measure sheet, one list at a time, with exact fractions where they can;
they share no code with the kernels. A new one goes into the module of its kind, which is imported here so that its
references are known.
"""

from __future__ import annotations

from tests.support.oracles import agreement, beyond, off_policy, ratings, relevance, user_values
from tests.support.oracles.denominators import DENOMINATORS
from tests.support.oracles.expectation import denominator_of, expected, expected_denominator, value_of
from tests.support.oracles.plain import NAIVE, PlainList, forget, judged_only, ranking_of, trec_order, within
from tests.support.oracles.variants import TEXT, all_variants, takes_every_list, variants

__all__ = [
    "DENOMINATORS",
    "NAIVE",
    "TEXT",
    "PlainList",
    "agreement",
    "all_variants",
    "beyond",
    "denominator_of",
    "expected",
    "expected_denominator",
    "forget",
    "judged_only",
    "off_policy",
    "ranking_of",
    "ratings",
    "relevance",
    "takes_every_list",
    "trec_order",
    "user_values",
    "value_of",
    "variants",
    "within",
]
