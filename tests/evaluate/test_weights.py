"""Weights of judgements through ``evaluate``: the ratios of sums, what is left out, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError

LOG = pa.table(
    {
        "user_id": ["ann", "ann", "bob", "bob"],
        "item_id": ["hit", "rare", "hit", "rare"],
        "score": [0.9, 0.5, 0.4, 0.8],
    }
)
MEASURES = ["R@1", "R(weighted=True)@1", "R(agg='micro',weighted=True)@1", "nDCG(weighted=True)@2"]


def held_out(weights: list[float | None]) -> pa.Table:
    """Judge both items for ann and one for bob."""
    return pa.table(
        {
            "user_id": ["ann", "ann", "bob"],
            "item_id": ["hit", "rare", "hit"],
            "weight": pa.array(weights, pa.float64()),
        }
    )


def means(judged: pa.Table, **options: Any) -> dict[str, float]:  # noqa: ANN401 - any policy
    rows = evaluate(LOG, judged, measures=MEASURES[:3], **options).metrics.to_pylist()
    return {row["measure"]: row["value"] for row in rows}


def test_means_are_those_of_weighted_sums() -> None:
    assert means(held_out([1, 3, 4])) == {
        "R": (1 / 2 + 0) / 2,
        "R(weighted=True)": (1 / 4 + 0) / 2,
        "R(agg='micro',weighted=True)": 1 / 8,
    }


@pytest.mark.parametrize("weight", [0.0, -2.0, None, float("nan"), float("inf")])
def test_judgement_without_a_weight_counts_for_other_measures_alone(weight: float | None) -> None:
    assert means(held_out([1, weight, 4])) == {
        "R": (1 / 2 + 0) / 2,
        "R(weighted=True)": (1 / 1 + 0) / 2,
        "R(agg='micro',weighted=True)": 1 / 5,
    }


def test_user_whose_weights_cannot_be_used_is_undefined() -> None:
    result = evaluate(LOG, held_out([1, 3, 0]), measures=["R(weighted=True)@1"], zero_relevant="exclude")
    (row,) = result.metrics.to_pylist()
    assert (row["value"], row["n_users"]) == (1 / 4, 1)


def test_whole_numbers_are_weights_too() -> None:
    judged = held_out([1, 3, 4])
    whole = judged.set_column(2, "weight", judged["weight"].cast(pa.int64()))
    assert means(whole) == means(judged)


def test_rows_of_a_pair_have_one_weight() -> None:
    judged = held_out([1, 3, 4])
    assert means(pa.concat_tables([judged, judged])) == means(judged)
    for duplicates in ("max", "sum"):
        assert means(pa.concat_tables([judged, judged]), held_out_duplicates=duplicates) == means(judged)
    found = r"a user has two weights for an item; expected one .*; give all rows"
    with pytest.raises(Exception, match=found):
        means(pa.concat_tables([judged, held_out([1, 2, 4])]))


def test_what_has_no_weighted_form_or_no_weights_is_refused() -> None:
    judged = held_out([1, 3, 4])
    with pytest.raises(ConfigError, match=r"AP\(weighted=True\): found option 'weighted'; expected a measure to which"):
        evaluate(LOG, judged, measures=["AP(weighted=True)"])
    with pytest.raises(InputError, match="held_out: found no column 'weight'"):
        evaluate(LOG, judged.drop_columns("weight"), measures=["R(weighted=True)@1"])
