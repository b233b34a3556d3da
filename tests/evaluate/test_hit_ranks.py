"""At which rank each of two models had the hits of a user, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.evaluate.test_attribution import tables
from tests.evaluate.test_means_over_lists import log_of, random_lists
from tests.support.arrow_frames import judgements, table, tuples
from tests.support.attribution_cases import HOUR, Event, Shown, moment, random_logs
from tests.support.sections import sections

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


def by_hand(ranked: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Look for each relevant item of a list of als or pop in the lists of both."""
    rows = [row for row in ranked if row["model_id"] in ("als", "pop")]
    wanted: dict[Any, list[float]] = {}
    for row in rows:
        if row["is_relevant"]:
            wanted.setdefault((row["user_id"], row["list_id"], row["item_id"]), []).append(row["gain"])
    return [
        (*key, max(gains), *(_best(rows, model, key) for model in ("pop", "als")))
        for key, gains in sorted(wanted.items())
    ]


def _best(rows: list[dict[str, Any]], model: str, key: tuple[str, ...]) -> int | None:
    own = [row for row in rows if (row["user_id"], row["list_id"], row["item_id"]) == key and row["model_id"] == model]
    return min((row["rank"] for row in own), default=None)


def test_hits_are_those_of_the_ranked_items_list_by_list() -> None:
    lists, judged = random_lists(1, n_users=30)
    result = evaluate(log_of(lists), judgements(judged), measures=["RR@3"])
    assert tuples(result.hit_ranks("als", "pop"), *COLUMNS) == by_hand(result.ranked_items.to_pylist())


@pytest.mark.filterwarnings("ignore:.* rows have no time that can be read")
@pytest.mark.parametrize("claim", ["last_touch", "first_touch", "all"])
def test_hits_of_attributed_lists_have_the_ranks_of_both_models(claim: str) -> None:
    options: dict[str, Any] = {"attribution": claim, "attribution_window": "2h", "held_out_duplicates": "sum"}
    result = evaluate(*tables(*random_logs(n_users=60)), **sections(measures=["R"], **options))
    found = tuples(result.hit_ranks("als", "pop"), *COLUMNS)
    assert found == by_hand(result.ranked_items.to_pylist())
    assert any(None not in row for row in found)


def test_an_item_that_is_judged_in_another_list_of_one_model_was_recommended_by_both() -> None:
    shown = [("als", "1", 1), ("pop", "1", 1), ("pop", "2", 2)]
    lists = [Shown(model, "ann", name, "s", 1.0, moment(hour * HOUR)) for model, name, hour in shown]
    options: dict[str, Any] = {"attribution": "last_touch", "attribution_window": "1d"}
    events = [Event("ann", "s", 1.0, moment(3 * HOUR))]
    found = evaluate(*tables(lists, events), **sections(measures=["R"], **options)).hit_ranks("als", "pop")
    assert tuples(found, *COLUMNS) == [("ann", "1", "s", 1.0, 1, 1), ("ann", "2", "s", 1.0, 1, None)]


def test_gains_that_differ_between_models_are_one_row_of_the_larger() -> None:
    shown = [("als", "1", 1), ("pop", "1", 1), ("pop", "2", 3)]
    lists = [Shown(model, "ann", name, "s", 1.0, moment(hour * HOUR)) for model, name, hour in shown]
    options: dict[str, Any] = {"attribution": "last_touch", "attribution_window": "1d", "held_out_duplicates": "sum"}
    events = [Event("ann", "s", 1.0, moment(hour * HOUR)) for hour in (2, 4)]
    found = evaluate(*tables(lists, events), **sections(measures=["R"], **options)).hit_ranks("als", "pop")
    assert tuples(found, *COLUMNS) == [("ann", "1", "s", 2.0, 1, 1), ("ann", "2", "s", 1.0, 1, None)]


def test_the_best_of_several_copies_counts() -> None:
    result = evaluate(
        log(als="aab", pop="ba"), judgements({"ann": {"a": 1.0}}), measures=["RR@3"], policies={"duplicates": "keep"}
    )
    assert tuples(result.hit_ranks("als", "pop"), *COLUMNS) == [("ann", "", "a", 1.0, 2, 1)]


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
