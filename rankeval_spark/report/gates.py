"""The verdict on a night's gates, and the summary at the top of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark import columns as C
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults, wording
from rankeval_spark.report.figures.forest_plot import forest_rows
from rankeval_spark.report.figures.means import leaderboard_rows
from rankeval_spark.report.page_parts import Answer, Rule, Sentence, Tone
from rankeval_spark.report.tables import all_users_rows, rows_of

if TYPE_CHECKING:
    from rankeval_spark.report.night import Night

PASSED: Final = "passed"
FAILING: Final = frozenset({"failed", "no_match", "missing_slice"})
"""Verdicts that keep a model from shipping. The others pass, or leave the decision to people."""
WORDS: Final = {
    "passed": "passed",
    "failed": "failed",
    "no_match": "no match: fails",
    "missing_slice": "missing slice: fails",
    "no_baseline": "not judged",
    "too_few_users": "not judged",
}
TONES: Final[Mapping[str, Tone]] = {"better": "good", "worse": "bad"}
MAX_PASSED_OPEN: Final = 4  # a rule with more sentences has those that passed folded
MAX_OPEN: Final = 20  # sentences of a rule that are open at all
ORDER: Final[Mapping[Tone, int]] = {"bad": 0, "open": 1, "good": 2}
NO_GATES: Final = "No rules: add `gates` to the config, such as {measure: nDCG@10, least_gain: 0.01}."


class NightVerdict(NamedTuple):
    """The answer for a night, and the reason in a sentence."""

    tone: Tone
    headline: str
    reason: str

    def __str__(self) -> str:
        """Return both as one line."""
        return f"{self.headline}. {self.reason}"


def tone_of(verdict: str) -> Tone:
    """Return ``good`` for a rule that is met, ``bad`` for one that fails, ``open`` for one that is not judged."""
    return "good" if verdict == PASSED else "bad" if verdict in FAILING else "open"


def verdict_of(gates: Sequence[Mapping[str, Any]]) -> NightVerdict:
    """Return the verdict on all rules, from at least one row of ``gates``."""
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


def answer(night: Night) -> Answer:
    """Return whether the models of a night may ship, and why."""
    facts = _facts(night)
    if not night.is_published:
        why = f"The run failed. {_sentence(wording.failure_of(night.run))}"
        checks = [Sentence(f"Failed check: {name}", "bad", "failed") for name in night.run["failed_checks"] or ()]
        return Answer("bad", "Nothing was published", why, facts=facts, highlights=checks)
    if not night.metrics.num_rows:
        reason = night.run["reason"] or "no input has rows of this date"
        return Answer("open", "Nothing was measured", _sentence(reason), facts=facts)
    highlights = _highlights(night)
    if not night.gates:
        reason = "No rule says what a model must reach."
        return Answer("open", "No rules to judge by", reason, facts=facts, highlights=highlights, hint=NO_GATES)
    tone, headline, reason = verdict_of(night.gates)
    return Answer(tone, headline, reason, _rules(night.gates), facts, highlights)


def _rules(gates: Sequence[dict[str, Any]]) -> list[Rule]:
    """Group the rows by rule, what failed first."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in gates:
        by_number.setdefault(row["gate"], []).append(row)
    rules = []
    for number, rows in by_number.items():
        ordered = sorted(rows, key=lambda row: (ORDER[tone_of(row["verdict"])], row[C.MODEL_ID], row[C.SLICE_VALUE]))
        sentences = []
        for row in ordered:
            head, _, tail = row["explanation"].rpartition(": ")
            has_verdict = head and tail in ("passed.", "failed.", "not judged.")  # which the page shows in front
            text = f"{head}." if has_verdict else row["explanation"]
            sentences.append(Sentence(text, tone_of(row["verdict"]), WORDS.get(row["verdict"], row["verdict"])))
        tones = Counter(one.tone for one in sentences)
        tone = min(tones, key=lambda one: ORDER[one])
        words: Sequence[tuple[Tone, str]] = (("bad", "failed"), ("open", "not judged"), ("good", "passed"))
        summary = ", ".join(f"{tones[one]} {word}" for one, word in words if tones[one])
        n_open = len(sentences)
        if n_open > MAX_PASSED_OPEN:
            n_open = min(tones["bad"] + tones["open"], MAX_OPEN)
        rules.append(Rule(number, ordered[0]["rule"], tone, summary, sentences[:n_open], sentences[n_open:]))
    return sorted(rules, key=lambda rule: (ORDER[rule.tone], rule.number))


def _facts(night: Night) -> list[tuple[str, str]]:
    """Return the sizes behind the answer: models, users, nights, checks and the sample."""
    users = max((row["n_users"] for row in rows_of(all_users_rows(night.metrics), ["n_users"])), default=0)
    n_warned, share = sum(row["verdict"] != "ok" for row in night.checks), night.run["sample_share"]
    return [
        ("models", wording.count(len(night.models))),
        ("users", wording.count(users)),
        ("nights", wording.count(night.n_nights)),
        ("checks to look at", f"{n_warned} of {len(night.checks)}" if night.checks else "none"),
        *([("sample", f"{wording.percent(share)} of the users")] if share is not None and share < 1 else []),
    ]


def _highlights(night: Night) -> list[Sentence]:
    """Return who leads, if either side of the measure is better, and the difference of each candidate."""
    if night.first is None:
        return []
    name = with_cutoff(*night.first)
    rows = [row for row in leaderboard_rows(night.metrics, night.first) if row["value"] is not None]
    found = []
    if len(rows) > 1 and defaults.has_better_side(night.first[0]):
        best, second = rows[:2]
        pair = {best["model"], second["model"]}
        compared = rows_of(night.comparisons, [C.MODEL_ID, C.BASELINE_MODEL_ID])
        is_compared = any({row[C.MODEL_ID], row[C.BASELINE_MODEL_ID]} == pair for row in compared)
        remark = "" if is_compared else ", not compared with it"
        text = f"{best['model']} has the best {name}: {best['text']} ({best['interval']}). "
        text += f"Next is {second['model']}: {second['text']} ({second['interval']}){remark}."
        found.append(Sentence(text, "plain", "leads"))
    for model in night.models if night.baseline is not None else ():
        compared = forest_rows(night.comparisons, night.first, model=model, baseline=str(night.baseline))
        for row in (row for row in compared if row["is_all"]):
            texts = [row["withheld"]] if row["withheld"] else []
            if row["delta"] is not None:
                tested = f"{'not tested: ' if row['outcome'] == 'not tested' else 'adjusted p '}{row['p']}"
                texts.append(f"{row['text']} ({row['interval']}), {tested}")
            tone = "open" if row["withheld"] else TONES.get(row["outcome"], "open")
            about = f"{model} against {night.baseline}, {name}"
            found += [Sentence(f"{about}: {text}.", tone, row["outcome"]) for text in texts]
    return found


def _sentence(text: str) -> str:
    """Add a capital and a full stop."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
