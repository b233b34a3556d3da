"""A measure is whole: worked examples, a naive reference, documentation; and it is added in one place."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import rankeval_spark.measures
from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, definition, registry
from rankeval_spark.measures.definition import Definition
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.worked_examples import evaluate_expression, example_page_of, examples_of, pages_of
from tests.support import naive_exposures, naive_parity, oracles

if TYPE_CHECKING:
    from tests.support.oracles.plain import References

every_measure = pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
FOLDER: Final = Path(rankeval_spark.measures.__file__).parent
ONE_SCREEN: Final = 50
"""Lines of a kernel with its decorator; most have half as many."""

NEW_MODULE = '''
from typing import Annotated

from rankeval_spark.measures.arrays import FloatMatrix
from rankeval_spark.measures.definition import Definition
from rankeval_spark.measures.lists import CutLists


@Definition(name="Length", formula="min(k, n)", bounds=(0, 100), undefined="never", source="a test")
def length(cut: CutLists, *, doubled: Annotated[bool, "Whether each counts 2."] = False) -> FloatMatrix:
    """Recommended items at ranks 1..k."""
    return cut.depth * (2 if doubled else 1)
'''
NEW_EXAMPLES = """
Length:
  notes: Empty ranks count.
  examples:
    - measure: Length@2
      given: [1]
      value: 1
