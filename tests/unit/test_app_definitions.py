"""What is recorded of a measure, and when two nights are taken to have measured the same."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from rankeval_spark.app.night import measure_facts
from rankeval_spark.app.past import PastNight
from rankeval_spark.config import Policies
from rankeval_spark.measures import MeasureSet


def definition_of(text: str) -> str:
    (fact,) = measure_facts(MeasureSet.parse([text], where="measures"), Policies())
    return fact.definition


def read_again(definition: str) -> str:
    """Give the definition of a published night as it is compared."""
    measure: dict[str, Any] = {"measure": "R", "k": 5, "column": "r", "definition": definition}
    return PastNight(Row(measures=[measure])).definitions["R", 5]


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


@pytest.mark.parametrize("group", ["head", "middle", "tail", "rock", "rock 'n' roll"])
def test_night_that_was_published_without_the_rule_is_still_of_the_same_definition(group: str) -> None:
    recorded = definition_of(f"R(group={group!r})@5")
    before, _, _ = recorded.rpartition("; group: ")
    assert read_again(before) == read_again(recorded) == recorded


def test_nights_under_different_rules_are_of_different_definitions() -> None:
    recorded = definition_of("R(group='tail')@5")
    assert read_again(recorded.replace("80 %", "50 %")) != recorded


def test_definition_of_all_items_has_no_rule() -> None:
    recorded = definition_of("R@5")
    assert "group" not in recorded
    assert read_again(recorded) == recorded
