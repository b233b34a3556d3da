"""A negative gain marks an item that was pooled and not judged: for which measures it is no judgement."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings

from rankeval_spark.measures import Lists, MeasureSet, Ranking, registry
from tests.support import oracles
from tests.support.rankings import batches
from tests.support.scored import assert_all_equal

POOLED: Final = {"infAP"}
"""Counts the items of the pool."""
CLASSES: Final = {"AUC", "GAUC", "LogLoss"}
"""Read two classes, of which -1 may be one."""
NUMBERS: Final = {"RMSE", "MSE", "MAE", "PredictedShare", "FCP", "KendallTau", "Spearman"}
"""Read ratings, which may be negative."""
REWARDS: Final = {entry.name for entry in registry.entries("list") if entry.family == "off_policy"}
"""Read rewards of impressions, which may be negative."""
READING: Final = {*POOLED, *CLASSES, *NUMBERS, *REWARDS}
OTHERS: Final = MeasureSet.of(
    [
        measure
        for measure in filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0)))
        if measure.entry.kind == "list" and measure.name not in READING
    ]
)


@settings(max_examples=30, deadline=None)
@given(batch=batches())
def test_item_with_a_negative_gain_is_as_if_nobody_had_judged_it(batch: list[Ranking]) -> None:
    without = [
        oracles.forget(one, [gain is not None and gain >= 0 for gain in one.gains], [gain >= 0 for gain in one.missed])
        for one in batch
    ]
    assert_all_equal(OTHERS.score(Lists.of(batch)), OTHERS.score(Lists.of(without)))


@pytest.mark.parametrize("name", sorted(READING))
def test_source_of_each_exception_says_what_a_negative_gain_is(name: str) -> None:
    assert "negative gain" in registry.get(name).source
