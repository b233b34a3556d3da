"""What all gates of a night come to: whether the models may ship."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark import columns as C
from rankeval_spark.report import wording

if TYPE_CHECKING:
    from rankeval_spark.report.page_parts import Tone

PASSED: Final = "passed"
FAILING: Final = frozenset({"failed", "no_match", "missing_slice"})
"""Verdicts that keep a model from shipping; the others pass, or leave the decision to people."""


class NightVerdict(NamedTuple):
    """The answer for a night, and the reason in a sentence."""

    tone: Tone
    headline: str
    reason: str

    def __str__(self) -> str:
        """Write both as one line."""
        return f"{self.headline}. {self.reason}"


def tone_of(verdict: str) -> Tone:
    """Return ``good`` for a rule that is met, ``bad`` for one that fails, ``open`` for one that is not judged."""
    return "good" if verdict == PASSED else "bad" if verdict in FAILING else "open"


def verdict_of(gates: Sequence[Mapping[str, Any]]) -> NightVerdict:
    """Say what all rules of a night come to.

    Parameters
    ----------
    gates : sequence of mapping
        Rows of ``gates``; at least one.
    """
    tones = Counter(tone_of(row["verdict"]) for row in gates)
    n_rules = len({row["gate"] for row in gates})
    broken = {row["gate"] for row in gates if tone_of(row["verdict"]) == "bad"}
    left = f" {wording.count(tones['open'], 'case')} could not be judged." if tones["open"] else ""
    if broken:
        models = sorted({row[C.MODEL_ID] or "every model" for row in gates if tone_of(row["verdict"]) == "bad"})
        rules = f"{len(broken)} of {wording.count(n_rules, 'rule')}"
        return NightVerdict("bad", "No, it may not ship", f"{wording.listed(models)}: {rules} failed.{left}")
    if not tones["good"]:
        none = "The rule could not be judged" if n_rules == 1 else f"None of {n_rules} rules could be judged"
        return NightVerdict("open", "Not decided", f"{none}.")
    met = "The rule is met" if n_rules == 1 else f"All {n_rules} rules are met"
    if left:
        return NightVerdict("open", "Yes, as far as it was judged", f"{met} where they could be judged.{left}")
    return NightVerdict("good", "Yes, it may ship", f"{met}, in {wording.count(tones['good'], 'case')}.")
