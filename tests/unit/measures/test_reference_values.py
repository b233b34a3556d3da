"""The reference values: made by the naive references, whole, apart from one another, and met by the kernels."""

from __future__ import annotations

import itertools
import json
import math
import runpy
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.measures import Exposure, Lists, Measure, MeasureSet, Rates, registry
from rankeval_spark.measures.worked_examples import read_input
from rankeval_spark.statistics import intervals
from tests.support import reference_values

READER: Final = runpy.run_path(str(reference_values.PATH.with_name("reader.py")))
DOCUMENT: Final = json.loads(reference_values.PATH.read_text(encoding="utf-8"))
CASES: Final = READER["cases"]()
DIGITS: Final = 14
ONE_NUMBER: Final = {
    # A constant factor, which the ideal has too
    ("nDCG", "dcg"): [{"log2", "ln", "log10"}, {"exp-log2", "exp-ln", "exp-log10"}],
    ("RR", "agg"): [{"macro", "micro"}],  # without weights; with them there is no macro
    ("UserValue", "better"): [{"higher", "lower", "neither"}],  # how it is compared, not what it is
    ("CatalogCoverage", "items"): [{"catalogue", "train"}],  # which items those of the catalogue are, the input says
    **{(name, "missing"): [{"drop", "error"}] for name in ("RMSE", "MSE", "MAE")},  # an error, and no other number
}
"""Choices of an option that give one number for each list; the reason stands beside."""
TEXTS: Final = {"model", "name", "category"}
NO_EFFECT: Final = {
    ("PopREO", "rel"),  # of inputs that say which items are relevant
    ("IDCG", "judged_only"),  # where the ideal is that of the judgements
}


def found_by_us(case: dict[str, Any]) -> list[float]:
    """Value of each input, and of lists their mean."""
    measure = Measure.parse(case["measure"])
    given: list[Any] = list(map(read_input, case["inputs"]))
    if measure.entry.kind == "exposure":
        return list(measure.entry.values(Exposure.of(given, k=measure.k), measure.options))
    if measure.entry.kind == "parity":
        return list(measure.entry.values(Rates.of(given, need=measure.needs[0], k=measure.k), measure.options))
    scores = MeasureSet.of([measure]).score(Lists.of(given))
    values = scores[measure.column][:, 0]
    weights = scores[measure.weight_column][:, 0] if measure.weight_column else np.ones(len(values))
    known = ~np.isnan(values) & (weights > 0)
    mean = np.average(values[known], weights=weights[known]) if known.any() else math.nan
    return [*values, float(intervals.to_published(measure.link, np.array(mean)))]


@pytest.mark.parametrize("name", registry.names())
def test_values_meet_the_reference_in_fourteen_digits(name: str) -> None:
    cases = [case for case in CASES if case["name"] == name]
    assert cases, f"{name} has no reference values: run python -m tests.support.reference_values"
    for case in cases:
        values = [*case["values"], *([case["mean"]] if registry.get(name).kind == "list" else [])]
        for found, exact, given in zip(found_by_us(case), values, [*case["input_names"], "mean"], strict=False):
            digits = READER["digits"](float(found), exact)
            assert digits >= DIGITS, f"{case['measure']} of {given}: {found} for {exact}, {digits:.1f} digits"
    assert len({value for case in cases for value in case["values"]} - {None}) > 1


def test_file_is_what_the_naive_references_give() -> None:
    made = reference_values.write(reference_values.build())
    assert made == reference_values.PATH.read_text(encoding="utf-8"), "run python -m tests.support.reference_values"
    jsonschema.validate(DOCUMENT, json.loads(reference_values.PATH.with_name("values.schema.json").read_text()))


@pytest.mark.parametrize("name", registry.names())
def test_every_choice_of_an_option_gives_a_value_of_its_own(name: str) -> None:
    """Each two choices differ on some input that both have, all else being equal; a number from some other number."""
    panel = {*reference_values.PANEL}
    cases = [case for case in CASES if case["name"] == name and (panel & {*case["input_names"]} or not case["mean"])]
    for option in registry.get(name).options:
        values: dict[Any, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
        for case in cases:
            others = {other: value for other, value in case["options"].items() if other != option.name}
            own = dict(
                zip([*case["input_names"], str(case["input_names"])], [*case["values"], case["mean"]], strict=True)
            )
            choice = str(case["options"][option.name])
            values[case["k"], str(others)][choice] = own
            # Where a choice is offered next to another option alone, its first case, which has the fewest
            values[case["k"], "fewest"].setdefault(choice, own)
        pairs = {
            pair for of in values.values() for pair in itertools.permutations(of, 2) if differ(of[pair[0]], of[pair[1]])
        }
        for pair in itertools.combinations(map(str, option.choices), 2):
            is_one = any({*pair} <= choices for choices in ONE_NUMBER.get((name, option.name), ()))
            assert (pair in pairs) != is_one, f"{name}: {option.name} {pair}; add a list to PANEL that tells them apart"
        if not option.choices and option.name not in TEXTS and (name, option.name) not in NO_EFFECT:
            assert pairs, f"{name}: {option.name} changes no value; add a list to PANEL for which it does"


@pytest.mark.parametrize("other", ["P(denom='min')@3", "R(denom='min')@3"])
def test_hits_above_rank_r_are_told_from_hits_above_rank_k(other: str) -> None:
    """The panel has a user with fewer relevant items than k, and a hit between."""
    known = {case["measure"]: dict(zip(case["input_names"], case["values"], strict=True)) for case in CASES}
    assert differ(known["Rprec@3"], known[other])


def differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two choices have another value of one input."""
    return any(one[given] != other[given] for given in one.keys() & other.keys())


@pytest.mark.parametrize("policies", reference_values.POLICIES, ids=str)
def test_means_under_policies_meet_the_reference(policies: dict[str, Any]) -> None:
    cases = [case for case in DOCUMENT["policy_cases"] if case["policies"] == policies]
    log, held_out = as_table(DOCUMENT["log"], "score"), as_table(DOCUMENT["held_out"], "gain")
    result = evaluate(log, held_out, measures=[case["measure"] for case in cases], policies=policies)
    found = {(row["measure"], row["k"]): row for row in result.metrics.to_pylist()}
    for case in cases:
        measure = Measure.parse(case["measure"])
        row = found[measure.label, measure.k]
        assert row["n_users"] == len(case["users"])
        assert READER["digits"](row["value"], READER["exact"](case["mean"])) >= DIGITS, case


def test_digits_are_those_of_the_relative_error() -> None:
    digits = READER["digits"]
    found = [
        digits(0.5, Fraction(1, 2)),
        digits(0.3333, Fraction(1, 3)),
        digits(math.nan, None),
        digits(math.nan, Fraction(1)),
    ]
    assert found == [math.inf, pytest.approx(4), math.inf, 0]


def as_table(numbers: dict[str, dict[str, Sequence[float]]], column: str) -> pa.Table:
    """Make a table of what the file has by user and item."""
    rows = [(user, item, one) for user, own in numbers.items() for item, several in own.items() for one in several]
    users, items, column_values = zip(*rows, strict=True)
    return pa.table({"user_id": users, "item_id": items, column: pa.array(column_values, pa.float64())})
