"""What is recorded of a measure, and when two nights are taken to have measured the same."""

from __future__ import annotations

from typing import Final

import pytest

from rankeval_spark.config import Policies
from rankeval_spark.config.requested_measures import RecordedDefinition, recorded_definitions
from rankeval_spark.measures import Measure, MeasureSet, UnknownMeasureError
from rankeval_spark.results.run_record import measure_facts

RECORDED: Final = (
    *("P@5", "AP", "nDCG(gains={1:1,2:3})@10", "R(rel=2)@10", "IPrec@0.1", "nDCG(dcg='exp-log2')@10"),
    *("R(group='rock')@5", "R(group=\"rock 'n' roll\")@5", "R(group='{1:2}')@5", "R(judged_only=True,rel=0.5)@5"),
    *("Overlap(model='als')@10", "CatalogCoverage@10", "Gini", "P(agg='micro')@5"),
)


def definition_of(text: str, policies: Policies | None = None) -> RecordedDefinition:
    (fact,) = measure_facts(MeasureSet.parse([text], where="measures"), policies or Policies())
    return fact.definition


@pytest.mark.parametrize(
    ("group", "rule"),
    [
        ("head", "the fewest, most popular items that hold at least 20 % of the interactions in train"),
        ("middle", "items in neither the head (the fewest that hold 20 % of the interactions in train)"),
        ("tail", "items that are not among the fewest that hold 80 % of the interactions in train"),
        ("rock", "category of inputs.items"),
        ("rock 'n' roll", "category of inputs.items"),
    ],
)
def test_definition_holds_the_rule_of_the_item_group(group: str, rule: str) -> None:
    recorded = definition_of(f"R(group={group!r})@5")
    assert recorded.options["group"] == group
    assert recorded.policies["population"] == "truth"
    assert (recorded.group_rule or "").startswith(rule)
    assert str(recorded).endswith(f"consumed_before=keep; group: {recorded.group_rule}")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("P@5", "P(judged_only=True)@5"),
        ("nDCG(group='tail')@5", "nDCG(agg='micro',group='tail')@5"),
        ("R(group='tail')@5", "R(group='head')@5"),
    ],
)
def test_other_options_are_another_definition(text: str, other: str) -> None:
    assert definition_of(text) != definition_of(other)


def test_other_policies_are_another_definition() -> None:
    assert definition_of("R@5") != definition_of("R@5", Policies(unit="list"))


def test_policy_that_came_after_a_run_counts_as_its_default() -> None:
    """So that an upgrade alone does not make another measure of one that was published before it."""
    asked, facts = Policies(population="run"), measure_facts(MeasureSet.parse(["P@5"]), Policies(population="run"))
    (of_now,) = [fact.definition for fact in facts]
    earlier = [(name, text) for name, text in of_now.policies.items() if name != "own_item"]
    recorded = {"name": "P", "options": [*of_now.options.items()], "group_rule": None, "measure": "P", "k": 5}
    run = {"measures": [recorded], "policies": earlier}
    assert asked.own_item == "keep"
    assert recorded_definitions(run) == {("P", 5): of_now}
    assert recorded_definitions({**run, "policies": [*earlier, ("own_item", "drop")]}) != {("P", 5): of_now}


def test_definition_of_all_items_has_no_rule() -> None:
    assert definition_of("R@5").group_rule is None
    assert "group" not in str(definition_of("R@5"))


@pytest.mark.parametrize("text", RECORDED)
def test_measure_is_made_again_of_what_is_recorded(text: str) -> None:
    measure = Measure.parse(text)
    assert definition_of(text).measure(measure.k) == measure


def test_measure_that_this_version_does_not_know_is_named() -> None:
    with pytest.raises(UnknownMeasureError, match=r"runs\.measures.*unknown measure 'Unheard'"):
        RecordedDefinition("Unheard", {}).measure(5)


def test_difference_names_the_options_and_policies_that_are_other_ones() -> None:
    before, after = definition_of("R@5"), definition_of("R(judged_only=True)@5", Policies(unit="list"))
    assert before.differences_from(after) == ["unit=user"]
    assert after.differences_from(before) == ["judged_only=True", "unit=list"]
