"""Weights of judgements through ``evaluate``: the ratios of sums, what is left out, and what is refused."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.arrow_frames import tuples
from tests.support.sections import sections

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
    rows = evaluate(LOG, judged, **sections(measures=MEASURES[:3], **options)).metrics.to_pylist()
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
    result = evaluate(LOG, held_out([1, 3, 0]), measures=["R(weighted=True)@1"], policies={"zero_relevant": "exclude"})
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
    with pytest.raises(InputError, match=r"held_out=\): found no column 'weight'"):
        evaluate(LOG, judged.drop_columns("weight"), measures=["R(weighted=True)@1"])


OF_WEIGHT: Final = [
    *("R", "nDCG", "nCG", "CG", "DCG", "NumHits", "ARHR", "ARHR(denom='ideal')", "MAR(kind='cutoffs')"),
    *("nDCG(ideal='len')", "R(agg='micro')", "DCG(gains='value')"),
]
"""Measures that take weights."""


@pytest.mark.parametrize("judged_only", ["option", "policy", "neither"])
@pytest.mark.parametrize("ties", ["item_asc", "expected"])
@pytest.mark.parametrize("weight", [0.0, -1.0, None, float("nan")])
def test_row_without_a_weight_is_as_if_it_were_left_out(judged_only: str, ties: str, weight: float | None) -> None:
    """Rank 1 is an item without a weight, rank 2 and 3 tie, and rank 4 is unjudged."""
    log = pa.table({"user_id": ["u"] * 5, "item_id": list("abcxd"), "score": [4.0, 3.0, 3.0, 2.0, 1.0]})
    rows = {"item_id": list("abcdm"), "gain": [1.0, 1, 2, 3, 1], "weight": [weight, 1.0, 2.0, 0.5, 3.0]}
    judged = pa.table({"user_id": ["u"] * 5, **rows, "value": [9.0, 1, 2, 3, 4]})
    options = "weighted=True,judged_only=True" if judged_only == "option" else "weighted=True"
    names = [name[:-1] + f",{options})" if name.endswith(")") else f"{name}({options})" for name in OF_WEIGHT]
    measures = [f"{name}@{k}" for name in names for k in (1, 2, 3)]

    def values(held_out: pa.Table) -> list[tuple[Any, ...]]:
        policies: dict[str, Any] = {"ties": ties, "judged_only": judged_only == "policy"}
        return tuples(
            evaluate(log, held_out, **sections(measures=measures, **policies)).metrics, "measure", "k", "value"
        )

    assert values(judged) == values(judged.slice(1))


def test_item_of_weight_0_leaves_the_list_where_judged_items_alone_count() -> None:
    log = pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "score": [2.0, 1.0]})
    judged = pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "gain": [1.0, 1.0], "weight": [0.0, 1.0]})
    asked = ["R(weighted=True,judged_only=True)@1", "nDCG(weighted=True,judged_only=True)@1", "R(judged_only=True)@1"]
    rows = tuples(evaluate(log, judged, measures=asked).metrics, "measure", "value")
    assert rows == [
        ("R(judged_only=True)", 1 / 2),
        ("R(judged_only=True,weighted=True)", 1.0),
        ("nDCG(judged_only=True,weighted=True)", 1.0),
    ]


def test_group_without_a_weight_above_0_is_undefined_under_any_policy() -> None:
    """As for a user without a judgement of the group: bob's only judgement of the tail has weight 0."""
    judged = held_out([1, 3, 0])
    train = pa.table({"user_id": ["a"] * 9 + ["b"], "item_id": ["rare"] * 9 + ["hit"]})
    asked = ["R(group='tail',weighted=True)@1"]
    result = evaluate(
        LOG, judged, measures=asked, train=train, policies={"population": "judged", "zero_relevant": "zero"}
    )
    assert tuples(result.metrics, "value", "n_users") == [(1.0, 1)]
