"""The night of a report: its run, what happened before it, and whether it may ship."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.report.night import Night, _rules, answer, verdict_of
from rankeval_spark.report.tables import ReportTables
from tests.support.report_tables import EVALUATION, FIRST_NIGHT, Plan, failed, published, runs, together

if TYPE_CHECKING:
    from rankeval_spark.report.night import Answer


# ---- which night is reported, and what happened in the nights before it --------------------------------------------


def night_of(tables: ReportTables, **wanted: Any) -> Night:  # noqa: ANN401 - those of Night
    """Find a night."""
    return Night(tables, **{"evaluation": None, "day": None, **wanted})


def with_run(tables: ReportTables, day: int, **changes: object) -> ReportTables:
    """Replace the run of a day."""
    run = {"evaluation": EVALUATION, "evaluation_date": date(2026, 1, day), "run_id": f"again-{day}"}
    others = [row for row in tables.runs.to_pylist() if row["evaluation_date"].day != day]
    return replace(tables, runs=runs(*others, published(Plan(), run, **changes)))


def test_the_newest_published_night_is_reported(nights: ReportTables) -> None:
    night = night_of(together([nights, failed(3)]))
    assert (night.evaluation, night.day, night.is_published) == (EVALUATION, date(2026, 1, 3), True)
    assert night.metrics.num_rows == nights.metrics.num_rows / 3
    assert night.failures == {}


def test_a_date_chooses_a_night_that_failed_too(nights: ReportTables) -> None:
    night = night_of(together([nights, failed(3)]), day=date(2026, 1, 4))
    assert not night.is_published
    assert night.failures == {date(2026, 1, 4): "read: no row in data/held_out"}
    assert (night.metrics.num_rows, night.n_nights) == (0, 3)


def test_a_run_that_failed_after_the_night_was_published_changes_nothing(nights: ReportTables) -> None:
    night = night_of(together([nights, failed(2)]))
    assert night.is_published
    assert night.failures == {}


def test_later_nights_are_not_part_of_the_history(nights: ReportTables) -> None:
    night = night_of(together([nights, failed(3)]), day=date(2026, 1, 2))
    assert night.n_nights == 2
    assert night.failures == {}


def test_a_date_that_is_not_there_is_an_error_that_names_those_that_are(nights: ReportTables) -> None:
    with pytest.raises(InputError, match="no night of nightly on 2026-02-01; expected a night from 2026-01-01 to 2026"):
        night_of(nights, day=date(2026, 2, 1))


def test_of_several_evaluations_one_is_named(nights: ReportTables) -> None:
    other = nights.runs.set_column(0, "evaluation", pa.array(["weekly"] * 3))
    both = replace(nights, runs=pa.concat_tables([nights.runs, other]))
    with pytest.raises(ConfigError, match="--evaluation: found none; expected one of: nightly, weekly"):
        night_of(both)
    assert night_of(both, evaluation="nightly").metrics.num_rows
    with pytest.raises(
        InputError, match=r"found 'nigthly'; expected one of: nightly, weekly; did you mean 'nightly'\?"
    ):
        night_of(both, evaluation="nigthly")


def test_nothing_that_ended_is_an_error() -> None:
    row = published(Plan(), {"evaluation": "a", "evaluation_date": FIRST_NIGHT, "run_id": "r"}, status="RUNNING")
    with pytest.raises(InputError, match="found no run that ended"):
        night_of(ReportTables.without_rows(runs(row)))


def test_a_baseline_that_nothing_is_compared_with_is_refused(nights: ReportTables) -> None:
    assert night_of(nights, baseline="popular").baseline == "popular"
    with pytest.raises(ConfigError, match="--baseline: found 'als'; expected one of those compared with: popular"):
        night_of(nights, baseline="als")


def test_the_measure_of_the_first_gate_is_looked_at_first(nights: ReportTables) -> None:
    assert night_of(nights).first == ("nDCG", 10)
    rules = nights.gates.to_pylist()
    of_precision = [{**row, "measure": "P", "k": 5} for row in rules]
    changed = replace(nights, gates=pa.Table.from_pylist(of_precision, schema=nights.gates.schema))
    assert night_of(changed).first == ("nDCG", 10)  # a measure that is primary comes before it
    night = night_of(replace(changed, comparisons=nights.comparisons.slice(0, 0)))
    assert night.first == ("P", 5)
    assert night.headlines[:3] == [("P", 5), ("nDCG", 5), ("RR", 5)]


def test_each_question_has_one_measure_the_first_that_was_requested(nights: ReportTables) -> None:
    """R and P both count hits; all of the request are nDCG, P, R, RR, four beyond accuracy, and a curve."""
    names = [("nDCG", 10), ("RR", 10), ("P", 10), ("CatalogCoverage", 10), ("MIUF", 10), ("Personalization", 10)]
    assert night_of(nights).headlines == names


def test_measures_keep_the_order_of_the_request(nights: ReportTables) -> None:
    labels = list(dict.fromkeys(label for label, _ in night_of(nights).requested))
    assert labels[:8] == ["nDCG", "P", "R", "RR", "CatalogCoverage", "MIUF", "ARP", "Personalization"]


def test_history_shows_the_bound_of_a_gate_on_the_value_but_not_of_a_gain(
    nights: ReportTables,
) -> None:
    marks = night_of(nights).marks(("nDCG", 10))
    assert [(row["date"], row["bound"], row["text"]) for row in marks.bounds] == [
        (f"2026-01-0{day}", 0.1, "at least 0.1") for day in (1, 2, 3)
    ]
    assert night_of(nights).marks(("P", 10)).bounds == []


def test_a_changed_definition_is_marked_on_the_first_night_that_has_it(nights: ReportTables) -> None:
    def redefined(measure: dict[str, Any]) -> dict[str, Any]:
        options = {**dict(measure["options"]), "dcg": "exp-log2"}
        return {**measure, "options": options} if measure["measure"] == "nDCG" else measure

    own = nights.runs.to_pylist()[0]["measures"]
    night = night_of(with_run(nights, 2, measures=[redefined(one) for one in own]))
    assert night.marks(("nDCG", 10)).redefined == {
        date(2026, 1, 2): "was dcg=log2; is dcg=exp-log2",
        date(2026, 1, 3): "was dcg=exp-log2; is dcg=log2",
    }
    assert night.marks(("P", 10)).redefined == {}


def test_a_night_without_the_measure_is_no_change(nights: ReportTables) -> None:
    night = night_of(with_run(nights, 2, measures=[]))
    assert night.marks(("nDCG", 10)).redefined == {}


def test_the_newest_run_of_a_night_counts(nights: ReportTables) -> None:
    again = with_run(nights, 3).runs
    newest = again.filter(pa.compute.equal(again["run_id"], "again-3")).to_pylist()[0]
    later = {**newest, "recorded_at": newest["recorded_at"].replace(year=2027)}
    both = replace(nights, runs=pa.concat_tables([nights.runs, runs(later)]))
    assert night_of(both).run["run_id"] == "again-3"


# ---- may it ship: the answer on the first screen -------------------------------------------------------------------


MORE_CASES = 6


def answer_of(tables: ReportTables, *verdicts: str) -> Answer:
    """Answer for the newest night, after the verdicts of its first gates are exchanged for others."""
    rows = [row for row in tables.gates.to_pylist() if row["evaluation_date"] == date(2026, 1, 3)]
    rows = [{**row, "verdict": verdict} for row, verdict in zip(rows, verdicts, strict=False)] + rows[len(verdicts) :]
    gates = pa.Table.from_pylist(rows, schema=tables.gates.schema)
    return answer(Night(replace(tables, gates=gates), evaluation=None, day=None))


def test_it_may_ship_where_every_rule_is_met(nights: ReportTables) -> None:
    found = answer_of(nights, *["passed"] * 13)
    assert (found.tone, found.headline) == ("good", "als may ship")
    assert found.reason == (
        "It is the best of three models by nDCG@10, 0.363: not compared with item_knn, which `rankeval compare "
        "--against item_knn` does. item_knn may ship too. All 3 rules are met, in 13 cases."
    )
    assert str(verdict_of(nights.gates.to_pylist())) == "Yes, it may ship. All 3 rules are met, in 39 cases."
    assert [rule.summary for rule in found.rules] == ["3 passed", "2 passed", "8 passed"]


def test_one_failed_rule_is_a_no_that_names_the_model(nights: ReportTables) -> None:
    found = answer_of(nights, "passed", "failed", *["passed"] * 11)
    assert (found.tone, found.headline) == ("bad", "No, it may not ship")
    assert found.reason.startswith("item_knn: 1 of 3 rules failed. als is the best of three models by nDCG@10, 0.363: ")
    assert found.reason.endswith(" als meets every rule: name the candidate in `models`.")
    first = found.rules[0]
    assert (first.tone, first.summary) == ("bad", "1 failed, 2 passed")
    assert (first.shown[0].verdict, first.shown[0].tone) == ("failed", "bad")


def test_a_rule_that_matches_nothing_fails(nights: ReportTables) -> None:
    for verdict in ("no_match", "missing_slice"):
        assert answer_of(nights, verdict, *["passed"] * 12).tone == "bad"


def test_what_could_not_be_judged_is_not_passed(nights: ReportTables) -> None:
    found = answer_of(nights, "too_few_users", "no_baseline", *["passed"] * 11)
    assert (found.tone, found.headline) == ("open", "als may ship, as far as it was judged")
    assert (
        found.reason.partition(" may ship too. ")[2]
        == "All 3 rules are met where they could be judged. 2 cases could not be judged."
    )
    none = answer_of(nights, *["too_few_users"] * 13)
    assert (none.tone, none.headline) == ("open", "Not decided")
    assert none.reason.startswith("None of 3 rules could be judged. als is the best of three models by nDCG@10, ")


def test_every_row_of_a_rule_is_a_sentence_and_long_lists_fold_after_failures(nights: ReportTables) -> None:
    found = answer_of(nights, *["passed"] * 5, "failed", "too_few_users", *["passed"] * MORE_CASES)
    rule = found.rules[0]
    assert rule.text == "nDCG@10 by country: alpha 0.05"
    assert [one.verdict for one in rule.shown] == ["failed", "not judged"]
    assert len(rule.folded) == MORE_CASES
    assert all(one.text.endswith(".") and not one.text.endswith("passed.") for one in rule.folded)


def test_without_rules_the_answer_says_how_to_add_them(nights: ReportTables) -> None:
    found = answer(Night(replace(nights, gates=nights.gates.slice(0, 0)), evaluation=None, day=None))
    assert (found.tone, found.headline) == ("open", "No rules to judge by")
    assert "`gates`" in found.hint


def test_a_failed_night_says_at_which_stage_and_why() -> None:
    found = answer(Night(failed(0), evaluation=None, day=None))
    assert (found.tone, found.headline) == ("bad", "Nothing was published")
    assert found.reason == "The run failed. Read: no row in data/held_out."
    assert [one.text for one in found.highlights] == ["Failed check: held_out, volume"]


def test_an_empty_night_says_which_input_has_no_rows() -> None:
    run = {"evaluation": EVALUATION, "evaluation_date": FIRST_NIGHT, "run_id": "r"}
    row = published(Plan(), run, reason="no rows for 2026-01-01 in held_out")
    found = answer(Night(failed(0).without_rows(runs(row)), evaluation=None, day=None))
    assert (found.headline, found.reason) == ("Nothing was measured", "No rows for 2026-01-01 in held_out.")


def test_each_candidate_and_each_check_to_look_at_have_a_sentence(nights: ReportTables) -> None:
    lines = [one.text for one in answer_of(nights).highlights]
    assert len(lines) == 2 + 1
    assert lines[0].startswith("als against popular, nDCG@10: +0.")
    assert lines[0].endswith(", adjusted p < .001.")
    check = answer_of(nights).highlights[-1]
    assert (check.verdict, check.section) == ("check", "checks")
    assert check.text == "held out in train in held_out: 287, 19.7 %, more than 0 %."


def test_what_was_pooled_over_nights_is_said_beside_the_night(nights: ReportTables) -> None:
    rows = nights.comparisons.to_pylist()
    pooled = [{**row, "test": "pooled", "nights": 3, "delta": 0.5, "ci_low": 0.4, "ci_high": 0.6} for row in rows]
    both = pa.Table.from_pylist([*rows, *pooled], schema=nights.comparisons.schema)
    lines = [one.text for one in answer_of(replace(nights, comparisons=both)).highlights]
    assert lines[1].startswith("als against popular over the last 3 nights, nDCG@10: +0.50 (+0.40 to +0.60), p ")
    assert len(lines) == 2 * 2 + 1
    night = night_of(replace(nights, comparisons=both))
    assert set(night.comparisons["test"].to_pylist()) == {"t"}


def test_no_model_has_the_best_of_what_has_no_better_side(nights: ReportTables) -> None:
    def judged(table: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(
            [{**row, "measure": "Judged"} for row in table.to_pylist() if row["measure"] == "nDCG"], table.schema
        )

    tables = {name: judged(getattr(nights, name)) for name in ("metrics", "comparisons", "gates")}
    lines = [one.text for one in answer_of(replace(nights, checks=nights.checks.slice(0, 0), **tables)).highlights]
    assert [line.partition(",")[0] for line in lines] == ["als against popular", "item_knn against popular"]


def test_a_sample_of_the_users_is_said_on_the_first_screen(nights: ReportTables) -> None:
    rows = [{**row, "sample_share": 0.25} for row in nights.runs.to_pylist()]
    found = answer(Night(replace(nights, runs=runs(*rows)), evaluation=None, day=None))
    assert ("sample", "25 % of the users", "") in found.facts


def test_an_undecided_rule_is_neither_met_nor_failed() -> None:
    row = {"gate": 1, "model_id": "als", "slice_value": "", "rule": "nDCG@10: at_least 0.3, certainty 0.95"}
    undecided = {**row, "verdict": "undecided", "explanation": "als: nDCG@10 is 0.31: undecided."}
    passed = {**row, "gate": 2, "verdict": "passed", "explanation": "als: RR@10 is 0.5: passed."}
    found = verdict_of([undecided, passed])
    assert found.tone == "open"
    assert str(found) == (
        "Not decided. 1 of 2 rules is not met with the certainty that is asked for. 1 case undecided: no interval "
        "that clears the bound."
    )
    rule, _ = _rules([undecided, passed])
    assert (rule.tone, rule.summary) == ("open", "1 undecided")
    assert (rule.shown[0].text, rule.shown[0].verdict) == ("als: nDCG@10 is 0.31.", "undecided")
