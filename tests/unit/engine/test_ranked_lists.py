"""The order of a list: total, by the declared rules, whatever the order of the input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.config import Policies
from rankeval_spark.config.policies import TIES, Ties
from rankeval_spark.config.request import Request
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.planning import build_list_rules, log_columns
from tests.support.engine_rows import (
    BY_RANK,
    BY_SCORE,
    Row,
    batch_of,
    held_out,
    input_table,
    job,
    judgements_of,
    list_rows,
    log,
    ranked_of,
    ranked_rows,
    train,
    tuples,
)

KEY: Final = ("model_id", "user_id", "list_id", "item_id")


def one_list(columns: str, *rows: tuple[Any, ...], ids: str = "string") -> pa.Table:
    """One user's list: (item, score), (item, rank) or both."""
    user, names = "u" if ids == "string" else 1, columns.split()
    return input_table(log(f"user_id {columns}", *((user, *row) for row in rows)), ids=ids, also=names[1:])


def ranked(table: pa.Table, **policies: Any) -> list[Row]:  # noqa: ANN401 - fields of the rules
    """Rank the lists of a table, by score or, where the log has none, by rank."""
    rules = replace(BY_SCORE if C.SCORE in table.column_names else BY_RANK, **policies)
    return ranked_rows(ranked_of(table, rules), gains=judgements_of(batch_of(table)))


def order(table: pa.Table, **policies: Any) -> tuple[list[Any], list[int]]:  # noqa: ANN401 - fields of the rules
    """Items of the one list, best first, and the ranks that tie with the rank before; ranks must be 1, 2, ..."""
    rows = tuples(ranked(table, **policies), "rank", "item_id", "is_tied")
    assert [place for place, _, _ in rows] == list(range(1, len(rows) + 1))
    return [item for _, item, _ in rows], [place for place, _, is_tied in rows if is_tied]


TEXTS: Final = ["d10", "d2", "é", "z", "Z", "𝄞", "\uffee"]
OF_EQUAL_SCORE: Final = [(item, 0.5) for item in TEXTS]
NUMBERS: Final = [(10, 0.5), (9, 0.5), (2, 0.5), (-1, 0.5)]
BY_BYTES: Final = sorted(TEXTS, key=str.encode)
REST: Final = [2, 3, 4, 5, 6, 7]
RANKED: Final = [("e", 0.5, None), ("d", 0.5, None), ("a", 0.5, 4), ("b", 0.5, 2), ("c", 0.9, 9)]
EQUAL_RANKS: Final = [("b", 1), ("a", 1), ("c", 2)]
SINGLE: Final = [("a", 0.1), ("b", 0.1 + 1e-9), ("c", 0.1 + 1e-7)]


@pytest.mark.parametrize(
    ("rows", "policies", "expected", "tied"),
    [
        pytest.param([("d2", 0.5), ("d10", 0.5), ("z", 0.9)], {}, ["z", "d10", "d2"], [3], id="the smaller item first"),
        pytest.param(OF_EQUAL_SCORE, {"ties": "item_asc"}, BY_BYTES, REST, id="texts by their bytes"),
        pytest.param(OF_EQUAL_SCORE, {"ties": "item_desc"}, BY_BYTES[::-1], REST, id="the largest first"),
        pytest.param(OF_EQUAL_SCORE, {"ties": "item_desc_bytes"}, BY_BYTES[::-1], REST, id="as in trec_eval"),
        pytest.param(NUMBERS, {"ties": "item_asc"}, [-1, 2, 9, 10], [2, 3, 4], id="whole numbers by value"),
        pytest.param(NUMBERS, {"ties": "item_desc"}, [10, 9, 2, -1], [2, 3, 4], id="the largest number first"),
        pytest.param(NUMBERS, {"ties": "item_desc_bytes"}, [9, 2, 10, -1], [2, 3, 4], id="numbers by their digits"),
        pytest.param(RANKED, {"ties": "rank"}, [*"cbade"], [3, 4, 5], id="the rank of the log, then the item"),
        pytest.param([("b", 0.0), ("a", -0.0), ("c", -0.0)], {}, [*"abc"], [2, 3], id="minus zero is zero"),
        pytest.param([("a", 0.1), ("b", 0.1 + 1e-9)], {}, [*"ba"], [], id="scores in double precision"),
        pytest.param(
            [*zip("abcdefg", (0.9, 0.5, 0.5, 0.5, 0.1, 0.05, 0.05), strict=True)],
            {},
            [*"abcdefg"],
            [3, 4, 7],
            id="a tied rank has the score of the rank before",
        ),
        pytest.param([("a", 0.9), ("a", 0.9), ("b", 0.5)], {"ties": "error"}, [*"ab"], [], id="copies are no tie"),
        pytest.param([("c", 30), ("a", 7), ("b", 11)], {}, [*"abc"], [], id="ranks of the log, without gaps"),
        pytest.param(EQUAL_RANKS, {"ties": "rank"}, [*"abc"], [2], id="equal ranks of the log are ties"),
        pytest.param(EQUAL_RANKS, {"ties": "item_desc"}, [*"bac"], [2], id="equal ranks by item"),
        pytest.param([("a", 1), ("b", 2), ("a", 3), ("c", 4)], {}, [*"abc"], [], id="the best rank of a repeated item"),
        pytest.param([("a", 16_777_217), ("b", 16_777_216)], {}, [*"ba"], [], id="ranks have no precision"),
        pytest.param(SINGLE, {}, [*"cba"], [], id="scores that single precision cannot tell apart"),
        pytest.param(
            [(item, float(np.float32(score))) for item, score in SINGLE],
            {},
            [*"cab"],
            [3],
            id="are ties once they are rounded, before the engine",
        ),
    ],
)
def test_a_list_has_one_order(
    rows: list[tuple[Any, ...]], policies: dict[str, Any], expected: list[Any], tied: list[int]
) -> None:
    columns = (
        "item_id score rank" if len(rows[0]) > 2 else "item_id rank" if isinstance(rows[0][1], int) else "item_id score"
    )
    table = one_list(columns, *rows, ids="string" if isinstance(rows[0][0], str) else "bigint")
    assert order(table, **policies) == (expected, tied)


