"""Facts that measures read in addition to ranks and gains, where users lack some of the rows they are made of."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import pack_constants
from rankeval_spark.measures import Measure, MeasureSet, registry, required_facts as N
from rankeval_spark.measures.worked_examples import examples_of
from tests.support.engine_rows import Row, held_out, input_table, job, log, scored_rows

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
