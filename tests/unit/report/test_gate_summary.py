"""May it ship: the answer on the first screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark.report.night import Night, answer
from tests.support.report_tables import EVALUATION, FIRST_NIGHT, Plan, failed, published, runs

if TYPE_CHECKING:
    from rankeval_spark.report.night import Answer
    from rankeval_spark.report.tables import ReportTables

MORE_CASES = 6


def answer_of(tables: ReportTables, *verdicts: str) -> Answer:
    """Answer for the newest night, after the verdicts of its first gates are exchanged for others."""
    rows = [row for row in tables.gates.to_pylist() if row["evaluation_date"] == date(2026, 1, 3)]
    rows = [{**row, "verdict": verdict} for row, verdict in zip(rows, verdicts, strict=False)] + rows[len(verdicts) :]
    gates = pa.Table.from_pylist(rows, schema=tables.gates.schema)
    return answer(Night(replace(tables, gates=gates), evaluation=None, day=None))


def test_it_may_ship_where_every_rule_is_met(nights: ReportTables) -> None:
    found = answer_of(nights, *["passed"] * 13)
    assert (found.tone, found.headline, found.reason) == (
        *("good", "Yes, it may ship", "All 3 rules are met, in 13 cases."),
    )
    assert [rule.summary for rule in found.rules] == ["3 passed", "2 passed", "8 passed"]


def test_one_failed_rule_is_a_no_that_names_the_model(nights: ReportTables) -> None:
    found = answer_of(nights, "passed", "failed", *["passed"] * 11)
    assert (found.tone, found.headline, found.reason) == (
        "bad",
        "No, it may not ship",
        "item_knn: 1 of 3 rules failed.",
    )
    first = found.rules[0]
    assert (first.tone, first.summary) == ("bad", "1 failed, 2 passed")
    assert (first.shown[0].verdict, first.shown[0].tone) == ("failed", "bad")


def test_a_rule_that_matches_nothing_fails(nights: ReportTables) -> None:
    for verdict in ("no_match", "missing_slice"):
        assert answer_of(nights, verdict, *["passed"] * 12).tone == "bad"


def test_what_could_not_be_judged_is_not_passed(nights: ReportTables) -> None:
    found = answer_of(nights, "too_few_users", "no_baseline", *["passed"] * 11)
    assert (found.tone, found.headline) == ("open", "Yes, as far as it was judged")
    assert found.reason == "All 3 rules are met where they could be judged. 2 cases could not be judged."
    none = answer_of(nights, *["too_few_users"] * 13)
    assert (none.tone, none.headline, none.reason) == ("open", "Not decided", "None of 3 rules could be judged.")


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
    found = answer(Night(failed(0).of_runs(runs(row)), evaluation=None, day=None))
    assert (found.headline, found.reason) == ("Nothing was measured", "No rows for 2026-01-01 in held_out.")


def test_the_best_model_and_each_candidate_have_a_sentence_with_numbers(nights: ReportTables) -> None:
    lines = [one.text for one in answer_of(nights).highlights]
    assert len(lines) == 1 + 2
    assert lines[0].startswith(("als has the best nDCG@10: 0.", "item_knn has the best nDCG@10: 0."))
    assert "Next is " in lines[0]
    assert lines[0].endswith(", not compared with it.")
    assert lines[1].startswith("als against popular, nDCG@10: +0.")
    assert "adjusted p" in lines[1]


def test_no_model_has_the_best_of_what_has_no_better_side(nights: ReportTables) -> None:
    def judged(table: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(
            [{**row, "measure": "Judged"} for row in table.to_pylist() if row["measure"] == "nDCG"], table.schema
        )

    tables = {name: judged(getattr(nights, name)) for name in ("metrics", "comparisons", "gates")}
    lines = [one.text for one in answer_of(replace(nights, **tables)).highlights]
    assert [line.partition(",")[0] for line in lines] == ["als against popular", "item_knn against popular"]


def test_a_sample_of_the_users_is_said_on_the_first_screen(nights: ReportTables) -> None:
    rows = [{**row, "sample_share": 0.25} for row in nights.runs.to_pylist()]
    found = answer(Night(replace(nights, runs=runs(*rows)), evaluation=None, day=None))
    assert ("sample", "25 % of the users") in found.facts
