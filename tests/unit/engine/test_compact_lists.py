"""From item rows to one compact row per list, without losing a user on either side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.columns import LIST_KEY
from rankeval_spark.engine import row_kinds
from tests.support.engine_rows import (
    BY_RANK,
    BY_SCORE,
    Row,
    batch_of,
    compact_lists_of,
    held_out,
    input_table,
    job,
    judgements_of,
    known_items,
    list_rows,
    log,
    ranked_of,
    scored_rows,
    tuples,
)

CATEGORIES = {"item_categories": pa.list_(pa.string())}
COMPACT = ("n_recommended", "n_duplicates", "hit_ranks", "hit_gains", "judged_gains", "tied_ranks")


def ranked(*given: tuple[Any, ...]) -> list[Row]:
    """Ranked items: (model, user, list, item, rank); neither repeated nor tied."""
    return log("model_id user_id list_id item_id rank", *given)


def judged(*given: tuple[Any, ...]) -> list[Row]:
    """Judgements: (user, item, gain)."""
    return held_out("user_id item_id gain", *given)


def lists_of(*inputs: list[Row], models: tuple[str, ...] = ("m",), ids: str = "string") -> list[Row]:
    """Make the lists of ranked items and judgements."""
    return list_rows(job(BY_RANK, models=models), input_table(*inputs, ids=ids))


ARROW_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "array<int>": pa.list_(pa.int32()),
    "array<double>": pa.list_(pa.float64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


def test_a_list_holds_the_ranks_and_gains_of_its_hits_and_all_gains_of_its_user() -> None:
    items = ranked(*(("m", "ann", "", item, rank) for rank, item in enumerate("abcde", 1)))
    judgements = judged(("ann", "d", 3.0), ("ann", "b", 1.0), ("ann", "x", 5.0), ("ann", "e", 0.0))
    assert tuples(lists_of(items, judgements), *LIST_KEY, *COMPACT) == [
        ("m", "ann", "", 5, 0, [2, 4, 5], [1.0, 3.0, 0.0], [5.0, 3.0, 1.0, 0.0], [])
    ]


def test_a_list_has_the_columns_of_the_published_table_and_their_types() -> None:
    """The log has scores and no ranks; a measure reads the scores."""
    table = input_table(log("user_id item_id score", ("ann", "a", 0.5)), judged(("ann", "a", 1.0)))
    (batch,) = compact_lists_of(job(measures=["MAE"]), table.to_batches())
    found = dict(zip(batch.schema.names, batch.schema.types, strict=True))
    published = {field.name: field.type for field in schemas.LISTS.fields if field.name not in C.RUN_KEY}
    assert found == {
        name: ARROW_TYPES[kind] for name, kind in published.items() if name not in (C.EMPTY_RANKS, *C.OF_RANKS)
    }


def test_no_user_is_lost_on_either_side() -> None:
    """Ann has lists of both models, Bob a list of one, Cat none; Dan was never judged."""
    items = ranked(
        ("m", "ann", "", "a", 1), ("n", "ann", "", "b", 1), ("m", "bob", "", "a", 1), ("n", "dan", "", "a", 1)
    )
    judgements = judged(("ann", "a", 1.0), ("bob", "b", 2.0), ("cat", "c", 3.0))
    lists = lists_of(items, judgements, models=("m", "n"))
    assert tuples(lists, "user_id", "model_id", "list_id", "n_recommended", "hit_ranks", "judged_gains") == [
        ("ann", "m", "", 1, [1], [1.0]),
        ("ann", "n", "", 1, [], [1.0]),
        ("bob", "m", "", 1, [], [2.0]),
        ("bob", "n", "", 0, [], [2.0]),
        ("cat", "m", "", 0, [], [3.0]),
        ("cat", "n", "", 0, [], [3.0]),
        ("dan", "n", "", 1, [], []),
    ]
    assert len(set(tuples(lists, *LIST_KEY))) == len(lists)


def test_a_user_with_several_lists_has_a_row_for_each_and_none_without_name() -> None:
    items = ranked(("m", "ann", "am", "a", 1), ("m", "ann", "pm", "b", 1), ("m", "ann", "pm", "a", 2))
    lists = lists_of(items, judged(("ann", "a", 1.0), ("ann", "z", 2.0)))
    assert tuples(lists, "list_id", "hit_ranks", "judged_gains") == [("am", [1], [2.0, 1.0]), ("pm", [2], [2.0, 1.0])]


def test_where_lists_have_names_a_judged_user_without_one_has_a_list_without_name() -> None:
    """One list of the log has the empty name, too."""
    items = ranked(("m", "ann", "am", "a", 1), ("m", "bob", "", "a", 1))
    judgements = judged(("ann", "a", 1.0), ("bob", "a", 2.0), ("cat", "a", 3.0))
    lists = lists_of(items, judgements, models=("m", "n"))
    assert tuples(lists, "user_id", "model_id", "list_id", "hit_gains") == [
        ("ann", "m", "am", [1.0]),
        ("ann", "n", "", []),
        ("bob", "m", "", [2.0]),
        ("bob", "n", "", []),
        ("cat", "m", "", []),
        ("cat", "n", "", []),
    ]


def test_hits_have_their_scores_where_a_measure_reads_them() -> None:
    items = log("user_id item_id score", ("ann", "a", 0.9), ("ann", "b", 0.5), ("ann", "c", -2.0))
    judgements = judged(("ann", "c", 1.0), ("ann", "a", 3.0), ("bob", "a", 1.0))
    lists = list_rows(job(measures=["MAE"]), input_table(items, judgements))
    assert tuples(lists, "user_id", "hit_ranks", "hit_gains", "hit_scores") == [
        ("ann", [1, 3], [3.0, 1.0], [0.9, -2.0]),
        ("bob", [], [], []),
    ]


def test_copies_and_ties_are_counted_on_the_way() -> None:
    scores = [("a", 0.9), ("b", 0.9), ("c", 0.9), ("d", 0.1), ("a", 0.5), ("c", 0.9), ("a", 0.05)]
    items = log("user_id item_id score", *(("ann", *one) for one in scores))
    lists = list_rows(job(), input_table(items, judged(("ann", "d", 1.0))))
    assert tuples(lists, *COMPACT) == [(4, (3 - 1) + (2 - 1), [4], [1.0], [1.0], [2, 3])]


def test_an_item_that_is_kept_twice_is_two_hits() -> None:
    table = input_table(ranked(("m", "ann", "", "a", 1), ("m", "ann", "", "a", 2)), judged(("ann", "a", 1.0)))
    lists = list_rows(job(replace(BY_RANK, duplicates="keep")), table)
    assert tuples(lists, "hit_ranks", "hit_gains", "judged_gains") == [([1, 2], [1.0, 1.0], [1.0])]


def test_integer_ids_keep_their_type() -> None:
    table = input_table(ranked(("m", 7, "", 70, 1)), judged((7, 70, 1.0), (8, 70, 1.0)), ids="bigint")
    (batch,) = compact_lists_of(job(BY_RANK), table.to_batches())
    assert tuples(batch.to_pylist(), "user_id", "hit_ranks") == [(7, [1]), (8, [])]
    assert batch.schema.field("user_id").type == pa.int64()


def test_nothing_recommended_leaves_every_judged_user_an_empty_list_of_each_model() -> None:
    lists = lists_of(ranked(), judged(("ann", "a", 1.0)), models=("m", "n"))
    assert tuples(lists, "model_id", "n_recommended", "judged_gains") == [("m", 0, [1.0]), ("n", 0, [1.0])]


def test_nothing_held_out_leaves_the_lists_without_judgements() -> None:
    assert tuples(lists_of(ranked(("m", "ann", "", "a", 1)), judged()), *COMPACT) == [(1, 0, [], [], [], [])]


@pytest.mark.parametrize("models", [(), ("m",)])
def test_without_rows_on_either_side_there_is_no_list(models: tuple[str, ...]) -> None:
    assert lists_of(ranked(), judged(), models=models) == []


def test_gains_that_order_ties_are_the_gains_of_the_hits() -> None:
    items = log("user_id item_id score", ("ann", "a", 0.5), ("ann", "b", 0.5))
    table = input_table(items, judged(("ann", "b", 2.0), ("ann", "z", 1.0)))
    lists = list_rows(job(replace(BY_SCORE, ties="optimistic")), table)
    assert tuples(lists, *COMPACT) == [(2, 0, [1], [2.0], [2.0, 1.0], [2])]


def test_a_list_whose_ranks_are_kept_is_as_long_as_its_last_rank() -> None:
    items = ranked(("m", "ann", "", "a", 3), ("m", "ann", "", "b", 7), ("m", "bob", "", "a", 1))
    table = input_table(items, judged(("ann", "b", 1.0), ("cat", "a", 1.0)))
    lists = list_rows(job(replace(BY_RANK, keeps_gaps=True)), table)
    assert tuples(lists, "user_id", "n_recommended", "hit_ranks") == [("ann", 7, [7]), ("bob", 1, []), ("cat", 0, [])]
    assert {row["user_id"]: row[C.EMPTY_RANKS] for row in lists} == {
        "ann": [{"first": 1, "last": 2}, {"first": 4, "last": 6}],
        "bob": [],
        "cat": None,
    }


# ---- models ---------------------------------------------------------------------------------------------------------

NAMES = ("z", "it's", "a")


def test_lists_have_the_names_of_their_models_in_whatever_order_these_are_named() -> None:
    items = log("model_id user_id item_id score", ("a", "u", "x", 0.5), ("it's", "u", "y", 0.5))
    lists = list_rows(job(models=NAMES), input_table(items, judged(("u", "y", 1.0))))
    assert tuples(lists, "model_id", "n_recommended", "hit_ranks") == [("a", 1, []), ("it's", 1, [1]), ("z", 0, [])]


def test_gains_may_be_in_the_column_of_the_scores() -> None:
    items = log("user_id item_id score", ("u", "x", 0.5), ("u", "y", 0.4))
    own_column = input_table(items, judged(("u", "y", 3.0)))
    scores = [{**row, "score": row.pop("gain")} for row in judged(("u", "y", 3.0))]
    (row,) = list_rows(job(), input_table(items, scores))
    assert row["hit_gains"] == row["judged_gains"] == [3.0]
    assert [row] == list_rows(job(), own_column)


def test_a_log_of_one_model_need_not_name_it() -> None:
    table = input_table(log("user_id item_id score", ("u", "x", 0.5)), judged(("u", "x", 1.0)))
    lists = list_rows(job(models=(C.ONE_MODEL,)), table.drop_columns(C.MODEL_ID))
    assert tuples(lists, "model_id", "hit_ranks") == [(C.ONE_MODEL, [1])]


# ---- ranks of the log that contradict the order ---------------------------------------------------------------------

CHECKED = replace(BY_SCORE, checks_ranks=True)


def faults(*given: tuple[Any, ...], order_by: str = "score") -> list[tuple[bool | None, ...]]:
    """Say what is wrong with the ranks of the one list of rows (item, score, rank), or (item, rank)."""
    by_score = order_by == "score"
    names = "user_id item_id score rank" if by_score else "user_id item_id rank"
    table = input_table(log(names, *(("u", *row) for row in given)))
    found = list_rows(job(CHECKED if by_score else replace(BY_RANK, checks_ranks=True)), table)
    return tuples(found, *(C.OF_RANKS if by_score else C.OF_RANKS[:1]))


@pytest.mark.parametrize(
    ("given", "has_gaps", "is_contrary"),
    [
        pytest.param([("a", 0.9, 1), ("b", 0.5, 2), ("c", 0.1, 3)], False, False, id="as given"),
        pytest.param([("a", 0.9, 1), ("b", 0.5, 2), ("c", 0.1, 4)], True, False, id="a gap"),
        pytest.param([("a", 0.9, 0), ("b", 0.5, 1), ("c", 0.1, 2)], True, False, id="from 0"),
        pytest.param([("a", 0.9, 2), ("b", 0.5, 1), ("c", 0.1, 3)], False, True, id="another order"),
        pytest.param([("b", 0.5, 1), ("a", 0.5, 2)], False, False, id="another order of a tie"),
        pytest.param([("a", 0.9, 1), ("b", 0.5, None), ("c", 0.1, 3)], False, False, id="one without a rank"),
        pytest.param([("a", 0.9, 1), ("b", 0.5, 2), ("a", 0.4, 3), ("c", 0.1, 4)], False, False, id="a repeated item"),
        pytest.param([("a", 0.9, 1), ("b", 0.5, 1), ("c", 0.1, 2)], True, False, id="one rank twice"),
    ],
)
def test_ranks_of_the_log_are_compared_with_those_that_are_given(
    given: list[tuple[Any, ...]], has_gaps: bool, is_contrary: bool
) -> None:
    assert faults(*given) == [(has_gaps, is_contrary)]


def test_a_log_of_ranks_alone_cannot_contradict_its_scores() -> None:
    assert faults(("a", 1), ("b", 2), order_by="rank") == [(False,)]
    assert faults(("a", 1), ("b", 3), order_by="rank") == [(True,)]


def test_a_user_without_a_list_has_no_ranks_to_compare() -> None:
    items = log("user_id item_id score rank", ("ann", "a", 0.5, 1))
    lists = list_rows(job(CHECKED), input_table(items, judged(("ann", "a", 1.0), ("bob", "a", 1.0))))
    assert tuples(lists, "user_id", *C.OF_RANKS) == [("ann", False, False), ("bob", None, None)]


def test_a_partition_whose_users_have_no_lists_has_the_columns_of_all_others() -> None:
    """Its log is empty, so nothing in the rows says that the log has ranks or scores."""
    table = input_table(judged(("ann", "a", 1.0)), also=[C.SCORE, C.RANK])
    work = job(CHECKED, measures=["MAE", "P@5"])
    assert tuples(list_rows(work, table), "user_id", "n_recommended", "hit_scores", *C.OF_RANKS) == [
        ("ann", 0, [], None, None)
    ]
    assert tuples(scored_rows(work, table), "k", "p", *C.OF_RANKS) == [(0, None, None, None), (5, 0.0, None, None)]


# ---- facts of judgements --------------------------------------------------------------------------------------------


def test_values_and_groups_stay_with_the_gains() -> None:
    """In the order of the ranks, and of descending gains; of equal gains the larger value is first."""
    items = log("user_id item_id score", ("u", "a", 0.9), ("u", "b", 0.8), ("u", "c", 0.7))
    table = input_table(
        items, held_out("user_id item_id gain value", ("u", "c", 1.0, 5.0), ("u", "a", 1.0, 7.0), ("u", "z", 3.0, 2.0))
    )
    known = known_items(CATEGORIES, ("c", ["one"]), ("a", ["two"]), ("z", ["four"]))
    in_groups = [f"R(group='{name}')@5" for name in ("one", "two", "four")]
    (row,) = list_rows(job(measures=in_groups, constants=known), table)
    assert [row[name] for name in ("hit_ranks", C.HIT_VALUES, C.HIT_GROUPS)] == [[1, 3], [7.0, 5.0], [2, 1]]
    assert [row[name] for name in ("judged_gains", C.JUDGED_VALUES, C.JUDGED_GROUPS)] == [
        [3.0, 1.0, 1.0],
        [2.0, 7.0, 5.0],
        [4, 2, 1],
    ]


@pytest.mark.parametrize("measure", ["CG(gains='value')@5", "R(group='drama')@5"])
def test_a_partition_whose_users_have_no_judgements_is_scored_with_values_and_groups(measure: str) -> None:
    items = log("user_id item_id score", ("u", "a", 0.9))
    work = job(measures=[measure], constants=known_items(CATEGORIES))
    (row,) = scored_rows(work, input_table(items, also=[C.GAIN, C.VALUE]))
    assert (row["n_recommended"], row["n_judged"]) == (1, 0)


# ---- facts of items -------------------------------------------------------------------------------------------------


def test_facts_in_the_log_may_be_missing_if_no_user_of_a_partition_has_a_list() -> None:
    table = input_table(judged(("u", "a", 1.0)), also=[C.SCORE, row_kinds.FACTS])
    (row,) = scored_rows(job(needs=frozenset({"item_users"}), described=(row_kinds.LOG,)), table)
    assert (row["n_recommended"], row["p"]) == (0, 0.0)


def test_similar_items_are_found_where_the_log_of_one_model_does_not_name_it() -> None:
    """The rows of pairs have the name, so that all rows have the column: NULL in those of the log."""
    similar = [{"later": 2, "earlier": 1, "similarity": 0.5}]
    pairs = [{row_kinds.KIND: row_kinds.PAIRS, "user_id": "u", C.MODEL_ID: "m", C.PAIRS: similar}]
    items = [{**row, C.MODEL_ID: None} for row in log("user_id item_id score", ("u", "a", 0.9), ("u", "b", 0.8))]
    (row,) = list_rows(job(needs=frozenset({"item_pairs"})), input_table(items, pairs))
    assert row[C.PAIRS] == similar


def test_the_rows_of_lists_are_the_ranked_items_in_order() -> None:
    """Positions of the first item and lengths say where each list is, an empty one included."""
    table = input_table(
        log("model_id user_id item_id score", ("m", "u", "a", 0.1), ("n", "u", "b", 0.2), ("n", "u", "a", 0.3)),
        judged(("u", "a", 1.0), ("v", "a", 1.0)),
    )
    found = ranked_of(table, BY_SCORE)
    assert (found.start.tolist(), found.length.tolist()) == ([0, 1, 3, 3], [1, 2, 0, 0])
    assert judgements_of(batch_of(table)).gain.tolist() == [1.0, 1.0]
