"""Facts beyond ranks and gains: what is known of users and judged items, and where rows that make them are missing."""

from __future__ import annotations

import math
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import pack_constants, to_batch
from rankeval_spark.engine.features import item_group_bits, to_profiles
from rankeval_spark.measures import Measure, MeasureSet, registry, required_facts as N
from rankeval_spark.measures.required_facts import BY_POPULARITY
from rankeval_spark.measures.worked_examples import examples_of
from tests.support.engine_rows import (
    Row,
    held_out,
    input_table,
    job,
    judgements_of,
    known_items,
    log,
    scored_rows,
    train,
)

ONE_OF_EACH: Final = [examples_of(entry)[0].measure for entry in registry.entries("list")]
"""A name of every measure that has a value for each list."""

_TEXTS, _NUMBERS = pa.list_(pa.string()), pa.list_(pa.float64())
_FACTS: Final = {
    **dict.fromkeys(N.ITEM_VALUES, pa.float64()),
    N.ITEM_CATEGORIES: _TEXTS,
    N.ITEM_VECTORS: _NUMBERS,
}
_TYPES: Final = {
    **dict.fromkeys((C.VALUE, C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT), pa.float64()),
    row_kinds.FACTS: pa.struct(_FACTS),
    row_kinds.SIMILARITY: pa.float64(),
    C.PAIRS: pa.list_(pa.struct({"later": pa.int32(), "earlier": pa.int32(), "similarity": pa.float64()})),
}
"""Columns of facts that some users of a run have, though none of the partition."""

ITEMS: Final = log("model_id user_id item_id score rank", ("m", "u", "a", 0.5, 1), ("m", "u", "b", 0.25, 2))
JUDGED: Final = held_out("user_id item_id gain", ("v", "a", 1.0), ("v", "c", 0.0))


def partition(*inputs: list[Row], has_small_catalogue: bool) -> pa.Table:
    """Put rows together with all columns of facts, NULL; those of items are in the first row or in each."""
    table = input_table(*inputs, also=[C.SCORE, C.RANK, C.GAIN])
    kept = {name: type_ for name, type_ in _TYPES.items() if name != row_kinds.FACTS or not has_small_catalogue}
    for name, type_ in kept.items():
        table = table.append_column(name, pa.nulls(table.num_rows, type_))
    others: list[None] = [None] * (table.num_rows - 1)
    totals = pa.struct(dict.fromkeys(N.TOTALS, pa.float64()))
    shared = {C.TOTALS: pa.array([dict.fromkeys(N.TOTALS, 7.0)], totals)}
    if has_small_catalogue:
        shared[row_kinds.ITEMS] = pa.array([[]], pa.list_(pa.struct({C.ITEM_ID: pa.string(), **_FACTS})))
    (cell,) = pack_constants(shared)
    return table.append_column(row_kinds.SHARED, pa.array([cell[row_kinds.SHARED][0].as_py(), *others], pa.binary()))


@pytest.mark.parametrize("has_small_catalogue", [True, False])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_measure_is_scored_if_a_partition_has_no_rows_of_an_input(name: str, has_small_catalogue: bool) -> None:
    """Users with lists alone, with judgements alone, and both; nothing is known of their items."""
    asked = MeasureSet.of([Measure.parse(name)])
    work = job(
        measures=[name],
        needs=asked.needs | {N.ITEM_SEEN},
        described=(row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.TRAIN),
    )
    n_rows = {}
    for users, inputs in (("u", [ITEMS]), ("v", [JUDGED]), ("uv", [ITEMS, JUDGED])):
        table = partition(*inputs, has_small_catalogue=has_small_catalogue)
        found = scored_rows(work, table)
        assert {row["user_id"] for row in found} == set(users)
        assert all(asked.columns[0] in row and C.SEEN in row for row in found)
        n_rows[users] = len(found)
    assert n_rows == {"u": 1, "v": 1, "uv": 2}


OF_PROFILES: Final = {
    N.ITEM_CATEGORIES: pa.list_(pa.string()),
    N.ITEM_VECTORS: pa.list_(pa.float64()),
    N.ITEM_INTERACTIONS: pa.float64(),
}


