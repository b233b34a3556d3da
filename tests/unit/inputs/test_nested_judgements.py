"""Judgements with one row per user: arrays of items, and of gains, are the rows of a flat table."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark import evaluate
from rankeval_spark.config.inputs import JudgementRows, NestedJudgements
from rankeval_spark.errors import ConfigError, InputError

LOG: Final = pa.table({"user_id": ["ann"] * 3 + ["bob"] * 2, "item_id": [*"AXB", *"CA"], "rank": [1, 2, 3, 1, 2]})
MEASURES: Final = ("DCG@3", "nDCG@3", "R@2", "AP")
NESTED: Final = {"held_out": {"nested": {"items": "relevant", "gains": "grades"}}}


@settings(max_examples=25, deadline=None)
@given(
    judged=st.dictionaries(
        st.sampled_from(["ann", "bob", "eve"]),
        st.dictionaries(st.sampled_from("ABCDX"), st.sampled_from([0, 0.5, 1, 3]), max_size=4),
        min_size=1,
    ),
    is_graded=st.booleans(),
)
def test_arrays_are_the_rows_of_a_flat_table(judged: dict[str, dict[str, float]], is_graded: bool) -> None:
    pairs = [(user, item, gain) for user, items in judged.items() for item, gain in items.items()]
    if not pairs:
        return
    users, items, gains = map(list, zip(*pairs, strict=True))
    flat: dict[str, Any] = {"user_id": users, "item_id": items}
    nested: dict[str, Any] = {"user_id": [*judged], "item_id": [[*each] for each in judged.values()]}
    if is_graded:
        flat["gain"], nested["gain"] = gains, [[*map(float, each.values())] for each in judged.values()]
    expected, found = (evaluate(LOG, pa.table(each), measures=MEASURES) for each in (flat, nested))
    assert found.metrics.to_pylist() == expected.metrics.to_pylist()
    assert [*found.user_values] == [*expected.user_values]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_other_names_are_named_by_nested(library: Any) -> None:  # noqa: ANN401 - a library each
    judged = library({"user_id": ["ann"], "relevant": [["A", "B", "C"]], "grades": [[3, 1, 2]]})
    result = evaluate(LOG, judged, measures=["DCG@3", "R@3"], inputs=NESTED)
    assert result.metrics["value"].to_pylist() == [3 / 1 + 1 / 2, 2 / 3]


def test_items_of_a_row_have_its_gain_where_gains_are_no_array() -> None:
    judged = pa.table({"user_id": ["ann", "ann"], "item_id": [["A"], ["B", "C"]], "gain": [3.0, 1.0]})
    assert evaluate(LOG, judged, measures=["DCG@3"]).metrics["value"].to_pylist() == [3 / 1 + 1 / 2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"grades": [[3], [1]]}, "held_out=.: found 2 items and 1 gains in row 0; expected a gain for each item"),
        ({"grades": [[3], None]}, "found 2 items and 1 gains in row 0, and 1 more such rows"),
        ({"grades": [3, 1]}, r"held_out\.nested\.gains: found 'grades' of type int64; expected an array"),
        ({"gradez": [[3, 1], [1]]}, r"held_out\.nested\.gains: found no column 'grades'.*did you mean 'gradez'"),
    ],
)
def test_what_pairs_no_gain_with_an_item_is_refused(columns: dict[str, Any], message: str) -> None:
    judged = pa.table({"user_id": ["ann", "bob"], "relevant": [["A", "B"], ["C"]], **columns})
    with pytest.raises(InputError, match=message) as caught:
        evaluate(LOG, judged, measures=MEASURES, inputs=NESTED)
    assert str(caught.value).count("\n") == 1


def test_two_places_of_gains_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"both nested.gains and columns.gain"):
        evaluate(
            LOG,
            LOG,
            measures=MEASURES,
            inputs={"held_out": {"nested": {"items": "a", "gains": "b"}, "columns": {"gain": "c"}}},
        )
    assert JudgementRows(nested=NestedJudgements(items="a", gains="b")).renames == {"item_id": "a", "gain": "b"}
