"""Logs with one row per list in this process."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.config import RecommendationsInput, validate_model
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.inputs.arrow.reading import to_source
from tests.support.arrow_frames import judgements
from tests.support.awkward import Awkward
from tests.support.nested_logs import flat_of, nested, with_structs
from tests.support.sections import sections

LISTS = pa.table(
    {"user_id": ["ann", "bob", "eve"], "item_id": [["a", "b"], ["c"], None], "score": [[0.5, 0.25], [1.0], None]}
)
EXPECTED = [
    {"user_id": "ann", "item_id": "a", "score": 0.5, "rank": 1},
    {"user_id": "ann", "item_id": "b", "score": 0.25, "rank": 2},
    {"user_id": "bob", "item_id": "c", "score": 1.0, "rank": 1},
]


def duck(table: pa.Table) -> Any:  # noqa: ANN401 - without types
    return duckdb.from_arrow(table)


def rows_of(frame: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_source("recommendations", frame, schemas.RECOMMENDATIONS).table.to_pylist()
    return found


@pytest.mark.parametrize("library", [pa.Table.to_pandas, pl.from_arrow, duck, pa.Table.to_reader])
def test_arrays_are_recognised_by_their_types(library: Any) -> None:  # noqa: ANN401 - a library each
    assert rows_of(library(LISTS)) == EXPECTED
    assert rows_of(library(with_structs(LISTS.slice(0, 2)))) == EXPECTED
    assert rows_of(library(with_structs(LISTS.slice(0, 2), score="score"))) == EXPECTED
    no_scores = [{name: row[name] for name in row if name != "score"} for row in EXPECTED]
    assert rows_of(library(LISTS.drop_columns(["score"]))) == no_scores


def test_lists_of_a_fixed_size_and_large_ones_are_lists() -> None:
    items = pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2))
    scores = pa.array([[2.0, 1.0], [4.0, 3.0]], pa.large_list(pa.float32()))
    found = rows_of(pa.table({"user_id": [1, 2], "item_id": items, "score": scores}))
    assert [(row["user_id"], row["item_id"], row["score"], row["rank"]) for row in found] == [
        (1, "a", 2.0, 1),
        (1, "b", 1.0, 2),
        (2, "c", 4.0, 1),
        (2, "d", 3.0, 2),
    ]


@pytest.mark.parametrize("ids", ["string", "bigint"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"ties": "rank", "models": ["als", "absent"]},
        {"rank_gaps": "keep"},
        {"score_precision": "single", "seen_in_train": "drop"},
        {"unknown_items": "drop"},
        {"measures": ["ILD(unknown='drop')@3", "EPC@3", "Gini@3", "P@3"]},
    ],
    ids=repr,
)
@pytest.mark.parametrize("has_lists", [False, True], ids=["a list a user", "several lists"])
@pytest.mark.filterwarnings("ignore:recommendations have no row of")
def test_results_are_those_of_the_flat_log(asked: dict[str, Any], ids: str, *, has_lists: bool) -> None:
    inputs = Awkward.make(3, ids=ids, has_lists=has_lists)
    lists = nested(inputs.recommendations)
    options: dict[str, Any] = {"measures": ["nDCG@3", "AP", "RR(rel=2)@5"], **asked}
    found, wanted = (
        evaluate(log, inputs.held_out, **sections(train=inputs.train, items=inputs.items, **options))
        for log in (lists, flat_of(lists))
    )
    for name in ("user_metrics", "metrics", "ranked_items", "checks"):
        assert getattr(found, name) == getattr(wanted, name), name


def test_arrays_of_unequal_length_are_counted_with_keys_to_look_at() -> None:
    items, scores = [["a", "b"], ["c"], ["d"]], [[0.5], [1.0], None]
    lists = pa.table({"user_id": ["ann", "bob", "eve"], "item_id": items, "score": scores})
    result = evaluate(lists, judgements({"bob": {"c": 1}}), measures=["P@1"])
    (found,) = [row for row in result.checks.to_pylist() if row["check"] == "invalid_scores"]
    assert (found["count"], found["share"], found["sample_keys"]) == (3, 3 / 4, ["model ann  a", "model eve  d"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            with_structs(LISTS.slice(0, 2), item="movieId"),
            "column 'recommendations' of type array<struct<movieId:string",
        ),
        (LISTS.append_column("rank", pa.array([[1, 2], [1], None])), "arrays of items and a column 'rank'"),
        (pa.table({"user_id": ["ann"], "recommendations": ["a b"]}), "no column 'item_id'"),
        (
            LISTS.set_column(2, "score", pa.array([0.5, 1.0, 2.0])),
            r"recommendations\.nested\.scores.*'score' of type double",
        ),
        (LISTS.set_column(1, "item_id", pa.array([[["a"]], [], []])), "'item_id' of type array<array<string>>"),
        (
            LISTS.set_column(1, "item_id", pa.array([[0.5, 1.5], [2.0], []])),
            "column 'item_id' of type double for item_id",
        ),
    ],
)
def test_other_shapes_are_refused(table: pa.Table, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": {"item_id": "x", "rank": "y"}}, r"both nested and columns\.item_id, columns\.rank"),
        ({"ranks_from": 0}, "both nested and ranks_from"),
        ({"nested": {"scores": "s"}}, r"nested\.items"),
    ],
)
def test_nested_of_a_config_is_validated(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_model(RecommendationsInput, {"format": "parquet", "path": "x", "nested": {"items": "i"}, **given})
