"""Lists in one cell with a separator on Spark: the same as in this process, in nights and calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from pyspark.errors import PythonException

from rankeval_spark import evaluate, schemas
from rankeval_spark.config import load_config
from rankeval_spark.inputs.input_columns import RAW
from rankeval_spark.inputs.spark.reading import read_input
from tests.spark.test_night_hosts import on_both, published
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
from tests.support.spark_inputs import read, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: Final = sorted((user, item, place) for user, (_, items) in LISTS.items() for place, item in enumerate(items, 1))


@pytest.mark.parametrize(("form", "title"), [("csv", "blank"), ("json", "tab"), ("parquet", "comma"), ("delta", "bar")])
def test_cells_of_files_are_the_rows_of_a_flat_log(spark: SparkSession, tmp_path: Path, form: str, title: str) -> None:
    made = night_of(tmp_path, form, SEPARATORS[title])
    inputs = load_config(made.config).inputs
    log, held_out = (
        read_input(spark, schema.name, getattr(inputs, schema.name), schema, DAY)
        for schema in (schemas.RECOMMENDATIONS, schemas.HELD_OUT)
    )
    assert sorted(tuple(row) for row in log.frame.select("user_id", "item_id", "rank").collect()) == ROWS
    assert held_out.rows_to_count.count() == held_out.frame.count() == len(BOUGHT) + 1
    assert log.rows_to_count.count() == len(ROWS)
    assert {row.gain for row in held_out.frame.collect()} == {1.0}


def test_broken_lines_of_json_are_counted_as_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.json", '{"user_id": "ann", "items": "a b"}', "broken")
    for schema in (schemas.RECOMMENDATIONS, schemas.HELD_OUT):
        source = read(spark, schema, format="json", path=path, nested={"items": "items", "separator": " "})
        found = sorted(source.frame.collect(), key=repr)
        assert [(row.user_id, row.item_id) for row in found] == [("ann", "a"), ("ann", "b"), (None, None)]
        assert [row[RAW] for row in source.with_raw.frame.where("item_id is null").collect()] == ["broken"]


@pytest.mark.parametrize("has_scores", [False, True])
def test_nights_of_cells_are_the_same_on_both_hosts(spark: SparkSession, tmp_path: Path, *, has_scores: bool) -> None:
    nested = {**nested_by(" ")["recommendations"], **({"scores": "scores"} if has_scores else {})}
    made = night_of(tmp_path, "csv", " ", nested=nested)
    on_both(spark, made, days=(DAY,))
    runs = [published(made, root)[0]["inputs"] for root in ("on_spark", "here")]
    assert [[one["n_rows"] for one in run] for run in runs] == [[len(ROWS), len(BOUGHT) + 1]] * 2


def test_frames_with_cells_are_evaluated_as_tables_are(spark: SparkSession) -> None:
    log, held_out = (spark.createDataFrame(renamed(one).to_pandas()) for one in (submission("|"), judgements("|")))
    result = evaluate(log, held_out, measures=["RR"], inputs=nested_inputs(**nested_by("|")))
    assert [row.value for row in result.metrics.collect()] == [RR]
    nested = {**nested_by("|"), "recommendations": {"items": "prediction"}}
    wrong = evaluate(log, held_out, measures=["RR"], inputs=nested_inputs(**nested))
    with pytest.raises(
        PythonException,
        match=r"write inputs=\{'recommendations': \{'nested': \{'items': 'prediction', 'separator': '\|'\}\}\}",
    ):
        wrong.metrics.collect()
