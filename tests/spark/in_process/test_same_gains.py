"""Events become the same gains on both hosts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import ResultTable, evaluate, schemas
from rankeval_spark.config.inputs import Gains, JudgementRows
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.spark.reading import from_frame
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

NAN, INFINITE = float("nan"), float("inf")
TEXTS: Final = ["purchase", "PURCHASE", "view", " view", "5", "5.0", "true", "x", None]
NUMBERS: Final = [5.0, 4.5, 4.0, -0.0, 0.0, NAN, INFINITE, -INFINITE, None]
CASES: Final[dict[str, tuple[Sequence[object], str, dict[str, Any]]]] = {
    "events": (TEXTS, "string", {"values": {"purchase": 3, "view": 1, 5: 2, True: 4}}),
    "text by edges": (["1", "4.5", "1e3", "x", "nan", None], "string", {"edges": [1.5, 4.5]}),
    "ratings": (NUMBERS, "double", {"values": {5: 2, 4.5: 1, 0: -1}}),
    "ratings by edges": (NUMBERS, "double", {"edges": [0, 4, 5]}),
    "whole numbers": ([1, 5, None], "int", {"values": {5: 2}}),
    "truth values": ([True, False, None], "boolean", {"values": {True: 1, False: 0}}),
    "words for numbers": ([1, 5], "bigint", {"values": {"five": 5}}),
    "edges of truth": ([True], "boolean", {"edges": [1]}),
    "days": ([dt.date(2026, 1, 1)], "date", {"edges": [1]}),
}

REFUSED: Final = ("words for numbers", "edges of truth", "days")


@pytest.mark.parametrize("title", CASES)
def test_gains_are_the_same(spark: SparkSession, title: str) -> None:
    values, type_, given = CASES[title]
    rows = [(number, number, value) for number, value in enumerate(values)]
    frame = spark.createDataFrame(rows, f"user_id bigint, item_id bigint, seen {type_}")
    reading = JudgementRows(gains=Gains.model_validate({"column": "seen", **given}))

    def gains_on_spark() -> list[float | None]:
        canonical = from_frame("held_out", frame, schemas.HELD_OUT, reading).frame
        return [row.gain for row in canonical.orderBy("user_id").collect()]

    def gains_here() -> list[float | None]:
        found: list[float | None] = (
            to_source("held_out", frame.toArrow(), schemas.HELD_OUT, reading).table["gain"].to_pylist()
        )
        return found

    if title in REFUSED:
        with pytest.raises(InputError) as on_spark:
            gains_on_spark()
        with pytest.raises(InputError) as here:
            gains_here()
        assert here.value.faults == on_spark.value.faults
    else:
        assert gains_here() == gains_on_spark()


def test_evaluate_takes_events_on_spark(spark: SparkSession) -> None:
    log = spark.createDataFrame([("ann", "b", 2.0), ("ann", "a", 1.0)], "user_id string, item_id string, score double")
    events = spark.createDataFrame(
        [("ann", "a", "view"), ("ann", "a", "cart"), ("ann", "b", "skip")],
        "user_id string, item_id string, event string",
    )
    gains = {"column": "event", "values": {"cart": 2, "view": 1, "skip": 0}}
    given: dict[str, Any] = {"measures": ["DCG(dcg='inverse')"], "gains": gains}
    on_spark = evaluate(log, events, **sections(**given))
    here = evaluate(log.toArrow(), events.toArrow(), **sections(**given))
    assert isinstance(here.metrics, ResultTable)
    assert [row.value for row in on_spark.metrics.collect()] == here.metrics["value"].to_pylist() == [2 / 2]
