"""Facts of items on Spark: partitions and broadcasts change no bit, and a bad catalogue fails the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.evaluate.test_items import DATE, EXPECTED, evaluated, inputs, values_of
from tests.support.arrow_frames import shuffled
from tests.support.frames import by, frame_of, judgements, ranking, table
from tests.support.plans import JOB_FAILED
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation

LENGTHS_IN_A_WORKER: Final = (
    r"\[rankeval:items\] vectors of two lengths, 1 numbers for 'a' and 2 numbers for 'b'; "
    r"expected one length; fix: give each item a vector of one length\."
)


def frames(spark: SparkSession) -> dict[str, Any]:
    """Make the inputs."""
    return {name: spark.createDataFrame(rows) for name, rows in inputs().items()}


def on_spark(given: dict[str, Any], measures: list[str]) -> Evaluation:
    """Evaluate on Spark."""
    return evaluate(**sections(**given, measures=measures, evaluation_date=DATE))


def test_rows_and_partitions_in_any_order_give_the_bits_of_this_process(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    given = {name: spark.createDataFrame(shuffled(rows, 7)).repartition(5) for name, rows in inputs().items()}
    values: dict[str, dict[str, float | None]] = {}
    for row in on_spark(given, list(EXPECTED)).user_values.collect():
        values.setdefault(f"{row['measure']}@{row['k']}", {})[row["user_id"]] = row["value"]
    assert values == values_of(evaluated())


def test_repeated_item_fails_the_job_with_a_readable_message(spark: SparkSession) -> None:
    given = frames(spark)
    given["items"] = given["items"].union(given["items"].where("item_id = 'a'"))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:items\] item 'a' twice in the catalogue"):
        on_spark(given, ["ILD@2"]).user_metrics.collect()


def test_vectors_of_different_lengths_fail_the_job_with_a_readable_message(spark: SparkSession) -> None:
    given = frames(spark)
    given["items"] = frame_of(spark, [("a", [1.0]), ("b", [1.0, 2.0])], "item_id string, vector array<double>")
    with pytest.raises(JOB_FAILED, match=LENGTHS_IN_A_WORKER):
        on_spark(given, ["ILD@2"]).user_metrics.collect()


@pytest.mark.parametrize("vectors", [(None, None), (None, [1.0, 0.0])], ids=str)
def test_items_may_be_without_vectors_in_a_partition_or_altogether(
    spark: SparkSession, vectors: tuple[Any, Any]
) -> None:
    items = [(item, vector) for item, vector in zip("ab", vectors, strict=True)]
    result = evaluate(
        ranking(spark, {"ann": "a b", "bob": "x y"}),
        judgements(spark, {"ann": {"a": 1}, "bob": {"x": 1}}),
        measures=["ILD@2", "ILD(unknown='drop')@2", "Unexpectedness@2"],
        train=table(spark, "user_id item_id", ("ann", "a"), ("bob", "y")),
        items=frame_of(spark, items, "item_id string, vector array<double>"),
    )
    found = by(result.user_values, "measure", "user_id", value="value")
    assert set(found.values()) == {None}
