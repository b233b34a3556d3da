"""Rules about a change in which few users differ: a verdict that their exact test contradicts is not given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.statistics.gates import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config import Gate
    from rankeval_spark.statistics.gates import Evidence

_JUDGED: Final = frozenset({"passed", "failed"})


def with_exact_test(gate: Gate, row: Mapping[str, Any], evidence: Evidence, verdict: GateVerdict) -> GateVerdict:
    """Keep a verdict unless the exact test says otherwise, or none could be made: then too few users differ.

    An interval is always that of t. Where few users differ, the test is exact, and the two may disagree: for 5 users
    better and none worse the interval leaves 0 out, and p is .0625. So a gain that passes needs its test too, and a
    rule that allows a loss does not fail where the test finds a gain.

    Parameters
    ----------
    row : mapping
        Row of ``comparisons``, or for a change from the previous night of ``metrics``.
    """
    value = evidence.gain(is_relative=False).value
    if verdict.outcome not in _JUDGED or math.isnan(value) or value == 0:
        return verdict
    p = 2 * min(evidence.p_less, evidence.p_greater)
    is_of_t = not math.isnan(p) and evidence.is_of_t and evidence.std_error != 0
    is_gain = value > 0 and p <= 1 - row["ci_level"]
    if is_of_t or not _contradicts(gate, verdict, p, is_gain=is_gain):
        return verdict
    return _too_few_differ(evidence, p)


def _contradicts(gate: Gate, verdict: GateVerdict, p: float, *, is_gain: bool) -> bool:
    passed = verdict.outcome == "passed"
    if gate.alpha is not None:
        return passed and math.isnan(p)
    return verdict.bound >= 0 and not is_gain if passed else verdict.bound <= 0 and is_gain


def _too_few_differ(evidence: Evidence, p: float) -> GateVerdict:
    """Verdict of a change in which too few users differ."""
    value, low, high = evidence.difference
    found = f"{value:.4g} ({low:.4g} to {high:.4g}, {evidence.n_users:,} users)"
    test = "for a test" if math.isnan(p) else f"for the interval: the exact test gives p = {p:.2g}"
    text = f"{evidence.what} differs from {evidence.versus} by {found}, but too few users differ {test}: not judged."
    return GateVerdict("too_few_users", math.nan, math.nan, text)
