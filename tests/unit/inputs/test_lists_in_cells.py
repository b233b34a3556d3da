"""Lists in one cell with a separator, in this process: calls of `evaluate` and nights without Spark."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import HeldOutInput, load_config, validate_model
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.inputs.arrow.canonical import Reading
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.input_columns import CORRUPT
from rankeval_spark.results.published_results import Results
from rankeval_spark.spark.session import on_demand
from tests.support.cli import rankeval
from tests.support.lists_in_cells import (
    BOUGHT,
    DAY,
    LISTS,
    RR,
    SEPARATORS,
    judgements,
    nested_by,
    nested_inputs,
    night_of,
    renamed,
    submission,
)


@pytest.mark.parametrize("title", SEPARATORS)
def test_items_of_a_cell_are_a_list_with_their_zeros(title: str) -> None:
    separator = SEPARATORS[title]
    for library in (pa.Table.to_pandas, pl.from_arrow, lambda table: table):
        log, held_out = (library(renamed(one)) for one in (submission(separator), judgements(separator)))
        result = evaluate(log, held_out, measures=["RR"], inputs=nested_inputs(**nested_by(separator)))
        assert result.metrics["value"].to_pylist() == [RR]
        listed: dict[str, list[str]] = {}
        for row in result.ranked_items.sort_by([("user_id", "ascending"), ("rank", "ascending")]).to_pylist():
            listed.setdefault(row["user_id"], []).append(row["item_id"])
        assert listed == {user: items for user, (_, items) in LISTS.items() if items}


def test_empty_cells_are_users_without_a_list_as_empty_arrays_are() -> None:
    arrays = pa.table({"user_id": list(LISTS), "item_id": [items for _, items in LISTS.values()]})
    held_out = renamed(judgements(" "))
    given = {"held_out": nested_by(" ")["held_out"]}
    wanted = evaluate(arrays, held_out, measures=["RR"], inputs=nested_inputs(**given))
    found = evaluate(renamed(submission(" ")), held_out, measures=["RR"], inputs=nested_inputs(**nested_by(" ")))
    for name in ("metrics", "user_metrics", "ranked_items", "checks"):
        assert getattr(found, name) == getattr(wanted, name), name


def test_scores_in_a_second_cell_order_the_list() -> None:
    log = pa.table({"user_id": ["ann", "bob"], "prediction": ["a|b|c", "a|b"], "points": ["1|3|2", "1|"]})
    nested = {"items": "prediction", "scores": "points", "separator": "|"}
    held_out = pa.table({"user_id": ["ann", "bob"], "item_id": ["c", "a"]})
    result = evaluate(log, held_out, measures=["RR"], inputs=nested_inputs(recommendations=nested))
    assert result.user_metrics["rr"].to_pylist() == [1 / 2, 0]  # bob's cells differ in length: no scores
    (found,) = [row for row in result.checks.to_pylist() if row["check"] == "invalid_scores"]
    assert found["count"] == 2


def test_judgements_in_arrays_are_recognised_by_their_type() -> None:
    log = pa.table({"user_id": ["ann", "bob"], "item_id": [["a", "b"], ["c"]]})
    held_out = pa.table({"user_id": ["ann", "bob"], "item_id": [["b", "x"], None], "gain": [2.0, 1.0]})
    source = to_source("held_out", held_out, schemas.HELD_OUT)
    rows = [("ann", "b", 2.0), ("ann", "x", 2.0)]
    assert [tuple(row.values()) for row in source.table.to_pylist()] == rows
    assert evaluate(log, held_out, measures=["RR"]).metrics["value"].to_pylist() == [1 / 2]


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (
            {"items": "prediction"},
            r"recommendations\.nested\.items: found 'prediction' with text such as '0706016001\|07.*write inputs=",
        ),
        ({"items": "predicted", "separator": "|"}, r"no column 'predicted' among user_id.*did you mean 'prediction'"),
        ({"items": "user", "separator": "|"}, r"no column 'user' among user_id"),
    ],
)
def test_separator_or_column_that_is_missing_is_named(nested: dict[str, str], message: str) -> None:
    held_out = pa.table({"user_id": ["ann"], "item_id": ["a"]})
    with pytest.raises(InputError, match=message):
        evaluate(renamed(submission("|")), held_out, measures=["RR"], inputs=nested_inputs(recommendations=nested))


def test_keys_of_nested_are_validated() -> None:
    held_out = pa.table({"user_id": ["ann"], "item_id": ["a"]})
    for nested, message in (
        ({"recommendations": {"item": "prediction"}}, "unknown key 'item'.*did you mean 'items'"),
        ({"recommendations": {"items": "prediction", "separator": ""}}, "separator"),
        ({"held_out": {"items": "a", "scores": "b"}}, "unknown key 'scores'"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluate(held_out, held_out, measures=["RR"], inputs=nested_inputs(**nested))
    both_ways = {"nested": nested_by(" ")["recommendations"], "ranks_from": 0}
    with pytest.raises(ConfigError, match="both nested and ranks_from"):
        evaluate(renamed(submission(" ")), held_out, measures=["RR"], inputs={"recommendations": both_ways})
    arrays = pa.table({"user_id": ["ann"], "item_id": [["a"]]})
    with pytest.raises(InputError, match="arrays of items and ranks_from=0"):
        evaluate(arrays, held_out, measures=["RR"], inputs={"recommendations": {"ranks_from": 0}})
    both = {"format": "csv", "path": "x", "nested": {"items": "i"}, "gains": {"column": "event", "edges": [4]}}
    with pytest.raises(ConfigError, match="both nested and gains"):
        validate_model(HeldOutInput, both)


def test_numbers_that_pandas_made_of_cells_are_to_be_read_as_text() -> None:
    log = pd.DataFrame({"user_id": ["ann"], "prediction": [706016001]})
    nested = {"items": "prediction", "separator": " "}
    with pytest.raises(InputError, match=r"type int64; .*read the column as text, with the zeros"):
        evaluate(log, log, measures=["RR"], inputs=nested_inputs(recommendations=nested))


def test_line_that_could_not_be_split_is_one_row_without_an_item() -> None:
    given = {"format": "csv", "path": "x", "columns": {}, "nested": {"items": "items", "separator": "-"}}
    reading = Reading.from_rows("inputs.held_out", schemas.HELD_OUT, validate_model(HeldOutInput, given))
    table = pa.table({"user_id": ["ann", "bob", "eve"], "items": ["a-b", "x-y", None], CORRUPT: [None, "?", "?"]})
    found = reading.read_rows(table).select(["user_id", "item_id", "is_unparsable"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        *(("ann", "a", False), ("ann", "b", False)),
        *((None, None, True), (None, None, True)),
    ]


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "delta"])
def test_nights_read_cells_without_spark(tmp_path: Path, form: str) -> None:
    made = night_of(tmp_path, form, " ")
    run_night(on_demand(lambda: pytest.fail("a session was started")), load_config(made.config), DAY)
    assert Results(made.root).metrics()["value"].to_pylist() == [RR]
    (run,) = [row for row in Results(made.root).runs().to_pylist() if row["status"] == "PUBLISHED"]
    counts = {one["name"]: one["n_rows"] for one in run["inputs"]}
    assert counts == {"recommendations": sum(len(items) for _, items in LISTS.values()), "held_out": len(BOUGHT) + 1}


def test_night_without_its_separator_is_refused_before_spark_with_the_key(tmp_path: Path) -> None:
    made = night_of(tmp_path, "csv", " ", nested={"items": "prediction"})
    for command in ("validate", "run"):
        done = rankeval(command, made.config, "--date", DAY)
        assert done.code == 4, done.err
        assert 'write inputs.recommendations.nested.separator: " "' in done.message
