"""Groups of judgements by what their user has in the training data: recall of repeated and of new items."""

from __future__ import annotations

import random
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark import evaluate

ITEMS = "abcdefgh"


def rows(of_users: dict[str, list[str]], **columns: list[float]) -> pa.Table:
    """Build a row per user and item, in the order of the lists."""
    pairs = [(user, item, rank) for user, items in of_users.items() for rank, item in enumerate(items, 1)]
    named = dict(zip(("user_id", "item_id", "rank"), map(list, zip(*pairs, strict=True)), strict=True))
    return pa.table({**named, **columns})


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
def test_recall_of_repeated_and_new_items_is_that_of_a_count_by_hand(seed: int, k: int) -> None:
    draw = random.Random(seed)
    users = [f"u{number}" for number in range(6)]
    shown, liked, train = ({u: draw.sample(ITEMS, draw.randint(1, 6)) for u in users} for _ in range(3))
    names = {"R": "all", "R(group='repeat')": "repeat", "R(group='explore')": "explore"}
    measures = [f"R@{k}", f"RepeatRecall@{k}", f"ExploreRecall@{k}"]
    held_out = rows(liked).drop_columns("rank")
    result = evaluate(rows(shown), held_out, train=rows(train).drop_columns("rank"), measures=measures)
    found = {(row["user_id"], names[row["measure"]]): row["value"] for row in result.user_values}
    for user in users:
        wanted = {
            "all": {*liked[user]},
            "repeat": {*liked[user]} & {*train[user]},
            "explore": {*liked[user]} - {*train[user]},
        }
        for name, items in wanted.items():
            hits = len(items & {*shown[user][:k]})
            expected = Fraction(hits, len(items)) if items else None
            assert found.get((user, name)) == (None if expected is None else float(expected))


def test_groups_of_history_go_with_those_of_popularity_and_with_judged_lists() -> None:
    """A judgement of a list is repeated where the user of the list has the item."""
    lists = {"user_id": ["u", "u", "u", "v"], "list_id": ["1", "1", "2", "1"], "item_id": ["a", "b", "b", "a"]}
    log = pa.table({**lists, "rank": [1, 2, 1, 1]})
    held_out = pa.table(
        {"user_id": ["u", "u", "u", "v"], "list_id": ["1", "1", "2", "1"], "item_id": ["a", "b", "a", "b"]}
    )
    train = pa.table({"user_id": ["u", "v", "v"], "item_id": ["a", "a", "b"]})
    measures = [f"R(group='{group}')@2" for group in ("repeat", "explore", "head", "middle")]
    result = evaluate(log, held_out, train=train, measures=measures, policies={"unit": "list"})
    expected = {"repeat": (1 + 0 + 0) / 3, "explore": 1, "head": 1 / 2, "middle": 1 / 2}
    found = {row["measure"]: row["value"] for row in result.metrics.to_pylist()}
    assert found == pytest.approx({f"R(group='{name}')": value for name, value in expected.items()}, rel=0, abs=1e-12)


def test_lists_without_seen_items_repeat_nothing_and_explain_says_so() -> None:
    log, bought = rows({"u": ["a", "b"]}), rows({"u": ["a", "b"]}).drop_columns("rank")
    train = pa.table({"user_id": ["u"], "item_id": ["a"]})
    result = evaluate(
        log,
        bought,
        train=train,
        measures=["RepeatRecall@2", "nDCG(group='explore')@2"],
        policies={"seen_in_train": "drop"},
    )
    assert {row["measure"]: row["value"] for row in result.metrics.to_pylist()} == {
        "R(group='repeat')": 0.0,
        "nDCG(group='explore')": 1.0,
    }
    assert "sum of terms 0, divided by 1: 0" in str(result.explain("u", "RepeatRecall@2"))
