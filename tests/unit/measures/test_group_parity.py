"""The measures of parity between groups of items: exact values, naive references, properties."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.measures import Measure, MeasureSet, Offered, Preferred, Rates, registry
from tests.support import naive_parity, oracles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.definition import Definition

ENTRIES = registry.entries("parity")
GROUPS = ("a b", "c d", "e f g")

some_items = st.lists(st.sampled_from("abcdefgxy"), unique=True, max_size=7).map(" ".join)
users = st.lists(st.tuples(some_items, some_items, some_items), max_size=6)
batches = st.lists(users, min_size=1, max_size=4)


def offered_to(rows: list[tuple[str, str, str]]) -> Offered:
    """Give each user a list, relevant items, and items in the training data."""
    shown, relevant, own = zip(*rows, strict=True) if rows else ((), (), ())
    return Offered(shown, GROUPS, relevant, own)


def given_to(measure: Measure, rows: list[tuple[str, str, str]]) -> Offered | Preferred:
    """Leave out what a measure of a category does not look at."""
    one = offered_to(rows)
    return Preferred(one.lists, "a c x", one.own) if measure.name == "BiasDisparity" else one


def values(measure: Measure, groups: Sequence[Offered | Preferred]) -> FloatVector:
    """Value of each group of lists."""
    rates = Rates.of(groups, need=measure.needs[0], k=measure.k)
    return measure.entry.values(rates, measure.options)


def expected(measure: Measure, one: Offered | Preferred) -> float:
    """Value by the naive reference; the level of relevance is that of the examples, whose gains are 1."""
    if isinstance(one, Preferred):
        return naive_parity.expected(measure, naive_parity.users_with(one), [set(one.category.split())])
    groups = [set(group.split()) for group in one.groups]
    return naive_parity.expected(Measure.of(measure.name, k=measure.k), naive_parity.users_of(one), groups)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@settings(max_examples=60)
@given(batch=batches, k=st.sampled_from([0, 1, 2, 5]))
def test_kernel_agrees_with_its_naive_reference(
    entry: Definition, batch: list[list[tuple[str, str, str]]], k: int
) -> None:
    for measure in oracles.variants(entry, [k]):
        groups = [given_to(measure, rows) for rows in batch]
        found = values(measure, groups)
        wanted = [expected(measure, one) for one in groups]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12, err_msg=str(measure))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_kernel_agrees_with_its_naive_reference_on_a_thousand_random_groups(entry: Definition) -> None:
    """The same ones in every run, of up to 20 users with up to nine items each."""
    draw = random.Random(f"a thousand groups of {entry.name}")
    variants = list(oracles.variants(entry, [1, 2, 3, 5, 0]))
    for measure in variants:
        batch = [[drawn_user(draw) for _ in range(draw.randint(0, 20))] for _ in range(-(-1000 // len(variants)))]
        groups = [given_to(measure, rows) for rows in batch]
        wanted = [expected(measure, one) for one in groups]
        np.testing.assert_allclose(values(measure, groups), wanted, rtol=0, atol=1e-12, err_msg=str(measure))


def drawn_user(draw: random.Random) -> tuple[str, str, str]:
    """Draw a list, relevant items, and items in the training data."""
    shown, relevant, own = (" ".join(draw.sample("abcdefgxy", draw.randint(0, 9))) for _ in range(3))
    return shown, relevant, own


@pytest.mark.parametrize("name", ["PopREO", "PopRSP"])
@given(batch=batches)
def test_values_lie_between_equal_rates_and_one_group_that_takes_all(
    name: str, batch: list[list[tuple[str, str, str]]]
) -> None:
    found = values(Measure.parse(name), list(map(offered_to, batch)))
    assert all(-1e-12 <= value <= math.sqrt(2) + 1e-12 for value in found[~np.isnan(found)])


@pytest.mark.parametrize("name", ["PopREO", "PopRSP"])
def test_lists_that_hold_everything_are_fair(name: str) -> None:
    everything = "a b c d e f g"
    one = Offered((everything, everything), GROUPS, (everything, "a c e"), ("", "b"))
    np.testing.assert_allclose(values(Measure.parse(name), [one]), [0], rtol=0, atol=1e-12)


@given(batch=batches)
def test_a_disparity_is_never_below_minus_one(batch: list[list[tuple[str, str, str]]]) -> None:
    measure = Measure.parse("BiasDisparity(category='Drama')@3")
    found = values(measure, [given_to(measure, rows) for rows in batch])
    assert all(value >= -1 for value in found[~np.isnan(found)])


@given(rows=users)
def test_lists_of_what_users_have_are_not_biased(rows: list[tuple[str, str, str]]) -> None:
    lists = tuple(own for *_, own in rows)
    (value,) = values(Measure.parse("BiasDisparity(category='Drama')"), [Preferred(lists, "a c x", lists)])
    has_any = any(item in own for own in lists for item in "acx")
    np.testing.assert_allclose(value, 0 if has_any else math.nan, rtol=0, atol=1e-12)


def test_a_set_asks_for_the_training_data_and_leaves_the_facts_of_lists_alone() -> None:
    drama = "BiasDisparity(category='Drama')"
    asked = MeasureSet.parse(["P@5", "PopREO@5", "PopRSP@10", f"{drama}@5"])
    assert [str(one) for one in asked.exposures] == ["PopREO@5", "PopRSP@10", f"{drama}@5"]
    assert asked.lacking(["items"]) == {"train": ["PopREO", "PopRSP", drama]}
    assert asked.lacking(["train"]) == {"items": [drama]}
    assert asked.needs == frozenset()
