"""Comparisons where lists are scored: hashes of users, parts of whole users, and the values that are compared."""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine import outputs, paired_differences
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.engine.checks import PartitionTallies
from rankeval_spark.engine.paired_differences import ComparisonRequest, DifferenceAggregator
from rankeval_spark.engine.slices import USER_HASH, segment_column_names
from rankeval_spark.statistics.hashed_random import hash_ids
from rankeval_spark.statistics.paired_tests import Differences
from tests.support.engine_rows import held_out, input_table, job, log, read, scored_rows, segments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rankeval_spark.engine.job import Job

MODELS = ("a", "b", "c")
N_USERS = 40
SLICES = ((), ("country",))


@pytest.mark.parametrize("column", [pa.array(["", "7", "ann", "zo\u00eb", "x" * 40]), pa.array([0, -7, 2**60])])
def test_users_are_hashed_as_text(column: pa.Array) -> None:
    expected = hash_ids([str(one) for one in column.to_pylist()]).tolist()
    assert hash_users(column).tolist() == expected
    assert hash_users(column.slice(1)).tolist() == expected[1:]
    assert hash_users(pa.chunked_array([column, column])).tolist() == expected * 2
    assert hash_users(column.slice(0, 0)).tolist() == []


def rows_of_users() -> pa.Table:
    """Draw lists of three models; not every user has one of each, and some have no judgement."""
    draw = random.Random(5)
    users = [f"u{number:02}" for number in range(N_USERS)]
    listed = [
        (model, user, f"i{item}", draw.random())
        for user in users
        for model in MODELS
        if draw.random() < 0.8
        for item in draw.sample(range(9), 4)
    ]
    judged = [(user, f"i{item}", 1.0) for user in users[:-5] for item in draw.sample(range(9), 3)]
    countries = [(user, draw.choice(["DE", "FR", None])) for user in users[::2]]
    logged = [row | {C.MODEL_ID: model} for (model, *rest) in listed for row in log("user_id item_id score", (*rest,))]
    return input_table(logged, held_out("user_id item_id gain", *judged), segments(*countries))


def work() -> tuple[Job, DifferenceAggregator]:
    made = job(measures=["P@2", "nDCG@3"], slices=SLICES[1:], models=MODELS)
    measures = made.outputs.measures
    asked = ComparisonRequest(
        measures.columns,
        (None, None),
        tuple(frozenset(measures.requested_ks[name]) for name in measures.columns),
        measures.ks,
        ("t",),
        "wilcox",
        "exact",
        replicates=100,
        seed=0,
        baseline="a",
        all_pairs=True,
    )
    return made, DifferenceAggregator(asked, tuple(segment_column_names(SLICES)))


def merged(found: list[dict[str, Any]]) -> dict[tuple[Any, ...], np.ndarray]:
    """Merge the aggregates of each group: users, mean differences, their squares, magnitudes, and users with lists."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in found:
        key = tuple(tuple(row[name]) if name == C.SLICE_VALUES else row[name] for name in paired_differences.GROUP)
        groups.setdefault(key, []).append(row)
    result = {}
    for key, rows in groups.items():
        if {row["kind"] for row in rows} == {paired_differences.LISTED}:
            result[key] = np.zeros((2, 1 + len(MODELS), len(MODELS)))
            for row in rows:  # a part of the lists may have none of a model
                places = [MODELS.index(name) for name in row["models"]]
                counts = np.frombuffer(row["state"]).reshape(2, -1, len(places))
                result[key][np.ix_((0, 1), [0, *(1 + place for place in places)], places)] += counts
            continue
        whole = reduce(Differences.merge, (Differences.from_bytes(row["state"]) for row in rows))
        result[key] = np.frombuffer(whole.to_bytes()[0])
    return result


@pytest.mark.parametrize(("at_once", "judged"), [(1, 100), (4, 100), (7, 100), (16_384, 2), (16_384, 1 << 22)])
def test_parts_that_cut_users_give_the_differences_of_the_scored_rows(
    monkeypatch: pytest.MonkeyPatch, at_once: int, judged: int
) -> None:
    table = rows_of_users()
    made, aggregator = work()
    every = pa.Table.from_pylist(sorted(scored_rows(made, table), key=by_user))
    packed = pa.array([[dict(one)["country"]] for one in every[C.SEGMENTS].to_pylist()], pa.list_(pa.string()))
    has_list = np.logical_and(every[C.N_RECOMMENDED].to_numpy() > 0, every[C.K].to_numpy() == 2)
    lists = every.select([C.MODEL_ID, C.USER_ID, "_is_evaluated"]).append_column("_segments", packed)
    counted = aggregator.count_lists(lists.filter(has_list))
    rows = every.filter(every["_is_evaluated"])
    by_name = {name: rows[name] for name in (C.MODEL_ID, C.USER_ID, C.K, "p", "ndcg")}
    packed = pa.array([[dict(one)["country"]] for one in rows[C.SEGMENTS].to_pylist()], pa.list_(pa.string()))
    rows = pa.table({**by_name, USER_HASH: hash_users(rows[C.USER_ID]), "_segments": packed})
    expected = merged([*read(aggregator.aggregate_rows(iter(rows.to_batches()))), *read(counted)])

    monkeypatch.setattr(outputs, "LISTS_AT_ONCE", at_once)
    monkeypatch.setattr(outputs, "JUDGED_AT_ONCE", judged)
    found = merged(differences(made, aggregator, table.to_batches()))
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        np.testing.assert_allclose(found[key], numbers, rtol=0, atol=1e-12, err_msg=str(key))


def differences(work: Job, aggregator: DifferenceAggregator, batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    parts = work.parts(batches, PartitionTallies())
    return read(rows for part in parts for rows in work.outputs.differences(part, aggregator))


def by_user(row: dict[str, Any]) -> tuple[str, str, int]:
    return row[C.USER_ID], row[C.MODEL_ID], row[C.K]


def test_no_list_is_no_aggregate() -> None:
    made, aggregator = work()
    assert differences(made, aggregator, []) == []
    nothing = pa.table({C.MODEL_ID: pa.array([], pa.string())})
    assert list(aggregator.aggregate_lists(nothing, np.empty((0, 2, 2)))) == []
