"""Verdicts of the rules of a config on published numbers: small tables, no Spark work on the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report.winner import UNMET
from rankeval_spark.statistics import gates as arithmetic
from rankeval_spark.statistics.gates import Estimate, Evidence, GateVerdict
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT, why_withheld
from rankeval_spark.wording import decimals, interval, p_in_words, signed, slice_name

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config import EvaluationConfig, Gate
    from rankeval_spark.errors import Fault
    from rankeval_spark.results import Results, StagedRun


Row: TypeAlias = Mapping[str, Any]
"""A row of ``metrics``, ``comparisons``, ``gates`` or :mod:`rankeval_spark.result_rows.night_change_rows`."""

T_TESTS: Final = {"test": C.DECIDING}
"""The rows of ``comparisons`` that verdicts follow from, whichever further tests have rows."""

DECIDED: Final = frozenset({"passed", "failed"})
"""Verdicts of a rule that was judged."""


@dataclass(frozen=True)
class Previous:
    """Differences of a night from the one that was published before it."""

    day: date  # the date of that one
    # of result_rows.night_change_rows; none of a measure that was defined otherwise then, or of a slice not made then
    rows: Sequence[Row]
    has_users: bool = True  # False once ``rankeval maintain --keep-days`` deleted its rows of single users
    damage: Sequence[Fault] = ()  # files of these rows that are missing or damaged


def judge_staged(
    config: EvaluationConfig, run: StagedRun, previous: Previous | None, verdicts: Sequence[Row] = ()
) -> list[dict[str, Any]]:
    """Judge every rule by the tables that a run has staged; ``previous`` is None for a first night.

    ``verdicts`` are rows of ``gates`` of earlier nights, which sequential rules count.
    """

    def read(name: str, where: Mapping[str, Sequence[str]]) -> pa.Table | None:
        table = run.rows.get(name)
        if table is not None:
            for column, values in where.items():
                table = table.filter(pc.field(column).isin(list(values)))
        return table

    return _read_and_judge(config, read, previous, verdicts)


def judge_published(
    config: EvaluationConfig,
    results: Results[Any],
    night: PastNight,
    previous: Previous | None,
    verdicts: Sequence[Row] = (),
) -> list[dict[str, Any]]:
    """Judge every rule of a config by the published tables of a night, as :func:`judge_staged`."""

    def read(name: str, where: Mapping[str, Sequence[str]]) -> pa.Table:
        return results.arrow(name, date=night.evaluation_date, evaluation=night.evaluation, **where)

    return _read_and_judge(config, read, previous, verdicts)


def _read_and_judge(
    config: EvaluationConfig,
    read: Callable[[str, Mapping[str, Sequence[str]]], pa.Table | None],
    previous: Previous | None,
    verdicts: Sequence[Row],
) -> list[dict[str, Any]]:
    """Read the rows of the measures and slices that the rules are about, and judge by them."""
    labels = {gate.label(config.preset) for gate in config.gates}
    slices = {gate.slice for gate in config.gates} | {C.ALL_USERS}
    where = {C.MEASURE: sorted(labels), C.SLICE: sorted(slices)}
    means, group_rows, pair_rows = (
        [] if table is None else sorted(table.to_pylist(), key=lambda row: (row[C.MODEL_ID], row[C.SLICE_VALUE]))
        for table in (
            read(schemas.METRICS.name, where),
            read(schemas.GROUP_METRICS.name, where),
            read(schemas.COMPARISONS.name, {**where, **T_TESTS}),
        )
    )
    return judge_rows(
        config, metrics=[*means, *group_rows], comparisons=pair_rows, previous=previous, verdicts=verdicts
    )


def judge_rows(
    config: EvaluationConfig,
    *,
    metrics: Sequence[Row],
    comparisons: Sequence[Row],
    previous: Previous | None = None,
    verdicts: Sequence[Row] = (),
) -> list[dict[str, Any]]:
    """Judge every rule by rows in memory: rows of ``schemas.GATES`` from ``gate``, at least one a rule."""
    judges = (_Judge(number, gate, config, previous, verdicts) for number, gate in enumerate(config.gates, 1))
    return [row for judge in judges for row in judge.judge(metrics, comparisons)]


def failed(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of rules that are not met: those that fail, and those that are undecided."""
    return [row for row in rows if row["verdict"] in UNMET]


