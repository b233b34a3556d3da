"""Events, ratings and seconds become gains in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.config import HeldOutInput, validate_model
from rankeval_spark.config.inputs import Gains, JudgementRows
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.inputs.arrow.reading import to_source
from tests.support.arrow_frames import ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS = {"column": "event", "values": {"purchase": 3, "cart": 2, "view": 1, "skip": 0, "hide": -1}}


def gains_of(cells: Sequence[object], **given: Any) -> list[float | None]:  # noqa: ANN401 - keys of the config
    rows = range(len(cells))
    table = pa.table({"user_id": pa.array(rows), "item_id": pa.array(rows), "seen": pa.array(cells)})
    gains = Gains.model_validate({"column": "seen", **given})
    found: list[float | None] = (
        to_source("held_out", table, schemas.HELD_OUT, JudgementRows(gains=gains)).table["gain"].to_pylist()
    )
    return found


@pytest.mark.parametrize(
    ("cells", "given", "expected"),
    [
        (["purchase", "skip", "share", None], {"values": {"purchase": 3, "skip": 0}}, [3.0, 0.0, None, None]),
        ([5, 4, 1], {"values": {5: 2, "4.0": 1}}, [2.0, 1.0, None]),
        ([4.5, float("nan")], {"values": {4.5: 1}}, [1.0, None]),
        ([True, False, None], {"values": {True: 1, False: 0}}, [1.0, 0.0, None]),
        (["5", "5.0"], {"values": {5: 1}}, [1.0, None]),
        (
            [9.9, 10, 30, 59, 60, float("inf"), float("nan"), None],
            {"edges": [10, 30, 60]},
            [0, 1, 2, 2, 3, 3, None, None],
        ),
        ([3, 4, 5, None], {"edges": [4]}, [0.0, 1.0, 1.0, None]),
        (["12", "x"], {"edges": [10]}, [1.0, None]),
    ],
)
def test_gain_of_each_value(cells: list[object], given: dict[str, Any], expected: list[float | None]) -> None:
    assert gains_of(cells, **given) == expected


@pytest.mark.parametrize(
    ("cells", "given", "message"),
    [
        (
            [1, 2],
            {"values": {"purchase": 3}},
            "column 'seen' of type bigint for gain.*write the values of gains as numbers",
        ),
        ([True], {"edges": [1]}, "column 'seen' of type boolean for gain"),
        ([[1.0]], {"edges": [1]}, "column 'seen' of type array<double> for gain"),
    ],
)
def test_column_of_another_type_is_refused(cells: list[object], given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gains_of(cells, **given)


def test_column_that_is_missing_is_named_with_its_key() -> None:
    table = pa.table({"user_id": ["ann"], "item_id": ["a"], "gain": [1.0]})
    with pytest.raises(InputError, match=r"held_out\.gains\.column.*no column 'event' \(for gain\)"):
        to_source("held_out", table, schemas.HELD_OUT, JudgementRows(gains=Gains.model_validate(EVENTS)))


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ({"column": "event"}, "neither values nor edges"),
        ({"column": "event", "values": {"view": 1}, "edges": [1]}, "both values and edges"),
        ({"column": "seconds", "edges": [10, 10]}, "ascending numbers, each once"),
        ({"column": "event", "values": {"view": "much"}}, "'much'"),
        ({"values": {"view": 1}}, "gains.column"),
    ],
)
def test_gains_of_a_config_are_validated(gains: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_model(HeldOutInput, {"format": "csv", "path": "x.csv", "gains": gains})


def test_gains_and_a_column_with_gains_are_refused() -> None:
    given = {"format": "csv", "path": "x.csv", "columns": {"gain": "rating"}, "gains": EVENTS}
    with pytest.raises(ConfigError, match=r"both gains and columns\.gain"):
        validate_model(HeldOutInput, given)


def held_out(*rows: tuple[str, str, str]) -> pa.Table:
    return pa.table(dict(zip(("user_id", "item_id", "event"), zip(*rows, strict=True), strict=True)))


def test_events_of_a_user_and_item_are_aggregated_and_skips_are_not_relevant() -> None:
    events = held_out(("ann", "a", "view"), ("ann", "a", "cart"), ("ann", "b", "skip"), ("ann", "c", "view"))
    log = ranking({"ann": "b a c"})
    best = evaluate(log, events, measures=["DCG(dcg='inverse')", "P@1"], inputs={"held_out": {"gains": EVENTS}})
    total = evaluate(
        log,
        events,
        measures=["DCG(dcg='inverse')"],
        policies={"held_out_duplicates": "sum"},
        inputs={"held_out": {"gains": EVENTS}},
    )
    assert best.metrics["value"].to_pylist() == [2 / 2 + 1 / 3, 0.0]
    assert total.metrics["value"].to_pylist() == [3 / 2 + 1 / 3]


def test_events_without_a_gain_are_counted_and_named() -> None:
    events = held_out(("ann", "a", "view"), ("ann", "b", "share"), ("bob", "a", "Purchase"))
    result = evaluate(ranking({"ann": "b a"}), events, measures=["P@1"], inputs={"held_out": {"gains": EVENTS}})
    (found,) = [row for row in result.checks.to_pylist() if row["check"] == "invalid_gains"]
    assert (found["count"], found["verdict"], found["sample_keys"]) == (2, "error", ["ann b", "bob a"])


def test_argument_that_is_not_valid_is_named() -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(inputs=\)\.held_out\.gains.*neither values nor edges"):
        evaluate(
            ranking({"ann": "a"}),
            held_out(("ann", "a", "view")),
            measures=["P@1"],
            inputs={"held_out": {"gains": {"column": "event"}}},
        )
