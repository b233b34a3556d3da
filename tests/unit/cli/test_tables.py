"""What the terminal shows of results."""

from __future__ import annotations

import io

import pytest
from pyspark.sql import Row
from rich.console import Console

from rankeval_spark.cli import tables


def rows(measure: str, **values: float | None) -> list[Row]:
    """One mean a model."""
    return [
        Row(model_id=model, measure=measure, k=0, value=value, ci_low=None, ci_high=None)
        for model, value in values.items()
    ]


@pytest.mark.parametrize(("measure", "best"), [("RR", "b"), ("RMSE", "a"), ("NoLongerKnown", "b")])
def test_best_mean_of_a_line_is_marked_the_lowest_of_an_error(measure: str, best: str) -> None:
    table = tables.leaderboard(rows(measure, a=1.0, b=2.0, c=None), "title")
    cells = {str(column.header): next(iter(column.cells)) for column in table.columns}
    assert [model for model in "abc" if "bold" in str(cells[model])] == [best]


def difference(model: str, measure: str, slice_value: str = "", **changes: object) -> dict[str, object]:
    """One row of ``comparisons``, as far as it is shown."""
    where = {"model_id": model, "slice": "country" if slice_value else "all", "slice_value": slice_value}
    numbers = {"delta": 0.0583, "ci_low": 0.046, "ci_high": 0.0706, "relative_delta": 0.729, "p_adjusted": 1.2e-30}
    tested = {"ci_level": 0.95, "correction": "holm", "family_size": 324, "reason": None, "verdict": "better"}
    return {**where, "baseline_model_id": "popular", "measure": measure, "k": 10, **numbers, **tested, **changes}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("slice_value", ["", "a country of a long name"])
@pytest.mark.parametrize("is_of_nights", [False, True])
def test_verdict_interval_and_p_of_a_comparison_are_never_cut_off(
    width: int, slice_value: str, is_of_nights: bool
) -> None:
    few = {"verdict": None, "p_adjusted": None, "reason": "few_users", "relative_delta": None}
    rows = [
        difference("als", "nDCG"),
        difference("item_knn", "nDCG(dcg='exp-log2')", slice_value, verdict="undecided"),
        difference("item_knn", "AP(denom='min')", slice_value, **few),
    ]
    if is_of_nights:
        rows = [{**row, "earlier_value": 0.0812, "value": 0.1395} for row in rows]
        for row in rows:
            del row["baseline_model_id"]
    out = io.StringIO()
    Console(file=out, width=width).print(tables.comparisons(rows, "nightly, 2026-01-02", width=width))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width + 1
    assert "…" not in text
    assert text.count("+0.0583 [+0.0460, +0.0706]") == 3
    for said in ("better", "not distinguishable", "not tested: few users", "1.2e-30"):
        assert said in text
    assert text.count("0.0812") == 3 * is_of_nights
    assert text.count("0.1395") == 3 * is_of_nights


def test_each_row_names_its_baseline_where_there_are_several() -> None:
    out = io.StringIO()
    rows = [difference("als", "RR"), difference("als", "RR", baseline_model_id="item_knn")]
    Console(file=out, width=120).print(tables.comparisons(rows, "nightly"))
    assert "als - popular" in out.getvalue()
    assert "als - item_knn" in out.getvalue()


def test_other_tests_stand_beside_the_verdict_where_they_were_asked_for() -> None:
    numbers = {"delta": 0.1, "ci_low": 0.05, "ci_high": 0.15, "relative_delta": 0.5, "p_adjusted": 0.01}
    about = {"baseline_model_id": "pop", "model_id": "als", "slice": "all", "slice_value": "", "measure": "RR", "k": 5}
    row = {
        **about,
        **numbers,
        "ci_level": 0.95,
        "correction": "holm",
        "family_size": 2,
        "verdict": "better",
        "reason": None,
    }
    others = {"bootstrap": 0.0123, "randomized_tukey": None}
    shown = tables.comparisons([{**row, "other_tests": others}], "night")
    assert list(shown.columns[-1].cells) == ["bootstrap 0.012, randomized tukey -"]
    assert list(shown.columns[-2].cells) == ["0.01"]
    assert len(tables.comparisons([{**row, "other_tests": {}}], "night").columns) == len(shown.columns) - 1
