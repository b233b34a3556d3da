"""Lists that travel as arrays become the rows of a flat log."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import expand_lists, flatten_lists
from rankeval_spark.engine.checks import PartitionTallies, log_checks
from rankeval_spark.engine.failures import RefusedError

LOG, HELD_OUT = row_kinds.LOG, row_kinds.HELD_OUT
SCHEMA: Final = pa.schema(
    {
        row_kinds.KIND: pa.int8(),
        C.USER_ID: pa.string(),
        C.ITEM_ID: pa.int64(),
        C.GAIN: pa.float64(),
        row_kinds.LISTED_ITEMS: pa.list_(pa.int32()),
        row_kinds.LISTED_SCORES: pa.list_(pa.float32()),
    }
)
NAN: Final = float("nan")
Lists = list[tuple[list[int | None] | None, list[float | None] | None]]


def batch_of(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Make a batch of (kind, user, item, gain, items, scores)."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(cells, field.type) for cells, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def rows_of(batches: list[pa.RecordBatch], *, has_ranks: bool = True) -> list[dict[str, Any]]:
    return [row for batch in expand_lists(batches, has_ranks=has_ranks) for row in batch.to_pylist()]


def flat_by_loop(lists: Lists) -> list[tuple[int, int, int | None, float | None]]:
    found = []
    for row, (items, scores) in enumerate(lists):
        has_scores = scores is not None and len(scores) == len(items or [])
        for place, item in enumerate(items or []):
            found.append((row, place + 1, item, scores[place] if has_scores and scores else None))
    return found


ITEMS = st.lists(st.none() | st.integers(0, 9), max_size=4)
SCORES = st.lists(st.none() | st.floats(-9, 9, width=32), max_size=4)


@given(lists=st.lists(st.tuples(st.none() | ITEMS, st.none() | SCORES), max_size=6), cut=st.integers(0, 6))
def test_lists_are_flattened_as_by_a_loop_wherever_they_are_cut(lists: Lists, cut: int) -> None:
    columns = zip(*lists, strict=True) if lists else ((), ())
    items, scores = (
        pa.array(cells, pa.list_(kind)) for cells, kind in zip(columns, (pa.int64(), pa.float64()), strict=True)
    )
    whole = flatten_lists(items, scores)
    found = [*zip(whole.row.tolist(), whole.position.tolist(), whole.items.to_pylist(), scores_of(whole), strict=True)]
    assert found == flat_by_loop(lists)
    parts = [flatten_lists(items[start:end], scores[start:end]) for start, end in ((0, cut), (cut, len(lists)))]
    assert [each for part in parts for each in part.items.to_pylist()] == whole.items.to_pylist()
    assert [each for part in parts for each in scores_of(part)] == scores_of(whole)


def scores_of(flat: Any) -> list[float | None]:  # noqa: ANN401 - FlatLists with scores
    found: list[float | None] = flat.scores.to_pylist()
    return found


def test_items_of_a_list_become_rows_and_other_rows_stay() -> None:
    batch = batch_of(
        (LOG, "ann", None, None, [7, 8], [0.5, 0.25]),
        (HELD_OUT, "ann", 8, 3.0, [], []),
        (LOG, "bob", None, None, [], []),
        (LOG, "eve", None, None, [9], [0.125]),
    )
    assert rows_of([batch]) == [
        {"_kind": HELD_OUT, "user_id": "ann", "item_id": 8, "gain": 3.0, "score": None, "rank": None},
        {"_kind": LOG, "user_id": "ann", "item_id": 7, "gain": None, "score": 0.5, "rank": 1},
        {"_kind": LOG, "user_id": "ann", "item_id": 8, "gain": None, "score": 0.25, "rank": 2},
        {"_kind": LOG, "user_id": "eve", "item_id": 9, "gain": None, "score": 0.125, "rank": 1},
    ]
    assert "rank" not in rows_of([batch], has_ranks=False)[0]


def test_batches_have_one_schema_and_a_flat_log_is_not_changed() -> None:
    lists, judged = batch_of((LOG, "ann", None, None, [7], [0.5])), batch_of((HELD_OUT, "ann", 8, 3.0, [], []))
    first, *rest = [batch.schema for batch in expand_lists([lists, judged, batch_of()], has_ranks=True)]
    assert all(sorted(one.names) == sorted(first.names) for one in rest)
    flat = lists.drop_columns(row_kinds.LISTED)
    assert [*expand_lists([flat], has_ranks=True)] == [flat]


def test_items_and_scores_that_cannot_be_used_are_counted_by_their_check() -> None:
    batch = batch_of(
        (LOG, "ann", None, None, [1, None, 2, None], [0.5, 0.5, NAN, NAN]),
        (LOG, "bob", None, None, [1, 2], [0.5]),
        (LOG, None, None, None, [1, 2], [0.5, NAN]),
    )
    counts = PartitionTallies()
    usable = counts.usable(expand_lists([batch], has_ranks=False), {LOG: log_checks([C.SCORE])})
    kept = [row for one in usable for row in one.to_pylist()]
    assert [(row["user_id"], row["item_id"]) for row in kept] == [("ann", 1)]
    assert {one.check: one.count for one in counts.tallies.values()} == {
        **{"rows": 8, "null_keys": 4},
        **{"zero_ranks": 0, "invalid_scores": 3},
    }


def test_policy_error_refuses_an_item_without_a_place() -> None:
    batches = expand_lists([batch_of((LOG, "ann", None, None, [1, 2], [0.5, NAN]))], has_ranks=False)
    with pytest.raises(RefusedError, match=r"\[rankeval:invalid_scores\]"):
        list(PartitionTallies().usable(batches, {LOG: log_checks([C.SCORE], invalid_scores="error")}))
