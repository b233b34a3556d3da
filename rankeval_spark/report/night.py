"""The night of a report: its run, measures and models, the events of earlier nights, and whether it may ship."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, schemas, wording
from rankeval_spark.config.gates import Gate
from rankeval_spark.config.requested_measures import RecordedDefinition, recorded_definitions
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures.forest_plot import forest_rows, pair_row
from rankeval_spark.report.figures.means import Marks
from rankeval_spark.report.tables import ReportTables, Row, all_users_rows, distinct, keep, rows_of
from rankeval_spark.report.winner import (
    FAILING,
    NO_WINNER,
    PASSED,
    Winner,
    all_users_pairs,
    deciding_measure,
    winner_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.page_parts import Tone


PUBLISHED: Final = "PUBLISHED"
FAILED: Final = "FAILED"
MAX_HEADLINES: Final = 6  # measures that are drawn; the tables hold all of them
MAX_NIGHTS: Final = 60  # of a history


class Night:
    """One night of one evaluation, published or failed: its rows, and what the page shows of them."""

    def __init__(
        self, tables: ReportTables, *, evaluation: str | None, day: date | None, baseline: str | None = None
    ) -> None:
        """Find the night, as :func:`chosen_run` does; ConfigError if nothing was compared with the baseline."""
        self.tables = tables
        self.run: Row = chosen_run(tables.runs, evaluation=evaluation, day=day)
        self.evaluation: str = self.run[C.EVALUATION]
        self.day: date = self.run[C.EVALUATION_DATE]
        self.is_published = bool(self.run["status"] == PUBLISHED)
        self.config = _config_of(self.run)  # empty if it cannot be read

        self.metrics = self._rows_of_night(tables.metrics)
        self.means = all_users_rows(self.metrics)
        self.group_metrics = self._rows_of_night(tables.group_metrics)
        self.comparisons = keep(self._rows_of_night(tables.comparisons), test=C.DECIDING)
        self.user_metrics = self._rows_of_night(tables.user_metrics)
        self.examples = self._rows_of_night(tables.examples)
        self.gates = rows_of(self._rows_of_night(tables.gates))
        self.checks = rows_of(self._rows_of_night(tables.checks))

        all_nights = keep(tables.metrics, **{C.EVALUATION: self.evaluation, C.SLICE: C.ALL_USERS})
        days = [day for (day,) in distinct(all_nights, C.EVALUATION_DATE) if day <= self.day][-MAX_NIGHTS:]
        self.history = keep(all_nights, **{C.EVALUATION_DATE: days})  # means of all users up to this night
        self.n_nights = len(days)
        runs = newest_runs(tables.runs, self.evaluation)
        self._nights = {day: run for day, run in runs.items() if day <= self.day}
        events = rows_of(tables.runs, status=FAILED, evaluation=self.evaluation)
        self.failures = {  # nights up to this one without a published run, with the reason
            row[C.EVALUATION_DATE]: wording.failure_of(row)
            for row in sorted(events, key=lambda row: row["recorded_at"])
            if row[C.EVALUATION_DATE] <= self.day and row[C.EVALUATION_DATE] not in self._nights
        }

        self.known = defaults.measures_of(self.means)
        asked = [(row["measure"], row["k"]) for row in self.run["measures"] or ()]
        self.requested = list(dict.fromkeys([*(key for key in asked if key in self.known), *self.known]))
        self.pooled = rows_of(self._rows_of_night(tables.comparisons), test=C.POOLED, slice=C.ALL_USERS)
        self.pairs = [*all_users_pairs(self.comparisons), *tables.best_pair]
        # The headline measure; None without means.
        self.first = deciding_measure(self.known, self.requested, self.gates, self.pairs)
        measures, most = (self.known, self.requested), MAX_HEADLINES
        self.headlines = defaults.one_per_question(*measures, first=self.first, at_most=most) if self.first else []
        with_models = self.metrics if self.metrics.num_rows else self.history
        self.models = [str(name) for (name,) in distinct(with_models, C.MODEL_ID)]
        compared = [str(name) for (name,) in distinct(self.comparisons, C.BASELINE_MODEL_ID)]
        if baseline is not None and baseline not in compared:
            expected = f"one of those compared with: {', '.join(compared)}"
            expected = expected if compared else "comparisons, but the night has none"
            fix = nearest(baseline, compared) or "set comparisons.baseline and run the night again"
            raise ConfigError(Fault("--baseline", repr(baseline), expected, fix))
        configured = configured_baseline(self.run)
        found = configured if configured in compared else next(iter(compared), None)
        # Of a night without comparisons, such as a failed one, for the history.
        self.baseline = baseline or found or (configured if configured in self.models else None)

    def _rows_of_night(self, table: pa.Table) -> pa.Table:
        """Return the rows of this night, none if it failed."""
        if not self.is_published:
            return table.slice(0, 0)
        return keep(table, **{C.EVALUATION: self.evaluation, C.EVALUATION_DATE: self.day})

    def marks(self, measure: MeasureKey) -> Marks:
        """Return the events in the history of a measure: bounds of gates, changed definitions, failed nights.

        The table ``gates`` holds the judged rows. Only the night's config tells bounds on values from those on gains.
        """
        wanted = {C.EVALUATION: self.evaluation, C.MEASURE: measure[0], C.K: measure[1], C.SLICE: C.ALL_USERS}
        judged = {(row[C.EVALUATION_DATE], row["gate"]) for row in rows_of(keep(self.tables.gates, **wanted))}
        bounds = []
        for day, number in sorted(judged):
            rules = _config_of(self._nights.get(day, {})).get("gates") or []
            rule = rules[number - 1] if number <= len(rules) else {}
            models = f" ({', '.join(rule['models'])})" if rule.get("models") else ""
            for key, words in (("at_least", "at least"), ("at_most", "at most")):
                bound = rule.get(key)
                if bound is not None:
                    text, name = f"{words} {bound:g}{models}", f"{number} {key}"
                    bounds.append({"date": day.isoformat(), "bound": float(bound), "text": text, "rule": name})
        return Marks(bounds, redefined_nights(self._nights, measure), self.failures)


def newest_runs(runs: pa.Table, evaluation: str) -> dict[date, Row]:
    """Find the newest published run of each night of an evaluation, oldest night first."""
    events = sorted(rows_of(runs, status=PUBLISHED, evaluation=evaluation), key=lambda row: row["recorded_at"])
    newest = {row[C.EVALUATION_DATE]: row for row in events}
    return dict(sorted(newest.items()))


def redefined_nights(nights: Mapping[date, Row], measure: MeasureKey) -> dict[date, str]:
    """Return the nights when a measure's definition changed, with the change; the newest run counts."""
    found: dict[date, str] = {}
    before: RecordedDefinition | None = None
    for day, run in nights.items():
        definition = recorded_definitions(run).get(measure)
        if definition is not None:
            if before is not None and definition != before:
                changes = (("was", before.differences_from(definition)), ("is", definition.differences_from(before)))
                found[day] = "; ".join(f"{verb} {wording.listed(what)}" for verb, what in changes if what)
            before = definition
    return found


