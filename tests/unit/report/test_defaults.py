"""What is looked at first where nothing else is said."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from rankeval_spark.apps.nightly.night_plan import evaluation_name
from rankeval_spark.config import EvaluationConfig
from rankeval_spark.errors import ConfigError
from rankeval_spark.report import defaults


def test_the_newest_night_of_an_evaluation_is_the_newest_with_means() -> None:
    first, second, third = (date(2026, 1, day) for day in (1, 2, 3))
    has_means = {("a", second): True, ("a", first): True, ("a", third): False, ("b", first): True, ("c", second): False}
    assert defaults.newest_nights(has_means) == {"a": second, "b": first, "c": second}
    assert defaults.newest_nights(has_means, "a") == {"a": second}
    assert defaults.newest_nights(has_means, "d") == {}


@pytest.mark.parametrize("share", [0.01, 1e-05, 0.123456])
def test_a_sample_is_chosen_where_it_is_named_or_alone(share: float) -> None:
    config = EvaluationConfig.model_construct(evaluation="nightly")
    sample = evaluation_name(config, share)
    assert defaults.chosen_evaluations([sample, "nightly"]) == ["nightly"]
    assert defaults.chosen_evaluations([sample, "nightly"], sample) == [sample]
    assert defaults.chosen_evaluations([sample]) == [sample]
    assert defaults.chosen_evaluations(["a.sample-b.c", "nightly"]) == ["a.sample-b.c", "nightly"]


def test_the_first_label_requested_is_looked_at_first_at_the_cutoff_nearest_to_10() -> None:
    known = [("P", 1), ("P", 5), ("P", 20), ("nDCG", 10)]
    assert defaults.headline_measure(known, known) == ("P", 5)


def test_accuracy_is_looked_at_before_coverage_and_levels_of_recall() -> None:
    known = [("CatalogCoverage", 10), ("IPrec(recall=0.1)", 0), ("RR", 10)]
    assert defaults.headline_measure(known, known) == ("RR", 10)


def test_without_accuracy_whatever_there_is_comes_first() -> None:
    assert defaults.headline_measure([("MIUF", 5)], [("MIUF", 5)]) == ("MIUF", 5)
    assert defaults.headline_measure([]) is None


def test_the_whole_list_comes_after_any_cutoff() -> None:
    assert defaults.headline_measure([("nDCG", 0), ("nDCG", 100)]) == ("nDCG", 100)
    assert defaults.headline_measure([("nDCG", 0)]) == ("nDCG", 0)


def test_headlines_have_the_cutoff_of_the_first_where_they_are_computed_at_it() -> None:
    known = [("nDCG", 5), ("nDCG", 20), ("P", 5), ("P", 10), ("IPrec(recall=0)", 0), ("P(group='tail')", 5), ("RR", 0)]
    found = defaults.headlines(known, known, first=("nDCG", 5), at_most=6)
    assert found == [("nDCG", 5), ("P", 5), ("RR", 0)]


def test_a_measure_is_found_by_its_name_and_by_another_spelling_of_it() -> None:
    known = [("nDCG", 10), ("IPrec(recall=0.1)", 0), ("Success", 5)]
    assert defaults.find_measure("nDCG@10", known) == ("nDCG", 10)
    assert defaults.find_measure("ndcg@10", known) == ("nDCG", 10)
    assert defaults.find_measure("HR@5", known) == ("Success", 5)
    assert defaults.find_measure("IPrec@0.1", known) == ("IPrec(recall=0.1)", 0)


def test_a_measure_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"found 'nDCG@5'; expected one of: nDCG@10; did you mean 'nDCG@10'\?"):
        defaults.find_measure("nDCG@5", [("nDCG", 10)])


def test_models_are_ordered_by_their_values_and_those_without_one_come_last() -> None:
    values = {"a": None, "b": 0.2, "c": 0.4, "d": 0.4}
    assert defaults.best_first(values, is_lower=False) == ["c", "d", "b", "a"]
    assert defaults.best_first(values, is_lower=True) == ["b", "c", "d", "a"]


def test_rows_of_several_evaluations_are_refused() -> None:
    table = pa.table({"evaluation": ["a", "b"], "evaluation_date": ["2026-01-01", "2026-01-01"]})
    with pytest.raises(ConfigError, match="found rows of 2 evaluations; expected those of one"):
        defaults.read_frame(table, (), what="metrics")
