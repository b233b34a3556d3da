"""Measures that are ratios: their parts, and what a name with agg='micro' stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.arrays import FloatVector, Ratio
from rankeval_spark.statistics import intervals
from tests.support import oracles
from tests.support.rankings import batches
from tests.support.scored import assert_all_equal

VARIANTS = filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0)))
MICRO = [measure for measure in VARIANTS if measure.is_micro and measure.group is None and not measure.is_judged_only]
ASKED = MeasureSet.of(MICRO)
WITH_PARTS = {
    *("P", "R", "F", "Rprec", "RMSE", "MSE", "MAE", "PredictedShare", "LogLoss", "FCP", "GAUC", "PopLift"),
    *("AP", "nDCG", "nCG", "nERR", "ARHR", "MAR", "Rprec_mult", "SetP", "SetR", "SetF", "RecallCeiling"),
    *("Judged", "Bpref", "HitRank", "RR", "infAP", "PAUC", "PAP", "AUC", "alpha_nDCG", "ERR_IA", "P_IA"),
    *("IPS", "ClippedIPS", "SNIPS", "DR", "ImportanceWeight"),
}


def test_measures_that_are_ratios_have_the_option_and_no_others() -> None:
    assert {measure.name for measure in MICRO} == WITH_PARTS, "WITH_PARTS names the measures that return a Ratio"
    for entry in registry.entries():
        if entry.name not in WITH_PARTS:
            cutoff = "@5" if entry.cutoff.need(entry.defaults) == "required" else ""
            with pytest.raises(ConfigError, match="option 'agg'; expected a measure that is a ratio"):
                Measure.parse(f"{entry.name}(agg='micro'){cutoff}")


@given(batch=batches())
def test_ratio_of_the_parts_is_the_value_and_the_denominator_its_weight(batch: list[Ranking]) -> None:
    lists = Lists.of(batch)
    scores = ASKED.score(lists)
    seen = {is_weighted: (lists.weighted() if is_weighted else lists).cut(ASKED.ks) for is_weighted in (False, True)}
    values, weights, kernels, denominators, sums, numerators = (dict[Measure, FloatVector]() for _ in range(6))
    for measure in MICRO:
        place = ASKED.ks.index(measure.k)
        ratio = measure.entry.kernel(seen[measure.is_weighted], **measure.kernel_options)
        assert isinstance(ratio, Ratio)
        shape = (len(batch), len(ASKED.ks))
        kernels[measure] = np.broadcast_to(ratio.values, shape)[:, place]
        denominators[measure] = np.broadcast_to(ratio.denominator, shape)[:, place]
        found, weights[measure] = (scores[name][:, place] for name in (measure.column, f"{measure.column}__weight"))
        values[measure] = intervals.to_published(measure.link, found)
        sums[measure] = found * weights[measure]
        numerators[measure] = np.where(np.isnan(found), np.nan, np.broadcast_to(ratio.numerator, shape)[:, place])
    assert_all_equal(values, kernels)
    assert_all_equal(weights, denominators, atol=0)
    assert_all_equal(sums, numerators, rtol=1e-12)


WITH_DENOMINATOR = [measure for measure in MICRO if measure.options.get("unjudged", "zero") == "zero"]


def test_every_denominator_has_a_naive_reference() -> None:
    expected = {name: oracles.DENOMINATORS[name] for name in WITH_PARTS}
    assert expected == oracles.DENOMINATORS, "no measure that returns a Ratio has the name of the others"


@settings(max_examples=15)
@given(batch=batches())
def test_users_are_put_together_by_what_naive_references_divide_by(batch: list[Ranking]) -> None:
    scores = ASKED.score(Lists.of(batch))
    weights, expected = dict[Measure, FloatVector](), dict[Measure, FloatVector]()
    for measure in WITH_DENOMINATOR:
        place = ASKED.ks.index(measure.k)
        is_defined = ~np.isnan(scores[measure.column][:, place])
        weights[measure] = scores[f"{measure.column}__weight"][is_defined, place]
        expected[measure] = np.array([oracles.expected_denominator(measure, one) for one in batch])[is_defined]
    assert_all_equal(weights, expected, rtol=1e-12)


def test_columns_of_values_and_weights_are_distinct() -> None:
    asked = MeasureSet.parse(["P@5", "P(agg='micro')@5", "RMSE(agg='micro')"])
    assert asked.columns == ("p", "p_agg_micro", "rmse_agg_micro")
    assert asked.stored == (*asked.columns, "p_agg_micro__weight", "rmse_agg_micro__weight")
    links = {column: measure.link for column, measure in asked.by_column.items()}
    assert links == {"p": "identity", "p_agg_micro": "identity", "rmse_agg_micro": "square"}


def test_denominator_is_empty_at_a_cutoff_that_is_not_asked_for() -> None:
    scores = MeasureSet.parse(["P(agg='micro')@2", "RR@1"]).score(Lists.of([Ranking([1, 0])]))
    np.testing.assert_array_equal(scores["p_agg_micro__weight"], [[np.nan, 2]])
