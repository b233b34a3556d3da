"""What is wrong with single rows of tables in memory, and which rows can be used."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark.config import Policies
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Band, Slicing
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.checks import (
    FAULTS,
    NotFiniteVector,
    RowChecks,
    held_out_checks,
    item_checks,
    log_checks,
    meets,
    refuse_by_check,
    refuse_unusable as refuse_counted,
    segment_checks,
    train_checks,
    unnamed_checks,
    user_value_checks,
    user_weight_checks,
)
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.in_process.assembly import Usable, keep_requested_rows
from rankeval_spark.inputs.arrow.reading import Source, Tables
from rankeval_spark.sums.input_warnings import LEFT_OUT
from tests.support.arrow_sources import source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.policies import OwnItem


def request(
    *measures: str,
    models: tuple[str, ...] | None = None,
    **policies: Any,  # noqa: ANN401 - fields of Policies
) -> Request:
    """Ask for some measures, P@1 where none is named."""
    return Request(measures=measures or ("P@1",), policies=Policies(**policies), models=models)


def flagged(checks: RowChecks, given: Source) -> dict[str, list[int]]:
    """Positions of the rows that do not pass each check."""
    return {check: np.flatnonzero(flag).tolist() for check, flag in checks.flag_failures(given.table).items()}


def of_log(given: Source, **options: Any) -> dict[str, list[int]]:  # noqa: ANN401 - those of log_checks
    """Positions of the rows of a log that do not pass each check."""
    return flagged(log_checks(given.table.column_names, **options), given)


def of_held_out(given: Source, *, reads: Sequence[str] = ()) -> dict[str, list[int]]:
    """Positions of the judgements that do not pass each check, of which measures read some columns."""
    unread = {"value", "weight"} - {*reads}
    return flagged(held_out_checks([name for name in given.table.column_names if name not in unread]), given)


def usable_of(given: Source, asked: Request) -> pa.Table:
    """Rows of a log that enter lists, where checks do not judge it."""
    held_out = source("held_out", "user_id item_id", ("u", "a"))
    return Usable(Tables(given, held_out, are_checked=False), asked, 1).log


SCORES: list[tuple[Any, ...]] = [
    ("m", "ann", "a", 0.5),
    (None, "ann", "b", math.nan),
    ("m", "ann", None, 1.0),
    ("m", "ann", "c", math.nan),
]
SCORES += [("m", "bob", "d", None), ("m", "bob", "e", -math.inf), ("n", "bob", "f", 2.0)]


def log(*rows: tuple[Any, ...]) -> Source:
    """Make a log with scores."""
    return source("recommendations", "model_id user_id item_id score", *(rows or SCORES))


def test_a_row_of_the_log_fails_one_check_at_most() -> None:
    assert of_log(log()) == {
        "null_keys": [1, 2],
        "zero_ranks": [],
        "invalid_scores": [3, 4, 5],
    }


def test_whole_scores_and_decimals_are_invalid_where_they_are_null() -> None:
    for type_ in (pa.int64(), pa.decimal128(10, 2)):
        one = log(("m", "u", "a", 1.0), ("m", "u", "b", None))
        table = one.table.set_column(3, "score", one.table["score"].cast(type_))
        assert of_log(Source("recommendations", table, one.given, one.id_types))["invalid_scores"] == [1]


def test_ranks_order_the_lists_of_a_log_without_scores() -> None:
    rows = [("u", "a", 0), ("u", "b", 1), ("u", "c", -1), ("u", "d", None), (None, "e", 0)]
    assert of_log(source("recommendations", "user_id item_id rank", *rows)) == {
        "null_keys": [4],
        "zero_ranks": [0],
        "invalid_scores": [2, 3],
    }


def test_judgements_without_a_key_or_a_number_are_flagged() -> None:
    rows: list[tuple[Any, ...]] = [
        ("u", "a", 1.0, 2.0),
        ("u", None, 1.0, 1.0),
        ("u", "b", None, math.nan),
        ("u", "c", math.inf, None),
    ]
    rows += [("u", "d", -1.0, 0.0), ("u", "e", 0.5, math.inf), ("u", "f", 0.0, 1.0), (None, "g", math.nan, 1.0)]
    held_out = source("held_out", "user_id item_id gain value", *rows)
    expected = {"null_keys": [1, 7], "invalid_gains": [2, 3], "negative_gains": [4], "low_gains": [5]}
    assert of_held_out(held_out, reads=["value"]) == {**expected, "invalid_values": [5]}
    assert of_held_out(held_out) == expected
    weighted = source("held_out", "user_id item_id gain weight", *rows)
    expected["invalid_weights"] = [4, 5]  # 0 is none either; rows that are left out are not looked at
    assert of_held_out(weighted, reads=["value", "weight"]) == expected


def test_rows_about_the_query_itself_are_flagged_where_a_policy_drops_them() -> None:
    rows: list[tuple[Any, ...]] = [("m", "a", "a", 1.0), ("m", "a", "b", 1.0), ("m", "b", "b", None)]
    rows += [("m", None, None, 1.0), ("m", None, "a", 1.0), ("m", "A", "a", 1.0)]
    assert of_log(log(*rows), own_item="drop") == {
        "null_keys": [3, 4],
        "own_item": [0, 2],
        "zero_ranks": [],
        "invalid_scores": [],
    }
    judged = source("held_out", "user_id item_id gain", ("7", "7", 1.0), ("7", "8", 1.0), (None, "8", 1.0))
    expected: dict[OwnItem, list[str]] = {"drop": ["7", "8"], "drop_both": ["8"]}
    for policy, left in expected.items():
        checks = held_out_checks(judged.table.column_names, own_item=policy)
        assert flagged(checks, judged)["own_item"] == [0]
        assert checks.usable(judged.table)["item_id"].to_pylist() == left
    assert "own_item" not in of_log(log())


def test_interactions_of_the_day_in_utc_or_later_are_flagged() -> None:
    midnight, before = (
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
    )
    rows = [("u", "a", midnight), ("u", "b", before), ("u", "c", None), (None, "d", midnight)]
    train = source("train", "user_id item_id interacted_at", *rows)
    assert flagged(train_checks(train.table.column_names, before=date(2026, 1, 1)), train) == {
        "null_keys": [3],
        "train_after_cut": [0],
    }
    assert flagged(train_checks(train.table.column_names), train) == {"null_keys": [3]}
    without = source("train", "user_id item_id", ("u", "a"))
    assert flagged(train_checks(without.table.column_names, before=date(2026, 1, 1)), without) == {"null_keys": []}


def test_facts_of_items_that_cannot_be_used_are_flagged() -> None:
    rows = [("a", [1.0, 2.0]), ("b", [1.0, math.nan]), ("c", [None]), ("d", None), ("e", []), (None, [math.inf])]
    lost = [False, False, False, True, False, True]
    items = source("items", "item_id vector", *rows, unreadable=lost)
    held_out = source("held_out", "user_id item_id", ("u", "a"))
    usable = Usable(Tables(log(), held_out, items=items, are_checked=True), request(), 1)
    flags = usable.row_checks["items"].flag_failures(usable.rows_of("items"))
    assert {name: np.flatnonzero(flag).tolist() for name, flag in flags.items()} == {
        "null_keys": [5],
        "invalid_facts": [1, 2, 3],
    }
    plain = source("items", "item_id", ("a",), (None,))
    assert flagged(item_checks(["item_id"]), plain) == {"null_keys": [1], "invalid_facts": []}


def test_vectors_are_found_in_slices_and_chunks() -> None:
    vectors = pa.chunked_array([pa.array([[1.0], [math.nan], [2.0]]).slice(1), pa.array([None, [1.0, None]])])
    assert meets(pa.table({"vector": vectors}), NotFiniteVector("vector")).tolist() == [True, False, False, True]


def test_tables_of_usable_rows_stay_as_they_are() -> None:
    whole = log(("m", "u", "a", 1.0), ("n", "u", "b", 2.0))
    held_out = source("held_out", "user_id item_id", ("u", "a"))
    assert usable_of(whole, request()) is whole.table
    assert usable_of(whole, request(models=("n", "m"))) is whole.table
    assert held_out_checks(held_out.table.column_names).usable(held_out.table) is held_out.table
    assert keep_requested_rows(whole.table, request()) is whole.table


def test_rows_that_cannot_be_used_are_left_out() -> None:
    assert usable_of(log(), request())["item_id"].to_pylist() == ["a", "f"]
    assert usable_of(log(), request(models=("n",)))["item_id"].to_pylist() == ["f"]
    held_out = source("held_out", "user_id item_id gain", ("u", "a", 1.0), ("u", None, 1.0), ("u", "b", None))
    assert held_out_checks(["user_id", "item_id"]).usable(held_out.table)["item_id"].to_pylist() == ["a"]
    train = source("train", "user_id item_id", ("u", None), (None, "b"), ("u", "c"))
    assert train_checks(()).usable(train.table)["item_id"].to_pylist() == ["c"]


def test_rows_of_other_models_are_ignored_and_those_without_a_model_counted() -> None:
    named = keep_requested_rows(log().table, request(models=("n",)))
    assert named["item_id"].to_pylist() == ["b", "f"]
    flags = log_checks(named.column_names).flag_failures(named)
    assert {name: np.flatnonzero(flag).tolist() for name, flag in flags.items()} == {
        "null_keys": [0],
        "zero_ranks": [],
        "invalid_scores": [],
    }


def test_ranks_that_are_kept_order_the_lists_whatever_the_scores_say() -> None:
    rows = [("u", "a", math.nan, 3), ("u", "b", 1.0, None)]
    both = source("recommendations", "user_id item_id score rank", *rows)
    assert usable_of(both, request())["item_id"].to_pylist() == ["b"]
    kept = usable_of(both, request(rank_gaps="keep"))
    assert (kept.column_names, kept["item_id"].to_pylist()) == (["user_id", "item_id", "rank"], ["a"])


def test_a_row_without_a_place_is_refused_on_request() -> None:
    """One without a key is not looked at."""
    no_key = log(("m", "u", "a", 1.0), ("m", None, "b", None))
    assert usable_of(no_key, request(invalid_scores="error")).num_rows == 1
    expected = (
        r"^\[rankeval:invalid_scores\] a recommendation with a NULL, NaN or infinite score or rank, and the policy "
        r"invalid_scores is 'error'$"
    )
    with pytest.raises(RefusedError, match=expected):
        usable_of(log(), request(invalid_scores="error"))
    assert usable_of(log(), request(invalid_scores="error", models=("n",))).num_rows == 1


def test_rank_0_is_refused_where_ranks_order_the_lists() -> None:
    rows = [("old", "u", "a", 0), ("new", "u", "a", 1)]
    ranked = source("recommendations", "model_id user_id item_id rank", *rows)
    expected = (
        r"^\[rankeval:recommendations\] rank 0, in a log whose ranks order its lists; expected ranks that count from 1"
        r"; fix: write inputs=\{'recommendations': \{'ranks_from': 0\}\}, "
        r"which counts the first item of each list as 1\.$"
    )
    with pytest.raises(RefusedError, match=expected):
        usable_of(ranked, request())
    assert usable_of(ranked, request(models=("new",))).num_rows == 1
    scored = source("recommendations", "user_id item_id score rank", ("u", "a", 1.0, 0))
    assert usable_of(scored, request()) is scored.table
    with pytest.raises(RefusedError, match="rank 0"):
        usable_of(scored, request(rank_gaps="keep"))


# ---- inputs without a usable row ------------------------------------------------------------------------------------

NO_USER = ("user_id item_id", (None, "a"), ("u", None))


def tables(**other: Source) -> Tables:
    """Make inputs with a usable row each, some of them replaced."""
    held_out = source("held_out", "user_id item_id", ("u", "a"))
    sources = {"recommendations": log(("m", "u", "a", 1.0)), "held_out": held_out, **other}
    return Tables(**sources, are_checked=False)


def refuse_unusable(given: Tables, asked: Request) -> None:
    """Refuse inputs without a usable row."""
    Usable(given, asked, 1).refuse_unusable()


def refusal(given: Tables, asked: Request) -> str:
    """Say why inputs are refused."""
    with pytest.raises(RefusedError) as refused:
        refuse_unusable(given, asked)
    return str(refused.value)


def test_an_input_without_a_usable_row_is_refused_with_the_counts() -> None:
    bad = log(("m", "u", "a", math.nan), ("m", "u", "b", None), ("m", None, "a", 1.0))
    assert refusal(tables(recommendations=bad), request()) == (
        "[rankeval:recommendations] 3 rows and none that can be used (1 null_keys, 2 invalid_scores); expected ids "
        "that are not NULL, and a finite score or else a rank of at least 1; fix: correct the rows."
    )
    gains = source("held_out", "user_id item_id gain", ("u", "a", None), (None, "a", 1.0))
    assert "2 rows and none that can be used (1 null_keys, 1 invalid_gains)" in refusal(
        tables(held_out=gains), request()
    )
    assert "invalid_scores is 'error'" in refusal(tables(recommendations=bad), request(invalid_scores="error"))


def test_an_input_is_refused_for_every_check_of_faulty_rows_that_are_left_out() -> None:
    inputs = (log_checks(["score"], own_item="drop"), held_out_checks(["value", "weight"], own_item="drop_both"))
    others = (train_checks(["interacted_at"], before=date(2026, 1, 1)), item_checks(["vector"]), segment_checks())
    of_users = (user_value_checks(), user_weight_checks())
    found = [(each.input, check) for each in (*inputs, *others, *of_users) for check in each.checks]
    for name, check in found:
        if check.drops and check.is_fault:
            with pytest.raises(RefusedError, match=f"3 rows and none that can be used .3 {check.name}"):
                refuse_by_check(name, {check.name: 3})
        else:
            refuse_by_check(name, {check.name: 3})
    assert {check.name for _, check in found if check.is_fault} == {*FAULTS}
    assert {check.name for _, check in found if not check.is_fault} == {
        *("own_item", "negative_gains", "low_gains", "train_after_cut")
    }


def test_a_call_warns_of_every_fault_but_ranks_of_zero_which_it_refuses() -> None:
    assert {*FAULTS} - LEFT_OUT.keys() == {"zero_ranks"}, "add the warning of their check"


def test_inputs_with_a_usable_row_or_without_rows_are_accepted() -> None:
    empty = source("held_out", "user_id item_id")
    refuse_unusable(tables(recommendations=log(), held_out=empty), request())


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Request(measures=("P@1",), slices=(("country",),)), "segments"),
        (request(seen_in_train="drop"), "train"),
        (request("MIUF@1"), "train"),
        (Request(measures=("P@1",), counts_seen=True), "train"),
        (request(unknown_items="drop"), "items"),
        (request("ILD@1"), "items"),
    ],
)
def test_optional_inputs_are_refused_where_they_are_read(asked: Request, name: str) -> None:
    given = {
        "segments": source("segments", "user_id country", (None, "DE")),
        "train": source("train", *NO_USER),
        "items": source("items", "item_id vector", (None, [1.0])),
    }
    with_one = tables(**{name: given[name]})
    assert f"[rankeval:{name}]" in refusal(with_one, asked)
    refuse_unusable(with_one, request())


def test_segments_are_not_read_where_all_slices_are_made_of_the_training_data() -> None:
    activity = {"activity": Band(of="train")}
    asked = Request(measures=("P@1",), slices=(("activity",),), slicing=Slicing(bands=activity))
    refuse_unusable(tables(segments=source("segments", "user_id country", (None, "DE"))), asked)


@pytest.mark.parametrize(
    ("n_unusable", "words"), [(9_999, "9999 rows and none"), (row_kinds.MAX_COUNTED, "10000 rows or more and none")]
)
def test_of_a_long_input_only_the_first_rows_are_counted(n_unusable: int, words: str) -> None:
    counts = [{"input": "recommendations", "check": "null_keys", "count": n_unusable}]
    with pytest.raises(RefusedError, match=words):
        refuse_counted(pa.array([counts]))
    refuse_counted(pa.array([[*counts, {"input": "recommendations", "check": None, "count": 1}]]))


def test_a_row_that_names_no_model_is_counted_where_the_others_do_not_name_theirs() -> None:
    rows = pa.table({"user_id": ["u", None], "item_id": ["a", "b"], "model_id": pa.nulls(2, pa.string())})
    checks = unnamed_checks(["user_id", "item_id"])
    assert [(one.check, one.count, one.sample_keys) for one in checks.tallies(rows, checks.flag_failures(rows))] == [
        ("rows", 2, []),
        ("null_keys", 2, ["NULL NULL  b", "NULL u  a"]),
    ]
