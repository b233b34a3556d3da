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