"""


REFERENCES: dict[str, References[Any]] = {
    "list": oracles.NAIVE,
    "exposure": naive_exposures.NAIVE,
    "parity": naive_parity.NAIVE,
}


@every_measure
def test_every_measure_has_a_worked_example_and_a_naive_reference(entry: Definition) -> None:
    assert examples_of(entry)
    assert entry.name in REFERENCES[entry.kind] or REFERENCES[entry.kind][entry.name]


@pytest.mark.usefixtures("own_registry")
def test_measure_without_examples_or_reference_says_what_to_add_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "unfinished_measures"
    package.mkdir()
    (package / "lengths.py").write_text(NEW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(definition, "__package__", "unfinished_measures")  # as a module of this package
    registry.discover("unfinished_measures")
    entry = registry.get("Length")
    no_examples = "no examples of Length; add them to the YAML file next to unfinished_measures.lengths, lengths.yaml"
    with pytest.raises(ValueError, match=f"^{no_examples}$"):
        test_every_measure_has_a_worked_example_and_a_naive_reference(entry)
    (package / "lengths.yaml").write_text(NEW_EXAMPLES)
    no_reference = r"^no naive reference of Length; add @naive\('Length'\) to tests/support/oracles, in a module that "
    with pytest.raises(AssertionError, match=no_reference):
        test_every_measure_has_a_worked_example_and_a_naive_reference(entry)
    with pytest.raises(AssertionError, match=no_reference):  # as property tests ask for the value of a list
        oracles.expected(Measure.parse("Length@2"), Ranking([1]))
    monkeypatch.setitem(oracles.NAIVE, "Length", lambda plain, k, **_: len(plain.top(k)))
    test_every_measure_has_a_worked_example_and_a_naive_reference(entry)
    assert oracles.expected(Measure.parse("Length@2"), Ranking([1])) == 1
    monkeypatch.delitem(sys.modules, "unfinished_measures.lengths")


def test_every_file_of_examples_is_read_and_belongs_to_the_measures_of_its_module() -> None:
    """No example, and no list that has a name, is left unread: reading a file fails where a list is not used."""
    measures: dict[str, set[str]] = {}
    for entry in registry.entries():
        measures.setdefault(entry.kernel.__module__, set()).add(entry.name)
    files = {".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in FOLDER.rglob("*.yaml")}
    files.remove("other_tools")
    assert {f"{rankeval_spark.measures.__name__}.{name}" for name in files} == measures.keys()
    assert {module: {*pages_of(module)} for module in measures} == measures


@every_measure
def test_every_value_of_every_option_has_a_worked_example(entry: Definition) -> None:
    shown = {item for example in examples_of(entry) for item in Measure.parse(example.measure).options.items()}
    own = [option for option in entry.options if option.name != GROUP]  # kernels do not see it
    choices = {(option.name, choice) for option in own for choice in option.choices}
    assert choices - shown <= LEFT_TO_NDCG.get(entry.name, set())


LEFT_TO_NDCG = {
    "nDCG": {("dcg", f"exp-{dcg}") for dcg in ("ln", "log10", "jk2", "jk10", "sqrt", "geometric", "none")}
    | {("dcg", "none")},
    "nCG": {
        *(("ideal", ideal) for ideal in ("k_ones", "retrieved", "len")),
        *(("gains", gains) for gains in ("binary", "value")),
        *(("unjudged", unjudged) for unjudged in ("mean", "median")),
    },
    "IDCG": {
        (option.name, dcg) for option in registry.get("DCG").options for dcg in option.choices if option.name == "dcg"
    },
    "DCG": {("gains", "value"), ("unjudged", "mean"), ("unjudged", "median")},
}
"""Variants that one kernel shares with another, whose worked examples show them: of discounts DCG."""


def test_no_naive_reference_is_without_a_measure() -> None:
    named = {name for references in REFERENCES.values() for name in references}
    assert named - set(registry.names()) == set(), "no measure has the name of these references"


@every_measure
def test_documentation_says_what_a_measure_returns_and_what_every_option_means(entry: Definition) -> None:
    assert "``" in entry.doc or "Pearson" in entry.doc or "Strips" in entry.doc, "the formula"
    assert ("NaN" in entry.doc) == (entry.undefined != "never")
    assert ">>> " in entry.doc
    assert example_page_of(entry).notes
    assert [option.name for option in entry.options if not option.meaning.endswith(".")] == []


@every_measure
def test_every_measure_says_what_it_is(entry: Definition) -> None:
    assert all([entry.summary.endswith("."), entry.formula, entry.source, entry.undefined, entry.range])


def test_range_is_that_of_the_published_value() -> None:
    """The users of GMAP have logarithms, its value is the exponential of their mean."""
    ranges = {name: registry.get(name).range for name in ("GMAP", "LogAP", "nDCG", "DCG")}
    assert ranges == {"GMAP": "[0, 1]", "LogAP": "(-inf, 0]", "nDCG": "[0, 1]", "DCG": "[0, inf)"}


@every_measure
def test_kernel_and_decorator_are_visible_on_one_screen(entry: Definition) -> None:
    lines, _ = inspect.getsourcelines(entry.kernel)
    assert len(lines) <= ONE_SCREEN


@pytest.mark.usefixtures("own_registry")
def test_measures_are_added_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "added_measures"
    package.mkdir()
    (package / "lengths.py").write_text(NEW_MODULE)
    (package / "lengths.yaml").write_text(NEW_EXAMPLES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(definition, "__package__", "added_measures")  # as a module of this package
    registry.discover("added_measures")
    measure = Measure.parse("length(Doubled=true)@1")
    assert str(measure) == "Length(doubled=True)@1"
    (example,) = examples_of(registry.get("Length"))
    assert MeasureSet.of([measure]).score(Lists.of(example.rankings))["length_doubled_true"].tolist() == [[2.0]]
    monkeypatch.delitem(sys.modules, "added_measures.lengths")


FAULTY_EXAMPLES: Final = {
    "no_file": (None, "no examples of Length; add them to the YAML file next to .*, lengths_no_file.yaml"),
    "no_measure": ("Width: {notes: -, examples: []}", "no examples of Length; add them to the YAML file next to"),
    "no_use": (f"lists: {{one: [1]}}\n{NEW_EXAMPLES}", "no example uses one"),
    "no_value": (NEW_EXAMPLES.replace("value: 1", "value: [1, 2]"), "Length@2: 1 lists are given and 2 values"),
}


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("name", FAULTY_EXAMPLES)
def test_examples_that_are_missing_or_faulty_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, message = FAULTY_EXAMPLES[name]
    package, module = tmp_path / f"faulty_{name}", f"lengths_{name}"
    package.mkdir()
    (package / f"{module}.py").write_text(NEW_MODULE)
    if text is not None:
        (package / f"{module}.yaml").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(definition, "__package__", f"faulty_{name}")  # as a module of this package
    import_module(f"faulty_{name}.{module}")
    with pytest.raises(ValueError, match=message):
        examples_of(registry.get("Length"))


@pytest.mark.usefixtures("own_registry")
def test_two_measures_cannot_share_a_name() -> None:
    other = Definition(name="Other", formula="-", bounds=(0, 1), undefined="-", source="-", aliases={"map": {}})
    with pytest.raises(ValueError, match="'map' is already a name of AP"):
        other(registry.get("R").kernel)


@pytest.mark.parametrize("expression", ["__import__('os')", "a", "1 if 2 else 3", "'text'"])
def test_expressions_are_only_arithmetic(expression: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        evaluate_expression(expression)