@pytest.mark.parametrize("order_by", ["score", "rank"])
def test_a_log_without_rows_has_no_ranks(order_by: str) -> None:
    assert order(one_list(f"item_id {order_by}")) == ([], [])


@pytest.mark.parametrize("score_type", [pa.float32(), pa.int64(), pa.decimal128(25, 6)], ids=str)
def test_scores_of_any_type_are_ordered_by_value(score_type: pa.DataType) -> None:
    values = [3, -2, 0, 70, -2, 11]
    table = one_list("item_id score", *zip("abcdef", map(float, values), strict=True))
    table = table.set_column(table.column_names.index(C.SCORE), C.SCORE, pa.array(values).cast(score_type))
    assert order(table) == ([*"dfacbe"], [6])


def test_lists_are_ordered_by_score_each_from_rank_1() -> None:
    table = input_table(
        log(
            "model_id user_id list_id item_id score",
            ("m", "u", "am", "a", 0.1),
            ("m", "u", "am", "b", 0.9),
            ("m", "u", "pm", "a", 0.8),
            ("m", "v", "am", "a", 0.7),
            ("n", "u", "am", "a", 0.6),
        )
    )
    rows = ranked(table)
    assert tuples(rows, *KEY, "rank") == [
        ("m", "u", "am", "a", 2),
        ("m", "u", "am", "b", 1),
        ("m", "u", "pm", "a", 1),
        ("m", "v", "am", "a", 1),
        ("n", "u", "am", "a", 1),
    ]
    assert len(set(tuples(rows, *KEY))) == len(rows)


@pytest.mark.parametrize("has_lists", [False, True])
def test_ranked_items_have_the_key_of_their_list_and_the_types_of_the_log(has_lists: bool) -> None:
    """Rows of the log and of the judgements have ids as integers; only a judged item has a gain."""
    named, name = ("list_id ", ("am",)) if has_lists else ("", ())
    table = input_table(
        log(f"user_id {named}item_id score", (1, *name, 10, 0.1), (1, *name, 20, 0.9)),
        held_out("user_id item_id gain", (1, 20, 3.0)),
        ids="bigint",
    )
    (batch,) = job(has_lists=has_lists).ranked_items(table.to_batches())
    in_order = [("model_id", pa.string()), ("user_id", pa.int64())]
    assert list(zip(batch.schema.names, batch.schema.types, strict=True)) == [
        *in_order,
        *([("list_id", pa.string())] if has_lists else []),
        ("item_id", pa.int64()),
        ("rank", pa.int32()),
        ("gain", pa.float64()),
    ]
    assert tuples(batch.to_pylist(), "rank", "item_id", "gain") == [(1, 20, 3.0), (2, 10, None)]


def test_ranked_items_can_be_cut_at_a_rank() -> None:
    rows = [("u", item, -float(place)) for place, item in enumerate("abcde")]
    table = input_table(log("user_id item_id score", *rows, ("v", "a", 0.5)))
    (batch,) = job(depth=2).ranked_items(table.to_batches())
    assert tuples(batch.to_pylist(), "user_id", "rank", "item_id") == [("u", 1, "a"), ("u", 2, "b"), ("v", 1, "a")]


