"""From compact lists to scored rows: everything arrives where it belongs."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any

import pyarrow as pa
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.config import Policies
from rankeval_spark.engine.aggregates import AggregateLayout
from rankeval_spark.engine.outputs import ListOutputs
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.engine.slices import PACKED
from rankeval_spark.measures import MeasureSet
from tests.support.engine_rows import (
    BY_SCORE,
    Row,
    compact_lists,
    held_out,
    input_table,
    job,
    log,
    score,
    scored_rows,
    tuples,
)

ASKED = ("P@2", "P@5", "AP", "nDCG@2")
LISTS: tuple[Row, ...] = (
    {"user_id": "ann", "n_recommended": 3, "hit_ranks": [2, 3], "hit_gains": [1.0, 1.0], "judged_gains": [1.0, 1.0]},
    {"user_id": "bob", "judged_gains": [1.0]},  # no list
    {"user_id": "cat", "n_recommended": 2, "n_duplicates": 3},  # not judged
    {"user_id": "dan", "n_recommended": 1, "hit_ranks": [1], "hit_gains": [0.5], "judged_gains": [0.5, 0.0]},  # R = 0
)
NAN = None
"""What a kernel says with NaN stands as NULL in a table."""


def scoring(*measures: str, **policies: Any) -> ListOutputs:  # noqa: ANN401 - settings of the policies
    """Score with these measures."""
    return ListOutputs(MeasureSet.parse(measures or ASKED), Policies(**policies), ((),))


def test_a_list_is_scored_at_every_cutoff_and_null_if_not_asked_or_undefined() -> None:
    found = score(scoring(), compact_lists(*LISTS))
    assert tuples(found, "user_id", "k", "p", "ap", "ndcg") == [
        ("ann", 0, NAN, (1 / 2 + 2 / 3) / 2, NAN),
        ("ann", 2, 1 / 2, NAN, (1 / log2(3)) / (1 + 1 / log2(3))),
        ("ann", 5, 2 / 5, NAN, NAN),
        ("bob", 0, NAN, 0.0, NAN),
        ("bob", 2, 0.0, NAN, 0.0),
        ("bob", 5, 0.0, NAN, NAN),
        ("cat", 0, NAN, NAN, NAN),
        ("cat", 2, NAN, NAN, NAN),
        ("cat", 5, NAN, NAN, NAN),
        ("dan", 0, NAN, NAN, NAN),
        ("dan", 2, NAN, NAN, 1.0),
        ("dan", 5, NAN, NAN, NAN),
    ]
    assert len(set(tuples(found, "model_id", "user_id", "list_id", "k"))) == len(found)


def test_lists_may_be_slices_of_arrow_arrays() -> None:
    lists = compact_lists(*LISTS)
    sliced = score(scoring(), {name: column.slice(1) for name, column in lists.items()})
    whole = [row for row in score(scoring(), lists) if row["user_id"] != "ann"]
    assert tuples(sliced, "user_id", "k", "p", "ap", "ndcg", "n_hits") == tuples(
        whole, "user_id", "k", "p", "ap", "ndcg", "n_hits"
    )


def test_scored_rows_have_the_declared_columns() -> None:
    part = scoring().score_part(compact_lists(*LISTS))
    declared = [field.name for field in schemas.USER_METRICS.fields if field.name not in C.RUN_KEY]
    assert part.user_rows.schema.names == [*declared, "p", "ap", "ndcg"]
    assert part.rows.schema.names == [*part.user_rows.schema.names, IS_EVALUATED]


def test_counts_are_next_to_the_measures_at_their_cutoff() -> None:
    found = score(scoring(), compact_lists(*LISTS))
    names = ("n_judged", "n_relevant", "n_recommended", "n_hits", "n_duplicates", "_n_listed")
    assert tuples([row for row in found if row["k"] != 5], "user_id", "k", *names) == [
        ("ann", 0, 2, 2, 3, 2, 0, 3),
        ("ann", 2, 2, 2, 2, 1, 0, 3),
        ("bob", 0, 1, 1, 0, 0, 0, 0),
        ("bob", 2, 1, 1, 0, 0, 0, 0),
        ("cat", 0, 0, 0, 2, 0, 3, 2 + 3),
        ("cat", 2, 0, 0, 2, 0, 3, 2 + 3),
        ("dan", 0, 2, 0, 1, 0, 0, 1),
        ("dan", 2, 2, 0, 1, 0, 0, 1),
    ]


def test_a_user_without_a_relevant_item_scores_zero_on_request() -> None:
    """Cat, who has no judgement, too, where the population is everyone with a list."""
    found = score(scoring(population="run", zero_relevant="zero"), compact_lists(*LISTS))
    assert tuples([row for row in found if row["user_id"] in ("cat", "dan")], "user_id", "k", "p", "ap", "ndcg") == [
        ("cat", 0, NAN, 0.0, NAN),
        ("cat", 2, 0.0, NAN, 0.0),
        ("cat", 5, 0.0, NAN, NAN),
        ("dan", 0, NAN, 0.0, NAN),
        ("dan", 2, 0.0, NAN, 1.0),
        ("dan", 5, 0.0, NAN, NAN),
    ]


@pytest.mark.parametrize(
    ("tied_ranks", "hits", "ks_with_ties"),
    [
        pytest.param([3, 4], {4: 1.0}, [2, 3, 0], id="a block of ranks 2 to 4 counts from its first rank on"),
        pytest.param([3], {1: 1.0}, [], id="a block without a judged item changes nothing"),
        pytest.param([2, 3], {1: 1.0, 2: 1.0, 3: 1.0}, [], id="nor one whose items are all worth the same"),
        pytest.param([2, 3], {1: 1.0, 2: 1.0, 3: 2.0}, [1, 2, 3, 0], id="but two gains do"),
        pytest.param([2], {1: 0.0}, [], id="a judgement of gain 0 is worth what no judgement is"),
        pytest.param([2, 4], {3: 1.0}, [3, 0], id="the first block that matters decides"),
        pytest.param([], {2: 1.0}, [], id="no block"),
        pytest.param([3, 4, 5, 6], {6: 1.0}, [2, 3, 0], id="a block that straddles every cutoff"),
    ],
)
def test_ties_count_if_a_block_from_the_cutoff_or_above_holds_different_gains(
    tied_ranks: list[int], hits: dict[int, float], ks_with_ties: list[int]
) -> None:
    one = {"user_id": "u", "n_recommended": 6, "tied_ranks": tied_ranks, "judged_gains": sorted(hits.values())[::-1]}
    lists = compact_lists({**one, "hit_ranks": list(hits), "hit_gains": list(hits.values())})
    found = score(scoring("P@1", "P@2", "P@3", "AP"), lists)
    assert {row["k"]: row["has_ties"] for row in found} == {k: k in ks_with_ties for k in (1, 2, 3, 0)}


def test_without_a_list_there_is_no_saying_whether_it_has_ties() -> None:
    found = score(scoring("AP"), compact_lists(*LISTS))
    assert {row["user_id"]: row["has_ties"] for row in found} == {"ann": False, "bob": None, "cat": False, "dan": False}


@pytest.mark.parametrize("at_once", [1, 2, 16_384])
def test_moments_of_parts_add_up_to_those_of_all_lists(at_once: int) -> None:
    lists = compact_lists(*({**one, PACKED: [country]} for one, country in zip(LISTS, "ffdd", strict=True)))
    by_country = replace(scoring(), slices=((), ("country",)))
    direct = pa.Table.from_batches(list(by_country.moments(by_country.score_part(lists))))
    assert direct.num_rows == 3 * (1 + 2)

    parts = [{name: each.slice(start, at_once) for name, each in lists.items()} for start in range(0, 4, at_once)]
    found = pa.Table.from_batches(batch for part in parts for batch in by_country.moments(by_country.score_part(part)))
    state = AggregateLayout.from_columns(by_country.measures.columns, by_country.measures.denominator_columns)
    assert state.pool(found).to_pylist() == state.pool(direct).to_pylist()


def test_means_over_all_orders_of_tied_items_on_request() -> None:
    """Of two tied items one is relevant: it is first in one of two orders."""
    table = input_table(
        log("user_id item_id score", ("u", "a", 0.5), ("u", "b", 0.5)),
        held_out("user_id item_id gain", ("u", "b", 1.0)),
    )
    work = job(replace(BY_SCORE, ties="expected"), measures=["P@1"])
    assert tuples(scored_rows(work, table), "p", "n_hits", "has_ties") == [(1 / 2, 0, True)]
