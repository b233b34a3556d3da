"""Measures that are ratios: their parts, and what a name with agg='micro' stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.statistics import intervals
from tests.support import oracles
from tests.support.rankings import batches

VARIANTS = filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0)))
MICRO = [measure for measure in VARIANTS if measure.is_micro and measure.group is None and not measure.is_judged_only]
WITH_PARTS = {
    *("P", "R", "F", "Rprec", "RMSE", "MSE", "MAE", "PredictedShare", "LogLoss", "FCP", "GAUC", "PopLift"),
    *("AP", "nDCG", "nCG", "nERR", "ARHR", "MAR", "Rprec_mult", "SetP", "SetR", "SetF", "RecallCeiling"),
    *("Judged", "Bpref", "infAP", "PAUC", "PAP", "AUC", "alpha_nDCG", "ERR_IA"),
    *("IPS", "ClippedIPS", "SNIPS", "DR", "ImportanceWeight"),
}


def test_measures_that_are_ratios_have_the_option_and_no_others() -> None:
    assert {measure.name for measure in MICRO} == WITH_PARTS
    for entry in registry.entries():
        if entry.name not in WITH_PARTS:
            cutoff = "@5" if entry.cutoff.need(entry.defaults) == "required" else ""
            with pytest.raises(ConfigError, match="option 'agg'; expected a measure that is a ratio"):
                Measure.parse(f"{entry.name}(agg='micro'){cutoff}")


@given(batch=batches())
def test_ratio_of_the_parts_is_the_value_and_the_denominator_its_weight(batch: list[Ranking]) -> None:
    lists = Lists.of(batch)
    for measure in MICRO:
        asked = MeasureSet.of([measure])
        scores = asked.score(lists)
        values, weights = (scores[name][:, 0] for name in asked.stored)
        seen = lists.weighted() if measure.is_weighted else lists
        ratio = measure.entry.kernel(seen.cut(asked.ks), **measure.kernel_options)
        assert isinstance(ratio, Ratio)
        kernel = np.broadcast_to(ratio.values, (len(batch), 1))[:, 0]
        np.testing.assert_allclose(intervals.published(measure.link, values), kernel, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(weights, np.broadcast_to(ratio.denominator, (len(batch), 1))[:, 0])
        is_defined = ~np.isnan(values)
        sums = np.broadcast_to(ratio.numerator, (len(batch), 1))[is_defined, 0]
        np.testing.assert_allclose((values * weights)[is_defined], sums, rtol=1e-12, atol=1e-12)


OF_CATEGORIES = {"PopLift", "alpha_nDCG", "ERR_IA"}
"""Measures with parts whose denominators worked examples alone show."""
WITH_DENOMINATOR = [
    measure
    for measure in MICRO
    if measure.name not in OF_CATEGORIES and measure.options.get("unjudged", "zero") == "zero"
]


def test_every_denominator_has_a_naive_reference() -> None:
    assert {*oracles.DENOMINATORS} == WITH_PARTS - OF_CATEGORIES


@settings(max_examples=15)
@given(batch=batches())
def test_users_are_put_together_by_what_naive_references_divide_by(batch: list[Ranking]) -> None:
    asked = MeasureSet.of(WITH_DENOMINATOR)
    scores = asked.score(Lists.of(batch))
    for measure in WITH_DENOMINATOR:
        place = asked.ks.index(measure.k)
        weights = scores[f"{measure.column}__weight"][:, place]
        is_defined = ~np.isnan(scores[measure.column][:, place])
        expected = np.array([oracles.expected_denominator(measure, one) for one in batch])
        np.testing.assert_allclose(
            weights[is_defined], expected[is_defined], rtol=1e-12, atol=1e-12, err_msg=str(measure)
        )


def test_columns_of_values_and_weights_are_distinct() -> None:
    asked = MeasureSet.parse(["P@5", "P(agg='micro')@5", "RMSE(agg='micro')"])
    assert asked.columns == ("p", "p_agg_micro", "rmse_agg_micro")
    assert asked.stored == (*asked.columns, "p_agg_micro__weight", "rmse_agg_micro__weight")
    links = {column: measure.link for column, measure in asked.by_column.items()}
    assert links == {"p": "identity", "p_agg_micro": "identity", "rmse_agg_micro": "square"}


def test_denominator_is_empty_at_a_cutoff_that_is_not_asked_for() -> None:
    scores = MeasureSet.parse(["P(agg='micro')@2", "RR@1"]).score(Lists.of([Ranking([1, 0])]))
    np.testing.assert_array_equal(scores["p_agg_micro__weight"], [[np.nan, 2]])
