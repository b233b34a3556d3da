"""At which rank each of two models had the hits of a user, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.evaluate.test_means_over_lists import log_of, random_lists
from tests.support.arrow_frames import judgements, table, tuples

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("user_id", "list_id", "item_id", "gain", "baseline_rank", "rank")


def log(**lists: str) -> pa.Table:
    """Give the lists of ann by model, best first."""
    rows = [(model, "ann", item, float(-place)) for model, items in lists.items() for place, item in enumerate(items)]
    return table("model_id user_id item_id score", *rows)


def test_each_hit_of_either_model_has_a_row() -> None:
    held_out = judgements({"ann": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.0}, "bob": {"a": 1.0}})
    result = evaluate(log(als="xabe", pop="bcxe", other="d"), held_out, measures=["RR@3"])
    found = result.hit_ranks("als", baseline="pop")
    assert tuple(found.column_names) == COLUMNS
    # d is no hit of the two, e is not relevant, and bob has no list.
    assert tuples(found, *COLUMNS) == [
        ("ann", "", "a", 2.0, None, 2),
        ("ann", "", "b", 1.0, 1, 3),
        ("ann", "", "c", 1.0, 2, None),
    ]


def test_hits_are_those_of_the_ranked_items_list_by_list() -> None:
    lists, judged = random_lists(1, n_users=30)
    result = evaluate(log_of(lists), judgements(judged), measures=["RR@3"])
    wanted: dict[Any, dict[str, int]] = {}
    for row in result.ranked_items.to_pylist():
        if row["is_relevant"]:
            key = (row["user_id"], row["list_id"], row["item_id"], row["gain"])
            wanted.setdefault(key, {})[row["model_id"]] = row["rank"]
    found = {row[:4]: row[4:] for row in tuples(result.hit_ranks("als", "pop"), *COLUMNS)}
    assert found == {key: (ranks.get("pop"), ranks.get("als")) for key, ranks in wanted.items()}
    assert list(found) == sorted(found)


def test_ids_keep_their_type_and_no_hit_is_no_row() -> None:
    numbers = table("model_id user_id item_id score", ("als", 1, 7, 1.0), ("pop", 1, 8, 1.0), ids="bigint")
    found = evaluate(numbers, table("user_id item_id", (1, 9), ids="bigint"), measures=["RR@3"]).hit_ranks("als", "pop")
    assert found.num_rows == 0
    assert [str(found.schema.field(name).type) for name in ("user_id", "item_id", "rank")] == [
        "int64",
        "int64",
        "int32",
    ]


def test_other_models_are_refused_with_the_nearest_name() -> None:
    result = evaluate(log(als="a", pop="b"), judgements({"ann": {"a": 1.0}}), measures=["RR@3"])
    with pytest.raises(ConfigError) as raised:
        result.hit_ranks("alz", "popp")
    assert [fault.where for fault in raised.value.faults] == ["hit_ranks(model=)", "hit_ranks(baseline=)"]
    assert "did you mean 'als'" in str(raised.value)
    with pytest.raises(ConfigError, match="the same model"):
        result.hit_ranks("als", "als")