@pytest.mark.parametrize("ties", TIES)
def test_the_ranks_of_the_log_are_read_where_the_policy_of_ties_says_so(ties: str) -> None:
    columns, policies = (
        [C.USER_ID, C.ITEM_ID, C.MODEL_ID, C.SCORE, C.RANK],
        Policies.model_validate({"ties": ties, "judged_only": True}),
    )
    request = Request(measures=("P@5",), policies=policies)  # ranks are not checked where items are dropped
    read = log_columns(columns, request, has_lists=False)
    assert (C.RANK in read) is build_list_rules(request, columns).reads_ranks is (ties == "rank")


def test_an_order_of_ties_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no order of ties 'newest'"):
        ranked(one_list("item_id score", ("b", 0.5), ("a", 0.5)), ties="newest")


def test_scores_that_differ_in_the_last_bit_are_no_tie_however_many_lists_there_are() -> None:
    """The sort key has no room for all bits of a score; whatever it loses is looked at again."""
    first = [("u", item, 0.5) for item in "cab"]
    close = [("u", "next", np.nextafter(0.5, 1.0)), ("u", "last", np.nextafter(0.5, 0.0))]
    many = [(f"v{number:04}", "a", 0.5) for number in range(5_000)]
    rows = [row for row in ranked(input_table(log("user_id item_id score", *first, *many, *close)))]
    of_u = [row for row in rows if row["user_id"] == "u"]
    assert tuples(of_u, "rank", "item_id", "is_tied") == [
        (1, "next", False),
        (2, "a", False),
        (3, "b", True),
        (4, "c", True),
        (5, "last", False),
    ]


@pytest.mark.parametrize(
    ("rows", "policies", "fault"),
    [
        ([("a", 0.5), ("b", 0.5)], {"ties": "error", "duplicates": "best"}, r"\[rankeval:ties\]"),
        ([("a", 0.5), ("b", 0.5)], {"ties": "error", "duplicates": "keep"}, r"\[rankeval:ties\]"),
        ([("a", 0.9), ("a", 0.1)], {"duplicates": "error"}, r"\[rankeval:duplicates\]"),
    ],
)
def test_a_case_fails_where_the_policy_is_error(
    rows: list[tuple[str, float]], policies: dict[str, str], fault: str
) -> None:
    with pytest.raises(RefusedError, match=fault):
        ranked(one_list("item_id score", *rows), **policies)


def test_equal_scores_in_two_lists_are_no_tie() -> None:
    table = input_table(log("user_id list_id item_id score", ("u", "1", "a", 0.5), ("u", "2", "b", 0.5)))
    assert tuples(ranked(table, ties="error"), "list_id", "rank", "is_tied") == [("1", 1, False), ("2", 1, False)]


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [("best", [(1, "a", 3), (2, "b", 1), (3, "c", 1)]), ("keep", [(i + 1, item, 1) for i, item in enumerate("abaca")])],
)
def test_the_best_place_of_a_repeated_item_counts_or_all_of_them(
    duplicates: str, expected: list[tuple[int, str, int]]
) -> None:
    table = one_list("item_id score", ("a", 0.9), ("b", 0.8), ("a", 0.7), ("c", 0.6), ("a", 0.1))
    assert tuples(ranked(table, duplicates=duplicates), "rank", "item_id", "n_copies") == expected


def test_of_copies_of_equal_score_that_of_the_best_rank_in_the_log_counts() -> None:
    rows = [("u", "a", 0.5, None), ("u", "a", 0.5, 9), ("u", "a", 0.5, 7), ("u", "b", 0.5, 8)]
    table = input_table(log("user_id item_id score rank", *rows))
    for ties in ("item_asc", "rank"):
        assert tuples(ranked(table, ties=ties), "rank", "item_id", "logged") == [(1, "a", 7), (2, "b", 8)]


def test_an_item_in_two_lists_is_not_repeated() -> None:
    rows = [("m", "u", "1"), ("m", "u", "2"), ("n", "u", "1"), ("m", "v", "1")]
    table = input_table(log("model_id user_id list_id item_id score", *((*row, "a", 0.5) for row in rows)))
    found = tuples(ranked(table, duplicates="error"), "model_id", "user_id", "list_id", "n_copies")
    assert found == sorted((*row, 1) for row in rows)


def test_scores_are_kept_where_a_measure_needs_them_and_only_there() -> None:
    table = input_table(
        log("user_id item_id score", ("u", "a", 0.1), ("u", "b", 0.9), ("u", "a", 0.5)),
        held_out("user_id item_id gain", ("u", "a", 1.0), ("u", "b", 1.0)),
    )
    (row,) = list_rows(job(measures=["MAE"]), table)
    assert list(zip(row["hit_ranks"], row["hit_scores"], strict=True)) == [(1, 0.9), (2, 0.5)]
    (row,) = list_rows(job(measures=["P@5"]), table)
    assert "hit_scores" not in row


# ---- policies that look at the judgements ---------------------------------------------------------------------------