class _Judge:
    """Judges the rows that one rule is about."""

    def __init__(
        self, number: int, gate: Gate, config: EvaluationConfig, previous: Previous | None, verdicts: Sequence[Row]
    ) -> None:
        self._number, self._gate, self._previous = number, gate, previous
        self._verdicts = [row for row in verdicts if row["rule"] == str(gate) and row["verdict"] in DECIDED]
        self._baseline = config.comparisons.baseline if config.comparisons else None
        self._least_users = config.slicing.min_slice_size
        self._measure, self._label = gate.parse_measure(config.preset), gate.label(config.preset)
        # The config refuses a comparison by a measure that has no better side.
        self._good_side: Literal["higher", "lower"] = "lower" if self._measure.better == "lower" else "higher"

    def judge(self, metrics: Sequence[Row], comparisons: Sequence[Row]) -> list[dict[str, Any]]:
        """Return rows of ``gates`` for the rule: one for each row it is about, and for what it misses."""
        table = comparisons if self._gate.needs_baseline else metrics
        matching = [row for row in table if self._is_wanted(row[C.MODEL_ID]) and self._is_about(row)]
        judged = [
            *zip(matching, self._judge_each(matching, metrics), strict=True),
            *self._judge_vanished_slices(metrics),
            *self._judge_missing_slices(matching, metrics),
        ]
        rows = [self._to_row(row, verdict) for row, verdict in judged]
        present = {row[C.MODEL_ID] for row in rows}
        absent = [name for name in self._gate.models or () if name not in present]
        if self._gate.models is None and not rows:
            absent = [""]  # every model
        values = {C.SLICE_VALUE: self._gate.slice_value, C.SLICE_VALUES: list(self._gate.slice_values or ())}
        without_users = {C.SLICE: self._gate.slice, **values, "n_users": None}
        for name in absent:
            rows.append(self._to_row({C.MODEL_ID: name, **without_users}, self._judge_absent(name, metrics)))
        return rows

    def _is_wanted(self, model: str) -> bool:
        """Return True if the rule is about a model; by default not where the measure compares others with this one."""
        return model != self._measure.other_model if self._gate.models is None else model in self._gate.models

    def _is_about(self, row: Row) -> bool:
        """Return True if a row is of the slice, measure and cutoff, and of a comparison with the baseline and users."""
        gate = self._gate
        is_in = row[C.SLICE] == gate.slice and gate.slice_values in (None, tuple(row[C.SLICE_VALUES]))
        is_of_value = not gate.needs_baseline or C.BASELINE_MODEL_ID not in row
        is_compared = is_of_value or (row["n_users"] and row[C.BASELINE_MODEL_ID] == self._baseline)
        return bool(self._is_measured(row) and is_in and is_compared)

    def _is_measured(self, row: Row) -> bool:
        return bool((row[C.MEASURE], row[C.K]) == (self._label, self._measure.k))

    def _judge_vanished_slices(self, metrics: Sequence[Row]) -> list[tuple[Row, GateVerdict]]:
        """Find the values of the slice that enough users had on the night before and none has now."""
        if self._previous is None or not self._gate.needs_previous:
            return []
        present, models = {_key(row) for row in metrics}, {row[C.MODEL_ID] for row in metrics}
        return [
            (
                {**row, "n_users": None},
                arithmetic.missing_slice(f"{row[C.MODEL_ID]}, {slice_name(row[C.SLICE], row[C.SLICE_VALUE])}"),
            )
            for row in self._previous.rows
            if self._is_wanted(row[C.MODEL_ID]) and self._is_about(row) and row[C.MODEL_ID] in models
            if _key(row) not in present and row["n_earlier_users"] >= self._least_users
        ]

    def _judge_missing_slices(self, judged: Sequence[Row], metrics: Sequence[Row]) -> list[tuple[Row, GateVerdict]]:
        """Find the values of the slice that a model is not judged in, though others, or it alone, have users there."""
        gate, models = self._gate, {row[C.MODEL_ID] for row in metrics if self._is_measured(row)}
        if gate.needs_previous or gate.compares_groups or (gate.needs_baseline and self._baseline not in models):
            return []
        here = [row for row in metrics if self._is_about(row) and row["n_users"]]
        judged_keys, missing = {_key(row) for row in judged}, dict[tuple[object, ...], tuple[Row, GateVerdict]]()
        for model in sorted(filter(self._is_wanted, models - ({self._baseline} if gate.needs_baseline else set()))):
            others = {model, self._baseline} if gate.needs_baseline else models
            for row in sorted(here, key=lambda row: (row[C.SLICE_VALUE], -row["n_users"])):
                of_model = {**row, C.MODEL_ID: model, "n_users": 0}
                key = _key(of_model)
                if row[C.MODEL_ID] in others and key not in judged_keys and key not in missing:
                    missing[key] = of_model, self._judge_without_users(model, row[C.SLICE_VALUE], row["n_users"])
        return list(missing.values())

    def _judge_without_users(self, model: str, slice_value: str, most_users_of_others: int) -> GateVerdict:
        """Judge a slice where a model has no users, or none in common with the baseline."""
        what = self._describe(model, slice_value)
        if most_users_of_others < self._least_users:
            return arithmetic.too_few_users(what, most_users_of_others, self._least_users)
        if self._gate.needs_baseline:
            return arithmetic.no_common_users(what, str(self._baseline))
        return arithmetic.missing_slice(what)

    def _judge_each(self, rows: Sequence[Row], metrics: Sequence[Row]) -> Sequence[GateVerdict]:
        """Return a verdict for each row, in their order."""
        gate, to_evidence = self._gate, self._evidence_of_value
        if gate.needs_previous:
            to_evidence = self._evidence_of_night_change
        elif gate.needs_baseline:
            to_evidence = partial(self._evidence_of_difference, metrics)
        evidence = [to_evidence(row) for row in rows]
        if gate.sequential and gate.alpha is None:
            evidence = [
                each.at_level(1 - gate.error_share * (1 - row["ci_level"]), known=row["ci_level"])
                for row, each in zip(rows, evidence, strict=True)
            ]
        if gate.alpha is None:
            verdicts = [self._judge_one(each) for each in evidence]
        else:
            alpha = gate.alpha * gate.error_share
            verdicts = arithmetic.no_significant_regression(evidence, alpha=alpha, least_users=self._least_users)
        if not gate.is_comparison:
            return verdicts
        verdicts = [with_exact_test(gate, *each) for each in zip(rows, evidence, verdicts, strict=True)]
        return [*map(self._with_nights, rows, verdicts)] if gate.sequential else verdicts

    def _with_nights(self, row: Row, verdict: GateVerdict) -> GateVerdict:
        """Add to the sentence of a sequential rule which night it is of how many, and what those before it said."""
        gate, same = self._gate, (C.MODEL_ID, C.SLICE, C.SLICE_VALUES)
        if verdict.outcome not in DECIDED:
            return verdict
        newest_first = sorted(self._verdicts, key=lambda then: then[C.EVALUATION_DATE], reverse=True)
        before = [then["verdict"] for then in newest_first if all(then[name] == row[name] for name in same)]
        before = before[: gate.horizon - 1]
        failed_before = f"{before.count('failed')} of the {len(before)} before it failed"
        found = failed_before if before else "no night before it with this rule, model and definition"
        error = f"{1 - row['ci_level'] if gate.alpha is None else gate.alpha:.3g} / {gate.horizon}"
        text, _, outcome = verdict.sentence.rpartition(": ")
        words = f"night {len(before) + 1} of {gate.horizon}, each with an error of {error}; {found}"
        return verdict._replace(sentence=f"{text}; {words}: {outcome}")

    def _judge_one(self, evidence: Evidence) -> GateVerdict:
        """Judge by a gain, a margin or bounds, whichever the rule has."""
        gate, least, rel = self._gate, self._least_users, self._gate.relative
        if gate.least_gain is not None:
            return arithmetic.least_change(evidence, least=gate.least_gain, is_relative=rel, least_users=least)
        if gate.margin is not None:
            return arithmetic.non_inferiority(evidence, margin=gate.margin, is_relative=rel, least_users=least)
        if evidence.has_too_few_groups:
            return arithmetic.too_few_groups(evidence.what, least)
        if gate.slice != C.ALL_USERS and not evidence.n_users:
            return arithmetic.missing_slice(evidence.what)
        low = -math.inf if gate.at_least is None else gate.at_least
        high = math.inf if gate.at_most is None else gate.at_most
        if gate.certainty is not None:
            return arithmetic.certain_bounds(evidence, gate.certainty, low=low, high=high, least_users=least)
        return arithmetic.value_bounds(evidence, low=low, high=high, least_users=least)

    def _evidence_of_value(self, row: Row) -> Evidence:
        """Return the evidence in a row of ``metrics``; without its interval where it is of another level than asked."""
        value = _estimate(row, C.VALUE, "ci")
        if self._gate.certainty not in (None, row["ci_level"]):
            value = arithmetic.Estimate(value.value)
        return Evidence(
            self._describe(row[C.MODEL_ID], row[C.SLICE_VALUE]),
            row["n_users"],
            value,
            has_too_few_groups=self._gate.group_kind is not None and row[C.VALUE] is None and row["is_small"],
            unsupported=self._lacking_support([row]),
            possible=(min(0.0, self._measure.bounds[0]), math.inf)
            if self._gate.compares_groups
            else self._measure.bounds,
        )

    def _lacking_support(self, rows: Sequence[Row]) -> str:
        """Return the effective sample of the row of ``metrics`` that has the least, in words, if it is too small."""
        lacking = [row for row in rows if row.get("has_support") is False]
        if not lacking:
            return ""
        least = min(lacking, key=lambda row: row["n_effective"])
        found = f"an effective sample of {round(least['n_effective']):,} of {least['n_users']:,} users"
        return f"{found} of {least[C.MODEL_ID]}, where a verdict needs {self._least_users}"

    def _evidence_of_difference(self, metrics: Sequence[Row], row: Row) -> Evidence:
        """Return the evidence in a row of ``comparisons``, whose tests are all symmetric."""
        both = [_key(row), _key({**row, C.MODEL_ID: row[C.BASELINE_MODEL_ID]})]
        unsupported = self._lacking_support([other for other in metrics if _key(other) in both])
        difference = _estimate(row, "delta", "ci")
        freedom = row["n_users"] - 1.0 if row.get("freedom") is None else row["freedom"]
        # The two-sided p is split; all tests of ``comparisons`` are symmetric.
        p, delta = _nan_if_none(row["p_value"]), difference.value
        p_less = p_greater = math.nan if math.isnan(p) else 1.0
        if delta != 0:
            p_less, p_greater = (p / 2, 1 - p / 2) if delta < 0 else (1 - p / 2, p / 2)
        return Evidence(
            self._describe(row[C.MODEL_ID], row[C.SLICE_VALUE]),
            row["n_users"],
            Estimate(_nan_if_none(row[C.VALUE]), math.nan, math.nan),
            row[C.BASELINE_MODEL_ID],
            difference,
            _estimate(row, "relative_delta", "relative_ci"),
            _nan_if_none(row.get("std_error")),
            freedom,
            p_less,
            p_greater,
            self._good_side,
            is_of_t=row.get("method") != "exact",
            unsupported=unsupported,
            withheld=why_withheld(row),
            n_others=row.get("n_baseline_users"),
            n_both=row["n_with_both"] if row["test"] == C.UNPAIRED else 0,
        )

    def _evidence_of_night_change(self, row: Row) -> Evidence:
        """Return the evidence in a row of ``metrics`` with its change since a night whose users partly differ."""
        what, value = self._describe(row[C.MODEL_ID], row[C.SLICE_VALUE]), _estimate(row, C.VALUE, "ci")
        previous, lacking = self._previous, ""
        night = f"the night of {previous.day}" if previous else ""
        changes = (other for other in (previous.rows if previous else ()) if other["n_earlier_users"])
        change = next((other for other in changes if _key(other) == _key(row)), None)
        if previous is None:
            lacking = "earlier published night"
        elif not previous.has_users:
            lacking = f"users of {night} (deleted by rankeval maintain)"
        elif previous.damage:
            lacking = f"whole files of {night} (run it again)"
        elif change is None:
            lacking = f"value of the same definition on {night}"
        unsupported = self._lacking_support([row])
        if change is not None and change.get("reason") == TOO_LITTLE_SUPPORT:
            unsupported = unsupported or f"an effective sample of {night} below {self._least_users} users"
        if change is None or lacking:
            return Evidence(what, row["n_users"], value, lacking=lacking)
        return Evidence(
            what,
            min(change["n_users"], change["n_earlier_users"]),
            value,
            night,
            _estimate(change, "delta", "ci"),
            _estimate(change, "relative_delta", "relative_ci"),
            _nan_if_none(change["std_error"]),
            _nan_if_none(change["freedom"]),
            _nan_if_none(change["p_less"]),
            _nan_if_none(change["p_greater"]),
            better=self._good_side,
            is_paired=False,
            unsupported=unsupported,
        )

    def _describe(self, model: str, slice_value: str) -> str:
        """Write which value a verdict is about, such as ``als: nDCG@10, country = AT``."""
        gate, name = self._gate, with_cutoff(self._label, self._measure.k)
        if gate.slice == C.ALL_USERS:
            return f"{model}: {name}"
        is_named = slice_value or not gate.compares_groups
        return f"{model}: {name}{f', {slice_name(gate.slice, slice_value)}' if is_named else f' by {gate.slice}'}"

    def _judge_absent(self, model: str, metrics: Sequence[Row]) -> GateVerdict:
        """Return why a rule has no row of a model ('': of every one): no baseline, no user in the slice, or no row."""
        gate, names = self._gate, sorted({row[C.MODEL_ID] for row in metrics})

        def list_models(name: str) -> str:  # one that is misspelt looks like one that is not there yet
            there = f"the models of this night: {', '.join(names)}" if names else ""
            return "; ".join(filter(None, (there, nearest(name, names))))

        if gate.needs_baseline and self._baseline not in names:
            what = self._describe(model or "every model", gate.slice_value or "any")
            return arithmetic.no_baseline(what, f"baseline {self._baseline}", list_models(str(self._baseline)))
        is_elsewhere = any(row[C.SLICE] == C.ALL_USERS and row[C.MODEL_ID] == model for row in metrics)
        if gate.slice != C.ALL_USERS and (is_elsewhere or not model):
            where = gate.slice if gate.slice_values is None else slice_name(gate.slice, gate.slice_value)
            return arithmetic.missing_slice(f"{model or 'every model'}, {where}")
        is_named = not model or gate.models == (model,)
        hint = "" if not model or is_elsewhere else list_models(model)
        return arithmetic.no_match(f"{gate}" if is_named else f"{gate}, model {model},", hint)

    def _to_row(self, about: Row, verdict: GateVerdict) -> dict[str, Any]:
        """Build a row of ``gates``."""
        return {
            "gate": self._number,
            **{name: about[name] for name in (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.SLICE_VALUES)},
            C.MEASURE: self._label,
            C.K: self._measure.k,
            "rule": str(self._gate),
            "verdict": verdict.outcome,
            "observed": _finite_or_none(verdict.observed),
            "bound": _finite_or_none(verdict.bound),
            "n_users": about["n_users"],
            "explanation": verdict.sentence,
        }


