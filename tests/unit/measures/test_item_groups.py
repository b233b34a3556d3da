"""Measures of one item group, of values beside the gains, and of items that no judgement is known of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.apps.trec_report import requested_lines
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Lists, MeasureSet, Ranking, registry, required_facts
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.required_facts import BY_POPULARITY, MAX_GROUPS
from tests.support import oracles
from tests.support.rankings import batches
from tests.support.scored import assert_all_equal, by_measure, parsed

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.definition import Definition

GROUPED: Final = [entry for entry in registry.entries() if entry.option(GROUP)]
RATINGS: Final = {
    *("RMSE", "MSE", "MAE", "PredictedShare", "FCP", "KendallTau", "Spearman", "AUC", "GAUC", "LogLoss", "infAP"),
}
"""Measures that read negative gains, as their sources say."""


def values(texts: list[str], batch: list[Ranking]) -> list[FloatVector]:
    """Score a batch and give each measure its values, list by list."""
    return [*by_measure(parsed(*texts), Lists.of(batch)).values()]


def test_measures_of_judgements_have_groups_and_those_of_other_items_have_none() -> None:
    without = {entry.name for entry in registry.entries("list")} - {entry.name for entry in GROUPED}
    reading = {
        measure.name
        for measure in oracles.all_variants(ks=(1, 0))
        if not (required_facts.DESCRIBED | {required_facts.CATALOGUE_ITEMS}).isdisjoint(measure.needs)
    }
    off_policy = {"IPS", "ClippedIPS", "SNIPS", "DR", "ImportanceWeight"}
    assert without == reading | {"SufficientReco", "UserCoverage", "UserValue"} | off_policy


def named(entry: Definition, group: str | None = None) -> str:
    """Name a measure, of one group or of all judgements."""
    options = [*(["max_rel=4"] if entry.option("max_rel") else []), *([f"group='{group}'"] if group else [])]
    cutoff = "@3" if entry.cutoff.need(entry.defaults) != "forbidden" else ""
    return f"{entry.name}({','.join(options)}){cutoff}"


@given(batch=batches())
def test_every_such_measure_is_that_of_the_lists_without_the_other_judgements(batch: list[Ranking]) -> None:
    for group in ("rock", "head"):
        alone = [oracles.within(one, group) for one in batch]
        of_group = values([named(entry, group) for entry in GROUPED], batch)
        without_group = values([named(entry) for entry in GROUPED], alone)
        expected = {}
        for entry, found in zip(GROUPED, without_group, strict=True):
            least = -math.inf if entry.name in RATINGS else 0  # else a gain below 0 is no judgement
            has_any = [any(gain is not None and gain >= least for gain in (*one.gains, *one.missed)) for one in alone]
            expected[entry.name] = np.where(has_any, found, np.nan)
        assert_all_equal(dict(zip(expected, of_group, strict=True)), expected, atol=0)


@given(batch=batches())
def test_hits_of_head_middle_and_tail_are_all_hits_of_items_in_a_group(batch: list[Ranking]) -> None:
    grouped = [
        one._replace(
            groups=[text or "tail" for text in one.groups], missed_groups=[t or "tail" for t in one.missed_groups]
        )
        for one in batch
    ]
    whole, *parts = values(["NumHits@3", *(f"NumHits(group='{group}')@3" for group in BY_POPULARITY)], grouped)
    np.testing.assert_array_equal(np.nan_to_num(whole), sum(np.nan_to_num(part) for part in parts))


@given(batch=batches())
def test_values_that_are_the_gains_give_the_measures_of_gains(batch: list[Ranking]) -> None:
    same = [one._replace(values=(), missed_values=()) for one in batch]
    for name in ("CG", "nCG", "DCG", "nDCG"):
        by_value, by_gain = values([f"{name}(gains='value')@3", f"{name}@3"], same)
        np.testing.assert_allclose(by_value, by_gain, rtol=0, atol=1e-12)
    ones = [one._replace(values=[1.0] * len(one.gains), missed_values=[1.0] * len(one.missed)) for one in batch]
    by_value, by_count = values(["R(gains='value')@3", "R@3"], ones)
    np.testing.assert_array_equal(by_value, by_count)


@given(batch=batches(), factor=st.sampled_from([0.5, 2.0, 8.0]))
def test_the_unit_of_values_changes_no_share(batch: list[Ranking], factor: float) -> None:
    scaled = [
        one._replace(
            values=[value * factor for value in one.values],
            missed_values=[value * factor for value in one.missed_values],
        )
        for one in batch
    ]
    texts = ["R(gains='value')@3", "nDCG(gains='value')@3", "nCG(gains='value',unjudged='mean')@3"]
    for before, after in zip(values(texts, batch), values(texts, scaled), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("unjudged", ["mean", "median"])
def test_where_all_judged_items_are_alike_every_full_list_is_perfect(unjudged: str) -> None:
    (found,) = values([f"nDCG(unjudged='{unjudged}')@4"], [Ranking([None, 2, None, None, 2], missed=[2])])
    np.testing.assert_allclose(found, [1], rtol=0, atol=1e-12)


@given(batch=batches())
def test_an_imputed_gain_never_lowers_a_sum_of_gains(batch: list[Ranking]) -> None:
    zero, mean = values(["DCG@5", "DCG(unjudged='mean')@5"], batch)
    assert not (mean < zero - 1e-12).any()
    assert (np.isnan(zero) == np.isnan(mean)).all()


def test_what_a_batch_does_not_hold_is_named() -> None:
    bare = replace(Lists.of([Ranking([1])]), groups=None, judged_value=None)
    with pytest.raises(ValueError, match="has no item groups"):
        MeasureSet.parse(["P(group='tail')@1"]).score(bare)
    with pytest.raises(ValueError, match="has no values"):
        MeasureSet.parse(["R(gains='value')@1"]).score(bare)


def test_groups_of_a_run_are_numbered_and_need_their_inputs() -> None:
    asked = MeasureSet.parse(
        ["P(group='tail')@1", "P@1", "AP(group='rock')", "R(group='tail')@2", "R(gains='value')@2"]
    )
    assert asked.groups == ("tail", "rock")
    assert asked.requiring() == {
        "train": ["P(group='tail')", "R(group='tail')"],
        "items.categories": ["AP(group='rock')"],
        "held_out.value": ["R(gains='value')"],
    }
    assert asked.lacking(["held_out", "items"]) == {"train": ["P(group='tail')", "R(group='tail')"]}


def test_more_groups_than_bits_are_a_config_error() -> None:
    names = [f"P(group='c{number}')@1" for number in range(MAX_GROUPS + 1)]
    assert len(MeasureSet.parse(names[:MAX_GROUPS]).groups) == MAX_GROUPS
    with pytest.raises(ConfigError, match="measures of 63 item groups; expected at most 62"):
        MeasureSet.parse(names)


def test_the_highest_bit_is_distinct() -> None:
    groups = [f"c{number:02}" for number in range(MAX_GROUPS)]
    one = Ranking([1, 1], groups=[" ".join(groups[:-1]), groups[-1]])
    found = values([f"P(group='{group}')@2" for group in groups] + [f"RR(group='{groups[-1]}')"], [one])
    np.testing.assert_array_equal(np.concatenate(found), [1 / 2] * (MAX_GROUPS + 1))


@pytest.mark.parametrize("text", ["P(group='tail')@5", "R(gains='value')@5", "ClassAccuracy@5"])
def test_trec_files_lack_what_these_measures_read(text: str) -> None:
    with pytest.raises(ConfigError, match="expected one of a run and its judgements"):
        requested_lines([text], level=1, version=10)
