"""Lists typed by hand: the notation, the values of a textbook, and what is refused."""

from __future__ import annotations

from math import log2
from typing import Any

import pytest

from rankeval_spark import measure_lists
from rankeval_spark.errors import ConfigError, JudgementError


def test_lists_of_the_textbook_have_its_values_and_means() -> None:
    found = measure_lists({"A": "- 1 1", "B": [1, 1, None]}, ["AP", "RR", "nDCG"]).to_pydict()
    ndcg = (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3))
    assert found["list"] == ["A", "B", "mean"]
    assert found["AP"] == pytest.approx([7 / 12, 1, 19 / 24], rel=0, abs=1e-12)
    assert found["RR"] == pytest.approx([1 / 2, 1, 3 / 4], rel=0, abs=1e-12)
    assert found["nDCG"] == pytest.approx([ndcg, 1, (ndcg + 1) / 2], rel=0, abs=1e-12)


def test_what_a_list_misses_stands_behind_the_bar() -> None:
    typed = {"all": "1 -", "two of three": "1 0 1|1", "none": "| 1 2", "unjudged": "- -", "negative": "-1 1"}
    found = measure_lists(typed, ["R", "CG"])
    assert found.to_pydict()["R"] == [1, 2 / 3, 0, None, 1, pytest.approx(2 / 3, rel=0, abs=1e-12)]
    assert found.to_pydict()["CG"][:3] == [1, 2, 0]


def test_a_typed_list_is_explained_and_has_all_results_of_an_evaluation() -> None:
    found = measure_lists({"A": "3 - 1"}, ["DCG@3"], policies={"population": "judged"})
    assert found.explain("A", "DCG@3").table.to_pydict()["contribution"] == [3, 0, 1 / 2]
    assert found.evaluation.metrics.to_pydict()["value"] == [3.5]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"A": "x 1"}, r"measure_lists\(lists=\), 'A': found 'x'; expected gains, and '-' for an item"),
        ({"A": "1 | -"}, r"measure_lists\(lists=\), 'A': found '-'; expected gains; write it as '- 1 0 | 1'"),
        ({"A": "inf"}, r"measure_lists\(lists=\), 'A': found 'inf'"),
        ({"mean": "1 -"}, r"measure_lists\(lists=\): found 'mean'; expected another name"),
        ("- 1", r"measure_lists\(lists=\): found str; expected a dict of lists by their names; write measure_lists"),
        (["- 1"], r"measure_lists\(lists=\): found list; expected a dict of lists"),
    ],
    ids=str,
)
def test_what_is_no_list_is_refused_with_the_notation(lists: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        measure_lists(lists, ["AP"])


def test_a_measure_that_typed_lists_cannot_have_is_refused_in_words_of_the_call() -> None:
    with pytest.raises(ConfigError, match=r"measure_lists\(measures=\): found no column 'score'; .* or call evaluate"):
        measure_lists({"A": "1"}, ["KendallTau"])
    with pytest.raises(
        ConfigError, match=r"measure_lists\(measures=\): found None; .*: typed lists have ranks and gains"
    ):
        measure_lists({"A": "1"}, ["ILD@3"])
    with pytest.raises(JudgementError, match=r"measure_lists\(measures=\), RBP: found a judgement with grade 3"):
        measure_lists({"A": "3"}, ["RBP"])
    with pytest.raises(JudgementError, match=r"explain\(measure=\), RBP: found a judgement with grade 3"):
        measure_lists({"A": "3"}, ["AP"]).explain("A", "RBP")


def test_a_list_of_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"found 'list'; .*did you mean 'lists'"):
        measure_lists({"lists": "1"}, ["AP"]).explain("list", "AP")
