"""A thousand random lists for each measure against its naive reference, the same ones in every run.

Hypothesis looks for the awkward and small; these are many and as long as lists are.
"""

from __future__ import annotations

import random
from typing import Final

import numpy as np
import pytest

from rankeval_spark.measures import Lists, MeasureSet, Ranking, registry
from tests.support import oracles
from tests.support.rankings import GRADES, MEMBERSHIPS, VALUES

N_CASES: Final = 1000
KS: Final = (1, 2, 3, 5, 10, 20, 0)


def random_ranking(draw: random.Random) -> Ranking:
    """Draw a list of 0 to 25 items and what it misses: no, few or many judgements, R below and above k."""
    judged_share = draw.choice([0, 0.1, 0.5, 1])
    gains = [draw.choice(GRADES) if draw.random() < judged_share else None for _ in range(draw.randint(0, 25))]
    missed = draw.choices(GRADES, k=draw.choice([0, 0, 1, 4, 15]))
    return Ranking(
        gains,
        missed,
        values=draw.choices(VALUES, k=len(gains)),
        missed_values=draw.choices(VALUES, k=len(missed)),
        groups=draw.choices(MEMBERSHIPS, k=len(gains)),
        missed_groups=draw.choices(MEMBERSHIPS, k=len(missed)),
        user_values=[(oracles.TEXT, draw.gauss())] if draw.random() < judged_share else (),
    )


@pytest.mark.parametrize("name", sorted(entry.name for entry in registry.entries("list")))
def test_kernel_agrees_with_its_reference_on_a_thousand_random_lists(name: str) -> None:
    """The lists are dealt out over the variants of the measure, at least one to each."""
    draw = random.Random(f"a thousand cases of {name}")
    rankings = [random_ranking(draw) for _ in range(N_CASES)]
    measures = list(filter(oracles.takes_every_list, oracles.variants(registry.get(name), KS)))
    n_values = 0
    for place, measure in enumerate(measures):
        own = rankings[place :: len(measures)] if len(measures) <= N_CASES else [rankings[place % N_CASES]]
        values = MeasureSet.of([measure]).score(Lists.of(own))[measure.column][:, 0]
        expected = [oracles.expected(measure, one) for one in own]
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, err_msg=str(measure))
        n_values += len(own)
    assert n_values >= N_CASES