def chosen_run(runs: pa.Table, *, evaluation: str | None, day: date | None) -> dict[str, Any]:
    """Find the last event of a night, by default the newest; InputError without it, ConfigError for several."""
    events = rows_of(runs, status=(PUBLISHED, FAILED))
    names = sorted({row[C.EVALUATION] for row in events})
    if not names:
        raise InputError(Fault("results", "no run that ended", "at least one", "run an evaluation first"))
    expected = f"one of: {', '.join(names)}"
    if evaluation is not None and evaluation not in names:
        raise InputError(Fault("--evaluation", repr(evaluation), expected, nearest(evaluation, names)))
    name, *others = defaults.chosen_evaluations(names, evaluation)
    if others:
        raise ConfigError(Fault("--evaluation", "none", expected, "name one"))
    own = sorted((row for row in events if row[C.EVALUATION] == name), key=lambda row: row["recorded_at"])
    published = [row for row in own if row["status"] == PUBLISHED]
    if day is None:
        has_means = {  # whether a run published means
            (name, row[C.EVALUATION_DATE]): bool(published) and schemas.METRICS.name in dict(row["n_rows"] or ())
            for row in published or own
        }
        day = defaults.newest_nights(has_means, name)[name]
    of_day = [row for row in own if row[C.EVALUATION_DATE] == day]
    if not of_day:
        known = sorted({row[C.EVALUATION_DATE] for row in own})
        expected = f"a night from {known[0]} to {known[-1]}"
        closest = min(known, key=lambda known_day: (abs(known_day - day), known_day))
        raise InputError(Fault("--date", f"no night of {name} on {day}", expected, f"the nearest is {closest}"))
    return ([row for row in of_day if row["status"] == PUBLISHED] or of_day)[-1]


