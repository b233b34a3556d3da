"""The measures of parity between groups of popularity: golden values, naive references, properties."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.measures import Measure, MeasureSet, Offered, Rates, registry
from tests.support import naive_parity, oracles

if TYPE_CHECKING:
    from rankeval_spark.measures import Golden
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.registry import Entry

ENTRIES = registry.entries("parity")
GOLDENS = [golden for entry in ENTRIES for golden in entry.definition.goldens]
GROUPS = ("a b", "c d", "e f g")

some_items = st.lists(st.sampled_from("abcdefgxy"), unique=True, max_size=7).map(" ".join)
users = st.lists(st.tuples(some_items, some_items, some_items), max_size=6)
batches = st.lists(users, min_size=1, max_size=4)


def offered_to(rows: list[tuple[str, str, str]]) -> Offered:
    """Give each user a list, relevant items, and items in the training data."""
    shown, relevant, own = zip(*rows, strict=True) if rows else ((), (), ())
    return Offered(shown, GROUPS, relevant, own)


def values(measure: Measure, groups: list[Offered]) -> FloatVector:
    """Value of each group of lists."""
    rates = Rates.of(groups, need=measure.needs[0], k=measure.k)
    return measure.entry.kernel(rates, **measure.options)


def expected(measure: Measure, one: Offered) -> float:
    """Value by the naive reference; the level of relevance is that of the examples, whose gains are 1."""
    groups = [set(group.split()) for group in one.groups]
    return naive_parity.expected(Measure.of(measure.name, k=measure.k), naive_parity.users_of(one), groups)


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.measure)
def test_kernel_and_naive_reference_give_the_golden_values(golden: Golden) -> None:
    measure = Measure.parse(golden.measure)
    shown = [one for one in golden.shown if isinstance(one, Offered)]
    for found in (values(measure, shown), [expected(measure, one) for one in shown]):
        np.testing.assert_allclose(found, [float(value) for value in golden.expected], rtol=0, atol=1e-12)
    assert str(measure) == golden.measure, "golden examples use canonical names"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@settings(max_examples=60)
@given(batch=batches, k=st.sampled_from([0, 1, 2, 5]))
def test_kernel_agrees_with_its_naive_reference(entry: Entry, batch: list[list[tuple[str, str, str]]], k: int) -> None:
    groups = list(map(offered_to, batch))
    for measure in oracles.variants(entry, [k]):
        found = values(measure, groups)
        wanted = [expected(measure, one) for one in groups]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12, err_msg=str(measure))


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


def test_a_set_asks_for_the_training_data_and_leaves_the_facts_of_lists_alone() -> None:
    asked = MeasureSet.parse(["P@5", "PopREO@5", "PopRSP@10"])
    assert [str(one) for one in asked.exposures] == ["PopREO@5", "PopRSP@10"]
    assert asked.lacking(["items"]) == {"train": ["PopREO", "PopRSP"]}
    assert asked.needs == frozenset()
