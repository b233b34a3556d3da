"""What is recorded of a measure, and when two nights are taken to have measured the same."""

from __future__ import annotations

import pytest

from rankeval_spark.apps.nightly.night import measure_facts
from rankeval_spark.config import Policies
from rankeval_spark.measures import MeasureSet


def definition_of(text: str, policies: Policies | None = None) -> str:
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
    call, policies, drawn = recorded.split("; ")
    assert f"group={group!r}" in call
    assert "population=truth" in policies
    assert drawn.startswith(f"group: {rule}")


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


def test_definition_of_all_items_has_no_rule() -> None:
    assert "group" not in definition_of("R@5")