def judged(*rows: tuple[str, float]) -> list[Row]:
    """Judgements of the one user: (item, gain)."""
    return held_out("user_id item_id gain", *(("u", *row) for row in rows))


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("optimistic", ["first", "three", "one", "unjudged", "zero", "minus", "last"]),
        ("pessimistic", ["first", "minus", "unjudged", "zero", "one", "three", "last"]),
    ],
)
def test_ties_can_be_broken_for_and_against_the_measures(ties: str, expected: list[str]) -> None:
    """By gain, 0 without a judgement, and then by item; scores that differ still come first."""
    tied_items = ("zero", "one", "three", "unjudged", "minus")
    rows = [("first", 0.9), *((item, 0.5) for item in tied_items), ("last", 0.1)]
    gains = judged(("zero", 0.0), ("one", 1.0), ("three", 3.0), ("minus", -1.0), ("last", 5.0))
    table = input_table(log("user_id item_id score", *(("u", *row) for row in rows)), gains)

    found = ranked(table, ties=ties)

    assert [item for _, item in tuples(found, "rank", "item_id")] == expected
    assert [place for place, is_tied in tuples(found, "rank", "is_tied") if is_tied] == [3, 4, 5, 6]
    assert {item: gain for item, gain in tuples(found, "item_id", "gain") if gain is not None} == {
        "zero": 0.0,
        "one": 1.0,
        "three": 3.0,
        "minus": -1.0,
        "last": 5.0,
    }


def test_items_without_a_judgement_can_be_left_out_and_the_list_closes_up() -> None:
    rows = [("u", "x", 0.9), ("u", "a", 0.8), ("u", "y", 0.7), ("u", "b", 0.6)]
    table = input_table(log("user_id item_id score", *rows), judged(("a", 1.0), ("b", 0.0)))
    assert tuples(ranked(table, judged_only=True), "rank", "item_id", "is_last") == [(1, "a", False), (2, "b", True)]


def test_a_negative_gain_marks_an_unjudged_item_if_judged_items_alone_count() -> None:
    rows = [("u", "n", 0.9), ("u", "a", 0.8)]
    table = input_table(log("user_id item_id score", *rows), judged(("n", -1.0), ("a", 0.0)))
    assert tuples(ranked(table, judged_only=True), "rank", "item_id") == [(1, "a")]


def test_only_some_policies_look_at_the_gains() -> None:
    """All others rank the same whatever the judgements are."""
    rows = log("user_id item_id score rank", *(("u", item, 0.5, place) for place, item in enumerate("bca", 1)))

    def outcome(ties: str, *gains: tuple[str, float], judged_only: bool = False) -> list[Any] | str:
        try:
            return order(input_table(rows, judged(*gains)), ties=ties, judged_only=judged_only)[0]
        except RefusedError as error:
            return str(error)

    one, other = (("a", 1.0), ("c", -2.0)), (("b", 2.0), ("a", -1.0))
    assert [ties for ties in get_args(Ties) if outcome(ties, *one) != outcome(ties, *other)] == [
        "optimistic",
        "pessimistic",
    ]
    assert outcome("item_asc", *one, judged_only=True) != outcome("item_asc", *other, judged_only=True)


def test_items_that_the_user_has_in_train_leave_the_list_first() -> None:
    """Only that user's: another user has item b. Two copies go, so that the policy against them meets none."""
    rows = [("u", "s", 0.9), ("u", "a", 0.8), ("u", "s", 0.7), ("u", "b", 0.6), ("v", "s", 0.9)]
    table = input_table(log("user_id item_id score", *rows), train(("u", "s"), ("v", "b"), ("w", "a"), ("u", "none")))
    found = ranked(table, drops_seen=True, duplicates="error")
    assert tuples(found, "user_id", "rank", "item_id", "is_last") == [
        ("u", 1, "a", False),
        ("u", 2, "b", True),
        ("v", 1, "s", True),
    ]
    assert len(ranked(table)) == 4


# ---- ranks of the log as they are -----------------------------------------------------------------------------------


def test_ranks_of_the_log_can_be_kept_with_their_gaps() -> None:
    rows = [("u", "c", 30), ("u", "a", 7), ("u", "b", 11), ("u", "a", 12)]
    table = input_table(log("user_id item_id rank", *rows))
    assert tuples(ranked(table, keeps_gaps=True), "rank", "item_id", "n_copies", "is_last") == [
        (7, "a", 2, False),
        (11, "b", 1, False),
        (30, "c", 1, True),
    ]


def test_two_items_at_one_rank_fail_where_ranks_are_kept() -> None:
    table = input_table(log("user_id item_id rank", ("u", "b", 1), ("u", "a", 1)))
    with pytest.raises(RefusedError, match=r"\[rankeval:rank_gaps\] .* and the policy rank_gaps is 'keep'"):
        ranked(table, ties="rank", keeps_gaps=True)
