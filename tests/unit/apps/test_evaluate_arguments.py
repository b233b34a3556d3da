"""Arguments of ``evaluate`` that are wrong, reported before anything is run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.sections import sections


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ((7, [7]), ("a int", "a list")),
        ((7, "/no/held_out"), ("a int", "no such path at /no/held_out")),
        (("/no/log.parquet", 7), ("no such path at /no/log.parquet", "a int")),
        ((None, None), ("None", "None")),
    ],
)
def test_what_is_no_table_is_refused_together(frames: tuple[object, object], found: tuple[str, str]) -> None:
    with pytest.raises(InputError) as raised:
        evaluate(*frames, measures=["nDCG@10"])
    told = [(fault.where, fault.found) for fault in raised.value.faults]
    assert told == [("evaluate(recommendations=)", found[0]), ("evaluate(held_out=)", found[1])]


def test_each_measure_that_is_wrong_is_named_by_its_place() -> None:
    measures: Any = ["nDCG@10", 5, "nDGC@10", "Bpref(weighted=True)"]
    with pytest.raises(ConfigError) as raised:
        evaluate(None, None, measures=measures, policies={"unknown_items": "drop"})
    assert [fault.where for fault in raised.value.faults] == [
        "evaluate(items=)",
        "evaluate(measures=)[1]",
        "evaluate(measures=)[2], nDGC@10",
        "evaluate(measures=)[3], Bpref(weighted=True)",
    ]


def test_arguments_that_nothing_reads_yet_are_looked_at_too() -> None:
    wrong: dict[str, Any] = {"evaluation_date": datetime(2026, 1, 31, tzinfo=UTC), "correction": "holmm"}
    with pytest.raises(ConfigError) as raised:
        evaluate(None, None, **sections(measures=["nDCG@10"], **wrong))
    assert [fault.where for fault in raised.value.faults] == [
        "evaluate(comparisons=).correction",
        "evaluate(evaluation_date=)",
    ]
