"""A measure is whole: golden examples, a naive reference, documentation; and it is added in one place."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rankeval_spark.measures import Golden, Lists, Measure, MeasureSet, registry
from rankeval_spark.measures.golden import evaluate
from rankeval_spark.measures.options import of_kernel
from rankeval_spark.statistics import intervals
from tests.support import naive_exposures, naive_parity, oracles

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.measures.registry import Entry

every_measure = pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
goldens = [(entry, golden) for entry in registry.entries("list") for golden in entry.definition.goldens]

NEW_MODULE = '''
from rankeval_spark.measures.arrays import FloatMatrix
from rankeval_spark.measures.golden import Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.registry import Definition


@Definition(name="Length", formula="min(k, n)", bounds=(0, 100), undefined="never", source="a test",
            goldens=(Golden("Length@2", (Ranking([1]),), ("1",)),))
def length(cut: CutLists, *, doubled: bool = False) -> FloatMatrix:
    """Recommended items at ranks 1..k."""
    return cut.depth * (2 if doubled else 1)
'''


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a copy of the registry."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(registry, "_NAMES", dict(registry._NAMES))


@pytest.mark.parametrize(("entry", "golden"), goldens, ids=lambda one: getattr(one, "measure", ""))
def test_kernel_gives_the_golden_values(entry: Entry, golden: Golden) -> None:
    measure = Measure.parse(golden.measure)
    scores = MeasureSet.of([measure]).score(Lists.of(golden.rankings))[measure.column][:, 0]
    np.testing.assert_allclose(scores, [float(value) for value in golden.expected], rtol=0, atol=1e-12)
    if golden.expected_mean is not None:
        np.testing.assert_allclose(mean_of(measure, golden), float(golden.expected_mean), rtol=0, atol=1e-12)
    assert (measure.name, str(measure)) == (entry.name, golden.measure), "golden examples use canonical names"


REFERENCES: dict[str, list[str]] = {
    "list": [*oracles.NAIVE],
    "exposure": [*naive_exposures.NAIVE],
    "parity": [*naive_parity.NAIVE],
}


def mean_of(measure: Measure, golden: Golden) -> float:
    """Put the users together as it is published."""
    scores = MeasureSet.of([measure]).score(Lists.of(golden.rankings))
    values = scores[measure.column][:, 0]
    weights = scores[measure.weight_column][:, 0] if measure.weight_column else np.ones(len(values))
    is_defined = ~np.isnan(values)
    mean = np.array(np.average(values[is_defined], weights=weights[is_defined]))
    return float(intervals.published(measure.link, mean))


@every_measure
def test_every_measure_has_a_golden_example_and_a_naive_reference(entry: Entry) -> None:
    assert entry.definition.goldens
    assert entry.name in REFERENCES[entry.definition.kind]


@every_measure
def test_every_value_of_every_option_has_a_golden_example(entry: Entry) -> None:
    shown = {item for golden in entry.definition.goldens for item in Measure.parse(golden.measure).options.items()}
    own = [option for option in entry.options if option.name != registry.GROUP]  # kernels do not see it
    choices = {(option.name, choice) for option in own for choice in option.choices}
    assert choices - shown <= LEFT_TO_NDCG.get(entry.name, set())


LEFT_TO_NDCG = {
    "nCG": {
        *(("ideal", ideal) for ideal in ("k_ones", "retrieved", "len")),
        *(("gains", gains) for gains in ("binary", "value")),
        *(("unjudged", unjudged) for unjudged in ("mean", "median")),
    },
    "DCG": {("gains", "value"), ("unjudged", "mean"), ("unjudged", "median")},
}
"""Variants that one kernel shares with another, whose golden examples show them."""


def test_no_naive_reference_is_without_a_measure() -> None:
    assert {name for references in REFERENCES.values() for name in references} == set(registry.names())


@every_measure
def test_docstring_has_every_section_and_names_every_option(entry: Entry) -> None:
    sections = ("Parameters", "Returns", "Notes", "Examples")
    assert [entry.doc.count(f"\n{section}\n{'-' * len(section)}\n") for section in sections] == [1, 1, 1, 1]
    assert [option.name for option in of_kernel(entry.kernel) if f"\n{option.name} : " not in entry.doc] == []
    assert ">>> " in entry.doc


@every_measure
def test_every_measure_says_what_it_is(entry: Entry) -> None:
    definition = entry.definition
    assert all([entry.summary.endswith("."), definition.formula, definition.source, definition.undefined, entry.range])


@pytest.mark.usefixtures("own_registry")
def test_measures_are_added_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "added_measures"
    package.mkdir()
    (package / "lengths.py").write_text(NEW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    registry.discover("added_measures", [str(package)])
    monkeypatch.delitem(sys.modules, "added_measures.lengths")
    measure = Measure.parse("length(Doubled=true)@1")
    assert str(measure) == "Length(doubled=True)@1"
    batch = Lists.of(registry.get("Length").definition.goldens[0].rankings)
    assert MeasureSet.of([measure]).score(batch)["length_doubled_true"].tolist() == [[2.0]]


@pytest.mark.usefixtures("own_registry")
def test_two_measures_cannot_share_a_name() -> None:
    definition = registry.Definition(
        name="Other", formula="-", bounds=(0, 1), undefined="-", source="-", goldens=(), aliases={"map": {}}
    )
    with pytest.raises(ValueError, match="'map' is already a name of AP"):
        definition(registry.get("R").kernel)


@pytest.mark.parametrize("expression", ["__import__('os')", "a", "1 if 2 else 3", "'text'"])
def test_golden_expressions_are_only_arithmetic(expression: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        evaluate(expression)
