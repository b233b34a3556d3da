"""Which model the report and the console name, and how it compares with the next best one."""

from __future__ import annotations

from typing import Any

import pytest

from rankeval_spark.report.winner import two_best, winner_of
from tests.unit.report.test_figure_rows import comparison, metrics

FIRST = ("nDCG", 10)


def gate(model: str, verdict: str = "passed", number: int = 1) -> dict[str, Any]:
    """Write a row of ``gates``."""
    return {"gate": number, "model_id": model, "verdict": verdict, "measure": "nDCG", "k": 10}


def pair(model: str, baseline: str, delta: float | None, **changes: object) -> dict[str, Any]:
    """Write a row of ``comparisons`` over all users."""
    lists = {"n_with_baseline": 80, "n_with_model": 80, "n_with_both": 80}
    return comparison("", delta, model_id=model, baseline_model_id=baseline, **lists, **changes)


MEANS = [metrics("als", 0.137), metrics("knn", 0.134), metrics("pop", 0.079)]
BETTER = pair("als", "pop", 0.058, verdict="better", p_adjusted=0.0001)


@pytest.mark.parametrize(
    ("gates", "pairs", "model", "may_ship", "text"),
    [
        pytest.param(
            [gate("als"), gate("knn")], [pair("als", "knn", 0.003)], "als", True,
            "It is the best of three models by nDCG@10, 0.137: +0.003 against knn (−0.017 to +0.023), undecided, "
            "p = .50. knn may ship too.",
            id="two pass",
        ),
        pytest.param(
            [gate("als"), gate("knn")], [pair("knn", "als", -0.003)], "als", True,
            "It is the best of three models by nDCG@10, 0.137: +0.003 against knn (−0.017 to +0.023), undecided, "
            "p = .50. knn may ship too.",
            id="two pass, compared the other way round",
        ),
        pytest.param(
            [gate("als")], [BETTER], "als", True,
            "It is the best of three models by nDCG@10, 0.137: not compared with knn, which `rankeval compare "
            "--against knn` does.",
            id="the best two were not compared",
        ),
        pytest.param(
            [gate("als", "failed"), gate("knn")], [pair("als", "knn", 0.03, verdict="better", p_adjusted=0.031)],
            "knn", False,
            "als, which does not meet every rule, has the best nDCG@10. knn has 0.134: −0.030 against als (−0.050 to "
            "−0.010), worse, p = .031. knn meets every rule: name the candidate in `models`.",
            id="the best one fails a rule",
        ),
        pytest.param(
            [gate("als", "failed"), gate("knn", "undecided")], [pair("als", "knn", 0.0)], "als", False,
            "als is the best of three models by nDCG@10, 0.137: 0.000 against knn (−0.020 to +0.020), a tie.",
            id="none passes, and a tie",
        ),
        pytest.param(
            [gate(""), gate("", "no_match", 2), gate("als")], [], "als", False,
            "als is the best of three models by nDCG@10, 0.137: not compared with knn, which `rankeval compare "
            "--against knn` does.",
            id="a rule that nothing matches",
        ),
    ],
)  # fmt: skip  # the rows of a night on one line
def test_the_winner_is_named_and_compared_with_the_next_best_model(
    gates: list[dict[str, Any]], pairs: list[dict[str, Any]], model: str, may_ship: bool, text: str
) -> None:
    found = winner_of(gates, MEANS, pairs, first=FIRST, baseline="pop")
    assert (found.model, found.may_ship, found.text) == (model, may_ship, text)


def test_a_baseline_that_is_best_is_named_and_does_not_ship() -> None:
    gates = [gate("als"), gate("pop")]
    means = [metrics("als", 0.137), metrics("pop", 0.139)]
    found = winner_of(gates, means, [pair("als", "pop", -0.002)], first=FIRST, baseline="pop")
    assert (found.model, found.may_ship) == ("als", True)
    assert found.text == (
        "pop, the baseline, has the best nDCG@10. als has 0.137: −0.002 against pop (−0.022 to +0.018), undecided, "
        "p = .50."
    )


def test_where_lower_is_better_the_lowest_wins_and_where_neither_is_none_does() -> None:
    error = [metrics("als", 0.7, measure="RMSE", k=0), metrics("pop", 0.9, measure="RMSE", k=0)]
    assert winner_of([gate("als")], error, [], first=("RMSE", 0), baseline="pop").model == "als"
    popularity = [metrics("als", 7.0, measure="ARP"), metrics("pop", 9.0, measure="ARP")]
    found = winner_of([gate("als")], popularity, [], first=("ARP", 10), baseline="pop")
    assert found.text == "Neither side of ARP@10 is better, so it names no best model."


def test_without_means_or_another_model_there_is_nothing_to_compare() -> None:
    assert str(winner_of([], [], [], first=None, baseline=None)) == ""
    alone = winner_of([gate("als")], [metrics("als", 0.1), metrics("knn", None)], [], first=FIRST, baseline=None)
    assert str(alone) == "als may ship. No other model has a value of nDCG@10."


@pytest.mark.parametrize(
    ("gates", "baseline", "wanted"),
    [
        ([gate("als"), gate("knn")], "pop", ("als", "knn")),
        ([gate("als", "failed"), gate("knn", "failed"), gate("pop")], None, ("pop", "als")),
        ([gate("als"), gate("knn", "failed"), gate("pop")], "als", ("pop", "als")),
        ([gate("als", "failed"), gate("knn", "failed")], "pop", ("als", "knn")),
    ],
)
def test_the_model_that_is_named_is_compared_with_the_best_other_one(
    gates: list[dict[str, Any]], baseline: str | None, wanted: tuple[str, str]
) -> None:
    assert two_best(gates, MEANS, FIRST, baseline) == wanted
    named = winner_of(gates, MEANS, [], first=FIRST, baseline=baseline)
    assert f"not compared with {wanted[1]}" in named.text
    assert named.model == wanted[0]