def configured_baseline(run: Row) -> str | None:
    """Return the baseline in the recorded config of a run."""
    return (_config_of(run).get("comparisons") or {}).get("baseline")


def _config_of(run: Row) -> Mapping[str, Any]:
    try:
        found = json.loads(run.get("config") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


WORDS: Final = {
    "passed": "passed",
    "failed": "failed",
    "no_match": "no match: fails",
    "missing_slice": "missing slice: fails",
    "undecided": "undecided",
    "no_baseline": "not judged",
    "too_few_users": "not judged",
    "too_little_support": "not judged",
}
TONES: Final[Mapping[str, Tone]] = {"better": "good", "worse": "bad"}
MAX_CHECKS: Final = 3  # named in the answer
MAX_OPEN: Final = 3  # sentences of a rule that are open, the worst; a click opens the others
ORDER: Final[Mapping[Tone, int]] = {"bad": 0, "open": 1, "good": 2}
NO_GATES: Final = "No rules: add `gates` to the config, such as {measure: nDCG@10, least_gain: 0.01}."


@dataclass(frozen=True)
class Sentence:
    """One sentence about a gate or a model, and its verdict in a word."""

    text: str
    tone: Tone
    verdict: str
    section: str = ""  # of the page, that has more


@dataclass(frozen=True)
class Rule:
    """One gate: its requirement, a count of cases by verdict, and their sentences, the worst first."""

    number: int
    title: str
    text: str  # as the config has it
    tone: Tone
    summary: str
    shown: Sequence[Sentence]
    folded: Sequence[Sentence] = ()


@dataclass(frozen=True)
class Answer:
    """The answer to "may it ship", the reason in a sentence, and the rules behind it."""

    tone: Tone
    headline: str
    reason: str
    rules: Sequence[Rule] = ()
    facts: Sequence[tuple[str, str, str]] = ()  # name, value and the section that has more, if any
    highlights: Sequence[Sentence] = ()
    hint: str = ""

    def __str__(self) -> str:
        """Return headline and reason as one line."""
        return f"{self.headline}. {self.reason}"


def tone_of(verdict: str) -> Tone:
    """Return ``good`` for a rule that is met, ``bad`` for one that fails, ``open`` for one that is not judged."""
    return "good" if verdict == PASSED else "bad" if verdict in FAILING else "open"


def verdict_of(gates: Sequence[Mapping[str, Any]], winner: Winner = NO_WINNER) -> Answer:
    """Return the verdict on all rules, from at least one row of ``gates``; it names the winner, if it is known."""
    found = _verdict_of_rules(gates)
    if not winner.may_ship or not found.headline.startswith("Yes, "):
        return replace(found, reason=f"{found.reason} {winner.text}".strip())
    headline = f"{winner.model} may ship{found.headline.removeprefix('Yes').removeprefix(', it may ship')}"
    return replace(found, headline=headline, reason=f"{winner.text} {found.reason}".strip())


def _verdict_of_rules(gates: Sequence[Mapping[str, Any]]) -> Answer:
    tones = Counter(tone_of(row["verdict"]) for row in gates)
    n_rules = len({row["gate"] for row in gates})
    broken = {row["gate"] for row in gates if tone_of(row["verdict"]) == "bad"}
    n_undecided = sum(row["verdict"] == "undecided" for row in gates)
    n_left = tones["open"] - n_undecided
    left = f" {wording.count(n_undecided, 'case')} undecided: no interval that clears the bound." if n_undecided else ""
    left += f" {wording.count(n_left, 'case')} could not be judged." if n_left else ""
    if broken:
        models = sorted({row[C.MODEL_ID] for row in gates if tone_of(row["verdict"]) == "bad"})
        models = models if "" not in models else ["every model"]
        rules = f"{len(broken)} of {wording.count(n_rules, 'rule')}"
        return Answer("bad", "No, it may not ship", f"{wording.listed(models)}: {rules} failed.{left}")
    if n_undecided:
        open_rules = len({row["gate"] for row in gates if row["verdict"] == "undecided"})
        met = "The rule is" if n_rules == 1 else f"{open_rules} of {n_rules} rules {'is' if open_rules == 1 else 'are'}"
        return Answer("open", "Not decided", f"{met} not met with the certainty that is asked for.{left}")
    if not tones["good"]:
        none = "The rule could not be judged" if n_rules == 1 else f"None of {n_rules} rules could be judged"
        return Answer("open", "Not decided", f"{none}.")
    met = "The rule is met" if n_rules == 1 else f"All {n_rules} rules are met"
    if left:
        return Answer("open", "Yes, as far as it was judged", f"{met} where they could be judged.{left}")
    return Answer("good", "Yes, it may ship", f"{met}, in {wording.count(tones['good'], 'case')}.")


def answer(night: Night) -> Answer:
    """Return whether the models of a night may ship, and why."""
    by_size = sorted(rows_of(night.means, [C.MODEL_ID, "n_users"]), key=lambda row: row["n_users"])
    of_models = {row[C.MODEL_ID]: row["n_users"] for row in by_size}  # the most that a measure has
    users = {"user": max(of_models.values(), default=0)}
    if any(row["test"] == C.UNPAIRED for row in night.pairs):  # models of an A/B test have users of their own
        users = {f"users of {model}": n for model, n in sorted(of_models.items())}
    warned, share = [row for row in night.checks if row["verdict"] != "ok"], night.run["sample_share"]
    counts = {"model": len(night.models), **users, "night": night.n_nights}
    facts = [
        *((name if n == 1 or " " in name else f"{name}s", wording.count(n), "") for name, n in counts.items() if n),
        *([("checks to look at", f"{len(warned)} of {len(night.checks)}", "checks")] if night.checks else []),
        *([("sample", f"{wording.percent(share)} of the users", "")] if share is not None and share < 1 else []),
    ]
    if not night.is_published:
        why = f"The run failed. {_sentence(wording.failure_of(night.run))}"
        checks = [Sentence(f"Failed check: {name}", "bad", "failed") for name in night.run["failed_checks"] or ()]
        return Answer("bad", "Nothing was published", why, facts=facts, highlights=checks)
    if not night.metrics.num_rows:
        reason = night.run["reason"] or "no input has rows of this date"
        return Answer("open", "Nothing was measured", _sentence(reason), facts=facts)
    highlights = [*_highlights(night), *_checks_in_words(warned)]
    means = rows_of(night.means)
    winner = winner_of(night.gates, means, night.pairs, first=night.first, baseline=night.baseline)
    if not night.gates:
        reason = f"{winner.text} No rule says what a model must reach.".strip()
        return Answer("open", "No rules to judge by", reason, facts=facts, highlights=highlights, hint=NO_GATES)
    return replace(
        verdict_of(night.gates, winner),
        rules=_rules(night.gates, night.config.get("gates") or ()),
        facts=facts,
        highlights=highlights,
    )


def _rules(gates: Sequence[dict[str, Any]], configured: Sequence[Any] = ()) -> list[Rule]:
    """Group the rows of ``gates`` by rule, the worst first, each with its sentences."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in gates:
        by_number.setdefault(row["gate"], []).append(row)
    rules = []
    for number, rows in by_number.items():
        ordered = sorted(rows, key=lambda row: (ORDER[tone_of(row["verdict"])], row[C.MODEL_ID], row[C.SLICE_VALUE]))
        sentences = []
        for row in ordered:
            head, _, tail = row["explanation"].rpartition(": ")
            has_verdict = head and tail in (
                "passed.",
                "failed.",
                "undecided.",
                "not judged.",
            )  # which the page shows in front
            text = f"{head}." if has_verdict else row["explanation"]
            sentences.append(Sentence(text, tone_of(row["verdict"]), WORDS.get(row["verdict"], row["verdict"])))
        tones = Counter(sentence.tone for sentence in sentences)
        n_undecided = sum(row["verdict"] == "undecided" for row in rows)
        tone = min(tones, key=lambda tone: ORDER[tone])
        counts = {"failed": tones["bad"], "undecided": n_undecided, "not judged": tones["open"] - n_undecided}
        summary = ", ".join(f"{n} {word}" for word, n in {**counts, "passed": tones["good"]}.items() if n)
        n_open = min(tones["bad"] + tones["open"], MAX_OPEN)
        rule = ordered[0]["rule"]
        title = _title_of(rule, configured[number - 1]) if number <= len(configured) else rule
        rules.append(Rule(number, title, rule, tone, summary, sentences[:n_open], sentences[n_open:]))
    return sorted(rules, key=lambda rule: (ORDER[rule.tone], rule.number))


def _checks_in_words(warned: Sequence[Row]) -> list[Sentence]:
    """Return a sentence about each of the first checks to look at, the failed ones first."""
    found = []
    for row in sorted(warned, key=lambda row: (row["verdict"] == "warn", row["input"], row["check"]))[:MAX_CHECKS]:
        facts = [wording.count(row["count"]), wording.percent(row["share"])]
        if row["threshold"] is not None:
            facts.append(f"more than {wording.percent(row['threshold'])}")
        text = f"{row['check'].replace('_', ' ')} in {row['input']}: {', '.join(filter(None, facts))}."
        found.append(Sentence(text, "open" if row["verdict"] == "warn" else "bad", "check", "checks"))
    more = len(warned) - len(found)
    return [*found, *([Sentence(f"{more} more to look at.", "open", "checks", "checks")] if more > 0 else [])]


def _title_of(rule: str, configured: object) -> str:
    """Return the title of a rule of the config; its text if this version reads it otherwise."""
    try:
        gate = Gate.model_validate(configured)
    except (ConfigError, ValueError):
        return rule
    return gate.title if str(gate) == rule else rule


def _highlights(night: Night) -> list[Sentence]:
    """Return the difference of each candidate from the baseline."""
    if night.first is None:
        return []
    name = with_cutoff(*night.first)
    found = []
    for model in night.models if night.baseline is not None else ():
        compared = forest_rows(night.comparisons, night.first, model=model, baseline=str(night.baseline))
        for row in (row for row in compared if row["is_all"]):
            texts = [row["withheld"]] if row["withheld"] else []
            if row["delta"] is not None:
                p = row["p_adjusted"]
                tested = f"{row['outcome']}: {row['p']}" if p is None else f"adjusted {wording.p_in_words(p)}"
                texts.append(f"{row['text']} ({row['interval']}), {tested}")
            tone = "open" if row["withheld"] else TONES.get(row["outcome"], "open")
            about = f"{model} against {night.baseline}, {name}"
            found += [Sentence(f"{about}: {text}.", tone, row["outcome"]) for text in texts]
        pooled = pair_row(night.pooled, night.first, model, str(night.baseline))
        if pooled is not None and pooled["delta"] is not None:
            over = f"{model} against {night.baseline} over the last {pooled['nights']} nights, {name}"
            tested = f"{pooled['text']} ({pooled['interval']}), {wording.p_in_words(pooled['p_adjusted'])}"
            found.append(Sentence(f"{over}: {tested}.", TONES.get(pooled["outcome"], "open"), pooled["outcome"]))
    return found


def _sentence(text: str) -> str:
    """Begin a text with a capital letter and end it with a full stop."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
