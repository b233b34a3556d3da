"""Say what a failed Spark job means: a policy or a measure met data it refuses, an input cannot be read, or neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rankeval_spark.errors import ChecksFailedError, Fault, FaultsError, JudgementError, RankevalError
from rankeval_spark.sources import explain

_POLICY: Final = re.compile(r"\[rankeval:(?P<policy>\w+)\] (?P<what>[^\n]+?), and the policy")
_JUDGEMENT: Final = re.compile(
    JudgementError.title + r":\s+- (?P<where>\w[^\n]*?): found (?P<found>[^\n]+?); "
    r"expected (?P<expected>[^\n]+?); (?P<fix>[^\n]+)"
)
"""The text of a `JudgementError` with one fault, among the lines of a worker's traceback."""

_FIXES: Final = {
    "segments": "keep one row a user in the segment table",
    "items": "keep one row an item in the catalogue, and vectors of one length",
    "ties": "choose another policy: item_asc, item_desc or rank",
    "rank_gaps": "number the items of each list, or choose the policy renumber",
    "duplicates": "remove them, or choose the policy best",
    "held_out_duplicates": "remove them, or choose the policy max, sum or last",
    "missing": "give every judged user a list, or choose the policy zero or exclude",
    "zero_relevant": "remove these users, or choose another policy for them",
    "invalid_scores": "remove them, or choose the policy drop",
}

_INPUTS: Final = ("segments", "items")
"""Inputs whose rows may be refused without a policy."""


def translated(error: Exception, locations: Mapping[str, str]) -> Exception:
    """Return the error that a user can act on; ``error`` itself where nothing is known of it."""
    if isinstance(error, RankevalError):
        return error
    text = str(error)
    return _policy_failure(text) or _judgement_failure(text) or explain(error, dict(locations)) or error


def _policy_failure(text: str) -> FaultsError | None:
    found = _POLICY.search(text)
    if found is None:
        return None
    policy = found["policy"]
    where = f"inputs.{policy}" if policy in _INPUTS else f"policies.{policy}"
    return ChecksFailedError(Fault(where, found["what"], "no such case", _FIXES.get(policy, "")))


def _judgement_failure(text: str) -> FaultsError | None:
    found = _JUDGEMENT.search(text)
    return ChecksFailedError(Fault(**found.groupdict())) if found else None