def profiles_of(
    pairs: list[tuple[str, str]], judged: list[tuple[str, str, float]], items: list[tuple[Any, ...]], *needs: str
) -> dict[str, Row]:
    """Describe users by what they have in the training data and by their judgements."""
    log_of_one = log("user_id item_id score", ("nobody", "x", 1.0))  # who has lists does not matter
    table = input_table(log_of_one, train(*pairs), held_out("user_id item_id gain", *judged), also=[C.GAIN])
    batch = to_batch(table, models=("m",), constants=known_items(OF_PROFILES, *items))
    found = to_profiles(batch, judgements_of(batch), needs=frozenset(needs))
    assert found is not None
    return dict(zip(batch.users.to_pylist(), found.to_pylist(), strict=True))


def test_profile_takes_each_item_once_and_only_those_that_the_catalogue_describes() -> None:
    pairs = [("u", "a"), ("u", "a"), ("u", "b"), ("u", "x"), ("v", "x"), ("w", "c")]
    items = [
        *(("a", ["g", "h"], [3.0, 4.0], 2.0), ("b", ["g"], [0.0, -2.0], 1.0)),
        *(("c", None, [0.0, 0.0], 1.0), ("x", None, None, 2.0)),
    ]
    judged = [("u", "a", 1.0), ("u", "b", 0.0), ("u", "x", 1.0), ("z", "c", 1.0), ("y", "b", 2.0)]
    every = (N.PROFILE_CATEGORIES, N.PROFILE_VECTORS, N.PROFILE_INTERACTIONS, N.JUDGED_CATEGORIES)
    found = profiles_of(pairs, judged, items, *every)
    known = {user: row[N.PROFILE_INTERACTIONS] for user, row in found.items() if row[N.PROFILE_INTERACTIONS]}
    assert known == {"u": (2 + 1 + 2) / 3, "v": 2, "w": 1}
    judgements = {user: [tuple(one.values()) for one in row[N.JUDGED_CATEGORIES] or ()] for user, row in found.items()}
    nothing: dict[str, list[Any]] = {user: [] for user in ("nobody", "v", "w", "z")}
    assert judgements == {"u": [(0, ["g"]), (1, ["g", "h"])], "y": [(2, ["g"])]} | nothing
    assert {user for user, row in found.items() if row[N.PROFILE_CATEGORIES]} == {"u"}
    of_u = found["u"][N.PROFILE_CATEGORIES]
    assert [tuple(label.values()) for label in of_u] == [("g", 1, 1), ("g", 2, 1), ("h", 2, 1)]
    assert {user for user, row in found.items() if row[N.PROFILE_VECTORS]} == {"u"}
    assert found["u"][N.PROFILE_VECTORS] == [(3 / 5 + 0) / 2, (4 / 5 - 1) / 2]


def test_vectors_are_added_up_in_the_order_of_the_items_and_keep_the_sign_of_zero() -> None:
    items = [("a", None, [0.1, -0.0], 1.0), ("b", None, [0.3, -0.0], 1.0), ("ä", None, [0.7, -0.0], 1.0)]
    pairs = [("u", "ä"), ("u", "b"), ("u", "a"), ("v", "b"), ("v", "c")]
    found = profiles_of(pairs, [], items, N.PROFILE_VECTORS)
    units = [x / math.sqrt(x * x) for x in (0.1, 0.3, 0.7)]
    total = [(units[0] + units[1] + units[2]) / 3, -0.0]
    assert list(map(float.hex, found["u"][N.PROFILE_VECTORS])) == list(map(float.hex, total))


def test_there_is_no_profile_where_nothing_is_needed() -> None:
    batch = to_batch(input_table(train(("u", "a"))), models=("m",))
    assert to_profiles(batch, judgements_of(batch), needs=frozenset()) is None


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.lists(st.sampled_from(["rock", "tail", "pop", None])))))
def test_groups_of_popularity_and_categories_are_bits(items: list[tuple[int | None, list[str | None]]]) -> None:
    popularity, categories = zip(*items, strict=True) if items else ((), ())
    known = {
        N.ITEM_POPULARITY_GROUP: pa.array(popularity, pa.float64()),
        N.ITEM_CATEGORIES: pa.array([own or None for own in categories], pa.list_(pa.string())),
    }
    names = ("rock", *BY_POPULARITY, "jazz")
    found = item_group_bits(known, names, n_items=len(items))
    for bits, (place, own) in zip(found.tolist(), items, strict=True):
        group = "tail" if place is None else BY_POPULARITY[place]
        expected = {group, *(["rock"] if "rock" in own else [])}
        assert {name for bit, name in enumerate(names) if bits >> bit & 1} == expected
