"""What is recorded of a measure, and when two nights are taken to have measured the same."""

from __future__ import annotations

from typing import Any

import pytest

from rankeval_spark.apps.history.published_runs import PastNight
from rankeval_spark.apps.nightly.night import measure_facts
from rankeval_spark.config import Policies
from rankeval_spark.measures import MeasureSet


def definition_of(text: str) -> str:
    (fact,) = measure_facts(MeasureSet.parse([text], where="measures"), Policies())
    return fact.definition


def read_again(definition: str) -> str:
    """Give the definition of a published night as it is compared."""
    measure: dict[str, Any] = {"measure": "R", "k": 5, "column": "r", "definition": definition}
    return PastNight(dict(measures=[measure])).definitions["R", 5]


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


@pytest.mark.parametrize("text", ["R@5", "R(group='tail')@5"])
def test_night_from_before_items_could_be_left_out_kept_them(text: str) -> None:
    recorded = definition_of(text)
    before = recorded.replace(", seen_in_train=keep, unknown_items=keep", "")
    assert before != recorded
    assert read_again(before) == read_again(recorded) == recorded
    dropped = recorded.replace("seen_in_train=keep", "seen_in_train=drop")
    assert read_again(dropped) == dropped


def test_nights_under_different_rules_are_of_different_definitions() -> None:
    recorded = definition_of("R(group='tail')@5")
    assert read_again(recorded.replace("80 %", "50 %")) != recorded


@pytest.mark.parametrize(
    "text", ["nDCG(gains={1:1,2:3},group='tail')@5", "AP(rel=2,denom='hits')@5", "MAR(kind='cutoffs')@5"]
)
def test_night_that_was_published_before_a_measure_had_an_option_is_still_of_the_same_definition(text: str) -> None:
    """It was then what the default of the option says."""
    recorded = definition_of(text)
    before = recorded.replace("agg='macro',", "").replace("unjudged='zero'", "").replace(",)", ")")
    assert before != recorded
    assert read_again(before) == read_again(recorded) == recorded
    assert read_again(definition_of(text.replace("(", "(agg='micro',", 1))) != recorded


@pytest.mark.parametrize("recorded", ["Unheard(of=1); population=truth", "P(denom='gone'); population=truth"])
def test_definition_that_this_version_does_not_know_stays_as_it_was_recorded(recorded: str) -> None:
    assert read_again(recorded) == recorded


def test_definition_of_judged_items_alone_is_another_than_that_of_all() -> None:
    assert "judged_only=True" in definition_of("P(judged_only=True)@5").split("; ")[0]
    assert read_again(definition_of("P@5")) != read_again(definition_of("P(judged_only=True)@5"))


def test_definition_of_all_items_has_no_rule() -> None:
    recorded = definition_of("R@5")
    assert "group" not in recorded
    assert read_again(recorded) == recorded


@pytest.mark.parametrize("text", ["R@5", "R(group='tail')@5", "R(group='a, unit=b')@5"])
def test_night_that_was_published_before_the_policy_unit_is_one_of_means_over_users(text: str) -> None:
    recorded = definition_of(text)
    assert ", unit=user" in recorded
    assert read_again("".join(recorded.rsplit(", unit=user", 1))) == read_again(recorded) == recorded
    assert read_again(recorded.replace(", unit=user", ", unit=list")) != recorded