def _key(row: Row) -> tuple[object, ...]:
    return (row[C.MODEL_ID], row[C.SLICE], tuple(row[C.SLICE_VALUES]), row[C.MEASURE], row[C.K])


def _estimate(row: Row, value: str, ends: str) -> Estimate:
    return Estimate(*(_nan_if_none(row[name]) for name in (value, f"{ends}_low", f"{ends}_high")))


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def with_exact_test(gate: Gate, row: Mapping[str, Any], evidence: Evidence, verdict: GateVerdict) -> GateVerdict:
    """Return a verdict; "too few users" where the exact test says otherwise, or cannot be made.

    An interval is always that of t. Where few users differ, the test is exact, and the two may disagree: for 5 users
    better and none worse the interval leaves 0 out, and p is .0625. So a gain that passes needs its test too, and a
    rule that allows a loss does not fail where the test finds a gain. Of models that serve different users, too few
    values other than 0 leave neither a test nor an interval that means something.
    ``row`` is one of ``comparisons``, or for a change from the previous night of ``metrics``.
    """
    value = evidence.gain(is_relative=False).value
    has_few = evidence.n_others is not None and row["reason"] == "few_differences"
    if verdict.outcome not in DECIDED or math.isnan(value) or (value == 0 and not has_few):
        return verdict
    p = 2 * min(evidence.p_less, evidence.p_greater)
    is_of_t = not math.isnan(p) and evidence.is_of_t and evidence.std_error != 0
    is_gain = value > 0 and p <= gate.error_share * (1 - row["ci_level"])
    passed = verdict.outcome == "passed"
    if gate.alpha is not None:
        is_contradicted = passed and math.isnan(p)
    elif passed:
        is_contradicted = verdict.bound >= 0 and not is_gain
    else:
        is_contradicted = verdict.bound <= 0 and is_gain
    if not has_few and (is_of_t or not is_contradicted):
        return verdict
    delta, low, high = evidence.difference
    places = decimals([(high - low) / 2], [delta])
    found = f"{signed(delta, places)} ({interval(low, high, places, has_sign=True)}, {evidence.n_users:,} users)"
    test = "for a test" if math.isnan(p) else f"for the interval: the exact test gives {p_in_words(p)}"
    few = "have a value other than 0" if has_few else "differ"
    text = f"{evidence.what} differs from {evidence.versus} by {found}, but too few users {few} {test}: not judged."
    return GateVerdict("too_few_users", math.nan, math.nan, text)
