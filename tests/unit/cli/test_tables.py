"""What the terminal shows of results."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

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
    shown = tables.comparisons([Row(**row, other_tests=others)], "night")
    assert list(shown.columns[-1].cells) == ["bootstrap 0.012, randomized tukey -"]
    assert list(shown.columns[-2].cells) == ["0.01"]
    assert len(tables.comparisons([Row(**row, other_tests={})], "night").columns) == len(shown.columns) - 1
